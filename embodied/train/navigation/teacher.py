"""Who knows the map: the grid planner's cost field towards the goal, pursued a little ahead.

The field is that of ``embodied_controllers.base.grid_path``; one field per room answers for every place in it, so that
a whole batch of robots is labelled by table look-ups wherever the learner has led them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from embodied.train.navigation.rooms import Room
from embodied_controllers.base.grid_path import OccupancyGrid

Array = NDArray[np.float64]

SPEED_MAX_MPS, YAW_RATE_MAX_RADPS = 0.8, 1.2
_AHEAD_CELLS = 7
_TURN_RAD = 1.0  # heading error above which it turns on the spot
_ESCAPE_ROUNDS = 9


class Teacher:
    """Labels a batch of rooms.

    Args:
      rooms: one per environment.
    """

    def __init__(self, rooms: Sequence[Room]) -> None:
        self._goals = np.stack([room.goal_world_m for room in rooms])
        carrots, clearances, shapes, cell_m = [], [], [], 0.0
        for room in rooms:
            grid = room.grid()
            carrots.append(_carrots(grid, room.goal_world_m))
            clearances.append(grid.clearance_m.reshape(-1))
            shapes.append((grid.nx, grid.ny))
            cell_m = grid.cell_m
        most = max(len(c) for c in carrots)
        self._carrots = np.stack([np.pad(c, ((0, most - len(c)), (0, 0))) for c in carrots])
        self._clearance = np.stack([np.pad(c, (0, most - len(c))) for c in clearances])
        self._shape = np.array(shapes)
        self._cell_m = cell_m

    def act(self, pose: Array) -> Array:
        """Return (n, 2) forward speeds [m/s] and turning rates [rad/s].

        Args:
          pose: (n, 3) x, y [m] and yaw [rad] of each robot in its world.
        """
        row = np.arange(len(pose))
        i = np.clip((pose[:, 0] / self._cell_m).astype(np.int64) + 1, 1, self._shape[:, 0] - 2)
        j = np.clip((pose[:, 1] / self._cell_m).astype(np.int64) + 1, 1, self._shape[:, 1] - 2)
        cell = j * self._shape[:, 0] + i
        carrot, clearance = self._carrots[row, cell], self._clearance[row, cell]
        left = self._goals - pose[:, :2]
        distance = np.hypot(left[:, 0], left[:, 1])
        ahead = np.where((distance < 0.5)[:, None], left, carrot - pose[:, :2])
        error = _wrap(np.arctan2(ahead[:, 1], ahead[:, 0]) - pose[:, 2])
        speed = SPEED_MAX_MPS * np.clip(1.0 - (np.abs(error) / _TURN_RAD) ** 1.5, 0.0, 1.0)
        # Slow near things and near the goal; a turn at speed swings the tail out.
        speed = np.minimum(speed, 0.3 + 1.2 * np.clip(clearance - 0.5, 0.0, 1.0))
        speed = np.minimum(speed, 0.15 + 0.8 * distance)
        return np.column_stack([speed, np.clip(2.2 * error, -YAW_RATE_MAX_RADPS, YAW_RATE_MAX_RADPS)])


def _carrots(grid: OccupancyGrid, goal_world_m: Array) -> Array:
    """Return (cells, 2) for every cell the point of the best way that lies some cells ahead."""
    goal = grid.cell(goal_world_m)
    assert goal is not None
    _, parent = grid.field(goal)
    flow = np.where(parent < 0, np.arange(parent.size), parent)
    known = parent >= 0
    known[goal] = True
    _lead_out(grid, flow, known)
    at = np.arange(flow.size)
    for _ in range(_AHEAD_CELLS):
        at = flow[at]
    x0_m, y0_m, _, _ = grid.bounds_m
    points = np.column_stack([x0_m + (at % grid.nx - 0.5) * grid.cell_m, y0_m + (at // grid.nx - 0.5) * grid.cell_m])
    points[at == goal] = goal_world_m
    return points.astype(np.float64)


def _lead_out(grid: OccupancyGrid, flow: NDArray[np.int64], known: NDArray[np.bool_]) -> None:
    """Let cells too close to a box flow to the nearest free one, ring by ring."""
    nx = grid.nx
    inner = np.zeros((grid.ny, nx), dtype=bool)
    inner[1:-1, 1:-1] = True
    for _ in range(_ESCAPE_ROUNDS):
        lost = np.flatnonzero(inner.reshape(-1) & ~known)
        if not lost.size:
            return
        reached = np.zeros(lost.size, dtype=bool)
        for step in (1, -1, nx, -nx, nx + 1, nx - 1, 1 - nx, -nx - 1):
            new = ~reached & known[lost + step]
            flow[lost[new]] = (lost + step)[new]
            reached |= new
        known[lost[reached]] = True


def _wrap(angle_rad: Array) -> Array:
    return (angle_rad + np.pi) % (2.0 * np.pi) - np.pi
