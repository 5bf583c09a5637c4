"""What household generators share: a compiled scene with the poses of its furniture, free spots, and witness plans."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from embodied.errors import TaskError
from embodied.graph.facts import Fact, Graph
from embodied.skills.contract import SkillCall
from embodied.tasks.placement import Boxes, Floor, Pose, Spot, entity_boxes, free_spots
from embodied.worlds.mujoco import MujocoWorld
from embodied_scenes.builders import compile_scene
from embodied_scenes.info import EntityInfo, RegionInfo
from embodied_scenes.spec import SceneSpec

ROBOT = "mobile_manipulator"
AGENT = "robot_0"
_QUARTERS = (0.0, math.pi / 2, math.pi, -math.pi / 2)
_FINGER_M = 0.06  # room for an open finger beside a thing that is grasped from above
_HAND_M = 0.11  # room for half a hand beside a thing that is grasped from the front
_WALL_M = 0.07  # from a thing to the walls of an interior: an open finger is 0.05 m thick with its clearance
_REACH_INTO_M = 0.24  # how deep behind the front edge of an interior a thing may stand


def _room_for_hand(region: RegionInfo) -> tuple[tuple[float, float], ...]:
    """Return distances [m] to keep from other things and from the edges of a region, roomy first, crowded last."""
    if region.approach_root is None:
        return (_FINGER_M, 0.02), (0.5 * _FINGER_M, 0.02), (0.5 * _FINGER_M, 0.02)
    return (_HAND_M, _WALL_M), (0.8 * _HAND_M, 0.75 * _WALL_M), (0.5 * _FINGER_M, 0.3 * _WALL_M)


class Stage:
    """One scene in its closed state, without robots.

    Args:
      scene: the description; compiled once.
    """

    def __init__(self, scene: SceneSpec) -> None:
        self.scene = scene
        world = MujocoWorld(compile_scene(scene))
        world.reset(0)
        self.info = world.scene.info
        self.graph: Graph = world.graph()
        model = world.scene.model
        bodies = {b for e in self.info.entities.values() for b in e.bodies}
        self.poses = {
            b: _pose(world.body_pos_world_m[0, model.body(b).id], world.body_quat_wxyz[0, model.body(b).id])
            for b in bodies
        }
        self.floor = Floor(self.info, self.poses)
        self._perched = [
            e.name for e in self.info.entities.values() if not e.movable and self.poses[e.root].pos_world_m[2] > 0.3
        ]
        self.movable = tuple(sorted(e.name for e in self.info.entities.values() if e.movable))

    def boxes(self, names: Sequence[str]) -> Boxes:
        """Boxes of things at their places in the scene, and of the devices that always stand on furniture."""
        return entity_boxes(self.info, self.poses, [*self._perched, *names])

    def regions(self, fixture: str, relation: str) -> tuple[RegionInfo, ...]:
        """Regions of a fixture that take things ``on`` or ``in``."""
        kind = "interior" if relation == "in" else "surface"
        return tuple(r for r in self.info.entities[fixture].regions if r.kind == kind)

    def spot(
        self,
        thing: EntityInfo,
        fixture: str,
        relation: str,
        taken: Boxes,
        rng: np.random.Generator,
        *,
        is_crowding_allowed: bool = False,
    ) -> Spot | None:
        """Return a free spot for a thing that a robot can reach, or None.

        Args:
          thing: what shall stand there.
          fixture: furniture.
          relation: ``on`` or ``in``.
          taken: boxes of what stands there already.
          rng: source of all choices.
          is_crowding_allowed: take a spot without room for the hand rather than none, as for a full cupboard that is
            emptied from the front.
        """
        regions = self.regions(fixture, relation)
        support = self.info.entities[fixture]
        order = [regions[int(i)] for i in rng.permutation(len(regions))]
        for level in range(3 if is_crowding_allowed else 2):
            for region in order:
                frame, yaws = self.poses[region.body], self._yaws(region)
                gap_m, edge_m = _room_for_hand(region)[level]
                for spot in free_spots(
                    region, frame, thing.half_size_m, taken, rng, yaws_rad=yaws, gap_m=gap_m, margin_m=edge_m
                ):
                    if self._in_reach(spot, region, frame, support, thing):
                        return spot
        return None

    def _yaws(self, region: RegionInfo) -> tuple[float, ...]:
        # Inside furniture the narrow side must face the opening, where the gripper comes from.
        return (0.0,) if region.approach_root is not None else _QUARTERS

    def _in_reach(self, spot: Spot, region: RegionInfo, frame: Pose, support: EntityInfo, thing: EntityInfo) -> bool:
        if region.approach_root is None:
            if "floor" in support.properties:
                return self.floor.clearance_m(*spot.pos_world_m[:2]) >= thing.half_size_m[:2].max() + 0.35
            return self.floor.can_reach(spot.pos_world_m)
        depth = region.half_size_m[0] - float((spot.pos_world_m - frame.pos_world_m)[:2] @ _heading(frame.yaw_rad))
        depth += float(region.center_body_m[0])
        approach = self.poses[support.root]
        front = approach.to_world(support.box_center_m + support.half_size_m * region.approach_root)
        return depth <= _REACH_INTO_M and self.floor.can_reach(front, _rotate(approach.yaw_rad, region.approach_root))

    def agent_pose(self, rng: np.random.Generator, rooms: Sequence[str] | None = None) -> tuple[float, float, float]:
        """Return (x, y, yaw) of a start with room to turn.

        Raises:
          TaskError: no room has a free circle of 0.5 m radius.
        """
        candidates = [r for r in self.info.rooms if rooms is None or r.name in rooms]
        for index in rng.permutation(len(candidates)):
            point = self.floor.free_point(candidates[int(index)].rect_m, 0.5, rng)
            if point is not None:
                return (*point, float(rng.uniform(-math.pi, math.pi)))
        raise TaskError(
            f"{self.scene.id}: no free floor for a robot in {[r.name for r in candidates]}. Move furniture."
        )


def start_pose(spot: Spot, thing: EntityInfo) -> tuple[float, ...]:
    """Pose (x, y, z, qw, qx, qy, qz) of a thing that stands on a spot, a hair above it."""
    x, y, z = spot.entity_pos_m(thing)
    half = spot.yaw_rad / 2
    return (float(x), float(y), float(z) + 0.001, math.cos(half), 0.0, 0.0, math.sin(half))


def taken_by(boxes: Boxes, spot: Spot, thing: EntityInfo) -> Boxes:
    """Add a thing on its spot to the boxes."""
    center = spot.pos_world_m + np.array([0.0, 0.0, thing.half_size_m[2]])
    return boxes.plus(center, thing.half_size_m, spot.yaw_rad)


def carry_plan(
    moves: Iterable[tuple[str, str, str]],
    supports: Mapping[str, Fact],
    openable: frozenset[str],
    *,
    opened: frozenset[str] = frozenset(),
    close: Iterable[str] = (),
) -> tuple[SkillCall, ...]:
    """Return a plan for one arm: open what is in the way first, carry thing by thing, close at the end.

    Args:
      moves: (thing, relation ``in`` or ``on``, target) in order.
      supports: where each thing is now.
      openable: fixtures with a door or drawer.
      opened: those that stand open at the start.
      close: what must be closed at the end.
    """
    plan: list[SkillCall] = []
    open_now = set(opened)

    def make_open(fixture: str) -> None:
        if fixture in openable and fixture not in open_now:
            open_now.add(fixture)
            plan.extend((SkillCall.of("go_to", target=fixture), SkillCall.of("open", target=fixture)))

    for thing, relation, target in moves:
        source = supports[thing]
        if source.predicate == "inside":
            make_open(source.args[1])
        if relation == "in":
            make_open(target)
        plan += [
            SkillCall.of("go_to", target=source.args[1]),
            SkillCall.of("pick", object=thing),
            SkillCall.of("go_to", target=target),
            SkillCall.of("place", object=thing, relation=relation, target=target),
        ]
    for fixture in close:
        if fixture in open_now:
            plan += [SkillCall.of("go_to", target=fixture), SkillCall.of("close", target=fixture)]
    return tuple(plan)


def _pose(pos_m: np.ndarray, quat_wxyz: np.ndarray) -> Pose:
    w, x, y, z = (float(v) for v in quat_wxyz)
    return Pose(np.array(pos_m, dtype=np.float64), math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))


def _heading(yaw_rad: float) -> np.ndarray:
    return np.array([math.cos(yaw_rad), math.sin(yaw_rad)])


def _rotate(yaw_rad: float, vector: np.ndarray) -> np.ndarray:
    c, s = math.cos(yaw_rad), math.sin(yaw_rad)
    return np.array([c * vector[0] - s * vector[1], s * vector[0] + c * vector[1], vector[2]])
