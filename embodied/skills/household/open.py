"""Open a door or drawer: pull it by its handle as far as it goes, or pull it a little and push on from the inside."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from embodied.skills.contract import SkillCall, SkillContext, SkillRun
from embodied.skills.household.door_run import ATTEMPTS, OPEN_ENOUGH, DoorRun, DoorSkill
from embodied.skills.household.doors import Articulation, ContactPath, grasp_path, keep_boxes, push_path
from embodied.skills.household.motion import Script, SkillFailureError, fail
from embodied.skills.household.obstacles import Boxes, scene_boxes

Array = NDArray[np.float64]

_ENDS_RAD = (1.65, 1.75, 1.58)  # where a hinged door is left, best first: past a right angle it is out of the way
_PART_RAD = (0.9, 0.7, 0.55)
_INSIDE_RAD = 0.45  # from here on the hand fits behind the door
_DRAWER = 0.96  # fraction


class OpenSkill(DoorSkill):
    """Open the door or drawer of a piece of furniture."""

    name = "open"
    summary = "open a door or drawer"
    failure_codes = (
        "not_found",
        "not_openable",
        "already_open",
        "unreachable",
        "blocked",
        "slipped",
        "stuck",
        "timeout",
    )
    opens = True

    def start(self, ctx: SkillContext, call: SkillCall) -> SkillRun:
        """Begin."""
        return OpenRun(ctx, str(call.arg("target")))


class OpenRun(DoorRun):
    """One opening in progress."""

    def script(self) -> Script:
        """Pull or push until the door is open, again if something slips."""
        self.articulation()
        if self.opening >= OPEN_ENOUGH:
            raise fail("already_open", f"{self.target} is already open.", opening=self.opening)
        yield from self.tuck()
        problem: SkillFailureError | None = None
        bad: list[Array] = []
        failures = 0
        for _ in range(2 * ATTEMPTS):
            if self.opening >= OPEN_ENOUGH or failures >= ATTEMPTS:
                break
            door = self.articulation()
            limit = self._free_until(door)
            try:
                before = self.opening
                yield from self.attempt(door, self._options(door, limit), bad)
                if self.opening < OPEN_ENOUGH and self.opening < before + 0.1:
                    raise fail("stuck", f"{self.target} did not move.", opening=self.opening)
            except SkillFailureError as error:
                failures += 1
                problem = error
                if (error.outcome.code == "unreachable" and not bad) or "blocked_by" in error.outcome.facts:
                    break
                self.ctx.log("retry", {"skill": "open", "target": self.target, "code": error.outcome.code})
                yield from self.recover()
        if self.opening < OPEN_ENOUGH:
            opening = self.opening
            raise problem or fail("stuck", f"{self.target} opened to {opening:.0%} only.", opening=opening)

    def _options(self, door: Articulation, limit: float) -> list[list[ContactPath]]:
        """Return groups of paths, best group first."""
        now = door.now
        if not door.is_hinge:
            return [_grasps(door, now, min(_DRAWER * door.upper, limit))]
        ends = [e for e in _ENDS_RAD if now < e <= min(limit, door.upper - 0.02)]
        if not ends:
            ends = [min(0.97 * door.upper, limit)]
        pushes = [_pushes(door, now, end) for end in ends] if now > _INSIDE_RAD else []
        pulls = [_grasps(door, now, end) for end in ends]
        parts = [_grasps(door, now, part) for part in _PART_RAD if part > now + 0.2]
        return [*pushes, *pulls, *parts] if pushes else [*pulls, *parts]

    def _free_until(self, door: Articulation) -> float:
        """Return the opening up to which nothing stands in the door's way.

        Raises:
          SkillFailureError: something blocks it before it is open enough.
        """
        graph = self.ctx.view.graph
        carried = {f.args[0] for word in ("inside", "ontop") for f in graph.find(word, None, self.target)}
        boxes = scene_boxes(self.ctx.view).without([self.target, *carried])
        boxes = boxes.near(door.bar(door.now)[0], 1.6)
        # What is that near from the start (a neighbour, the drawer below) slides along and does not block.
        boxes = keep_boxes(boxes, ~_near(boxes, door.boxes(door.now), 0.02))
        for opening in np.linspace(door.now, door.upper, 25):
            near = _near(boxes, door.boxes(float(opening)), 0.001)
            if near.any():
                owner = boxes.owners[int(np.argmax(near))]
                if opening < OPEN_ENOUGH * door.upper + 0.03 * door.upper:
                    what = owner or "a wall"
                    fraction = float(opening) / door.upper
                    raise fail(
                        "blocked", f"{what} stands in the way of {self.target}.", blocked_by=what, opening=fraction
                    )
                return float(opening) - 0.06 * door.upper
        return door.upper


def _near(boxes: Boxes, moving: Boxes, distance_m: float) -> NDArray[np.bool_]:
    """Return (m,) which boxes a point of the moving part comes near to."""
    if not boxes.owners:
        return np.zeros(0, dtype=bool)
    grid = np.array([[x, y, z] for x in (-1, -0.5, 0, 0.5, 1) for y in (-1, 0, 1) for z in (-1, -0.5, 0, 0.5, 1)])
    points = moving.center_world_m[:, None] + np.einsum(
        "mij,mkj->mki", moving.rot_world, grid[None] * moving.half_size_m[:, None]
    )
    near = boxes.clearance_m(points.reshape(-1, 3)) < distance_m
    return np.any(near, axis=0)


def _grasps(door: Articulation, begin: float, end: float) -> list[ContactPath]:
    return [
        grasp_path(door, begin, end, pitch_rad=pitch, flip=flip, penalty_s=2.0 * abs(pitch))
        for pitch in (0.0, 0.35, -0.35)
        for flip in (False, True)
    ]


def _pushes(door: Articulation, begin: float, end: float) -> list[ContactPath]:
    return [
        push_path(
            door, begin, end, angle_rad=angles, from_edge_m=0.06, along_m=along, flip=flip, penalty_s=5.0 * abs(along)
        )
        for angles in ((0.5, 0.5), (0.4, 1.0), (1.0, 0.5), (1.0, 1.0), (0.3, 1.4), (1.4, 0.4))
        for along in (0.0, 0.12, -0.12)
        for flip in (False, True)
    ]


OPEN = OpenSkill()
