"""Joint impedance: each joint is a spring and damper around its target, on top of what carries the arm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from embodied_controllers.contract import Array, RobotState


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpedanceSetpoint:
    """Where the springs rest.

    Attributes:
      joint_pos: (n,) targets, rad or m.
      joint_vel: (n,) target velocities, rad/s or m/s; None for rest.
    """

    joint_pos: Array
    joint_vel: Array | None = None


class JointImpedanceController:
    """tau = K (q_d - q) + D (qd_d - qd) + g(q), inside the effort limits; implements ``Controller[ImpedanceSetpoint]``.

    Equation 1 of A. Albu-Schaeffer, C. Ott, G. Hirzinger, "A Unified Passivity-based Control Framework for Position,
    Torque and Impedance Control of Flexible Joint Robots", IJRR 26(1), 2007, for rigid joints. A target that is not
    finite is replaced by the last good one, so that bad input never becomes a torque.

    Args:
      stiffness: (n,) K, N·m/rad or N/m.
      damping: (n,) D, N·m·s/rad or N·s/m.
      effort_max: (n,) limits, N·m or N.
      indices: (n,) where the joints stand in ``RobotState.joint_pos``.
      gravity: returns (n,) efforts that carry the arm at (n,) positions; None where the drive compensates gravity.

    Raises:
      ValueError: the arrays differ in length or a gain is negative.
    """

    def __init__(
        self,
        *,
        stiffness: Array,
        damping: Array,
        effort_max: Array,
        indices: Array | slice,
        gravity: Callable[[Array], Array] | None = None,
    ) -> None:
        sizes = {len(stiffness), len(damping), len(effort_max)}
        if len(sizes) != 1:
            raise ValueError(f"stiffness, damping and effort_max must be of one length, got {sorted(sizes)}.")
        if np.any(np.asarray(stiffness) < 0) or np.any(np.asarray(damping) < 0):
            raise ValueError("stiffness and damping must not be negative: a joint would drive itself away.")
        self.stiffness, self.damping, self.effort_max = stiffness, damping, effort_max
        self._indices = indices if isinstance(indices, slice) else np.asarray(indices, dtype=np.int64)
        self._gravity = gravity
        self._target = np.zeros(len(stiffness))

    def reset(self, state: RobotState) -> None:
        """Rest the springs where the joints are."""
        self._target = state.joint_pos[self._indices].copy()

    def step(self, state: RobotState, setpoint: ImpedanceSetpoint, dt_s: float) -> Array:
        """Return (n,) efforts, N·m or N. The law has no memory, so any ``dt_s`` will do."""
        del dt_s
        self._target = np.where(np.isfinite(setpoint.joint_pos), setpoint.joint_pos, self._target)
        position, velocity = state.joint_pos[self._indices], state.joint_vel[self._indices]
        wanted = np.zeros_like(velocity) if setpoint.joint_vel is None else setpoint.joint_vel
        wanted = np.where(np.isfinite(wanted), wanted, 0.0)
        effort = self.stiffness * (self._target - position) + self.damping * (wanted - velocity)
        if self._gravity is not None:
            effort = effort + self._gravity(position)
        return np.clip(effort, -self.effort_max, self.effort_max)
