"""Where to stand to deal with something: poses before the sides of furniture, around things, in rooms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from embodied.skills.contract import EntityPose, SceneView
from embodied.skills.household.navigation import CRUISE_RADIUS_M, TIGHT_RADIUS_M, floor_bounds
from embodied_controllers.base.grid_path import OccupancyGrid, box_clearance
from embodied_controllers.rotation import matrix_of_quat, yaw_of_quat
from embodied_scenes.info import EntityInfo

Array = NDArray[np.float64]

FRONT_GAP_M = 0.42  # from the face of the furniture to the middle of the base
DOOR_GAP_M = 0.75  # the same where a door or drawer will come out
_SPOTS_PER_M = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A pose to stand at.

    Attributes:
      xy_m: (2,) middle of the base in the world.
      yaw_rad: heading.
      penalty_m: how much worse it is than the best one, in metres of way.
    """

    xy_m: Array
    yaw_rad: float
    penalty_m: float


def support_of(view: SceneView, thing: str) -> str | None:
    """Return the fixture on or in which a movable thing is, followed down stacks; None on the floor or in a hand."""
    seen = {thing}
    support = view.graph.support_of(thing)
    while support is not None:
        name = support.args[1]
        info = view.info.entities.get(name)
        if info is None or name in seen or "floor" in info.properties:
            return None
        if not info.movable:
            return name
        seen.add(name)
        support = view.graph.support_of(name)
    return None


def standings(view: SceneView, target: str, agent: str) -> tuple[Standing, ...]:
    """Return poses from which a robot can deal with ``target``, best first; empty if nobody knows where it is."""
    info = view.info
    if target in info.entities:
        entity = info.entities[target]
        pose = view.pose(target)
        if "floor" in entity.properties:
            return _room_standings(view, entity.room or target.removeprefix("floor_"))
        if entity.movable:
            support = support_of(view, target)
            if support is not None:
                return _sides(view, info.entities[support], None if pose is None else pose.pos_world_m[:2])
            return () if pose is None else _ring(pose.pos_world_m[:2], 0.55)
        return () if pose is None else _sides(view, entity, None)
    if target in info.places:
        place = info.places[target]
        ring = _ring(place.pos_world_m[:2], 0.2, yaw_rad=place.yaw_rad, penalty_m=2.0)
        return (Standing(xy_m=place.pos_world_m[:2].copy(), yaw_rad=place.yaw_rad, penalty_m=0.0), *ring)
    if target in info.robots and target != agent:
        pose = view.pose(target)
        return () if pose is None else _ring(pose.pos_world_m[:2], 0.95)
    return _room_standings(view, target)


def choose(view: SceneView, start_xy_m: Array, options: tuple[Standing, ...]) -> Standing | None:
    """Return the option with the shortest way and the least penalty that a base can reach and stand at, or None."""
    if not options:
        return None
    boxes = view.footprints()
    points = np.array([o.xy_m for o in options])
    for radius in (CRUISE_RADIUS_M, TIGHT_RADIUS_M):
        grid = OccupancyGrid(boxes, radius_m=radius, bounds_m=floor_bounds(view, start_xy_m))
        cell = grid.cell(start_xy_m)
        if cell is None or grid.blocked.flat[cell]:
            cell = grid.nearest_free(start_xy_m, 0.6)
        if cell is None:
            continue
        costs, _ = grid.field(cell)
        free = grid.is_free(points)
        best: tuple[float, Standing] | None = None
        for option, is_free in zip(options, free, strict=True):
            at = grid.cell(option.xy_m) if is_free else None
            if at is None:
                continue
            if grid.blocked.flat[at]:
                near = grid.nearest_free(option.xy_m, 1.5 * grid.cell_m)
                if near is None:
                    continue
                at = near
            total = float(costs[at]) * grid.cell_m + option.penalty_m
            if np.isfinite(total) and (best is None or total < best[0] - 1e-9):
                best = (total, option)
        if best is not None:
            return best[1]
    return None


def clearance_at(view: SceneView, xy_m: Array) -> float:
    """Return the distance [m] from a floor point to the nearest obstacle."""
    return float(box_clearance(np.asarray(xy_m)[None, :2], view.footprints())[0])


def access_sides(entity: EntityInfo) -> tuple[Array, ...]:
    """Return (2,) unit directions in the root frame from which the entity is used; empty means from any side."""
    found = [r.approach_root[:2] for r in entity.regions if r.approach_root is not None]
    if not found:
        found = [h.outward_body[:2] for h in entity.handles] + [b.outward_body[:2] for b in entity.buttons]
    sides: list[Array] = []
    for side in found:
        length = float(np.hypot(*side))
        if length > 0.5 and not any(side @ s > 0.99 * length for s in sides):
            sides.append(side / length)
    return tuple(sides)


def _sides(view: SceneView, entity: EntityInfo, near_xy_m: Array | None) -> tuple[Standing, ...]:
    """Return poses along the usable sides of a fixture; ``near_xy_m`` is the spot to be close to."""
    pose = view.pose(entity.name)
    if pose is None:
        return ()
    rot = matrix_of_quat(pose.quat_wxyz)[:2, :2]
    allowed = access_sides(entity)
    gap = DOOR_GAP_M if entity.openable else FRONT_GAP_M
    middle, half = entity.box_center_m[:2], entity.half_size_m[:2]
    spot = middle if near_xy_m is None else rot.T @ (near_xy_m - pose.pos_world_m[:2])
    out: list[Standing] = []
    for normal in (np.array(v, dtype=np.float64) for v in ((1, 0), (-1, 0), (0, 1), (0, -1))):
        if allowed and max(float(normal @ a) for a in allowed) < 0.7:
            continue
        axis = 0 if abs(normal[0]) > 0.5 else 1
        length = 2.0 * half[1 - axis]
        for extra in (0.0, 0.12, 0.25, 0.4, *((-0.15, -0.3) if entity.openable else ())):
            face = middle + normal * (half[axis] + gap + extra)
            n = max(int(length * _SPOTS_PER_M), 1)
            along = (
                np.linspace(-0.5, 0.5, n + 1) * max(length - 0.2, 0.0)
                if length > 0.6
                else np.array([-0.45, -0.3, -0.15, 0, 0.15, 0.3, 0.45])
            )
            for shift in (float(np.clip((spot - middle)[1 - axis], -length / 2, length / 2)), *along):
                here = face.copy()
                here[1 - axis] += shift
                away = abs(here[1 - axis] - spot[1 - axis])
                depth = abs(here[axis] - spot[axis]) - gap
                yaw = yaw_of_quat(pose.quat_wxyz) + np.arctan2(-normal[1], -normal[0])
                penalty = 3.0 * away + 3.0 * abs(extra) + (2.5 * depth if near_xy_m is not None else 0.0)
                out.append(Standing(xy_m=_to_world(pose, rot, here), yaw_rad=float(yaw), penalty_m=penalty))
    return tuple(sorted(out, key=lambda s: s.penalty_m))


def _to_world(pose: EntityPose, rot: Array, xy: Array) -> Array:
    return pose.pos_world_m[:2] + rot @ xy


def _ring(
    center_m: Array, radius_m: float, *, yaw_rad: float | None = None, penalty_m: float = 0.0
) -> tuple[Standing, ...]:
    """Return poses around a point that look at it, or along ``yaw_rad``."""
    out = []
    for k, grow in ((k, g) for g in (0.0, 0.15, 0.3) for k in range(16)):
        angle = 2 * np.pi * k / 16
        xy = center_m + (radius_m + grow) * np.array([np.cos(angle), np.sin(angle)])
        yaw = angle + np.pi if yaw_rad is None else yaw_rad
        out.append(Standing(xy_m=xy, yaw_rad=float(yaw), penalty_m=penalty_m + 3.0 * grow))
    return tuple(out)


def _room_standings(view: SceneView, name: str) -> tuple[Standing, ...]:
    """Return free spots of a room, the middle first."""
    room = next((r for r in view.info.rooms if r.name == name), None)
    if room is None:
        return ()
    x0, y0, x1, y1 = room.rect_m
    out = []
    for u in np.linspace(0.15, 0.85, 7):
        for v in np.linspace(0.15, 0.85, 7):
            xy = np.array([x0 + u * (x1 - x0), y0 + v * (y1 - y0)])
            off = float(np.hypot((u - 0.5) * (x1 - x0), (v - 0.5) * (y1 - y0)))
            middle = np.array([(x0 + x1) / 2, (y0 + y1) / 2])
            yaw = 0.0 if off < 1e-6 else float(np.arctan2(*(middle - xy)[::-1]))
            out.append(Standing(xy_m=xy, yaw_rad=yaw, penalty_m=2.0 * off))
    return tuple(sorted(out, key=lambda s: s.penalty_m))
