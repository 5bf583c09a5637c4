"""Joint paths in time: constant speed along the path, smoothed so that speed and acceleration stay within limits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embodied_controllers.contract import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class JointTrajectory:
    """Positions and velocities at equal times.

    Attributes:
      dt_s: spacing of the samples.
      pos: (k, n) positions, rad or m; the first is the start, the last the end.
      vel: (k, n) velocities.
    """

    dt_s: float
    pos: Array
    vel: Array

    @property
    def duration_s(self) -> float:
        """Time from the first to the last sample."""
        return (len(self.pos) - 1) * self.dt_s

    def at(self, time_s: float) -> tuple[Array, Array]:
        """Return (n,) position and velocity; before the start and after the end the nearest sample, at rest after."""
        step = min(max(time_s / self.dt_s, 0.0), float(len(self.pos) - 1))
        i = min(int(step), len(self.pos) - 2) if len(self.pos) > 1 else 0
        if len(self.pos) == 1:
            return self.pos[0], self.vel[0]
        part = step - i
        return (
            self.pos[i] + part * (self.pos[i + 1] - self.pos[i]),
            self.vel[i] + part * (self.vel[i + 1] - self.vel[i]),
        )


def trapezoid_trajectory(
    waypoints: Array, speed_max: Array, *, accel_time_s: float = 0.25, dt_s: float = 0.02
) -> JointTrajectory:
    """Return a trajectory along a polyline of joint positions, at rest at both ends.

    The path is run at the highest constant speed that ``speed_max`` allows on each segment; a moving average over
    ``accel_time_s`` turns its steps in speed into ramps, so that no acceleration exceeds twice ``speed_max`` /
    ``accel_time_s``, and rounds corners by at most ``speed * accel_time_s / 4``. On one segment this is the trapezoid.

    Args:
      waypoints: (k, n) positions, k >= 1.
      speed_max: (n,) speed limits, > 0.
      accel_time_s: time from rest to full speed.
      dt_s: spacing of the samples.

    Raises:
      ValueError: shapes do not fit or numbers are not finite.
    """
    points = np.asarray(waypoints, dtype=np.float64)
    limit = np.asarray(speed_max, dtype=np.float64)
    if points.ndim != 2 or len(points) < 1 or not np.isfinite(points).all():
        raise ValueError(f"waypoints: got shape {points.shape}; expected (k, n) finite numbers with k >= 1.")
    if limit.shape != (points.shape[1],) or not (limit > 0.0).all():
        raise ValueError(f"speed_max: got {limit}; expected {points.shape[1]} positive numbers.")
    need_s = (np.abs(np.diff(points, axis=0)) / limit).max(axis=1) if len(points) > 1 else np.zeros(0)
    keep = np.concatenate([[True], need_s > 1e-9])
    points, need_s = points[keep], need_s[keep[1:]]
    if len(points) == 1:
        return JointTrajectory(dt_s=dt_s, pos=points.copy(), vel=np.zeros_like(points))
    knots = np.concatenate([[0.0], np.cumsum(need_s)])
    width = max(round(accel_time_s / dt_s), 1)
    count = int(np.ceil(knots[-1] / dt_s)) + 1
    times = np.linspace(0.0, knots[-1], count)
    path = np.stack([np.interp(times, knots, points[:, j]) for j in range(points.shape[1])], axis=1)
    padded = np.concatenate([np.repeat(path[:1], width, axis=0), path, np.repeat(path[-1:], width, axis=0)])
    sums = np.cumsum(np.concatenate([np.zeros((1, padded.shape[1])), padded]), axis=0)
    pos = (sums[width:] - sums[:-width]) / width
    pos[0], pos[-1] = points[0], points[-1]
    vel = np.gradient(pos, dt_s, axis=0)
    vel[0] = vel[-1] = 0.0
    return JointTrajectory(dt_s=dt_s, pos=pos, vel=vel)
