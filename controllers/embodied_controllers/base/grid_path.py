"""Paths on a grid of box footprints: exact clearance, cheapest 8-connected way, straightened by line of sight.

The search is Dial's bucket form of Dijkstra's algorithm (R. Dial, "Algorithm 360: Shortest-path forest with topological
ordering", CACM 12(11), 1969). No edge costs less than one cell, so all cells of a bucket one cell wide are final
together and are expanded in one NumPy call; the result equals Dijkstra's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from embodied_controllers.contract import Array

_SQRT2 = float(np.sqrt(2.0))


class NoPathError(ValueError):
    """No way exists.

    Attributes:
      reason: ``outside`` (not on the grid), ``start_blocked``, ``goal_blocked`` or ``no_route``.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class PathResult:
    """A found way.

    Attributes:
      path_world_m: (n, 2) corners from start to goal, n >= 2.
      length_m: its length.
      cost_m: cost of the grid way before straightening (length weighted by closeness to obstacles).
      start_nudge_m: how far the start had to be moved out of the inflated obstacles.
      goal_nudge_m: the same for the goal; 0 means that the path ends exactly at the goal asked for.
    """

    path_world_m: Array
    length_m: float
    cost_m: float
    start_nudge_m: float
    goal_nudge_m: float


def box_clearance(points_world_m: Array, boxes: Array) -> Array:
    """Return (k,) distances [m] from points to the nearest box, 0 inside, inf without boxes.

    Args:
      points_world_m: (k, 2) points.
      boxes: (n, 5) centre x, y, half x, half y [m], yaw [rad].
    """
    if len(boxes) == 0:
        return np.full(len(points_world_m), np.inf)
    c, s = np.cos(boxes[:, 4]), np.sin(boxes[:, 4])
    dx = points_world_m[:, 0, None] - boxes[None, :, 0]
    dy = points_world_m[:, 1, None] - boxes[None, :, 1]
    ox = np.maximum(np.abs(c * dx + s * dy) - boxes[:, 2], 0.0)
    oy = np.maximum(np.abs(c * dy - s * dx) - boxes[:, 3], 0.0)
    return np.sqrt(ox * ox + oy * oy).min(axis=1)


class OccupancyGrid:
    """A floor grid around box footprints for a round robot.

    Args:
      boxes: (n, 5) obstacles: centre x, y, half x, half y [m], yaw [rad].
      radius_m: radius of the robot with its margin; cells nearer than this to a box are blocked.
      bounds_m: (x0, y0, x1, y1) of the floor; None takes the boxes' extent and a margin of 1 m.
      cell_m: edge of a cell.
      comfort_m: clearance beyond ``radius_m`` from which a cell costs its length only.
      closeness_weight: extra cost per length right at the inflated border.

    Raises:
      ValueError: the boxes are not (n, 5) finite numbers, or a size is not positive.
    """

    def __init__(
        self,
        boxes: Array,
        *,
        radius_m: float,
        bounds_m: tuple[float, float, float, float] | None = None,
        cell_m: float = 0.05,
        comfort_m: float = 0.25,
        closeness_weight: float = 3.0,
    ) -> None:
        boxes = np.asarray(boxes, dtype=np.float64).reshape(-1, 5) if np.size(boxes) == 0 else np.asarray(boxes, float)
        if boxes.ndim != 2 or boxes.shape[1] != 5 or not np.isfinite(boxes).all():
            raise ValueError(f"boxes: got shape {boxes.shape}; expected (n, 5) finite numbers (cx, cy, hx, hy, yaw).")
        if not (cell_m > 0.0 and radius_m >= 0.0 and comfort_m > 0.0 and closeness_weight >= 0.0):
            raise ValueError("cell_m and comfort_m must be > 0, radius_m and closeness_weight >= 0.")
        self.boxes, self.radius_m, self.cell_m = boxes, float(radius_m), float(cell_m)
        c, s = np.abs(np.cos(boxes[:, 4])), np.abs(np.sin(boxes[:, 4]))
        self._reach = np.stack([c * boxes[:, 2] + s * boxes[:, 3], s * boxes[:, 2] + c * boxes[:, 3]], axis=1)
        if bounds_m is None:
            if len(boxes) == 0:
                bounds_m = (-5.0, -5.0, 5.0, 5.0)
            else:
                low, high = (
                    (boxes[:, :2] - self._reach).min(axis=0) - 1.0,
                    (boxes[:, :2] + self._reach).max(axis=0) + 1.0,
                )
                bounds_m = (float(low[0]), float(low[1]), float(high[0]), float(high[1]))
        x0, y0, x1, y1 = bounds_m
        if not (np.isfinite(bounds_m).all() and x1 > x0 and y1 > y0):
            raise ValueError(f"bounds_m: got {bounds_m}; expected finite x0 < x1 and y0 < y1.")
        self.bounds_m = bounds_m
        # One cell of border on each side is always blocked, so that neighbours never leave the array.
        self.nx, self.ny = int(np.ceil((x1 - x0) / cell_m)) + 2, int(np.ceil((y1 - y0) / cell_m)) + 2
        self._x = x0 + (np.arange(self.nx) - 0.5) * cell_m
        self._y = y0 + (np.arange(self.ny) - 0.5) * cell_m
        self.clearance_m = self._clearance_map(radius_m + comfort_m + cell_m)
        blocked = self.clearance_m < radius_m
        blocked[0, :] = blocked[-1, :] = True
        blocked[:, 0] = blocked[:, -1] = True
        self.blocked: NDArray[np.bool_] = blocked
        shortage = np.clip(1.0 - (self.clearance_m - radius_m) / comfort_m, 0.0, 1.0)
        self.cost: Array = 1.0 + closeness_weight * shortage
        self.comfort_m, self.closeness_weight = comfort_m, closeness_weight

    def _clearance_map(self, cap_m: float) -> Array:
        out = np.full((self.ny, self.nx), cap_m)
        for (cx, cy, hx, hy, yaw), (rx, ry) in zip(self.boxes, self._reach, strict=True):
            i0, i1 = np.searchsorted(self._x, [cx - rx - cap_m, cx + rx + cap_m])
            j0, j1 = np.searchsorted(self._y, [cy - ry - cap_m, cy + ry + cap_m])
            if i1 <= i0 or j1 <= j0:
                continue
            c, s = np.cos(yaw), np.sin(yaw)
            dx, dy = self._x[None, i0:i1] - cx, self._y[j0:j1, None] - cy
            ox = np.maximum(np.abs(c * dx + s * dy) - hx, 0.0)
            oy = np.maximum(np.abs(c * dy - s * dx) - hy, 0.0)
            view = out[j0:j1, i0:i1]
            np.minimum(view, np.sqrt(ox * ox + oy * oy), out=view)
        return out

    def cell(self, xy_world_m: Array) -> int | None:
        """Return the flat index of the cell that holds a (2,) point, or None off the grid."""
        x0, y0, x1, y1 = self.bounds_m
        x, y = float(xy_world_m[0]), float(xy_world_m[1])
        if not (x0 <= x <= x1 and y0 <= y <= y1):
            return None
        i = min(int((x - x0) / self.cell_m) + 1, self.nx - 2)
        j = min(int((y - y0) / self.cell_m) + 1, self.ny - 2)
        return j * self.nx + i

    def point(self, cell: int) -> Array:
        """Return the (2,) centre of a cell in the world."""
        return np.array([self._x[cell % self.nx], self._y[cell // self.nx]])

    def is_free(self, points_world_m: Array) -> NDArray[np.bool_]:
        """Return (k,) whether a robot centred at each of (k, 2) points clears all boxes and lies on the grid."""
        points = np.asarray(points_world_m, dtype=np.float64)
        x0, y0, x1, y1 = self.bounds_m
        inside = (points[:, 0] >= x0) & (points[:, 0] <= x1) & (points[:, 1] >= y0) & (points[:, 1] <= y1)
        return inside & (box_clearance(points, self.boxes) >= self.radius_m)

    def nearest_free(self, xy_world_m: Array, max_m: float) -> int | None:
        """Return the free cell nearest to a point within ``max_m``, or None."""
        d2 = (self._x[None, :] - xy_world_m[0]) ** 2 + (self._y[:, None] - xy_world_m[1]) ** 2
        d2 = np.where(self.blocked, np.inf, d2)
        best = int(np.argmin(d2))
        return best if d2.flat[best] <= max_m * max_m else None

    def field(self, start: int, goal: int | None = None) -> tuple[Array, NDArray[np.int64]]:
        """Return cost-to-come [cells] and parent of every cell, flat (ny * nx,), from a free cell.

        Args:
          start: flat index of the first cell.
          goal: stop as soon as this cell is final; other cells may then stay at inf or not yet cheapest.

        Returns:
          The costs (inf where there is no way) and parents (-1 at the start and where there is no way).
        """
        nx = self.nx
        offsets = np.array([1, -1, nx, -nx, nx + 1, nx - 1, -nx + 1, -nx - 1])
        side_a, side_b = np.array([1, -1, 1, -1]), np.array([nx, nx, -nx, -nx])
        half_length = 0.5 * np.array([1.0] * 4 + [_SQRT2] * 4)
        blocked, cost = self.blocked.ravel(), self.cost.ravel()
        dist = np.full(blocked.size, np.inf)
        parent = np.full(blocked.size, -1, dtype=np.int64)
        final = blocked.copy()
        dist[start] = 0.0
        buckets: dict[int, list[NDArray[np.int64]]] = {0: [np.array([start])]}
        waiting, k = 1, 0
        while waiting:
            chunk = buckets.pop(k, None)
            k += 1
            if chunk is None:
                continue
            waiting -= len(chunk)
            cells = np.unique(np.concatenate(chunk))
            cells = cells[~final[cells]]
            if cells.size == 0:
                continue
            final[cells] = True
            if goal is not None and final[goal]:
                break
            near = cells[:, None] + offsets
            ok = ~final[near]
            # A diagonal step needs both cells beside it, or the robot would cut a corner.
            ok[:, 4:] &= ~(blocked[cells[:, None] + side_a] | blocked[cells[:, None] + side_b])
            new = dist[cells][:, None] + half_length * (cost[cells][:, None] + cost[near])
            ok &= new < dist[near]
            rows, columns = np.nonzero(ok)
            if rows.size == 0:
                continue
            values, targets = new[rows, columns], near[rows, columns]
            order = np.argsort(-values, kind="stable")  # the smallest is written last and stays
            targets, values = targets[order], values[order]
            dist[targets] = values
            parent[targets] = cells[rows[order]]
            index = values.astype(np.int64)
            for b in np.unique(index):
                buckets.setdefault(int(b), []).append(targets[index == b])
                waiting += 1
        return dist, parent

    def segment_cost_m(self, a_world_m: Array, b_world_m: Array) -> float:
        """Return the cost [m] of the straight segment between two (2,) points, inf if it is blocked."""
        length = float(np.hypot(*(b_world_m - a_world_m)))
        n = max(int(np.ceil(length / (0.5 * self.cell_m))), 1) + 1
        points = a_world_m + np.linspace(0.0, 1.0, n)[:, None] * (b_world_m - a_world_m)
        clear = box_clearance(points, self.boxes)
        if clear.min() < self.radius_m:
            return np.inf
        shortage = np.clip(1.0 - (clear - self.radius_m) / self.comfort_m, 0.0, 1.0)
        return length * (1.0 + self.closeness_weight * float(shortage.mean()))


def plan_path(
    grid: OccupancyGrid,
    start_world_m: Sequence[float] | Array,
    goal_world_m: Sequence[float] | Array,
    *,
    max_start_nudge_m: float = 0.5,
    max_goal_nudge_m: float = 0.0,
) -> PathResult:
    """Find the cheapest way between two points and straighten it.

    Args:
      grid: where the robot fits.
      start_world_m: (2,) present position; moved out of inflated obstacles if need be.
      goal_world_m: (2,) wanted position.
      max_start_nudge_m: how far the start may be moved.
      max_goal_nudge_m: how far the goal may be moved; 0 asks for exactly this goal.

    Raises:
      NoPathError: there is no way; its ``reason`` says why.
    """
    start, goal = np.asarray(start_world_m, dtype=np.float64), np.asarray(goal_world_m, dtype=np.float64)
    start_cell, start_nudge = _free_cell(grid, start, "start", max_start_nudge_m)
    goal_cell, goal_nudge = _free_cell(grid, goal, "goal", max_goal_nudge_m)
    dist, parent = grid.field(start_cell, goal_cell)
    if not np.isfinite(dist[goal_cell]):
        raise NoPathError("no_route", f"no way from {start.round(2)} to {goal.round(2)} for radius {grid.radius_m} m.")
    cells = [goal_cell]
    while cells[-1] != start_cell:
        cells.append(int(parent[cells[-1]]))
    points = np.array([grid.point(c) for c in reversed(cells)])
    if goal_nudge == 0.0:
        points = np.vstack([points[:-1], goal]) if len(points) > 1 else np.vstack([points, goal])
    head = [start] if start_nudge == 0.0 else [start, points[0]]
    points = np.vstack([*head, points[1:]]) if len(points) > 1 else np.vstack([start, points])
    pulled = _straighten(grid, points, fixed=0 if start_nudge == 0.0 else 1)
    length = float(np.hypot(*np.diff(pulled, axis=0).T).sum())
    return PathResult(
        path_world_m=pulled,
        length_m=length,
        cost_m=float(dist[goal_cell]) * grid.cell_m,
        start_nudge_m=start_nudge,
        goal_nudge_m=goal_nudge,
    )


def _free_cell(grid: OccupancyGrid, xy: Array, what: str, max_nudge_m: float) -> tuple[int, float]:
    if xy.shape != (2,) or not np.isfinite(xy).all():
        raise NoPathError("outside", f"the {what} is {xy}; expected two finite coordinates in metres.")
    cell = grid.cell(xy)
    if cell is None and max_nudge_m <= 0.0:
        raise NoPathError("outside", f"the {what} {xy.round(2)} lies outside the floor {grid.bounds_m}.")
    if cell is not None and bool(grid.is_free(xy[None])[0]):
        if not grid.blocked.flat[cell]:
            return cell, 0.0
        near = grid.nearest_free(xy, 1.5 * grid.cell_m)  # free itself, though the middle of its cell is not
        if near is not None:
            return near, 0.0
    near = grid.nearest_free(xy, max_nudge_m) if max_nudge_m > 0.0 else None
    if near is None:
        reason = "start_blocked" if what == "start" else "goal_blocked"
        raise NoPathError(reason, f"the {what} {xy.round(2)} is within {grid.radius_m} m of an obstacle.")
    return near, float(np.hypot(*(grid.point(near) - xy)))


def _straighten(grid: OccupancyGrid, points: Array, *, fixed: int) -> Array:
    """Drop corners whose straight replacement is clear and costs no more; the first ``fixed`` segments stay."""
    costs = np.array([grid.segment_cost_m(points[k], points[k + 1]) for k in range(len(points) - 1)])
    worst = np.hypot(*np.diff(points, axis=0).T) * (1.0 + grid.closeness_weight)
    total = np.concatenate([[0.0], np.cumsum(np.where(np.isfinite(costs), costs, worst))])
    last = len(points) - 1

    def replaces(i: int, j: int) -> bool:
        return grid.segment_cost_m(points[i], points[j]) <= (total[j] - total[i]) * 1.0005 + 1e-9

    out, i = list(points[: fixed + 1]), fixed
    while i < last:
        good, bad = i + 1, i + 2
        while bad <= last and replaces(i, bad):  # gallop, then halve the gap
            good, bad = bad, last + 1 if bad == last else min(i + 2 * (bad - i), last)
        while bad <= last and bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (middle, bad) if replaces(i, middle) else (good, middle)
        i = good
        out.append(points[i])
    return np.array(out)
