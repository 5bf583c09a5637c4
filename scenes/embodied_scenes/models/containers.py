"""Open containers that things are put into from above."""

from __future__ import annotations

from embodied_scenes.models.parts import DARK, OAK, Rgb, box, carcass, interior
from embodied_scenes.spec import EntityModel, PartSpec, RegionSpec


def open_box(
    depth_m: float = 0.34,
    width_m: float = 0.34,
    height_m: float = 0.36,
    wall: float = 0.015,
    raised_m: float = 0.0,
    color: Rgb = (0.45, 0.47, 0.50),
) -> EntityModel:
    """Box without a lid; origin on the ground.

    Args:
      depth_m: outer size along x, metres.
      width_m: outer size along y, metres.
      height_m: of the rim, metres.
      wall: thickness, metres.
      color: of the walls.
      raised_m: height of a solid foot under the box's floor; it brings the opening within an arm's reach.
    """
    floor_z = raised_m + wall
    tall = height_m - raised_m
    mid_z = raised_m + tall / 2
    geoms = [
        box((depth_m, width_m, wall), (0, 0, raised_m + wall / 2), color),
        *(box((depth_m, wall, tall), (0, s * (width_m - wall) / 2, mid_z), color) for s in (1.0, -1.0)),
        *(box((wall, width_m - 2 * wall, tall), (s * (depth_m - wall) / 2, 0, mid_z), color) for s in (1.0, -1.0)),
    ]
    if raised_m > 0.0:
        foot: Rgb = (0.6 * color[0], 0.6 * color[1], 0.6 * color[2])
        geoms.append(box((depth_m - 0.04, width_m - 0.04, raised_m), (0, 0, raised_m / 2), foot))
    room = RegionSpec(
        name="inside",
        kind="interior",
        center_m=(0.0, 0.0, (floor_z + height_m) / 2),
        half_size_m=(depth_m / 2 - wall, width_m / 2 - wall, (height_m - floor_z) / 2),
    )
    return EntityModel(parts=(PartSpec(geoms=tuple(geoms)),), regions=(room,))


def trash_can(color: Rgb = (0.32, 0.36, 0.40)) -> EntityModel:
    """Open bin on the floor, opening at 0.55 m."""
    return open_box(depth_m=0.32, width_m=0.32, height_m=0.55, raised_m=0.25, color=color)


def laundry_basket(color: Rgb = (0.85, 0.75, 0.85)) -> EntityModel:
    """Wide open basket on the floor, opening at 0.55 m."""
    return open_box(depth_m=0.40, width_m=0.50, height_m=0.55, raised_m=0.25, color=color)


def basket(depth_m: float = 0.26, width_m: float = 0.34, height_m: float = 0.14, color: Rgb = OAK) -> EntityModel:
    """Low basket or tray that stands on furniture."""
    return open_box(depth_m=depth_m, width_m=width_m, height_m=height_m, color=color)


def car(color: Rgb = (0.70, 0.12, 0.14)) -> EntityModel:
    """Small car with an open boot at its front side (+x), as a loading place: boot floor 0.47 m, edge 0.75 m."""
    boot = open_box(depth_m=0.56, width_m=1.10, height_m=0.75, raised_m=0.45, color=color)
    (part,), (room,) = boot.parts, boot.regions
    shift = 0.92
    moved = tuple(g.model_copy(update={"pos_m": (g.pos_m[0] + shift, g.pos_m[1], g.pos_m[2])}) for g in part.geoms)
    rest = (
        box((1.84, 1.10, 0.50), (-0.28, 0, 0.45), color),
        box((1.20, 1.00, 0.45), (-0.10, 0, 0.92), (0.55, 0.70, 0.80)),
        *(box((0.50, 0.12, 0.40), (x, y, 0.20), DARK) for x in (-0.75, 0.55) for y in (-0.50, 0.50)),
    )
    region = room.model_copy(update={"center_m": (shift, 0.0, room.center_m[2])})
    return EntityModel(parts=(PartSpec(geoms=(*moved, *rest)),), regions=(region,))


def mailbox(color: Rgb = (0.20, 0.30, 0.70)) -> EntityModel:
    """Letter box on a post, open at its front: floor at 0.72 m."""
    geoms = carcass(depth_m=0.34, width_m=0.36, bottom_m=0.70, top_m=1.06, shelves_m=(), rgb=color)
    post = box((0.10, 0.10, 0.70), (-0.05, 0, 0.35), DARK)
    body = PartSpec(geoms=(*geoms[:-1], post))
    room = interior("inside", depth_m=0.34, width_m=0.36, floor_m=0.72, ceiling_m=1.04)
    return EntityModel(parts=(body,), regions=(room,))
