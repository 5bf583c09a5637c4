"""Intervals and tests for shares of success. The closed forms are checked against SciPy in the tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A share of successes with its 95 % interval.

    Attributes:
      successes: how many succeeded.
      n: out of how many.
      value: successes / n, NaN for n = 0.
      low: lower end of the Wilson score interval.
      high: upper end.
    """

    successes: int
    n: int
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """Write the rate as a reader wants it: ``0.933 [0.787, 0.982] (28/30)``."""
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}] ({self.successes}/{self.n})"


def _z(confidence: float) -> float:
    return NormalDist().inv_cdf(0.5 + confidence / 2)


def wilson(successes: int, n: int, confidence: float = 0.95) -> Rate:
    """Return a share with its Wilson score interval.

    Args:
      successes: number of successes.
      n: number of trials; with none nothing is known, so the interval is [0, 1].
      confidence: coverage of the interval, in (0, 1).

    Raises:
      ValueError: successes are negative or more than the trials.

    References:
      E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927).
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes out of {n} trials cannot be.")
    if n == 0:
        return Rate(successes=0, n=0, value=math.nan, low=0.0, high=1.0)
    z, p = _z(confidence), successes / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # At the borders the exact ends are 0 and 1; rounding must not move them.
    low = 0.0 if successes == 0 else max(0.0, middle - half)
    high = 1.0 if successes == n else min(1.0, middle + half)
    return Rate(successes=successes, n=n, value=p, low=low, high=high)


def bootstrap_mean(
    values: Sequence[float], *, seed: int = 0, resamples: int = 2000, confidence: float = 0.95
) -> tuple[float, float, float]:
    """Return (mean, low, high) of ``values`` by the percentile bootstrap, the same for the same seed.

    Raises:
      ValueError: no values.
    """
    if not values:
        raise ValueError("The mean of no values has no interval.")
    import numpy as np

    from embodied.seeding import stream_rng

    data = np.asarray(values, dtype=np.float64)
    picks = stream_rng(seed, "bootstrap").integers(0, data.size, size=(resamples, data.size))
    tail = (1 - confidence) / 2
    low, high = np.quantile(data[picks].mean(axis=1), [tail, 1 - tail])
    return float(data.mean()), float(low), float(high)


def mcnemar(only_a: int, only_b: int) -> float:
    """Return the exact two-sided p-value that A and B succeed equally often on the same episodes.

    Args:
      only_a: episodes where A alone succeeded.
      only_b: episodes where B alone succeeded.

    References:
      Q. McNemar, Psychometrika 12 (1947); the exact form is a binomial test on the discordant pairs.
    """
    n, k = only_a + only_b, min(only_a, only_b)
    if n == 0:
        return 1.0
    tail = sum(math.comb(n, i) for i in range(k + 1)) / 2**n
    return min(1.0, 2 * tail)


def paired_difference(
    both: int, only_a: int, only_b: int, neither: int, confidence: float = 0.95
) -> tuple[float, float, float]:
    """Return (difference, low, high) of two success shares measured on the same episodes, A minus B.

    The interval joins the two Wilson intervals through the correlation of the pairs.

    Args:
      both: episodes where both succeeded.
      only_a: where A alone did.
      only_b: where B alone did.
      neither: where none did.
      confidence: coverage.

    References:
      R. G. Newcombe, "Improved confidence intervals for the difference between binomial proportions based on paired
      data", Statistics in Medicine 17 (1998), method 10.
    """
    n = both + only_a + only_b + neither
    if n == 0:
        return math.nan, -1.0, 1.0
    a, b = wilson(both + only_a, n, confidence), wilson(both + only_b, n, confidence)
    cross = both * neither - only_a * only_b
    product = (both + only_a) * (only_b + neither) * (both + only_b) * (only_a + neither)
    if cross > 0:
        cross = max(cross - n / 2, 0.0)
    phi = cross / math.sqrt(product) if product else 0.0
    down_a, up_a, down_b, up_b = a.value - a.low, a.high - a.value, b.value - b.low, b.high - b.value
    below = math.sqrt(max(0.0, down_a**2 - 2 * phi * down_a * up_b + up_b**2))
    above = math.sqrt(max(0.0, up_a**2 - 2 * phi * up_a * down_b + down_b**2))
    difference = a.value - b.value
    return difference, max(-1.0, difference - below), min(1.0, difference + above)


def pairs_needed(only_a: int, only_b: int, n: int, power: float = 0.8) -> int | None:
    """Return how many episodes would show the observed difference at the 5 % level, None when there is none to show.

    Args:
      only_a: episodes where A alone succeeded.
      only_b: where B alone did.
      n: episodes compared.
      power: chance to see it.

    References:
      R. J. Connor, "Sample size for testing differences in proportions for the paired-sample design", Biometrics 43
      (1987).
    """
    if n == 0 or only_a == only_b:
        return None
    discordant, difference = (only_a + only_b) / n, (only_a - only_b) / n
    z_a, z_b = _z(0.95), NormalDist().inv_cdf(power)
    spread = z_a * math.sqrt(discordant) + z_b * math.sqrt(max(0.0, discordant - difference**2))
    # Five discordant pairs can never reach 5 % in the exact test, however one-sided they are.
    return max(math.ceil((spread / difference) ** 2), math.ceil(6 / discordant))
