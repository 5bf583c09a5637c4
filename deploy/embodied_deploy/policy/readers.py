"""How each source of a channel is read from a sample: vectors as they are, and what follows from the base's pose."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embodied_controllers.contract import ActionSpec, ObservationSpec
from embodied_deploy.package.quantities import Channel
from embodied_deploy.policy.sample import Sample

Array = NDArray[np.float64]
Rotation = tuple[float, ...]
Read = Callable[[Sample, Rotation], Any]
"""Returns a vector of the sample itself (an array), or the values of a computed one (a tuple or list)."""

ROTATED = ("base_rot_world_body", "base_vel_world_mps", "gravity_body", "to_goal_pos_body_m")
"""Sources whose reader wants the rotation; the others are given an empty one."""


def rotation_world_body(quat_wxyz: Array) -> Rotation:
    """Return the nine entries, row by row, of the matrix that maps body to world coordinates.

    Args:
      quat_wxyz: (4,) quaternion; its length is divided out. One of length 0 gives NaN.
    """
    w, x, y, z = quat_wxyz.tolist()
    norm = w * w + x * x + y * y + z * z
    s = 2.0 / norm if norm > 0.0 else float("nan")
    return (
        1.0 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y),
        s * (x * y + w * z), 1.0 - s * (x * x + z * z), s * (y * z - w * x),
        s * (x * z - w * y), s * (y * z + w * x), 1.0 - s * (x * x + y * y),
    )  # fmt: skip


def vector(channel: Channel, used: Collection[int], actions: ActionSpec, robot: ObservationSpec) -> tuple[Read, int]:
    """Return how to read a vector of the sample, and its length, 0 where any that is long enough will do.

    Args:
      channel: any one of that source and key.
      used: every index of it that the policy reads.
      actions: of the robot.
      robot: what it observes.
    """
    key = channel.key
    # All of 0..n-1 used means that the vector is known whole: a longer one is another sensor.
    whole = len(used) if set(used) == set(range(len(used))) else 0
    if channel.source == "goal":
        size = 3 if key.endswith("_xyyaw") or key.startswith("pos_") else 4 if key.endswith("_wxyz") else whole
        return lambda s, _: s.goal[key], size
    if channel.source == "ranges":
        return lambda s, _: s.ranges[key], whole
    joints = len(robot.joint_names)
    table: dict[str, tuple[Read, int]] = {
        "joint_pos": (lambda s, _: s.state.joint_pos, joints),
        "joint_vel": (lambda s, _: s.state.joint_vel, joints),
        "base_pos_world_m": (lambda s, _: s.state.base_pos_world_m, 3),
        "base_quat_wxyz": (lambda s, _: s.state.base_quat_wxyz, 4),
        "base_vel_body_mps": (lambda s, _: s.state.base_vel_body_mps, 3),
        "base_angvel_body_radps": (lambda s, _: s.state.base_angvel_body_radps, 3),
        "last_action": (lambda s, _: s.last_action, actions.size),
    }
    return table[channel.source]


def signals(names: list[str]) -> Read:
    """Return how to read scalars of ``RobotState.signals`` in the order of ``names``."""

    def read(sample: Sample, _: Rotation) -> list[float]:
        values = sample.state.signals
        return [values[n] for n in names]

    return read


def _vel_world(sample: Sample, r: Rotation) -> Rotation:
    x, y, z = sample.state.base_vel_body_mps.tolist()
    return r[0] * x + r[1] * y + r[2] * z, r[3] * x + r[4] * y + r[5] * z, r[6] * x + r[7] * y + r[8] * z


def _to_goal_world(sample: Sample, _: Rotation) -> Rotation:
    # Unpacked and not subtracted as arrays, which would stretch a goal of one value over all three axes.
    goal_x, goal_y, goal_z = sample.goal["pos_world_m"].tolist()
    x, y, z = sample.state.base_pos_world_m.tolist()
    return goal_x - x, goal_y - y, goal_z - z


def _to_goal_body(sample: Sample, r: Rotation) -> Rotation:
    x, y, z = _to_goal_world(sample, r)
    return r[0] * x + r[3] * y + r[6] * z, r[1] * x + r[4] * y + r[7] * z, r[2] * x + r[5] * y + r[8] * z


COMPUTED: dict[str, tuple[Read, int]] = {
    "base_rot_world_body": (lambda _, r: r, 9),
    "base_vel_world_mps": (_vel_world, 3),
    "gravity_body": (lambda _, r: (-r[6], -r[7], -r[8]), 3),
    "to_goal_pos_world_m": (_to_goal_world, 3),
    "to_goal_pos_body_m": (_to_goal_body, 3),
}
"""Sources that are computed, with the number of their values."""
