"""Doors and drawers in motion: where handle and panel are at any opening, and tool paths that move them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from embodied.skills.contract import SceneView
from embodied.skills.household.obstacles import Boxes
from embodied_controllers.rotation import exp_rotation, matrix_of_quat
from embodied_scenes.info import HandleInfo, SolidInfo

Array = NDArray[np.float64]

PAD_TIP_M, PAD_SIDE_M = 0.020, 0.013  # how far the pads reach beyond the tool point and to either side of it
GRASP_WIDTH_M = 0.055  # opening with which the fingers go around a bar
PUSH_GAP_M = 0.004  # planned distance between pushing finger and panel; contact closes it


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactPath:
    """A tool path with its orientation and the obstacles of each step.

    Attributes:
      pos_world_m: (n, 3) tool points.
      rot_world: (n, 3, 3) tool axes as columns.
      opening: (n,) opening of the door [rad or m] at each step, which says where its boxes are.
      first: index of the first step in contact.
      last: index of the last one.
      width_m: opening of the gripper on the way in, for collisions.
      penalty_s: how much worse than the best it is.
    """

    pos_world_m: Array
    rot_world: Array
    opening: Array
    first: int
    last: int
    width_m: float
    penalty_s: float


class Articulation:
    """The moving part of an openable entity, at any opening.

    Args:
      view: for the present poses.
      name: the entity; it must have a joint and a handle.

    Raises:
      ValueError: it has none, or its pose is unknown.
    """

    def __init__(self, view: SceneView, name: str) -> None:
        info = view.info.entities[name]
        root = view.pose(name)
        part = view.body_pose(info.joint_part) if info.joint_part else None
        handles = [h for h in info.handles if h.body == info.joint_part]
        if root is None or part is None or not handles:
            raise ValueError(f"{name}: a joint, a handle on its moving part and a known pose are needed.")
        rot = matrix_of_quat(root.quat_wxyz)
        self.name = name
        self.is_hinge = info.joint_kind == "hinge"
        self.upper = info.joint_upper
        self.now = float(np.clip(view.opening(name), 0.0, 1.0)) * info.joint_upper
        self.axis = rot @ info.joint_axis_root
        self.anchor = root.pos_world_m + rot @ info.joint_anchor_root_m
        part_rot = matrix_of_quat(part.quat_wxyz)
        self._part_solids = [s for s in info.solids if s.body == info.joint_part]
        self._boxes_now = _boxes(self._part_solids, part.pos_world_m, part_rot, name)
        handle: HandleInfo = handles[0]
        self._bar_now = part.pos_world_m + part_rot @ handle.pos_body_m
        self._bar_axis_now = part_rot @ _unit(handle.axis_body)
        self._outward_now = part_rot @ _unit(handle.outward_body)
        volume = [float(np.prod(s.half_size_m)) for s in self._part_solids]
        panel = int(np.argmax(volume)) if volume else 0
        if not self.is_hinge:  # of a drawer's boards the one furthest out is its front
            volume = [float(c @ self._outward_now) for c in self._boxes_now.center_world_m]
            order = sorted(range(len(volume)), key=lambda i: volume[i])
            panel = max(order, key=lambda i: float(np.prod(self._boxes_now.half_size_m[i])) + 1e-3 * volume[i])
        self._panel = panel

    def turn(self, opening: float) -> tuple[Array, Array]:
        """Return the motion (3, 3) and (3,) that takes present world points to where they are at an opening."""
        delta = opening - self.now
        if not self.is_hinge:
            return np.eye(3), self.axis * delta
        rot = exp_rotation(self.axis * delta)
        return rot, self.anchor - rot @ self.anchor

    def boxes(self, opening: float) -> Boxes:
        """Return the solids of the moving part at an opening."""
        rot, shift = self.turn(opening)
        now = self._boxes_now
        return Boxes(
            center_world_m=now.center_world_m @ rot.T + shift,
            rot_world=rot @ now.rot_world,
            half_size_m=now.half_size_m,
            owners=now.owners,
        )

    def bar(self, opening: float) -> tuple[Array, Array, Array]:
        """Return the middle of the handle's bar, its axis and the direction out of the door, in the world."""
        rot, shift = self.turn(opening)
        return rot @ self._bar_now + shift, rot @ self._bar_axis_now, rot @ self._outward_now

    def panel(self, opening: float) -> tuple[Array, Array, Array, Array]:
        """Return centre, axes (columns: from hinge to free edge, out of the door, along the hinge), half sizes, reach.

        The last is (2,): distance of the free edge from the hinge axis, and of the hinge edge.
        """
        rot, shift = self.turn(opening)
        center = rot @ self._boxes_now.center_world_m[self._panel] + shift
        outward = rot @ self._outward_now
        arm = center - self.anchor
        across = arm - self.axis * (arm @ self.axis) - outward * (arm @ outward)
        across = _unit(across)
        axes = np.stack([across, outward, self.axis], axis=1)
        half = (
            np.abs(axes.T @ (rot @ self._boxes_now.rot_world[self._panel])) @ self._boxes_now.half_size_m[self._panel]
        )
        middle = float(arm @ across)
        return center, axes, half, np.array([middle + half[0], middle - half[0]])

    def floor_boxes(self, openings: Array) -> Array:
        """Return (n, 5) footprints of the moving part at several openings."""
        rows = []
        for opening in openings:
            b = self.boxes(float(opening))
            for center, rot, half in zip(b.center_world_m, b.rot_world, b.half_size_m, strict=True):
                yaw = float(np.arctan2(rot[1, 0], rot[0, 0]))
                c, s = np.cos(yaw), np.sin(yaw)
                flat = np.abs(np.array([[c, s], [-s, c]]) @ rot[:2]) @ half
                rows.append([center[0], center[1], flat[0], flat[1], yaw])
        return np.array(rows).reshape(-1, 5)


def static_boxes(view: SceneView, scene: Boxes, name: str) -> Boxes:
    """Return the scene's boxes with those of the moving part of ``name`` taken out."""
    info = view.info.entities[name]
    fixed = [s for s in info.solids if s.body != info.joint_part]
    parts = [scene.without([name])]
    for body in dict.fromkeys(s.body for s in fixed):
        pose = view.body_pose(body)
        if pose is not None:
            solids = [s for s in fixed if s.body == body]
            parts.append(_boxes(solids, pose.pos_world_m, matrix_of_quat(pose.quat_wxyz), name))
    return join_boxes(parts)


def keep_boxes(boxes: Boxes, keep: NDArray[np.bool_]) -> Boxes:
    """Return some of the boxes, by a mask (m,)."""
    return Boxes(
        center_world_m=boxes.center_world_m[keep],
        rot_world=boxes.rot_world[keep],
        half_size_m=boxes.half_size_m[keep],
        owners=tuple(o for o, k in zip(boxes.owners, keep, strict=True) if k),
    )


def join_boxes(parts: list[Boxes]) -> Boxes:
    """Return the boxes of all parts."""
    return Boxes(
        center_world_m=np.concatenate([p.center_world_m for p in parts]),
        rot_world=np.concatenate([p.rot_world for p in parts]),
        half_size_m=np.concatenate([p.half_size_m for p in parts]),
        owners=tuple(o for p in parts for o in p.owners),
    )


def grasp_path(
    door: Articulation, begin: float, end: float, *, pitch_rad: float, flip: bool, penalty_s: float
) -> ContactPath:
    """Return the path that grasps the bar and takes it from one opening to another, the hand turning with the door."""
    steps = _steps(door, begin, end)

    def pose(opening: float) -> tuple[Array, Array]:
        bar, axis, outward = door.bar(opening)
        return bar, _grasp_frame(axis, outward, pitch_rad, flip=flip)

    return _path(pose, steps, GRASP_WIDTH_M, penalty_s, away_m=0.10, clear_m=0.09)


def edge_path(
    door: Articulation, begin: float, end: float, *, along_m: float, flip: bool, penalty_s: float
) -> ContactPath:
    """Return the path that pinches a hinged door at its free edge and carries it; needs no room beside the door."""

    def pose(opening: float) -> tuple[Array, Array]:
        center, axes, _, reach = door.panel(opening)
        across, outward, up = axes.T
        bar = door.bar(opening)[0]
        point = (
            door.anchor
            + across * (reach[0] - 0.012)
            + outward * float((center - door.anchor) @ outward)
            + up * float((bar - door.anchor) @ up + along_m)
        )
        y = -outward if flip else outward
        return point, np.stack([-across, y, np.cross(-across, y)], axis=1)

    return _path(pose, _steps(door, begin, end), GRASP_WIDTH_M, penalty_s, away_m=0.10, clear_m=0.09)


def push_path(
    door: Articulation,
    begin: float,
    end: float,
    *,
    angle_rad: tuple[float, float],
    from_edge_m: float,
    along_m: float,
    flip: bool,
    penalty_s: float,
) -> ContactPath:
    """Return the path that pushes the panel near its free edge from one opening to another with closed fingers.

    Args:
      door: the door.
      begin: opening at the start [rad or m].
      end: opening at the end; more than ``begin`` pushes from the inside, less from the outside.
      angle_rad: between hand and panel at the start and at the end: 0 along it, pi / 2 straight at it.
      from_edge_m: distance of the tool point from the free edge, inwards.
      along_m: shift along the hinge axis from the handle.
      flip: hand turned by half a turn.
      penalty_s: rank.
    """
    steps = _steps(door, begin, end)
    side = 1.0 if end > begin else -1.0

    def pose(opening: float) -> tuple[Array, Array]:
        center, axes, half, reach = door.panel(opening)
        across, outward, up = axes.T
        part = 0.0 if end == begin else (opening - begin) / (end - begin)
        angle = angle_rad[0] + min(max(part, 0.0), 1.0) * (angle_rad[1] - angle_rad[0])
        push = side * outward
        x = -np.cos(angle) * across + np.sin(angle) * push
        depth = PAD_TIP_M * np.sin(angle) + PAD_SIDE_M * np.cos(angle) + PUSH_GAP_M
        bar = door.bar(opening)[0]
        face = center - push * half[1]
        point = (
            door.anchor
            + across * (reach[0] - from_edge_m)
            + outward * float((face - door.anchor) @ outward)
            + up * float((bar - door.anchor) @ up + along_m)
        )
        y = -up if flip else up
        return point - push * depth, np.stack([x, y, np.cross(x, y)], axis=1)

    return _path(pose, steps, 0.0, penalty_s, away_m=0.0, clear_m=0.0, back=True, side=side, door=door)


def _path(
    pose,  # noqa: ANN001 -- a local function of the opening
    steps: Array,
    width_m: float,
    penalty_s: float,
    *,
    away_m: float,
    clear_m: float,
    back: bool = False,
    side: float = 1.0,
    door: Articulation | None = None,
) -> ContactPath:
    poses = [pose(float(s)) for s in steps]
    pos = np.array([p for p, _ in poses])
    rot = np.array([r for _, r in poses])
    if back:
        # Leave the panel sideways first, then pull the hand back along the fingers.
        assert door is not None
        begin_push = side * door.panel(float(steps[0]))[1][:, 1]
        end_push = side * door.panel(float(steps[-1]))[1][:, 1]
        enter = [pos[0] - 0.03 * begin_push - 0.12 * rot[0][:, 0], pos[0] - 0.03 * begin_push]
        leave = [pos[-1] - 0.04 * end_push, pos[-1] - 0.04 * end_push - 0.14 * rot[-1][:, 0]]
    else:
        enter = [pos[0] - away_m * rot[0][:, 0], pos[0] - 0.5 * away_m * rot[0][:, 0]]
        leave = [pos[-1] - 0.5 * clear_m * rot[-1][:, 0], pos[-1] - clear_m * rot[-1][:, 0]]
    enter, leave = _fine(np.array([*enter, pos[0]]))[:-1], _fine(np.array([pos[-1], *leave]))[1:]
    return ContactPath(
        pos_world_m=np.concatenate([enter, pos, leave]),
        rot_world=np.concatenate([np.repeat(rot[:1], len(enter), 0), rot, np.repeat(rot[-1:], len(leave), 0)]),
        opening=np.concatenate([np.full(len(enter), steps[0]), steps, np.full(len(leave), steps[-1])]),
        first=len(enter),
        last=len(enter) + len(steps) - 1,
        width_m=width_m,
        penalty_s=penalty_s,
    )


def _grasp_frame(axis: Array, outward: Array, pitch_rad: float, *, flip: bool) -> Array:
    x: Array = -outward
    y: Array = _unit(np.cross(axis, x))
    x = np.cos(pitch_rad) * x + np.sin(pitch_rad) * np.cross(x, y)
    y = -y if flip else y
    return np.stack([x, y, np.cross(x, y)], axis=1)


def _steps(door: Articulation, begin: float, end: float) -> Array:
    pitch = 0.06 if door.is_hinge else 0.02
    return np.linspace(begin, end, max(int(np.ceil(abs(end - begin) / pitch)), 1) + 1)


def _fine(points: Array, step_m: float = 0.025) -> Array:
    out = [points[:1]]
    for i in range(len(points) - 1):
        a, b = points[i], points[i + 1]
        count = max(int(np.ceil(np.linalg.norm(b - a) / step_m)), 1)
        out.append(a + np.linspace(0, 1, count + 1)[1:, None] * (b - a))
    return np.concatenate(out)


def _boxes(solids: list[SolidInfo], pos: Array, rot: Array, owner: str) -> Boxes:
    return Boxes(
        center_world_m=np.array([pos + rot @ s.center_body_m for s in solids]).reshape(-1, 3),
        rot_world=np.array([rot @ s.rot_body for s in solids]).reshape(-1, 3, 3),
        half_size_m=np.array([s.half_size_m for s in solids]).reshape(-1, 3),
        owners=(owner,) * len(solids),
    )


def _unit(v: Array) -> Array:
    length = max(float(np.linalg.norm(v)), 1e-9)
    return np.asarray(v, dtype=np.float64) * (1.0 / length)
