"""``embodied study``: the measured figures behind the documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embodied.cli.output import FAILURE, note, print_json, print_table

app = typer.Typer(help="Measure the figures that the documentation shows.", no_args_is_help=True, rich_markup_mode=None)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.command("list")
def list_studies(
    tag: Annotated[str | None, typer.Option(help="Only the studies with this tag.")] = None, as_json: Json = False
) -> None:
    """List the studies with their tags."""
    from embodied.studies.registry import STUDIES

    entries = [e for e in STUDIES if tag is None or tag in e.tags]
    if as_json:
        print_json({"studies": [{"name": e.name, "tags": sorted(e.tags), "summary": e.summary} for e in entries]})
        return
    print_table(
        "Studies",
        ("name", "tags", "what it measures"),
        [(e.name, " ".join(sorted(e.tags)), e.summary) for e in entries],
    )


@app.command("run")
def run(
    names: Annotated[list[str] | None, typer.Argument(help="Studies to run.", show_default=False)] = None,
    tag: Annotated[str | None, typer.Option(help="Run all studies with this tag.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer samples, the same targets.")] = False,
    docs: Annotated[
        Path | None, typer.Option(help="Folder for NAME.md and NAME.json; docs/figures of a checkout by default.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run studies; exit 0 only if every figure holds."""
    from embodied.studies.run import count, figures_folder, rows, run_study, select, write

    folder = docs or figures_folder()
    results = []
    for name in select(names or [], tag):
        note(f"{name} …")
        result = run_study(name, quick=quick)
        results.append(result)
        page = write(result, folder)
        if not as_json:
            header = ("figure", "value", "interval", "target", "n", "holds")
            print_table(f"\n{name}  ({page})", header, rows(result))
    held, total = count(results)
    if as_json:
        studies = [r.as_dict() for r in results]
        print_json({"studies": studies, "held": held, "figures": total, "holds": held == total})
        note(f"{held} of {total} hold")
    else:
        print(f"\n{held} of {total} hold")
    if held != total:
        raise typer.Exit(FAILURE)
