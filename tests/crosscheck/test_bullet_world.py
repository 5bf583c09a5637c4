"""Bullet bodies built from the compiled model stand where MuJoCo's do, weigh the same and rest in the same facts."""

from __future__ import annotations

import numpy as np
import pytest

from embodied.worlds.contract import Start
from embodied.worlds.mujoco import MujocoWorld
from embodied_scenes.builders import compile_scene
from tests.small_scenes import small_scene

pytest.importorskip("pybullet", reason="pybullet has no wheel for this Python")
from embodied.worlds.pybullet import PybulletWorld

FALL = Start(poses={"box": (1.0, 0.1, 0.85, 1, 0, 0, 0)}, joints={"cabinet": 0.7})


@pytest.fixture
def pair():
    scene = compile_scene(small_scene())
    worlds = MujocoWorld(scene), PybulletWorld(scene)
    for world in worlds:
        world.reset(0, FALL)
    return worlds


def test_initial_poses_and_masses_agree(pair):
    _, bullet = pair
    module, client, names = bullet._bullet, bullet._client, bullet._map
    for mj_body, (body, link) in names.body_link.items():
        if mj_body == 0 or link < 0:
            continue
        state = module.getLinkState(body, link, computeForwardKinematics=1, physicsClientId=client)
        np.testing.assert_allclose(state[0], bullet.data.xipos[mj_body], atol=1e-9)
        mass = module.getDynamicsInfo(body, link, physicsClientId=client)[0]
        assert mass == pytest.approx(bullet.scene.model.body_mass[mj_body])


def test_free_fall_is_the_closed_form(pair):
    for world in pair:
        world.reset(0, Start(poses={"box": (2.0, 1.5, 2.0, 1, 0, 0, 0)}))
        start_m = float(world.body_pos_world_m[0, world.scene.model.body("box").id, 2])
        world.step(100)
        fallen_m = start_m - float(world.body_pos_world_m[0, world.scene.model.body("box").id, 2])
        assert fallen_m == pytest.approx(0.5 * 9.81 * 0.2**2, rel=0.02)


def test_both_engines_settle_in_the_same_facts(pair):
    for world in pair:
        for _ in range(100):
            world.step(10)
    assert pair[0].graph().facts == pair[1].graph().facts
    np.testing.assert_allclose(pair[0].qpos, pair[1].qpos, atol=5e-3)


def test_contacts_name_the_geoms_that_touch(pair):
    for world in pair:
        world.step(300)
        names = {
            frozenset(world.scene.model.geom(int(g)).name.split("/")[0] for g in row)
            for row in world.contacts().geom_ids
        }
        if world.backend == "pybullet":
            assert frozenset({"box", "table"}) in names


def test_applied_forces_push_alike(pair):
    for world in pair:
        world.reset(0, Start(poses={"box": (2.0, 1.5, 2.0, 0.9, 0.1, 0.3, 0.2)}))
        first = int(world.scene.model.joint("box/free").dofadr[0])
        world.qfrc_applied[0, first : first + 6] = [0.4, -0.2, 1.5, 1e-4, -2e-4, 1e-4]
        world.step(100)
    np.testing.assert_allclose(pair[0].qpos, pair[1].qpos, atol=2e-3)
    np.testing.assert_allclose(pair[0].qvel, pair[1].qvel, atol=2e-2)
