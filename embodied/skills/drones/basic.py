"""take_off, fly_to and land."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from embodied.graph.facts import Fact, Graph, fact
from embodied.skills.contract import (
    SUCCESS,
    Outcome,
    Parameter,
    Skill,
    SkillCall,
    SkillContext,
    SkillRun,
    Unmet,
    failed,
)
from embodied.skills.drones.airspace import Airspace
from embodied.skills.drones.flight import (
    SPEED_MPS,
    Follower,
    Reference,
    at_facts,
    heading,
    hold_after_cancel,
    needs_flying,
    plan_path,
    settled,
    speed_of,
)
from embodied_controllers.contract import Command, RobotState
from embodied_controllers.quadrotor.trajectory import MinimumJerk

Array = NDArray[np.float64]
KINDS = frozenset({"quadrotor"})
HEIGHT_LOW_M, HEIGHT_HIGH_M, HEIGHT_USUAL_M = 0.5, 3.5, 1.2
OVER_PAD_M = 1.0
_SETTLE_S = 8.0
_PAD_RADIUS_M = 0.3
_REST_HEIGHT_M = 0.0145  # middle of the drone above what it stands on (half of the hull's height)


def yaw_of(state: RobotState) -> float:
    """Return the heading of a sample, rad."""
    w, x, y, z = state.base_quat_wxyz.tolist()
    return float(np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))


class TakeOff(Skill):
    """Climb straight up and hover."""

    name = "take_off"
    summary = "Start the motors and climb to a height above the ground."
    parameters = (Parameter(name="height_m", kind="number", summary="height above the ground, 0.5 to 3.5 m"),)
    robot_kinds = KINDS
    failure_codes = ("bad_height", "no_way", "blocked", "crashed", "not_settled")
    timeout_s = 25.0

    def groundings(self, graph: Graph, agent: str) -> Iterable[SkillCall]:
        """Yield the usual height."""
        yield SkillCall.of(self.name, height_m=HEIGHT_USUAL_M)

    def unmet(self, graph: Graph, agent: str, call: SkillCall) -> tuple[Unmet, ...]:
        """It must stand on the ground."""
        return needs_flying(graph, agent, flying=False)

    def effects(self, graph: Graph, agent: str, call: SkillCall) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """It flies."""
        return frozenset([fact("flying", agent)]), frozenset()

    def cost_s(self, graph: Graph, agent: str, call: SkillCall) -> float:
        """About three seconds."""
        return 3.0

    def start(self, ctx: SkillContext, call: SkillCall) -> SkillRun:
        """Begin the climb."""
        return _TakeOffRun(ctx, float(call.arg("height_m", HEIGHT_USUAL_M)))


class _HoverRun:
    """Flies to where a subclass begins to fly, and ends when the drone hovers there; or refuses at once."""

    skill: str
    _refusal: Outcome | None
    _goal: Array
    _follower: Follower

    def tick(self, ctx: SkillContext) -> Outcome | None:
        """Follow the way, then wait until the drone hovers."""
        if self._refusal is not None:
            ctx.robot.stop()
            return self._refusal
        state, left_s, problem = self._follower.tick(ctx)
        if problem is not None:
            return problem
        if left_s <= 0 and settled(state, self._goal, None):
            self._arrived(ctx)
            return SUCCESS
        if left_s < -_SETTLE_S:
            return _not_settled(self.skill, state, self._goal)
        return None

    def cancel(self, ctx: SkillContext) -> None:
        """Hold the position."""
        hold_after_cancel(ctx)

    def _arrived(self, ctx: SkillContext) -> None:
        """Note where the drone is now."""


class _TakeOffRun(_HoverRun):
    skill = "take_off"

    def __init__(self, ctx: SkillContext, height_m: float) -> None:
        self._refusal: Outcome | None = None
        state = ctx.robot.read()
        self._goal = np.array([*state.base_pos_world_m[:2], height_m])
        self._yaw = yaw_of(state)
        if not HEIGHT_LOW_M <= height_m <= HEIGHT_HIGH_M:
            message = f"take_off: height must lie in [{HEIGHT_LOW_M}, {HEIGHT_HIGH_M}] m, got {height_m}."
            self._refusal = failed("bad_height", message, height_m=height_m)
            return
        space = Airspace.from_view(ctx.view, ctx.agent)
        above = state.base_pos_world_m + np.array([0.0, 0.0, 0.4])
        if not space.segment_free(above, self._goal, 0.1):
            by = space.blocker(above, self._goal) or "an obstacle"
            self._refusal = failed("no_way", f"take_off: {by} is above the drone.", blocked_by=by)
            return
        self._follower = Follower(ctx)
        self._follower.begin(
            ctx, Reference(MinimumJerk(state.base_pos_world_m.tolist(), self._goal.tolist(), 1.0, 1.5), self._yaw, None)
        )
        ctx.set_state(ctx.agent, "flying", True)


class FlyTo(Skill):
    """Fly to a place around all obstacles and hover there; over a pad, a metre above it."""

    name = "fly_to"
    summary = "Fly to a named place and hover there (one metre above it if it is a pad)."
    parameters = (Parameter(name="target", kind="place", summary="a waypoint, gate or pad"),)
    robot_kinds = KINDS
    failure_codes = ("no_way", "blocked", "crashed", "not_settled", "unknown_pose")
    timeout_s = 60.0

    def groundings(self, graph: Graph, agent: str) -> Iterable[SkillCall]:
        """Yield every place."""
        for node in graph.of_kind("place"):
            yield SkillCall.of(self.name, target=node.name)

    def unmet(self, graph: Graph, agent: str, call: SkillCall) -> tuple[Unmet, ...]:
        """It must fly."""
        return needs_flying(graph, agent, flying=True)

    def effects(self, graph: Graph, agent: str, call: SkillCall) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """It is there and nowhere else."""
        there = fact("at", agent, str(call.arg("target")))
        return frozenset([there]), at_facts(graph, agent) - {there}

    def cost_s(self, graph: Graph, agent: str, call: SkillCall) -> float:
        """A few metres at cruise speed."""
        return 3.0 + 5.0 / SPEED_MPS

    def start(self, ctx: SkillContext, call: SkillCall) -> SkillRun:
        """Plan the way and begin."""
        return _FlyToRun(ctx, str(call.arg("target")))


class _FlyToRun(_HoverRun):
    skill = "fly_to"

    def __init__(self, ctx: SkillContext, target: str) -> None:
        self._target = target
        self._refusal: Outcome | None = None
        pose = ctx.view.pose(target)
        if pose is None:
            self._refusal = failed("unknown_pose", f"fly_to: nobody knows where {target} is.", target=target)
            return
        lift_m = OVER_PAD_M if ctx.view.info.places[target].category == "pad" else 0.0
        self._goal = pose.pos_world_m + np.array([0.0, 0.0, lift_m])
        state = ctx.robot.read()
        path = plan_path(ctx, state.base_pos_world_m, self._goal)
        if path is None:
            self._refusal = failed("no_way", f"fly_to: no free way to {target}.", target=target)
            return
        self._yaw = heading(state.base_pos_world_m, self._goal, yaw_of(state))
        self._follower = Follower(ctx)
        self._follower.begin(ctx, Reference(path, yaw_of(state), self._yaw))
        ctx.set_state(ctx.agent, "at", "")

    def _arrived(self, ctx: SkillContext) -> None:
        ctx.set_state(ctx.agent, "at", self._target)


class Land(Skill):
    """Sink onto a pad and switch the motors off."""

    name = "land"
    summary = "Land on the pad below (fly_to the pad first) and switch the motors off."
    parameters = (Parameter(name="pad", kind="place", summary="the pad"),)
    robot_kinds = KINDS
    failure_codes = ("unknown_pose", "not_above_pad", "blocked", "crashed", "missed_pad", "not_settled")
    timeout_s = 25.0

    def groundings(self, graph: Graph, agent: str) -> Iterable[SkillCall]:
        """Yield every pad."""
        for node in graph.of_kind("place"):
            if node.category == "pad":
                yield SkillCall.of(self.name, pad=node.name)

    def unmet(self, graph: Graph, agent: str, call: SkillCall) -> tuple[Unmet, ...]:
        """It must fly, above this pad, and it must be a pad."""
        pad = str(call.arg("pad"))
        found = list(needs_flying(graph, agent, flying=True))
        node = graph.nodes.get(pad)
        if node is not None and node.category != "pad":
            found.append(Unmet(message=f"{pad} is a {node.category}, not a pad."))
        if not graph.holds("at", agent, pad):
            found.append(Unmet(message=f"{agent} is not at {pad}; fly there first.", missing=fact("at", agent, pad)))
        return tuple(found)

    def effects(self, graph: Graph, agent: str, call: SkillCall) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """It stands on the pad."""
        return frozenset([fact("at", agent, str(call.arg("pad")))]), frozenset([fact("flying", agent)])

    def cost_s(self, graph: Graph, agent: str, call: SkillCall) -> float:
        """About four seconds."""
        return 4.0

    def start(self, ctx: SkillContext, call: SkillCall) -> SkillRun:
        """Begin the descent."""
        return _LandRun(ctx, str(call.arg("pad")))


class _LandRun:
    def __init__(self, ctx: SkillContext, pad: str) -> None:
        self._pad = pad
        self._refusal: Outcome | None = None
        self._off_since_s: float | None = None
        pose = ctx.view.pose(pad)
        state = ctx.robot.read()
        if pose is None:
            self._refusal = failed("unknown_pose", f"land: nobody knows where {pad} is.", target=pad)
            return
        self._rest = pose.pos_world_m + np.array([0.0, 0.0, _REST_HEIGHT_M])
        off_m = float(np.linalg.norm((state.base_pos_world_m - self._rest)[:2]))
        if off_m > 2 * _PAD_RADIUS_M:
            message = f"land: the drone is {off_m:.2f} m beside {pad}."
            self._refusal = failed("not_above_pad", message, distance_m=off_m, target=pad)
            return
        self._follower = Follower(ctx)
        # the reference ends a little below the top so that the drone is set down, not left hovering over it
        end = self._rest - np.array([0.0, 0.0, 0.03])
        self._follower.begin(
            ctx, Reference(MinimumJerk(state.base_pos_world_m.tolist(), end.tolist(), 0.7, 1.0), yaw_of(state), None)
        )

    def tick(self, ctx: SkillContext) -> Outcome | None:
        """Sink; cut the motors at touch-down; check that the drone rests on the pad."""
        if self._refusal is not None:
            ctx.robot.stop()
            return self._refusal
        if self._off_since_s is not None:
            return self._rest_check(ctx)
        state, left_s, problem = self._follower.tick(ctx)
        if problem is not None:
            return problem
        height_m = float(state.base_pos_world_m[2] - self._rest[2])
        if height_m < 0.02 and speed_of(state) < 0.25:
            self._off_since_s = ctx.time_s
        elif left_s < -_SETTLE_S:
            return _not_settled("land", state, self._rest)
        return None

    def cancel(self, ctx: SkillContext) -> None:
        """Hold the position, or stay down."""
        hold_after_cancel(ctx)

    def _rest_check(self, ctx: SkillContext) -> Outcome | None:
        assert self._off_since_s is not None
        ctx.robot.send(Command(values=np.zeros(4)))
        state = ctx.robot.read()
        if ctx.time_s - self._off_since_s < 0.5:
            return None
        if speed_of(state) > 0.05:
            return _not_settled("land", state, self._rest) if ctx.time_s - self._off_since_s > 4.0 else None
        ctx.set_state(ctx.agent, "flying", False)
        off_m = float(np.linalg.norm((state.base_pos_world_m - self._rest)[:2]))
        drop_m = float(state.base_pos_world_m[2] - self._rest[2])
        if off_m > _PAD_RADIUS_M or abs(drop_m) > 0.03:
            ctx.set_state(ctx.agent, "at", "")
            return failed("missed_pad", f"land: {off_m:.2f} m from the middle of {self._pad}.", distance_m=off_m)
        ctx.set_state(ctx.agent, "at", self._pad)
        return SUCCESS


def _not_settled(skill: str, state: RobotState, goal_m: Array) -> Outcome:
    distance_m = float(np.linalg.norm(state.base_pos_world_m - goal_m))
    message = f"{skill}: still {distance_m:.2f} m from the goal at {speed_of(state):.2f} m/s after settling time."
    return failed("not_settled", message, distance_m=distance_m, speed_mps=speed_of(state))


TAKE_OFF, FLY_TO, LAND = TakeOff(), FlyTo(), Land()
