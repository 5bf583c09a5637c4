"""Free spots on surfaces, in interiors and on floors: pure NumPy over regions and the boxes of what is there.

Used by generators of tasks and by the place skill. A box is upright: centre, half extents and yaw; two boxes are kept
apart by a gap in the plane or in height.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from embodied_scenes.info import EntityInfo, RegionInfo, SceneInfo

Array = NDArray[np.float64]

ROBOT_RADIUS_M = 0.30  # base of the mobile manipulator (0.25 m) and 5 cm of play
STAND_OFF_M = (0.45, 0.60, 0.75)  # from a base to what its arm is to reach


@dataclass(frozen=True, slots=True)
class Pose:
    """Position of a frame in the world, (3,) metres, and its turn about z; frames here never tilt."""

    pos_world_m: Array
    yaw_rad: float

    def to_world(self, local_m: Array) -> Array:
        """Map a (3,) point of the frame into the world."""
        return self.pos_world_m + _turn(self.yaw_rad) @ local_m


@dataclass(frozen=True, slots=True)
class Boxes:
    """Upright boxes: centres (n, 3), half extents (n, 3), yaw (n,)."""

    center_m: Array
    half_m: Array
    yaw_rad: Array

    @classmethod
    def empty(cls) -> Boxes:
        """No boxes."""
        return cls(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0))

    def plus(self, center_m: Array, half_m: Array, yaw_rad: float) -> Boxes:
        """Return these boxes and one more."""
        return Boxes(
            np.vstack([self.center_m, center_m]), np.vstack([self.half_m, half_m]), np.append(self.yaw_rad, yaw_rad)
        )

    def hit(self, center_m: Array, half_m: Array, yaw_rad: float, gap_m: float) -> bool:
        """Whether a box comes closer than ``gap_m`` in the plane to one whose height range it shares."""
        if not len(self.yaw_rad):
            return False
        level = np.abs(self.center_m[:, 2] - center_m[2]) < self.half_m[:, 2] + half_m[2]
        if not level.any():
            return False
        delta = self.center_m[level, :2] - center_m[:2]
        mine, theirs = _axes(np.full(int(level.sum()), yaw_rad)), _axes(self.yaw_rad[level])
        own = np.broadcast_to(half_m[:2], (len(delta), 2))
        apart = np.full(len(delta), -np.inf)
        for axes in (mine, theirs):
            for k in range(2):
                axis = axes[:, k]
                span = np.abs(np.einsum("nd,nkd->nk", axis, mine)) * own
                span_other = np.abs(np.einsum("nd,nkd->nk", axis, theirs)) * self.half_m[level, :2]
                distance = np.abs(np.einsum("nd,nd->n", axis, delta))
                apart = np.maximum(apart, distance - span.sum(axis=1) - span_other.sum(axis=1))
        return bool((apart < gap_m).any())


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A free place: where the middle of the thing's underside comes to stand."""

    pos_world_m: Array
    yaw_rad: float
    region: str

    def entity_pos_m(self, entity: EntityInfo) -> Array:
        """Position of the entity's origin when its box stands on the spot."""
        shift = np.array([0.0, 0.0, entity.half_size_m[2]]) - entity.box_center_m
        return self.pos_world_m + _turn(self.yaw_rad) @ shift


def entity_boxes(info: SceneInfo, poses: Mapping[str, Pose], names: Sequence[str]) -> Boxes:
    """Boxes of entities from the poses of their roots."""
    rows = [
        (poses[n].to_world(info.entities[n].box_center_m), info.entities[n].half_size_m, poses[n].yaw_rad)
        for n in names
    ]
    if not rows:
        return Boxes.empty()
    return Boxes(np.array([r[0] for r in rows]), np.array([r[1] for r in rows]), np.array([r[2] for r in rows]))


def free_spots(
    region: RegionInfo,
    frame: Pose,
    half_size_m: Array,
    taken: Boxes,
    rng: np.random.Generator,
    *,
    yaws_rad: Sequence[float] = (0.0,),
    gap_m: float = 0.06,
    margin_m: float = 0.02,
    tries: int = 64,
) -> Iterator[Spot]:
    """Yield free spots of one region in random order.

    Args:
      region: surface or interior, see :class:`~embodied_scenes.info.RegionInfo`.
      frame: pose of the body that carries the region.
      half_size_m: (3,) half extents of the thing.
      taken: boxes of the movable things that are there.
      rng: source of all choices.
      yaws_rad: turns of the thing against the region's frame to choose from.
      gap_m: distance to keep from other things; room for a finger.
      margin_m: distance to keep from the region's edges.
      tries: candidates to draw.
    """
    floor_z = float(region.center_body_m[2] - region.half_size_m[2])
    if region.kind == "interior" and 2 * half_size_m[2] > 2 * region.half_size_m[2] - 0.01:
        return
    for _ in range(tries):
        turn = float(yaws_rad[int(rng.integers(len(yaws_rad)))])
        extent = np.abs(_turn(turn)[:2, :2]) @ half_size_m[:2]
        room = region.half_size_m[:2] - extent - margin_m
        offset = rng.uniform(-1.0, 1.0, 2)
        if (room < 0).any():
            continue
        local = np.array([*(region.center_body_m[:2] + offset * room), floor_z])
        pos = frame.to_world(local)
        yaw = frame.yaw_rad + turn
        center = pos + np.array([0.0, 0.0, half_size_m[2] + 0.002])
        if not taken.hit(center, half_size_m, yaw, gap_m):
            yield Spot(pos_world_m=pos, yaw_rad=yaw, region=region.name)


class Floor:
    """Where a robot can stand: inside a room, clear of walls and fixtures.

    Args:
      info: the scene.
      poses: poses of the fixtures' roots.
    """

    def __init__(self, info: SceneInfo, poses: Mapping[str, Pose]) -> None:
        solid = [e.name for e in info.entities.values() if not e.movable and "floor" not in e.properties]
        # Things that stand on furniture do not reach the floor.
        low = [n for n in solid if poses[n].pos_world_m[2] < 0.3]
        self._boxes = entity_boxes(info, poses, low)
        self._rooms = info.rooms

    def clearance_m(self, x_m: float, y_m: float) -> float:
        """Distance to the nearest wall line or fixture; negative inside one or outside all rooms."""
        inner = [min(x_m - r.rect_m[0], y_m - r.rect_m[1], r.rect_m[2] - x_m, r.rect_m[3] - y_m) for r in self._rooms]
        wall = max(inner, default=-1.0) - 0.05
        if not len(self._boxes.yaw_rad):
            return wall
        delta = np.array([x_m, y_m]) - self._boxes.center_m[:, :2]
        local = np.einsum("nkd,nd->nk", _axes(self._boxes.yaw_rad), delta)
        outside = np.abs(local) - self._boxes.half_m[:, :2]
        gap = np.linalg.norm(np.maximum(outside, 0.0), axis=1) + np.minimum(outside.max(axis=1), 0.0)
        return min(wall, float(gap.min()))

    def can_reach(self, point_m: Array, approach_world: Array | None = None) -> bool:
        """Whether there is room for a base near a point, from the side of ``approach_world`` if that is given."""
        if approach_world is None:
            headings = np.arange(16) * (np.pi / 8)
        else:
            headings = np.arctan2(approach_world[1], approach_world[0]) + np.array([0.0, 0.35, -0.35])
        for distance in STAND_OFF_M:
            for heading in headings:
                x_m = float(point_m[0] + distance * np.cos(heading))
                y_m = float(point_m[1] + distance * np.sin(heading))
                if self.clearance_m(x_m, y_m) >= ROBOT_RADIUS_M:
                    return True
        return False

    def free_point(
        self, rect_m: Sequence[float], radius_m: float, rng: np.random.Generator
    ) -> tuple[float, float] | None:
        """Return a random point of a rectangle with at least ``radius_m`` of clearance, or None."""
        x0, y0, x1, y1 = rect_m
        for _ in range(400):
            x_m, y_m = float(rng.uniform(x0, x1)), float(rng.uniform(y0, y1))
            if self.clearance_m(x_m, y_m) >= radius_m:
                return x_m, y_m
        return None


def _turn(yaw_rad: float) -> Array:
    c, s = np.cos(yaw_rad), np.sin(yaw_rad)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def _axes(yaw_rad: Array) -> Array:
    """(n, 2, 2) unit axes of turned rectangles: row k is the direction of local axis k."""
    c, s = np.cos(yaw_rad), np.sin(yaw_rad)
    return np.stack([np.stack([c, s], axis=1), np.stack([-s, c], axis=1)], axis=1)
