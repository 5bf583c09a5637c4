"""Compare two runs on the same episodes: pairs, not averages, so easy and hard episodes do not blur the difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from embodied.benchmark.metrics import mcnemar, paired_difference, pairs_needed
from embodied.benchmark.store import RunFolder
from embodied.errors import EmbodiedError

Pair = tuple[str, int]


class CompareError(EmbodiedError):
    """Two runs cannot be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedCount:
    """Two runs on the same n episodes of a task.

    Attributes:
      task: task id, or ``all``.
      both: episodes that both solved.
      only_a: that A alone solved.
      only_b: that B alone solved.
      neither: that none solved.
      rate_a: share of A.
      rate_b: share of B.
      difference: ``rate_a - rate_b``.
      low: lower end of its 95 % interval.
      high: upper end.
      p_value: McNemar's exact two-sided test.
    """

    task: str
    both: int
    only_a: int
    only_b: int
    neither: int
    rate_a: float
    rate_b: float
    difference: float
    low: float
    high: float
    p_value: float

    @property
    def n(self) -> int:
        """Number of pairs."""
        return self.both + self.only_a + self.only_b + self.neither


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two runs side by side.

    Attributes:
      name_a: what A was: planner, world and folder.
      name_b: the same of B.
      overall: over all pairs.
      by_task: per task, sorted by id.
      only_in_a: episodes that B lacks.
      only_in_b: episodes that A lacks.
      needed: episodes that would show this difference with a chance of 80 %, None when there is none.
    """

    name_a: str
    name_b: str
    overall: PairedCount
    by_task: tuple[PairedCount, ...]
    only_in_a: tuple[Pair, ...]
    only_in_b: tuple[Pair, ...]
    needed: int | None

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "a": self.name_a,
            "b": self.name_b,
            "overall": asdict(self.overall) | {"n": self.overall.n},
            "by_task": {c.task: asdict(c) | {"n": c.n} for c in self.by_task},
            "only_in_a": [list(p) for p in self.only_in_a],
            "only_in_b": [list(p) for p in self.only_in_b],
            "episodes_needed": self.needed,
        }


def compare_runs(a: Path, b: Path, *, common_only: bool = False) -> Comparison:
    """Compare the runs in two folders, paired by task and seed.

    Args:
      a: folder of the first run.
      b: folder of the second.
      common_only: compare what both hold when one lacks episodes of the other.

    Raises:
      RunFolderError: a folder is not that of a run.
      CompareError: episodes are missing on one side, or the runs share none.
    """
    name_a, results_a = _load(a)
    name_b, results_b = _load(b)
    common = sorted(results_a.keys() & results_b.keys())
    only_a, only_b = sorted(results_a.keys() - results_b.keys()), sorted(results_b.keys() - results_a.keys())
    if not common:
        raise CompareError(
            f"{a} ({len(results_a)} episodes) and {b} ({len(results_b)}) share no episode, that is no task with the "
            "same seed. Run both with the same suite and --seed."
        )
    if (only_a or only_b) and not common_only:
        raise CompareError(
            f"Not paired: {_missing(b, only_a)}{_missing(a, only_b)}{len(common)} are in both. "
            "Finish the runs with their own commands, or give --common to compare what both hold."
        )
    pairs = [(task, bool(results_a[task, seed]), bool(results_b[task, seed])) for task, seed in common]
    overall = _count("all", pairs)
    tasks = sorted({task for task, _, _ in pairs})
    return Comparison(
        name_a=name_a,
        name_b=name_b,
        overall=overall,
        by_task=tuple(_count(t, [p for p in pairs if p[0] == t]) for t in tasks),
        only_in_a=tuple(only_a),
        only_in_b=tuple(only_b),
        needed=pairs_needed(overall.only_a, overall.only_b, overall.n),
    )


def _load(path: Path) -> tuple[str, Mapping[Pair, bool]]:
    folder = RunFolder(path)
    manifest = folder.manifest()
    results = {(r["task_id"], int(r["seed"])): bool(r["success"]) for r in folder.results()}
    return f"{manifest.planner} on {manifest.world} ({path})", results


def _missing(folder: Path, pairs: Sequence[Pair]) -> str:
    if not pairs:
        return ""
    shown = ", ".join(f"{task} seed {seed}" for task, seed in pairs[:5])
    return f"{folder} lacks {len(pairs)} episodes ({shown}{', …' if len(pairs) > 5 else ''}); "


def _count(task: str, pairs: Sequence[tuple[str, bool, bool]]) -> PairedCount:
    both = sum(x and y for _, x, y in pairs)
    only_a = sum(x and not y for _, x, y in pairs)
    only_b = sum(y and not x for _, x, y in pairs)
    neither = len(pairs) - both - only_a - only_b
    difference, low, high = paired_difference(both, only_a, only_b, neither)
    return PairedCount(
        task=task,
        both=both,
        only_a=only_a,
        only_b=only_b,
        neither=neither,
        rate_a=(both + only_a) / len(pairs),
        rate_b=(both + only_b) / len(pairs),
        difference=difference,
        low=low,
        high=high,
        p_value=mcnemar(only_a, only_b),
    )


def comparison_rows(result: Comparison) -> list[tuple[str, ...]]:
    """Return the table of a comparison, one row per task, then all."""
    return [
        (
            f"{c.task} (n = {c.n})",
            f"{c.rate_a:.3f}",
            f"{c.rate_b:.3f}",
            f"{c.difference:+.3f}",
            f"{c.low:+.3f} … {c.high:+.3f}",
            str(c.only_a),
            str(c.only_b),
            f"{c.p_value:.3g}",
        )
        for c in (*result.by_task, result.overall)
    ]


def comparison_lines(result: Comparison) -> list[str]:
    """Say in words what the comparison shows."""
    lines = []
    if result.only_in_a or result.only_in_b:
        lines.append(
            f"Compared over the {result.overall.n} episodes in both; "
            f"{len(result.only_in_a)} are in A alone, {len(result.only_in_b)} in B alone."
        )
    c = result.overall
    if c.p_value < 0.05:
        better = "A" if c.difference > 0 else "B"
        lines.append(f"{better} succeeds more often (McNemar exact, p = {c.p_value:.3g}).")
    elif result.needed is None:
        lines.append("No difference was seen.")
    else:
        lines.append(
            f"The difference is not shown (McNemar exact, p = {c.p_value:.3g}); "
            f"one of this size would need about {result.needed} episodes."
        )
    return lines
