"""The flat: counts, free floor, resting things; the loader's messages."""

from __future__ import annotations

import math

import numpy as np
import pytest

from embodied.tasks.household.stage import Stage
from embodied_scenes.builders import compile_scene
from embodied_scenes.errors import SceneFileError
from embodied_scenes.extents import model_box
from embodied_scenes.household import FLAT_FILE, extended, flat, flat_garden
from embodied_scenes.load import load_scene, parse_scene
from embodied_scenes.models import MODELS
from embodied_scenes.models.objects import OBJECTS


@pytest.fixture(scope="module", params=[flat, flat_garden], ids=["flat", "flat_garden"])
def stage(request):
    return Stage(request.param())


def test_the_flat_holds_what_was_asked_for():
    info = compile_scene(flat()).info
    furniture = [e for e in info.entities.values() if not e.movable and "floor" not in e.properties]
    movable = [e for e in info.entities.values() if e.movable]
    assert {r.category for r in info.rooms} == {"kitchen", "living_room", "bedroom"}
    assert len(furniture) >= 15
    assert sum(e.openable for e in furniture) >= 6
    assert {"fridge", "oven", "cabinet", "drawer"} <= {e.category for e in furniture if e.openable}
    assert len(movable) >= 25
    assert len({e.category for e in movable}) >= 15


def test_every_thing_stands_on_or_in_something_and_nothing_overlaps(stage):
    for name in stage.movable:
        assert stage.graph.support_of(name) is not None, f"{name} hangs in the air"
        others = stage.boxes([n for n in stage.movable if n != name])
        box = stage.boxes([name])
        assert not others.hit(box.center_m[-1], box.half_m[-1] - 0.002, float(box.yaw_rad[-1]), 0.0), name


def test_a_base_fits_in_front_of_everything_that_opens_or_holds(stage):
    for entity in stage.info.entities.values():
        if entity.movable or not (entity.regions or entity.buttons) or "floor" in entity.properties:
            continue
        pose = stage.poses[entity.root]
        fronts = [np.array([1.0, 0.0, 0.0])] if entity.openable or entity.buttons else None
        if fronts is None:
            assert stage.floor.can_reach(pose.to_world(entity.box_center_m)) or _edge_reachable(stage, entity), (
                entity.name
            )
            continue
        front = pose.to_world(entity.box_center_m + np.array([entity.half_size_m[0], 0.0, 0.0]))
        ahead = np.array([math.cos(pose.yaw_rad), math.sin(pose.yaw_rad)])
        if pose.pos_world_m[2] > 0.3:  # stands on furniture
            assert stage.floor.can_reach(front, ahead), entity.name
            continue
        for distance in (0.3, 0.45, 0.6):
            x_m, y_m = front[:2] + distance * ahead
            assert stage.floor.clearance_m(x_m, y_m) >= 0.25, f"{entity.name}: no base fits {distance} m before it"


def test_an_open_door_leaves_room_to_push_it_shut(stage):
    for entity in stage.info.entities.values():
        if entity.joint_kind != "hinge":
            continue
        pose = stage.poses[entity.root]
        side = float(np.sign(entity.joint_axis_root[2]))
        # Half-way along the door at a right angle, 0.45 m before its outer face.
        push = entity.joint_anchor_root_m + np.array([0.4, side * 0.45, 0.0])
        x_m, y_m = pose.to_world(push)[:2]
        assert stage.floor.clearance_m(x_m, y_m) >= 0.12, f"{entity.name}: its open door stands too close to something"


def _edge_reachable(stage, entity):
    pose = stage.poses[entity.root]
    edges = [(0.8, 0, 0), (-0.8, 0, 0), (0, 0.8, 0), (0, -0.8, 0)]
    return any(
        stage.floor.can_reach(pose.to_world(entity.box_center_m + np.array(e) * entity.half_size_m)) for e in edges
    )


@pytest.mark.parametrize("name", sorted(MODELS))
def test_templates_build_with_their_defaults(name):
    model = MODELS[name]()
    low, high = model_box(model)
    assert all(b > a for a, b in zip(low, high, strict=True))
    assert sum(p.joint is not None for p in model.parts) <= 1
    assert bool(model.handles) == any(p.joint is not None for p in model.parts)


@pytest.mark.parametrize("name", sorted(OBJECTS))
def test_objects_fit_a_gripper(name):
    model = OBJECTS[name]()
    low, high = model_box(model)
    mass = sum(g.mass_kg or 0.0 for p in model.parts for g in p.geoms)
    assert high[1] - low[1] <= 0.0705
    assert 0.03 <= high[2] - low[2] <= 0.25
    assert 0.05 <= mass <= 0.5
    assert all(abs(a + b) < 0.03 for a, b in zip(low, high, strict=True)), "the origin is the middle of the box"


def test_boxes_without_an_engine_agree_with_the_engine():
    compiled = compile_scene(flat())
    for entity in flat().entities:
        if entity.movable and entity.model == "cereal_box":
            low, high = model_box(MODELS[entity.model](**entity.params))
            half = (np.array(high) - np.array(low)) / 2
            assert np.allclose(half[[0, 2]], compiled.info.entities[entity.name].half_size_m[[0, 2]], atol=0.003)


BAD = [
    ({"id": "a/b@1", "entitees": []}, "entitees: unknown key. Did you mean 'entities'?"),
    ({"id": "a/b@1", "rooms": [{"name": "k", "categry": "x", "rect_m": [0, 0, 1, 1]}]}, "rooms.0.categry"),
    ({"id": "a/b@1", "entities": [{"name": "t", "category": "t", "modle": "table"}]}, "Did you mean 'model'?"),
    ({"id": "a/b@1", "entities": [{"name": "t", "category": "t", "pos_m": [0, 0, "x"]}]}, "pos_m"),
    ([1, 2], "a scene is a mapping"),
    (
        {"id": "a/b@1", "entities": [{"name": "c", "category": "c", "model": "can", "on": ["tabel", "top", 0, 0]}]},
        "no entity 'tabel' stands before this one",
    ),
    (
        {
            "id": "a/b@1",
            "entities": [
                {"name": "table", "category": "table", "model": "table"},
                {"name": "c", "category": "c", "model": "can", "on": ["table", "topp", 0, 0]},
            ],
        },
        "Did you mean top?",
    ),
    ({"id": "a/b@1", "entities": [{"name": "c", "category": "c", "on": 3}]}, "expected [ENTITY, REGION, X, Y]"),
]


@pytest.mark.parametrize(("data", "message"), BAD)
def test_a_wrong_key_is_named_with_its_place(data, message):
    with pytest.raises(SceneFileError) as caught:
        parse_scene(data, "test.yaml")
    assert message in str(caught.value)
    assert str(caught.value).startswith("test.yaml")


def test_a_missing_or_broken_file_says_so(tmp_path):
    with pytest.raises(SceneFileError, match="cannot be read"):
        load_scene(tmp_path / "none.yaml")
    broken = tmp_path / "broken.yaml"
    broken.write_text("rooms: [")
    with pytest.raises(SceneFileError, match="not valid YAML"):
        load_scene(broken)
    unsafe = tmp_path / "unsafe.yaml"
    unsafe.write_text("!!python/object/apply:os.getcwd []")
    with pytest.raises(SceneFileError, match="not valid YAML"):
        load_scene(unsafe)


def test_a_variant_that_drops_an_unknown_wall_is_refused(tmp_path):
    addition = tmp_path / "more.yaml"
    addition.write_text("id: a/b@1\ndrop_walls: [[[0.0, 0.0], [1.0, 0.0]]]\n")
    with pytest.raises(SceneFileError, match="has no wall"):
        extended(FLAT_FILE, addition)
