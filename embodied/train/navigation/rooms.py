"""One room per seed: walls, furniture, perhaps a partition, and a drive through it: no maze, seldom a straight line.

Gaps are either wide enough for the robot to turn in or closed, so that what a scanner sees nearby is enough to choose.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from embodied.robots.amr.spec import AMR
from embodied.seeding import stream_rng
from embodied_controllers.base.grid_path import NoPathError, OccupancyGrid, box_clearance, plan_path
from embodied_scenes.builders import CompiledScene, RobotMount, compile_scene
from embodied_scenes.spec import EntitySpec, RoomSpec, SceneSpec, WallSpec

Array = NDArray[np.float64]

ROBOT = "robot"
GAP_M = 1.3
"""Narrowest gap: the robot's circle has a diameter of 0.99 m."""
CLEAR_M = 0.5
"""Clearance of a straight line that the robot's circle could drive."""
_PLAN_RADIUS_M, _CELL_M = 0.56, 0.1
_WALL_HALF_M, _FREE_M = 0.1, 0.75
_BLOCKED_SHARE = 0.8  # of the rooms that are drawn again until the straight line is blocked
_DETOUR_MAX = 1.7
_TRIES = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What a seed stands for.

    Attributes:
      seed: of everything below.
      size_m: (2,) inside of the room, from the world's origin along x and y.
      boxes: (n, 5) all obstacles: centre x, y, half x, half y [m], yaw [rad]; the first four are the outer walls.
      num_walls: how many of the boxes are walls, the outer ones included.
      heights_m: (n,) of the boxes.
      start_xyyaw: (3,) stand of the robot in the world.
      goal_world_m: (2,) where it shall go.
      is_blocked: whether the straight line is too narrow for the robot's circle.
    """

    seed: int
    size_m: Array
    boxes: Array
    num_walls: int
    heights_m: Array
    start_xyyaw: Array
    goal_world_m: Array
    is_blocked: bool

    def grid(self) -> OccupancyGrid:
        """Return the floor as the planner sees it."""
        return _grid(self.boxes, self.size_m)

    def scene(self) -> SceneSpec:
        """Return the room as a scene."""
        walls, entities = [], []
        for i, ((x, y, hx, hy, yaw), height) in enumerate(zip(self.boxes, self.heights_m, strict=True)):
            if i < self.num_walls:
                # Boxes of walls lie along x, turned by their yaw; a wall reaches half its thickness beyond its ends.
                reach = (hx - hy) * np.array([np.cos(yaw), np.sin(yaw)])
                ends = (float(x - reach[0]), float(y - reach[1])), (float(x + reach[0]), float(y + reach[1]))
                walls.append(WallSpec(start_m=ends[0], end_m=ends[1], thickness_m=float(2 * hy), height_m=1.2))
                continue
            entities.append(
                EntitySpec(
                    name=f"box_{i}",
                    category="furniture",
                    model="block",
                    params={"depth_m": float(2 * hx), "width_m": float(2 * hy), "height_m": float(height)},
                    pos_m=(float(x), float(y), 0.0),
                    yaw_rad=float(yaw),
                )
            )
        width, depth = (float(s) for s in self.size_m)
        return SceneSpec(
            id=f"navigation/{self.seed}",
            preset="fleet",
            rooms=(RoomSpec(name="room", category="room", rect_m=(0.0, 0.0, width, depth)),),
            walls=tuple(walls),
            entities=tuple(entities),
        )

    def compile(self) -> CompiledScene:
        """Compile with the robot."""
        return compile_scene(self.scene(), (RobotMount(name=ROBOT, kind=AMR.kind, mjcf=AMR.mjcf),))


def navigation_room(seed: int) -> Room:
    """Return the room of a seed."""
    rng = stream_rng(seed, "layout", "navigation")
    while True:
        size = rng.uniform(6.5, 9.5, 2)
        boxes, num_walls = _furnish(rng, size)
        heights = np.concatenate([np.full(num_walls, 1.2), rng.uniform(0.4, 1.1, len(boxes) - num_walls)])
        found = _drive(rng, boxes, size)
        if found is not None:
            start, goal, is_blocked = found
            return Room(
                seed=seed,
                size_m=size,
                boxes=boxes,
                num_walls=num_walls,
                heights_m=heights,
                start_xyyaw=start,
                goal_world_m=goal,
                is_blocked=is_blocked,
            )


def is_line_clear(boxes: Array, a_world_m: Array, b_world_m: Array) -> bool:
    """Return whether the robot's circle passes along the straight segment between two (2,) points."""
    count = int(np.ceil(np.hypot(*(b_world_m - a_world_m)) / 0.1)) + 1
    points = a_world_m + np.linspace(0.0, 1.0, count)[:, None] * (b_world_m - a_world_m)
    return bool(box_clearance(points, boxes).min() >= CLEAR_M)


def _furnish(rng: np.random.Generator, size: Array) -> tuple[Array, int]:
    width, depth = size
    t, turned = _WALL_HALF_M, np.pi / 2
    boxes = [
        np.array([width / 2, -t, width / 2 + 2 * t, t, 0.0]),
        np.array([width / 2, depth + t, width / 2 + 2 * t, t, 0.0]),
        np.array([-t, depth / 2, depth / 2 + 2 * t, t, turned]),
        np.array([width + t, depth / 2, depth / 2 + 2 * t, t, turned]),
    ]
    if rng.random() < 0.7:
        boxes.append(_partition(rng, size))
    num_walls = len(boxes)
    wanted = int(rng.integers(5, 10))
    for _ in range(_TRIES):
        if len(boxes) - num_walls == wanted:
            break
        is_at_wall = rng.random() < 0.35
        box = _at_wall(rng, size) if is_at_wall else _free_standing(rng, size)
        if _has_room(box, np.array(boxes[: 0 if is_at_wall else 4]).reshape(-1, 5), np.array(boxes[4:]).reshape(-1, 5)):
            boxes.append(box)
    return np.array(boxes), num_walls


def _partition(rng: np.random.Generator, size: Array) -> Array:
    """Return a wall that juts out from one side of the room."""
    axis, is_far = int(rng.integers(2)), bool(rng.integers(2))
    half = float(rng.uniform(0.3, 0.6)) * size[axis] / 2
    center = np.empty(2)
    center[axis] = size[axis] - half if is_far else half
    center[1 - axis] = rng.uniform(0.35, 0.65) * size[1 - axis]
    return np.array([*center, half, 0.08, axis * np.pi / 2])


def _at_wall(rng: np.random.Generator, size: Array) -> Array:
    axis, is_far = int(rng.integers(2)), bool(rng.integers(2))
    half = np.array([rng.uniform(0.3, 0.9), rng.uniform(0.2, 0.4)])
    center = np.empty(2)
    reach = float(half[1]) + 0.02  # solids that touch are refused by the builder
    center[1 - axis] = size[1 - axis] - reach if is_far else reach
    # Its ends stand at the corner or leave room for the robot.
    center[axis] = rng.uniform(half[0] + GAP_M, size[axis] - half[0] - GAP_M)
    return np.array([*center, *half, axis * np.pi / 2])


def _free_standing(rng: np.random.Generator, size: Array) -> Array:
    half = np.array([rng.uniform(0.2, 0.7), rng.uniform(0.2, 0.45)])
    return np.array([*(rng.uniform(0.15, 0.85, 2) * size), *half, rng.uniform(-np.pi, np.pi)])


def _has_room(box: Array, walls: Array, others: Array) -> bool:
    """Return whether a box keeps :data:`GAP_M` from outer walls and other boxes (from points along their edges)."""
    ours = _outline(box)
    if len(walls) and box_clearance(ours, walls).min() < GAP_M:
        return False
    apart = np.hypot(others[:, 0] - box[0], others[:, 1] - box[1]) - np.hypot(others[:, 2], others[:, 3])
    others = others[apart - np.hypot(box[2], box[3]) < GAP_M]
    if not len(others):
        return True
    theirs = np.concatenate([_outline(other) for other in others])
    return bool(min(box_clearance(ours, others).min(), box_clearance(theirs, box[None]).min()) >= GAP_M)


def _outline(box: Array) -> Array:
    x, y, hx, hy, yaw = box
    along, across = (np.linspace(-h, h, max(2, int(np.ceil(h / 0.1)) + 1)) for h in (hx, hy))
    local = np.concatenate(
        [np.column_stack([along, np.full_like(along, s * hy)]) for s in (-1.0, 1.0)]
        + [np.column_stack([np.full_like(across, s * hx), across]) for s in (-1.0, 1.0)]
    )
    c, s = np.cos(yaw), np.sin(yaw)
    return np.array([x, y]) + local @ np.array([[c, s], [-s, c]])


def _grid(boxes: Array, size: Array) -> OccupancyGrid:
    bounds = (0.0, 0.0, float(size[0]), float(size[1]))
    return OccupancyGrid(boxes, radius_m=_PLAN_RADIUS_M, bounds_m=bounds, cell_m=_CELL_M, comfort_m=0.3)


def _drive(rng: np.random.Generator, boxes: Array, size: Array) -> tuple[Array, Array, bool] | None:
    """Return start, goal and whether the line between them is blocked; None when the room offers none."""
    must_block = rng.random() < _BLOCKED_SHARE
    grid: OccupancyGrid | None = None
    for _ in range(_TRIES):
        start, goal = rng.uniform(_FREE_M, size - _FREE_M), rng.uniform(_FREE_M, size - _FREE_M)
        distance = float(np.hypot(*(goal - start)))
        if distance < 3.0 or box_clearance(np.stack([start, goal]), boxes).min() < _FREE_M:
            continue
        is_blocked = not is_line_clear(boxes, start, goal)
        if must_block and not is_blocked:
            continue
        grid = grid or _grid(boxes, size)
        try:
            path = plan_path(grid, start, goal)
        except NoPathError:
            continue
        if path.length_m <= _DETOUR_MAX * distance:
            return np.array([*start, rng.uniform(-np.pi, np.pi)]), goal, is_blocked
    return None
