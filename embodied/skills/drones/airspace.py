"""Where a drone may fly: obstacles as boxes, sight lines and paths between points."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embodied.skills.contract import SceneView
from embodied_controllers.quadrotor.dynamics import rotation

Array = NDArray[np.float64]
CLEARANCE_M = 0.22  # rotor tips at 0.07 m, gusts move the vehicle by under 0.1 m, and some air to spare
CELL_M = 0.2
FLOOR_M = 0.35  # lowest cruise height above the ground
_FLAT_M = 0.06  # pads and floor tiles are no obstacles
_ROBOT_HALF_M = 0.15
_MOVES = [m for m in product((-1, 0, 1), repeat=3) if any(m)]


@dataclass(frozen=True, slots=True)
class Airspace:
    """Boxes of one moment.

    Attributes:
      names: (n) entity of each box.
      center_m: (n, 3) centres, world.
      rot_world: (n, 3, 3) axes of the boxes, columns in the world frame.
      half_m: (n, 3) half sizes along those axes.
      low_m: (3,) lower corner of the space that may be flown in.
      high_m: (3,) upper corner.
    """

    names: tuple[str, ...]
    center_m: Array
    rot_world: Array
    half_m: Array
    low_m: Array
    high_m: Array

    @classmethod
    def from_view(cls, view: SceneView, agent: str) -> Airspace:
        """Take the obstacles from what an agent knows: the solids of fixtures and things, and other robots."""
        names: list[str] = []
        centers, rots, halves = [], [], []
        for entity in view.info.entities.values():
            if entity.half_size_m[2] < _FLAT_M or "floor" in entity.properties:
                continue
            for solid in entity.solids:
                pose = view.body_pose(solid.body)
                if pose is None:
                    continue
                rot = rotation(pose.quat_wxyz[None])[0]
                names.append(entity.name)
                centers.append(pose.pos_world_m + rot @ solid.center_body_m)
                rots.append(rot @ solid.rot_body)
                halves.append(solid.half_size_m)
        for robot in view.info.robots:
            pose = view.pose(robot)
            if robot != agent and pose is not None:
                names.append(robot)
                centers.append(pose.pos_world_m)
                rots.append(np.eye(3))
                halves.append(np.full(3, _ROBOT_HALF_M))
        low, high = _bounds(view)
        shape = (len(names), 3)
        return cls(
            tuple(names),
            np.array(centers).reshape(shape),
            np.array(rots).reshape(*shape, 3),
            np.array(halves).reshape(shape),
            low,
            high,
        )

    def blocked(self, points_m: Array, clearance_m: float = CLEARANCE_M) -> NDArray[np.bool_]:
        """Return (p,) whether each of (p, 3) points comes closer to a box than ``clearance_m`` (along its axes)."""
        hit = np.zeros(len(points_m), dtype=bool)
        reach = np.einsum("nij,nj->ni", np.abs(self.rot_world), self.half_m + clearance_m)
        for i in range(len(self.names)):
            gap = points_m - self.center_m[i]
            near = np.flatnonzero((np.abs(gap) <= reach[i]).all(axis=1))
            if near.size:
                local = gap[near] @ self.rot_world[i]
                hit[near] |= (np.abs(local) <= self.half_m[i] + clearance_m).all(axis=1)
        return hit

    def segment_free(self, start_m: Array, end_m: Array, clearance_m: float = CLEARANCE_M) -> bool:
        """Whether a straight flight keeps its clearance."""
        return self._first_hit(start_m, end_m, clearance_m, ()) is None

    def blocker(self, start_m: Array, end_m: Array, ignore: Sequence[str] = ()) -> str | None:
        """Return the entity whose box cuts a line of sight, the nearest to its start, or None."""
        return self._first_hit(start_m, end_m, 0.0, ignore)

    def _first_hit(self, start_m: Array, end_m: Array, clearance_m: float, ignore: Sequence[str]) -> str | None:
        """Slab test of one segment against all boxes (Kay and Kajiya 1986)."""
        if not self.names:
            return None
        origin = np.einsum("nji,nj->ni", self.rot_world, start_m - self.center_m)
        ray = np.einsum("nji,j->ni", self.rot_world, end_m - start_m)
        ray = np.where(np.abs(ray) < 1e-12, 1e-12, ray)
        half = self.half_m + clearance_m
        first, second = (-half - origin) / ray, (half - origin) / ray
        enter = np.minimum(first, second).max(axis=1)
        leave = np.maximum(first, second).min(axis=1)
        hit = (enter < leave) & (leave > 0.0) & (enter < 1.0)
        for name in ignore:
            hit &= np.array([n != name for n in self.names])
        if not hit.any():
            return None
        return self.names[int(np.argmin(np.where(hit, enter, np.inf)))]

    def path(self, start_m: Array, goal_m: Array, clearance_m: float = CLEARANCE_M) -> list[Array] | None:
        """Return corner points from start to goal, or None if there is no way.

        A straight line if it is free, else A* on a grid of 20 cm with 26 neighbours (Hart, Nilsson and Raphael 1968),
        shortened where the sight is free.
        The start may be too close to something (a pad beside a wall): its first cells are then allowed.
        """
        if self.segment_free(start_m, goal_m, clearance_m):
            return [start_m, goal_m]
        if self.blocked(goal_m[None], clearance_m)[0]:
            return None
        is_tight = bool(self.blocked(start_m[None], clearance_m)[0])
        # cells are points: an edge between two free ones may cut a corner, so the way is checked and sought again with
        # more room if it does
        for extra_m in (0.06, 0.12, 0.0):
            cells = self._search(start_m, goal_m, clearance_m + extra_m)
            if cells is None:
                continue
            points = self._shorten([start_m, *cells, goal_m], clearance_m)
            legs = list(pairwise(points))[1 if is_tight else 0 :]
            if all(self.segment_free(a, b, clearance_m) for a, b in legs):
                return points
        return None

    def _search(self, start_m: Array, goal_m: Array, clearance_m: float) -> list[Array] | None:
        shape = np.maximum(np.ceil((self.high_m - self.low_m) / CELL_M).astype(int) + 1, 1)
        axes = [self.low_m[k] + CELL_M * np.arange(shape[k]) for k in range(3)]
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
        closed: Any = self.blocked(grid, clearance_m).reshape(tuple(shape)).tolist()
        nx, ny, nz = shape.tolist()
        first = _cell(start_m, self.low_m, shape)
        last = _cell(goal_m, self.low_m, shape)
        steps = [(dx, dy, dz, sqrt(dx * dx + dy * dy + dz * dz)) for dx, dy, dz in _MOVES]
        best = {first: 0.0}
        parent: dict[tuple[int, int, int], tuple[int, int, int]] = {}
        queue: list[tuple[float, tuple[int, int, int]]] = [(_gap(first, last), first)]
        done: set[tuple[int, int, int]] = set()
        while queue:
            _, here = heapq.heappop(queue)
            if here == last:
                break
            if here in done:
                continue
            done.add(here)
            x, y, z = here
            for dx, dy, dz, length in steps:
                i, j, k = x + dx, y + dy, z + dz
                if not (0 <= i < nx and 0 <= j < ny and 0 <= k < nz):
                    continue
                there = (i, j, k)
                if closed[i][j][k] and there != last and not (closed[x][y][z] and _gap(there, first) < 3):
                    continue
                cost = best[here] + length
                if cost < best.get(there, 1e18):
                    best[there] = cost
                    parent[there] = here
                    heapq.heappush(queue, (cost + _gap(there, last), there))
        else:
            return None
        cells = []
        while here != first:
            cells.append(self.low_m + CELL_M * np.array(here, dtype=np.float64))
            here = parent[here]
        return cells[:0:-1]

    def _shorten(self, points: list[Array], clearance_m: float) -> list[Array]:
        kept = [points[0]]
        at = 0
        while at < len(points) - 1:
            to = len(points) - 1
            while to > at + 1 and not self.segment_free(points[at], points[to], clearance_m):
                to -= 1
            kept.append(points[to])
            at = to
        return kept


def _bounds(view: SceneView) -> tuple[Array, Array]:
    rects = np.array([r.rect_m for r in view.info.rooms], dtype=np.float64).reshape(-1, 4)
    if not len(rects):
        return np.array([-10.0, -10.0, FLOOR_M]), np.array([10.0, 10.0, 4.0])
    low, high = rects[:, :2].min(axis=0) + 0.3, rects[:, 2:].max(axis=0) - 0.3
    return np.array([*low, FLOOR_M]), np.array([*high, 4.0])


def _cell(point_m: Array, low_m: Array, shape: NDArray[np.int_]) -> tuple[int, int, int]:
    i, j, k = np.clip(np.round((point_m - low_m) / CELL_M).astype(int), 0, shape - 1).tolist()
    return i, j, k


def _gap(a: tuple[int, int, int], b: tuple[int, int, int]) -> float:
    return sqrt((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2)
