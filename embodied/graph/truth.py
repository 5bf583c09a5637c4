"""The truth graph: facts read from the poses and contacts of a compiled scene.

Geometry of the predicates, per movable thing with its oriented box:
  ontop: its lowest point is within 3 cm below and 5 cm above a surface and its middle over it.
  inside: its middle is in an interior box (2 cm margin).
  under: its middle is below a surface of something it is not inside of.
  nextto: the horizontal gap between two axis-aligned boxes is below 15 cm and their heights overlap.
  at(thing, place): its middle is within 0.35 m of a place on the floor plan.
  open: a door or drawer stands at more than a tenth of its range.
  holding: both finger pads of a gripper touch it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from embodied.graph.facts import Fact, Graph, Node, fact

if TYPE_CHECKING:
    from embodied.worlds.contract import PhysicsWorld
    from embodied_scenes.builders import CompiledScene
    from embodied_scenes.info import SceneInfo

Array = NDArray[np.float64]

OPEN_FRACTION = 0.1
NEXT_TO_GAP_M = 0.15
AT_PLACE_M = 0.35
_BELOW_SURFACE_M, _ABOVE_SURFACE_M = 0.03, 0.05
_MARGIN_M = 0.02
_CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=np.float64)


def scene_nodes(info: SceneInfo) -> dict[str, Node]:
    """Return the nodes of a scene: entities, rooms, places and agents."""
    nodes: dict[str, Node] = {}
    for entity in info.entities.values():
        kind = "object" if entity.movable else "fixture"
        nodes[entity.name] = Node(name=entity.name, kind=kind, category=entity.category, properties=entity.properties)
    for room in info.rooms:
        nodes[room.name] = Node(name=room.name, kind="room", category=room.category)
    for place in info.places.values():
        nodes[place.name] = Node(name=place.name, kind="place", category=place.category)
    for robot in info.robots.values():
        nodes[robot.name] = Node(name=robot.name, kind="agent", category=robot.kind)
    return nodes


class TruthGraph:
    """Reads facts of one environment of a physics world; build it once per scene."""

    def __init__(self, scene: CompiledScene) -> None:
        info, model = scene.info, scene.model
        self.info = info
        self.nodes = scene_nodes(info)
        self._movable = [e for e in info.entities.values() if e.movable]
        self._all = list(info.entities.values())
        self._roots = np.array([model.body(e.root).id for e in self._all], dtype=np.int64)
        self._is_movable = np.array([e.movable for e in self._all], dtype=bool)
        self._half = np.array([e.half_size_m for e in self._all]).reshape(-1, 3)
        self._center = np.array([e.box_center_m for e in self._all]).reshape(-1, 3)
        regions = [(index, region) for index, e in enumerate(self._all) for region in e.regions]
        self._region_owner = np.array([i for i, _ in regions], dtype=np.int64)
        self._region_body = np.array([model.body(r.body).id for _, r in regions], dtype=np.int64)
        self._region_center = np.array([r.center_body_m for _, r in regions]).reshape(-1, 3)
        self._region_half = np.array([r.half_size_m for _, r in regions]).reshape(-1, 3)
        self._region_is_surface = np.array([r.kind == "surface" for _, r in regions], dtype=bool)
        self._doors = [(e.name, int(model.joint(e.joint).qposadr[0]), e.joint_upper) for e in self._all if e.joint]
        self._places = list(info.places.values())
        self._place_xy = np.array([p.pos_world_m[:2] for p in self._places]).reshape(-1, 2)
        self._robot_roots = {n: model.body(r.root).id for n, r in info.robots.items()}
        self._geom_entity = _geom_to_entity(scene)
        self._pads = {n: _pads(scene, r.prefix) for n, r in info.robots.items()}
        self._static = frozenset(
            fact("inroom", e.name, e.room) for e in self._all if not e.movable and e.room is not None
        )

    def read(self, world: PhysicsWorld, env_index: int = 0) -> frozenset[Fact]:
        """Return the facts of one environment at its present state."""
        pos, quat = world.body_pos_world_m[env_index], world.body_quat_wxyz[env_index]
        held = self._holding(world, env_index)
        found = set(self._static)
        found.update(fact("holding", agent, thing) for thing, agent in held.items())
        found.update(fact("open", n) for n, a, upper in self._doors if world.qpos[env_index, a] > OPEN_FRACTION * upper)
        found.update(self._agents(pos))
        if self._is_movable.any():
            self._placements(pos, quat, held, found)
        return frozenset(found)

    def _agents(self, pos: Array) -> set[Fact]:
        found = set()
        for agent, root in self._robot_roots.items():
            x_m, y_m = float(pos[root, 0]), float(pos[root, 1])
            room = self.info.room_at(x_m, y_m)
            if room:
                found.add(fact("inroom", agent, room))
        return found

    def _placements(self, pos: Array, quat: Array, held: dict[str, str], found: set[Fact]) -> None:
        rot = _matrices(quat[self._roots])
        center = pos[self._roots] + np.einsum("nij,nj->ni", rot, self._center)
        corners = center[:, None, :] + np.einsum("nij,nkj->nki", rot, self._half[:, None, :] * _CORNERS)
        low, high = corners.min(axis=1), corners.max(axis=1)
        movable = np.flatnonzero(self._is_movable)
        self._regions(pos, quat, movable, center, low, high, held, found)
        self._pairs(movable, center, low, high, held, found)
        for index in movable:
            name = self._all[index].name
            room = self.info.room_at(float(center[index, 0]), float(center[index, 1]))
            if room:
                found.add(fact("inroom", name, room))
            if len(self._places):
                gap = np.linalg.norm(self._place_xy - center[index, :2], axis=1)
                found.update(fact("at", name, self._places[i].name) for i in np.flatnonzero(gap < AT_PLACE_M))

    def _regions(
        self,
        pos: Array,
        quat: Array,
        movable: NDArray[np.int64],
        center: Array,
        low: Array,
        high: Array,
        held: dict[str, str],
        found: set[Fact],
    ) -> None:
        if not len(self._region_owner):
            return
        rot = _matrices(quat[self._region_body])
        origin = pos[self._region_body] + np.einsum("rij,rj->ri", rot, self._region_center)
        local = np.einsum("rij,nrj->nri", rot.transpose(0, 2, 1), center[movable, None, :] - origin[None])
        within = np.abs(local) <= self._region_half[None] + _MARGIN_M
        flat = within[:, :, 0] & within[:, :, 1]
        gap = low[movable, 2][:, None] - origin[None, :, 2]
        other = self._region_owner[None, :] != movable[:, None]
        surface = self._region_is_surface[None, :] & other
        on = surface & flat & (gap > -_BELOW_SURFACE_M) & (gap < _ABOVE_SURFACE_M)
        inside = ~self._region_is_surface[None, :] & other & within.all(axis=2)
        under = surface & flat & (high[movable, 2][:, None] < origin[None, :, 2] + 0.005)
        for row, index in enumerate(movable):
            name = self._all[index].name
            contained = {self._all[self._region_owner[r]].name for r in np.flatnonzero(inside[row])}
            if name not in held:
                found.update(fact("inside", name, c) for c in contained)
                owners = {self._all[self._region_owner[r]].name for r in np.flatnonzero(on[row])}
                found.update(fact("ontop", name, o) for o in owners - contained)
            owners = {self._all[self._region_owner[r]].name for r in np.flatnonzero(under[row])}
            found.update(fact("under", name, o) for o in owners - contained)

    def _pairs(
        self, movable: NDArray[np.int64], center: Array, low: Array, high: Array, held: dict[str, str], found: set[Fact]
    ) -> None:
        solid = np.array(["floor" not in e.properties for e in self._all])
        gap_xy = np.maximum(low[movable, None, :2] - high[None, :, :2], low[None, :, :2] - high[movable, None, :2])
        gap = np.linalg.norm(np.maximum(gap_xy, 0.0), axis=2)
        overlap_z = (low[movable, None, 2] < high[None, :, 2]) & (low[None, :, 2] < high[movable, None, 2])
        different = movable[:, None] != np.arange(len(self._all))[None]
        near = (gap < NEXT_TO_GAP_M) & overlap_z & different & solid[None]
        over = (center[movable, None, :2] > low[None, :, :2]).all(axis=2) & (
            center[movable, None, :2] < high[None, :, :2]
        ).all(axis=2)
        rest = low[movable, None, 2] - high[None, :, 2]
        stacked = over & (rest > -0.02) & (rest < 0.02) & different & self._is_movable[None]
        for row, index in enumerate(movable):
            name = self._all[index].name
            if name not in held:
                found.update(fact("ontop", name, self._all[i].name) for i in np.flatnonzero(stacked[row]))
            for i in np.flatnonzero(near[row]):
                found.add(fact("nextto", name, self._all[i].name))
                found.add(fact("nextto", self._all[i].name, name))

    def _holding(self, world: PhysicsWorld, env_index: int) -> dict[str, str]:
        if not any(left and right for left, right in self._pads.values()):
            return {}
        touched: dict[tuple[str, str], set[int]] = {}
        for first, second in world.contacts(env_index).geom_ids.tolist():
            for pad, thing in ((first, second), (second, first)):
                entity = self._geom_entity.get(thing)
                if entity is None:
                    continue
                for agent, sides in self._pads.items():
                    for side, geoms in enumerate(sides):
                        if pad in geoms:
                            touched.setdefault((agent, entity), set()).add(side)
        return {entity: agent for (agent, entity), sides in sorted(touched.items()) if len(sides) == 2}

    def graph(self, world: PhysicsWorld, extra: frozenset[Fact], env_index: int = 0) -> Graph:
        """Return the graph of one environment, with the facts of its state machines added."""
        return Graph(self.nodes, self.read(world, env_index) | extra)


def _matrices(quat_wxyz: Array) -> Array:
    """Return (n, 3, 3) rotation matrices of (n, 4) scalar-first quaternions."""
    w, x, y, z = quat_wxyz.T
    return np.stack(
        [
            np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], axis=1),
            np.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], axis=1),
            np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], axis=1),
        ],
        axis=1,
    )


def _geom_to_entity(scene: CompiledScene) -> dict[int, str]:
    model = scene.model
    found = {}
    for entity in scene.info.entities.values():
        if entity.movable:
            for body in entity.bodies:
                index = model.body(body).id
                first = int(model.body_geomadr[index])
                found.update({first + i: entity.name for i in range(int(model.body_geomnum[index]))})
    return found


def _pads(scene: CompiledScene, prefix: str) -> tuple[frozenset[int], frozenset[int]]:
    """Return the geoms of a robot's two finger pads: those with ``left_pad`` and ``right_pad`` in their names."""
    names = [(i, scene.model.geom(i).name) for i in range(scene.model.ngeom)]
    left = frozenset(i for i, n in names if n.startswith(prefix) and "left_pad" in n)
    right = frozenset(i for i, n in names if n.startswith(prefix) and "right_pad" in n)
    return left, right
