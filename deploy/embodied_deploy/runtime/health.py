"""What a runtime says about itself: one word, the reasons with their counts, and the times it took."""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

from embodied_deploy.runtime.histogram import Histogram

State = Literal["ok", "degraded", "stopped"]
REASONS = (
    "link",  # the robot cannot be read or commanded
    "stamp",  # its time stamp is no number
    "stale",  # its newest sample is older than the contract allows
    "clock_jump",  # its clock jumped
    "observation",  # something of the sample is missing, of another shape, or NaN
    "output",  # the policy answered NaN
    "late",  # no answer within the latency budget, and no chunk to go on with
    "chunk",  # no answer in time, and the chunk before is used up or too old
    "fallback",  # the fallback failed too
    "outage",  # degraded for longer than the limit: stopped
    "operator",  # stopped by command
)


class Timing:
    """Durations of one stretch of time.

    Attributes:
      compute: of the policy, from question to answer.
      wake: how late the loop woke up.
      response: from the start of the period to the command on its way.
      ticks: periods run.
      skipped: periods slept through.
      misses: answers not there within the latency budget.
    """

    def __init__(self) -> None:
        self.compute, self.wake, self.response = Histogram(), Histogram(), Histogram()
        self.ticks = self.skipped = self.misses = 0

    def merge(self, other: Timing) -> None:
        """Add another stretch."""
        for name in ("compute", "wake", "response"):
            getattr(self, name).merge(getattr(other, name))
        self.ticks += other.ticks
        self.skipped += other.skipped
        self.misses += other.misses

    def as_dict(self) -> dict[str, Any]:
        """Return counts and p50/p99/max in microseconds."""
        times = {f"{n}_us": getattr(self, n).summary_us() for n in ("compute", "wake", "response")}
        return {"ticks": self.ticks, "skipped": self.skipped, "misses": self.misses, **times}


class Health:
    """State and counts since the start.

    Attributes:
      state: ``ok``, ``degraded``, or ``stopped``, which lasts until the next start.
      reason: why it is not ok, one of :data:`REASONS`, empty while it is.
      reasons: periods spoilt by each reason.
      modes: periods in which the robot got ``policy``, ``hold``, ``safe``, ``fallback`` or ``stop``.
    """

    def __init__(self) -> None:
        self.state: State = "ok"
        self.reason = ""
        self.reasons: Counter[str] = Counter()
        self.modes: Counter[str] = Counter()

    @property
    def degraded_ratio(self) -> float:
        """Share of periods in which the robot did not get the policy's action."""
        ticks = sum(self.modes.values())
        return 1.0 - self.modes["policy"] / ticks if ticks else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return everything, for the log."""
        return {
            "state": self.state,
            "reason": self.reason,
            "reasons": dict(self.reasons),
            "modes": dict(self.modes),
        }
