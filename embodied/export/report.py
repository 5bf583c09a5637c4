"""The parity report: what each precision costs in error, size, time and task score, as JSON and as a table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embodied.export.calibration import CalibrationSet
from embodied.export.errors import ExportError
from embodied.export.gate import GateError, OutputError
from embodied.export.latency import Latency, measure_latency
from embodied.export.package import Exported
from embodied.export.scores import PairedScore, compare_scores
from embodied.train.contract import Recipe
from embodied.train.run import versions
from embodied_deploy.package.load import load_package

SCORE_LOSS = 0.02
_AS_FAST = 1.1
"""Smaller differences of latency are noise on a shared machine."""

HEADER = ("precision", "graph", "mean error", "largest error", "p50", "over fp32", "score", "difference")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One precision.

    Attributes:
      precision: which.
      errors: on the hold-out, one per output.
      refusal: why there is no package; empty when there is one.
      path: the package.
      graph_bytes: size of the ONNX file.
      package_bytes: size of the package.
      parity_atol: its tolerance.
      latency: None for a refused one.
      score: task score; None when it was not asked.
    """

    precision: str
    errors: tuple[OutputError, ...]
    refusal: str = ""
    path: Path | None = None
    graph_bytes: int = 0
    package_bytes: int = 0
    parity_atol: float = 0.0
    latency: Latency | None = None
    score: PairedScore | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "precision": self.precision,
            "refusal": self.refusal,
            "package": self.path.name if self.path else "",
            "graph_bytes": self.graph_bytes,
            "package_bytes": self.package_bytes,
            "parity_atol": self.parity_atol,
            "errors": [e.as_dict() for e in self.errors],
            "latency": self.latency.as_dict() if self.latency else None,
            "score": self.score.as_dict() if self.score else None,
        }


def make_rows(
    exported: Sequence[Exported],
    refused: Sequence[GateError],
    calibration: CalibrationSet,
    *,
    recipe: Recipe | None = None,
    seeds: Sequence[int] = (),
    workers: int = 1,
) -> list[Row]:
    """Measure latency and scores of packages.

    Args:
      exported: packages; fp32 must be among them when scores are asked, and is what the others are compared with.
      refused: precisions that the gate refused.
      calibration: real inputs.
      recipe: runs the task.
      seeds: of the episodes; none asks for no score.
      workers: processes for the episodes.

    Raises:
      ExportError: scores without an fp32 package (reason ``contract``).
    """
    ordered = sorted(exported, key=lambda e: e.contract.precision != "fp32")
    packages = [load_package(e.path) for e in ordered]
    latencies = measure_latency(packages, calibration.holdout) if packages else []
    scores: list[PairedScore | None] = [None] * len(ordered)
    if recipe is not None and seeds:
        if not ordered or ordered[0].contract.precision != "fp32":
            raise ExportError("contract", "scores are compared with fp32: add --precision fp32.")
        found = [recipe.evaluate(e.path, seeds, workers) for e in ordered]
        scores = [compare_scores(f, found[0]) for f in found]
    rows = [
        Row(
            precision=e.contract.precision,
            errors=e.errors,
            path=e.path,
            graph_bytes=len(e.graph),
            package_bytes=e.path.stat().st_size,
            parity_atol=e.contract.parity_atol,
            latency=latency,
            score=score,
        )
        for e, latency, score in zip(ordered, latencies, scores, strict=True)
    ]
    return rows + [Row(precision=e.precision, errors=e.errors, refusal=str(e)) for e in refused]


def write_report(out: Path, name: str, rows: Sequence[Row], calibration: CalibrationSet) -> Path:
    """Write ``<name>-parity.json`` and ``<name>-parity.md``; return the path of the latter.

    Args:
      out: folder.
      name: of the policy.
      rows: one per precision.
      calibration: what errors were measured on.
    """
    document = {
        "policy": name,
        "calibration": {"sha256": calibration.sha256, "samples": calibration.samples},
        "versions": versions(),
        "int8": choose_int8(rows),
        "precisions": [row.as_dict() for row in rows],
    }
    (out / f"{name}-parity.json").write_text(json.dumps(document, indent=1) + "\n")
    lines = [f"# {name}: precisions side by side", ""]
    lines += ["| " + " | ".join(HEADER) + " |", "|" + " --- |" * len(HEADER)]
    lines += ["| " + " | ".join(cells) + " |" for cells in table_rows(rows)]
    held_out = len(next(iter(calibration.holdout.values())))
    lines += [
        "",
        f"Errors against fp32 on {held_out} held-out moments of {calibration.samples}; mean as a share of the",
    ]
    lines += ["output's standard deviation, largest as a share of its range. Time at batch 1, one thread, bound I/O."]
    chosen = choose_int8(rows)
    lines += (
        [f"\nOf the int8 forms, {chosen} is the one to ship: fastest, or as fast and more exact."] if chosen else []
    )
    lines += [f"\n{row.precision} was refused: {row.refusal}" for row in rows if row.refusal]
    page = out / f"{name}-parity.md"
    page.write_text("\n".join(lines) + "\n")
    return page


def choose_int8(rows: Sequence[Row]) -> str:
    """Return the int8 precision to ship: of those that keep the task score, the fastest; of equals, the most exact.

    Returns:
      A precision, empty when there is none: all were refused or lose more than :data:`SCORE_LOSS`.
    """
    left = [
        (row.latency.ratio, max((e.mean_of_std for e in row.errors if e.role != "state"), default=0.0), row.precision)
        for row in rows
        if row.precision.startswith("int8")
        and row.latency is not None
        and (row.score is None or row.score.difference >= -SCORE_LOSS)
    ]
    fastest = min((ratio for ratio, _, _ in left), default=0.0)
    near = [(error, ratio, precision) for ratio, error, precision in left if ratio <= fastest * _AS_FAST]
    return min(near)[2] if near else ""


def table_rows(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Return the cells of the table, one tuple per precision, under :data:`HEADER`."""
    return [_cells(row) for row in rows]


def _cells(row: Row) -> tuple[str, ...]:
    judged = [e for e in row.errors if e.role != "state"]
    agreement = [e.agreement for e in judged if e.agreement is not None]
    largest = [e.max_of_range for e in judged if e.max_of_range is not None]
    mean = f"{max((e.mean_of_std for e in judged), default=0.0):.2%}"
    worst = f"{max(largest):.2%}" if largest else f"{min(agreement):.1%} agree" if agreement else ""
    if row.latency is None:
        return (row.precision, "refused", mean, worst, "", "", "", "")
    t, s = row.latency, row.score
    return (
        row.precision,
        f"{row.graph_bytes / 1e3:.0f} kB",
        mean,
        worst,
        f"{t.p50_us:.1f} µs",
        f"{t.ratio:.2f} ({t.low:.2f} … {t.high:.2f})",
        f"{s.score:.3f} (n = {s.episodes})" if s else "",
        f"{s.difference:+.3f} ({s.low:+.3f} … {s.high:+.3f})" if s else "",
    )
