"""Where the command line writes."""

from __future__ import annotations

import sys


def say(text: str) -> None:
    """Write a line to stdout."""
    sys.stdout.write(f"{text}\n")


def complain(text: str) -> None:
    """Write one line to stderr, whatever breaks the text holds."""
    sys.stderr.write(f"embodied-edge: {' '.join(text.split())}\n")
