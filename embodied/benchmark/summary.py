"""From the results of a run to the numbers that are printed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from embodied.benchmark.metrics import bootstrap_mean, wilson


def summarise(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return counts, success shares with Wilson intervals and outcomes, overall and per task.

    Every result counts in the denominator, crashes and time-outs included.
    """
    tasks = sorted({r["task_id"] for r in results})
    return _block(results) | {"by_task": {t: _block([r for r in results if r["task_id"] == t]) for t in tasks}}


def _block(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    rate = wilson(sum(bool(r["success"]) for r in results), len(results))
    progress = bootstrap_mean([_progress(r) for r in results]) if results else (None, None, None)
    return {
        "episodes": rate.n,
        "successes": rate.successes,
        "success_rate": rate.value if rate.n else None,
        "success_low": rate.low,
        "success_high": rate.high,
        "progress": progress[0],
        "progress_low": progress[1],
        "progress_high": progress[2],
        "outcomes": dict(sorted(Counter(r["outcome"] for r in results).items())),
    }


def _progress(result: Mapping[str, Any]) -> float:
    """Return how much of what was open at the start was reached, in [0, 1]: what held before counts for nothing."""
    if result["success"]:
        return 1.0
    start, end = float(result["initial_fraction"]), float(result["fraction"])
    return max(0.0, (end - start) / (1.0 - start)) if start < 1.0 else 0.0


def summary_rows(summary: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return the table of a summary: one row per task, then all."""
    blocks = [*summary["by_task"].items(), ("all", summary)]
    return [
        (
            name,
            "–" if b["success_rate"] is None else f"{b['success_rate']:.3f}",
            f"{b['success_low']:.3f} … {b['success_high']:.3f}",
            str(b["episodes"]),
        )
        for name, b in blocks
    ]
