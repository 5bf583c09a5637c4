"""inspect: look at a target from in front of it, and prove that the camera sees it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import acos, degrees, pi, radians, tan

import numpy as np
from numpy.typing import NDArray

from embodied.graph.facts import Fact, Graph, fact
from embodied.robots.quadrotor.spec import FRONT_CAMERA_ASPECT, FRONT_CAMERA_FOVY_DEG, FRONT_CAMERA_POS_BODY_M
from embodied.skills.contract import (
    SUCCESS,
    Outcome,
    Parameter,
    SceneView,
    Skill,
    SkillCall,
    SkillContext,
    SkillRun,
    Unmet,
    failed,
)
from embodied.skills.drones.airspace import Airspace
from embodied.skills.drones.basic import KINDS, yaw_of
from embodied.skills.drones.flight import (
    SPEED_MPS,
    Follower,
    Reference,
    at_facts,
    hold_after_cancel,
    needs_flying,
    plan_path,
    settled,
)
from embodied_controllers.contract import RobotState
from embodied_controllers.quadrotor.dynamics import rotation

Array = NDArray[np.float64]
STAND_OFFS_M = (0.9, 0.75, 1.1, 1.3)
RANGE_M = (0.4, 1.6)
ANGLE_MAX_RAD = radians(35)
HOLD_S = 0.6
LOOK_PERIOD_S = 0.04
_SETTLE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """What a camera pose means for a target: empty ``code`` if it is seen well.

    Attributes:
      code: ``out_of_range``, ``too_oblique``, ``not_in_view`` or ``occluded``.
      range_m: distance from the camera to the middle of the target.
      angle_rad: between the target's normal and the line to the camera.
      blocked_by: what cuts the line of sight.
    """

    code: str
    range_m: float
    angle_rad: float
    blocked_by: str = ""


def sight(view: SceneView, agent: str, target: str, camera_m: Array, rot_world_body: Array) -> Sighting:
    """Judge whether a forward-looking camera sees the whole front of a target.

    Args:
      view: the scene.
      agent: whose camera it is.
      target: an entity whose x axis is the normal of its front.
      camera_m: (3,) position of the camera.
      rot_world_body: (3, 3) rotation of the body; the camera looks along body x, up is body z.
    """
    corners, middle, normal = front(view, target)
    gap = camera_m - middle
    range_m = float(np.linalg.norm(gap))
    angle = acos(max(-1.0, min(1.0, float(normal @ gap) / max(range_m, 1e-9))))
    if not RANGE_M[0] <= range_m <= RANGE_M[1]:
        return Sighting(code="out_of_range", range_m=range_m, angle_rad=angle)
    if angle > ANGLE_MAX_RAD:
        return Sighting(code="too_oblique", range_m=range_m, angle_rad=angle)
    seen = (corners - camera_m) @ rot_world_body  # columns: forward, left, up
    depth = seen[:, 0]
    up = tan(radians(FRONT_CAMERA_FOVY_DEG) / 2)
    in_view = (
        (depth > 0.05) & (np.abs(seen[:, 2]) <= up * depth) & (np.abs(seen[:, 1]) <= up * FRONT_CAMERA_ASPECT * depth)
    )
    if not in_view.all():
        return Sighting(code="not_in_view", range_m=range_m, angle_rad=angle)
    space = Airspace.from_view(view, agent)
    for point in (middle, *(middle + 0.9 * (corners - middle))):
        # stop short of the plate: what carries it begins right behind
        by = space.blocker(camera_m, point + 0.01 * normal, ignore=(target,))
        if by is not None:
            return Sighting(code="occluded", range_m=range_m, angle_rad=angle, blocked_by=by)
    return Sighting(code="", range_m=range_m, angle_rad=angle)


def front(view: SceneView, target: str) -> tuple[Array, Array, Array]:
    """Return (4, 3) corners, (3,) middle and (3,) outward normal of a target's front, world frame.

    Raises:
      KeyError: the target is no entity or its pose is not known.
    """
    entity, pose = view.info.entities[target], view.pose(target)
    if pose is None:
        raise KeyError(target)
    rot = rotation(pose.quat_wxyz[None])[0]
    hx, hy, hz = entity.half_size_m.tolist()
    local = entity.box_center_m + np.array([[hx, s * hy, t * hz] for s in (-1, 1) for t in (-1, 1)])
    corners = pose.pos_world_m + local @ rot.T
    return corners, corners.mean(axis=0), rot[:, 0]


class Inspect(Skill):
    """Fly in front of a target, face it, hold, and state that it was inspected once the camera really sees it."""

    name = "inspect"
    summary = "Fly in front of an inspection target, look at it and record it as inspected."
    parameters = (Parameter(name="target", kind="entity", summary="a panel that can be inspected"),)
    robot_kinds = KINDS
    failure_codes = (
        "unknown_pose", "no_viewpoint", "blocked", "crashed", "not_settled",
        "out_of_range", "too_oblique", "not_in_view", "occluded",
    )  # fmt: skip
    timeout_s = 75.0

    def groundings(self, graph: Graph, agent: str) -> Iterable[SkillCall]:
        """Yield every target."""
        for name in sorted(graph.nodes):
            if "inspectable" in graph.nodes[name].properties:
                yield SkillCall.of(self.name, target=name)

    def unmet(self, graph: Graph, agent: str, call: SkillCall) -> tuple[Unmet, ...]:
        """It must fly, and the target must be one that can be inspected."""
        target = str(call.arg("target"))
        found = list(needs_flying(graph, agent, flying=True))
        node = graph.nodes.get(target)
        if node is None or "inspectable" not in node.properties:
            found.append(Unmet(message=f"{target} is nothing to inspect."))
        return tuple(found)

    def effects(self, graph: Graph, agent: str, call: SkillCall) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """It is inspected; the drone is at none of the named places any more."""
        return frozenset([fact("inspected", str(call.arg("target")))]), at_facts(graph, agent)

    def cost_s(self, graph: Graph, agent: str, call: SkillCall) -> float:
        """A few metres at cruise speed and the hold."""
        return 4.0 + 5.0 / SPEED_MPS

    def start(self, ctx: SkillContext, call: SkillCall) -> SkillRun:
        """Choose a viewpoint, plan the way and begin."""
        return _InspectRun(ctx, str(call.arg("target")))


class _InspectRun:
    def __init__(self, ctx: SkillContext, target: str) -> None:
        self._target = target
        self._refusal: Outcome | None = None
        self._seen_since_s: float | None = None
        self._look_at_s = 0.0
        state = ctx.robot.read()
        try:
            chosen = self._viewpoint(ctx, state)
        except KeyError:
            self._refusal = failed("unknown_pose", f"inspect: nobody knows where {target} is.", target=target)
            return
        if chosen is None:
            message = f"inspect: no free viewpoint in front of {target} can be reached."
            self._refusal = failed("no_viewpoint", message, target=target)
            return
        self._goal, self._yaw, path = chosen
        self._follower = Follower(ctx)
        self._follower.begin(ctx, Reference(path, yaw_of(state), self._yaw))
        ctx.set_state(ctx.agent, "at", "")

    def tick(self, ctx: SkillContext) -> Outcome | None:
        """Fly there, face the target, and hold while it is seen."""
        if self._refusal is not None:
            ctx.robot.stop()
            return self._refusal
        state, left_s, problem = self._follower.tick(ctx)
        if problem is not None:
            return problem
        if left_s > 0 or ctx.time_s < self._look_at_s:
            return None
        self._look_at_s = ctx.time_s + LOOK_PERIOD_S - 1e-9
        if settled(state, self._goal, self._yaw):
            found = look(ctx.view, ctx.agent, self._target, state)
            if found.code:
                if left_s < -_SETTLE_S:
                    return _unseen(self._target, found)
                self._seen_since_s = None
            elif self._seen_since_s is None:
                self._seen_since_s = ctx.time_s
            elif ctx.time_s - self._seen_since_s >= HOLD_S - 1e-9:
                ctx.set_state(self._target, "inspected", True)
                ctx.log("inspected", {"target": self._target, "range_m": found.range_m, "angle_rad": found.angle_rad})
                return SUCCESS
        else:
            self._seen_since_s = None
        if left_s < -_SETTLE_S - 5.0:
            distance = float(np.linalg.norm(state.base_pos_world_m - self._goal))
            message = f"inspect: could not hold still before {self._target}."
            return failed("not_settled", message, distance_m=distance, target=self._target)
        return None

    def cancel(self, ctx: SkillContext) -> None:
        """Hold the position."""
        hold_after_cancel(ctx)

    def _viewpoint(self, ctx: SkillContext, state: RobotState):  # noqa: ANN202 -- (point, heading, path) or None
        _, middle, normal = front(ctx.view, self._target)
        space = Airspace.from_view(ctx.view, ctx.agent)
        flat = np.array([normal[0], normal[1], 0.0])
        if np.linalg.norm(flat) < 0.5:
            return None  # the front camera cannot look straight up or down
        flat /= np.linalg.norm(flat)
        side = np.array([-flat[1], flat[0], 0.0])
        for turn in (0.0, 0.3, -0.3, 0.5, -0.5):
            out = np.cos(turn) * flat + np.sin(turn) * side
            yaw = float(np.arctan2(-out[1], -out[0]))
            rot = rotation(np.array([[np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)]]))[0]
            for distance in STAND_OFFS_M:
                point = middle + distance * out
                camera = point + rot @ np.array(FRONT_CAMERA_POS_BODY_M)
                if space.blocked(point[None])[0] or sight(ctx.view, ctx.agent, self._target, camera, rot).code:
                    continue
                path = plan_path(ctx, state.base_pos_world_m, point)
                if path is not None:
                    return point, yaw, path
        return None


def look(view: SceneView, agent: str, target: str, state: RobotState) -> Sighting:
    """Judge what the front camera of a drone in ``state`` sees of a target."""
    rot = rotation(state.base_quat_wxyz[None])[0]
    camera = state.base_pos_world_m + rot @ np.array(FRONT_CAMERA_POS_BODY_M)
    return sight(view, agent, target, camera, rot)


def _unseen(target: str, found: Sighting) -> Outcome:
    words = {
        "out_of_range": f"it is {found.range_m:.2f} m away, not within {RANGE_M[0]} to {RANGE_M[1]} m",
        "too_oblique": f"it is seen at {degrees(found.angle_rad):.0f}°, more than {degrees(ANGLE_MAX_RAD):.0f}°",
        "not_in_view": "part of it lies outside the image",
        "occluded": f"{found.blocked_by} is in the way",
    }
    facts: dict[str, str | float] = {
        "target": target, "range_m": found.range_m, "angle_rad": found.angle_rad % (2 * pi),
    }  # fmt: skip
    if found.blocked_by:
        facts["blocked_by"] = found.blocked_by
    return failed(found.code, f"inspect: {target} is not seen well: {words[found.code]}.", **facts)


INSPECT = Inspect()
