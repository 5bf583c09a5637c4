"""Quantiles of durations in constant memory and constant time per sample."""

from __future__ import annotations

from math import floor, log10

_LOW_S = 1e-7
_PER_DECADE = 50
_DECADES = 9
_FACTOR = 10 ** (1 / _PER_DECADE)


class Histogram:
    """Counts durations in buckets whose edges grow by 4.7 % from 0.1 µs to 100 s; the ends catch the rest.

    Attributes:
      count: samples so far.
      max_s: the largest, exactly; 0 without samples.
      total_s: their sum.
    """

    __slots__ = ("_buckets", "count", "max_s", "total_s")

    def __init__(self) -> None:
        self._buckets = [0] * (_PER_DECADE * _DECADES + 2)
        self.count = 0
        self.max_s = 0.0
        self.total_s = 0.0

    def add(self, duration_s: float) -> None:
        """Count one duration; negative ones count as zero."""
        if duration_s > self.max_s:
            self.max_s = duration_s
        self.count += 1
        if duration_s < _LOW_S:
            self._buckets[0] += 1
            return
        self.total_s += duration_s
        i = 1 + floor(log10(duration_s / _LOW_S) * _PER_DECADE)
        self._buckets[min(i, len(self._buckets) - 1)] += 1

    def merge(self, other: Histogram) -> None:
        """Add the samples of another."""
        self._buckets = [a + b for a, b in zip(self._buckets, other._buckets, strict=True)]
        self.count += other.count
        self.total_s += other.total_s
        self.max_s = max(self.max_s, other.max_s)

    def quantile_s(self, share: float) -> float:
        """Return the duration that ``share`` of the samples do not exceed: at most 4.7 % above the true one.

        Args:
          share: in (0, 1].
        """
        if not self.count:
            return 0.0
        rank, seen = share * self.count, 0
        for i, n in enumerate(self._buckets):
            seen += n
            if n and seen >= rank:
                # The last bucket has no upper edge.
                return self.max_s if i == len(self._buckets) - 1 else min(_LOW_S * _FACTOR**i, self.max_s)
        return self.max_s

    @property
    def mean_s(self) -> float:
        """Arithmetic mean; 0 without samples."""
        return self.total_s / self.count if self.count else 0.0

    def summary_us(self) -> dict[str, float]:
        """Return p50, p99 and max in microseconds, for logs."""
        values = {"p50": self.quantile_s(0.5), "p99": self.quantile_s(0.99), "max": self.max_s}
        return {k: round(v * 1e6, 1) for k, v in values.items()}
