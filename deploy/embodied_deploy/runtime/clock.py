"""The clock of the loop, as a parameter: logic is tested on a clock that tests move."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Seconds that only grow, and a way to wait for one of them."""

    def now_s(self) -> float:
        """Return the present time."""
        ...

    def sleep_until(self, deadline_s: float) -> None:
        """Return at ``deadline_s`` or just after; at once when it has passed."""
        ...


class MonotonicClock:
    """``time.monotonic``, which no clock adjustment moves. Waiting to absolute times adds up no error."""

    def now_s(self) -> float:
        """Return seconds since some start."""
        return time.monotonic()

    def sleep_until(self, deadline_s: float) -> None:
        """Sleep; the kernel wakes a thread late, never early."""
        left_s = deadline_s - time.monotonic()
        if left_s > 0.0:
            time.sleep(left_s)


class ManualClock:
    """Moves only when told to: by :meth:`advance` and by sleeping.

    Args:
      start_s: first time.
    """

    def __init__(self, start_s: float = 0.0) -> None:
        self._now_s = start_s

    def now_s(self) -> float:
        """Return the time it was moved to."""
        return self._now_s

    def advance(self, duration_s: float) -> None:
        """Let time pass."""
        self._now_s += duration_s

    def sleep_until(self, deadline_s: float) -> None:
        """Jump to ``deadline_s``."""
        self._now_s = max(self._now_s, deadline_s)
