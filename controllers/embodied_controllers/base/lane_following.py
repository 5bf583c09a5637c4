"""Drive along straight lanes between cell centres, turn on the spot at corners, stop where the free lane ends."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from embodied_controllers.base.path_following import BaseLimits, wrap_angle, yaw_of_quat
from embodied_controllers.contract import Array, RobotState


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneSetpoint:
    """A straight piece of lane; its end may move on from period to period while the robot drives.

    Attributes:
      start_world_m: a point of the lane, x and y.
      end_world_m: where to stand still.
    """

    start_world_m: tuple[float, float]
    end_world_m: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneConfig:
    """Tuning of :class:`LaneFollower`.

    Attributes:
      limits: what the base may do.
      turn_above_rad: heading error above which the base stops and turns on the spot.
      aligned_rad: heading error at which it drives on.
      lateral_gain_1pm: aim-off angle per lateral error.
      heading_gain_1ps: turning rate per heading error.
      pos_tol_m: arrival tolerance along the lane.
    """

    limits: BaseLimits = field(
        default_factory=lambda: BaseLimits(speed_mps=1.2, yaw_rate_radps=1.2, accel_mps2=0.6, yaw_accel_radps2=3.0)
    )
    turn_above_rad: float = 0.35
    aligned_rad: float = 0.01
    lateral_gain_1pm: float = 1.5
    heading_gain_1ps: float = 3.0
    pos_tol_m: float = 0.006


class LaneFollower:
    """Implements ``Controller[LaneSetpoint]``: (forward_mps, yaw_rate_radps) from the pose and a lane.

    Speed follows v = sqrt(2 a d) to the end of the lane with a tenth of the deceleration kept in reserve;
    :attr:`arrived` is true when the base stands there.
    """

    def __init__(self, config: LaneConfig | None = None) -> None:
        self.config = config or LaneConfig()
        self.arrived = False
        self._is_turning = False
        self._v = self._w = 0.0

    @property
    def is_turning(self) -> bool:
        """Whether the base stops for, or makes, a turn on the spot."""
        return self._is_turning

    def reset(self, state: RobotState) -> None:
        """Start from the present speeds."""
        self._v, self._w = float(state.base_vel_body_mps[0]), float(state.base_angvel_body_radps[2])
        self._is_turning = False
        self.arrived = False

    def step(self, state: RobotState, setpoint: LaneSetpoint, dt_s: float) -> Array:
        """Return (2,) forward speed [m/s] and turning rate [rad/s]."""
        c, limits = self.config, self.config.limits
        (x0, y0), (x1, y1) = setpoint.start_world_m, setpoint.end_world_m
        x, y = float(state.base_pos_world_m[0]), float(state.base_pos_world_m[1])
        yaw = yaw_of_quat(state.base_quat_wxyz)
        length = float(np.hypot(x1 - x0, y1 - y0))
        lane_yaw = yaw if length < 1e-9 else float(np.arctan2(y1 - y0, x1 - x0))
        cos, sin = float(np.cos(lane_yaw)), float(np.sin(lane_yaw))
        rest_m = (x1 - x) * cos + (y1 - y) * sin
        lateral_m = (y - y1) * cos - (x - x1) * sin
        error = wrap_angle(lane_yaw - yaw)
        if abs(error) > c.turn_above_rad:
            self._is_turning = True
        v, w = 0.0, 0.0
        if self._is_turning and abs(self._v) < 0.02:
            w = _brake(error, limits.yaw_rate_radps, limits.yaw_accel_radps2, c.heading_gain_1ps)
            if abs(error) < c.aligned_rad and abs(self._w) < 0.1:
                self._is_turning = False
        elif not self._is_turning:
            v = _brake(rest_m, limits.speed_mps, 0.9 * limits.accel_mps2, 2.0)
            v = max(v, -0.1)
            aim = np.clip(c.lateral_gain_1pm * lateral_m, -0.3, 0.3) * min(1.0, abs(self._v) / 0.2)
            w = float(np.clip(c.heading_gain_1ps * (error - aim), -limits.yaw_rate_radps, limits.yaw_rate_radps))
        self._v = _ramp(self._v, v, limits.accel_mps2 * dt_s)
        self._w = _ramp(self._w, w, limits.yaw_accel_radps2 * dt_s)
        is_still = abs(self._v) < 0.02 and abs(self._w) < 0.05
        self.arrived = not self._is_turning and abs(rest_m) <= c.pos_tol_m and is_still
        return np.array([self._v, self._w])


def _brake(rest: float, top: float, accel: float, gain: float) -> float:
    """Speed that can still stop within ``rest``, linear close to it."""
    return float(np.sign(rest) * min(top, np.sqrt(2.0 * accel * abs(rest)), gain * abs(rest)))


def _ramp(value: float, target: float, step: float) -> float:
    return value + min(max(target - value, -step), step)
