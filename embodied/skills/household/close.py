"""Close a door by pushing it shut from the outside, a drawer by its handle."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from embodied.skills.contract import SkillCall, SkillContext, SkillRun
from embodied.skills.household.door_run import ATTEMPTS, CLOSED_ENOUGH, DoorRun, DoorSkill
from embodied.skills.household.doors import Articulation, ContactPath, grasp_path, push_path
from embodied.skills.household.motion import Script, SkillFailureError, fail

Array = NDArray[np.float64]

_PRESS_RAD, _PRESS_M = 0.012, 0.004  # beyond closed: takes up the gap between finger and panel


class CloseSkill(DoorSkill):
    """Close the door or drawer of a piece of furniture."""

    name = "close"
    summary = "close a door or drawer"
    failure_codes = (
        "not_found",
        "not_openable",
        "already_closed",
        "unreachable",
        "blocked",
        "slipped",
        "stuck",
        "timeout",
    )
    opens = False

    def start(self, ctx: SkillContext, call: SkillCall) -> SkillRun:
        """Begin."""
        return CloseRun(ctx, str(call.arg("target")))


class CloseRun(DoorRun):
    """One closing in progress."""

    def script(self) -> Script:
        """Push until the door is shut, again if something slips."""
        self.articulation()
        if self.opening <= CLOSED_ENOUGH:
            raise fail("already_closed", f"{self.target} is already closed.", opening=self.opening)
        yield from self.tuck()
        problem: SkillFailureError | None = None
        bad: list[Array] = []
        for _ in range(ATTEMPTS):
            door = self.articulation()
            try:
                yield from self.attempt(door, self._options(door), bad)
                if self.opening > CLOSED_ENOUGH:
                    raise fail("stuck", f"{self.target} stays open by {self.opening:.0%}.", opening=self.opening)
                return
            except SkillFailureError as error:
                problem = error
                if error.outcome.code == "unreachable" and not bad:
                    break
                self.ctx.log("retry", {"skill": "close", "target": self.target, "code": error.outcome.code})
                yield from self.recover()
                if self.opening <= CLOSED_ENOUGH:
                    return
        assert problem is not None
        raise problem

    def _options(self, door: Articulation) -> list[list[ContactPath]]:
        grasps = [
            grasp_path(
                door, door.now, -_PRESS_RAD if door.is_hinge else -_PRESS_M, pitch_rad=p, flip=f, penalty_s=2.0 * abs(p)
            )
            for p in (0.0, 0.35, -0.35)
            for f in (False, True)
        ]
        if not door.is_hinge:
            return [grasps]
        pushes = [
            push_path(
                door,
                door.now,
                -_PRESS_RAD,
                angle_rad=angles,
                from_edge_m=edge,
                along_m=along,
                flip=flip,
                penalty_s=10.0 * abs(edge - 0.06),
            )
            for angles in ((0.5, 0.5), (0.4, 1.0), (1.0, 0.5), (1.0, 1.0), (0.3, 1.4), (1.4, 0.4), (1.4, 1.4))
            for edge in (0.06, 0.14)
            for along in (0.16, -0.16, 0.0)
            for flip in (False, True)
        ]
        return [pushes, grasps]


CLOSE = CloseSkill()
