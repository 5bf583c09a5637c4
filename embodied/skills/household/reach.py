"""Where to stand and how to move the arm so that the tool runs along a path: search over base, torso, elbow and grasp.

Closed-form inverse kinematics makes the search a few array operations: all combinations are solved at once, the best
are checked against the obstacles along their whole way, from the carry posture to the target and back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

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
    arm_chain,
    arm_geometry,
)
from embodied.robots.mobile_manipulator.spec import CARRY_ARM_RAD, CARRY_TORSO_M
from embodied.skills.household.grasping import ToolPath
from embodied.skills.household.obstacles import NO_BOXES, Boxes, hits, tool_hits
from embodied_controllers.rotation import rot_z

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_GEOMETRY = arm_geometry()
_CHAIN = arm_chain()
_TORSO_M = np.linspace(0.0, TORSO_MAX_M, 7)
_SWIVEL_RAD = np.deg2rad([0.0, 25.0, -25.0, 50.0, -50.0, 80.0, -80.0])
_STEP_M = 0.02
_MAX_JUMP_RAD = 0.35  # between samples of a tool path: more means a singularity on the way
CARRY = np.array([CARRY_TORSO_M, *CARRY_ARM_RAD])
MARGIN_M, TIGHT_M = 0.012, 0.004
_CARRY_TURNS_RAD = np.deg2rad([0.0, 170.0, -170.0, 90.0, -90.0])  # of the hand about its own axis
_CARRY_RAISE_RAD = np.deg2rad([0.0, 15.0])  # of the hand, away from the chest
_BASE_CHECKS = 5  # full checks per base: its other postures mostly fail alike
_CHECKS = 60  # full checks per search


def carry_postures(held_tool_m: Array | None) -> Array:
    """Return (k, 8) carry postures, best first, in which a held thing is clear of the robot itself.

    Args:
      held_tool_m: (m, 3) points of the thing in the tool frame, or None with empty hands.
    """
    if held_tool_m is None:
        return CARRY[None]
    options = np.repeat(CARRY[None], len(_CARRY_TURNS_RAD) * len(_CARRY_RAISE_RAD), axis=0)
    turns, raises = np.meshgrid(_CARRY_TURNS_RAD, _CARRY_RAISE_RAD)
    options[:, 7] += turns.ravel()
    options[:, 6] -= raises.ravel()
    clear = ~hits(NO_BOXES, np.zeros(3), options, margin_m=MARGIN_M, width_m=0.06, held_tool_m=held_tool_m)
    pos, rot = _CHAIN.tool(options[:, 1:])
    held = pos[:, None] + np.einsum("nij,kj->nki", rot, held_tool_m) + MOUNT_M
    radius = np.hypot(held[..., 0], held[..., 1]).max(axis=1)
    order = np.argsort(radius + 0.02 * np.abs(turns.ravel()), kind="stable")
    good = [i for i in order if clear[i]]
    return options[good] if good else options[:1]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachPlan:
    """A base pose with the arm's ways, all postures (k, 8): torso [m] and arm [rad].

    Attributes:
      base_xyyaw: (3,) where to stand.
      unfold: from the given start posture to the beginning of the way in.
      way_in: along the tool path to the target.
      way_out: from the target to outside.
      fold: from there to the carry posture.
      tool: the tool path.
      tried: index of the tool path among those given.
    """

    base_xyyaw: Array
    unfold: Array
    way_in: Array
    way_out: Array
    fold: Array
    tool: ToolPath
    tried: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacles:
    """Obstacles by phase, with what is in the hand.

    Attributes:
      free: for unfolding and folding.
      near: for the way in and out (without what is grasped).
      held_in_tool_m: per tool path (k, 3) points of the thing in the tool frame on the way in, or None.
      held_out_tool_m: the same on the way out and while folding.
    """

    free: Boxes
    near: Boxes
    held_in_tool_m: Sequence[Array | None]
    held_out_tool_m: Sequence[Array | None]


def find_reach(
    bases: Array,
    base_cost_s: Array,
    paths: Sequence[ToolPath],
    obstacles: Obstacles,
    start: Array,
    *,
    width_m: float | None = None,
    max_checks: int = 24,
    chunk: int = 8,
) -> ReachPlan | None:
    """Return the cheapest way found, or None.

    Args:
      bases: (b, 3) base poses x, y, yaw in the world.
      base_cost_s: (b,) cost of getting there.
      paths: candidate tool paths.
      obstacles: what must not be hit.
      start: (8,) posture before unfolding.
      width_m: opening of the gripper when it holds something.
      max_checks: candidates per chunk that get the full check.
      chunk: base poses solved together.
    """
    if len(bases) == 0 or not paths:
        return None
    open_paths = [i for i, p in enumerate(paths) if _is_tool_clear(p, i, obstacles, width_m)]
    if not open_paths:
        return None
    paths = [paths[i] for i in open_paths]
    obstacles = Obstacles(
        free=obstacles.free,
        near=obstacles.near,
        held_in_tool_m=[obstacles.held_in_tool_m[i] for i in open_paths],
        held_out_tool_m=[obstacles.held_out_tool_m[i] for i in open_paths],
    )
    # Where the arm would touch something before it even unfolds, standing is no use.
    held = next((h for h in obstacles.held_in_tool_m if h is not None), None)
    width = 0.08 if width_m is None else width_m
    blocked = hits(
        obstacles.free,
        bases,
        np.repeat(start[None], len(bases), axis=0),
        margin_m=TIGHT_M,
        width_m=min(width, 0.06),
        held_tool_m=held,
    )
    bases, base_cost_s = bases[~blocked], base_cost_s[~blocked]
    order = np.argsort(base_cost_s, kind="stable")
    budget = [_CHECKS]
    for first in range(0, len(order), chunk):
        part = order[first : first + chunk]
        found = _search(bases[part], base_cost_s[part], paths, obstacles, start, width_m, max_checks, budget)
        if found is not None or budget[0] <= 0:
            return found
    return None


def _is_tool_clear(path: ToolPath, index: int, obstacles: Obstacles, width_m: float | None) -> bool:
    """Check hand and held thing along the whole path, which needs no arm and so weeds out most paths for all bases."""
    width = path.width_m if width_m is None else width_m
    for points, held, clear in (
        (_densify(path.way_in_world_m), obstacles.held_in_tool_m[index], slice(None, -3)),
        (_densify(path.way_out_world_m), obstacles.held_out_tool_m[index], slice(3, None)),
    ):
        if tool_hits(obstacles.near, points, path.rot_world, margin_m=TIGHT_M, width_m=width).any():
            return False
        if (
            held is not None
            and tool_hits(
                obstacles.near, points[clear], path.rot_world, margin_m=TIGHT_M, width_m=width, held_tool_m=held
            ).any()
        ):
            return False
    return True


def _densify(points: Array) -> Array:
    dense = [points[:1]]
    for a, b in pairwise(points):
        count = max(int(np.ceil(np.linalg.norm(b - a) / _STEP_M)), 1)
        dense.append(a + np.linspace(0, 1, count + 1)[1:, None] * (b - a))
    return np.concatenate(dense)


def _search(
    bases: Array,
    base_cost_s: Array,
    paths: Sequence[ToolPath],
    obstacles: Obstacles,
    start: Array,
    width_m: float | None,
    max_checks: int,
    budget: list[int],
) -> ReachPlan | None:
    combo = _candidates(bases, paths)
    if combo is None:
        return None
    b, g, torso, swivel, branch, q = combo
    cost = base_cost_s[b] + np.array([p.penalty_s for p in paths])[g] + _comfort(q, torso, start)
    # One posture of each kind (base, path, torso) first: its siblings mostly share its fate.
    order = np.argsort(cost, kind="stable")
    _, first = np.unique(
        (b * len(paths) + g)[order] * len(_TORSO_M) + np.searchsorted(_TORSO_M, torso[order]), return_index=True
    )
    leaders = order[np.sort(first)]
    order = np.concatenate(
        [leaders[: 5 * max_checks], np.setdiff1d(order[: 3 * max_checks], leaders, assume_unique=True)]
    )
    ends = np.concatenate([torso[order, None, None].repeat(q.shape[1], axis=1), q[order]], axis=2)
    good = _ends_clear(bases[b[order]], ends, paths, obstacles, width_m)
    fine = order[good]
    tried = np.zeros(len(bases), dtype=int)
    for i in fine[np.argsort(cost[fine], kind="stable")]:
        if tried[b[i]] >= _BASE_CHECKS or budget[0] <= 0:
            continue
        tried[b[i]] += 1
        budget[0] -= 1
        plan = _full_check(
            bases[b[i]], int(g[i]), float(torso[i]), float(swivel[i]), int(branch[i]), paths, obstacles, start, width_m
        )
        if plan is not None:
            return plan
    return None


def _candidates(
    bases: Array, paths: Sequence[ToolPath]
) -> tuple[Indices, Indices, Array, Array, Indices, Array] | None:
    """Solve the ends and the target of every path from every base, torso height and elbow angle; keep what exists."""
    keys = np.stack([np.stack([p.way_in_world_m[0], p.way_in_world_m[-1], p.way_out_world_m[-1]]) for p in paths])
    rot = np.stack([p.rot_world for p in paths])
    heading = np.stack([p.heading_world for p in paths])
    turn = rot_z(-bases[:, 2])
    shifted = keys[None] - np.concatenate([bases[:, :2], np.zeros((len(bases), 1))], axis=1)[:, None, None]
    pos = np.einsum("bij,bgkj->bgki", turn, shifted) - MOUNT_M
    rot_base = turn[:, None] @ rot[None]
    # The direction to the thing and the heading of the hand must roughly agree, or the arm crosses itself.
    to_target = keys[None, :, 1, :2] - bases[:, None, :2]
    along = np.einsum("bgi,gi->bg", to_target, heading) / np.maximum(np.linalg.norm(to_target, axis=-1), 1e-6)
    fits = (along > np.cos(np.deg2rad(65.0))) | (np.abs(heading).sum(axis=1) < 0.5)[None]
    wrist = pos - TOOL_M * rot_base[:, :, None, :, 0] - np.array([0.0, 0.0, SHOULDER_M])
    flat = np.hypot(wrist[..., 0], wrist[..., 1])
    height = wrist[..., 2][..., None] - _TORSO_M
    dist = np.hypot(flat[..., None], height)
    low = np.sqrt(UPPER_M**2 + FORE_M**2 + 2 * UPPER_M * FORE_M * np.cos(ARM_LIMIT_RAD[3] - 0.03))
    ok = ((dist > low) & (dist < UPPER_M + FORE_M - 0.004)).all(axis=2) & fits[..., None]
    b, g, t = np.nonzero(ok)
    if len(b) == 0:
        return None
    if len(b) > 700:
        keep = np.linspace(0, len(b) - 1, 700).astype(int)
        b, g, t = b[keep], g[keep], t[keep]
    target = pos[b, g] - np.array([0.0, 0.0, 1.0]) * _TORSO_M[t][:, None, None]
    n = len(b)
    posture, valid = _GEOMETRY.solve(
        np.broadcast_to(target[:, None], (n, len(_SWIVEL_RAD), 3, 3)),
        np.broadcast_to(rot_base[b, g][:, None, None], (n, len(_SWIVEL_RAD), 3, 3, 3)),
        np.broadcast_to(_SWIVEL_RAD[None, :, None], (n, len(_SWIVEL_RAD), 3)),
    )
    good = valid.all(axis=2)
    i, s, branch = np.nonzero(good)
    if len(i) == 0:
        return None
    q = posture[i, s][np.arange(len(i)), :, branch]
    rows = i.astype(np.int64)
    torso, swivel = np.asarray(_TORSO_M[t[i]]), np.asarray(_SWIVEL_RAD[s])
    return b[rows].astype(np.int64), g[rows].astype(np.int64), torso, swivel, branch.astype(np.int64), q


def _comfort(q: Array, torso: Array, start: Array) -> Array:
    """Rate postures [s]: far from the joint limits and near the start posture."""
    near_limit = (np.abs(q) / ARM_LIMIT_RAD).max(axis=(1, 2)) ** 8
    travel = np.abs(q[:, 0] - start[1:]).max(axis=1)
    jump = np.abs(np.diff(q, axis=1)).max(axis=(1, 2))
    return 1.5 * near_limit + 0.4 * travel + 0.5 * jump + 2.0 * np.abs(torso - start[0])


def _ends_clear(
    bases: Array, ends: Array, paths: Sequence[ToolPath], obstacles: Obstacles, width_m: float | None
) -> NDArray[np.bool_]:
    """Check target and outer end of many candidates at once, without what is held."""
    n, k = ends.shape[:2]
    width = width_m if width_m is not None else max(p.width_m for p in paths)
    bad = hits(obstacles.near, np.repeat(bases, k, axis=0), ends.reshape(n * k, 8), margin_m=TIGHT_M, width_m=width)
    return np.asarray(~bad.reshape(n, k).any(axis=1), dtype=bool)


def _full_check(
    base: Array,
    g: int,
    torso: float,
    swivel: float,
    branch: int,
    paths: Sequence[ToolPath],
    obstacles: Obstacles,
    start: Array,
    width_m: float | None,
) -> ReachPlan | None:
    path = paths[g]
    way_in = _trace(base, path.rot_world, path.way_in_world_m, torso, swivel, branch)
    way_out = _trace(base, path.rot_world, path.way_out_world_m, torso, swivel, branch)
    if way_in is None or way_out is None:
        return None
    width = path.width_m if width_m is None else width_m
    held_in, held_out = obstacles.held_in_tool_m[g], obstacles.held_out_tool_m[g]
    if hits(obstacles.near, base, way_in, margin_m=TIGHT_M, width_m=width).any():
        return None
    if hits(obstacles.near, base, way_out, margin_m=TIGHT_M, width_m=width).any():
        return None
    # What is held rests on its support at the target: it is checked once it is clear of it.
    clear = 3
    if (
        held_in is not None
        and hits(obstacles.near, base, way_in[:-clear], margin_m=TIGHT_M, width_m=width, held_tool_m=held_in).any()
    ):
        return None
    if (
        held_out is not None
        and hits(obstacles.near, base, way_out[clear:], margin_m=TIGHT_M, width_m=width, held_tool_m=held_out).any()
    ):
        return None
    unfold = join(obstacles.free, base, start, way_in[0], width, held_in)
    if unfold is None:
        return None
    boxes = obstacles.free if held_out is None else obstacles.near
    fold = next(
        (
            f
            for c in carry_postures(held_out)[:3]
            if (f := join(boxes, base, way_out[-1], c, width, held_out)) is not None
        ),
        None,
    )
    if fold is None:
        return None
    return ReachPlan(base_xyyaw=base, unfold=unfold, way_in=way_in, way_out=way_out, fold=fold, tool=path, tried=g)


def _trace(base: Array, rot_world: Array, points: Array, torso: float, swivel: float, branch: int) -> Array | None:
    """Return the (k, 8) postures along a polyline of the tool, or None where the branch ends or jumps."""
    world = _densify(points)
    turn = rot_z(-base[2])
    pos = (world - np.array([base[0], base[1], 0.0])) @ turn.T - MOUNT_M - np.array([0.0, 0.0, torso])
    q, valid = _GEOMETRY.solve(pos, np.broadcast_to(turn @ rot_world, (len(pos), 3, 3)), np.full(len(pos), swivel))
    q, valid = q[:, branch], valid[:, branch]
    if not valid.all() or (len(q) > 1 and np.abs(np.diff(q, axis=0)).max() > _MAX_JUMP_RAD):
        return None
    return np.concatenate([np.full((len(q), 1), torso), q], axis=1)


def join(
    boxes: Boxes, base: Array, start: Array, end: Array, width_m: float, held_tool_m: Array | None
) -> Array | None:
    """Return a (k, 8) polyline of postures from start to end that hits nothing, trying a few ways round; else None."""
    top = max(float(start[0]), float(end[0]))
    high = min(top + 0.15, TORSO_MAX_M)
    middle = 0.5 * (start + end)
    ways = [
        (),
        (np.array([end[0], *start[1:]]),),
        (np.array([start[0], *end[1:]]),),
        (np.array([high, *start[1:]]), np.array([high, *end[1:]])),
        (np.array([high, *_raised(middle)]),),
        (np.array([high, *start[1:]]), np.array([high, *_raised(start)]), np.array([high, *_raised(end)])),
    ]
    for via in ways:
        line = np.stack([start, *via, end])
        dense = _dense(line)
        coarse = dense[2:-1:4]
        if len(coarse) and hits(boxes, base, coarse, margin_m=MARGIN_M, width_m=width_m, held_tool_m=held_tool_m).any():
            continue
        if not hits(boxes, base, dense, margin_m=MARGIN_M, width_m=width_m, held_tool_m=held_tool_m)[1:-1].any():
            return line
    return None


def _raised(posture: Array) -> Array:
    """Return arm joints with the heading of a posture and the hand lifted high before the body."""
    return np.array([posture[1], -0.6, posture[3] * 0.5, 1.75, posture[5] * 0.5, 0.9, posture[7]])


def _dense(line: Array, step_rad: float = 0.12) -> Array:
    out = [line[:1]]
    for a, b in pairwise(line):
        reach = np.abs(b - a)
        count = max(int(np.ceil(max(reach[1:].max() / step_rad, reach[0] / 0.04))), 1)
        out.append(a + np.linspace(0, 1, count + 1)[1:, None] * (b - a))
    return np.concatenate(out)
