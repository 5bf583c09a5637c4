"""Navigation: rooms, the teacher, what the policy is given, and how an episode ends; no torch is loaded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embodied.robots.amr.spec import AMR
from embodied.train.navigation import evaluate
from embodied.train.navigation.drives import collect, windows
from embodied.train.navigation.kinematic import KinematicWorld
from embodied.train.navigation.promise import ENTRIES, NUM_INPUTS, navigation_contract, observation_rows
from embodied.train.navigation.rooms import GAP_M, navigation_room
from embodied.train.navigation.scanner import CONFIG, NUM_RANGES, RANGE_MAX_M, pooled, sectors
from embodied.train.navigation.task import ARRIVED_M, STEPS, NavigationEpisode
from embodied.train.navigation.teacher import Teacher
from embodied_controllers.base.grid_path import box_clearance, plan_path
from embodied_deploy.errors import ObservationError
from embodied_deploy.package.contract import Training
from embodied_deploy.policy.channels import Assembler
from embodied_deploy.policy.sample import Sample

TRAINING = Training(recipe="base-navigation@1", seed=0, commit="0" * 40)
SEEDS = range(800, 806)


def test_a_seed_is_a_room() -> None:
    one, two, other = navigation_room(5), navigation_room(5), navigation_room(6)
    np.testing.assert_array_equal(one.boxes, two.boxes)
    assert one.compile().hash == two.compile().hash != other.compile().hash


@given(st.integers(0, 2**40))
@settings(max_examples=20)
def test_every_room_can_be_driven_and_has_no_narrow_gap(seed: int) -> None:
    room = navigation_room(seed)
    path = plan_path(room.grid(), room.start_xyyaw[:2], room.goal_world_m)
    assert path.goal_nudge_m == path.start_nudge_m == 0.0
    assert path.length_m >= 3.0
    inner = room.boxes[room.num_walls :]
    for i, box in enumerate(inner):
        others = np.delete(inner, i, axis=0)
        corner = np.array([[sx * box[2], sy * box[3]] for sx in (-1, 1) for sy in (-1, 1)])
        c, s = np.cos(box[4]), np.sin(box[4])
        points = box[:2] + corner @ np.array([[c, s], [-s, c]])
        if len(others):
            assert box_clearance(points, others).min() >= GAP_M - 1e-9
        gaps = box_clearance(points, room.boxes[:4])
        assert gaps.min() >= GAP_M - 1e-9 or gaps.min() < 0.05  # beside the wall or against it


def test_most_straight_lines_are_blocked() -> None:
    rooms = [navigation_room(seed) for seed in range(900, 940)]
    assert np.mean([room.is_blocked for room in rooms]) > 0.75
    straight = [evaluate.run_straight(seed).value for seed in range(900, 912)]
    assert np.mean(straight) < 0.6


@pytest.mark.parametrize("seed", SEEDS)
def test_the_teacher_arrives(seed: int) -> None:
    score = evaluate.run_teacher(seed)
    assert (score.outcome, score.value) == ("arrived", 1.0)
    assert score.steps < STEPS / 2


def test_the_teacher_finds_out_of_tight_spots() -> None:
    """Beside every obstacle, nearer than the planner allows, it leads to the goal, not deeper in."""
    room = navigation_room(SEEDS[0])
    teacher, world = Teacher([room]), KinematicWorld([room])
    x, y, _, hy, yaw = room.boxes[-1]
    out = np.array([-np.sin(yaw), np.cos(yaw)])
    world.pose = np.array([[*(np.array([x, y]) + (hy + 0.52) * out), yaw]])
    assert not world.is_touching()[0]
    for _ in range(STEPS):
        world.step(teacher.act(world.pose), 0.1)
        assert not world.is_touching()[0]
        if np.hypot(*world.to_goal_body_m()[0]) <= ARRIVED_M:
            return
    pytest.fail("did not arrive")


def test_random_driving_arrives_nowhere() -> None:
    assert [evaluate.run_random(seed).value for seed in SEEDS] == [0.0] * len(SEEDS)


def test_standing_is_late_and_touching_ends_the_episode() -> None:
    episode = NavigationEpisode(navigation_room(SEEDS[1]))
    while not episode.is_over:
        episode.step(np.zeros(2))
    assert (episode.outcome, episode.steps) == ("late", STEPS)
    episode = NavigationEpisode(navigation_room(SEEDS[1]))
    while not episode.is_over:
        episode.step(np.array([0.8, 0.0]))
    assert (episode.outcome, episode.is_success) == ("collided", False)


def test_the_observation_of_training_is_the_assemblers() -> None:
    room = navigation_room(SEEDS[2])
    episode, world = NavigationEpisode(room), KinematicWorld([room])
    contract = navigation_contract("base-navigation", TRAINING, is_recurrent=True)
    assembler = Assembler(contract, AMR.action_spec, AMR.observation_spec)
    inputs = {
        "observation": np.zeros((1, NUM_INPUTS), np.float32),
        "hidden": np.full((1, *contract.inputs[1].shape), 0.5, np.float32),
    }
    for _ in range(5):
        episode.step(np.array([0.5, 0.4]))
        sample = episode.observe(is_exact=True)
        assembler.fill(sample, inputs)
        world.pose = episode.pose[None]
        vel = np.array([[*sample.state.base_vel_body_mps[:2], sample.state.base_angvel_body_radps[2]]])
        row = observation_rows(world.to_goal_body_m(), vel, world.ranges_m())
        np.testing.assert_allclose(inputs["observation"], row, atol=1e-5)
        low, high = (np.array([getattr(e, side) for e in ENTRIES]) for side in ("low", "high"))
        assert ((row[0] >= low) & (row[0] <= high)).all()
    assert (inputs["hidden"] == 0.5).all()  # the memory is the controller's business


def _sample() -> Sample:
    return NavigationEpisode(navigation_room(SEEDS[3])).observe()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"goal": {}}, "goal|to_goal"),
        ({"goal": {"pos_world_m": np.array([1.0, 2.0])}}, "to_goal"),
        ({"goal": {"pos_world_m": np.array([1.0, np.nan, 0.0])}}, "to_goal_pos_body_m"),
        ({"ranges": {}}, "ranges.lidar"),
        ({"ranges": {"lidar": np.ones(NUM_RANGES - 1)}}, f"expected {NUM_RANGES} values"),
        ({"ranges": {"lidar": np.full(NUM_RANGES, np.inf)}}, "greatest range"),
    ],
)
def test_bad_samples_are_refused(change: dict[str, dict[str, np.ndarray]], word: str) -> None:
    contract = navigation_contract("base-navigation-mlp", TRAINING, is_recurrent=False)
    assembler = Assembler(contract, AMR.action_spec, AMR.observation_spec)
    with pytest.raises(ObservationError, match=word):
        assembler.fill(replace(_sample(), **change), {"observation": np.zeros((1, NUM_INPUTS), np.float32)})


def test_a_nan_beam_is_not_hidden_by_its_neighbours() -> None:
    beams = np.full(CONFIG.num_beams, 2.0)
    beams[31] = np.nan
    found = sectors(beams)
    assert np.flatnonzero(np.isnan(found)).tolist() == [10]
    sample = replace(_sample(), ranges={"lidar": found})
    contract = navigation_contract("base-navigation-mlp", TRAINING, is_recurrent=False)
    assembler = Assembler(contract, AMR.action_spec, AMR.observation_spec)
    with pytest.raises(ObservationError, match=r"ranges\.lidar\.10"):
        assembler.fill(sample, {"observation": np.zeros((1, NUM_INPUTS), np.float32)})


def test_sectors_hold_the_nearest_echo_and_lost_ones_read_the_greatest_range() -> None:
    beams = np.full(CONFIG.num_beams, np.inf)
    beams[4], beams[5] = 1.5, 2.5
    found = pooled(beams, np.random.default_rng(0))
    assert found[1] == pytest.approx(1.5, abs=0.06)
    assert (np.delete(found, 1) == RANGE_MAX_M).all()


def test_windows_count_every_moment_once() -> None:
    drives = collect(range(820, 824), steps=90)
    cut = windows([drives])
    assert cut["weights"].sum() == drives.lengths.sum()
    assert cut["observations"].shape[1:] == (cut["weights"].shape[1], NUM_INPUTS)
    # Whatever weighs is in the drives, with its label.
    for k in range(len(cut["weights"])):
        for t in np.flatnonzero(cut["weights"][k])[::7]:
            row = int(np.flatnonzero(drives.seeds == cut["groups"][k])[0])
            same = (drives.observations[row] == cut["observations"][k, t]).all(axis=1)
            assert (drives.labels[row][same] == cut["labels"][k, t]).all()
            assert same.any()


def test_drives_follow_from_their_seeds() -> None:
    one, two = collect(range(830, 833), steps=30), collect(range(830, 833), steps=30)
    assert one.sha256 == two.sha256 != collect(range(831, 834), steps=30).sha256
