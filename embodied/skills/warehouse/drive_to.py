"""drive_to: along cells that the traffic promises, by the lane controller, to a place or under a carrier."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from embodied.graph.facts import Fact, Graph, fact
from embodied.planners.mapf.traffic import Traffic
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
from embodied.skills.warehouse.common import (
    KINDS,
    LOW_BATTERY_RATIO,
    Ended,
    liftables,
    load_of,
    places_of,
    send_base,
    stack_on,
)
from embodied.skills.warehouse.floor import FleetFloor, floor_of, lifted_by
from embodied_controllers.base.lane_following import LaneFollower, LaneSetpoint
from embodied_scenes.warehouse.grid import Cell

_WAIT_LIMIT_S = 60.0  # several times what a lift in the way takes
_STUCK_LIMIT_S = 3.0  # driving without getting on: something is in the way that is on no map
_THERE_M = 0.012


class DriveTo(Skill):
    """Drive to a named place, or under a carrier."""

    name = "drive_to"
    summary = "Drive to a place, or under a carrier to lift or scan it. A lifted carrier comes along."
    parameters = (Parameter(name="target", kind="entity", summary="a place, or a carrier standing on the floor"),)
    robot_kinds = KINDS
    failure_codes = ("unknown_target", "unreachable", "blocked_by", "low_battery")
    timeout_s = 300.0
    labels = frozenset({"navigation"})

    def groundings(self, graph: Graph, agent: str) -> Iterable[SkillCall]:
        """Yield all places, and all carriers."""
        for node in graph.of_kind("place"):
            yield SkillCall.of(self.name, target=node.name)
        for name in liftables(graph):
            yield SkillCall.of(self.name, target=name)

    def unmet(self, graph: Graph, agent: str, call: SkillCall) -> tuple[Unmet, ...]:
        """A loaded robot cannot go under a carrier, nor to a place where one stands."""
        target, load = str(call.arg("target")), load_of(graph, agent)
        node = graph.nodes.get(target)
        if node is None or (node.kind != "place" and target not in liftables(graph)):
            return (Unmet(message=f"{target} is neither a place nor a carrier"),)
        if not load:
            return ()
        if node.kind != "place":
            return (Unmet(message=f"{agent} carries {load} and does not fit under {target}; lower it first"),)
        others = [c for c in liftables(graph) if c != load and target in places_of(graph, c)]
        return tuple(Unmet(message=f"{other} stands at {target}; choose another place or move it") for other in others)

    def effects(self, graph: Graph, agent: str, call: SkillCall) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """The robot is at the target, and what it carries with it."""
        target, load = str(call.arg("target")), load_of(graph, agent)
        moved = (agent, *(stack_on(graph, load) if load else ()))
        gone = {f for thing in moved for f in graph.find("at", thing)}
        come = {fact("at", thing, target) for thing in moved}
        return frozenset(come - gone), frozenset(gone - come)

    def cost_s(self, graph: Graph, agent: str, call: SkillCall) -> float:
        """Some twenty metres at walking pace."""
        return 20.0

    def start(self, ctx: SkillContext, call: SkillCall) -> SkillRun:
        """Look the target up on the map and ask the traffic for a way."""
        target = str(call.arg("target"))
        pose = ctx.view.pose(target)
        if pose is None:
            return Ended(failed("unknown_target", f"No pose of {target} is known.", target=target))
        battery = ctx.robot.read().signals.get("battery_ratio", 1.0)
        category = ctx.view.info.places[target].category if target in ctx.view.info.places else ""
        if battery < LOW_BATTERY_RATIO and category != "charger":
            return Ended(
                failed("low_battery", f"Only {battery:.0%} of charge: drive to a charger first.", battery_ratio=battery)
            )
        floor, load = floor_of(ctx), lifted_by(ctx)
        traffic = floor.traffic(ctx.view)
        goal = traffic.grid.cell_at(*pose.pos_world_m[:2])
        if goal is None:
            return Ended(failed("unreachable", f"{target} lies outside the floor.", target=target))
        if not traffic.reachable(ctx.agent, goal, is_loaded=bool(load)):
            other = floor.standing_in(goal) if load else ""
            if other:
                return Ended(failed("blocked_by", f"{other} stands at {target}.", blocked_by=other))
            return Ended(failed("unreachable", f"No way leads to {target}.", target=target))
        ctx.set_state(ctx.agent, "at", "")
        traffic.set_goal(ctx.agent, goal, is_loaded=bool(load))
        x_m, y_m = (float(v) for v in pose.pos_world_m[:2])
        return _DriveRun(ctx, target, goal, (x_m, y_m), floor, traffic)


class _DriveRun:
    """Follows promised cells lane by lane."""

    def __init__(
        self,
        ctx: SkillContext,
        target: str,
        goal: Cell,
        goal_m: tuple[float, float],
        floor: FleetFloor,
        traffic: Traffic,
    ) -> None:
        self._target, self._goal, self._goal_m = target, goal, goal_m
        self._floor, self._traffic = floor, traffic
        self._follower = LaneFollower()
        state = ctx.robot.read()
        self._follower.reset(state)
        here = state.base_pos_world_m[:2]
        self._end: tuple[Cell, int] = (traffic.cell_of(ctx.agent), 0)
        self._step: tuple[int, int] | None = None
        end_m = self._point(self._end[0])
        is_on_it = float(np.hypot(here[0] - end_m[0], here[1] - end_m[1])) < _THERE_M
        self._lane_from: tuple[float, float] = end_m if is_on_it else (float(here[0]), float(here[1]))
        self._is_between = is_on_it
        self._moved_s, self._waited_s, self._moved_at = ctx.time_s, ctx.time_s, here.copy()

    def tick(self, ctx: SkillContext) -> Outcome | None:
        """Extend the lane by what was promised, drive on it, and look out for trouble."""
        state = ctx.robot.read()
        x_m, y_m = (float(v) for v in state.base_pos_world_m[:2])
        self._traffic.advance(ctx.agent, x_m, y_m)
        self._extend(ctx)
        command = self._follower.step(
            state,
            LaneSetpoint(start_world_m=self._lane_from, end_world_m=self._point(self._end[0])),
            ctx.robot.dt_ctrl_s,
        )
        if self._is_between:
            send_base(ctx, 0.0, 0.0)
        else:
            send_base(ctx, float(command[0]), float(command[1]))
            if self._follower.arrived:
                self._is_between = True
        if self._is_between and self._traffic.has_arrived(ctx.agent):
            return self._finish(ctx)
        return self._watch(ctx, state.base_pos_world_m[:2], abs(float(command[0])) + abs(float(command[1])))

    def cancel(self, ctx: SkillContext) -> None:
        """Stop at once; cells that were promised stay taken until the next drive."""
        self._traffic.set_goal(ctx.agent, None)
        ctx.robot.stop()

    def _extend(self, ctx: SkillContext) -> None:
        for cell, visit in self._traffic.promised(ctx.agent):
            if visit <= self._end[1]:
                continue
            last = self._end[0]
            step = (cell[0] - last[0], cell[1] - last[1])
            if self._is_between:
                self._lane_from = self._traffic.grid.center_m(last)
                self._step, self._is_between = step, False
            elif step != self._step:
                return
            self._end = (cell, visit)

    def _point(self, cell: Cell) -> tuple[float, float]:
        return self._goal_m if cell == self._goal else self._traffic.grid.center_m(cell)

    def _finish(self, ctx: SkillContext) -> Outcome:
        self._traffic.set_goal(ctx.agent, None)
        ctx.robot.stop()
        ctx.set_state(ctx.agent, "at", self._target)
        return SUCCESS

    def _watch(self, ctx: SkillContext, here: np.ndarray, effort: float) -> Outcome | None:
        if float(np.abs(here - self._moved_at).max()) > 0.03:
            self._moved_at, self._moved_s, self._waited_s = here.copy(), ctx.time_s, ctx.time_s
        if self._is_between or effort < 0.05 or self._follower.is_turning:
            self._moved_s = ctx.time_s
        if ctx.time_s - self._moved_s > _STUCK_LIMIT_S:
            self.cancel(ctx)
            return failed("blocked_by", f"{ctx.agent} cannot get on: something is in the way.", blocked_by="unknown")
        if ctx.time_s - self._waited_s > _WAIT_LIMIT_S:
            other = self._traffic.waits_for(ctx.agent)
            self.cancel(ctx)
            return failed("blocked_by", f"{ctx.agent} waited {_WAIT_LIMIT_S:.0f} s.", blocked_by=other or "unknown")
        return None
