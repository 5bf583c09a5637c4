"""One environment, the batch and the raw engine step the same trajectories; forks continue exactly, asleep or not."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from embodied.errors import WorldError
from embodied.worlds.contract import Edit, Start
from embodied.worlds.mujoco import MujocoBatchWorld, MujocoWorld
from embodied_scenes.builders import compile_scene
from tests.small_scenes import small_scene

FALL = Start(poses={"box": (1.0, 0.1, 0.9, 0.9, 0.3, 0.2, 0.1)}, joints={"cabinet": 0.7})


@pytest.fixture
def scene():
    return compile_scene(small_scene())


def test_single_equals_raw_engine(scene):
    world = MujocoWorld(scene)
    world.reset(0, FALL)
    data = mujoco.MjData(scene.model)
    data.qpos[:] = world.qpos[0]
    mujoco.mj_forward(scene.model, data)
    for _ in range(60):
        world.step(10)
        mujoco.mj_step(scene.model, data, nstep=10)
    np.testing.assert_array_equal(world.qpos[0], data.qpos)


def test_batch_equals_single(scene):
    single, batch = MujocoWorld(scene), MujocoBatchWorld(scene, 3)
    single.reset(0, FALL)
    batch.reset(0, FALL)
    for _ in range(30):
        single.step(10)
        batch.step(10)
    for row in range(3):
        np.testing.assert_array_equal(batch.qpos[row], single.qpos[0])
    assert batch.graph(1).facts == single.graph().facts


def test_batch_resets_chosen_rows_only(scene):
    batch = MujocoBatchWorld(scene, 2)
    batch.reset(0, FALL)
    batch.step(50)
    kept = batch.qpos[1].copy()
    batch.reset(0, FALL, env_indices=[0])
    np.testing.assert_array_equal(batch.qpos[1], kept)
    assert batch.time_s(0) == 0.0 < batch.time_s(1)


@pytest.mark.parametrize("steps_before", [1, 37, 700])  # in the air, at impact, asleep
def test_fork_and_restore_continue_as_the_uninterrupted_run(scene, steps_before):
    world, plain = MujocoWorld(scene), MujocoWorld(scene)
    for w in (world, plain):
        w.reset(0, FALL)
        w.step(steps_before)
    snapshot, fork = world.snapshot(), world.fork()
    world.step(200)
    world.restore(snapshot)
    for w in (world, plain, fork):
        w.step(150)
    assert world.hash() == plain.hash() == fork.hash()


def test_pressed_button_toggles_once(scene):
    world = MujocoWorld(scene)
    world.reset(0)
    address = int(scene.model.joint("cabinet/button/slide").qposadr[0])
    world.qpos[0, address] = 0.009
    world.step(1)
    assert world.graph().holds("on", "cabinet")
    world.qpos[0, address] = 0.009
    world.step(1)
    assert world.graph().holds("on", "cabinet")
    world.step(200)
    world.qpos[0, address] = 0.009
    world.step(1)
    assert not world.graph().holds("on", "cabinet")


def test_non_finite_velocity_is_an_error_and_reset_mends_it(scene):
    world = MujocoWorld(scene)
    world.reset(0)
    world.qvel[0, 0] = np.nan
    with pytest.raises(WorldError, match="Physics failed"):
        world.step()
    world.reset(0)
    world.step()


def test_set_pose_moves_the_truth(scene):
    world = MujocoWorld(scene)
    world.reset(0)
    world.edit([Edit(kind="set_pose", entity="box", value=(-1.0, 0.0, 0.3, 1, 0, 0, 0))])
    assert world.graph().holds("inside", "box", "cabinet")
    assert not world.graph().holds("ontop", "box", "table")
    with pytest.raises(WorldError, match="set_state"):
        world.edit([Edit(kind="teleport", entity="box")])
