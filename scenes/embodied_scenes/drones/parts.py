"""Pieces of flying scenes: panels, gates, trees, pads, a windsock."""

from __future__ import annotations

import math

from embodied_scenes.spec import (
    EntityModel,
    EntitySpec,
    GeomSpec,
    PartSpec,
    PlaceSpec,
    Vec3,
    Vec4,
)

WOOD: Vec4 = (0.42, 0.30, 0.19, 1.0)
METAL: Vec4 = (0.62, 0.64, 0.67, 1.0)
_WHITE: Vec4 = (0.94, 0.94, 0.92, 1.0)
_DARK: Vec4 = (0.13, 0.14, 0.16, 1.0)
PAD_RADIUS_M = 0.3
PAD_HEIGHT_M = 0.02


def _entity(
    name: str, category: str, pos_m: Vec3, geoms: list[GeomSpec], yaw_rad: float = 0.0, **more: object
) -> EntitySpec:
    label = more.pop("label", None)
    model = EntityModel.model_validate({"parts": [PartSpec(geoms=tuple(geoms))], "label": label})
    return EntitySpec.model_validate(
        {
            "name": name,
            "category": category,
            "custom": model,
            "pos_m": pos_m,
            "yaw_rad": yaw_rad,
            "room": "yard",
            **more,
        }
    )


def _geom(shape: str, size: tuple[float, ...], pos: Vec3, rgba: Vec4, **more: object) -> GeomSpec:
    return GeomSpec.model_validate({"shape": shape, "size_m": size, "pos_m": pos, "rgba": rgba, **more})


def panel(name: str, pos_m: Vec3, yaw_rad: float, rgba: Vec4, label: str, bars: int) -> EntitySpec:
    """Inspection target: a coloured plate in a dark frame with ``bars`` white bars; its normal is its x axis."""
    geoms = [
        _geom("box", (0.012, 0.23, 0.23), (0.0, 0.0, 0.0), _DARK),
        _geom("box", (0.006, 0.20, 0.20), (0.013, 0.0, 0.0), rgba, collide=False),
    ]
    for i in range(bars):
        y_m = (i - (bars - 1) / 2) * 0.08
        geoms.append(_geom("box", (0.004, 0.02, 0.11), (0.021, y_m, 0.0), _WHITE, collide=False))
    return _entity(name, "panel", pos_m, geoms, yaw_rad, label=label, properties=("inspectable",))


def tower(name: str, pos_m: Vec3, half_m: float, height_m: float) -> EntitySpec:
    """Brick tower with pale bands, a ledge, a parapet and a mast with a red lamp."""
    brick: Vec4 = (0.60, 0.29, 0.22, 1.0)
    band: Vec4 = (0.80, 0.72, 0.60, 1.0)
    geoms = [_geom("box", (half_m, half_m, height_m / 2), (0, 0, height_m / 2), brick)]
    geoms += [
        _geom("box", (half_m + 0.008, half_m + 0.008, 0.035), (0, 0, z), band, collide=False)
        for z in (0.35 * height_m, 0.68 * height_m)
    ]
    geoms.append(_geom("box", (half_m + 0.05, half_m + 0.05, 0.06), (0, 0, height_m), band))
    geoms += [
        _geom("box", (0.08, 0.08, 0.07), (sx * half_m * 0.85, sy * half_m * 0.85, height_m + 0.13), brick)
        for sx in (-1, 1)
        for sy in (-1, 1)
    ]
    geoms.append(_geom("cylinder", (0.02, 0.2), (0, 0, height_m + 0.26), METAL))
    geoms.append(_geom("sphere", (0.05,), (0, 0, height_m + 0.5), (0.9, 0.12, 0.1, 1.0)))
    geoms.append(_geom("box", (0.01, 0.22, 0.4), (-half_m - 0.005, 0.0, 0.4), WOOD, collide=False))
    return _entity(name, "tower", pos_m, geoms)


def gate(
    name: str, pos_m: Vec3, yaw_rad: float, rgba: Vec4, half_opening_m: float = 0.55
) -> tuple[EntitySpec, PlaceSpec]:
    """Square gate on two legs with striped bars, flown through along its x axis.

    Returns it and the place in its middle.
    """
    x, y, z = pos_m
    bar = 0.05
    reach = half_opening_m + bar
    geoms = []
    for side in (-1, 1):
        geoms.append(_geom("box", (bar, bar, reach + bar), (0, side * reach, z), rgba))
        geoms.append(_geom("box", (bar, reach + bar, bar), (0, 0, z + side * reach), rgba))
        geoms += [
            _geom("box", (bar + 0.004, bar + 0.004, 0.09), (0, side * reach, z + dz), _WHITE, collide=False)
            for dz in (-half_opening_m * 0.6, 0.0, half_opening_m * 0.6)
        ]
        leg = max(z - reach - bar, 0.02) / 2
        geoms.append(_geom("box", (0.035, 0.035, leg), (0, side * reach, leg), METAL))
    entity = _entity(f"{name}_frame", "gate", (x, y, 0.0), geoms, yaw_rad)
    return entity, PlaceSpec(name=name, category="waypoint", pos_m=pos_m, yaw_rad=yaw_rad, room="yard")


def tree(name: str, pos_m: Vec3, height_m: float, crown_m: float) -> EntitySpec:
    """Tree: a trunk and a crown of three balls."""
    greens: tuple[Vec4, ...] = ((0.20, 0.44, 0.20, 1.0), (0.25, 0.50, 0.22, 1.0), (0.30, 0.55, 0.25, 1.0))
    trunk = (height_m - crown_m) / 2
    geoms = [
        _geom("cylinder", (0.09, trunk), (0, 0, trunk), WOOD),
        _geom("ellipsoid", (crown_m, crown_m, crown_m * 0.9), (0, 0, height_m - crown_m), greens[0]),
        _geom("sphere", (crown_m * 0.6,), (crown_m * 0.35, -crown_m * 0.3, height_m - crown_m * 0.6), greens[1]),
        _geom("sphere", (crown_m * 0.55,), (-crown_m * 0.4, crown_m * 0.3, height_m - crown_m * 0.75), greens[2]),
    ]
    return _entity(name, "tree", pos_m, geoms)


def pole(name: str, pos_m: Vec3, height_m: float) -> EntitySpec:
    """Lamp pole with red and white bands."""
    geoms = [_geom("cylinder", (0.05, height_m / 2), (0, 0, height_m / 2), METAL)]
    geoms += [
        _geom("cylinder", (0.055, 0.08), (0, 0, z * height_m), (0.85, 0.16, 0.12, 1.0), collide=False)
        for z in (0.45, 0.65, 0.85)
    ]
    geoms.append(_geom("sphere", (0.09,), (0, 0, height_m + 0.05), (1.0, 0.93, 0.6, 1.0)))
    return _entity(name, "pole", pos_m, geoms)


def pad(name: str, xy_m: tuple[float, float], rgba: Vec4) -> tuple[EntitySpec, PlaceSpec]:
    """Landing pad with rings in its colour. Returns it and the place on its top."""
    x, y = xy_m
    half = PAD_HEIGHT_M / 2
    geoms = [
        _geom("cylinder", (PAD_RADIUS_M, half), (0, 0, half), _DARK),
        _geom("cylinder", (0.27, 0.001), (0, 0, PAD_HEIGHT_M), rgba, collide=False),
        _geom("cylinder", (0.21, 0.001), (0, 0, PAD_HEIGHT_M + 0.001), _DARK, collide=False),
        _geom("box", (0.025, 0.12, 0.0005), (0.07, 0, PAD_HEIGHT_M + 0.002), _WHITE, collide=False),
        _geom("box", (0.025, 0.12, 0.0005), (-0.07, 0, PAD_HEIGHT_M + 0.002), _WHITE, collide=False),
        _geom("box", (0.07, 0.025, 0.0005), (0, 0, PAD_HEIGHT_M + 0.002), _WHITE, collide=False),
    ]
    place = PlaceSpec(name=name, category="pad", pos_m=(x, y, PAD_HEIGHT_M), room="yard")
    return _entity(f"{name}_plate", "pad", (x, y, 0.0), geoms), place


def windsock(name: str, pos_m: Vec3) -> EntitySpec:
    """Windsock: a mast and a striped cone made of cylinders; its states carry the wind of the scene."""
    sideways = (math.sqrt(0.5), 0.0, math.sqrt(0.5), 0.0)  # the cylinder's z axis along x
    geoms = [_geom("cylinder", (0.025, 1.0), (0, 0, 1.0), METAL)]
    for i in range(5):
        rgba: Vec4 = (0.95, 0.45, 0.08, 1.0) if i % 2 == 0 else _WHITE
        size = (0.11 - 0.012 * i, 0.06)
        geoms.append(_geom("cylinder", size, (0.09 + 0.12 * i, 0, 1.93 - 0.02 * i), rgba, quat_wxyz=sideways))
    return _entity(name, "windsock", pos_m, geoms)


def shed(name: str, pos_m: Vec3, half_m: Vec3, yaw_rad: float, rgba: Vec4) -> EntitySpec:
    """Steel container with ribs and a dark roof."""
    hx, hy, hz = half_m
    lid: Vec4 = (rgba[0] * 0.6, rgba[1] * 0.6, rgba[2] * 0.6, 1.0)
    geoms = [
        _geom("box", (hx, hy, hz), (0, 0, hz), rgba),
        _geom("box", (hx + 0.03, hy + 0.03, 0.025), (0, 0, 2 * hz + 0.02), lid),
    ]
    geoms += [
        _geom("box", (0.02, hy + 0.012, hz * 0.92), (-hx + hx * 2 * (i + 0.5) / 6, 0, hz), lid, collide=False)
        for i in range(6)
    ]
    return _entity(name, "container", pos_m, geoms, yaw_rad)
