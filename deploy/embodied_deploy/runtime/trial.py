"""Has a package on trial earned its place? Judged by its health over its first seconds."""

from __future__ import annotations

from typing import Literal

from embodied_deploy.runtime.health import Health

Verdict = Literal["open", "passed", "failed"]
DEGRADED_RATIO = 0.05
"""Largest share of periods without the policy's action that a trial endures."""
_OUTSIDE = ("link", "stamp", "stale", "clock_jump", "outage", "operator")


class Trial:
    """Watches one run.

    Args:
      ticks: periods that the trial lasts.
    """

    def __init__(self, ticks: int) -> None:
        self._ticks = ticks
        self.reason = ""

    def judge(self, health: Health) -> Verdict:
        """Return ``failed`` as soon as it can no longer pass, ``passed`` when it has lasted.

        A robot that cannot be reached or does not deliver samples says nothing about the package: those periods do not
        count for either.
        """
        spoilt = sum(n for reason, n in health.reasons.items() if reason not in _OUTSIDE)
        allowed = int(DEGRADED_RATIO * self._ticks)
        if spoilt > allowed:
            self.reason = f"{spoilt} spoilt periods, {allowed} are endured: {dict(health.reasons)}"
            return "failed"
        return "passed" if health.modes["policy"] >= self._ticks - allowed else "open"
