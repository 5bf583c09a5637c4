"""Small builders that all templates share: primitives, doors with handles, colours.

Frame of every template: x points to the front (where a robot stands), y to the left, z up. Furniture has its origin on
the floor in the middle of its footprint; movable objects have it in the middle of their bounding box.
"""

from __future__ import annotations

from embodied_scenes.spec import GeomSpec, HandleSpec, JointSpec, PartSpec, RegionSpec, Vec3, Vec4

# Handle of every door and drawer, sized for a parallel gripper with 0.08 m stroke.
HANDLE_LENGTH_M = 0.14
HANDLE_THICKNESS_M = 0.02
HANDLE_STANDOFF_M = 0.055

BOARD_M = 0.02  # thickness of boards and doors, a common furniture board (18 mm) rounded up

Rgb = tuple[float, float, float]

WOOD: Rgb = (0.60, 0.42, 0.26)
OAK: Rgb = (0.76, 0.60, 0.40)
WALNUT: Rgb = (0.36, 0.24, 0.16)
WHITE: Rgb = (0.93, 0.93, 0.92)
STEEL: Rgb = (0.70, 0.72, 0.74)
DARK: Rgb = (0.15, 0.15, 0.17)


def rgba(rgb: Rgb, alpha: float = 1.0) -> Vec4:
    """Return a colour with its opacity."""
    return (*rgb, alpha)


def box(size_m: Vec3, center_m: Vec3, rgb: Rgb, *, mass_kg: float | None = None, collide: bool = True) -> GeomSpec:
    """Box by its full edge lengths."""
    half = (size_m[0] / 2, size_m[1] / 2, size_m[2] / 2)
    return GeomSpec(shape="box", size_m=half, pos_m=center_m, rgba=rgba(rgb), mass_kg=mass_kg, collide=collide)


def cylinder(
    radius_m: float, height_m: float, center_m: Vec3, rgb: Rgb, *, mass_kg: float | None = None, collide: bool = True
) -> GeomSpec:
    """Upright cylinder."""
    return GeomSpec(
        shape="cylinder",
        size_m=(radius_m, height_m / 2),
        pos_m=center_m,
        rgba=rgba(rgb),
        mass_kg=mass_kg,
        collide=collide,
    )


def ellipsoid(radii_m: Vec3, center_m: Vec3, rgb: Rgb) -> GeomSpec:
    """Ellipsoid that is only seen: contacts use the flat-bottomed core beside it, so that nothing rolls away."""
    return GeomSpec(shape="ellipsoid", size_m=radii_m, pos_m=center_m, rgba=rgba(rgb), mass_kg=0.001, collide=False)


def handle_geoms(bar_m: Vec3, axis: str, rgb: Rgb) -> tuple[GeomSpec, ...]:
    """Bar of a handle centred at ``bar_m`` with the two posts that hold it, which reach back along -x."""
    half_length = HANDLE_LENGTH_M / 2
    thick = HANDLE_THICKNESS_M
    x, y, z = bar_m
    post_x = x - HANDLE_STANDOFF_M / 2
    if axis == "z":
        ends = ((post_x, y, z - half_length + thick / 2), (post_x, y, z + half_length - thick / 2))
        bar = (thick, thick, HANDLE_LENGTH_M)
    else:
        ends = ((post_x, y - half_length + thick / 2, z), (post_x, y + half_length - thick / 2, z))
        bar = (thick, HANDLE_LENGTH_M, thick)
    posts = tuple(box((HANDLE_STANDOFF_M, thick * 0.7, thick * 0.7), end, rgb, mass_kg=0.02) for end in ends)
    return (box(bar, bar_m, rgb, mass_kg=0.1), *posts)


def door(
    *, front_x_m: float, width_m: float, bottom_m: float, height_m: float, rgb: Rgb, handle_z_m: float, hinge_left: bool
) -> tuple[PartSpec, HandleSpec]:
    """Door in front of a carcass, hinged at its left or right edge (as seen from the furniture looking out).

    Args:
      front_x_m: x of the carcass' front edge, in the root frame.
      width_m: width of the opening, metres.
      bottom_m: height of the lower edge above the floor.
      height_m: height of the door.
      rgb: its colour.
      handle_z_m: height of the handle's middle above the floor.
      hinge_left: hinge at +y.

    Returns:
      The part ``door`` and its handle.
    """
    side = 1.0 if hinge_left else -1.0
    gap = 0.002
    bar = (BOARD_M + HANDLE_STANDOFF_M, -side * (width_m - 0.05), handle_z_m - bottom_m)
    panel = box(
        (BOARD_M, width_m - 2 * gap, height_m - 2 * gap),
        (BOARD_M / 2 + gap, -side * width_m / 2, height_m / 2),
        rgb,
        mass_kg=12.0 * width_m * height_m,  # 20 mm board of 600 kg/m3
    )
    part = PartSpec(
        name="door",
        parent="body",
        pos_m=(front_x_m, side * width_m / 2, bottom_m),
        geoms=(panel, *handle_geoms(bar, "z", STEEL if rgb != STEEL else DARK)),
        joint=JointSpec(kind="hinge", axis=(0.0, 0.0, side), upper=1.9, damping=1.0, friction=0.3),
    )
    return part, HandleSpec(part="door", pos_m=bar, axis=(0.0, 0.0, 1.0), outward=(1.0, 0.0, 0.0))


def carcass(
    *, depth_m: float, width_m: float, bottom_m: float, top_m: float, shelves_m: tuple[float, ...], rgb: Rgb
) -> tuple[GeomSpec, ...]:
    """Open-fronted box on a solid plinth.

    Args:
      depth_m: outer size along x.
      width_m: outer size along y.
      rgb: colour; the plinth is darker.
      bottom_m: height of the plinth; the interior's floor lies a board above.
      top_m: height of the top face.
      shelves_m: heights of the upper faces of further shelves.
    """
    geoms = [
        box((depth_m, BOARD_M, top_m - bottom_m), (0, s * (width_m - BOARD_M) / 2, (top_m + bottom_m) / 2), rgb)
        for s in (1.0, -1.0)
    ]
    inner = width_m - 2 * BOARD_M
    back_x = -(depth_m - BOARD_M) / 2
    geoms.append(box((BOARD_M, inner, top_m - bottom_m), (back_x, 0, (top_m + bottom_m) / 2), rgb))
    boards = (bottom_m + BOARD_M, *shelves_m, top_m)
    clear = depth_m - BOARD_M
    geoms += [box((clear, inner, BOARD_M), (BOARD_M / 2, 0, z - BOARD_M / 2), rgb) for z in boards]
    if bottom_m > 0.0:
        geoms.append(
            box((depth_m, width_m, bottom_m), (0, 0, bottom_m / 2), (0.75 * rgb[0], 0.75 * rgb[1], 0.75 * rgb[2]))
        )
    return tuple(geoms)


def interior(
    name: str, *, depth_m: float, width_m: float, floor_m: float, ceiling_m: float, part: str = "body"
) -> RegionSpec:
    """Free space between two boards of a :func:`carcass`, reached from the front."""
    return RegionSpec(
        name=name,
        kind="interior",
        part=part,
        center_m=(BOARD_M / 2, 0.0, (floor_m + ceiling_m) / 2),
        half_size_m=((depth_m - BOARD_M) / 2, width_m / 2 - BOARD_M, (ceiling_m - floor_m) / 2),
        approach=(1.0, 0.0, 0.0),
    )


def surface(name: str, *, size_m: tuple[float, float], center_m: Vec3) -> RegionSpec:
    """Rectangle to put things on."""
    return RegionSpec(name=name, kind="surface", center_m=center_m, half_size_m=(size_m[0] / 2, size_m[1] / 2, 0.0))
