"""Furniture to put things on: tables, counters, seats, beds, and devices with a push button."""

from __future__ import annotations

from embodied_scenes.models.parts import DARK, OAK, STEEL, WALNUT, WHITE, WOOD, Rgb, box, cylinder, surface
from embodied_scenes.spec import ButtonSpec, EntityModel, GeomSpec, PartSpec, RegionSpec


def table(
    depth_m: float = 0.80, width_m: float = 1.20, height_m: float = 0.74, color: Rgb = OAK, top_m: float = 0.04
) -> EntityModel:
    """Table on four legs."""
    leg = 0.06
    legs = tuple(
        box(
            (leg, leg, height_m - top_m),
            (sx * (depth_m / 2 - leg), sy * (width_m / 2 - leg), (height_m - top_m) / 2),
            (0.8 * color[0], 0.8 * color[1], 0.8 * color[2]),
        )
        for sx in (1.0, -1.0)
        for sy in (1.0, -1.0)
    )
    plate = box((depth_m, width_m, top_m), (0, 0, height_m - top_m / 2), color)
    top = surface("top", size_m=(depth_m, width_m), center_m=(0, 0, height_m))
    return EntityModel(parts=(PartSpec(geoms=(plate, *legs)),), regions=(top,))


def coffee_table(
    depth_m: float = 0.60, width_m: float = 1.0, height_m: float = 0.45, color: Rgb = WALNUT
) -> EntityModel:
    """Low table for a sofa."""
    return table(depth_m=depth_m, width_m=width_m, height_m=height_m, color=color)


def counter(
    depth_m: float = 0.60, width_m: float = 1.0, height_m: float = 0.90, color: Rgb = (0.80, 0.78, 0.74)
) -> EntityModel:
    """Kitchen counter: closed block under a stone top."""
    block = box((depth_m - 0.04, width_m, height_m - 0.04), (-0.02, 0, (height_m - 0.04) / 2), WHITE)
    top = box((depth_m, width_m, 0.04), (0, 0, height_m - 0.02), color)
    region = surface("top", size_m=(depth_m, width_m), center_m=(0, 0, height_m))
    return EntityModel(parts=(PartSpec(geoms=(block, top)),), regions=(region,))


def sink(
    depth_m: float = 0.60, width_m: float = 0.90, height_m: float = 0.90, color: Rgb = (0.80, 0.78, 0.74)
) -> EntityModel:
    """Counter with a sunken basin, open from above, and a tap at its back; ``top`` is the worktop beside the basin."""
    basin_d, basin_w, basin_h = 0.36, 0.40, 0.16
    basin_y = width_m / 2 - 0.06 - basin_w / 2
    basin_x = 0.04
    low = height_m - basin_h
    left = width_m / 2 - (basin_y + basin_w / 2)
    right = basin_y - basin_w / 2 + width_m / 2
    back = basin_x - basin_d / 2 + depth_m / 2
    front = depth_m / 2 - (basin_x + basin_d / 2)
    mid_z = low + basin_h / 2
    geoms = (
        box((depth_m, width_m, low), (0, 0, low / 2), WHITE),
        box((depth_m, left, basin_h), (0, width_m / 2 - left / 2, mid_z), color),
        box((depth_m, right, basin_h), (0, -width_m / 2 + right / 2, mid_z), color),
        box((back, basin_w, basin_h), (-depth_m / 2 + back / 2, basin_y, mid_z), color),
        box((front, basin_w, basin_h), (depth_m / 2 - front / 2, basin_y, mid_z), color),
        box((basin_d, basin_w, 0.004), (basin_x, basin_y, low + 0.002), STEEL),
        cylinder(0.015, 0.24, (-depth_m / 2 + 0.06, basin_y, height_m + 0.12), STEEL),
        box((0.16, 0.025, 0.025), (-depth_m / 2 + 0.13, basin_y, height_m + 0.23), STEEL),
    )
    basin = RegionSpec(
        name="basin",
        kind="interior",
        center_m=(basin_x, basin_y, low + 0.004 + (basin_h - 0.004) / 2),
        half_size_m=(basin_d / 2, basin_w / 2, (basin_h - 0.004) / 2),
    )
    worktop = surface("top", size_m=(depth_m, right), center_m=(0, -width_m / 2 + right / 2, height_m))
    return EntityModel(parts=(PartSpec(geoms=geoms),), regions=(worktop, basin))


def bed(
    length_m: float = 2.0, width_m: float = 1.2, height_m: float = 0.45, color: Rgb = (0.36, 0.48, 0.70)
) -> EntityModel:
    """Bed; its foot is at the front (+x), its head at the back."""
    geoms = (
        box((length_m, width_m, height_m - 0.18), (0, 0, (height_m - 0.18) / 2), WOOD),
        box((length_m, width_m, 0.18), (0, 0, height_m - 0.09), color),
        box((0.06, width_m, 0.50), (-length_m / 2 - 0.03, 0, height_m), WOOD),
        box((0.32, 0.5, 0.10), (-length_m / 2 + 0.2, 0, height_m + 0.05), WHITE),
    )
    top = surface("top", size_m=(length_m - 0.5, width_m), center_m=(0.23, 0, height_m))
    return EntityModel(parts=(PartSpec(geoms=geoms),), regions=(top,))


def sofa(depth_m: float = 0.80, width_m: float = 1.8, color: Rgb = (0.30, 0.52, 0.48)) -> EntityModel:
    """Sofa with a seat at 0.42 m."""
    seat_d = depth_m - 0.20
    geoms = (
        box((depth_m, width_m, 0.42), (0, 0, 0.21), color),
        box((0.20, width_m, 0.40), (-depth_m / 2 + 0.10, 0, 0.62), color),
        box((depth_m, 0.16, 0.18), (0, width_m / 2 - 0.08, 0.51), color),
        box((depth_m, 0.16, 0.18), (0, -width_m / 2 + 0.08, 0.51), color),
    )
    seat = surface("seat", size_m=(seat_d, width_m - 0.32), center_m=(0.10, 0, 0.42))
    return EntityModel(parts=(PartSpec(geoms=geoms),), regions=(seat,))


def chair(size: float = 0.42, height_m: float = 0.46, color: Rgb = (0.72, 0.30, 0.22)) -> EntityModel:
    """Chair with a seat and a back rest."""
    leg = 0.04
    reach = size / 2 - leg / 2
    geoms = [
        box((leg, leg, height_m - 0.04), (sx * reach, sy * reach, (height_m - 0.04) / 2), WOOD)
        for sx in (1, -1)
        for sy in (1, -1)
    ]
    geoms.append(box((size, size, 0.04), (0, 0, height_m - 0.02), color))
    geoms.append(box((0.04, size, 0.42), (-size / 2 + 0.02, 0, height_m + 0.21), color))
    seat = surface("seat", size_m=(size - 0.06, size), center_m=(0.03, 0, height_m))
    return EntityModel(parts=(PartSpec(geoms=tuple(geoms)),), regions=(seat,))


def desk(
    depth_m: float = 0.65, width_m: float = 1.2, height_m: float = 0.74, color: Rgb = (0.85, 0.80, 0.70)
) -> EntityModel:
    """Desk with side panels."""
    geoms = (
        box((depth_m, width_m, 0.04), (0, 0, height_m - 0.02), color),
        box((depth_m, 0.03, height_m - 0.04), (0, width_m / 2 - 0.015, (height_m - 0.04) / 2), color),
        box((depth_m, 0.03, height_m - 0.04), (0, -width_m / 2 + 0.015, (height_m - 0.04) / 2), color),
        box((0.02, width_m - 0.06, 0.35), (-depth_m / 2 + 0.05, 0, height_m - 0.215), color),
    )
    top = surface("top", size_m=(depth_m, width_m), center_m=(0, 0, height_m))
    return EntityModel(parts=(PartSpec(geoms=geoms),), regions=(top,))


def tv_stand(depth_m: float = 0.45, width_m: float = 1.4, height_m: float = 0.50) -> EntityModel:
    """Low board with a television at its back; the strip before the screen is free."""
    geoms = (
        box((depth_m, width_m, height_m), (0, 0, height_m / 2), WALNUT),
        box((0.05, 1.05, 0.60), (-depth_m / 2 + 0.07, 0, height_m + 0.36), (0.05, 0.05, 0.06)),
        box((0.05, 0.30, 0.06), (-depth_m / 2 + 0.07, 0, height_m + 0.03), DARK),
    )
    top = surface("top", size_m=(depth_m - 0.12, width_m), center_m=(0.06, 0, height_m))
    return EntityModel(parts=(PartSpec(geoms=geoms),), regions=(top,))


def stool(size: float = 0.40, height_m: float = 0.50, color: Rgb = OAK) -> EntityModel:
    """Small solid stand: bedside table, plant stand, pedestal."""
    top = surface("top", size_m=(size, size), center_m=(0, 0, height_m))
    geoms = (box((size, size, height_m), (0, 0, height_m / 2), color),)
    return EntityModel(parts=(PartSpec(geoms=geoms),), regions=(top,))


def _device(geoms: tuple[GeomSpec, ...], x_m: float, z_m: float) -> EntityModel:
    """Box-like device with a red button before its front face at ``x_m``, clear of it by more than its travel."""
    button = ButtonSpec(part="body", pos_m=(x_m + 0.021, 0.0, z_m), outward=(1.0, 0.0, 0.0), travel_m=0.01)
    return EntityModel(parts=(PartSpec(geoms=geoms),), buttons=(button,))


def lamp(height_m: float = 1.45, color: Rgb = (0.98, 0.90, 0.60)) -> EntityModel:
    """Floor lamp: a column with a push button on a box at 0.80 m."""
    geoms = (
        cylinder(0.14, 0.03, (0, 0, 0.015), DARK),
        cylinder(0.02, height_m - 0.28, (0, 0, (height_m - 0.22) / 2), DARK),
        box((0.09, 0.10, 0.14), (0, 0, 0.80), DARK),
        cylinder(0.16, 0.25, (0, 0, height_m - 0.125), color),
    )
    return _device(geoms, 0.045, 0.80)


def radio(color: Rgb = (0.75, 0.20, 0.18)) -> EntityModel:
    """Table radio, origin at its underside; stands on furniture."""
    geoms = (
        box((0.12, 0.26, 0.16), (0, 0, 0.08), color),
        cylinder(0.003, 0.16, (-0.04, 0.11, 0.24), STEEL, collide=False),
        box((0.002, 0.06, 0.08), (0.06, 0.085, 0.08), (0.85, 0.82, 0.7), collide=False),
    )
    return _device(geoms, 0.06, 0.09)


def coffee_machine(color: Rgb = (0.12, 0.12, 0.14)) -> EntityModel:
    """Coffee machine, origin at its underside; stands on a counter."""
    geoms = (
        box((0.14, 0.20, 0.30), (-0.05, 0, 0.15), color),
        box((0.12, 0.20, 0.10), (0.08, 0, 0.25), color),
        box((0.12, 0.20, 0.03), (0.08, 0, 0.015), STEEL),
    )
    return _device(geoms, 0.14, 0.25)


def block(
    depth_m: float = 0.5, width_m: float = 0.5, height_m: float = 0.6, color: Rgb = (0.6, 0.6, 0.62)
) -> EntityModel:
    """Plain piece of furniture of a given size, for categories without a template of their own."""
    top = surface("top", size_m=(depth_m, width_m), center_m=(0, 0, height_m))
    geoms = (box((depth_m, width_m, height_m), (0, 0, height_m / 2), color),)
    return EntityModel(parts=(PartSpec(geoms=geoms),), regions=(top,) if 0.3 <= height_m <= 0.95 else ())
