"""Turn base and head towards something and say what is seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, cast

import numpy as np

from embodied.graph.facts import Fact, Graph
from embodied.skills.contract import (
    Outcome,
    Parameter,
    Skill,
    SkillCall,
    SkillContext,
    SkillRun,
    Status,
    Unmet,
    failed,
)
from embodied.skills.household.navigation import LIMITS
from embodied_controllers.base.path_following import wrap_angle
from embodied_controllers.contract import Command
from embodied_controllers.rotation import yaw_of_quat

EYE_BASE_M = np.array([-0.13, -0.17, 1.45])  # tilt axis of the head in the base frame: see the robot's model.xml
_GAIN_1PS = 2.5
_ALIGNED_RAD = 0.05
_DWELL_S = 0.4


class Eyes(Protocol):
    """What the service ``camera`` offers."""

    def visible(self, agent: str) -> Sequence[str]:
        """Return the names of what the agent's cameras show now."""
        ...


class LookSkill(Skill):
    """Turn towards a target on the spot; what comes into view is then believed."""

    name = "look"
    summary = "turn towards something and look at it"
    parameters = (Parameter(name="target", kind="entity", summary="what to look at"),)
    robot_kinds = frozenset({"mobile_manipulator"})
    failure_codes = ("not_found", "blocked")
    timeout_s = 20.0
    labels = frozenset({"perception"})

    def groundings(self, graph: Graph, agent: str) -> Iterable[SkillCall]:
        """Fixtures: things are seen along with what they are on."""
        del agent
        for node in graph.of_kind("fixture"):
            if "floor" not in node.properties:
                yield SkillCall.of(self.name, target=node.name)

    def unmet(self, graph: Graph, agent: str, call: SkillCall) -> tuple[Unmet, ...]:
        """The target must be known and not the agent itself."""
        target = str(call.arg("target"))
        if target not in graph.nodes or target == agent:
            return (Unmet(message=f"there is no {target!r} to look at"),)
        return ()

    def effects(self, graph: Graph, agent: str, call: SkillCall) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """Looking changes nothing; what is seen cannot be known before."""
        del graph, agent, call
        return frozenset(), frozenset()

    def start(self, ctx: SkillContext, call: SkillCall) -> SkillRun:
        """Begin to turn."""
        del ctx
        return _LookRun(str(call.arg("target")))

    def cost_s(self, graph: Graph, agent: str, call: SkillCall) -> float:
        """A turn and a moment."""
        del graph, agent, call
        return 3.0


class _LookRun:
    """Turns the base by what the neck cannot give, then dwells."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._rate = 0.0
        self._aligned_s: float | None = None

    def tick(self, ctx: SkillContext) -> Outcome | None:
        point = _point(ctx, self._target)
        if point is None:
            ctx.robot.stop()
            return failed("not_found", f"Nobody knows where {self._target} is.", target=self._target)
        state, spec = ctx.robot.read(), ctx.robot.action_spec
        yaw = yaw_of_quat(state.base_quat_wxyz)
        cos, sin = np.cos(yaw), np.sin(yaw)
        rel = point - state.base_pos_world_m
        ahead = np.array([cos * rel[0] + sin * rel[1], cos * rel[1] - sin * rel[0], rel[2]]) - EYE_BASE_M
        turn = wrap_angle(float(np.arctan2(rel[1], rel[0])) - yaw)
        pan_index, tilt_index = spec.names.index("head_pan_rad"), spec.names.index("head_tilt_rad")
        pan = float(np.clip(np.arctan2(ahead[1], max(ahead[0], 0.05)), spec.low[pan_index], spec.high[pan_index]))
        tilt = float(np.arctan2(-ahead[2], np.hypot(ahead[0], ahead[1])))
        values = np.full(spec.size, np.nan)
        wanted = 0.0 if abs(turn) < _ALIGNED_RAD else float(np.clip(_GAIN_1PS * turn, -1.2, 1.2))
        step = LIMITS.yaw_accel_radps2 * ctx.robot.dt_ctrl_s
        self._rate += float(np.clip(wanted - self._rate, -step, step))
        values[0], values[1], values[pan_index], values[tilt_index] = 0.0, self._rate, pan, tilt
        ctx.robot.send(Command(values=values))
        if abs(turn) >= 1.5 * _ALIGNED_RAD:
            self._aligned_s = None
            return None
        self._aligned_s = ctx.time_s if self._aligned_s is None else self._aligned_s
        if ctx.time_s - self._aligned_s < _DWELL_S:
            return None
        ctx.robot.stop()
        eyes = ctx.services.get("camera")
        if eyes is None:
            return Outcome(status=Status.SUCCEEDED)
        seen = sorted(cast("Eyes", eyes).visible(ctx.agent))
        ctx.log("seen", {"target": self._target, "visible": seen})
        return Outcome(status=Status.SUCCEEDED, facts={"visible": ", ".join(seen)})

    def cancel(self, ctx: SkillContext) -> None:
        ctx.robot.stop()


def _point(ctx: SkillContext, target: str) -> np.ndarray | None:
    """Return the (3,) world point to look at, or None."""
    for room in ctx.view.info.rooms:
        if room.name == target or f"floor_{room.name}" == target:
            x0, y0, x1, y1 = room.rect_m
            return np.array([(x0 + x1) / 2, (y0 + y1) / 2, 0.5])
    pose = ctx.view.pose(target)
    if pose is None:
        return None
    info = ctx.view.info.entities.get(target)
    height = 0.0 if info is None else float(info.box_center_m[2])
    return pose.pos_world_m + np.array([0.0, 0.0, height])


LOOK = LookSkill()
