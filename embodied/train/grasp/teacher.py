"""The teacher: where the hand should go from any state, and so what a chunk of actions should be.

A law of feedback, not a script: from every pose of the hand it leads over the thing, down a funnel, closes, and lifts;
closed on nothing it opens and starts again. So states that only the learner gets into can be labelled too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from embodied.robots.mobile_manipulator.kinematics import PAD_REACH_M, arm_geometry
from embodied.train.grasp.scene import BRANCH, hand_down, to_arm
from embodied.train.grasp.task import DT_S, GraspEpisode
from embodied_controllers.base.path_following import wrap_angle

Array = NDArray[np.float64]

HORIZON = 8
"""Actions in a chunk."""
OPEN_M, OPEN_N, CLOSE_N = 0.10, 20.0, 36.0
SPEED_MPS, LIFT_MPS, TURN_RADPS = 0.25, 0.15, 1.2
_GAIN = 0.55  # part of the remaining way gone in one period when it is short
_FOLLOW = 0.8  # part of the way to a target that the servos go in one period (lag 0.06 s)
_NEAR_M, _NEAR_RAD = 0.009, 0.12
_SQUEEZE_N, _EMPTY_M = 15.0, 0.012
_LIFT_TO_M = 0.13
_CLOSING_M = 0.016  # both fingers in one period
_GEOMETRY = arm_geometry()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hand:
    """What the teacher decides by, in the frame of the world.

    Attributes:
      pos_m: (3,) tool point.
      yaw_rad: heading of the hand.
      width_m: opening of the gripper.
      force_n: its squeeze.
      is_closing: the fingers are not fully open.
    """

    pos_m: Array
    yaw_rad: float
    width_m: float
    force_n: float
    is_closing: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """Where to grasp.

    Attributes:
      pos_m: (3,) tool point of the grasp.
      yaw_rad: heading, None for any.
      top_m: height of the thing's top.
      width_m: what the fingers will close to.
      table_m: height of the table.
    """

    pos_m: Array
    yaw_rad: float | None
    top_m: float
    width_m: float
    table_m: float


def hand_of(episode: GraspEpisode) -> Hand:
    """Read the hand's state."""
    pos, rot = episode.tool_world()
    state = episode.robot.read()
    width, force = state.signals["gripper_width_m"], state.signals["gripper_force_n"]
    return Hand(
        pos_m=pos,
        yaw_rad=float(np.arctan2(rot[1, 2], rot[0, 2])),
        width_m=width,
        force_n=force,
        is_closing=width < OPEN_M - 0.008,
    )


def goal_of(episode: GraspEpisode) -> Goal:
    """Choose the grasp of the thing where it lies now."""
    scene, center, rot = episode.scene, episode.thing_world_m, episode.thing_rot_world
    top = center[2] + scene.thing_half_m[2]
    bottom = center[2] - scene.thing_half_m[2]
    depth = max(bottom + PAD_REACH_M + 0.009, top - 0.036)
    yaw = None
    if not scene.is_round:
        yaw = float(np.arctan2(rot[1, 0], rot[0, 0]))
    return Goal(
        pos_m=np.array([center[0], center[1], depth]),
        yaw_rad=yaw,
        top_m=float(top),
        width_m=2 * float(scene.thing_half_m[1]),
        table_m=scene.table_m,
    )


def advise(hand: Hand, goal: Goal) -> tuple[Array, float, bool]:
    """Return where the tool point goes next (3,), its heading, and whether the fingers close."""
    gap = goal.pos_m - hand.pos_m
    off = float(np.hypot(gap[0], gap[1]))
    turn = 0.0 if goal.yaw_rad is None else float(wrap_angle(2 * (goal.yaw_rad - hand.yaw_rad))) / 2
    yaw = hand.yaw_rad + float(np.clip(_GAIN * turn, -TURN_RADPS * DT_S, TURN_RADPS * DT_S))
    is_between = off < 0.03 and abs(gap[2]) < 0.03
    if hand.is_closing and hand.width_m < _EMPTY_M:
        return hand.pos_m + np.array([0.0, 0.0, 0.02]), hand.yaw_rad, False
    if hand.is_closing and hand.force_n > _SQUEEZE_N and hand.width_m > _EMPTY_M:
        # Something is held; the thing rises with the hand, so the height is measured from the table.
        height = goal.table_m + _LIFT_TO_M + 0.03
        up = float(np.clip(_GAIN * (height - hand.pos_m[2]), -0.01, LIFT_MPS * DT_S))
        return hand.pos_m + np.array([0.0, 0.0, up]), hand.yaw_rad, True
    if hand.is_closing and is_between:
        return hand.pos_m, hand.yaw_rad, True
    if off < _NEAR_M and abs(gap[2]) < _NEAR_M and abs(turn) < _NEAR_RAD:
        return hand.pos_m + _GAIN * gap, yaw, True
    # A funnel: the further off, the higher; from outside and too low, first up.
    wrong = max(off - 0.006, 0.0) + 0.05 * max(abs(turn) - 0.06, 0.0)
    height = goal.pos_m[2] + min(4.0 * wrong, goal.top_m - goal.pos_m[2] + 0.05)
    rise = height - hand.pos_m[2]
    blocked = off > 0.02 and hand.pos_m[2] < goal.top_m + PAD_REACH_M + 0.01
    side = np.zeros(2) if blocked else gap[:2]
    step = np.array([*(_GAIN * side), _GAIN * rise])
    step *= min(1.0, SPEED_MPS * DT_S / max(float(np.linalg.norm(step)), 1e-9))
    return hand.pos_m + step, yaw, False


def chunk(hand: Hand, goal: Goal, horizon: int = HORIZON) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Roll the advice forward: tool points (horizon, 3), headings (horizon,) and whether the fingers close."""
    points, yaws, closes = np.zeros((horizon, 3)), np.zeros(horizon), np.zeros(horizon, dtype=bool)
    for k in range(horizon):
        point, yaw, close = advise(hand, goal)
        points[k], yaws[k], closes[k] = point, yaw, close
        hand = _foresee(hand, goal, point, yaw, close)
    return points, yaws, closes


def _foresee(hand: Hand, goal: Goal, point: Array, yaw: float, close: bool) -> Hand:
    pos = hand.pos_m + _FOLLOW * (point - hand.pos_m)
    heading = hand.yaw_rad + _FOLLOW * (yaw - hand.yaw_rad)
    off = goal.pos_m - pos
    holds = (float(np.hypot(off[0], off[1])) < 0.03 and pos[2] < goal.top_m) or hand.force_n > _SQUEEZE_N
    if close:
        stop = goal.width_m if holds else 0.0
        squeeze = hand.force_n + 8.0 if hand.width_m <= stop + 1e-3 else 0.0
        width = max(hand.width_m - _CLOSING_M, stop)
        return replace(hand, pos_m=pos, yaw_rad=heading, width_m=width, force_n=min(squeeze, CLOSE_N), is_closing=True)
    width = min(hand.width_m + _CLOSING_M, OPEN_M)
    return replace(hand, pos_m=pos, yaw_rad=heading, width_m=width, force_n=0.0, is_closing=width < OPEN_M - 0.008)


def joint_targets(points_world_m: Array, yaws_rad: Array, base_xyyaw: Array, torso_m: float) -> Array:
    """Return (n, 7) postures of an upright hand at (n, 3) points; out of reach, the nearest point in reach."""
    pos, rot = to_arm(points_world_m, hand_down(yaws_rad), base_xyyaw, torso_m)
    postures, _ = _GEOMETRY.solve(pos, rot, np.zeros(len(pos)))
    return np.clip(postures[:, BRANCH], _GEOMETRY.low, _GEOMETRY.high)


def label(episode: GraspEpisode, horizon: int = HORIZON) -> Array:
    """Return (horizon, 9) what the teacher would do from here: joint targets [rad], opening [m], force [N]."""
    points, yaws, closes = chunk(hand_of(episode), goal_of(episode), horizon)
    state = episode.robot.read()
    base = np.array([*state.base_pos_world_m[:2], 2 * np.arctan2(state.base_quat_wxyz[3], state.base_quat_wxyz[0])])
    arm = joint_targets(points, yaws, base, float(state.joint_pos[0]))
    grip = np.where(closes[:, None], [[0.0, CLOSE_N]], [[OPEN_M, OPEN_N]])
    return np.hstack([arm, grip])
