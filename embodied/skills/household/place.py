"""Place: put down what is held on, in, next to or under something."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from embodied.errors import SkillError
from embodied.graph.facts import Fact, Graph, Node, fact
from embodied.skills.contract import Parameter, Skill, SkillCall, SkillContext, SkillRun, Unmet
from embodied.skills.household.compartments import MIN_OPENING, compartments_of
from embodied.skills.household.grasping import ToolPath, shape_of
from embodied.skills.household.motion import (
    EMPTY_WIDTH_M,
    ManipulationRun,
    Script,
    SkillFailureError,
    fail,
    held_points,
)
from embodied.skills.household.obstacles import scene_boxes
from embodied.skills.household.pick import standing_at
from embodied.skills.household.reach import Obstacles, ReachPlan, find_reach
from embodied.skills.household.spots import InHand, Spot, free_spots, in_hand, place_paths
from embodied.skills.household.stand import stand_poses
from embodied_controllers.rotation import matrix_of_quat

Array = NDArray[np.float64]

RELATIONS = ("on", "in", "nextto", "under")
ATTEMPTS = 3
_SPOTS_AT_ONCE, _SPOT_BATCHES = 3, 4
_PLACE_SPEED, _LEAVE_SPEED = 0.35, 0.4
_PREDICATE = {"on": "ontop", "in": "inside", "nextto": "nextto", "under": "under"}


class Place(Skill):
    """Put down what is held."""

    name: ClassVar[str] = "place"
    summary: ClassVar[str] = "put the held thing on, in, next to or under something"
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(name="thing", kind="object", summary="what is held"),
        Parameter(name="target", kind="entity", summary="furniture or thing to put it at"),
        Parameter(name="relation", kind="choice", summary="how it lies there", choices=RELATIONS),
    )
    robot_kinds: ClassVar[frozenset[str]] = frozenset({"mobile_manipulator"})
    failure_codes: ClassVar[tuple[str, ...]] = (
        "not_found",
        "closed",
        "occupied",
        "unreachable",
        "blocked",
        "dropped",
        "timeout",
    )
    timeout_s: ClassVar[float] = 150.0
    labels: ClassVar[frozenset[str]] = frozenset({"manipulation"})

    def groundings(self, graph: Graph, agent: str) -> Iterable[SkillCall]:
        """Yield a call for what is held (or each thing, hands free) with every target that takes it."""
        held = graph.held_by(agent)
        things = [held] if held is not None else [n.name for n in graph.of_kind("object")]
        targets = [
            (n, r) for n in (*graph.of_kind("fixture"), *graph.of_kind("object")) for r in RELATIONS if _takes(n, r)
        ]
        for thing in things:
            for node, relation in targets:
                if node.name != thing:
                    yield SkillCall.of("place", thing=thing, target=node.name, relation=relation)

    def unmet(self, graph: Graph, agent: str, call: SkillCall) -> tuple[Unmet, ...]:
        """The thing is held, and the target takes things that way and is not closed."""
        thing, target, relation = _args(call)
        found: list[Unmet] = []
        if not graph.holds("holding", agent, thing):
            found.append(Unmet(message=f"{agent} does not hold {thing}", missing=fact("holding", agent, thing)))
        node = graph.nodes.get(target)
        if node is None or target == thing or not _takes(node, relation):
            found.append(Unmet(message=f"nothing can be put {relation} {target}"))
            return tuple(found)
        if relation == "in" and "openable" in node.properties and not graph.holds("open", target):
            found.append(Unmet(message=f"{target} is closed", missing=fact("open", target)))
        if relation == "nextto":
            if next(iter(graph.find("holding", None, target)), None) is not None:
                found.append(Unmet(message=f"{target} is held"))
            for f in graph.find("inside", target):
                box = graph.nodes.get(f.args[1])
                if box is not None and "openable" in box.properties and not graph.holds("open", box.name):
                    found.append(Unmet(message=f"{box.name} is closed", missing=fact("open", box.name)))
        return tuple(found)

    def effects(self, graph: Graph, agent: str, call: SkillCall) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """The thing is there and no longer held; it is in the room of the target."""
        thing, target, relation = _args(call)
        added = {fact(_PREDICATE[relation], thing, target)}
        if relation == "nextto":
            added.add(fact("nextto", target, thing))
            support = graph.support_of(target)
            if support is not None:
                added.add(fact(support.predicate, thing, support.args[1]))
        node = graph.nodes.get(target)
        here = target if node is None or node.kind != "object" else standing_at(graph, target)
        added.add(fact("at", agent, here))
        gone = {fact("holding", agent, thing)} | {f for f in graph.facts if f.predicate == "at" and f.args[0] == agent}
        for f in graph.find("inroom", target):
            added.add(fact("inroom", thing, f.args[1]))
            gone |= {
                g for g in graph.facts if g.predicate == "inroom" and g.args[0] == thing and g.args[1] != f.args[1]
            }
        return frozenset(added), frozenset(gone - added)

    def start(self, ctx: SkillContext, call: SkillCall) -> SkillRun:
        """Begin a run.

        Raises:
          SkillError: thing or target is not in the scene, or the relation is unknown.
        """
        thing, target, relation = _args(call)
        for name in (thing, target):
            if name not in ctx.view.info.entities:
                raise SkillError(f"place: the scene holds no {name!r}.")
        if relation not in RELATIONS:
            raise SkillError(f"place: relation is one of {', '.join(RELATIONS)}, got {relation!r}.")
        return PlaceRun(ctx, thing, target, relation)

    def cost_s(self, graph: Graph, agent: str, call: SkillCall) -> float:
        """Putting down takes about ten seconds, the way there more."""
        _, target, _ = _args(call)
        node = graph.nodes.get(target)
        here = target if node is None or node.kind != "object" else standing_at(graph, target)
        return 10.0 if graph.holds("at", agent, here) else 22.0

    def text(self, call: SkillCall) -> str:
        """Say the call in words."""
        thing, target, relation = _args(call)
        return f"place {thing} {'next to' if relation == 'nextto' else relation} {target}"


def _args(call: SkillCall) -> tuple[str, str, str]:
    return str(call.arg("thing")), str(call.arg("target")), str(call.arg("relation", "on"))


def _takes(node: Node, relation: str) -> bool:
    if node.kind == "object":
        return relation == "nextto" or (relation == "on" and "surface" in node.properties)
    if relation == "in":
        return "container" in node.properties
    if relation == "under":
        return "surface" in node.properties and "floor" not in node.properties and "container" not in node.properties
    return relation == "on" and "surface" in node.properties


class PlaceRun(ManipulationRun):
    """One placement in progress."""

    def __init__(self, ctx: SkillContext, thing: str, target: str, relation: str) -> None:
        self.thing, self.target, self.relation = thing, target, relation
        self._hand: InHand | None = None
        self._spots: list[Spot] = []
        super().__init__(ctx)

    def script(self) -> Script:
        """Choose a spot, stand, reach, let go, leave, look."""
        self._check()
        yield from self.tuck(self.thing, held_points(self.ctx.view, self.thing, *self.tool_pose()))
        problem: SkillFailureError | None = None
        bad_bases: list[Array] = []
        for _ in range(ATTEMPTS):
            self._look_at_hand()
            plan, spot = self._plan(bad_bases)
            if plan is None or spot is None:
                raise problem or self._unreachable()
            try:
                yield from self.drive(plan.base_xyyaw, ignore=(self.thing,))
            except SkillFailureError as error:
                problem = error
                bad_bases.append(plan.base_xyyaw)
                continue
            self._look_at_hand()
            here = self._search([spot], self.base_xyyaw[None], np.zeros(1))
            if here is None:
                here, spot = self._plan([], stay=True)
            if here is None or spot is None:
                bad_bases.append(plan.base_xyyaw)
                problem = problem or self._unreachable()
                continue
            yield from self._put(here)
            self._verify()
            return
        assert problem is not None
        raise problem

    def _check(self) -> None:
        view = self.ctx.view
        if self.width_m < EMPTY_WIDTH_M:
            raise fail("dropped", f"The gripper is empty: {self.thing} is not in it.", width_m=self.width_m)
        if view.pose(self.target) is None:
            raise fail("not_found", f"It is not known where {self.target} is; look for it first.")
        info = view.info.entities[self.target]
        if self.relation == "in" and info.openable and view.opening(self.target) < MIN_OPENING:
            opening = view.opening(self.target)
            raise fail(
                "closed", f"{self.target} is open by {opening:.0%} only.", container=self.target, opening=opening
            )

    def _look_at_hand(self) -> None:
        tool_pos, tool_rot = self.tool_pose()
        hand = in_hand(self.ctx.view, self.thing, tool_pos, tool_rot, self.width_m)
        if hand is None:
            raise fail("not_found", f"It is not known how {self.thing} lies in the hand.")
        middle = hand.corners_tool_m.mean(axis=0)
        size = float(np.linalg.norm(np.ptp(hand.corners_tool_m, axis=0)))
        if np.linalg.norm(middle) > 0.1 + size / 2 or self.width_m < EMPTY_WIDTH_M:
            raise fail("dropped", f"{self.thing} was lost on the way.", distance_m=float(np.linalg.norm(middle)))
        self._hand = hand

    def _plan(self, bad_bases: list[Array], *, stay: bool = False) -> tuple[ReachPlan | None, Spot | None]:
        """Search spots and bases together, the best few spots first."""
        view, hand = self.ctx.view, self._hand
        assert hand is not None
        spots = free_spots(view, self.thing, self.target, self.relation, hand, self.ctx.rng)
        if not spots:
            raise fail("occupied", f"No free spot is left {self.relation} {self.target} for {self.thing}.")
        here = self.base_xyyaw
        chosen = _spread(spots, _SPOTS_AT_ONCE * _SPOT_BATCHES)
        for first in range(0, len(chosen), _SPOTS_AT_ONCE):
            batch = chosen[first : first + _SPOTS_AT_ONCE]
            if stay:
                bases, cost = here[None], np.zeros(1)
            else:
                parts = [
                    stand_poses(
                        view,
                        s.point_world_m,
                        here,
                        ignore=(self.thing,),
                        outward_world=None if s.compartment is None else s.compartment.outward_world,
                    )
                    for s in batch
                ]
                bases = np.concatenate([p[0] for p in parts])
                cost = np.concatenate([p[1] for p in parts])
                for bad in bad_bases:
                    keep = np.hypot(*(bases[:, :2] - bad[:2]).T) > 0.12
                    bases, cost = bases[keep], cost[keep]
            plan = self._search(batch, bases, cost)
            if plan is not None:
                gap = [float(np.linalg.norm(plan.tool.way_in_world_m[-1] - s.point_world_m)) for s in batch]
                return plan, batch[int(np.argmin(gap))]
        return None, None

    def _search(self, spots: list[Spot], bases: Array, cost: Array) -> ReachPlan | None:
        hand, view = self._hand, self.ctx.view
        assert hand is not None
        paths = [p for s in spots for p in place_paths(hand, s) if self._is_near_enough(p, hand)]
        center = np.mean([s.point_world_m for s in spots], axis=0)
        boxes = scene_boxes(view, ignore=(self.thing,)).near(center, 1.7)
        held = held_points(view, self.thing, *self.tool_pose())
        obstacles = Obstacles(
            free=boxes, near=boxes, held_in_tool_m=[held] * len(paths), held_out_tool_m=[None] * len(paths)
        )
        width = min(0.11, hand.width_m + 0.036)
        return find_reach(bases, cost, paths, obstacles, self.posture, width_m=width)

    def _is_near_enough(self, path: ToolPath, hand: InHand) -> bool:
        """Whether a thing put down this way would really be next to the target: a long one may point away from it."""
        pose = self.ctx.view.pose(self.target)
        if self.relation != "nextto" or pose is None:
            return True
        info = self.ctx.view.info.entities[self.target]
        rot = matrix_of_quat(pose.quat_wxyz)
        center, half = pose.pos_world_m + rot @ info.box_center_m, np.abs(rot) @ info.half_size_m
        corners = path.way_in_world_m[-1] + hand.corners_tool_m @ path.rot_world.T
        low, high = corners.min(axis=0), corners.max(axis=0)
        gap = np.maximum(np.maximum(low - center - half, center - half - high), 0.0)[:2]
        return 0.01 < float(np.hypot(*gap)) < 0.12

    def _unreachable(self) -> SkillFailureError:
        return fail("unreachable", f"No stand and arm posture put {self.thing} {self.relation} {self.target}.")

    def _put(self, plan: ReachPlan) -> Script:
        assert self._hand is not None
        yield from self.follow(plan.unfold[1:], speed_ratio=0.8)
        yield from self.follow(plan.way_in[1:], speed_ratio=_PLACE_SPEED)
        if self.width_m < EMPTY_WIDTH_M:
            raise fail("dropped", f"{self.thing} slipped out of the fingers before it was put down.")
        yield from self.grip(plan.tool.width_m, 30.0)
        yield from self.wait(0.2)
        yield from self.follow(plan.way_out[1:], speed_ratio=_LEAVE_SPEED)
        self.command[10:12] = 0.04, 30.0
        # Where it came to rest, the thing is an obstacle now, which no plan made before could know.
        yield from self.tuck()

    def _verify(self) -> None:
        """Look whether the thing rests where it should."""
        view = self.ctx.view
        pose = view.pose(self.thing)
        if pose is None:
            return
        shape = shape_of(view.info.entities[self.thing], pose)
        x, y, z = (float(v) for v in shape.center_world_m)
        if not self._is_there(shape.center_world_m, shape.bottom_m):
            raise fail("dropped", f"{self.thing} did not stay {self.relation} {self.target}.", x_m=x, y_m=y, z_m=z)

    def _is_there(self, center: Array, bottom_m: float) -> bool:
        view = self.ctx.view
        info = view.info.entities[self.target]
        if self.relation == "nextto" or (self.relation == "on" and info.movable):
            pose = view.pose(self.target)
            if pose is None:
                return True
            half = np.abs(matrix_of_quat(pose.quat_wxyz)) @ info.half_size_m
            mine = view.info.entities[self.thing].half_size_m.max()
            gap = np.abs(center - pose.pos_world_m) - half - mine
            return bool((gap[:2] < 0.15).all() and gap[2] < 0.05)
        for region in compartments_of(view, info):
            local, half = region.local(center), region.region.half_size_m
            flat = bool((np.abs(local[:2]) <= half[:2] + 0.02).all())
            top = float(region.center_world_m[2])
            if self.relation == "in" and region.region.kind == "interior" and (np.abs(local) <= half + 0.02).all():
                return True
            if self.relation == "on" and region.region.kind == "surface" and flat and -0.03 < bottom_m - top < 0.05:
                return True
            if self.relation == "under" and region.region.kind == "surface" and flat and bottom_m < top:
                return True
        return False


def _spread(spots: list[Spot], count: int) -> list[Spot]:
    """Return up to ``count`` spots, best first, at least 6 cm from each other."""
    found: list[Spot] = []
    for spot in spots:
        if len(found) == count:
            break
        if all(np.linalg.norm(spot.point_world_m - f.point_world_m) > 0.06 for f in found):
            found.append(spot)
    return found


PLACE = Place()
