"""``embodied export``: from a checkpoint to packages for a device."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embodied.cli.output import note, print_json, print_table


def export(
    checkpoint: Annotated[Path, typer.Argument(metavar="CHECKPOINT", help="checkpoint.pt of a training run.")],
    precision: Annotated[
        list[str], typer.Option(help="fp32, fp16, int8-dynamic, int8-static or w4a8; give it several times.")
    ] = ["fp32"],  # noqa: B006 -- typer copies it
    out: Annotated[Path, typer.Option(help="Folder for packages, calibration set and report.")] = Path("out/export"),
    calibration: Annotated[
        Path | None, typer.Option(help="Calibration set (.npz); recorded by rollouts by default.", show_default=False)
    ] = None,
    samples: Annotated[int, typer.Option(min=64, help="Inputs to record for calibration.")] = 1024,
    exclude: Annotated[
        list[str] | None,
        typer.Option(help="Layer to leave in fp32, such as body.0; several times.", show_default=False),
    ] = None,
    key: Annotated[Path | None, typer.Option(help="Private key (PEM) to sign with.", show_default=False)] = None,
    episodes: Annotated[int, typer.Option(min=0, help="Episodes to score each precision on, in pairs.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first of these episodes.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes for the episodes.")] = 1,
    force: Annotated[bool, typer.Option("--force", help="Keep a precision that is too far from fp32.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Export CHECKPOINT to one package per precision and report what each costs.

    A precision whose errors on held-out rollouts are above the limits is refused with its figures (exit code 1).
    """
    from embodied.export.checkpoint import export_checkpoint
    from embodied.export.report import HEADER, table_rows
    from embodied.export.sign import SigningKey

    result = export_checkpoint(
        checkpoint,
        out,
        precisions=precision,
        calibration=calibration,
        samples=samples,
        exclude=exclude or (),
        signer=SigningKey.read(key) if key else None,
        seeds=range(seed, seed + episodes),
        workers=workers,
        is_forced=force,
    )
    if as_json:
        print_json({"report": str(result.report), "precisions": [row.as_dict() for row in result.rows]})
    else:
        print_table(checkpoint.name, HEADER, table_rows(result.rows))
        for package in result.packages:
            print(package.path)
        print(result.report)
    refused = [row for row in result.rows if row.refusal]
    for row in refused:
        note(f"refused: {row.refusal}")
    if refused:
        raise typer.Exit(1)
