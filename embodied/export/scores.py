"""Task scores of two packages on the same seeds: the difference that quantization makes where it counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from embodied.benchmark.metrics import bootstrap_mean, paired_difference
from embodied.errors import EmbodiedError
from embodied.train.contract import Score


class ScoreError(EmbodiedError):
    """Scores of two packages do not pair up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedScore:
    """A package beside fp32 on the same episodes.

    Attributes:
      episodes: number of pairs.
      score: mean score of the package.
      reference: mean score of fp32.
      difference: ``score - reference``.
      low: lower end of its 95 % interval.
      high: upper end.
      changed: episodes whose score differs.
    """

    episodes: int
    score: float
    reference: float
    difference: float
    low: float
    high: float
    changed: int

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return asdict(self)


def compare_scores(scores: Sequence[Score], reference: Sequence[Score]) -> PairedScore:
    """Compare two packages episode by episode.

    Successes get Newcombe's paired interval, which stays wide when no pair differs; other scores the bootstrap of
    their differences.

    Args:
      scores: of the package.
      reference: of fp32.

    Raises:
      ScoreError: other seeds, a seed twice, or none.
    """
    a, b = {s.seed: s.value for s in scores}, {s.seed: s.value for s in reference}
    if a.keys() != b.keys() or len(a) != len(scores) or len(b) != len(reference) or not a:
        raise ScoreError(
            f"{len(scores)} and {len(reference)} scores with {len(a.keys() & b.keys())} seeds in common: run both on "
            "the same seeds, each once."
        )
    pairs = [(a[seed], b[seed]) for seed in sorted(a)]
    n = len(pairs)
    if all(v in (0.0, 1.0) for pair in pairs for v in pair):
        both = sum(x == y == 1.0 for x, y in pairs)
        only_a, only_b = sum(x > y for x, y in pairs), sum(x < y for x, y in pairs)
        difference, low, high = paired_difference(both, only_a, only_b, n - both - only_a - only_b)
    else:
        difference, low, high = bootstrap_mean([x - y for x, y in pairs])
    return PairedScore(
        episodes=n,
        score=sum(x for x, _ in pairs) / n,
        reference=sum(y for _, y in pairs) / n,
        difference=difference,
        low=low,
        high=high,
        changed=sum(x != y for x, y in pairs),
    )
