"""Closing a parallel gripper with a set force through stiff position servos."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embodied_controllers.contract import Array, RobotState


@dataclass(frozen=True, slots=True, kw_only=True)
class GripperSetpoint:
    """What the gripper shall do.

    Attributes:
      width_m: wanted opening; 0 closes until something is held.
      force_n: greatest force of each finger.
    """

    width_m: float
    force_n: float


class GripperForceController:
    """Target of a finger's servo, force = stiffness (target - position); implements ``Controller[GripperSetpoint]``.

    A reference runs towards the wanted opening at ``speed_mps`` and never leaves the position by more than
    force / stiffness: free fingers move at that speed, stopped ones press with the force asked for, built up smoothly.

    Args:
      stiffness_npm: of the finger servos.
      speed_mps: of one finger.
      index: where the finger's position stands in ``RobotState.joint_pos``.
    """

    def __init__(self, stiffness_npm: float, speed_mps: float = 0.08, index: int = 0) -> None:
        if not (stiffness_npm > 0.0 and speed_mps > 0.0):
            raise ValueError(f"stiffness_npm and speed_mps must be > 0, got {stiffness_npm} and {speed_mps}.")
        self.stiffness_npm, self.speed_mps, self.index = stiffness_npm, speed_mps, index
        self._reference_m = 0.0

    def reset(self, state: RobotState) -> None:
        """Start from the present finger position."""
        self._reference_m = float(state.joint_pos[self.index])

    def step(self, state: RobotState, setpoint: GripperSetpoint, dt_s: float) -> Array:
        """Return (1,) the servo target [m] of each finger."""
        return np.array([self.target_m(float(state.joint_pos[self.index]), setpoint, dt_s)])

    def target_m(self, finger_m: float, setpoint: GripperSetpoint, dt_s: float) -> float:
        """Return the servo target for a finger at ``finger_m`` from the middle."""
        reach = setpoint.force_n / self.stiffness_npm
        goal = setpoint.width_m / 2 if setpoint.width_m > 1e-3 else -reach
        # A change of direction takes effect at once: the squeeze built up so far must not delay letting go.
        if goal > finger_m:
            self._reference_m = max(self._reference_m, finger_m)
        else:
            self._reference_m = min(self._reference_m, finger_m)
        step = min(max(goal - self._reference_m, -self.speed_mps * dt_s), self.speed_mps * dt_s)
        self._reference_m = min(max(self._reference_m + step, finger_m - reach), finger_m + reach)
        return self._reference_m
