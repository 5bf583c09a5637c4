"""Movable objects, each of a size and weight that one parallel gripper can hold.

Every object has a horizontal extent of at most 0.07 m along y, is 0.03–0.25 m high, weighs 0.05–0.5 kg, stands on a
flat base, and has its origin in the middle of its bounding box. Round things get a flat-bottomed core that makes the
contacts, so they do not roll off their furniture.
"""

from __future__ import annotations

from collections.abc import Callable

from embodied_scenes.models.parts import DARK, STEEL, WHITE, WOOD, Rgb, box, cylinder, ellipsoid
from embodied_scenes.spec import EntityModel, GeomSpec, PartSpec

Template = Callable[..., EntityModel]


def _one(*geoms: GeomSpec) -> EntityModel:
    return EntityModel(parts=(PartSpec(geoms=geoms),))


def round_thing(
    color: Rgb = (0.85, 0.10, 0.12),
    width_m: float = 0.066,
    height_m: float = 0.066,
    mass_kg: float = 0.15,
    stalk: bool = True,
) -> EntityModel:
    """Fruit, ball or egg: a barrel with a rounded top and, if ``stalk``, a stalk."""
    core = cylinder(width_m / 2, 0.7 * height_m, (0, 0, -0.15 * height_m), color, mass_kg=mass_kg)
    dome = ellipsoid((width_m / 2, width_m / 2, 0.3 * height_m), (0, 0, 0.2 * height_m), color)
    if not stalk:
        return _one(core, dome)
    return _one(
        core, dome, cylinder(0.004, 0.02, (0, 0, height_m / 2), (0.30, 0.20, 0.10), mass_kg=0.001, collide=False)
    )


def block_thing(
    color: Rgb = (0.10, 0.45, 0.95),
    length_m: float = 0.10,
    width_m: float = 0.06,
    height_m: float = 0.06,
    mass_kg: float = 0.15,
    stripe: Rgb | None = None,
) -> EntityModel:
    """Brick-shaped thing, with a band of another colour round its middle if ``stripe`` is given."""
    geoms = [box((length_m, width_m, height_m), (0, 0, 0), color, mass_kg=mass_kg)]
    if stripe is not None:
        geoms.append(
            box(
                (length_m + 0.002, width_m + 0.002, 0.3 * height_m),
                (0, 0, 0.1 * height_m),
                stripe,
                mass_kg=0.001,
                collide=False,
            )
        )
    return _one(*geoms)


def can(
    color: Rgb = (0.80, 0.15, 0.15),
    width_m: float = 0.066,
    height_m: float = 0.115,
    mass_kg: float = 0.3,
    lid: Rgb = STEEL,
) -> EntityModel:
    """Can or jar: cylinder with a lid of another colour."""
    lid_h = 0.12 * height_m
    return _one(
        cylinder(width_m / 2, height_m - lid_h, (0, 0, -lid_h / 2), color, mass_kg=mass_kg),
        cylinder(width_m / 2 - 0.003, lid_h, (0, 0, (height_m - lid_h) / 2), lid, mass_kg=0.01),
    )


def bottle(
    color: Rgb = (0.15, 0.50, 0.25),
    width_m: float = 0.066,
    height_m: float = 0.22,
    mass_kg: float = 0.35,
    cap: Rgb = DARK,
) -> EntityModel:
    """Bottle: body, neck and cap."""
    body_h, neck_h = 0.66 * height_m, 0.26 * height_m
    cap_h = height_m - body_h - neck_h
    return _one(
        cylinder(width_m / 2, body_h, (0, 0, -height_m / 2 + body_h / 2), color, mass_kg=mass_kg),
        cylinder(0.013, neck_h, (0, 0, -height_m / 2 + body_h + neck_h / 2), color, mass_kg=0.01),
        cylinder(0.015, cap_h, (0, 0, (height_m - cap_h) / 2), cap, mass_kg=0.005),
    )


def cup(
    color: Rgb = (0.25, 0.60, 0.85),
    width_m: float = 0.066,
    height_m: float = 0.09,
    mass_kg: float = 0.15,
    handle: bool = False,
) -> EntityModel:
    """Cup, glass or bowl seen from outside, dark at its mouth; with ``handle`` it is a mug."""
    mouth = (0.35 * color[0], 0.35 * color[1], 0.35 * color[2])
    geoms = [
        cylinder(width_m / 2, height_m, (0, 0, 0), color, mass_kg=mass_kg),
        cylinder(width_m / 2 - 0.006, 0.002, (0, 0, height_m / 2), mouth, mass_kg=0.001, collide=False),
    ]
    if handle:
        x = width_m / 2 + 0.012
        geoms += [
            box((0.008, 0.012, 0.05), (x + 0.008, 0, 0), color, mass_kg=0.005),
            box((0.028, 0.012, 0.008), (x - 0.004, 0, 0.021), color, mass_kg=0.005),
            box((0.028, 0.012, 0.008), (x - 0.004, 0, -0.021), color, mass_kg=0.005),
        ]
    return _one(*geoms)


def mug(color: Rgb = (0.90, 0.55, 0.15), height_m: float = 0.09) -> EntityModel:
    """Mug with an ear."""
    return cup(color=color, height_m=height_m, width_m=0.064, handle=True)


def plate(color: Rgb = (0.92, 0.92, 0.96), mass_kg: float = 0.2) -> EntityModel:
    """Oval serving plate, narrow enough to be held across."""
    return _one(
        box((0.11, 0.066, 0.03), (0, 0, 0), color, mass_kg=mass_kg),
        cylinder(0.033, 0.03, (0.055, 0, 0), color, mass_kg=0.02),
        cylinder(0.033, 0.03, (-0.055, 0, 0), color, mass_kg=0.02),
        box((0.12, 0.04, 0.002), (0, 0, 0.015), (0.25, 0.45, 0.80), mass_kg=0.001, collide=False),
    )


def milk_carton(color: Rgb = (0.95, 0.95, 0.98), accent: Rgb = (0.15, 0.35, 0.80)) -> EntityModel:
    """Carton with a coloured band and a ridge."""
    return _one(
        box((0.066, 0.066, 0.17), (0, 0, -0.015), color, mass_kg=0.4),
        box((0.066, 0.02, 0.03), (0, 0, 0.085), color, mass_kg=0.01),
        box((0.068, 0.068, 0.05), (0, 0, -0.03), accent, mass_kg=0.001, collide=False),
    )


def cereal_box(color: Rgb = (0.95, 0.70, 0.10), accent: Rgb = (0.75, 0.10, 0.10)) -> EntityModel:
    """Upright packet with a picture on its front."""
    return _one(
        box((0.15, 0.06, 0.22), (0, 0, 0), color, mass_kg=0.3),
        box((0.10, 0.062, 0.08), (0, 0, 0.04), accent, mass_kg=0.001, collide=False),
    )


def book(color: Rgb = (0.20, 0.30, 0.65), width_m: float = 0.05) -> EntityModel:
    """Thick book that stands on its lower edge, pages to the front."""
    return _one(
        box((0.13, width_m, 0.18), (0, 0, 0), color, mass_kg=0.35),
        box((0.004, width_m - 0.012, 0.17), (0.064, 0, 0), (0.96, 0.94, 0.86), mass_kg=0.001, collide=False),
    )


def newspaper(color: Rgb = (0.88, 0.87, 0.82)) -> EntityModel:
    """Rolled newspaper, lying, with a rubber band."""
    roll = GeomSpec(
        shape="cylinder",
        size_m=(0.03, 0.11),
        quat_wxyz=(0.70710678, 0.0, 0.70710678, 0.0),
        rgba=(*color, 1.0),
        mass_kg=0.001,
        collide=False,
    )
    core = box((0.22, 0.05, 0.06), (0, 0, 0), color, mass_kg=0.2)
    band = box((0.015, 0.054, 0.062), (0, 0, 0), (0.75, 0.15, 0.15), mass_kg=0.001, collide=False)
    return _one(core, roll, band)


def remote(color: Rgb = DARK) -> EntityModel:
    """Remote control with coloured keys."""
    return _one(
        box((0.16, 0.05, 0.03), (0, 0, 0), color, mass_kg=0.12),
        box((0.02, 0.02, 0.004), (0.06, 0, 0.015), (0.9, 0.1, 0.1), mass_kg=0.001, collide=False),
        box((0.06, 0.03, 0.004), (-0.01, 0, 0.015), (0.6, 0.6, 0.6), mass_kg=0.001, collide=False),
    )


def phone(color: Rgb = (0.08, 0.08, 0.12)) -> EntityModel:
    """Telephone with a lit screen, in a thick case."""
    return _one(
        box((0.14, 0.066, 0.03), (0, 0, 0), color, mass_kg=0.18),
        box((0.12, 0.054, 0.002), (0, 0, 0.015), (0.35, 0.75, 0.95), mass_kg=0.001, collide=False),
    )


def candle(color: Rgb = (0.85, 0.20, 0.35), height_m: float = 0.12) -> EntityModel:
    """Candle with a wick and a flame-coloured tip."""
    return _one(
        cylinder(0.028, height_m, (0, 0, 0), color, mass_kg=0.15),
        cylinder(0.004, 0.02, (0, 0, height_m / 2 + 0.008), (1.0, 0.75, 0.1), mass_kg=0.001, collide=False),
    )


def sponge(color: Rgb = (0.98, 0.85, 0.20)) -> EntityModel:
    """Kitchen sponge with a scouring side."""
    return _one(
        box((0.10, 0.062, 0.028), (0, 0, -0.006), color, mass_kg=0.06),
        box((0.10, 0.062, 0.012), (0, 0, 0.014), (0.15, 0.55, 0.25), mass_kg=0.005),
    )


def utensil(color: Rgb = STEEL, grip: Rgb = WOOD, head_width_m: float = 0.05, length_m: float = 0.18) -> EntityModel:
    """Spoon, knife, fork or pen: a thick grip with a wider or narrower head."""
    return _one(
        box((0.6 * length_m, 0.03, 0.03), (-0.2 * length_m, 0, 0), grip, mass_kg=0.06),
        box((0.4 * length_m, head_width_m, 0.03), (0.3 * length_m, 0, 0), color, mass_kg=0.06),
    )


def soft_toy(color: Rgb = (0.65, 0.45, 0.25)) -> EntityModel:
    """Bear: body, head and ears."""
    return _one(
        box((0.07, 0.066, 0.09), (0, 0, -0.035), color, mass_kg=0.1),
        cylinder(0.03, 0.06, (0, 0, 0.04), color, mass_kg=0.03),
        cylinder(0.011, 0.02, (0, 0.02, 0.07), color, mass_kg=0.002),
        cylinder(0.011, 0.02, (0, -0.02, 0.07), color, mass_kg=0.002),
    )


def shoe(color: Rgb = (0.20, 0.35, 0.30)) -> EntityModel:
    """Shoe with a heel block and a white sole."""
    return _one(
        box((0.20, 0.066, 0.02), (0, 0, -0.04), WHITE, mass_kg=0.08),
        box((0.20, 0.062, 0.04), (0, 0, -0.01), color, mass_kg=0.12),
        box((0.09, 0.062, 0.04), (-0.055, 0, 0.03), color, mass_kg=0.05),
    )


def pot_plant(color: Rgb = (0.72, 0.38, 0.24), leaves: Rgb = (0.15, 0.55, 0.20)) -> EntityModel:
    """Small plant in a clay pot."""
    return _one(
        cylinder(0.033, 0.08, (0, 0, -0.05), color, mass_kg=0.35),
        cylinder(0.010, 0.06, (0, 0, 0.02), leaves, mass_kg=0.01),
        ellipsoid((0.045, 0.033, 0.045), (0, 0, 0.045), leaves),
    )


def envelope(color: Rgb = (0.96, 0.95, 0.90)) -> EntityModel:
    """Packet of letters with a stamp, standing on its long edge."""
    return _one(
        box((0.14, 0.04, 0.09), (0, 0, 0), color, mass_kg=0.08),
        box((0.03, 0.042, 0.025), (0.045, 0, 0.025), (0.80, 0.10, 0.15), mass_kg=0.001, collide=False),
    )


OBJECTS: dict[str, Template] = {
    "round_thing": round_thing,
    "block_thing": block_thing,
    "can": can,
    "bottle": bottle,
    "cup": cup,
    "mug": mug,
    "plate": plate,
    "milk_carton": milk_carton,
    "cereal_box": cereal_box,
    "book": book,
    "newspaper": newspaper,
    "remote": remote,
    "phone": phone,
    "candle": candle,
    "sponge": sponge,
    "utensil": utensil,
    "soft_toy": soft_toy,
    "shoe": shoe,
    "pot_plant": pot_plant,
    "envelope": envelope,
}
