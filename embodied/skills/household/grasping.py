"""Where a two-finger gripper can take a thing: candidate tool poses from its box, its solids and what it stands on.

A candidate is a pose of the tool (x leaves the palm, y closes) with the way in and out. The hand leans by a tilt from
the horizontal (0) to straight down (90 degrees); leaning grasps serve tables and compartments, so they come first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from embodied.robots.mobile_manipulator.kinematics import GRIPPER_MAX_M
from embodied.skills.contract import EntityPose
from embodied_controllers.rotation import matrix_of_quat, rot_z
from embodied_scenes.info import EntityInfo

Array = NDArray[np.float64]

PALM_CLEAR_M = 0.058  # from the tool point back to the palm's face, less a margin
PAD_REACH_M, PAD_HALF_M = 0.020, 0.013  # pads along the tool axis and across
MAX_WIDTH_M = GRIPPER_MAX_M - 0.014
_SLACK_RAD = np.deg2rad(12.0)
_ROUND = ("cylinder", "sphere", "capsule", "ellipsoid")
# tilt [deg] and its penalty [s]: what a leaning or upright hand costs later
_TILTS = ((45.0, 0.0), (30.0, 0.1), (60.0, 0.2), (15.0, 0.4), (90.0, 0.6), (75.0, 0.5))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A thing as the gripper sees it: a box that stands upright in a turned frame.

    Attributes:
      center_world_m: (3,) middle of the whole thing.
      half_size_m: (3,) half extents in the frame turned by ``yaw_rad``.
      grip_world_m: (3,) middle of its largest solid.
      grip_half_m: (2,) horizontal half extents of that solid.
      is_round: any closing direction is as good as another.
    """

    center_world_m: Array
    half_size_m: Array
    yaw_rad: float
    grip_world_m: Array
    grip_half_m: Array
    is_round: bool

    @property
    def bottom_m(self) -> float:
        """Height of its lowest point."""
        return float(self.center_world_m[2] - self.half_size_m[2])

    @property
    def top_m(self) -> float:
        """Height of its highest point."""
        return float(self.center_world_m[2] + self.half_size_m[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPath:
    """A way of the tool with one orientation: in to the target, out again.

    Attributes:
      rot_world: (3, 3) tool axes.
      way_in_world_m: (k, 3) tool positions from outside to the target.
      way_out_world_m: (m, 3) tool positions from the target to outside.
      heading_world: (2,) unit horizontal direction of the approach, or zeros if straight down.
      width_m: opening of the gripper on the way in.
      penalty_s: preference among candidates, smaller is better.
    """

    rot_world: Array
    way_in_world_m: Array
    way_out_world_m: Array
    heading_world: Array
    width_m: float
    penalty_s: float


def shape_of(info: EntityInfo, pose: EntityPose) -> Shape:
    """Return a thing's upright shape at a pose."""
    rot = matrix_of_quat(pose.quat_wxyz)
    flat = np.hypot(rot[0], rot[1])
    u = rot[:, int(np.argmax(flat))]
    yaw = float(np.arctan2(u[1], u[0]))
    # The axis that lies flattest gives the heading; fold it so that small turns give small angles.
    to_frame = rot_z(-yaw)
    whole = to_frame @ rot
    half = np.abs(whole) @ info.half_size_m
    center = pose.pos_world_m + rot @ info.box_center_m
    solid = max(info.solids, key=lambda s: float(np.prod(s.half_size_m)), default=None)
    if solid is None:
        return Shape(
            center_world_m=center,
            half_size_m=half,
            yaw_rad=yaw,
            grip_world_m=center,
            grip_half_m=half[:2],
            is_round=False,
        )
    turn = whole @ solid.rot_body
    grip_half = (np.abs(turn) @ solid.half_size_m)[:2]
    upright = abs(float((rot @ solid.rot_body)[2, 2])) > 0.97
    is_round = solid.shape in _ROUND and upright and abs(half[0] - half[1]) < 0.004
    return Shape(
        center_world_m=center,
        half_size_m=half,
        yaw_rad=yaw,
        grip_world_m=pose.pos_world_m + rot @ solid.center_body_m,
        grip_half_m=grip_half,
        is_round=is_round,
    )


def too_wide(shape: Shape) -> bool:
    """Whether no horizontal extent fits between the fingers."""
    return all(w is None or w > MAX_WIDTH_M for w in _widths(shape))


def _widths(shape: Shape) -> tuple[float | None, float | None]:
    """Return the extent across each horizontal axis; None where something sticks out (an ear) between the fingers."""
    clear = shape.half_size_m[:2] - shape.grip_half_m <= 0.006
    x, y = 2 * shape.grip_half_m
    return float(x) if clear[0] else None, float(y) if clear[1] else None


def tool_rotation(heading: Array, tilt_rad: float, flip: bool = False) -> Array:
    """Return tool axes (3, 3): x along the heading and down by the tilt, y horizontal."""
    h = np.array([heading[0], heading[1], 0.0])
    x = np.cos(tilt_rad) * h - np.sin(tilt_rad) * np.array([0.0, 0.0, 1.0])
    y = np.array([-heading[1], heading[0], 0.0]) * (-1.0 if flip else 1.0)
    return np.asarray(np.stack([x, y, np.cross(x, y)], axis=1), dtype=np.float64)


def grasp_paths(shape: Shape, support_m: float, outward_world: Array | None, exit_m: float) -> list[ToolPath]:
    """Return candidate grasps, way in and out included.

    Args:
      shape: the thing.
      support_m: height of what it stands on.
      outward_world: (2,) unit direction out of the compartment it stands in; None if it is reached from above.
      exit_m: how far out of the compartment the tool point must come along ``outward_world``, or how high it must be
        lifted if there is none.
    """
    found: list[ToolPath] = []
    for heading, width, slack in _headings(shape, outward_world):
        for tilt_deg, penalty in _TILTS:
            if outward_world is not None and tilt_deg > 60.0:
                continue
            point = _tool_point(shape, support_m, heading, np.deg2rad(tilt_deg))
            if point is None:
                continue
            off = abs(float(point[2] - shape.center_world_m[2])) / max(float(shape.half_size_m[2]), 0.02)
            for flip in (False, True):
                rot = tool_rotation(heading, np.deg2rad(tilt_deg), flip)
                way_in, way_out = _ways(point, rot, heading, outward_world, exit_m)
                upright = tilt_deg > 80.0
                found.append(
                    ToolPath(
                        rot_world=rot,
                        way_in_world_m=way_in,
                        way_out_world_m=way_out,
                        heading_world=np.zeros(2) if upright else heading,
                        width_m=min(GRIPPER_MAX_M, width + (0.036 if outward_world is None else 0.026)),
                        penalty_s=penalty + slack + 0.3 * off,
                    )
                )
    return found


def _headings(shape: Shape, outward_world: Array | None) -> list[tuple[Array, float, float]]:
    """Return approach headings (2,), the width to grasp [m] and a penalty."""
    out: list[tuple[Array, float, float]] = []
    if shape.is_round:
        width = 2 * float(shape.grip_half_m.max())
        if width <= MAX_WIDTH_M:
            for angle in np.arange(16) * (2 * np.pi / 16):
                out.append((np.array([np.cos(angle), np.sin(angle)]), width, 0.0))
    else:
        for axis in (0, 1):  # heading along this axis, closing across the other
            width = _widths(shape)[1 - axis]
            if width is not None and width <= MAX_WIDTH_M:
                for turn in (0.0, np.pi):
                    for off in (0.0, _SLACK_RAD, -_SLACK_RAD):
                        # A box held a little askew turns between the fingers until its faces meet them.
                        need = width * np.cos(off) + 2 * float(shape.grip_half_m[axis]) * abs(np.sin(off))
                        if need <= MAX_WIDTH_M:
                            angle = shape.yaw_rad + axis * np.pi / 2 + turn + off
                            cost = 2.0 * max(width - 0.06, 0.0) + (0.8 if off else 0.0)
                            out.append((np.array([np.cos(angle), np.sin(angle)]), need, cost))
    if outward_world is not None:
        out = [o for o in out if float(-o[0] @ outward_world) > np.cos(np.deg2rad(50.0))]
    return out


def _tool_point(shape: Shape, support_m: float, heading: Array, tilt_rad: float) -> Array | None:
    """Return where the tool point goes, or None if palm or pads do not fit at this tilt."""
    sin, cos = np.sin(tilt_rad), np.cos(tilt_rad)
    angle = np.arctan2(heading[1], heading[0]) - shape.yaw_rad
    depth = (
        float(np.abs([np.cos(angle), np.sin(angle)]) @ shape.half_size_m[:2])
        if not shape.is_round
        else float(shape.half_size_m[:2].max())
    )
    # Measured from the point that is gripped: an ear towards the palm needs room too.
    depth += float(heading @ (shape.grip_world_m - shape.center_world_m)[:2])
    lowest = support_m + 0.003 + PAD_REACH_M * sin + PAD_HALF_M * cos
    highest = shape.top_m - 0.006
    best: Array | None = None
    best_cost = np.inf
    for back in (0.0, 0.02, 0.04):
        if back > 0.0 and (shape.is_round or back > depth - 0.025):
            break
        room = PALM_CLEAR_M - (depth - back) * cos
        if sin <= 0.05 and room < 0.0:
            continue
        low = max(lowest, shape.top_m - room / sin) if sin > 0.05 else lowest
        if low <= highest:
            z = float(np.clip(shape.center_world_m[2], low, highest))
            cost = abs(z - float(shape.center_world_m[2])) + 0.5 * back
            if cost < best_cost:
                best, best_cost = np.array([*(shape.grip_world_m[:2] - back * heading), z]), cost
    if best is not None:
        return best
    # Very flat things: only the tips reach beside them, from straight above.
    if sin > 0.99 and shape.top_m - support_m > 0.012:
        return np.array([*shape.grip_world_m[:2], lowest])
    return None


def _ways(point: Array, rot: Array, heading: Array, outward_world: Array | None, exit_m: float) -> tuple[Array, Array]:
    up = np.array([0.0, 0.0, 1.0])
    if outward_world is None:
        away = -rot[:, 0]
        away = away / np.linalg.norm(away)
        # Out of a deep box only straight up leads out; from a table the hand leaves as it came, then up.
        lift = point + exit_m * up
        start = point + 0.10 * away if exit_m <= 0.12 else lift + 0.03 * away
        way_in = np.stack([start, point]) if exit_m <= 0.12 else np.stack([start, lift, point])
        return way_in, np.stack([point, lift])
    out = np.array([-heading[0], -heading[1], 0.0])
    travel = exit_m / max(float(-heading @ outward_world), 0.5)
    return np.stack([point + travel * out, point]), np.stack(
        [point, point + 0.025 * up, point + 0.025 * up + travel * out]
    )
