"""What the arm may hit, as oriented boxes: furniture, things, walls, and the robot itself as spheres."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from embodied.robots.mobile_manipulator.kinematics import GRIPPER_MAX_M, MOUNT_M, TOOL_M, arm_chain
from embodied.skills.contract import SceneView
from embodied_controllers.rotation import matrix_of_quat, rot_z
from embodied_scenes.info import SolidInfo

Array = NDArray[np.float64]
_CHAIN = arm_chain()
_WALL_HEIGHT_M = 2.4

# Spheres on the arm: index of the joint frame, offset along its z and along its y, radius [m]; see model.xml.
_ARM_SPHERES = np.array(
    [
        (2, -0.08, 0.0, 0.060),
        (2, 0.02, 0.0, 0.058),
        (2, 0.12, 0.0, 0.058),
        (3, 0.0, 0.0, 0.070),
        (3, 0.09, 0.0, 0.052),
        (4, -0.04, 0.0, 0.050),
        (4, 0.03, 0.0, 0.047),
        (4, 0.10, 0.0, 0.047),
        (5, 0.0, 0.0, 0.054),
        (6, 0.09, 0.0, 0.043),
        (6, 0.15, -0.034, 0.034),
        (6, 0.15, 0.0, 0.034),
        (6, 0.15, 0.034, 0.034),
    ]
)
# Fingers: along the tool axis (before the tool point), across the pad's width, radius; y depends on the opening.
_FINGER_SPHERES = np.array([(0.012, 0.006, 0.008), (0.012, -0.006, 0.008), (-0.012, 0.0, 0.013), (-0.035, 0.0, 0.013)])

# The robot's own body as boxes in the base frame: centre, half size [m]. The last two rise with the torso.
_OWN_CENTER_M = np.array(
    [
        (0.0, 0.0, 0.14),
        (0.05, 0.0, 0.38),
        (-0.13, -0.17, 0.82),
        (-0.12, -0.17, 1.44),
        (0.05, 0.0, 0.45),
        (0.05, 0.0, 0.66),
    ]
)
_OWN_HALF_M = np.array(
    [
        (0.22, 0.22, 0.12),
        (0.09, 0.09, 0.13),
        (0.018, 0.018, 0.56),
        (0.05, 0.08, 0.07),
        (0.07, 0.07, 0.11),
        (0.06, 0.065, 0.10),
    ]
)
_OWN_FIRST = (3, 5, 1, 1, 5, 5)  # spheres from here on can reach this box
_RISING = np.array([False, False, False, False, True, True])


@dataclass(frozen=True, slots=True, kw_only=True)
class Boxes:
    """Oriented boxes in the world: centres (m, 3), axes as columns (m, 3, 3), half sizes (m, 3), owners."""

    center_world_m: Array
    rot_world: Array
    half_size_m: Array
    owners: tuple[str, ...]

    def without(self, names: Iterable[str]) -> Boxes:
        """Return the boxes of all other owners."""
        drop = set(names)
        keep = np.array([o not in drop for o in self.owners], dtype=bool)
        return Boxes(
            center_world_m=self.center_world_m[keep],
            rot_world=self.rot_world[keep],
            half_size_m=self.half_size_m[keep],
            owners=tuple(o for o in self.owners if o not in drop),
        )

    def near(self, point_world_m: Array, reach_m: float) -> Boxes:
        """Return the boxes that come within ``reach_m`` of a (3,) point."""
        local = np.einsum("mji,mj->mi", self.rot_world, point_world_m - self.center_world_m)
        gap = np.linalg.norm(np.maximum(np.abs(local) - self.half_size_m, 0.0), axis=1)
        keep = gap < reach_m
        return Boxes(
            center_world_m=self.center_world_m[keep],
            rot_world=self.rot_world[keep],
            half_size_m=self.half_size_m[keep],
            owners=tuple(o for o, k in zip(self.owners, keep, strict=True) if k),
        )

    def clearance_m(self, points_world_m: Array) -> Array:
        """Return (..., m) distances from points (..., 3) to each box; 0 inside."""
        local = np.einsum("mji,...mj->...mi", self.rot_world, points_world_m[..., None, :] - self.center_world_m)
        return np.linalg.norm(np.maximum(np.abs(local) - self.half_size_m, 0.0), axis=-1)


def _cover(rot: Array, solid: SolidInfo) -> list[tuple[Array, Array]]:
    """Return boxes (axes, half size) over a solid; a cylinder takes three turned ones, so no corner sticks out."""
    if solid.shape != "cylinder":
        return [(rot, solid.half_size_m)]
    # Half edges 0.95 r and 0.5 r: every 60 degrees one covers the circle to 0.95 r and no corner passes 1.07 r.
    half = solid.half_size_m * np.array([0.95, 0.5, 1.0])
    return [(rot @ rot_z(angle), half) for angle in (0.0, np.pi / 3, 2 * np.pi / 3)]


NO_BOXES = Boxes(
    center_world_m=np.zeros((0, 3)), rot_world=np.zeros((0, 3, 3)), half_size_m=np.zeros((0, 3)), owners=()
)


def scene_boxes(view: SceneView, *, ignore: Sequence[str] = ()) -> Boxes:
    """Return all solids whose pose is known, and the walls and other robots as tall boxes."""
    centers, rots, halves, owners = [], [], [], []
    for entity in view.info.entities.values():
        if entity.name in ignore:
            continue
        if entity.movable and view.pose(entity.name) is None:
            continue
        frames: dict[str, tuple[Array, Array] | None] = {}
        for solid in entity.solids:
            if solid.body not in frames:
                pose = view.body_pose(solid.body)
                frames[solid.body] = None if pose is None else (pose.pos_world_m, matrix_of_quat(pose.quat_wxyz))
            frame = frames[solid.body]
            if frame is None:
                continue
            center, turn = frame[0] + frame[1] @ solid.center_body_m, frame[1] @ solid.rot_body
            for rot, half in _cover(turn, solid) if entity.movable else [(turn, solid.half_size_m)]:
                centers.append(center)
                rots.append(rot)
                halves.append(half)
                owners.append(entity.name)
    walls = view.footprints(ignore=tuple(view.info.entities))
    for cx, cy, hx, hy, yaw in walls:
        centers.append(np.array([cx, cy, _WALL_HEIGHT_M / 2]))
        rots.append(rot_z(yaw))
        halves.append(np.array([hx, hy, _WALL_HEIGHT_M / 2]))
        owners.append("")
    return Boxes(
        center_world_m=np.array(centers).reshape(-1, 3),
        rot_world=np.array(rots).reshape(-1, 3, 3),
        half_size_m=np.array(halves).reshape(-1, 3),
        owners=tuple(owners),
    )


def hits(
    boxes: Boxes,
    base_xyyaw: Array,
    posture: Array,
    *,
    margin_m: float,
    width_m: float = GRIPPER_MAX_M,
    held_tool_m: Array | None = None,
) -> NDArray[np.bool_]:
    """Say which postures touch something.

    Args:
      boxes: obstacles.
      base_xyyaw: (3,) or (n, 3) base poses in the world.
      posture: (n, 8) torso [m] and arm [rad].
      margin_m: distance kept from obstacles by everything but the finger tips, which keep 2 mm.
      width_m: opening of the gripper.
      held_tool_m: (k, 3) points of a held thing in the tool frame.

    Returns:
      (n,) True where an obstacle, the floor or the robot's own body is nearer than allowed.
    """
    local, radius, tight = _spheres(posture, width_m, held_tool_m)
    base = np.broadcast_to(base_xyyaw, (len(posture), 3))
    world = np.einsum("nij,nsj->nsi", rot_z(base[:, 2]), local)
    world[..., :2] += base[:, None, :2]
    need = radius + np.where(tight, min(0.002, margin_m), margin_m)
    bad = (world[..., 2] < need).any(axis=1)
    if len(boxes.owners):
        bad |= (boxes.clearance_m(world) < need[:, None]).any(axis=(1, 2))
    lowered = local.copy()
    lowered[..., 2] -= posture[:, None, 0]
    for center, half, rises, first in zip(_OWN_CENTER_M, _OWN_HALF_M, _RISING, _OWN_FIRST, strict=True):
        gap = np.linalg.norm(np.maximum(np.abs((lowered if rises else local)[:, first:] - center) - half, 0.0), axis=-1)
        bad |= (gap < radius[first:] + 0.008).any(axis=1)
    return bad


def tool_hits(
    boxes: Boxes,
    tool_pos_m: Array,
    tool_rot: Array,
    *,
    margin_m: float,
    width_m: float,
    held_tool_m: Array | None = None,
) -> NDArray[np.bool_]:
    """Say at which of (n, 3) tool positions with one orientation (3, 3) hand, wrist or held thing touch something."""
    local = np.array(
        [(z - TOOL_M, y, 0.0) for _, z, y, _ in _ARM_SPHERES[9:]]
        + [(-TOOL_M, 0.0, 0.0)]
        + [(a, s * (width_m / 2 + 0.007), c) for a, c, _ in _FINGER_SPHERES for s in (1.0, -1.0)]
        + ([] if held_tool_m is None else [tuple(p) for p in held_tool_m])
    )
    held = 0 if held_tool_m is None else len(held_tool_m)
    fingers = 2 * len(_FINGER_SPHERES)
    radius = np.array([*_ARM_SPHERES[9:, 3], _ARM_SPHERES[8, 3], *np.repeat(_FINGER_SPHERES[:, 2], 2), *[0.004] * held])
    margin = np.full(len(radius), margin_m)
    margin[len(radius) - held - fingers : len(radius) - held] = min(0.002, margin_m)
    world = tool_pos_m[:, None] + (local @ tool_rot.T)[None]
    bad = (world[..., 2] < radius + margin).any(axis=1)
    if len(boxes.owners):
        bad |= (boxes.clearance_m(world) < (radius + margin)[:, None]).any(axis=(1, 2))
    return np.asarray(bad, dtype=bool)


def _spheres(posture: Array, width_m: float, held_tool_m: Array | None) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return sphere centres (n, s, 3) in the base frame, radii (s,), and which of them may come close (s,)."""
    origins, turns = _CHAIN.frames(posture[:, 1:])
    origins = origins + MOUNT_M
    origins[..., 2] += posture[:, None, 0]
    index = _ARM_SPHERES[:, 0].astype(int)
    frames = turns[:, index]
    arm = origins[:, index] + frames[..., 2] * _ARM_SPHERES[:, 1, None] + frames[..., 1] * _ARM_SPHERES[:, 2, None]
    tool, frame = origins[:, -1], turns[:, -1]
    points = [
        (along, side * (width_m / 2 + 0.007), across) for along, across, _ in _FINGER_SPHERES for side in (1.0, -1.0)
    ]
    radii = [*_ARM_SPHERES[:, 3], *np.repeat(_FINGER_SPHERES[:, 2], 2)]
    tight = [False] * len(_ARM_SPHERES) + [True] * len(points)
    if held_tool_m is not None:
        points += [tuple(p) for p in held_tool_m]
        radii += [0.004] * len(held_tool_m)
        tight += [False] * len(held_tool_m)
    fingers = tool[:, None] + np.einsum("nij,kj->nki", frame, np.array(points))
    return np.concatenate([arm, fingers], axis=1), np.array(radii), np.array(tight)
