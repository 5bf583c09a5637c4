"""Every registered scene compiles once, means something, and stays as it was described."""

from __future__ import annotations

import numpy as np
import pytest

from embodied.catalog import SCENES
from embodied.worlds.mujoco import MujocoWorld
from embodied_scenes.builders import compile_scene
from embodied_scenes.spec import SceneSpec


@pytest.fixture(params=SCENES.names())
def scene(request):
    return request.param, SCENES.get(request.param)()


def test_description_survives_json_and_knows_its_id(scene):
    name, spec = scene
    assert spec.id == name
    assert spec.summary
    assert SceneSpec.model_validate_json(spec.model_dump_json()) == spec


def test_compiles_once_and_names_everything(scene):
    _, spec = scene
    compiled = compile_scene(spec)
    assert compile_scene(spec) is compiled
    model = compiled.model
    assert model.ncam >= 1, "a scene needs a camera to be looked at"
    for kind, count in (("body", model.nbody), ("joint", model.njnt), ("geom", model.ngeom)):
        for index in range(count):
            assert getattr(model, kind)(index).name, f"{kind} {index} has no name"
    for entity in compiled.info.entities.values():
        assert np.all(np.isfinite(entity.half_size_m))
        assert np.all(entity.half_size_m >= 0)


def test_stays_at_rest(scene):
    _, spec = scene
    world = MujocoWorld(compile_scene(spec))
    world.reset(0)
    before = world.body_pos_world_m[0].copy()
    facts = world.graph().facts
    world.step(round(2.0 / world.dt_sim_s))
    moved = np.abs(world.body_pos_world_m[0] - before).max(axis=1)
    worst = int(moved.argmax())
    assert moved[worst] < 0.01, f"{world.scene.model.body(worst).name} moved {moved[worst]:.3f} m on its own"
    assert {f for f in facts if f.predicate in ("ontop", "inside")} == {
        f for f in world.graph().facts if f.predicate in ("ontop", "inside")
    }
