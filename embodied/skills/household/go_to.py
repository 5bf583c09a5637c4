"""Drive to a fixture, a thing, a place, a room or an agent and face it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from embodied.graph.facts import Fact, Graph, fact
from embodied.skills.contract import (
    SUCCESS,
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
from embodied.skills.household.navigation import DriveTo
from embodied.skills.household.standing import choose, standings

_TRIES = 3


class GoToSkill(Skill):
    """Drive to where the target can be dealt with. Afterwards ``at(agent, target)`` holds, and no other ``at``."""

    name = "go_to"
    summary = "drive to a piece of furniture, a thing, a place or a room"
    parameters = (Parameter(name="target", kind="entity", summary="where to go"),)
    robot_kinds = frozenset({"mobile_manipulator"})
    failure_codes = ("not_found", "unreachable", "blocked", "timeout")
    timeout_s = 120.0
    labels = frozenset({"navigation"})

    def groundings(self, graph: Graph, agent: str) -> Iterable[SkillCall]:
        """Fixtures, places, rooms, and things lying on the floor: all that one goes to for its own sake."""
        floors = {n.name for n in graph.nodes.values() if "floor" in n.properties}
        for name in sorted(graph.nodes):
            node = graph.nodes[name]
            if node.kind in ("fixture", "place", "room") and name not in floors:
                yield SkillCall.of(self.name, target=name)
            elif node.kind == "object":
                support = graph.support_of(name)
                if support is not None and support.args[1] in floors:
                    yield SkillCall.of(self.name, target=name)

    def unmet(self, graph: Graph, agent: str, call: SkillCall) -> tuple[Unmet, ...]:
        """The target must be known and not the agent itself or what it holds."""
        target = str(call.arg("target"))
        if target not in graph.nodes:
            return (Unmet(message=f"nothing is called {target!r}"),)
        if target == agent or graph.held_by(agent) == target:
            return (Unmet(message=f"{target} is already where {agent} is"),)
        return ()

    def effects(self, graph: Graph, agent: str, call: SkillCall) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """Being at the target replaces being anywhere else."""
        here = fact("at", agent, str(call.arg("target")))
        rooms = {f for f in graph.facts if f.predicate == "inroom" and f.args[0] == agent}
        target = str(call.arg("target"))
        room = _room_of(graph, target)
        moved = (rooms - {fact("inroom", agent, room)}) if room else set()
        added = {here} | ({fact("inroom", agent, room)} if room else set())
        return frozenset(added), frozenset((set(graph.find("at", agent)) | moved) - added)

    def start(self, ctx: SkillContext, call: SkillCall) -> SkillRun:
        """Begin; the way is planned at the first tick."""
        del ctx
        return _GoToRun(str(call.arg("target")))

    def cost_s(self, graph: Graph, agent: str, call: SkillCall) -> float:
        """About ten seconds; next to nothing when already there."""
        return 1.0 if graph.holds("at", agent, str(call.arg("target"))) else 10.0


class _GoToRun:
    """Chooses a pose, drives there, chooses again if the way closes."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._drive: DriveTo | None = None
        self._tries = 0
        self._failure: Outcome | None = None
        self._excluded: list[np.ndarray] = []

    def tick(self, ctx: SkillContext) -> Outcome | None:
        if self._drive is None:
            problem = self._choose(ctx)
            if problem is not None:
                ctx.robot.stop()
                return problem
        assert self._drive is not None
        outcome = self._drive.tick(ctx)
        if outcome is None:
            return None
        if outcome.status is Status.SUCCEEDED:
            ctx.set_state(ctx.agent, "at", self._target)
            return SUCCESS
        self._failure = outcome
        self._drive = None
        self._tries += 1
        return outcome if self._tries >= _TRIES else None

    def cancel(self, ctx: SkillContext) -> None:
        ctx.robot.stop()

    def _choose(self, ctx: SkillContext) -> Outcome | None:
        if ctx.view.graph.holds("at", ctx.agent, self._target):
            ctx.set_state(ctx.agent, "at", "")
        options = standings(ctx.view, self._target, ctx.agent)
        if not options:
            return failed("not_found", f"Nobody knows where {self._target} is.", target=self._target)
        options = tuple(o for o in options if all(np.hypot(*(o.xy_m - e)) > 0.1 for e in self._excluded))
        best = choose(ctx.view, ctx.robot.read().base_pos_world_m[:2], options)
        if best is None:
            if self._failure is not None:
                return self._failure
            culprit = _open_door_in_the_way(ctx, options)
            facts: dict[str, str] = {"blocked_by": culprit} if culprit else {}
            hint = f" The open {culprit} is in the way." if culprit else ""
            return failed(
                "unreachable", f"No free spot before {self._target} can be reached.{hint}", target=self._target, **facts
            )
        self._excluded.append(best.xy_m)
        self._drive = DriveTo(best.xy_m, best.yaw_rad)
        return None


def _open_door_in_the_way(ctx: SkillContext, options: tuple) -> str:
    """Return the name of an open door or drawer without which some option could be reached, or an empty text."""
    start = ctx.robot.read().base_pos_world_m[:2]
    for entity in ctx.view.info.entities.values():
        if entity.openable and ctx.view.opening(entity.name) > 0.1:
            boxes = ctx.view.footprints(ignore=(entity.name,))
            if choose(_Without(ctx, boxes), start, options) is not None:  # type: ignore[arg-type]
                return entity.name
    return ""


class _Without:
    """A view with other obstacles."""

    def __init__(self, ctx: SkillContext, boxes: np.ndarray) -> None:
        self._boxes = boxes
        self.info, self.pose, self.graph = ctx.view.info, ctx.view.pose, ctx.view.graph
        self.body_pose, self.opening = ctx.view.body_pose, ctx.view.opening

    def footprints(self, *, ignore: object = ()) -> np.ndarray:
        del ignore
        return self._boxes


def _room_of(graph: Graph, target: str) -> str | None:
    node = graph.nodes[target]
    if node.kind == "room":
        return target
    for f in graph.find("inroom", target):
        return f.args[1]
    support = graph.support_of(target)
    return _room_of(graph, support.args[1]) if support is not None and support.args[1] != target else None


GO_TO = GoToSkill()
