"""Numbers of the command line, each with the ends between which it means something."""

from __future__ import annotations

import argparse
from collections.abc import Callable


def number(low: float, high: float, unit: str) -> Callable[[str], float]:
    """Return a reader of finite numbers from above ``low`` up to ``high``, for an argument's ``type``."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not low < value <= high:
            raise argparse.ArgumentTypeError(f"{text!r}: expected a number above {low:g}, {high:g} {unit} at most")
        return value

    return read


def whole(low: int, high: int, what: str) -> Callable[[str], int]:
    """Return a reader of whole numbers from ``low`` to ``high``, for an argument's ``type``."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text!r}: expected {what}, {low} to {high}")
        return value

    return read


DURATION = number(0.0, 1e9, "s")
"""How long to run."""
THREADS = whole(1, 256, "a number of threads")
PROCESSOR = whole(0, 1_000_000, "the number of a processor")
PRIORITY = whole(2, 99, "a priority of SCHED_FIFO")
