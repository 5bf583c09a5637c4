"""Map files: what is read, and what bad ones get."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embodied_scenes.builders import compile_scene
from embodied_scenes.warehouse.grid import CellKind, GridMap, merge_rectangles
from embodied_scenes.warehouse.hall import hall, hall_from_map, hall_layout, lay_out
from embodied_scenes.warehouse.maps import MapError, load_map, parse_movingai, parse_pogema, parse_pogema_yaml

DATA = Path(os.environ.get("EMBODIED_DATA", Path(__file__).parents[3] / "shared" / "data"))
HEAD = "type octile\nheight 2\nwidth 3\nmap\n"


def test_movingai_signs():
    grid = parse_movingai(HEAD + "..@\nTE.\n", "a.map", "a")
    wall, free, slot = CellKind.WALL, CellKind.FREE, CellKind.SLOT
    assert grid.kinds.tolist() == [[free, free, wall], [wall, slot, free]]


def test_an_at_sign_is_a_wall_in_movingai_and_free_in_pogema():
    assert not parse_movingai(HEAD + "..@\n...\n", "a.map", "a").free[0, 2]
    assert parse_pogema("..@\n...", "b", "b").free[0, 2]


@pytest.mark.parametrize(
    ("text", "where", "words"),
    [
        (HEAD + "...\n..\n", "a.map:6:3", "ragged"),
        (HEAD + "...\n..?\n", "a.map:6:3", "unknown sign '?'"),
        (HEAD + "...\n", "a.map:5:1", "height 2, got 1"),
        (HEAD + "....\n....\n", "a.map:5:5", "width 3, got 4"),
        (HEAD + "@@@\n@@@\n", "a.map:5:1", "no free cell"),
        ("type octile\nheight x\nwidth 3\nmap\n...\n", "a.map:2:8", "positive number"),
        ("...\n...\n", "a.map:1:1", "lacks height, width, map"),
        ("", "a.map:1:1", "lacks"),
    ],
)
def test_bad_movingai_names_line_and_column(text, where, words):
    with pytest.raises(MapError) as error:
        parse_movingai(text, "a.map", "a")
    assert where in str(error.value)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("text", "where", "words"),
    [
        ("m: |-\n  ...\n  ..\n", "a.yaml:3:5", "ragged"),
        ("m: |-\n  ...\n  .?.\n", "a.yaml:3:4", "unknown sign '?'"),
        ("m: |-\n  ##\n", "a.yaml:2:3", "no free cell"),
        ("m: ''\n", "a.yaml", "empty"),
        ("[1]\n", "a.yaml:1:1", "mapping"),
        ("m: [1]\n", "a.yaml:1:4", "text of rows"),
        ("m: |-\n ..\n}\n", "a.yaml:3:1", "not valid YAML"),
    ],
)
def test_bad_pogema_names_line_and_column(text, where, words):
    with pytest.raises(MapError) as error:
        parse_pogema_yaml(text, "a.yaml")
    assert where in str(error.value)
    assert words in str(error.value)


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet=".#@!$\n ?aT", max_size=60))
def test_parsers_raise_nothing_but_map_errors(text):
    for parse in (
        lambda: parse_pogema(text, "a", "a"),
        lambda: parse_movingai(text, "a", "a"),
        lambda: parse_movingai(HEAD + text, "a", "a"),
        lambda: parse_pogema_yaml(text, "a"),
    ):
        with contextlib.suppress(MapError):
            parse()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=1, max_size=6))
def test_rectangles_cover_exactly_the_mask(rows):
    mask = np.array(rows)
    count = np.zeros(mask.shape, int)
    for r0, c0, r1, c1 in merge_rectangles(mask):
        count[r0:r1, c0:c1] += 1
    assert (count == mask).all()


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 6), st.integers(0, 8))
def test_cells_and_metres_round_trip(row, col):
    grid = GridMap(name="g", kinds=np.full((7, 9), 2, np.uint8))
    assert grid.cell_at(*grid.center_m((row, col))) == (row, col)
    assert grid.cell_at(-0.01, 0.0) is None


def test_missing_file_and_unknown_map_are_map_errors(tmp_path):
    with pytest.raises(MapError, match=r"none\.map: cannot be read"):
        load_map(tmp_path / "none.map")
    path = tmp_path / "two.yaml"
    path.write_text("a: |-\n  ..\nb: |-\n  ..\n")
    with pytest.raises(MapError, match="none is called 'c'"):
        load_map(path, "c")


def test_hall_compiles_with_few_boxes_and_all_its_things():
    scene, layout = hall(), hall_layout()
    compiled = compile_scene(scene)
    assert set(layout.carriers) | {f"package_{i}" for i in range(6)} <= set(compiled.info.entities)
    assert {p.category for p in compiled.info.places.values()} == {"slot", "pick_station", "charger"}
    assert sum(e.category == "rack" for e in scene.entities) == 4
    labels = {e.label for e in compiled.info.entities.values() if e.category == "carrier"}
    assert len(labels) == 6
    assert None not in labels


def test_nothing_stands_in_a_wall_and_nothing_twice():
    layout = hall_layout()
    cells = [*layout.slots.values(), *layout.stations.values(), *layout.chargers.values()]
    assert len(set(cells)) == len(cells)
    assert all(layout.grid.is_free(c) for c in [*cells, *layout.homes])


def test_a_map_too_small_for_its_carriers_says_how_many_fit():
    grid = parse_pogema("!!!\n!$!\n!@!", "a", "tiny")
    with pytest.raises(MapError, match="offers 1 cells for slots, 5 were asked for"):
        lay_out(grid, carriers=4, stations=1, chargers=1, empty_slots=1)


@pytest.mark.public_data
@pytest.mark.skipif(not (DATA / "pogema").is_dir(), reason="the public inputs are not beside the project")
def test_public_maps_are_read():
    grid = load_map(DATA / "pogema" / "03-warehouse_maps.yaml", "wfi_warehouse")
    assert grid.kinds.shape == (33, 46)
    assert [len(grid.cells(k)) for k in (CellKind.RACK, CellKind.SLOT, CellKind.STATION)] == [240, 480, 192]
    scene = hall_from_map(DATA / "pogema" / "03-warehouse_maps.yaml", "wfi_warehouse")
    assert sum(e.category == "rack" for e in scene.entities) == 24
    counts = {}
    for path in sorted((DATA / "lorr").rglob("*.map")):
        counts[path.stem] = int(load_map(path).free.sum())
    assert counts["random-64-64-10"] == 3687  # by the header line and the count of '.' in the file
    assert counts["maze-32-32-2"] == 666
