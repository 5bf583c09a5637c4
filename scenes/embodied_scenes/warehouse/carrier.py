"""What stands in a hall: racks, carriers that a robot drives under, packages on them.

Frames: x forward, y left, z up, origin on the floor (carrier, rack) or in the middle (package).
A carrier is a tray on four legs. Its sizes follow from the robot that carries it (0.80 x 0.58 m, deck 0.30 m high):
legs leave 0.76 m between them, so that a robot fits in from all four sides and can turn on the spot below
(its corners reach 0.494 m, the legs begin at 0.537 m), and the tray's corners reach 0.594 m, less than half a cell.
"""

from __future__ import annotations

from embodied_scenes.spec import EntityModel, GeomSpec, PartSpec, RegionSpec, Vec4

CARRIER_HALF_M = 0.42
UNDERSIDE_M = 0.36
"""Height of the tray's underside above the floor."""
TRAY_TOP_M = 0.40
PACKAGE_HALF_M = (0.22, 0.18, 0.15)
_LEG_HALF_M = 0.02
_LEG_AT_M = 0.40
LABEL_HALF_M = 0.06


def carrier_model(code: str, mass_kg: float = 15.0) -> EntityModel:
    """Return a carrier with its code printed below the tray; the plate of the code is the last geom of the root part.

    Args:
      code: text of the printed code.
      mass_kg: of the whole carrier.
    """
    leg_kg = 0.05 * mass_kg
    legs = tuple(
        GeomSpec(
            size_m=(_LEG_HALF_M, _LEG_HALF_M, UNDERSIDE_M / 2),
            pos_m=(sx * _LEG_AT_M, sy * _LEG_AT_M, UNDERSIDE_M / 2),
            rgba=(0.35, 0.37, 0.40, 1.0),
            mass_kg=leg_kg,
        )
        for sx in (-1, 1)
        for sy in (-1, 1)
    )
    tray = GeomSpec(
        size_m=(CARRIER_HALF_M, CARRIER_HALF_M, (TRAY_TOP_M - UNDERSIDE_M) / 2),
        pos_m=(0.0, 0.0, (TRAY_TOP_M + UNDERSIDE_M) / 2),
        rgba=(0.85, 0.62, 0.22, 1.0),
        mass_kg=mass_kg - 4 * leg_kg,
        sliding_friction=0.9,  # rubber mats on deck and tray
    )
    plate = GeomSpec(
        size_m=(LABEL_HALF_M, LABEL_HALF_M, 0.001),
        pos_m=(0.0, 0.0, UNDERSIDE_M - 0.002),
        rgba=(0.97, 0.97, 0.97, 1.0),
        collide=False,
        mass_kg=0.001,
    )
    top = RegionSpec(
        name="top",
        kind="surface",
        center_m=(0.0, 0.0, TRAY_TOP_M),
        half_size_m=(CARRIER_HALF_M, CARRIER_HALF_M, 0.0),
    )
    return EntityModel(parts=(PartSpec(geoms=(*legs, tray, plate)),), regions=(top,), label=code)


def package_model(code: str, rgba: Vec4, mass_kg: float = 8.0) -> EntityModel:
    """Return a cardboard box with its code on the lid.

    Args:
      code: text of the printed code, equal to that of its carrier.
      rgba: colour of the cardboard.
      mass_kg: of the box with what is in it.
    """
    box = GeomSpec(size_m=PACKAGE_HALF_M, rgba=rgba, mass_kg=mass_kg - 0.001, sliding_friction=0.9)
    plate = GeomSpec(
        size_m=(0.08, 0.06, 0.001),
        pos_m=(0.0, 0.0, PACKAGE_HALF_M[2] + 0.001),
        rgba=(0.97, 0.97, 0.97, 1.0),
        collide=False,
        mass_kg=0.001,
    )
    return EntityModel(parts=(PartSpec(geoms=(box, plate)),), label=code)


def rack_model(size_x_m: float, size_y_m: float, height_m: float = 2.0) -> EntityModel:
    """Return a storage rack: one solid core for contacts, three shelves that stand out of it and are only seen.

    Args:
      size_x_m: full length.
      size_y_m: full depth.
      height_m: height.
    """
    core = GeomSpec(
        size_m=(size_x_m / 2 - 0.03, size_y_m / 2 - 0.03, height_m / 2),
        pos_m=(0.0, 0.0, height_m / 2),
        rgba=(0.55, 0.47, 0.38, 1.0),
    )
    shelves = tuple(
        GeomSpec(
            size_m=(size_x_m / 2, size_y_m / 2, 0.03),
            pos_m=(0.0, 0.0, z),
            rgba=(0.13, 0.30, 0.55, 1.0),
            collide=False,
        )
        for z in (0.12, height_m / 2, height_m - 0.02)
    )
    return EntityModel(parts=(PartSpec(geoms=(core, *shelves)),))
