"""``embodied export-c``: a policy package as plain C."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embodied.cli.output import FAILURE, note, print_json


def export_c(
    package: Annotated[Path, typer.Argument(help="Policy package, fp32 or int8-static.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for the C files.")],
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="Compile with gcc and run the package's parity vectors.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Write a small policy as plain C99: no heap, no library but math.h; with firmware of a device under test."""
    from embodied.export.c_code import emit_c
    from embodied.export.c_code.build import HOST, check_source

    source = emit_c(package, out)
    files = [source.header, source.source, source.filter, source.bare, source.bench, source.device]
    missing = HOST.missing() if check else "not asked for"
    difference = None if missing else check_source(package, source)
    if as_json:
        print_json(
            {
                "files": [str(f) for f in files],
                "constant_bytes": source.constant_bytes,
                "memory_bytes": source.memory_bytes,
                "parity": None if difference is None else {"difference": difference[0], "tolerance": difference[1]},
            }
        )
    else:
        print("\n".join(str(f) for f in files))
        print(f"{source.constant_bytes} bytes of constants, {source.memory_bytes} bytes of memory")
    if difference is None:
        note(f"parity vectors not run: {missing}")
        return
    note(f"parity vectors through gcc: largest difference {difference[0]:.2g}, allowed {difference[1]:.2g}")
    if not difference[0] <= difference[1]:
        note("error: the C code does not compute what the package does. Please report it with the package.")
        raise typer.Exit(FAILURE)
