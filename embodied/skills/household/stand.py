"""Where a base can stand to reach a point: free floor around it, and what it costs to get there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from embodied.skills.contract import SceneView
from embodied.skills.household.navigation import floor_bounds
from embodied_controllers.base.grid_path import NoPathError, OccupancyGrid, box_clearance

Array = NDArray[np.float64]

STAND_RADIUS_M = 0.285  # drum and a little: the arm is above furniture or checked against it
_DISTANCES_M = np.arange(0.45, 1.0, 0.075)
_BEARINGS = 32
_SPEED_MPS = 0.45  # average of a drive with its turns


def stand_poses(
    view: SceneView,
    point_world_m: Array,
    here_xyyaw: Array,
    *,
    ignore: Sequence[str] = (),
    outward_world: Array | None = None,
) -> tuple[Array, Array]:
    """Return base poses (n, 3) that look at a point and the cost of getting there (n,) [s].

    Args:
      view: for obstacles on the floor.
      point_world_m: (3,) what shall be reached.
      here_xyyaw: (3,) present base pose; it is offered too, for nothing, if near enough.
      ignore: entities that are no obstacles.
      outward_world: (2,) side to stand on; None allows all.
    """
    target = point_world_m[:2]
    angle = np.arange(_BEARINGS) * (2 * np.pi / _BEARINGS)
    if outward_world is not None:
        front = np.arctan2(outward_world[1], outward_world[0])
        angle = front + np.deg2rad(np.linspace(-50.0, 50.0, 15))
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    xy = (target + _DISTANCES_M[:, None, None] * ring[None]).reshape(-1, 2)
    boxes = view.footprints(ignore=ignore)
    free = box_clearance(xy, boxes) >= STAND_RADIUS_M
    xy = xy[free]
    cost = travel_s(view, boxes, here_xyyaw[:2], xy, target)
    keep = np.isfinite(cost)
    xy, cost = xy[keep], cost[keep]
    clear = box_clearance(xy, boxes) if len(xy) else np.zeros(0)
    distance = np.hypot(*(xy - target).T) if len(xy) else np.zeros(0)
    # Close to obstacles or at arm's length is possible, but seldom best.
    cost = cost + 4.0 * np.clip(0.34 - clear, 0.0, None) * 5.0 + 6.0 * np.clip(distance - 0.72, 0.0, None)
    yaw = np.arctan2(target[1] - xy[:, 1], target[0] - xy[:, 0])
    poses = np.concatenate([xy, yaw[:, None]], axis=1)
    near = float(np.hypot(*(target - here_xyyaw[:2])))
    if near < 1.05:
        poses = np.concatenate([here_xyyaw[None], poses])
        cost = np.concatenate([[0.0], cost + 1.0])
    return poses, cost


def travel_s(view: SceneView, boxes: Array, here: Array, xy: Array, target: Array) -> Array:
    """Return (n,) the time [s] to drive to each of (n, 2) points; inf where there is no way.

    Args:
      view: for the bounds of the floor.
      boxes: (n, 5) obstacles on the floor, see :meth:`SceneView.footprints`.
      here: (2,) where the base is, world [m].
      xy: (n, 2) points, world [m].
      target: (2,) what the points are for; the grid reaches that far.
    """
    if len(xy) == 0:
        return np.zeros(0)
    grid = OccupancyGrid(boxes, radius_m=0.28, bounds_m=floor_bounds(view, here, target), cell_m=0.06)
    start = grid.nearest_free(here, 0.6)
    if start is None:
        return np.full(len(xy), np.inf)
    try:
        field, _ = grid.field(start)
    except NoPathError:
        return np.full(len(xy), np.inf)
    cost = np.full(len(xy), np.inf)
    for i, p in enumerate(xy):
        cell = grid.cell(p)
        if cell is None:
            continue
        if grid.blocked.flat[cell]:
            cell = grid.nearest_free(p, 0.09)
        if cell is not None:
            cost[i] = field[cell] * grid.cell_m / _SPEED_MPS
    return cost
