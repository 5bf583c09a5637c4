"""Close a door by pushing it shut from the outside, a drawer by its handle."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from embodied.skills.contract import SkillCall, SkillContext, SkillRun
from embodied.skills.household.door_run import ATTEMPTS, CLOSED_ENOUGH, DoorRun, DoorSkill
from embodied.skills.household.doors import Articulation, ContactPath, edge_path, grasp_path, push_path
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
        failures = 0
        for _ in range(2 * ATTEMPTS):
            if self.opening <= CLOSED_ENOUGH or failures >= ATTEMPTS:
                break
            door = self.articulation()
            before = self.opening
            try:
                yield from self.attempt(door, self._options(door), bad)
                if CLOSED_ENOUGH < self.opening > before - 0.1:
                    raise fail("stuck", f"{self.target} did not move.", opening=self.opening)
            except SkillFailureError as error:
                failures += 1
                problem = error
                if (error.outcome.code == "unreachable" and not bad) or "blocked_by" in error.outcome.facts:
                    break
                self.ctx.log("retry", {"skill": "close", "target": self.target, "code": error.outcome.code})
                yield from self.recover()
        if self.opening > CLOSED_ENOUGH:
            opening = self.opening
            raise problem or fail("stuck", f"{self.target} stays open by {opening:.0%}.", opening=opening)

    def _options(self, door: Articulation) -> list[list[ContactPath]]:
        """Return groups of paths, best group first: all the way, then a part of it from another side."""
        now = door.now
        if not door.is_hinge:
            return [_grasps(door, now, -_PRESS_M)]
        groups = [_pushes(door, now, -_PRESS_RAD), _grasps(door, now, -_PRESS_RAD)]
        groups += [_edges(door, now, end) for end in (0.45, 0.8, 1.1) if now > end + 0.2]
        groups += [_pushes(door, now, part * now) for part in (0.5, 0.8) if now > 0.6]
        return groups


def _edges(door: Articulation, begin: float, end: float) -> list[ContactPath]:
    return [
        edge_path(door, begin, end, along_m=along, flip=flip, penalty_s=0.0)
        for along in (0.14, -0.14, 0.2, -0.2)
        for flip in (False, True)
    ]


def _grasps(door: Articulation, begin: float, end: float) -> list[ContactPath]:
    return [
        grasp_path(door, begin, end, pitch_rad=pitch, flip=flip, penalty_s=2.0 * abs(pitch))
        for pitch in (0.0, 0.35, -0.35)
        for flip in (False, True)
    ]


def _pushes(door: Articulation, begin: float, end: float) -> list[ContactPath]:
    angles = ((0.5, 0.5), (0.4, 1.0), (1.0, 0.5), (1.0, 1.0), (0.3, 1.4), (1.4, 0.4), (1.4, 1.4), (1.8, 1.4))
    return [
        push_path(
            door,
            begin,
            end,
            angle_rad=angle,
            from_edge_m=edge,
            along_m=along,
            flip=flip,
            penalty_s=10.0 * abs(edge - 0.06),
        )
        for angle in angles
        for edge in (0.06, 0.14)
        for along in (0.16, -0.16, 0.0)
        for flip in (False, True)
    ]


CLOSE = CloseSkill()
