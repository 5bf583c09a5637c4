"""How old is an observation? Stamps are of the robot's clock, which need not be the loop's."""

from __future__ import annotations

from math import isfinite
from typing import Literal

DRIFT_RATIO = 1e-3
"""Two quartz clocks differ by up to 1e-4; ten times that is followed, faster growth of the delay is seen as age."""
JUMP_S = 1.0
Verdict = Literal["", "stale", "clock_jump", "stamp"]


class StampWatch:
    """Judges the stamps of one robot.

    With a clock, the smallest difference between arrival and stamp that was seen stands for age zero; it may creep
    up by :data:`DRIFT_RATIO`, so that clocks of slightly different speed never make a sample look old. A stamp that
    jumps by more than :data:`JUMP_S` (the robot restarted, its clock was set) is bad once, then the new clock counts.

    In lockstep there is no clock: a stamp that does not move ages by one period each step.

    Args:
      max_age_s: an older sample is stale.
      dt_s: control period.
      lockstep: whether time is counted in steps.
    """

    def __init__(self, max_age_s: float, dt_s: float, *, lockstep: bool = False) -> None:
        self._max_age_s, self._dt_s, self._lockstep = max_age_s, dt_s, lockstep
        self._stamp_s = self._offset_s = self._seen_s = float("nan")
        self.age_s = float("inf")

    def forget(self) -> None:
        """Start over, as after a reconnection."""
        self.__init__(self._max_age_s, self._dt_s, lockstep=self._lockstep)

    def judge(self, stamp_s: float, now_s: float) -> Verdict:
        """Return what is wrong with a sample, empty when nothing is; :attr:`age_s` holds its age.

        Args:
          stamp_s: of the sample, on the robot's clock.
          now_s: of the loop; not used in lockstep.
        """
        if not isfinite(stamp_s):
            self.age_s = float("inf")
            return "stamp"
        verdict = self._steps(stamp_s) if self._lockstep else self._clocked(stamp_s, now_s)
        self._stamp_s = stamp_s
        return verdict or ("stale" if self.age_s > self._max_age_s else "")

    def _steps(self, stamp_s: float) -> Verdict:
        before_s = self._stamp_s
        # Written so that the first stamp, compared with NaN, counts as new.
        self.age_s = self.age_s + self._dt_s if stamp_s == before_s else 0.0
        return "clock_jump" if abs(stamp_s - before_s) > JUMP_S or stamp_s < before_s else ""

    def _clocked(self, stamp_s: float, now_s: float) -> Verdict:
        difference_s = now_s - stamp_s
        waited_s = now_s - self._seen_s
        self._seen_s = now_s
        ahead_s = (stamp_s - self._stamp_s) - waited_s
        backwards = stamp_s < self._stamp_s
        if not isfinite(self._offset_s) or ahead_s > JUMP_S or backwards:
            first = not isfinite(self._offset_s)
            self._offset_s = difference_s
            self.age_s = 0.0
            return "" if first else "clock_jump"
        self._offset_s = min(difference_s, self._offset_s + DRIFT_RATIO * waited_s)
        self.age_s = difference_s - self._offset_s
        return ""
