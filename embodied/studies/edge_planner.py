"""The shipped compact planner: success from images alone on held-out tasks, and where it fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from embodied.studies.figure import Figure

if TYPE_CHECKING:
    from embodied.train.planner.paired import Played

FIRST_SEED = 1000
"""Held-out tasks, not looked at before: training tasks have seeds above 2,000,000."""
EPISODES, CONTROLS, QUICK_EPISODES = 200, 20, 4
INT8 = "int8-static"
WORKERS = 2
SPECS = {
    "int8": f"compact?precision={INT8}",
    "fp32": "compact?precision=fp32",
    "oracle": "oracle",
    "random": "random",
    "black images": f"compact?precision={INT8}&blind=true",
}
CONTROL_TARGETS = {"oracle": ">= 0.95", "random": "<= 0.05", "black images": "<= 0.4"}
"""Planners on the first tasks, and what they must reach at least or at most."""


def planner(quick: bool, out: Path) -> list[Figure]:
    """Int8 and fp32 in pairs, then oracle, random and a blind control on the first of the same tasks."""
    del out
    from embodied.train.planner.paired import pairs, play_all

    count, controls = (QUICK_EPISODES, 2) if quick else (EPISODES, CONTROLS)
    seeds = range(FIRST_SEED, FIRST_SEED + count)
    int8, fp32 = pairs(SPECS["int8"], SPECS["fp32"], seeds, workers=WORKERS)
    some = seeds[:controls]
    return figures(int8, fp32, {name: play_all(SPECS[name], some, workers=WORKERS) for name in CONTROL_TARGETS})


def figures(int8: Sequence[Played], fp32: Sequence[Played], controls: Mapping[str, Sequence[Played]]) -> list[Figure]:
    """Turn episodes into figures.

    Args:
      int8: episodes of the shipped int8 package.
      fp32: episodes of the fp32 package on the same tasks, in the same order.
      controls: episodes of the planners of :data:`CONTROL_TARGETS`.
    """
    from embodied.export.scores import compare_scores
    from embodied.policies.registry import shipped
    from embodied.train.contract import Score

    one, other = ([Score(seed=p.seed, value=float(p.success)) for p in part] for part in (int8, fp32))
    paired = compare_scores(one, other)
    size_mb = shipped("compact-planner@1", INT8).stat().st_size / 1e6
    return [
        _rate("success from images, int8", int8, ">= 0.8", _kinds(int8)),
        *(
            _rate(f"of these with {n} to bring", [p for p in int8 if p.things == n], ">= 0", _kinds(int8, n))
            for n in sorted({p.things for p in int8})
        ),
        _rate("success from images, fp32", fp32, ">= 0.8", _kinds(fp32)),
        Figure(
            name="success, int8 less fp32",
            value=paired.difference,
            low=paired.low,
            high=paired.high,
            target=">= -0.02",
            n=paired.episodes,
            note=f"{paired.changed} pairs differ",
        ),
        *(
            _rate(f"success, {name}", controls[name], target, f"the first of the same tasks; {_kinds(controls[name])}")
            for name, target in CONTROL_TARGETS.items()
        ),
        Figure("size of the int8 package", size_mb, None, None, "<= 20", 1, unit="MB"),
    ]


def _rate(name: str, played: Sequence[Played], target: str, note: str) -> Figure:
    from embodied.benchmark.metrics import wilson

    rate = wilson(sum(p.success for p in played), len(played))
    return Figure(name=name, value=rate.value, low=rate.low, high=rate.high, target=target, n=len(played), note=note)


def _kinds(played: Sequence[Played], things: int = 0) -> str:
    """Say why episodes failed, most frequent first."""
    counts = Counter(p.kind for p in played if not p.success and things in (0, p.things))
    return ", ".join(f"{n} {kind}" for kind, n in counts.most_common()) or "none failed"
