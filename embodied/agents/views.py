"""What skills see of a world: the truth for privileged agents, a belief for all others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from embodied.graph.facts import Graph
from embodied.skills.contract import EntityPose
from embodied.worlds.contract import PhysicsWorld
from embodied_scenes.info import EntityInfo, SceneInfo

Array = NDArray[np.float64]
_ROBOT_HALF_M = 0.35
_LOW_OBSTACLE_M = 0.02  # what lies flatter than this can be driven over
_TALLEST_ROBOT_M = 1.6
_NEAR_M = 2.5  # within this, doors that a robot uses are seen and felt at every moment


class TruthView:
    """Poses and facts as they are. One per agent, because an agent does not see itself as an obstacle.

    Args:
      world: the physics world.
      agent: the robot that looks.
      env_index: environment of the batch.
    """

    def __init__(self, world: PhysicsWorld, agent: str, env_index: int = 0) -> None:
        self._world = world
        self._agent = agent
        self._env = env_index
        model = world.scene.model
        self.info: SceneInfo = world.scene.info
        self._body_ids = {model.body(i).name: i for i in range(model.nbody)}
        self._walls = _wall_boxes(world)
        self._openings = {
            e.name: (int(model.joint(e.joint).qposadr[0]), e.joint_upper)
            for e in self.info.entities.values()
            if e.joint is not None
        }
        self._graph: Graph | None = None

    @property
    def graph(self) -> Graph:
        """The truth graph, read once per moment."""
        if self._graph is None:
            self._graph = self._world.graph(self._env)
        return self._graph

    def new_moment(self) -> None:
        """Forget the graph: the world was stepped or edited."""
        self._graph = None

    def pose(self, entity: str) -> EntityPose | None:
        """Pose of an entity's root, of a robot or of a place; None if there is none of that name."""
        if entity in self.info.entities:
            return self.body_pose(self.info.entities[entity].root)
        if entity in self.info.robots:
            return self.body_pose(self.info.robots[entity].root)
        if entity in self.info.places:
            place = self.info.places[entity]
            half = place.yaw_rad / 2
            return EntityPose(
                pos_world_m=place.pos_world_m.copy(), quat_wxyz=np.array([np.cos(half), 0.0, 0.0, np.sin(half)])
            )
        return None

    def body_pose(self, body: str) -> EntityPose | None:
        """Pose of one body by its engine name."""
        index = self._body_ids.get(body)
        if index is None:
            return None
        return EntityPose(
            pos_world_m=self._world.body_pos_world_m[self._env, index].copy(),
            quat_wxyz=self._world.body_quat_wxyz[self._env, index].copy(),
        )

    def opening(self, entity: str) -> float:
        """Opening fraction in [0, 1]; 0 for what cannot be opened."""
        if entity not in self._openings:
            return 0.0
        address, upper = self._openings[entity]
        return float(self._world.qpos[self._env, address]) / upper

    def footprints(self, *, ignore: Sequence[str] = ()) -> Array:
        """(n, 5) floor boxes (cx, cy, half x, half y [m], yaw [rad]) of walls, entities and other robots."""
        rows = [self._walls]
        held = {f.args[1] for f in self.graph.facts if f.predicate == "holding"}
        for entity in self.info.entities.values():
            if entity.name in ignore or entity.name in held or "floor" in entity.properties:
                continue
            rows.append(self._entity_boxes(entity))
        for name in self.info.robots:
            pose = self.pose(name)
            if name not in ignore and name != self._agent and pose is not None:
                rows.append(np.array([[*pose.pos_world_m[:2], _ROBOT_HALF_M, _ROBOT_HALF_M, 0.0]]))
        return np.concatenate(rows)

    def _entity_boxes(self, entity: EntityInfo) -> Array:
        """Boxes of an entity's geoms that a robot of the height of a person would touch, one box per body."""
        model = self._world.scene.model
        rows = []
        for body in entity.bodies:
            index = self._body_ids[body]
            first, count = int(model.body_geomadr[index]), int(model.body_geomnum[index])
            ids = [g for g in range(first, first + count) if model.geom_contype[g] or model.geom_conaffinity[g]]
            if ids:
                rows.append(self._body_box(index, np.array(ids)))
        found = [r for r in rows if r is not None]
        return np.array(found).reshape(-1, 5)

    def _body_box(self, body: int, geoms: NDArray[np.int64]) -> Array | None:
        """Return one floor box around some geoms of a body, aligned with the body's heading."""
        model, world, env = self._world.scene.model, self._world, self._env
        w, x, y, z = world.body_quat_wxyz[env, body]
        yaw = float(np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))
        cos, sin = np.cos(yaw), np.sin(yaw)
        to_heading = np.array([[cos, sin, 0.0], [-sin, cos, 0.0], [0.0, 0.0, 1.0]])
        rot = world.geom_rot_world[env, geoms].reshape(-1, 3, 3)
        turn = to_heading @ rot
        center = (world.geom_pos_world_m[env, geoms] @ to_heading.T) + np.einsum(
            "nij,nj->ni", turn, model.geom_aabb[geoms, :3]
        )
        half = np.einsum("nij,nj->ni", np.abs(turn), model.geom_aabb[geoms, 3:])
        low, high = (center - half).min(axis=0), (center + half).max(axis=0)
        if high[2] < _LOW_OBSTACLE_M or low[2] > _TALLEST_ROBOT_M:
            return None
        middle = (low + high) / 2
        return np.array([*(to_heading.T @ middle)[:2], *((high - low) / 2)[:2], yaw])


def _wall_boxes(world: PhysicsWorld) -> Array:
    """(n, 5) floor boxes of the walls, which never move."""
    model = world.scene.model
    rows = []
    for index in range(model.nbody):
        if model.body(index).name.startswith("wall_"):
            geom = int(model.body_geomadr[index])
            w, _, _, z = model.body_quat[index]
            rows.append([*model.body_pos[index, :2], *model.geom_size[geom, :2], 2 * np.arctan2(z, w)])
    return np.array(rows, dtype=np.float64).reshape(-1, 5)


class BeliefView:
    """Poses as last perceived, over the static map. What was never seen has no pose.

    Args:
      truth: the sensor side; asked only for what is being perceived.
      graph: the belief at the start.
    """

    def __init__(self, truth: TruthView, graph: Graph, agent: str) -> None:
        self._truth = truth
        self._agent = agent
        self.info = truth.info
        self.graph = graph
        self._poses: dict[str, EntityPose] = {}
        self._openings: dict[str, float] = {}

    def perceive(self, entities: Sequence[str]) -> None:
        """Take what the sensors show now of ``entities``: poses, openings and the facts between known things."""
        truth = self._truth.graph
        for name in entities:
            pose = self._truth.pose(name)
            if pose is not None:
                self._poses[name] = pose
            if name in self.info.entities and self.info.entities[name].openable:
                self._openings[name] = self._truth.opening(name)
        seen = set(entities)
        stale = {f for f in self.graph.facts if f.args and f.args[0] in seen}
        fresh = {f for f in truth.facts if f.args and f.args[0] in seen and all(self._is_known(a) for a in f.args)}
        self.graph = Graph(self.graph.nodes, (self.graph.facts - stale) | frozenset(fresh))

    def _is_known(self, name: str) -> bool:
        entity = self.info.entities.get(name)
        return entity is None or not entity.movable or name in self._poses

    @property
    def known(self) -> frozenset[str]:
        """Movable things that were perceived at least once."""
        return frozenset(n for n in self._poses if n in self.info.entities and self.info.entities[n].movable)

    def pose(self, entity: str) -> EntityPose | None:
        """Pose as last perceived; a held thing moves with the hand, fixtures, robots and places are on the map."""
        info = self.info.entities.get(entity)
        if info is None or not info.movable or self.graph.holds("holding", self._agent, entity):
            return self._truth.pose(entity)
        return self._poses.get(entity)

    def body_pose(self, body: str) -> EntityPose | None:
        """Pose of a body: of fixtures as they are (doors are large and near when used), of things as perceived."""
        info = self.info.entities.get(body)
        if info is not None and info.movable:
            return self.pose(body)
        return self._truth.body_pose(body)

    def opening(self, entity: str) -> float:
        """Opening as the robot feels and sees it while near, else as last perceived."""
        pose, own = self._truth.pose(entity), self._truth.pose(self._agent)
        is_near = (
            pose is not None and own is not None and np.linalg.norm((pose.pos_world_m - own.pos_world_m)[:2]) < 2.5
        )
        if is_near:
            self._openings[entity] = self._truth.opening(entity)
        return self._openings.get(entity, 0.0)

    def footprints(self, *, ignore: Sequence[str] = ()) -> Array:
        """Obstacles as a safety lidar would give them: the truth around the robot."""
        return self._truth.footprints(ignore=ignore)
