"""What the mobile manipulator takes and tells, readable without an engine."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from embodied.robots.base import RobotSpec
from embodied.robots.mobile_manipulator import kinematics as k
from embodied_controllers.contract import ActionSpec, ObservationSpec

TORSO, ARM, GRIPPER, HEAD = 2, slice(3, 10), slice(10, 12), slice(12, 14)
HEAD_LIMIT_RAD = ((-1.309, 1.309), (-0.785, 1.047))
SPEED_MPS, YAW_RATE_RADPS = 0.8, 1.5
DEFAULT_FORCE_N = 30.0

CARRY_ARM_RAD = np.deg2rad([0.0, -38.0, 0.0, 115.0, 0.0, 103.0, 0.0])
"""Elbow back, hand down before the chest: arm and a held thing stay within 0.3 m of the base's middle."""
CARRY_TORSO_M = 0.15

ACTION = ActionSpec(
    names=(
        "forward_mps",
        "yaw_rate_radps",
        "torso_m",
        *(f"arm_{i}_rad" for i in range(7)),
        "gripper_width_m",
        "gripper_force_n",
        "head_pan_rad",
        "head_tilt_rad",
    ),
    low=np.array(
        [-SPEED_MPS, -YAW_RATE_RADPS, 0.0, *-k.ARM_LIMIT_RAD, 0.0, 0.0, HEAD_LIMIT_RAD[0][0], HEAD_LIMIT_RAD[1][0]]
    ),
    high=np.array(
        [
            SPEED_MPS,
            YAW_RATE_RADPS,
            k.TORSO_MAX_M,
            *k.ARM_LIMIT_RAD,
            k.GRIPPER_MAX_M,
            k.GRIPPER_FORCE_MAX_N,
            HEAD_LIMIT_RAD[0][1],
            HEAD_LIMIT_RAD[1][1],
        ]
    ),
    safe=np.array([0.0, 0.0, *[np.nan] * 12]),
    groups={"base": slice(0, 2), "torso": slice(2, 3), "arm": ARM, "gripper": GRIPPER, "head": HEAD},
)

OBSERVATION = ObservationSpec(
    joint_names=(
        "torso_m",
        *(f"arm_{i}_rad" for i in range(7)),
        "finger_left_m",
        "finger_right_m",
        "head_pan_rad",
        "head_tilt_rad",
    ),
    joint_low=np.array([0.0, *-k.ARM_LIMIT_RAD, 0.0, 0.0, HEAD_LIMIT_RAD[0][0], HEAD_LIMIT_RAD[1][0]]),
    joint_high=np.array(
        [k.TORSO_MAX_M, *k.ARM_LIMIT_RAD, *[k.GRIPPER_MAX_M / 2] * 2, HEAD_LIMIT_RAD[0][1], HEAD_LIMIT_RAD[1][1]]
    ),
    joint_vel_max=np.array([k.TORSO_SPEED_MPS, *k.ARM_SPEED_RADPS, 0.1, 0.1, 2.0, 2.0]),
    signals=("gripper_force_n", "gripper_width_m"),
    cameras=("head_cam", "wrist_cam"),
    rate_hz=50.0,
)

MOBILE_MANIPULATOR = RobotSpec(
    kind="mobile_manipulator",
    mjcf=Path(__file__).with_name("model.xml"),
    driver="embodied.robots.mobile_manipulator.driver:MobileManipulator",
    action_spec=ACTION,
    observation_spec=OBSERVATION,
    dt_ctrl_s=0.02,
    home={
        "torso_lift": CARRY_TORSO_M,
        **{f"arm_{i}": float(CARRY_ARM_RAD[i]) for i in range(7)},
        "finger_left": 0.02,
        "finger_right": 0.02,
        "head_tilt": 0.5,
    },
    radius_m=0.3,
    card="Differential base, 0.45 m column, 7-joint arm after the KUKA iiwa 7 R800, 110 mm gripper; see README.md.",
)
