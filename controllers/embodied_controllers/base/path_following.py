"""Differential-drive path following: regulated pursuit on a polyline, a Lyapunov law at its end, a heading turn.

References:
  S. Macenski et al., "Regulated Pure Pursuit for Robot Path Tracking", Autonomous Robots 47 (2023): the look-ahead that
  grows with speed and the speed that falls with curvature and near the goal.
  M. Aicardi et al., "Closed loop steering of unicycle-like vehicles via Lyapunov techniques", IEEE Robotics and
  Automation Magazine 2(1) (1995): v = k rho cos(alpha), omega proportional to alpha, for which rho never grows.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from embodied_controllers.contract import Array, RobotState


def wrap_angle(angle_rad: float) -> float:
    """Return an angle in (-pi, pi].

    Args:
      angle_rad: any finite angle.
    """
    return float(-((-angle_rad + np.pi) % (2.0 * np.pi) - np.pi))


def yaw_of_quat(quat_wxyz: Array) -> float:
    """Return the rotation about the vertical axis, rad, of a (4,) unit quaternion of the base in the world."""
    w, x, y, z = (float(q) for q in quat_wxyz)
    return float(np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)))


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseLimits:
    """What the base may do.

    Attributes:
      speed_mps: greatest forward and backward speed.
      yaw_rate_radps: greatest turning rate.
      accel_mps2: greatest change of speed.
      yaw_accel_radps2: greatest change of turning rate.
    """

    speed_mps: float = 0.8
    yaw_rate_radps: float = 1.5
    accel_mps2: float = 1.0
    yaw_accel_radps2: float = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PathSetpoint:
    """A path to follow to its end.

    Attributes:
      path_world_m: (n, 2) corners of the polyline, n >= 1; the last one is the goal.
      final_yaw_rad: heading at the goal in the world; None leaves the heading as it comes.
      speed_limit_mps: further limit on the speed of this path.
    """

    path_world_m: Array
    final_yaw_rad: float | None = None
    speed_limit_mps: float = np.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerConfig:
    """Tuning of :class:`DifferentialPathFollower`.

    Attributes:
      limits: what the base may do.
      lookahead_min_m: distance of the pursued point at rest.
      lookahead_time_s: growth of that distance with speed.
      lookahead_max_m: its upper end.
      turn_start_rad: heading error above which the base stops and turns on the spot.
      turn_stop_rad: error at which it drives again.
      near_m: distance from the goal at which the Lyapunov law takes over.
      heading_gain_1ps: turning rate per heading error.
      pos_tol_m: arrival tolerance on position.
      yaw_tol_rad: arrival tolerance on heading.
    """

    limits: BaseLimits = BaseLimits()
    lookahead_min_m: float = 0.18
    lookahead_time_s: float = 0.4
    lookahead_max_m: float = 0.5
    turn_start_rad: float = 0.9
    turn_stop_rad: float = 0.08
    near_m: float = 0.2
    heading_gain_1ps: float = 3.5
    pos_tol_m: float = 0.015
    yaw_tol_rad: float = 0.02


class _Phase(Enum):
    TURN = 1
    TRACK = 2
    NEAR = 3
    FINAL = 4


class DifferentialPathFollower:
    """Follow a polyline with (forward_mps, yaw_rate_radps); implements ``Controller[PathSetpoint]``.

    A new set-point object restarts the progress along the path. :attr:`arrived` becomes true when position and heading
    are within tolerance and the base is nearly at rest.
    """

    def __init__(self, config: FollowerConfig | None = None) -> None:
        self.config = config or FollowerConfig()
        self.arrived = False
        self.remaining_m = np.inf
        self._setpoint: PathSetpoint | None = None
        self._v = 0.0
        self._w = 0.0

    def reset(self, state: RobotState) -> None:
        """Forget path and progress; start from the present velocities."""
        limits = self.config.limits
        self._v = float(np.clip(state.base_vel_body_mps[0], -limits.speed_mps, limits.speed_mps))
        self._w = float(np.clip(state.base_angvel_body_radps[2], -limits.yaw_rate_radps, limits.yaw_rate_radps))
        self._setpoint = None
        self.arrived = False
        self.remaining_m = np.inf

    def step(self, state: RobotState, setpoint: PathSetpoint, dt_s: float) -> Array:
        """Return (2,) forward speed [m/s] and turning rate [rad/s] for this period.

        Raises:
          ValueError: the path is not (n, 2), is empty, or holds numbers that are not finite.
        """
        if setpoint is not self._setpoint:
            self._begin(setpoint)
        x, y = float(state.base_pos_world_m[0]), float(state.base_pos_world_m[1])
        yaw = yaw_of_quat(state.base_quat_wxyz)
        v, w = self._law(x, y, yaw, setpoint)
        limits = self.config.limits
        self._v = _ramp(self._v, v, limits.accel_mps2 * dt_s)
        self._w = _ramp(self._w, w, limits.yaw_accel_radps2 * dt_s)
        return np.array([self._v, self._w])

    def _begin(self, setpoint: PathSetpoint) -> None:
        path = np.asarray(setpoint.path_world_m, dtype=np.float64)
        if path.ndim != 2 or path.shape[1:] != (2,) or path.shape[0] < 1 or not np.isfinite(path).all():
            raise ValueError(
                f"path_world_m: got shape {path.shape} with finite={bool(np.isfinite(path).all())}; "
                "expected (n, 2) finite metres with n >= 1."
            )
        if setpoint.final_yaw_rad is not None and not np.isfinite(setpoint.final_yaw_rad):
            raise ValueError(f"final_yaw_rad: got {setpoint.final_yaw_rad}; expected a finite angle or None.")
        keep = np.ones(len(path), dtype=bool)
        keep[:-1] = np.hypot(*np.diff(path, axis=0).T) > 1e-6 if len(path) > 1 else True
        path = path[keep]
        if len(path) == 1:
            path = np.vstack([path, path])
        self._points = path
        self._seg = np.diff(path, axis=0)
        self._len = np.maximum(np.hypot(self._seg[:, 0], self._seg[:, 1]), 1e-9)
        self._start = np.concatenate([[0.0], np.cumsum(self._len)])
        self._progress = 0.0
        self._setpoint = setpoint
        self._phase = _Phase.TURN
        self.arrived = False

    def _law(self, x: float, y: float, yaw: float, setpoint: PathSetpoint) -> tuple[float, float]:
        c, limits = self.config, self.config.limits
        speed = max(min(limits.speed_mps, setpoint.speed_limit_mps), 0.0)
        self._advance(x, y)
        goal = self._points[-1]
        dist = float(np.hypot(goal[0] - x, goal[1] - y))
        along = max(float(self._start[-1]) - self._progress, 0.0)
        self.remaining_m = max(dist, along)
        self.arrived = False
        if self._phase is _Phase.FINAL and dist > 1.6 * c.pos_tol_m:
            self._phase = _Phase.NEAR
        if dist <= 0.6 * c.pos_tol_m and along <= c.near_m:
            self._phase = _Phase.FINAL
        elif self._phase is not _Phase.FINAL and dist <= c.near_m and along <= 1.5 * c.near_m:
            self._phase = _Phase.NEAR
        if self._phase is _Phase.FINAL:
            error = 0.0 if setpoint.final_yaw_rad is None else wrap_angle(setpoint.final_yaw_rad - yaw)
            # Correct the rest of the distance along the heading while turning: cos(alpha) carries the sign.
            ahead = (goal[0] - x) * np.cos(yaw) + (goal[1] - y) * np.sin(yaw)
            slow = abs(self._v) < 0.03 and abs(self._w) < 0.06
            self.arrived = dist <= c.pos_tol_m and abs(error) <= c.yaw_tol_rad and slow
            return (float(np.clip(2.0 * ahead, -0.05, 0.05)), self._turn_rate(error))
        if self._phase is _Phase.NEAR:
            return self._near(x, y, yaw, goal, dist, speed)
        return self._track(x, y, yaw, along, speed)

    def _near(self, x: float, y: float, yaw: float, goal: Array, dist: float, speed: float) -> tuple[float, float]:
        limits = self.config.limits
        alpha = wrap_angle(float(np.arctan2(goal[1] - y, goal[0] - x)) - yaw)
        sign = 1.0
        if abs(alpha) > 0.5 * np.pi:  # a short step back is quicker than a turn
            alpha, sign = wrap_angle(alpha + np.pi), -1.0
        v = sign * min(speed, np.sqrt(1.2 * limits.accel_mps2 * dist), max(2.5 * dist, 0.04)) * np.cos(alpha) ** 3
        return float(v), self._turn_rate(alpha)

    def _track(self, x: float, y: float, yaw: float, along: float, speed: float) -> tuple[float, float]:
        c, limits = self.config, self.config.limits
        lookahead = float(np.clip(c.lookahead_time_s * abs(self._v), c.lookahead_min_m, c.lookahead_max_m))
        px, py = self._at(self._progress + lookahead)
        error = wrap_angle(float(np.arctan2(py - y, px - x)) - yaw)
        if self._phase is _Phase.TURN and abs(error) <= c.turn_stop_rad:
            self._phase = _Phase.TRACK
        elif self._phase is _Phase.TRACK and abs(error) > c.turn_start_rad:
            self._phase = _Phase.TURN
        if self._phase is _Phase.TURN:
            return 0.0, self._turn_rate(error)
        reach = max(float(np.hypot(px - x, py - y)), 0.5 * c.lookahead_min_m)
        curvature = 2.0 * np.sin(error) / reach
        v = min(speed, np.sqrt(1.2 * limits.accel_mps2 * along))
        v *= max(1.0 - (abs(error) / c.turn_start_rad) ** 1.5, 0.0)
        v = min(v, 0.8 * limits.yaw_rate_radps / max(abs(curvature), 1e-6))
        w = v * curvature
        if v < 0.1:  # pursuit alone would hardly steer at crawling speed
            w += (1.0 - v / 0.1) * self._turn_rate(error)
        return float(v), float(np.clip(w, -limits.yaw_rate_radps, limits.yaw_rate_radps))

    def _turn_rate(self, error_rad: float) -> float:
        limits = self.config.limits
        brake = np.sqrt(1.4 * limits.yaw_accel_radps2 * abs(error_rad))
        rate = min(self.config.heading_gain_1ps * abs(error_rad), brake, limits.yaw_rate_radps)
        return float(np.sign(error_rad) * rate)

    def _advance(self, x: float, y: float) -> None:
        """Move the progress to the nearest point within a window ahead, so that crossing paths are not confused."""
        low, high = self._progress, self._progress + 0.6
        best, best_d = self._progress, np.inf
        first = max(int(np.searchsorted(self._start, low, side="right")) - 1, 0)
        for i in range(min(first, len(self._len) - 1), len(self._len)):
            if self._start[i] > high:
                break
            sx, sy = self._seg[i]
            length = float(self._len[i])
            t = ((x - self._points[i, 0]) * sx + (y - self._points[i, 1]) * sy) / (length * length)
            s = min(max(float(self._start[i]) + min(max(float(t), 0.0), 1.0) * length, low), high)
            t = (s - float(self._start[i])) / length
            d = float(np.hypot(self._points[i, 0] + t * sx - x, self._points[i, 1] + t * sy - y))
            if d < best_d - 1e-9:
                best, best_d = s, d
        self._progress = best

    def _at(self, s: float) -> tuple[float, float]:
        i = min(max(int(np.searchsorted(self._start, s, side="right")) - 1, 0), len(self._len) - 1)
        t = min(max((s - float(self._start[i])) / float(self._len[i]), 0.0), 1.0)
        p = self._points[i] + t * self._seg[i]
        return float(p[0]), float(p[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class StraightSetpoint:
    """A straight move along the present heading: ``distance_m`` > 0 forward, < 0 backward."""

    distance_m: float
    speed_limit_mps: float = 0.3


class StraightMove:
    """Drive a set distance straight on, keeping the heading of :meth:`reset`; for backing out of tight spots.

    Implements ``Controller[StraightSetpoint]``; :attr:`arrived` says when it is done (within 5 mm).
    """

    def __init__(self, limits: BaseLimits | None = None) -> None:
        self.limits = limits or BaseLimits()
        self.arrived = False
        self.remaining_m = np.inf
        self._v = self._w = 0.0
        self._origin = np.zeros(2)
        self._yaw = 0.0

    def reset(self, state: RobotState) -> None:
        """Take the present pose as origin and heading."""
        self._origin = np.array(state.base_pos_world_m[:2], dtype=np.float64)
        self._yaw = yaw_of_quat(state.base_quat_wxyz)
        self._v = float(state.base_vel_body_mps[0])
        self._w = 0.0
        self.arrived = False

    def step(self, state: RobotState, setpoint: StraightSetpoint, dt_s: float) -> Array:
        """Return (2,) forward speed [m/s] and turning rate [rad/s]."""
        dx, dy = state.base_pos_world_m[:2] - self._origin
        done_m = float(dx * np.cos(self._yaw) + dy * np.sin(self._yaw))
        rest = setpoint.distance_m - done_m
        self.remaining_m = abs(rest)
        speed = min(self.limits.speed_mps, setpoint.speed_limit_mps)
        v = float(np.sign(rest) * min(speed, np.sqrt(1.2 * self.limits.accel_mps2 * abs(rest)), 3.0 * abs(rest)))
        error = wrap_angle(self._yaw - yaw_of_quat(state.base_quat_wxyz))
        self.arrived = abs(rest) <= 0.005 and abs(self._v) < 0.03
        self._v = _ramp(self._v, v, self.limits.accel_mps2 * dt_s)
        w = float(np.clip(3.0 * error, -self.limits.yaw_rate_radps, self.limits.yaw_rate_radps))
        self._w = _ramp(self._w, w, self.limits.yaw_accel_radps2 * dt_s)
        return np.array([self._v, self._w])


def _ramp(value: float, target: float, step: float) -> float:
    return value + min(max(target - value, -step), step)
