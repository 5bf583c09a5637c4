"""References to fly along: minimum-jerk moves and polylines at limited speed and acceleration."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Vec3 = tuple[float, float, float]
Sample = tuple[Vec3, Vec3, Vec3]


class MinimumJerk:
    """Rest-to-rest move ``p(s) = p₀ + (p₁ − p₀)(10 s³ − 15 s⁴ + 6 s⁵)``, ``s = t/T`` (Flash and Hogan 1985, eq. 3).

    Args:
      start_m: (3,) first point.
      end_m: (3,) last point.
      speed_max_mps: peak speed, 15/8 of the mean.
      acc_max_mps2: peak acceleration, 10/√3 · distance/T².
    """

    def __init__(
        self, start_m: Sequence[float], end_m: Sequence[float], speed_max_mps: float, acc_max_mps2: float
    ) -> None:
        self._start = np.array(start_m, dtype=np.float64)
        self._delta = np.array(end_m, dtype=np.float64) - self._start
        _check_points(np.stack([self._start, self._start + self._delta]), speed_max_mps, acc_max_mps2)
        distance = float(np.linalg.norm(self._delta))
        self.duration_s = max(15 / 8 * distance / speed_max_mps, sqrt(10 / sqrt(3) * distance / acc_max_mps2), 1e-3)

    def sample(self, time_s: float) -> Sample:
        """Return position [m], velocity [m/s] and acceleration [m/s²] at a time; held beyond both ends."""
        T = self.duration_s
        s = min(max(time_s / T, 0.0), 1.0)
        p = s**3 * (10 + s * (-15 + 6 * s))
        v = 30 * s**2 * (1 - s) ** 2 / T
        a = 60 * s * (1 - s) * (1 - 2 * s) / T**2
        return _vec(self._start + p * self._delta), _vec(v * self._delta), _vec(a * self._delta)


class Polyline:
    """Straight pieces flown with trapezoidal speed; at corners the velocity jumps by at most ``corner_mps``.

    Args:
      points_m: (n, 3) corners, n >= 2; equal neighbours are merged.
      speed_max_mps: cruise speed.
      acc_max_mps2: acceleration along the path.
      corner_mps: largest jump of velocity at a corner; at a corner of angle θ the speed is ``corner / (2 sin(θ/2))``.

    Raises:
      ValueError: fewer than one point, a non-finite point, or a limit that is not positive.
    """

    def __init__(
        self, points_m: Sequence[Sequence[float]], speed_max_mps: float, acc_max_mps2: float, corner_mps: float = 0.4
    ) -> None:
        points = np.array(points_m, dtype=np.float64).reshape(-1, 3)
        _check_points(points, speed_max_mps, acc_max_mps2)
        keep = [0] + [i for i in range(1, len(points)) if np.linalg.norm(points[i] - points[i - 1]) > 1e-9]
        self._points = points[keep]
        steps = np.diff(self._points, axis=0)
        self._length_m = np.linalg.norm(steps, axis=1)
        self._unit = steps / self._length_m[:, None]
        self._acc = acc_max_mps2
        self._corner_speed = self._speeds(speed_max_mps, acc_max_mps2, corner_mps)
        # per piece: peak speed and the three durations of its trapezoid
        v0, v1 = self._corner_speed[:-1], self._corner_speed[1:]
        peak = np.minimum(speed_max_mps, np.sqrt(acc_max_mps2 * self._length_m + (v0**2 + v1**2) / 2))
        up, down = (peak - v0) / acc_max_mps2, (peak - v1) / acc_max_mps2
        ramps_m = (peak**2 - v0**2 + peak**2 - v1**2) / (2 * acc_max_mps2)
        flat = np.maximum(self._length_m - ramps_m, 0.0) / peak
        self._pieces = np.stack([v0, peak, up, flat, down], axis=1)
        self._ends_s = np.cumsum(up + flat + down)
        self.duration_s = float(self._ends_s[-1]) if len(self._ends_s) else 0.0

    def sample(self, time_s: float) -> Sample:
        """Return position [m], velocity [m/s] and acceleration [m/s²] at a time; held beyond both ends."""
        zero = (0.0, 0.0, 0.0)
        if time_s >= self.duration_s:
            return _vec(self._points[-1]), zero, zero
        if time_s <= 0:
            return _vec(self._points[0]), zero, zero
        i = int(np.searchsorted(self._ends_s, time_s, side="right"))
        t = time_s - (float(self._ends_s[i - 1]) if i else 0.0)
        v0, peak, up, flat, _ = self._pieces[i].tolist()
        a = self._acc
        if t < up:
            s, v, acc = v0 * t + a * t * t / 2, v0 + a * t, a
        elif t < up + flat:
            s, v, acc = (v0 + peak) / 2 * up + peak * (t - up), peak, 0.0
        else:
            u = t - up - flat
            s, v, acc = (v0 + peak) / 2 * up + peak * flat + peak * u - a * u * u / 2, peak - a * u, -a
        unit = self._unit[i]
        return _vec(self._points[i] + s * unit), _vec(v * unit), _vec(acc * unit)

    def _speeds(self, speed_max: float, acc_max: float, corner: float) -> Array:
        n = len(self._points)
        speeds = np.zeros(n)
        for i in range(1, n - 1):
            half = float(np.linalg.norm(self._unit[i] - self._unit[i - 1])) / 2
            speeds[i] = speed_max if half < 1e-9 else min(speed_max, corner / (2 * half))
        for i in range(1, n):  # reachable from the corner before
            speeds[i] = min(speeds[i], sqrt(speeds[i - 1] ** 2 + 2 * acc_max * self._length_m[i - 1]))
        for i in range(n - 2, -1, -1):  # slow enough for the corner after
            speeds[i] = min(speeds[i], sqrt(speeds[i + 1] ** 2 + 2 * acc_max * self._length_m[i]))
        return speeds


def _vec(v: Array) -> Vec3:
    x, y, z = v.tolist()
    return x, y, z


def _check_points(points: Array, speed: float, acc: float) -> None:
    if len(points) < 1 or not np.isfinite(points).all():
        raise ValueError(f"A path needs finite (n, 3) points with n >= 1, got {points.tolist()}.")
    if not (0 < speed < float("inf") and 0 < acc < float("inf")):
        raise ValueError(f"Speed and acceleration limits must be positive and finite, got {speed} m/s and {acc} m/s².")
