"""Where a held thing can be put down: free spots on, in, next to or under something, and the ways of the tool there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from embodied.robots.mobile_manipulator.kinematics import GRIPPER_MAX_M
from embodied.skills.contract import SceneView
from embodied.skills.household.compartments import Compartment, compartments_of
from embodied.skills.household.grasping import ToolPath, shape_of, tool_rotation
from embodied_controllers.rotation import matrix_of_quat
from embodied_scenes.info import EntityInfo

Array = NDArray[np.float64]

GAP_M = 0.045  # to other things: room for an opening finger
NEXT_TO_M = 0.10  # largest gap that is aimed at for "next to"
_GRID = 9
_RELEASE_M = 0.006  # height above the surface at which the fingers open
_APPROACH_M = 0.10


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A free spot.

    Attributes:
      point_world_m: (3,) on the surface.
      compartment: the interior it lies in, or None.
      score: smaller is better.
      yaw_free: False if nothing is known against any heading.
    """

    point_world_m: Array
    compartment: Compartment | None
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class InHand:
    """How a thing lies in the hand.

    Attributes:
      corners_tool_m: (8, 3) corners of its box in the tool frame.
      tilt_rad: lean of the hand at which the thing stands upright.
      flip: closing direction at which it does.
      radius_m: largest horizontal distance of the upright thing from its middle.
      slim_m: smaller one of its horizontal half extents.
      width_m: opening of the gripper.
    """

    corners_tool_m: Array
    tilt_rad: float
    flip: bool
    radius_m: float
    slim_m: float
    height_m: float
    width_m: float


def in_hand(view: SceneView, thing: str, tool_pos: Array, tool_rot: Array, width_m: float) -> InHand | None:
    """Return how a held thing lies in the hand, or None if its pose is unknown."""
    info, pose = view.info.entities[thing], view.pose(thing)
    if pose is None:
        return None
    rot = tool_rot.T @ matrix_of_quat(pose.quat_wxyz)
    signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=np.float64)
    origin = tool_rot.T @ (pose.pos_world_m - tool_pos)
    corners = origin + (info.box_center_m + signs * info.half_size_m) @ rot.T
    # The thing's own z is up if the hand can make it so; else whichever of its axes lies best.
    axes = np.concatenate([rot[:, 2:], -rot[:, 2:], rot[:, :2], -rot[:, :2]], axis=1).T
    lean = np.abs(axes[:, 1]) + 0.5 * np.maximum(axes[:, 0], 0.0) + np.array([0.0, 0.2, 0.25, 0.25, 0.25, 0.25])
    up = axes[int(np.argmin(lean))]
    tilt = float(np.clip(np.arctan2(-up[0], abs(up[2])), 0.0, np.pi / 2))
    flip = bool(up[2] < 0.0)
    world = corners @ tool_rotation(np.array([1.0, 0.0]), tilt, flip).T
    flat = world[:, :2] - world[:, :2].mean(axis=0)
    return InHand(
        corners_tool_m=corners,
        tilt_rad=tilt,
        flip=flip,
        radius_m=float(np.hypot(*flat.T).max()),
        slim_m=float(np.ptp(flat, axis=0).min() / 2),
        height_m=float(np.ptp(world[:, 2])),
        width_m=width_m,
    )


def free_spots(
    view: SceneView, thing: str, target: str, relation: str, hand: InHand, rng: np.random.Generator
) -> list[Spot]:
    """Return free spots, best first."""
    info = view.info.entities[target]
    others = _others(view, thing)
    found: list[Spot] = []
    for region in _regions(view, info, relation):
        found += _region_spots(view, thing, info, region, relation, hand, others, rng)
    return sorted(found, key=lambda s: s.score)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Region:
    """A rectangle to put things on, in the world; ``compartment`` where it is the floor of an interior."""

    center_world_m: Array
    rot_world: Array
    half_m: Array
    ceiling_m: float
    compartment: Compartment | None


def _regions(view: SceneView, info: EntityInfo, relation: str) -> Iterator[_Region]:
    wanted = {"on": "surface", "in": "interior", "under": "surface"}
    if relation == "nextto":
        yield from _support_regions(view, info)
        return
    for region in compartments_of(view, info):
        if region.region.kind != wanted[relation]:
            continue
        down = region.rot_world[:, 2] * region.region.half_size_m[2]
        center = region.center_world_m - down
        if relation == "under":
            ceiling = float(center[2])
            center = np.array([center[0], center[1], 0.0])
            yield _Region(
                center_world_m=center,
                rot_world=region.rot_world,
                half_m=region.region.half_size_m[:2],
                ceiling_m=ceiling,
                compartment=None,
            )
            continue
        inside = region if relation == "in" else None
        ceiling = np.inf if inside is None else float(region.center_world_m[2] + region.region.half_size_m[2])
        if inside is not None and inside.outward_world is None:
            ceiling = np.inf
        yield _Region(
            center_world_m=center,
            rot_world=region.rot_world,
            half_m=region.region.half_size_m[:2],
            ceiling_m=ceiling,
            compartment=inside,
        )
    if relation == "on" and info.movable:
        pose = view.pose(info.name)
        if pose is not None:
            shape = shape_of(info, pose)
            top = shape.center_world_m + np.array([0.0, 0.0, shape.half_size_m[2]])
            yield _Region(
                center_world_m=top, rot_world=np.eye(3), half_m=np.zeros(2), ceiling_m=np.inf, compartment=None
            )


def _support_regions(view: SceneView, info: EntityInfo) -> Iterator[_Region]:
    """Regions of whatever holds the target: the spot must be on the same board."""
    pose = view.pose(info.name)
    if pose is None:
        return
    shape = shape_of(info, pose)
    for entity in view.info.entities.values():
        if entity.name == info.name or entity.movable:
            continue
        for region in compartments_of(view, entity):
            low = region.center_world_m - region.rot_world[:, 2] * region.region.half_size_m[2]
            local = region.local(shape.center_world_m)
            if (np.abs(local[:2]) <= region.region.half_size_m[:2] + 0.02).all() and abs(
                shape.bottom_m - low[2]
            ) < 0.04:
                inside = region if region.region.kind == "interior" else None
                yield _Region(
                    center_world_m=low,
                    rot_world=region.rot_world,
                    half_m=region.region.half_size_m[:2],
                    ceiling_m=np.inf
                    if inside is None or inside.outward_world is None
                    else float(region.center_world_m[2] + region.region.half_size_m[2]),
                    compartment=inside,
                )


def _others(view: SceneView, thing: str) -> list[tuple[str, Array, float, float]]:
    """Return (name, (4,) x, y and half extents along the axes, bottom, top) of all other solid things."""
    out = []
    for entity in view.info.entities.values():
        pose = view.pose(entity.name)
        if entity.name == thing or "floor" in entity.properties or pose is None:
            continue
        rot = matrix_of_quat(pose.quat_wxyz)
        center = pose.pos_world_m + rot @ entity.box_center_m
        half = np.abs(rot) @ entity.half_size_m
        out.append(
            (entity.name, np.array([*center[:2], *half[:2]]), float(center[2] - half[2]), float(center[2] + half[2]))
        )
    return out


def _region_spots(
    view: SceneView,
    thing: str,
    info: EntityInfo,
    region: _Region,
    relation: str,
    hand: InHand,
    others: list[tuple[str, Array, float, float]],
    rng: np.random.Generator,
) -> list[Spot]:
    del view, thing
    floor = float(region.center_world_m[2])
    if hand.height_m + 0.02 > region.ceiling_m - floor:
        return []
    margin = 0.25 * hand.radius_m if relation == "under" else hand.radius_m * 0.8 + 0.015
    half = np.maximum(region.half_m - margin, 0.0)
    if relation in ("on", "in") and (region.half_m > 0).all() and (region.half_m < 0.55 * hand.radius_m).any():
        return []
    big = (half > 1.5).any()  # a floor: look near the target or the middle only
    local = _grid(np.minimum(half, 1.5) if big else half, rng)
    if relation == "nextto":
        local = _ring(info, region, hand, others, local)
    xy = (region.center_world_m + local @ region.rot_world[:, :2].T)[:, :2]
    spots = []
    for i, p in enumerate(xy):
        if (np.abs(local[i]) > half + 1e-6).any():
            continue
        gap, next_gap = np.inf, np.inf
        for name, box, bottom, top in others:
            if relation == "on" and name == info.name and info.movable:
                continue
            distance = float(np.hypot(*np.maximum(np.abs(p - box[:2]) - box[2:], 0.0))) - hand.radius_m
            if name == info.name and relation == "nextto":
                next_gap = distance
                continue  # how near a long thing may come is judged with its heading, see PlaceRun
            movable = top - bottom < 0.6 and (box[2:] < 0.3).all()
            if top > floor + 0.005 and bottom < floor + hand.height_m and (movable or region.compartment is None):
                if relation in ("on", "in", "nextto", "under") and name == info.name and not info.movable:
                    continue
                gap = min(gap, distance)
        if gap < (0.02 if relation == "nextto" else GAP_M):
            continue
        if relation == "nextto" and not next_gap < NEXT_TO_M:
            continue
        score = -min(gap, 0.12) * 4.0 + float(rng.uniform(0.0, 0.15))
        if region.compartment is not None and region.compartment.outward_world is not None:
            # In a compartment the middle of the front half is easiest to reach and leaves room to both sides.
            out = region.rot_world.T @ np.array([*region.compartment.outward_world, 0.0])
            score -= 2.0 * float(out[:2] @ local[i])
        if relation == "under":
            edge = float((region.half_m - np.abs(local[i])).min())
            score += 8.0 * abs(edge - 0.06)
        spots.append(Spot(point_world_m=np.array([*p, floor]), compartment=region.compartment, score=score))
    return spots


def _grid(half: Array, rng: np.random.Generator) -> Array:
    steps = [np.linspace(-h, h, max(min(_GRID, int(h / 0.03)), 1)) if h > 0.02 else np.zeros(1) for h in half]
    points = np.stack(np.meshgrid(*steps, indexing="ij"), axis=-1).reshape(-1, 2)
    return np.clip(points + rng.uniform(-0.015, 0.015, points.shape), -half, half)


def _ring(
    info: EntityInfo, region: _Region, hand: InHand, others: list[tuple[str, Array, float, float]], grid: Array
) -> Array:
    """Return points around the target at a small gap, in the region's frame."""
    del grid
    box = next(b for n, b, _, _ in others if n == info.name)
    angle = np.arange(24) * (2 * np.pi / 24)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    # Distance from the middle of an axis-aligned box to its edge in each direction.
    edge = np.min(box[2:] / np.maximum(np.abs(ring), 1e-6), axis=1)
    points = [
        box[:2] + (np.minimum(edge, np.hypot(*box[2:])) + radius + gap)[:, None] * ring
        for radius, gap in ((hand.radius_m, 0.05), (hand.slim_m, 0.05), (hand.radius_m, 0.03))
    ]
    world = np.concatenate(points)
    return (world - region.center_world_m[:2]) @ region.rot_world[:2, :2]


def place_paths(hand: InHand, spot: Spot) -> list[ToolPath]:
    """Return the candidate ways of the tool to put the thing down at a spot and to leave."""
    found: list[ToolPath] = []
    box = spot.compartment
    outward = None if box is None else box.outward_world
    tilts = [(hand.tilt_rad, 0.0, _RELEASE_M)]
    if box is not None:
        # Where it only has to be inside, it may also be let go leaning, a little higher.
        extra = (60.0, 75.0, 90.0) if outward is None else (0.0, 8.0, 15.0, 30.0, 45.0)
        # A thing let go half way between standing and lying may fall anywhere.
        lean = [(np.deg2rad(t), abs(np.deg2rad(t) - hand.tilt_rad)) for t in extra]
        tilts += [
            (t, 2.0 + off + (3.0 * abs(np.sin(2 * off)) if outward is not None else 0.0), 0.02) for t, off in lean
        ]
        if outward is None:
            tilts += [(t, p + 1.0, r + d) for d in (0.07, 0.14) for t, p, r in list(tilts)]
    for tilt, penalty, release in tilts:
        upright = tilt > np.deg2rad(80.0)
        for heading in _headings(outward):
            rot = tool_rotation(heading, tilt, hand.flip)
            corners = hand.corners_tool_m @ rot.T
            middle = (corners.min(axis=0) + corners.max(axis=0)) / 2
            point = spot.point_world_m + np.array([-middle[0], -middle[1], release - corners[:, 2].min()])
            if box is not None and not _fits(box, point + corners):
                continue
            way_in, way_out = _ways(point, corners, rot, heading, spot)
            found.append(
                ToolPath(
                    rot_world=rot,
                    way_in_world_m=way_in,
                    way_out_world_m=way_out,
                    heading_world=np.zeros(2) if upright else heading,
                    width_m=min(GRIPPER_MAX_M, hand.width_m + 0.036),
                    penalty_s=penalty,
                )
            )
    return found


def _fits(box: Compartment, corners_world_m: Array) -> bool:
    """Whether corners lie within the walls of a compartment (an open one may be overtopped)."""
    local = np.abs((corners_world_m - box.center_world_m) @ box.rot_world)
    spare = box.region.half_size_m - local.max(axis=0)
    return bool((spare[:2] > 0.004).all() and (box.outward_world is None or spare[2] > 0.0))


def _headings(outward: Array | None) -> list[Array]:
    if outward is None:
        angles = np.arange(12) * (2 * np.pi / 12)
    else:
        angles = np.arctan2(-outward[1], -outward[0]) + np.deg2rad([0.0, 15.0, -15.0, 30.0, -30.0, 45.0, -45.0])
    return [np.array([np.cos(a), np.sin(a)]) for a in angles]


def _ways(point: Array, corners: Array, rot: Array, heading: Array, spot: Spot) -> tuple[Array, Array]:
    up = np.array([0.0, 0.0, 1.0])
    box = spot.compartment
    if box is None:
        start = point + _APPROACH_M * up
        back = -rot[:, 0]
        return np.stack([start, point]), np.stack([point, point + 0.08 * back, point + 0.08 * back + 0.04 * up])
    radius = float(np.hypot(*(corners[:, :2] - corners[:, :2].mean(axis=0)).T).max())
    bottom = float(point[2] + corners[:, 2].min())
    exit_m = box.exit_m(point - corners.mean(axis=0) * 0.0, radius, bottom)
    if box.outward_world is None:
        lift = point + exit_m * up
        return np.stack([lift, point]), np.stack([point, lift])
    travel = exit_m / max(float(-heading @ box.outward_world), 0.5)
    out = np.array([-heading[0], -heading[1], 0.0])
    inside = point + 0.025 * up
    return np.stack([inside + travel * out, inside, point]), np.stack([point, point + travel * out])
