"""What the commands print: results on stdout, everything else on stderr."""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Iterable, Sequence

from embodied.errors import EmbodiedError, UnknownNameError
from embodied_deploy.errors import DeployError

OK, FAILURE, USAGE = 0, 1, 2
_SURROUNDINGS = (
    errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT,
    errno.ENAMETOOLONG,
)  # fmt: skip
"""What the user's paths and disks do, and no bug does."""


def print_json(data: object) -> None:
    """Print one JSON object on stdout."""
    print(json.dumps(data, indent=1, ensure_ascii=False))


def note(text: str) -> None:
    """Print a line for the user on stderr."""
    print(text, file=sys.stderr)


def fail(error: Exception, *, as_json: bool) -> int:
    """Report an error in one message and return the exit code that goes with it.

    Args:
      error: what happened; errors that are not ours are named as such.
      as_json: print an object on stdout as well, so that a reader of ``--json`` always finds one.
    """
    is_ours = isinstance(error, (EmbodiedError, DeployError))
    text = str(error) if is_ours else f"unexpected {type(error).__name__}: {error}"
    if isinstance(error, OSError) and error.errno in _SURROUNDINGS:
        where = f" {error.filename}" if error.filename else ""
        is_ours, text = True, f"cannot write or read{where}: {error.strerror}. Check path, rights and free space."
    if as_json:
        print_json({"error": {"type": type(error).__name__, "message": text}})
    note(f"error: {text}" if is_ours else f"error: {text}\nThis is a bug; --debug shows where.")
    return USAGE if isinstance(error, UnknownNameError) else FAILURE


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; with colours and rules on a terminal, plain columns in a pipe."""
    lines = [list(row) for row in rows]
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table

        table = Table(title=title, title_justify="left")
        for name in header:
            table.add_column(name, overflow="fold")
        for line in lines:
            table.add_row(*[cell.replace("[", "\\[") for cell in line])
        Console().print(table)
        return
    widths = [max(len(r[i]) for r in [list(header), *lines]) for i in range(len(header))]
    print(title)
    for line in [list(header), *lines]:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
