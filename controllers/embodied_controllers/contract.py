"""What a robot tells and takes, and what a controller is: the records that cross every border above the motors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def _zeros3() -> Array:
    return np.zeros(3)


def _identity_quat() -> Array:
    return np.array([1.0, 0.0, 0.0, 0.0])


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotState:
    """One sample of a robot's own sensors.

    Attributes:
      time_s: time of the sample on the robot's clock.
      joint_pos: (n_joints,) positions in the order of the robot's spec, rad or m.
      joint_vel: (n_joints,) velocities, rad/s or m/s.
      base_pos_world_m: (3,) position of the base in the world (odometry or localisation).
      base_quat_wxyz: (4,) orientation of the base in the world, scalar first.
      base_vel_body_mps: (3,) linear velocity in the body frame.
      base_angvel_body_radps: (3,) angular velocity in the body frame.
      signals: further named scalars of this robot (``gripper_force_n``, ``battery_ratio``, ``deck_load_kg`` …).
    """

    time_s: float
    joint_pos: Array
    joint_vel: Array
    base_pos_world_m: Array = field(default_factory=_zeros3)
    base_quat_wxyz: Array = field(default_factory=_identity_quat)
    base_vel_body_mps: Array = field(default_factory=_zeros3)
    base_angvel_body_radps: Array = field(default_factory=_zeros3)
    signals: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One action vector in the order of a robot's :class:`ActionSpec`.

    Attributes:
      values: (n_actions,) in the units of the spec.
    """

    values: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionSpec:
    """Names, units and limits of an action vector, readable while no robot is connected.

    Attributes:
      names: (n,) entries with the unit as suffix, for instance ``forward_mps``.
      low: (n,) lower limits.
      high: (n,) upper limits.
      safe: (n,) values that bring the robot to rest; NaN means "hold the present value of that entry".
      groups: named slices such as ``base``, ``arm``, ``gripper``.
    """

    names: tuple[str, ...]
    low: Array
    high: Array
    safe: Array
    groups: Mapping[str, slice] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Number of entries."""
        return len(self.names)

    def clip(self, values: Array) -> Array:
        """Return (n,) ``values`` inside the limits; what is not finite becomes NaN for the robot to replace."""
        values = np.asarray(values, dtype=np.float64)
        return np.where(np.isfinite(values), np.clip(values, self.low, self.high), np.nan)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationSpec:
    """Names and units of what a robot reads, readable while it is not connected.

    Attributes:
      joint_names: (n_joints,) names with unit suffix, the order of ``RobotState.joint_pos``.
      joint_low: (n_joints,) position limits; -inf where there is none.
      joint_high: (n_joints,) position limits.
      joint_vel_max: (n_joints,) speed limits.
      signals: names of the scalars in ``RobotState.signals``.
      cameras: camera names on this robot.
      rate_hz: how often a new sample exists.
    """

    joint_names: tuple[str, ...]
    joint_low: Array
    joint_high: Array
    joint_vel_max: Array
    signals: tuple[str, ...] = ()
    cameras: tuple[str, ...] = ()
    rate_hz: float = 50.0


S = TypeVar("S", contravariant=True)


class Controller(Protocol[S]):
    """A control law: pure NumPy, no engine, any ``dt_s`` it declares.

    ``S`` is its set-point, a frozen dataclass of its own.
    """

    def reset(self, state: RobotState) -> None:
        """Forget the past and start from ``state`` without a jump."""
        ...

    def step(self, state: RobotState, setpoint: S, dt_s: float) -> Array:
        """Return the action values (of the groups it drives) for this period."""
        ...
