"""Checkpoint to packages and report: what ``embodied export`` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from embodied.errors import require
from embodied.export.calibration import CALIBRATION_SAMPLES, load_calibration, record_calibration
from embodied.export.gate import GateError
from embodied.export.options import ExportOptions
from embodied.export.package import Exported, PolicyExporter, check_precisions
from embodied.export.report import Row, make_rows, write_report
from embodied.train.registry import RECIPES
from embodied.train.run import load_checkpoint
from embodied_deploy.package.load import Signer


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportResult:
    """What an export left behind.

    Attributes:
      packages: written ones.
      rows: of the report, refused precisions included.
      report: Markdown file; JSON lies beside it.
    """

    packages: tuple[Exported, ...]
    rows: tuple[Row, ...]
    report: Path


def export_checkpoint(
    checkpoint: Path,
    out: Path,
    *,
    precisions: Sequence[str] = ("fp32",),
    calibration: Path | None = None,
    samples: int = CALIBRATION_SAMPLES,
    exclude: Sequence[str] = (),
    signer: Signer | None = None,
    seeds: Sequence[int] = (),
    workers: int = 1,
    is_forced: bool = False,
) -> ExportResult:
    """Export a checkpoint at several precisions and report on them.

    A precision that the hold-out gate refuses is left out, with its figures in the report; the others go on.

    Args:
      checkpoint: of a training run.
      out: folder.
      precisions: of :data:`embodied_deploy.package.contract.PRECISIONS`.
      calibration: ``.npz`` to use; without it the recipe's own policy drives and its inputs are kept in ``out``.
      samples: inputs to record.
      exclude: layers to leave in fp32, beside those of the recipe.
      signer: signs the packages.
      seeds: of the episodes that score the packages; none asks for no score.
      workers: processes for the episodes.
      is_forced: keep what the gate refuses.

    Raises:
      TrainError: the checkpoint cannot be read.
      ExportError: see :func:`embodied.export.package.export_policy`, hold-out gate aside.
    """
    # All before the rollouts, which take minutes.
    check_precisions(precisions)
    require("onnxruntime", "export")
    document = load_checkpoint(checkpoint)
    out.mkdir(parents=True, exist_ok=True)
    recipe = RECIPES.get(_entry(document["recipe"], document["recipe_version"]))
    policy = recipe.policy(document)
    options: ExportOptions = getattr(recipe, "export_options", ExportOptions())
    options = replace(options, exclude=(*options.exclude, *exclude))
    contract = policy.contract
    if calibration is None:
        inputs = record_calibration(recipe, policy, out / f"{contract.name}-calibration.npz", count=samples)
    else:
        inputs = load_calibration(calibration, contract)
    exporter = PolicyExporter(policy, inputs, out, options=options, signer=signer)
    written: list[Exported] = []
    refused: list[GateError] = []
    for precision in dict.fromkeys(precisions):
        try:
            written.append(exporter.write(precision, is_forced=is_forced))
        except GateError as error:
            refused.append(error)
    rows = make_rows(written, refused, inputs, recipe=recipe, seeds=seeds, workers=workers)
    report = write_report(out, contract.name, rows, inputs)
    return ExportResult(packages=tuple(written), rows=tuple(rows), report=report)


def _entry(recipe: str, version: str) -> str:
    """Return the name under which the recipe of a checkpoint is registered, its own version where that still is."""
    versioned = f"{recipe.partition('@')[0]}@{version}"
    return versioned if versioned in RECIPES else recipe
