"""The command ``embodied``. Importing this module loads typer and nothing heavier; commands import what they need."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from embodied import __version__
from embodied.cli import bench, dataset, export, export_c, show, study, train
from embodied.cli.output import fail

app = typer.Typer(
    name="embodied",
    help="Benchmark embodied agents in simulated houses, warehouses and drone yards.",
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: rich would cost half of the start-up budget
    pretty_exceptions_enable=False,
)
app.add_typer(bench.app, name="bench")
app.add_typer(study.app, name="study")
app.add_typer(train.app, name="policy")
app.add_typer(dataset.app, name="dataset")
app.command("train")(train.train)
app.command("export")(export.export)
app.command("list")(show.list_names)
app.command("replay")(show.replay)
app.command("view")(show.view)
app.command("doctor")(show.doctor)
app.command("export-c")(export_c.export_c)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"embodied-stack {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.", callback=_print_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")] = False,
) -> None:
    """Benchmark embodied agents in simulated houses, warehouses and drone yards."""


def main() -> None:
    """Run the command line: exit code 0 for success, 1 for failure, 2 for wrong usage."""
    arguments = sys.argv[1:]
    is_debug = "--debug" in arguments
    # Accepted at any place, because it is added to a command that has just failed.
    arguments = [a for a in arguments if a != "--debug"]
    try:
        app(args=arguments, prog_name="embodied")
    except BrokenPipeError:
        sys.stderr.close()  # the reader (head, less) has left; nothing more can be said to it
        sys.exit(1)
    except Exception as error:
        if is_debug:
            raise
        sys.exit(fail(error, as_json="--json" in arguments))
