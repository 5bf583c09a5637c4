"""The mobile manipulator's chains as numbers: the same ones as in ``model.xml`` (a test compares the two)."""

from __future__ import annotations

import numpy as np

from embodied_controllers.arm.chain import SerialChain
from embodied_controllers.arm.srs import SrsGeometry

ARM_NAMES = tuple(f"arm_{i}" for i in range(7))
# KUKA LBR iiwa 7 R800 data sheet.
ARM_LIMIT_RAD = np.deg2rad([170.0, 120.0, 170.0, 120.0, 170.0, 120.0, 175.0])
ARM_SPEED_RADPS = np.deg2rad([98.0, 98.0, 100.0, 130.0, 140.0, 180.0, 180.0])
ARM_TORQUE_NM = np.array([176.0, 176.0, 110.0, 110.0, 110.0, 40.0, 40.0])
ARM_STIFFNESS_NMPRAD = np.array([4000.0, 4000.0, 3000.0, 3000.0, 1500.0, 1000.0, 600.0])
SERVO_LAG_S = 0.06  # damping over stiffness of every arm and torso servo: a moving target is followed this much later

TORSO_MAX_M = 0.45
TORSO_SPEED_MPS = 0.25
MOUNT_M = np.array([0.05, 0.0, 0.34])  # arm base in the base frame with the torso down
SHOULDER_M, UPPER_M, FORE_M = 0.34, 0.40, 0.40
TOOL_M = 0.126 + 0.110  # wrist to the point between the pads
_LINK_OFFSETS_M = ((0, 0, 0), (0, 0, 0.34), (0, 0, 0.2), (0, 0, 0.2), (0, 0, 0.2), (0, 0, 0.2), (0, 0, 0))
_LINK_AXES = ((0, 0, 1), (0, 1, 0), (0, 0, 1), (0, 1, 0), (0, 0, 1), (0, 1, 0), (0, 0, 1))
TOOL_ROT = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]).T
"""Columns are the tool axes in the flange frame: x leaves the palm (flange z), y is the closing direction."""

GRIPPER_MAX_M = 0.11
GRIPPER_FORCE_MAX_N = 40.0
GRIPPER_STIFFNESS_NPM = 1000.0
PAD_REACH_M = 0.02  # pads end this far beyond the tool point


def arm_chain() -> SerialChain:
    """Return the arm alone, from its base to the grasp point."""
    return SerialChain(
        names=ARM_NAMES,
        offsets_m=np.array(_LINK_OFFSETS_M, dtype=np.float64),
        axes=np.array(_LINK_AXES, dtype=np.float64),
        is_slide=(False,) * 7,
        low=-ARM_LIMIT_RAD,
        high=ARM_LIMIT_RAD,
        speed_max=ARM_SPEED_RADPS,
        tool_offset_m=np.array([0.0, 0.0, TOOL_M]),
        tool_rot=TOOL_ROT,
    )


def torso_arm_chain() -> SerialChain:
    """Return torso lift and arm, from the robot's base frame to the grasp point."""
    arm = arm_chain()
    return SerialChain(
        names=("torso_lift", *ARM_NAMES),
        offsets_m=np.vstack([MOUNT_M, arm.offsets_m]),
        axes=np.vstack([[0.0, 0.0, 1.0], arm.axes]),
        is_slide=(True, *arm.is_slide),
        low=np.concatenate([[0.0], arm.low]),
        high=np.concatenate([[TORSO_MAX_M], arm.high]),
        speed_max=np.concatenate([[TORSO_SPEED_MPS], arm.speed_max]),
        tool_offset_m=arm.tool_offset_m,
        tool_rot=arm.tool_rot,
    )


def arm_geometry(margin_rad: float = 0.03) -> SrsGeometry:
    """Return the arm for closed-form solutions that stay ``margin_rad`` inside the joint limits."""
    return SrsGeometry(
        shoulder_m=np.array([0.0, 0.0, SHOULDER_M]),
        upper_m=UPPER_M,
        fore_m=FORE_M,
        tool_m=TOOL_M,
        tool_rot=TOOL_ROT,
        low=-ARM_LIMIT_RAD + margin_rad,
        high=ARM_LIMIT_RAD - margin_rad,
    )
