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
    depth: float = 0.42,
    width: float = 0.50,
    bottom: float = 0.42,
    height: float = 0.88,
    color: Rgb = WHITE,
    hinge_left: bool = True,
) -> EntityModel:
    """Floor cabinet on a plinth, one door; things go inside and on top."""
    panel, bar = door(
        front_x_m=depth / 2,
        width_m=width,
        bottom_m=bottom,
        height_m=height - bottom,
        rgb=color,
        handle_z_m=min(0.5 * (bottom + height), 0.9),
        hinge_left=hinge_left,
    )
    body = PartSpec(geoms=carcass(depth_m=depth, width_m=width, bottom_m=bottom, top_m=height, shelves_m=(), rgb=color))
    regions: tuple[RegionSpec, ...] = (
        interior("inside", depth_m=depth, width_m=width, floor_m=bottom + BOARD_M, ceiling_m=height - BOARD_M),
    )
    if height <= 0.95:
        regions += (surface("top", size_m=(depth, width), center_m=(0, 0, height)),)
    return EntityModel(parts=(body, panel), regions=regions, handles=(bar,))


def tall_cabinet(
    depth: float = 0.42,
    width: float = 0.50,
    floors: tuple[float, ...] = (0.45, 0.83),
    height: float = 1.25,
    color: Rgb = WHITE,
    hinge_left: bool = True,
) -> EntityModel:
    """Tall cabinet with one door and a shelf for every height in ``floors``; also wardrobe and fridge carcass."""
    panel, bar = door(
        front_x_m=depth / 2,
        width_m=width,
        bottom_m=floors[0] - BOARD_M,
        height_m=height - floors[0] + BOARD_M,
        rgb=color,
        handle_z_m=0.85,
        hinge_left=hinge_left,
    )
    body = PartSpec(
        geoms=carcass(
            depth_m=depth,
            width_m=width,
            bottom_m=floors[0] - BOARD_M,
            top_m=height,
            shelves_m=floors[1:],
            rgb=color,
        )
    )
    ceilings = (*(z - BOARD_M for z in floors[1:]), height - BOARD_M)
    regions = tuple(
        interior(f"shelf_{i}", depth_m=depth, width_m=width, floor_m=lo, ceiling_m=hi)
        for i, (lo, hi) in enumerate(zip(floors, ceilings, strict=True))
    )
    return EntityModel(parts=(body, panel), regions=regions, handles=(bar,))


def fridge(color: Rgb = (0.86, 0.90, 0.93), hinge_left: bool = True) -> EntityModel:
    """Fridge: freezer block below, two shelves behind one tall door."""
    model = tall_cabinet(depth=0.46, width=0.50, floors=(0.50, 0.88), height=1.40, color=color, hinge_left=hinge_left)
    body = model.parts[0]
    badge = box((0.004, 0.40, 0.006), (0.232, 0, 0.40), DARK, collide=False)
    return model.model_copy(
        update={"parts": (body.model_copy(update={"geoms": (*body.geoms, badge)}), *model.parts[1:])}
    )


def oven(color: Rgb = (0.25, 0.25, 0.28), hinge_left: bool = True) -> EntityModel:
    """Cooker: an oven behind a side-hinged door, a hob with four plates on top."""
    model = cabinet(depth=0.46, width=0.50, bottom=0.45, height=0.90, color=color, hinge_left=hinge_left)
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
    depth: float = 0.42,
    width: float = 0.46,
    bottom: float = 0.52,
    height: float = 0.78,
    solid_below: bool = True,
    has_top: bool = True,
    color: Rgb = OAK,
) -> EntityModel:
    """Frame with one drawer between ``bottom`` and ``height``; stack several with rising ``bottom`` for a chest.

    Args:
      depth: outer size along x, metres.
      width: outer size along y, metres.
      bottom: height of the frame's underside, metres.
      height: height of its top face, metres.
      color: of the frame; the drawer is lighter.
      solid_below: fill the space from the floor to ``bottom`` (False for the upper drawers of a stack).
      has_top: things can be put on it (False for the lower drawers of a stack).
    """
    inner_w = width - 2 * BOARD_M
    mid_z, tall = (bottom + height) / 2, height - bottom
    frame = [box((depth, BOARD_M, tall), (0, s * (width - BOARD_M) / 2, mid_z), color) for s in (1.0, -1.0)]
    frame += [
        box((BOARD_M, inner_w, tall), (-(depth - BOARD_M) / 2, 0, mid_z), color),
        box((depth - BOARD_M, inner_w, BOARD_M), (BOARD_M / 2, 0, bottom + BOARD_M / 2), color),
        box((depth - BOARD_M, inner_w, BOARD_M), (BOARD_M / 2, 0, height - BOARD_M / 2), color),
    ]
    if solid_below:
        dark: Rgb = (0.75 * color[0], 0.75 * color[1], 0.75 * color[2])
        frame.append(box((depth, width, bottom), (0, 0, bottom / 2), dark))
    clear = 0.004
    box_w, box_l = inner_w - 2 * clear, depth - BOARD_M - 2 * clear
    box_z0, wall = bottom + BOARD_M + clear, 0.012
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
            box((BOARD_M, width - 0.004, tall - 0.004), (front_x, 0, box_h / 2), light, mass_kg=0.8),
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
    top = surface("top", size_m=(depth, width), center_m=(0, 0, height))
    regions = (room, top) if has_top else (room,)
    handle = HandleSpec(part="drawer", pos_m=bar, axis=(0.0, 1.0, 0.0))
    return EntityModel(parts=(PartSpec(geoms=tuple(frame)), slide), regions=regions, handles=(handle,))


def bookcase(
    depth: float = 0.36,
    width: float = 0.80,
    floors: tuple[float, ...] = (0.42, 0.78),
    height: float = 1.14,
    color: Rgb = WOOD,
) -> EntityModel:
    """Open shelf: a board for every height in ``floors``."""
    geoms = carcass(
        depth_m=depth, width_m=width, bottom_m=floors[0] - BOARD_M, top_m=height, shelves_m=floors[1:], rgb=color
    )
    ceilings = (*(z - BOARD_M for z in floors[1:]), height - BOARD_M)
    regions = tuple(
        interior(f"shelf_{i}", depth_m=depth, width_m=width, floor_m=lo, ceiling_m=hi)
        for i, (lo, hi) in enumerate(zip(floors, ceilings, strict=True))
    )
    if height <= 0.95:
        regions += (surface("top", size_m=(depth, width), center_m=(0, 0, height)),)
    return EntityModel(parts=(PartSpec(geoms=geoms),), regions=regions)


def wardrobe(color: Rgb = (0.52, 0.36, 0.24), hinge_left: bool = True) -> EntityModel:
    """Wardrobe with one door and two boards."""
    return tall_cabinet(depth=0.46, width=0.50, floors=(0.45, 0.85), height=1.75, color=color, hinge_left=hinge_left)
