"""Search for a base pose and arm postures that follow a contact path: the tool turns, the door moves along.

As in ``reach.py`` the closed form solves all combinations of base, path, torso height and elbow angle at a few key
steps; the best are traced through all steps and checked against the obstacles of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from embodied.robots.mobile_manipulator.kinematics import (
    ARM_LIMIT_RAD,
    FORE_M,
    MOUNT_M,
    SHOULDER_M,
    TOOL_M,
    TORSO_MAX_M,
    UPPER_M,
    arm_geometry,
)
from embodied.skills.contract import SceneView
from embodied.skills.household.doors import ContactPath, join_boxes
from embodied.skills.household.obstacles import Boxes, hits
from embodied.skills.household.reach import CARRY, join
from embodied.skills.household.stand import STAND_RADIUS_M, travel_s
from embodied_controllers.base.grid_path import box_clearance
from embodied_controllers.rotation import rot_z

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_GEOMETRY = arm_geometry()
_TORSO_M = np.linspace(0.0, TORSO_MAX_M, 7)
_SWIVEL_RAD = np.deg2rad([0.0, 20.0, -20.0, 40.0, -40.0, 60.0, -60.0, 80.0, -80.0, 100.0, -100.0])
_KEYS = 5
_MAX_JUMP_RAD = 0.45
_DOOR_MARGIN_M = 0.26  # between the middle of the base and the moving door
MARGIN_M, COMFORT_M = 0.004, 0.014


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactPlan:
    """A base pose with the arm's ways, postures (k, 8).

    Attributes:
      base_xyyaw: (3,) where to stand.
      unfold: from the start posture to the first step.
      way: along the path, one posture a step.
      fold: from the last step to the carry posture.
      path: the path followed.
    """

    base_xyyaw: Array
    unfold: Array
    way: Array
    fold: Array
    path: ContactPath


class Moving(Protocol):
    """What moves along a contact path."""

    def boxes(self, opening: float) -> Boxes:
        """Return its solids at an opening."""
        ...

    def floor_boxes(self, openings: Array) -> Array:
        """Return (n, 5) footprints at several openings."""
        ...


def base_poses(view: SceneView, paths: Sequence[ContactPath], here: Array) -> tuple[Array, Array]:
    """Return (n, 3) base poses from which some path may be followed, and their cost (n,) [s]."""
    middle: Array = np.mean([p.pos_world_m[p.first : p.last + 1].mean(axis=0) for p in paths], axis=0)[:2]
    distance, angle = np.arange(0.45, 1.26, 0.08), np.arange(40) * (2 * np.pi / 40)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    xy = np.concatenate([here[None, :2], (middle + distance[:, None, None] * ring).reshape(-1, 2)])
    boxes = view.footprints()
    free = box_clearance(xy, boxes) >= STAND_RADIUS_M
    free[0] = np.hypot(*(here[:2] - middle)) < 1.3
    xy, is_here = xy[free], np.arange(len(xy))[free] == 0
    if len(xy) == 0:
        return np.zeros((0, 3)), np.zeros(0)
    cost = travel_s(view, boxes, here[:2], xy, middle) + 1.5
    if not np.isfinite(cost).any():
        return np.zeros((0, 3)), np.zeros(0)
    cost[is_here] = 0.0
    clear = box_clearance(xy, boxes)
    cost += 20.0 * np.clip(0.34 - clear, 0.0, None)
    yaw = np.arctan2(middle[1] - xy[:, 1], middle[0] - xy[:, 0])
    poses, costs = [], []
    for turn in (0.0, 0.4, -0.4, 0.8, -0.8):
        poses.append(np.concatenate([xy, (yaw + turn)[:, None]], axis=1))
        costs.append(cost + 0.5 * abs(turn))
    if is_here.any():
        poses.append(here[None])
        costs.append(np.zeros(1))
    pose, price = np.concatenate(poses), np.concatenate(costs)
    keep = np.isfinite(price)
    return pose[keep], price[keep]


def find_contact(
    bases: Array,
    base_cost_s: Array,
    door: Moving,
    paths: Sequence[ContactPath],
    fixed: Boxes,
    start: Array,
    *,
    margin_m: float = MARGIN_M,
    max_checks: int = 12,
    per_path: int = 3,
    chunk: int = 24,
) -> ContactPlan | None:
    """Return a cheap way to follow one of the paths, or None.

    Args:
      bases: (n, 3) base poses.
      base_cost_s: (n,) cost of getting there.
      door: what moves.
      paths: what the tool may do.
      fixed: obstacles that stay where they are.
      start: (8,) posture at the start.
      margin_m: distance kept from obstacles and from the ends of the reach; more for plans that a drive precedes.
      max_checks: full checks per chunk of bases.
      per_path: full checks per base and path.
      chunk: bases solved together.
    """
    cache: dict[float, Boxes] = {}
    order = np.argsort(base_cost_s, kind="stable")
    room = _DOOR_MARGIN_M + 2.0 * (margin_m - MARGIN_M)  # what the drive may miss by
    swept = [door.floor_boxes(np.linspace(p.opening[0], p.opening[-1], 8)) for p in paths]
    for first in range(0, len(order), chunk):
        part = order[first : first + chunk]
        clear = np.stack([box_clearance(bases[part, :2], s) >= room for s in swept], axis=1)
        combos = _candidates(bases[part], paths, clear, margin_m)
        if combos is None:
            continue
        b, g, torso, swivel, branch, q = combos
        cost = base_cost_s[part[b]] + np.array([p.penalty_s for p in paths])[g] + _comfort(q, torso, start)
        tried: dict[tuple[int, int], int] = {}
        checks = 0
        for i in np.argsort(cost, kind="stable"):
            kind = (int(b[i]), int(g[i]))
            if tried.get(kind, 0) >= per_path:
                continue
            tried[kind] = tried.get(kind, 0) + 1
            checks += 1
            if checks > max_checks:
                break
            plan = _check(
                bases[part[int(b[i])]],
                paths[int(g[i])],
                float(torso[i]),
                float(swivel[i]),
                int(branch[i]),
                door,
                fixed,
                start,
                cache,
                margin_m,
            )
            if plan is not None:
                return plan
    return None


def _candidates(
    bases: Array, paths: Sequence[ContactPath], clear: NDArray[np.bool_], margin_m: float
) -> tuple[Index, Index, Array, Array, Index, Array] | None:
    keys = [np.linspace(0, len(p.opening) - 1, _KEYS).round().astype(int) for p in paths]
    for k, p in zip(keys, paths, strict=True):
        k[1], k[-2] = p.first, p.last
    world = np.stack([p.pos_world_m[k] for p, k in zip(paths, keys, strict=True)])
    rot = np.stack([p.rot_world[k] for p, k in zip(paths, keys, strict=True)])
    turn = rot_z(-bases[:, 2])
    shifted = world[None] - np.concatenate([bases[:, :2], np.zeros((len(bases), 1))], axis=1)[:, None, None]
    pos = np.einsum("bij,bgkj->bgki", turn, shifted) - MOUNT_M
    rot_base = turn[:, None, None] @ rot[None]
    wrist = pos - TOOL_M * rot_base[..., :, 0] - np.array([0.0, 0.0, SHOULDER_M])
    height = wrist[..., 2][..., None] - _TORSO_M
    dist = np.hypot(np.hypot(wrist[..., 0], wrist[..., 1])[..., None], height)
    low = np.sqrt(UPPER_M**2 + FORE_M**2 + 2 * UPPER_M * FORE_M * np.cos(ARM_LIMIT_RAD[3] - 0.03))
    ok = ((dist > low + margin_m - MARGIN_M) & (dist < UPPER_M + FORE_M - 1.5 * margin_m)).all(axis=2) & clear[
        ..., None
    ]
    b, g, t = np.nonzero(ok)
    if len(b) == 0:
        return None
    if len(b) > 600:
        keep = np.linspace(0, len(b) - 1, 600).astype(int)
        b, g, t = b[keep], g[keep], t[keep]
    target = pos[b, g] - np.array([0.0, 0.0, 1.0]) * _TORSO_M[t][:, None, None]
    n, s = len(b), len(_SWIVEL_RAD)
    posture, valid = _GEOMETRY.solve(
        np.broadcast_to(target[:, None], (n, s, _KEYS, 3)),
        np.broadcast_to(rot_base[b, g][:, None], (n, s, _KEYS, 3, 3)),
        np.broadcast_to(_SWIVEL_RAD[None, :, None], (n, s, _KEYS)),
    )
    i, s_index, branch = np.nonzero(valid.all(axis=2))
    if len(i) == 0:
        return None
    q = posture[i, s_index][np.arange(len(i)), :, branch]
    smooth = np.abs(np.diff(q, axis=1)).max(axis=(1, 2)) < 1.6
    smooth &= (np.abs(q) < _limit(margin_m)).all(axis=(1, 2))
    i, s_index, branch, q = i[smooth], s_index[smooth], branch[smooth], q[smooth]
    if len(i) == 0:
        return None
    return b[i], g[i], _TORSO_M[t[i]], _SWIVEL_RAD[s_index], branch, q


def _limit(margin_m: float) -> Array:
    """Return (7,) joint limits that leave room for a base that stands a little off."""
    return ARM_LIMIT_RAD - 0.03 - 5.0 * (margin_m - MARGIN_M)


def _comfort(q: Array, torso: Array, start: Array) -> Array:
    near_limit = (np.abs(q) / ARM_LIMIT_RAD).max(axis=(1, 2)) ** 8
    travel = np.abs(q[:, 0] - start[1:]).max(axis=1)
    path = np.abs(np.diff(q, axis=1)).sum(axis=1).max(axis=1)
    return 1.5 * near_limit + 0.4 * travel + 0.4 * path + 1.0 * np.abs(torso - start[0])


def _check(
    base: Array,
    path: ContactPath,
    torso: float,
    swivel: float,
    branch: int,
    door: Moving,
    fixed: Boxes,
    start: Array,
    cache: dict[float, Boxes],
    margin_m: float,
) -> ContactPlan | None:
    turn = rot_z(-base[2])
    pos = (path.pos_world_m - np.array([base[0], base[1], 0.0])) @ turn.T - MOUNT_M - np.array([0.0, 0.0, torso])
    q, valid = _GEOMETRY.solve(pos, turn @ path.rot_world, np.full(len(pos), swivel))
    q, valid = q[:, branch], valid[:, branch]
    if not valid.all() or (np.abs(q) > _limit(margin_m)).any() or np.abs(np.diff(q, axis=0)).max() > _MAX_JUMP_RAD:
        return None
    way = np.concatenate([np.full((len(q), 1), torso), q], axis=1)
    if hits(fixed, base, way, margin_m=margin_m, width_m=path.width_m).any():
        return None
    for opening in np.unique(path.opening):
        key = round(float(opening), 4)
        if key not in cache:
            cache[key] = door.boxes(float(opening))
        rows = way[path.opening == opening]
        if hits(cache[key], base, rows, margin_m=margin_m, width_m=path.width_m).any():
            return None
    unfold = join(_with(fixed, door, path.opening[0]), base, start, way[0], max(path.width_m, 0.02), None)
    if unfold is None:
        return None
    fold = join(_with(fixed, door, path.opening[-1]), base, way[-1], CARRY, max(path.width_m, 0.02), None)
    if fold is None:
        return None
    return ContactPlan(base_xyyaw=base, unfold=unfold, way=way, fold=fold, path=path)


def _with(fixed: Boxes, door: Moving, opening: float) -> Boxes:
    return join_boxes([fixed, door.boxes(float(opening))])
