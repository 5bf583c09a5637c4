"""The hall generator: a map of cells becomes racks, carriers with packages, pick stations, chargers and aisles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from embodied_scenes.spec import CameraSpec, EntitySpec, PlaceSpec, RoomSpec, SceneSpec, Vec4, WallSpec
from embodied_scenes.warehouse.carrier import PACKAGE_HALF_M, TRAY_TOP_M, carrier_model, package_model, rack_model
from embodied_scenes.warehouse.grid import Cell, CellKind, GridMap, merge_rectangles
from embodied_scenes.warehouse.maps import MapError, load_map

_CARDBOARD: tuple[Vec4, ...] = (
    (0.76, 0.58, 0.38, 1.0),
    (0.62, 0.44, 0.27, 1.0),
    (0.84, 0.72, 0.52, 1.0),
    (0.45, 0.56, 0.42, 1.0),
    (0.40, 0.50, 0.65, 1.0),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HallLayout:
    """Where things stand in a hall, by name.

    Attributes:
      grid: the map.
      carriers: carrier name to its cell at the start.
      slots: slot place to its cell; each carrier stands in one, the others are empty.
      stations: pick station to its cell.
      chargers: charger to its cell.
      homes: further cells where robots may start.
    """

    grid: GridMap
    carriers: dict[str, Cell]
    slots: dict[str, Cell]
    stations: dict[str, Cell]
    chargers: dict[str, Cell]
    homes: tuple[Cell, ...]


def package_map() -> GridMap:
    """Return the map that comes with this package."""
    return load_map(Path(__file__).with_name("hall.map.yaml"), "hall")


def lay_out(
    grid: GridMap, *, carriers: int = 6, stations: int = 3, chargers: int = 2, empty_slots: int = 2
) -> HallLayout:
    """Choose the cells of carriers, stations and chargers, spread evenly over those that the map marks.

    A map without marked cells gives cells whose four neighbours are free, so that nothing stands in a passage.

    Raises:
      MapError: the map has too few cells for what was asked.
    """
    open_cells = _open_cells(grid)
    marked = [c for c in grid.cells(CellKind.SLOT) if _touches(grid, c, CellKind.RACK)] or grid.cells(CellKind.SLOT)
    slot_pool = _without_neighbours(marked or open_cells)
    taken = set(slot_pool)
    station_pool = _outer(grid, grid.cells(CellKind.STATION)) or [c for c in open_cells if c not in taken]
    slots = _spread(slot_pool, carriers + empty_slots, grid, "slots")
    stops = _spread([c for c in station_pool if c not in slots], stations + chargers, grid, "stations and chargers")
    stride = max(len(stops) // max(chargers, 1), 1)
    charging = stops[::stride][:chargers]
    picking = [c for c in stops if c not in charging][:stations]
    full = slots if empty_slots <= 0 else _spread(slots, carriers, grid, "carriers")
    names = {cell: f"slot_{i}" for i, cell in enumerate([*full, *(c for c in slots if c not in full)])}
    homes = [c for c in grid.cells(CellKind.STATION) if c not in stops] or [c for c in open_cells if c not in taken]
    return HallLayout(
        grid=grid,
        carriers={f"carrier_{i}": cell for i, cell in enumerate(full)},
        slots={name: cell for cell, name in names.items()},
        stations={f"station_{i}": cell for i, cell in enumerate(picking)},
        chargers={f"charger_{i}": cell for i, cell in enumerate(charging)},
        homes=tuple(c for c in homes if c not in stops),
    )


def build(layout: HallLayout, scene_id: str, *, packages: bool = True, heavy: Sequence[str] = ()) -> SceneSpec:
    """Return the scene of a layout.

    Args:
      layout: where things stand.
      scene_id: id of the scene.
      packages: put a package on each carrier.
      heavy: carriers that weigh 400 kg, more than the robot can lift.
    """
    grid = layout.grid
    width_m, depth_m = grid.size_m
    entities = [*_racks(grid), *_carriers(layout, packages=packages, heavy=frozenset(heavy))]
    places = [
        _place(grid, name, category, cell)
        for category, cells in (
            ("slot", layout.slots),
            ("pick_station", layout.stations),
            ("charger", layout.chargers),
        )
        for name, cell in cells.items()
    ]
    marks = [
        _mark(grid, f"mark_{name}", cell, rgba)
        for cells, rgba in ((layout.stations, (0.20, 0.55, 0.85, 1.0)), (layout.chargers, (0.25, 0.70, 0.35, 1.0)))
        for name, cell in cells.items()
    ]
    return SceneSpec(
        id=scene_id,
        summary=f"Warehouse from the map {grid.name!r}: {grid.rows} x {grid.cols} cells of {grid.cell_m:g} m.",
        preset="fleet",
        rooms=(
            RoomSpec(
                name="hall",
                category="warehouse_hall",
                rect_m=(0.0, 0.0, width_m, depth_m),
                floor_rgba=(0.66, 0.67, 0.68, 1.0),
            ),
        ),
        walls=(*_border(grid), *_inner_walls(grid)),
        entities=(*entities, *marks),
        places=tuple(places),
        cameras=(
            CameraSpec(
                name="overview",
                pos_m=(width_m / 2, -0.35 * depth_m, 1.0 * max(width_m, depth_m)),
                target_m=(width_m / 2, 0.48 * depth_m, 0.0),
                fovy_deg=42.0,
            ),
        ),
    )


def hall_layout() -> HallLayout:
    """Return the layout of ``warehouse/hall@1``."""
    return lay_out(package_map())


def hall() -> SceneSpec:
    """Return ``warehouse/hall@1``: six carriers, three pick stations, two chargers."""
    return build(hall_layout(), "warehouse/hall@1")


def hall_from_map(
    path: str | Path,
    name: str | None = None,
    *,
    carriers: int = 24,
    stations: int = 6,
    chargers: int = 4,
) -> SceneSpec:
    """Return a hall built from a MovingAI or POGEMA map file.

    Raises:
      MapError: the file is malformed or holds too few cells.
    """
    grid = load_map(path, name)
    layout = lay_out(grid, carriers=carriers, stations=stations, chargers=chargers)
    return build(layout, f"warehouse/{_word(grid.name)}@1")


def _racks(grid: GridMap) -> list[EntitySpec]:
    found = []
    for index, (r0, c0, r1, c1) in enumerate(merge_rectangles(grid.kinds == int(CellKind.RACK))):
        x_m, y_m = c0 + c1, 2 * grid.rows - r0 - r1
        found.append(
            EntitySpec(
                name=f"rack_{index}",
                category="rack",
                custom=rack_model((c1 - c0) * grid.cell_m, (r1 - r0) * grid.cell_m),
                pos_m=(x_m * grid.cell_m / 2, y_m * grid.cell_m / 2, 0.0),
                room="hall",
            )
        )
    return found


def _carriers(layout: HallLayout, *, packages: bool, heavy: frozenset[str]) -> list[EntitySpec]:
    found = []
    for index, (name, cell) in enumerate(layout.carriers.items()):
        x_m, y_m = layout.grid.center_m(cell)
        code = f"PKG-{1000 + 37 * index}"
        found.append(
            EntitySpec(
                name=name,
                category="carrier",
                custom=carrier_model(code, 400.0 if name in heavy else 15.0),
                pos_m=(x_m, y_m, 0.0),
                movable=True,
                properties=("liftable",),
            )
        )
        if packages:
            found.append(
                EntitySpec(
                    name=f"package_{index}",
                    category="package",
                    custom=package_model(code, _CARDBOARD[index % len(_CARDBOARD)]),
                    pos_m=(x_m, y_m, TRAY_TOP_M + PACKAGE_HALF_M[2]),
                    movable=True,
                )
            )
    return found


def _border(grid: GridMap) -> list[WallSpec]:
    x1, y1 = grid.size_m
    corners = [(-0.05, -0.05), (x1 + 0.05, -0.05), (x1 + 0.05, y1 + 0.05), (-0.05, y1 + 0.05)]
    return [WallSpec(start_m=a, end_m=b, height_m=0.6) for a, b in zip(corners, corners[1:] + corners[:1], strict=True)]


def _inner_walls(grid: GridMap) -> list[WallSpec]:
    """Blocked cells of MovingAI maps, as walls as thick as their rectangle is deep."""
    found = []
    for r0, c0, r1, c1 in merge_rectangles(grid.kinds == int(CellKind.WALL)):
        height, y_m = (r1 - r0) * grid.cell_m, (2 * grid.rows - r0 - r1) * grid.cell_m / 2
        x0, x1 = c0 * grid.cell_m, c1 * grid.cell_m
        # a wall is longer by its thickness than its end points say
        half = min(height, x1 - x0) / 2
        if x1 - x0 >= height:
            ends = ((x0 + half, y_m), (x1 - half, y_m))
        else:
            x_m, y0, y1 = (x0 + x1) / 2, y_m - height / 2, y_m + height / 2
            ends = ((x_m, y0 + half), (x_m, y1 - half))
        found.append(WallSpec(start_m=ends[0], end_m=ends[1], thickness_m=2 * half, height_m=1.0))
    return found


def _place(grid: GridMap, name: str, category: str, cell: Cell) -> PlaceSpec:
    x_m, y_m = grid.center_m(cell)
    return PlaceSpec(name=name, category=category, pos_m=(x_m, y_m, 0.0), room="hall")


def _mark(grid: GridMap, name: str, cell: Cell, rgba: Vec4) -> EntitySpec:
    """Painted square on the floor, below every wheel and leg."""
    from embodied_scenes.spec import EntityModel, GeomSpec, PartSpec

    x_m, y_m = grid.center_m(cell)
    paint = GeomSpec(size_m=(0.45, 0.45, 0.001), pos_m=(0.0, 0.0, 0.001), rgba=rgba, collide=False)
    model = EntityModel(parts=(PartSpec(geoms=(paint,)),))
    return EntitySpec(name=name, category="floor_mark", custom=model, pos_m=(x_m, y_m, 0.001), properties=("floor",))


def _open_cells(grid: GridMap) -> list[Cell]:
    near = ((0, 1), (0, -1), (1, 0), (-1, 0))
    free = grid.cells(CellKind.FREE)
    return [c for c in free if all(grid.is_free((c[0] + r, c[1] + k)) for r, k in near)]


def _touches(grid: GridMap, cell: Cell, kind: CellKind) -> bool:
    row, col = cell
    near = [(row + 1, col), (row - 1, col), (row, col + 1), (row, col - 1)]
    return any(0 <= r < grid.rows and 0 <= c < grid.cols and grid.kinds[r, c] == int(kind) for r, c in near)


def _outer(grid: GridMap, cells: list[Cell]) -> list[Cell]:
    """Those cells that have a plain free neighbour, so that a stop does not lie behind another stop."""
    return [c for c in cells if _touches(grid, c, CellKind.FREE)]


def _without_neighbours(cells: list[Cell]) -> list[Cell]:
    """Drop cells beside or across a corner from an earlier one: carriers keep a free cell between them."""
    kept: set[Cell] = set()
    for r, c in cells:
        if not any((r + i, c + k) in kept for i in (-1, 0, 1) for k in (-1, 0, 1)):
            kept.add((r, c))
    return sorted(kept)


def _spread(cells: Sequence[Cell], count: int, grid: GridMap, what: str) -> list[Cell]:
    if count < 1 or len(cells) < count:
        raise MapError(
            f"Map {grid.name!r} offers {len(cells)} cells for {what}, {count} were asked for. "
            "Ask for fewer (at least one), or use a map with more marked or open cells."
        )
    picks = np.linspace(0, len(cells) - 1, count).round().astype(int)
    return [cells[i] for i in picks]


def _word(name: str) -> str:
    return "".join(c if c.isalnum() or c in "_-" else "_" for c in name)
