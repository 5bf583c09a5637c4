"""Which state of the source tree trained a policy."""

from __future__ import annotations

import subprocess
from pathlib import Path

UNKNOWN = "unknown"


def training_commit(tree: Path | None = None) -> str:
    """Return the commit of the source tree, with ``+changes`` when tracked files differ from it.

    Args:
      tree: folder of the tree; the one this package lies in by default.

    Returns:
      40 hexadecimal digits, or ``unknown`` outside a repository, such as for an installed wheel.
    """
    here = tree or Path(__file__).resolve().parents[2]
    if not (here / ".git").exists():
        return UNKNOWN
    commit = _git(here, "rev-parse", "HEAD")
    if commit is None:
        return UNKNOWN
    return commit + ("+changes" if _git(here, "status", "--porcelain", "--untracked-files=no") else "")


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
