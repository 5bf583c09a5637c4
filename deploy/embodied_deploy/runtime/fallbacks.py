"""The fallbacks that come with the runtime. To add one, write a class and a line in ``FALLBACKS``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from embodied_controllers.contract import ActionSpec, ObservationSpec, RobotState
from embodied_controllers.quadrotor.controller import FlightController, FlightSetpoint
from embodied_deploy.errors import ObservationError, PackageError

Array = NDArray[np.float64]


class QuadrotorHold:
    """Holds the position and heading where it took over, by the classical flight controller.

    Args:
      action_spec: with the four thrusts of a quadrotor.
      observation_spec: not used; the base's pose and velocities are needed.
      dt_s: control period.
    """

    needs_state = True

    def __init__(self, action_spec: ActionSpec, observation_spec: ObservationSpec, dt_s: float) -> None:
        del observation_spec
        names = tuple(f"thrust_{i}_n" for i in range(1, 5))
        _need("quadrotor/position_hold@1", names, action_spec)
        self._index = [action_spec.names.index(n) for n in names]
        self._size, self._dt_s = action_spec.size, dt_s
        self._flight = FlightController()
        self._setpoint = FlightSetpoint(pos_world_m=(0.0, 0.0, 0.0))

    def reset(self, state: RobotState, last_action: Array) -> None:
        """Hold the present position and heading."""
        del last_action
        self._flight.reset(state)
        x, y, z = state.base_pos_world_m.tolist()
        w, qx, qy, qz = state.base_quat_wxyz.tolist()
        yaw_rad = float(np.arctan2(2 * (w * qz + qx * qy), 1 - 2 * (qy * qy + qz * qz)))
        self._setpoint = FlightSetpoint(pos_world_m=(x, y, z), yaw_rad=yaw_rad)

    def act(self, state: RobotState) -> Array:
        """Return (n_actions,) thrusts [N].

        Raises:
          ObservationError: pose or velocity is not finite: nothing sensible can be flown blind.
        """
        base = (state.base_pos_world_m, state.base_quat_wxyz, state.base_vel_body_mps, state.base_angvel_body_radps)
        if not all(np.isfinite(v).all() for v in base):
            raise ObservationError("position hold: pose or velocity of the base is NaN. Check the estimator.")
        action = np.full(self._size, np.nan)
        action[self._index] = self._flight.step(state, self._setpoint, self._dt_s)
        return action


class BaseStop:
    """Brings a wheeled base to rest by ramps and holds everything else.

    Needs no observation: it starts from the speeds that were commanded last.

    Args:
      action_spec: with ``forward_mps`` and ``yaw_rate_radps``.
      observation_spec: not used.
      dt_s: control period.
    """

    needs_state = False
    DECELERATION = (1.0, 3.0)
    """Of ``forward_mps`` [m/s²] and ``yaw_rate_radps`` [rad/s²]: a loaded AMR stops from 2 m/s within 2 m."""

    def __init__(self, action_spec: ActionSpec, observation_spec: ObservationSpec, dt_s: float) -> None:
        del observation_spec
        names = ("forward_mps", "yaw_rate_radps")
        _need("base/stop@1", names, action_spec)
        self._index = [action_spec.names.index(n) for n in names]
        self._size = action_spec.size
        self._step = np.array(self.DECELERATION) * dt_s
        self._speed = np.zeros(2)

    def reset(self, state: RobotState, last_action: Array) -> None:
        """Start the ramps at the action applied last."""
        del state
        self._speed = np.nan_to_num(last_action[self._index], nan=0.0, posinf=0.0, neginf=0.0)

    def act(self, state: RobotState) -> Array:
        """Return (n_actions,), NaN but for the base."""
        del state
        self._speed = np.sign(self._speed) * np.maximum(np.abs(self._speed) - self._step, 0.0)
        action = np.full(self._size, np.nan)
        action[self._index] = self._speed
        return action


def _need(fallback: str, names: tuple[str, ...], spec: ActionSpec) -> None:
    missing = [n for n in names if n not in spec.names]
    if missing:
        raise PackageError("robot", f"fallback {fallback} drives {', '.join(missing)}; this robot has {spec.names}.")
