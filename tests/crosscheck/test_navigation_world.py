"""The kinematic world that navigation is trained in against the engine that it is judged in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embodied.robots.amr.spec import AMR
from embodied.seeding import stream_rng
from embodied.train.navigation.kinematic import ACCEL_MAX, HALF_M, LAG_S, KinematicWorld
from embodied.train.navigation.rooms import navigation_room
from embodied.train.navigation.scanner import MOUNT_X_M, NUM_RANGES
from embodied.train.navigation.task import DT_S, NavigationEpisode
from embodied.train.navigation.teacher import SPEED_MAX_MPS, YAW_RATE_MAX_RADPS
from embodied.worlds.contract import Start

SEEDS = (41, 42, 43)


def _random_actions(seed: int, count: int) -> list[np.ndarray]:
    rng = stream_rng(seed, "policy", "test")
    return [rng.uniform([-0.2, -YAW_RATE_MAX_RADPS], [SPEED_MAX_MPS, YAW_RATE_MAX_RADPS]) for _ in range(count)]


@pytest.mark.parametrize("seed", SEEDS)
def test_ranges_are_those_of_the_engine(seed: int) -> None:
    room = navigation_room(seed)
    episode, world = NavigationEpisode(room), KinematicWorld([room])
    for action in _random_actions(seed, 15):
        world.pose = episode.pose[None]
        np.testing.assert_allclose(world.ranges_m()[0], episode.observe(is_exact=True).ranges["lidar"], atol=1e-9)
        episode.step(action)


@pytest.mark.parametrize("seed", SEEDS)
def test_motion_is_that_of_the_engine(seed: int) -> None:
    room = navigation_room(seed)
    episode, world = NavigationEpisode(room), KinematicWorld([room])
    driven_m, before = 0.0, np.zeros(3)
    for action in _random_actions(seed, 40):
        before = episode.pose - world.pose[0]
        episode.step(action)
        world.step(action[None], DT_S)
        if world.is_touching()[0] or episode.has_touched:
            break
        driven_m += abs(float(world.vel_body[0, 0])) * DT_S
        state = episode.robot.read()
        np.testing.assert_allclose(world.vel_body[0, 0], state.base_vel_body_mps[0], atol=0.02)
        np.testing.assert_allclose(world.vel_body[0, 2], state.base_angvel_body_radps[2], atol=0.03)
    assert driven_m > 0.2
    assert np.hypot(*before[:2]) < 0.03
    assert abs(before[2]) < 0.02


def test_lags_follow_from_the_compiled_model() -> None:
    episode = NavigationEpisode(navigation_room(SEEDS[0]))
    model = episode.world.scene.model
    base = model.body(f"{episode.robot.prefix}base")
    mass_kg = float(model.body_subtreemass[base.id])
    gains = [float(model.actuator(f"{episode.robot.prefix}{a}").gainprm[0]) for a in ("forward", "sideways", "turn")]
    np.testing.assert_allclose(LAG_S[:2], [mass_kg / gains[0], mass_kg / gains[1]], rtol=0.01)
    # About the vertical, through the axis of the yaw joint: bodies of the base are stacked above it.
    deck = model.body(f"{episode.robot.prefix}deck")
    inertia = sum(_inertia_about_vertical(model, b.id) for b in (base, deck))
    assert LAG_S[2] == pytest.approx(inertia / gains[2], rel=0.03)
    force = [float(model.actuator(f"{episode.robot.prefix}{a}").forcerange[1]) for a in ("forward", "sideways", "turn")]
    np.testing.assert_allclose(ACCEL_MAX, np.array(force) / [mass_kg, mass_kg, inertia], rtol=0.03)


def _inertia_about_vertical(model: object, body: int) -> float:
    import mujoco

    assert isinstance(model, mujoco.MjModel)
    rot = np.zeros(9)
    mujoco.mju_quat2Mat(rot, model.body_iquat[body])
    axes = rot.reshape(3, 3)
    own = float((axes @ np.diag(model.body_inertia[body]) @ axes.T)[2, 2])
    return own + float(model.body_mass[body]) * float(np.sum(model.body_ipos[body][:2] ** 2))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_worlds_agree_on_touching(seed: int) -> None:
    """Poses drawn around the boxes; those nearer to the border than the engine's margin are left out."""
    room = navigation_room(seed)
    episode = NavigationEpisode(room)
    world = KinematicWorld([room])
    rng = stream_rng(seed, "policy", "poses")
    prefix, found = episode.robot.prefix, set()
    for _ in range(60):
        x, y, yaw = (float(v) for v in rng.uniform([0.3, 0.3, -np.pi], [*(room.size_m - 0.3), np.pi]))
        shifts = [(dx, dy) for dx in (-0.03, 0.0, 0.03) for dy in (-0.03, 0.0, 0.03)]
        verdicts = set()
        for dx, dy in shifts:
            world.pose = np.array([[x + dx, y + dy, yaw]])
            verdicts.add(bool(world.is_touching()[0]))
        if len(verdicts) == 2:
            continue
        joint_pos = {f"{prefix}base_x": x, f"{prefix}base_y": y, f"{prefix}base_yaw": yaw}
        episode.world.reset(seed, Start(joint_pos=joint_pos))
        pairs = episode.world.contacts().geom_ids
        own = episode._is_own
        touching = bool(len(pairs)) and bool((own[pairs[:, 0]] != own[pairs[:, 1]]).any())
        assert {touching} == verdicts, (x, y, yaw)
        found.add(touching)
    assert found == {True, False}


@given(st.integers(0, 10_000), st.integers(0, 3))
def test_a_scan_turns_with_the_robot(seed: int, quarter: int) -> None:
    """A quarter turn of room and robot changes no range."""
    room = navigation_room(seed % 50)
    world = KinematicWorld([room])
    before = world.ranges_m()[0]
    turn = quarter * np.pi / 2
    c, s = np.cos(turn), np.sin(turn)
    rot = np.array([[c, -s], [s, c]])
    turned = KinematicWorld([room])
    turned.boxes[0, :, :2] = turned.boxes[0, :, :2] @ rot.T
    turned.boxes[0, :, 4] += turn
    turned._cos, turned._sin = np.cos(turned.boxes[:, :, 4]), np.sin(turned.boxes[:, :, 4])
    turned.pose[0, :2] = rot @ turned.pose[0, :2]
    turned.pose[0, 2] += turn
    np.testing.assert_allclose(turned.ranges_m()[0], before, atol=1e-6)


def test_sizes_are_those_of_the_robot() -> None:
    episode = NavigationEpisode(navigation_room(SEEDS[0]))
    model = episode.world.scene.model
    prefix = episode.robot.prefix
    np.testing.assert_array_equal(model.geom(f"{prefix}hull").size[:2], HALF_M)
    assert float(model.site(f"{prefix}lidar").pos[0]) == MOUNT_X_M
    assert float(np.hypot(*HALF_M)) < AMR.radius_m
    assert episode.observe().ranges["lidar"].shape == (NUM_RANGES,)
