"""The shipped compact planner: success from images alone on held-out tasks, and where it fails."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from embodied.studies.figure import Figure

if TYPE_CHECKING:
    from embodied.train.planner.paired import Played

FIRST_SEED = 1000
"""Held-out tasks, not looked at before: training tasks have seeds above 2,000,000."""
EPISODES, CONTROLS, QUICK_EPISODES = 200, 40, 4
INT8 = "int8-static"
WORKERS = 2
SIZE_MAX_MB = 20.0


def planner(quick: bool, out: Path) -> list[Figure]:
    """Int8 and fp32 in pairs, oracle, random and a blind control; ``failures.csv`` and ``episodes.csv`` in ``out``."""
    from embodied.export.scores import compare_scores
    from embodied.policies.registry import shipped
    from embodied.train.contract import Score
    from embodied.train.planner.evaluate import TASK
    from embodied.train.planner.paired import pairs, play_all

    count, controls = (QUICK_EPISODES, 2) if quick else (EPISODES, CONTROLS)
    seeds = range(FIRST_SEED, FIRST_SEED + count)
    int8, fp32 = pairs(f"compact?precision={INT8}", "compact?precision=fp32", seeds, workers=WORKERS)
    some = seeds[:controls]
    others = {
        "oracle": play_all("oracle", some, workers=WORKERS),
        "random": play_all("random", some, workers=WORKERS),
        "black images": play_all(f"compact?precision={INT8}&blind=true", some, workers=WORKERS),
    }
    _write_episodes(out / "episodes.csv", [*int8, *fp32, *(p for part in others.values() for p in part)])
    _write_failures(out / "failures.csv", {"int8": int8, "fp32": fp32, **others})
    scores = [[Score(seed=p.seed, value=float(p.success)) for p in part] for part in (int8, fp32)]
    paired = compare_scores(*scores)
    size_mb = shipped("compact-planner@1", INT8).stat().st_size / 1e6
    return [
        _rate("success from images, int8", int8, ">= 0.8", f"{TASK}; {_kinds(int8)}"),
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
        _rate("success, oracle", others["oracle"], ">= 0.95", "privileged, same seeds"),
        _rate("success, random", others["random"], "<= 0.05", "same seeds"),
        _rate("success, black images", others["black images"], "<= 0.4", "same package and seeds, images blacked out"),
        Figure(
            name="size of the int8 package",
            value=size_mb,
            low=None,
            high=None,
            target=f"<= {SIZE_MAX_MB:g}",
            n=1,
            unit="MB",
        ),
    ]


def _rate(name: str, played: Sequence[Played], target: str, note: str) -> Figure:
    from embodied.benchmark.metrics import wilson

    rate = wilson(sum(p.success for p in played), len(played))
    return Figure(name=name, value=rate.value, low=rate.low, high=rate.high, target=target, n=len(played), note=note)


def _kinds(played: Sequence[Played]) -> str:
    counts = Counter(p.kind for p in played if not p.success)
    return ", ".join(f"{n} {kind}" for kind, n in counts.most_common()) or "none failed"


def _write_failures(target: Path, groups: dict[str, Sequence[Played]]) -> None:
    """Write how often each planner ended how, by the number of things to bring."""
    from embodied.train.planner.failures import KINDS

    with target.open("w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["planner", "things", "episodes", *KINDS])
        for name, played in groups.items():
            for things in (1, 2, 3):
                part = [p for p in played if p.things == things]
                if part:
                    counts = Counter(p.kind for p in part)
                    table.writerow([name, things, len(part), *(counts[k] for k in KINDS)])


def _write_episodes(target: Path, played: Sequence[Played]) -> None:
    with target.open("w", newline="") as stream:
        rows = [p.row() for p in played]
        table = csv.DictWriter(stream, fieldnames=list(rows[0]))
        table.writeheader()
        table.writerows(rows)
