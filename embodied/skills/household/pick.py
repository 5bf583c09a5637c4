"""Pick: take a thing from furniture, out of a compartment or from the floor, by friction between two fingers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from embodied.errors import SkillError
from embodied.graph.facts import Fact, Graph, fact
from embodied.skills.contract import EntityPose, Parameter, Skill, SkillCall, SkillContext, SkillRun, Unmet
from embodied.skills.household.compartments import LIFT_M, MIN_OPENING, compartment_at
from embodied.skills.household.grasping import Shape, ToolPath, grasp_paths, shape_of, too_wide
from embodied.skills.household.motion import (
    EMPTY_WIDTH_M,
    ManipulationRun,
    Script,
    SkillFailureError,
    fail,
    held_points,
)
from embodied.skills.household.obstacles import scene_boxes
from embodied.skills.household.reach import Obstacles, ReachPlan, find_reach
from embodied.skills.household.stand import stand_poses
from embodied_scenes.info import EntityInfo

Array = NDArray[np.float64]

ATTEMPTS = 3
_GRASP_SPEED, _LIFT_SPEED = 0.35, 0.4
_LOST_M = 0.15  # further from the tool than this, a thing is not held


class Pick(Skill):
    """Take a thing with the gripper."""

    name: ClassVar[str] = "pick"
    summary: ClassVar[str] = "take a thing from where it lies; hands must be free and doors open"
    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter(name="thing", kind="object", summary="what to take"),)
    robot_kinds: ClassVar[frozenset[str]] = frozenset({"mobile_manipulator"})
    failure_codes: ClassVar[tuple[str, ...]] = (
        "not_found",
        "not_graspable",
        "closed",
        "unreachable",
        "blocked",
        "grasp_failed",
        "dropped",
        "timeout",
    )
    timeout_s: ClassVar[float] = 150.0
    labels: ClassVar[frozenset[str]] = frozenset({"manipulation"})

    def groundings(self, graph: Graph, agent: str) -> Iterable[SkillCall]:
        """Yield one call for each movable thing."""
        del agent
        for node in graph.of_kind("object"):
            yield SkillCall.of("pick", thing=node.name)

    def unmet(self, graph: Graph, agent: str, call: SkillCall) -> tuple[Unmet, ...]:
        """Hands are free, nobody holds the thing, and it is in nothing closed."""
        thing = str(call.arg("thing"))
        found: list[Unmet] = []
        held = graph.held_by(agent)
        if held is not None:
            found.append(Unmet(message=f"{agent} already holds {held}"))
        for f in graph.find("holding", None, thing):
            if f.args[0] != agent:
                found.append(Unmet(message=f"{f.args[0]} holds {thing}"))
        for f in graph.find("inside", thing):
            box = f.args[1]
            node = graph.nodes.get(box)
            if node is not None and "openable" in node.properties and not graph.holds("open", box):
                found.append(Unmet(message=f"{box} is closed", missing=fact("open", box)))
        return tuple(found)

    def effects(self, graph: Graph, agent: str, call: SkillCall) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """The agent holds the thing, which is nowhere else any more."""
        thing = str(call.arg("thing"))
        gone = {
            f for f in graph.facts if f.predicate in ("ontop", "inside", "under", "nextto", "at") and thing in f.args
        }
        here = standing_at(graph, thing)
        gone |= {f for f in graph.facts if f.predicate == "at" and f.args[0] == agent}
        added = {fact("holding", agent, thing), fact("at", agent, here)}
        return frozenset(added), frozenset(gone - added)

    def start(self, ctx: SkillContext, call: SkillCall) -> SkillRun:
        """Begin a run.

        Raises:
          SkillError: there is no such thing in the scene.
        """
        thing = str(call.arg("thing"))
        if thing not in ctx.view.info.entities:
            raise SkillError(f"pick: the scene holds no {thing!r}.")
        return PickRun(ctx, thing)

    def cost_s(self, graph: Graph, agent: str, call: SkillCall) -> float:
        """A grasp takes about ten seconds, the way there more; ``go_to`` before it is a little cheaper than that."""
        return 10.0 if graph.holds("at", agent, standing_at(graph, str(call.arg("thing")))) else 22.0


def standing_at(graph: Graph, thing: str) -> str:
    """Return what one stands at to deal with a thing: the furniture that holds it, or the thing itself on a floor."""
    support = graph.support_of(thing)
    if support is None:
        return thing
    node = graph.nodes.get(support.args[1])
    if node is None or "floor" in node.properties:
        return thing
    return standing_at(graph, node.name) if node.kind == "object" else node.name


class PickRun(ManipulationRun):
    """One pick in progress."""

    def __init__(self, ctx: SkillContext, thing: str) -> None:
        self.thing = thing
        self.info: EntityInfo = ctx.view.info.entities[thing]
        self._bad_grasps: list[Array] = []
        self._force_n = float(np.clip(22.0 + 30.0 * self.info.mass_kg, 25.0, 40.0))
        super().__init__(ctx)

    def script(self) -> Script:
        """Stand, reach, close, lift, fold; once or twice more if it slips."""
        self._check()
        yield from self.tuck()
        problem: SkillFailureError | None = None
        bad_bases: list[Array] = []
        for attempt in range(ATTEMPTS):
            plan = self._plan(bad_bases, stay=False)
            if plan is None:
                raise problem or self._unreachable()
            try:
                yield from self.drive(plan.base_xyyaw, ignore=())
            except SkillFailureError as error:
                problem = error
                bad_bases.append(plan.base_xyyaw)
                continue
            here = self._plan([], stay=True)
            if here is None:
                bad_bases.append(plan.base_xyyaw)
                problem = problem or self._unreachable()
                continue
            try:
                yield from self._grasp(here)
                return
            except SkillFailureError as error:
                problem = error
                self._bad_grasps.append(here.tool.rot_world[:, 0])
                self.ctx.log(
                    "retry", {"skill": "pick", "thing": self.thing, "attempt": attempt, "code": error.outcome.code}
                )
                yield from self._give_up_grasp()
        assert problem is not None
        raise problem

    def _check(self) -> None:
        if not self.info.movable:
            raise fail("not_graspable", f"{self.thing} is furniture and cannot be taken.")
        pose = self.ctx.view.pose(self.thing)
        if pose is None:
            raise fail("not_found", f"It is not known where {self.thing} is; look for it first.")
        shape = shape_of(self.info, pose)
        if too_wide(shape):
            width = 2 * float(shape.grip_half_m.min())
            raise fail(
                "not_graspable", f"{self.thing} is {width:.3f} m wide, more than the gripper opens.", width_m=width
            )
        box = compartment_at(self.ctx.view, pose.pos_world_m)
        if box is not None:
            owner = self.ctx.view.info.entities[box.owner]
            if owner.openable and self.ctx.view.opening(box.owner) < MIN_OPENING:
                opening = self.ctx.view.opening(box.owner)
                raise fail(
                    "closed", f"{box.owner} is open by {opening:.0%} only.", container=box.owner, opening=opening
                )

    def _plan(self, bad_bases: list[Array], *, stay: bool) -> ReachPlan | None:
        """Search for a way to grasp, from anywhere or from the present base pose."""
        view = self.ctx.view
        pose = view.pose(self.thing)
        if pose is None:
            raise fail("not_found", f"{self.thing} was lost from sight.")
        shape = shape_of(self.info, pose)
        paths, outward = self._paths(shape, pose)
        here = self.base_xyyaw
        if stay:
            bases, cost = here[None], np.zeros(1)
        else:
            bases, cost = stand_poses(view, shape.center_world_m, here, ignore=(self.thing,), outward_world=outward)
            for bad in bad_bases:
                keep = np.hypot(*(bases[:, :2] - bad[:2]).T) > 0.12
                bases, cost = bases[keep], cost[keep]
        boxes = scene_boxes(view).near(shape.center_world_m, 1.6)
        near = boxes.without([self.thing])
        held = [held_points(view, self.thing, p.way_in_world_m[-1], p.rot_world, clear_of=near) for p in paths]
        obstacles = Obstacles(free=boxes, near=near, held_in_tool_m=[None] * len(paths), held_out_tool_m=held)
        return find_reach(bases, cost, paths, obstacles, self.posture)

    def _paths(self, shape: Shape, pose: EntityPose) -> tuple[list[ToolPath], Array | None]:
        box = compartment_at(self.ctx.view, pose.pos_world_m)
        exit_m, outward = LIFT_M, None
        if box is not None:
            outward = box.outward_world
            exit_m = box.exit_m(shape.center_world_m, float(shape.half_size_m[:2].max()), shape.bottom_m)
        paths = grasp_paths(shape, shape.bottom_m, outward, exit_m)
        for i, path in enumerate(paths):
            if any(float(bad @ path.rot_world[:, 0]) > 0.98 for bad in self._bad_grasps):
                paths[i] = ToolPath(
                    rot_world=path.rot_world,
                    way_in_world_m=path.way_in_world_m,
                    way_out_world_m=path.way_out_world_m,
                    heading_world=path.heading_world,
                    width_m=path.width_m,
                    penalty_s=path.penalty_s + 3.0,
                )
        return paths, outward

    def _unreachable(self) -> SkillFailureError:
        pose = self.ctx.view.pose(self.thing)
        distance = 0.0 if pose is None else float(np.hypot(*(pose.pos_world_m[:2] - self.base_xyyaw[:2])))
        return fail("unreachable", f"No stand and grasp reach {self.thing}.", distance_m=distance)

    def _grasp(self, plan: ReachPlan) -> Script:
        self.command[10:12] = plan.tool.width_m, 30.0
        yield from self.follow(plan.unfold[1:])
        yield from self.grip(plan.tool.width_m, 30.0)
        yield from self.follow(plan.way_in[1:], speed_ratio=_GRASP_SPEED)
        yield from self.grip(0.0, self._force_n)
        if self.width_m < EMPTY_WIDTH_M:
            raise fail("grasp_failed", f"The fingers closed on nothing at {self.thing}.", width_m=self.width_m)
        yield from self.follow(plan.way_out[1:], speed_ratio=_LIFT_SPEED)
        self._verify("grasp_failed")
        yield from self.follow(plan.fold[1:], speed_ratio=0.8)
        yield from self.wait(0.1)
        self._verify("dropped")

    def _verify(self, code: str) -> None:
        """Both fingers press on something, and the thing is at the tool as far as one sees it."""
        if self.width_m < EMPTY_WIDTH_M:
            raise fail(code, f"{self.thing} slipped out of the fingers.", width_m=self.width_m)
        pose = self.ctx.view.pose(self.thing)
        if pose is None or not self._is_seen_live():
            return
        shape = shape_of(self.info, pose)
        tool, _ = self.tool_pose()
        distance = float(np.linalg.norm(shape.center_world_m - tool))
        if distance > _LOST_M + float(shape.half_size_m.max()):
            raise fail(code, f"{self.thing} is {distance:.2f} m from the tool.", distance_m=distance)

    def _is_seen_live(self) -> bool:
        """Whether the view follows the thing while it moves (a belief may only know where it was)."""
        return self.ctx.view.graph.holds("holding", self.ctx.agent, self.thing)

    def _give_up_grasp(self) -> Script:
        """Let go, leave the way one came and fold the arm."""
        yield from self.grip(0.1, 30.0)
        yield from self.tuck()


PICK = Pick()
