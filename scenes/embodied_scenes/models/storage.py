"""Furniture that things are stored in: cabinets, fridge, oven, drawers, shelves, wardrobe."""

from __future__ import annotations

from embodied_scenes.models.parts import (
    BOARD_M,
    DARK,
    HANDLE_STANDOFF_M,
    OAK,
    STEEL,
    WHITE,
    WOOD,
    Rgb,
    box,
    carcass,
    cylinder,
    door,
    handle_geoms,
    interior,
    surface,
)
from embodied_scenes.spec import EntityModel, HandleSpec, JointSpec, PartSpec, RegionSpec


def cabinet(
    depth_m: float = 0.42,
    width_m: float = 0.50,
    bottom_m: float = 0.42,
    height_m: float = 0.88,
    color: Rgb = WHITE,
    hinge_left: bool = True,
) -> EntityModel:
    """Floor cabinet on a plinth, one door; things go inside and on top."""
    panel, bar = door(
        front_x_m=depth_m / 2,
        width_m=width_m,
        bottom_m=bottom_m,
        height_m=height_m - bottom_m,
        rgb=color,
        handle_z_m=min(0.5 * (bottom_m + height_m), 0.9),
        hinge_left=hinge_left,
    )
    body = PartSpec(
        geoms=carcass(depth_m=depth_m, width_m=width_m, bottom_m=bottom_m, top_m=height_m, shelves_m=(), rgb=color)
    )
    regions: tuple[RegionSpec, ...] = (
        interior("inside", depth_m=depth_m, width_m=width_m, floor_m=bottom_m + BOARD_M, ceiling_m=height_m - BOARD_M),
    )
    if height_m <= 0.95:
        regions += (surface("top", size_m=(depth_m, width_m), center_m=(0, 0, height_m)),)
    return EntityModel(parts=(body, panel), regions=regions, handles=(bar,))


def tall_cabinet(
    depth_m: float = 0.42,
    width_m: float = 0.50,
    floors: tuple[float, ...] = (0.45, 0.83),
    height_m: float = 1.25,
    color: Rgb = WHITE,
    hinge_left: bool = True,
) -> EntityModel:
    """Tall cabinet with one door and a shelf for every height in ``floors``; also wardrobe and fridge carcass."""
    panel, bar = door(
        front_x_m=depth_m / 2,
        width_m=width_m,
        bottom_m=floors[0] - BOARD_M,
        height_m=height_m - floors[0] + BOARD_M,
        rgb=color,
        handle_z_m=0.85,
        hinge_left=hinge_left,
    )
    body = PartSpec(
        geoms=carcass(
            depth_m=depth_m,
            width_m=width_m,
            bottom_m=floors[0] - BOARD_M,
            top_m=height_m,
            shelves_m=floors[1:],
            rgb=color,
        )
    )
    ceilings = (*(z - BOARD_M for z in floors[1:]), height_m - BOARD_M)
    regions = tuple(
        interior(f"shelf_{i}", depth_m=depth_m, width_m=width_m, floor_m=lo, ceiling_m=hi)
        for i, (lo, hi) in enumerate(zip(floors, ceilings, strict=True))
    )
    return EntityModel(parts=(body, panel), regions=regions, handles=(bar,))


def fridge(color: Rgb = (0.86, 0.90, 0.93), hinge_left: bool = True) -> EntityModel:
    """Fridge: freezer block below, two shelves behind one tall door."""
    model = tall_cabinet(
        depth_m=0.46, width_m=0.50, floors=(0.50, 0.88), height_m=1.40, color=color, hinge_left=hinge_left
    )
    body = model.parts[0]
    badge = box((0.004, 0.40, 0.006), (0.232, 0, 0.40), DARK, collide=False)
    return model.model_copy(
        update={"parts": (body.model_copy(update={"geoms": (*body.geoms, badge)}), *model.parts[1:])}
    )


def oven(color: Rgb = (0.25, 0.25, 0.28), hinge_left: bool = True) -> EntityModel:
    """Cooker: an oven behind a side-hinged door, a hob with four plates on top."""
    model = cabinet(depth_m=0.46, width_m=0.50, bottom_m=0.45, height_m=0.90, color=color, hinge_left=hinge_left)
    body, panel = model.parts
    plates = tuple(
        cylinder(0.075, 0.004, (x, y, 0.901), (0.85, 0.25, 0.12), collide=False)
        for x in (-0.11, 0.11)
        for y in (-0.12, 0.12)
    )
    window = box(
        (0.004, 0.30, 0.20),
        (BOARD_M + 0.003, -0.25 if hinge_left else 0.25, 0.22),
        (0.95, 0.65, 0.25),
        mass_kg=0.01,
        collide=False,
    )
    parts = (
        body.model_copy(update={"geoms": (*body.geoms, *plates)}),
        panel.model_copy(update={"geoms": (*panel.geoms, window)}),
    )
    return model.model_copy(update={"parts": parts})


def drawer(
    depth_m: float = 0.42,
    width_m: float = 0.46,
    bottom_m: float = 0.52,
    height_m: float = 0.78,
    solid_below: bool = True,
    has_top: bool = True,
    color: Rgb = OAK,
) -> EntityModel:
    """Frame with one drawer between ``bottom_m`` and ``height_m``; stack several with rising ``bottom_m`` for a chest.

    Args:
      depth_m: outer size along x, metres.
      width_m: outer size along y, metres.
      bottom_m: height of the frame's underside, metres.
      height_m: height of its top face, metres.
      color: of the frame; the drawer is lighter.
      solid_below: fill the space from the floor to ``bottom_m`` (False for the upper drawers of a stack).
      has_top: things can be put on it (False for the lower drawers of a stack).
    """
    inner_w = width_m - 2 * BOARD_M
    mid_z, tall = (bottom_m + height_m) / 2, height_m - bottom_m
    frame = [box((depth_m, BOARD_M, tall), (0, s * (width_m - BOARD_M) / 2, mid_z), color) for s in (1.0, -1.0)]
    frame += [
        box((BOARD_M, inner_w, tall), (-(depth_m - BOARD_M) / 2, 0, mid_z), color),
        box((depth_m - BOARD_M, inner_w, BOARD_M), (BOARD_M / 2, 0, bottom_m + BOARD_M / 2), color),
        box((depth_m - BOARD_M, inner_w, BOARD_M), (BOARD_M / 2, 0, height_m - BOARD_M / 2), color),
    ]
    if solid_below:
        dark: Rgb = (0.75 * color[0], 0.75 * color[1], 0.75 * color[2])
        frame.append(box((depth_m, width_m, bottom_m), (0, 0, bottom_m / 2), dark))
    clear = 0.004
    box_w, box_l = inner_w - 2 * clear, depth_m - BOARD_M - 2 * clear
    box_z0, wall = bottom_m + BOARD_M + clear, 0.012
    box_h = tall - 2 * BOARD_M - 2 * clear
    light: Rgb = (min(1.0, 1.15 * color[0]), min(1.0, 1.15 * color[1]), min(1.0, 1.15 * color[2]))
    # The drawer's frame lies in the middle of its own floor.
    walls = [box((box_l, wall, box_h), (0, s * (box_w - wall) / 2, box_h / 2), light, mass_kg=0.3) for s in (1.0, -1.0)]
    front_x = box_l / 2 + clear + BOARD_M / 2
    bar = (front_x + BOARD_M / 2 + HANDLE_STANDOFF_M, 0.0, box_h / 2)
    slide = PartSpec(
        name="drawer",
        parent="body",
        pos_m=(BOARD_M / 2, 0.0, box_z0),
        geoms=(
            box((box_l, box_w, wall), (0, 0, wall / 2), light, mass_kg=0.8),
            *walls,
            box((wall, box_w - 2 * wall, box_h), (-(box_l - wall) / 2, 0, box_h / 2), light, mass_kg=0.3),
            box((BOARD_M, width_m - 0.004, tall - 0.004), (front_x, 0, box_h / 2), light, mass_kg=0.8),
            *handle_geoms(bar, "y", STEEL),
        ),
        joint=JointSpec(kind="slide", axis=(1.0, 0.0, 0.0), upper=0.30, damping=4.0, friction=1.0),
    )
    # Only the part that comes out from under the frame is offered to put things in.
    shown = 0.30 - 2 * wall
    room = RegionSpec(
        name="inside",
        kind="interior",
        part="drawer",
        center_m=(box_l / 2 - shown / 2, 0.0, (wall + box_h) / 2),
        half_size_m=(shown / 2, box_w / 2 - wall, (box_h - wall) / 2),
    )
    top = surface("top", size_m=(depth_m, width_m), center_m=(0, 0, height_m))
    regions = (room, top) if has_top else (room,)
    handle = HandleSpec(part="drawer", pos_m=bar, axis=(0.0, 1.0, 0.0))
    return EntityModel(parts=(PartSpec(geoms=tuple(frame)), slide), regions=regions, handles=(handle,))


def bookcase(
    depth_m: float = 0.36,
    width_m: float = 0.80,
    floors: tuple[float, ...] = (0.42, 0.78),
    height_m: float = 1.14,
    color: Rgb = WOOD,
) -> EntityModel:
    """Open shelf: a board for every height in ``floors``."""
    geoms = carcass(
        depth_m=depth_m, width_m=width_m, bottom_m=floors[0] - BOARD_M, top_m=height_m, shelves_m=floors[1:], rgb=color
    )
    ceilings = (*(z - BOARD_M for z in floors[1:]), height_m - BOARD_M)
    regions = tuple(
        interior(f"shelf_{i}", depth_m=depth_m, width_m=width_m, floor_m=lo, ceiling_m=hi)
        for i, (lo, hi) in enumerate(zip(floors, ceilings, strict=True))
    )
    if height_m <= 0.95:
        regions += (surface("top", size_m=(depth_m, width_m), center_m=(0, 0, height_m)),)
    return EntityModel(parts=(PartSpec(geoms=geoms),), regions=regions)


def wardrobe(color: Rgb = (0.52, 0.36, 0.24), hinge_left: bool = True) -> EntityModel:
    """Wardrobe with one door and two boards."""
    return tall_cabinet(
        depth_m=0.46, width_m=0.50, floors=(0.45, 0.85), height_m=1.75, color=color, hinge_left=hinge_left
    )
