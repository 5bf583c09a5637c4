"""The shipped grasping policy lifts things by its images, in every precision."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from embodied.policies.registry import POLICIES, shipped
from embodied.record.lerobot.pictures import decode_png
from embodied.train.grasp.evaluate import open_package, run_episode, run_teacher
from embodied.train.grasp.promise import grasp_contract
from embodied.train.grasp.scene import grasp_scene
from embodied.train.grasp.sheet import rollout_sheet, start_sheet
from embodied.train.grasp.task import CAMERA, GraspEpisode
from embodied_deploy.policy.controller import PolicyController
from embodied_deploy.policy.session import PolicySession

NAME = "reach-and-grasp@1"
PRECISIONS = POLICIES.get(NAME).precisions
SEEDS = range(4)


@pytest.fixture(scope="module")
def session() -> PolicySession:
    return open_package(shipped(NAME))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_it_lifts_things(precision: str) -> None:
    opened = open_package(shipped(NAME, precision))
    scores = [run_episode(opened, seed) for seed in SEEDS]
    assert [s.outcome for s in scores] == ["lifted"] * len(SEEDS)
    assert [run_teacher(seed).value for seed in SEEDS] == [1.0] * len(SEEDS)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_its_contract_is_that_of_the_recipe(precision: str) -> None:
    found = open_package(shipped(NAME, precision)).contract
    wanted = grasp_contract(found.training)
    own = {"precision", "parity_atol", "calibration_sha256"}
    assert replace(found, **{k: getattr(wanted, k) for k in own}) == wanted
    assert len(found.training.dataset_sha256) == 64
    assert found.training.recipe == NAME


def _drive(session: PolicySession, seed: int, *, is_blind: bool) -> tuple[GraspEpisode, np.ndarray]:
    episode = GraspEpisode(grasp_scene(seed))
    controller = PolicyController(session, episode.robot.action_spec, episode.robot.observation_spec)
    actions = []
    while not episode.is_over:
        sample = episode.observe()
        if is_blind:
            sample = replace(sample, images={CAMERA: np.zeros_like(sample.images[CAMERA])})
        actions.append(controller.act(sample))
        episode.step(actions[-1])
    return episode, np.stack(actions)


@pytest.mark.parametrize("seed", SEEDS)
def test_without_its_eye_it_lifts_nothing(session: PolicySession, seed: int) -> None:
    episode, _ = _drive(session, seed, is_blind=True)
    assert not episode.is_success


def test_the_same_scene_gives_the_same_bits(session: PolicySession) -> None:
    (one, first), (two, second) = (_drive(session, SEEDS[1], is_blind=False) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert one.world.hash() == two.world.hash()


def test_sheets_show_every_moment(session: PolicySession, tmp_path: Path) -> None:
    assert rollout_sheet(session, SEEDS[3], tmp_path / "rollout.png") == "lifted"
    start_sheet(range(3), tmp_path / "start.png", columns=2)
    rollout, start = (decode_png((tmp_path / f"{n}.png").read_bytes()) for n in ("rollout", "start"))
    assert rollout.shape[0] == 2 * 128
    assert rollout.shape[1] > 8 * 128
    assert start.shape[:2] == (2 * 128, 2 * 128)
    assert rollout[:128].std() > 10
    assert not start[128:, 128:].any()
