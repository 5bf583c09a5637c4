"""Scenes that cannot be: each refusal names the place and the mend."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from embodied_scenes.builders import SceneBuildError, compile_scene
from embodied_scenes.spec import EntitySpec, SceneSpec
from tests.small_scenes import BOX, CABINET, TABLE, small_scene


def with_entities(*more: EntitySpec) -> SceneSpec:
    scene = small_scene()
    return scene.model_copy(update={"entities": (*scene.entities, *more)})


def entity(name: str, pos_m: tuple[float, float, float], **more: object) -> EntitySpec:
    return EntitySpec(name=name, category="thing", pos_m=pos_m, **({"custom": BOX} | more))


@pytest.mark.parametrize(
    ("added", "message"),
    [
        (entity("sunk", (1.0, 0.2, 0.72), movable=True), r"'sunk' stands [\d.]+ cm inside 'table'|Move one of them"),
        (entity("desk", (1.1, 0.0, 0.0), custom=TABLE), r"'desk' stands .* inside 'table'"),
        (entity("shelf", (0.0, -2.9, 0.0), custom=CABINET), r"'a wall' stands .* inside 'shelf'"),
        (entity("box", (0.0, 2.0, 0.5)), "used twice"),
        (entity("kitchen", (0.0, 2.0, 0.5)), "used twice"),
        (entity("odd", (0.0, 2.0, 0.0), custom=None, model="fridgee"), r"no model 'fridgee'. Try .*fridge"),
        (
            entity("odd", (0.0, 2.0, 0.0), custom=None, model="fridge", params={"colour": 1}),
            r"takes no parameter 'colour'. It takes",
        ),
        (entity("odd", (0.0, 2.0, 0.0), custom=None), "neither `model` nor `custom`"),
    ],
)
def test_refused_with_the_place_and_the_mend(added, message):
    with pytest.raises(SceneBuildError, match=message):
        compile_scene(with_entities(added))


def test_touching_is_allowed():
    compile_scene(with_entities(entity("neighbour", (1.0, 0.2, 0.76), movable=True)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rooom": []}, "rooom"),
        ({"entities": [{"name": "9 lives", "category": "cat"}]}, "name"),
        ({"entities": [{"name": "a", "category": "cat", "pos_m": [0, 0, float("inf")]}]}, "pos_m"),
        ({"cameras": [{"name": "c", "pos_m": [0, 0, 1], "target_m": [1, 0, 1], "fovy_deg": 300}]}, "fovy_deg"),
    ],
)
def test_schema_names_the_bad_key(change, message):
    with pytest.raises(ValidationError, match=message):
        SceneSpec.model_validate({"id": "test/bad@1"} | change)
