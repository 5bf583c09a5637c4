"""Joint impedance: torque = K (q_d - q) + D (qd_d - qd) + gravity, limited.

References:
  N. Hogan, "Impedance control: an approach to manipulation", J. Dynamic Systems, Measurement and Control 107(1) (1985).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embodied_controllers.contract import Array, RobotState


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpedanceSetpoint:
    """Where the joints shall be.

    Attributes:
      joint_pos: (n,) rad or m.
      joint_vel: (n,) rad/s or m/s; None means at rest.
      gravity: (n,) torque that holds the arm against gravity, N m; None where the robot compensates it itself.
    """

    joint_pos: Array
    joint_vel: Array | None = None
    gravity: Array | None = None


class JointImpedanceController:
    """Springs and dampers at the joints; implements ``Controller[ImpedanceSetpoint]``.

    Args:
      stiffness: (n,) N m/rad or N/m.
      damping: (n,) N m s/rad or N s/m.
      torque_max: (n,) limits, N m or N.
      first: index of the first joint in ``RobotState.joint_pos``.
    """

    def __init__(self, stiffness: Array, damping: Array, torque_max: Array, first: int = 0) -> None:
        arrays = [np.asarray(a, dtype=np.float64) for a in (stiffness, damping, torque_max)]
        if any(a.ndim != 1 or a.shape != arrays[0].shape or not (a >= 0.0).all() for a in arrays):
            raise ValueError("stiffness, damping and torque_max must be (n,) numbers >= 0 of one length.")
        self.stiffness, self.damping, self.torque_max = arrays
        self.joints = slice(first, first + len(arrays[0]))
        self._hold = np.zeros(len(arrays[0]))

    def reset(self, state: RobotState) -> None:
        """Hold the present posture until a finite set-point comes."""
        self._hold = np.array(state.joint_pos[self.joints], dtype=np.float64)

    def step(self, state: RobotState, setpoint: ImpedanceSetpoint, dt_s: float) -> Array:
        """Return (n,) torques. Entries of the set-point that are not finite keep the last finite ones."""
        del dt_s
        goal = np.where(np.isfinite(setpoint.joint_pos), setpoint.joint_pos, self._hold)
        self._hold = goal
        speed = 0.0 if setpoint.joint_vel is None else np.nan_to_num(setpoint.joint_vel)
        torque = self.stiffness * (goal - state.joint_pos[self.joints])
        torque = torque + self.damping * (speed - state.joint_vel[self.joints])
        if setpoint.gravity is not None:
            torque = torque + setpoint.gravity
        return np.clip(torque, -self.torque_max, self.torque_max)
