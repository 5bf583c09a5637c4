"""Many rooms at once without an engine: the base as a unicycle with lag, its scanner as rays against boxes.

Lags and limits follow from the model file of the robot: mass or inertia over the gain of the velocity servo, and its
force limit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from embodied.train.navigation.rooms import Room
from embodied.train.navigation.scanner import BEAM_RAD, MOUNT_X_M, RANGE_MAX_M, RANGE_MIN_M, pooled

Array = NDArray[np.float64]

DT_SIM_S = 0.01
LAG_S = np.array([0.0587, 0.022, 0.0455])
"""Of forward speed (88 kg / 1500), sideways speed (88 kg / 4000) and turning rate (6.8 kg m2 / 150)."""
ACCEL_MAX = np.array([300.0 / 88.0, 470.0 / 88.0, 120.0 / 6.82])
"""Greatest changes of the same [m/s2, m/s2, rad/s2]: the force limits of the servos."""
HALF_M = np.array([0.40, 0.29])
"""Half length and width of the hull."""
_FAR = np.array([1e3, 1e3, 0.01, 0.01, 0.0])


class KinematicWorld:
    """A batch of rooms, each with one robot.

    Args:
      rooms: one per environment.

    Attributes:
      pose: (n, 3) x, y [m] and yaw [rad] in the world.
      vel_body: (n, 3) forward, sideways [m/s] and turning rate [rad/s].
      goals_world_m: (n, 2).
    """

    def __init__(self, rooms: Sequence[Room]) -> None:
        most = max(len(room.boxes) for room in rooms)
        self.boxes = np.stack([np.vstack([r.boxes, np.tile(_FAR, (most - len(r.boxes), 1))]) for r in rooms])
        self._cos, self._sin = np.cos(self.boxes[:, :, 4]), np.sin(self.boxes[:, :, 4])
        self.goals_world_m = np.stack([room.goal_world_m for room in rooms])
        self.pose = np.stack([room.start_xyyaw for room in rooms]).astype(np.float64)
        self.vel_body = np.zeros_like(self.pose)
        self._outline = _hull_outline()

    def step(self, action: Array, duration_s: float, live: NDArray[np.bool_] | None = None) -> None:
        """Hold (n, 2) forward speeds [m/s] and turning rates [rad/s]; environments that are not ``live`` stay."""
        on = np.ones(len(self.pose)) if live is None else live.astype(np.float64)
        wanted = np.column_stack([action[:, 0], np.zeros(len(action)), action[:, 1]])
        keep = np.exp(-DT_SIM_S / LAG_S)
        for _ in range(round(duration_s / DT_SIM_S)):
            change = (wanted - self.vel_body) * (1.0 - keep)
            vel = self.vel_body + np.clip(change, -ACCEL_MAX * DT_SIM_S, ACCEL_MAX * DT_SIM_S)
            turn = vel[:, 2] * DT_SIM_S
            # The velocity stays where it points in the world while the body turns under it.
            forward = vel[:, 0] + turn * vel[:, 1]
            side = vel[:, 1] - turn * vel[:, 0]
            self.vel_body = np.column_stack([forward, side, vel[:, 2]]) * on[:, None]
            yaw = self.pose[:, 2] + 0.5 * turn * on
            c, s = np.cos(yaw), np.sin(yaw)
            self.pose[:, 0] += DT_SIM_S * (c * self.vel_body[:, 0] - s * self.vel_body[:, 1])
            self.pose[:, 1] += DT_SIM_S * (s * self.vel_body[:, 0] + c * self.vel_body[:, 1])
            self.pose[:, 2] += turn * on

    def beams_m(self, index: NDArray[np.intp] | None = None) -> Array:
        """Return (k, num_beams) exact ranges of some environments (all by default), inf out of the scanner's reach."""
        at = np.arange(len(self.pose)) if index is None else index
        yaw = self.pose[at, 2]
        origin = self.pose[at, :2] + MOUNT_X_M * np.column_stack([np.cos(yaw), np.sin(yaw)])
        angle = yaw[:, None] + BEAM_RAD
        ray = np.stack([np.cos(angle), np.sin(angle)], axis=-1)  # (k, b, 2)
        c, s = self._cos[at], self._sin[at]  # (k, m)
        dx, dy = origin[:, None, 0] - self.boxes[at, :, 0], origin[:, None, 1] - self.boxes[at, :, 1]
        ox, oy = c * dx + s * dy, c * dy - s * dx
        rx = ray[:, :, None, 0] * c[:, None] + ray[:, :, None, 1] * s[:, None]  # (k, b, m)
        ry = ray[:, :, None, 1] * c[:, None] - ray[:, :, None, 0] * s[:, None]
        # A ray along a side divides by zero: infinities compare as they should, 0 / 0 on the side itself is a miss.
        with np.errstate(divide="ignore", invalid="ignore"):
            near_x, far_x = _slab(ox[:, None], rx, self.boxes[at, None, :, 2])
            near_y, far_y = _slab(oy[:, None], ry, self.boxes[at, None, :, 3])
        enter, leave = np.maximum(near_x, near_y), np.minimum(far_x, far_y)
        hit = np.where((enter <= leave) & (enter > 0.0), enter, np.inf).min(axis=2)
        return np.where((hit >= RANGE_MIN_M) & (hit <= RANGE_MAX_M), hit, np.inf)

    def ranges_m(self, rng: np.random.Generator | None = None) -> Array:
        """Return (n, num_ranges) what the policy is given of the scans, noisy with ``rng``."""
        return pooled(self.beams_m(), rng)

    def to_goal_body_m(self) -> Array:
        """Return (n, 2) the goals as seen from the robots."""
        d, yaw = self.goals_world_m - self.pose[:, :2], self.pose[:, 2]
        c, s = np.cos(yaw), np.sin(yaw)
        return np.column_stack([c * d[:, 0] + s * d[:, 1], c * d[:, 1] - s * d[:, 0]])

    def is_touching(self) -> NDArray[np.bool_]:
        """Return (n,) whether a hull and a box overlap (points 5 cm apart on the hull, corners of the boxes)."""
        yaw = self.pose[:, 2]
        c, s = np.cos(yaw)[:, None], np.sin(yaw)[:, None]
        px = self.pose[:, 0, None] + c * self._outline[:, 0] - s * self._outline[:, 1]
        py = self.pose[:, 1, None] + s * self._outline[:, 0] + c * self._outline[:, 1]
        dx, dy = px[:, :, None] - self.boxes[:, None, :, 0], py[:, :, None] - self.boxes[:, None, :, 1]
        bc, bs = self._cos[:, None], self._sin[:, None]
        inside = (np.abs(bc * dx + bs * dy) < self.boxes[:, None, :, 2]) & (
            np.abs(bc * dy - bs * dx) < self.boxes[:, None, :, 3]
        )
        corners = self._corners() - self.pose[:, None, None, :2]
        c, s = c[:, :, None], s[:, :, None]
        along = c * corners[..., 0] + s * corners[..., 1]
        across = c * corners[..., 1] - s * corners[..., 0]
        poked = (np.abs(along) < HALF_M[0]) & (np.abs(across) < HALF_M[1])
        return inside.any(axis=(1, 2)) | poked.any(axis=(1, 2))

    def _corners(self) -> Array:
        """Return (n, m, 4, 2) corners of the boxes in the world."""
        sign = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
        local = self.boxes[:, :, None, 2:4] * sign
        c, s = self._cos[:, :, None], self._sin[:, :, None]
        turned = np.stack([c * local[..., 0] - s * local[..., 1], s * local[..., 0] + c * local[..., 1]], axis=-1)
        return self.boxes[:, :, None, :2] + turned


def _slab(origin: Array, ray: Array, half: Array) -> tuple[Array, Array]:
    """Return where rays enter and leave the strip of half width ``half`` around zero."""
    slope = 1.0 / ray
    middle, reach = -origin * slope, half * np.abs(slope)
    return middle - reach, middle + reach


def _hull_outline() -> Array:
    hx, hy = HALF_M
    along, across = np.linspace(-hx, hx, 17), np.linspace(-hy, hy, 13)
    return np.concatenate(
        [np.column_stack([along, np.full_like(along, s * hy)]) for s in (-1.0, 1.0)]
        + [np.column_stack([np.full_like(across, s * hx), across]) for s in (-1.0, 1.0)]
    )
