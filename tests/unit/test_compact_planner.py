"""The compact planner in the agents' loop: it decides from images, instruction and its own calls, and nothing else."""

from __future__ import annotations

import dataclasses
import itertools
import json

import numpy as np
import pytest
import torch

from embodied.agents.episode import EpisodeRequest, run_episode
from embodied.catalog import SKILLS as CATALOG_SKILLS
from embodied.errors import PlannerError
from embodied.export.package import export_policy
from embodied.planners.compact.planner import CompactVisionPlanner
from embodied.planners.contract import Budget, PlannerView, Step
from embodied.planners.factory import make_planner
from embodied.policies.registry import shipped
from embodied.skills.contract import SUCCESS, failed
from embodied.train.planner.learn import rebuild
from embodied.train.planner.network import CompactPlanner
from embodied.train.planner.paired import play
from embodied.train.planner.promise import planner_contract
from embodied.train.planner.recipe import COMPACT_PLANNER
from embodied.train.planner.words import INSTRUCTION_TOKENS, vocabulary
from embodied.train.run import TrainRun, load_checkpoint
from embodied_deploy.errors import PackageError
from embodied_deploy.package.contract import Training
from embodied_deploy.package.load import load_package
from embodied_deploy.planner.planner import CompactPlanner as DevicePlanner

TASK = "household/put_away@1"
SKILLS = {e.name: e.load() for e in CATALOG_SKILLS if e.name in (*vocabulary().skills, "abstain")}


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A package of a network that has learnt nothing."""
    torch.manual_seed(3)
    training = Training(recipe="compact-planner@1", seed=0, commit="0" * 40)
    policy = CompactPlanner(vocabulary())
    policy.contract = planner_contract(training, policy.decider.num_memory)
    rng = np.random.default_rng(0)
    feed = {
        "image": rng.integers(0, 255, (64, 120, 160, 3), dtype=np.uint8),
        "instruction": rng.integers(0, 60, (64, INSTRUCTION_TOKENS)),
        "last_call": rng.integers(0, 3, (64, 5)),
        "memory": rng.uniform(-1, 1, (64, policy.decider.num_memory)).astype(np.float32),
    }
    return export_policy(policy, feed, tmp_path_factory.mktemp("policy"))[0].path


class _Untouchable:
    def __getattribute__(self, name):
        raise AssertionError("the planner read the belief")


def view(images, memory=()):
    return PlannerView(
        agent="robot_0",
        instruction="Put cup_1 into sink. Close what you open.",
        time_s=0.0,
        graph=_Untouchable(),
        skills=SKILLS,
        memory=memory,
        inbox=(),
        budget=Budget(sim_time_s=100.0, decisions=10),
        images=lambda: images,
        _truth=lambda: pytest.fail("the planner read the truth"),
    )


def picture(value=90):
    return {"robot_0/head_cam": np.full((240, 320, 3), value, dtype=np.uint8)}


def test_decides_without_belief_admissible_calls_or_truth(package):
    planner = CompactVisionPlanner(str(package))
    assert planner.privileged is False
    planner.reset("robot_0", 1)
    first = planner.act(view(picture()))
    assert len(first.calls) == 1
    assert 0.0 < first.confidence <= 1.0
    memory = (Step(time_s=1.0, call=first.calls[0], outcome=SUCCESS),)
    planner.act(view(picture(), memory))
    with pytest.raises(AssertionError, match="read the belief"):
        _ = view(picture()).admissible


def test_sees_its_images_unless_blind_and_remembers(package):
    def answers(spec, value):
        planner = CompactVisionPlanner(str(package), **spec)
        planner.reset("robot_0", 0)
        return [planner.act(view(picture(value))).confidence for _ in range(2)]

    assert answers({}, 30) != answers({}, 220)
    assert answers({"blind": True}, 30) == answers({"blind": True}, 220) == answers({}, 0)
    once, again = answers({}, 30)
    assert once != again  # the memory has moved on
    assert answers({}, 30) == [once, again]


def test_does_not_repeat_a_refused_call(package):
    planner = CompactVisionPlanner(str(package))
    planner.reset("robot_0", 0)
    said, memory = [], ()
    for _ in range(12):
        call = planner.act(view(picture(), memory)).calls[0]
        said.append(call)
        memory = (Step(time_s=0.0, call=call, outcome=failed("precondition", "no")),)
    assert all(a != b for a, b in itertools.pairwise(said))


def test_abstains_where_it_has_no_image_or_other_skills(package):
    planner = CompactVisionPlanner(str(package))
    planner.reset("robot_0", 0)
    blind = planner.act(view({}))
    assert blind.calls[0].skill == "abstain"
    assert "camera" in blind.message
    other = planner.act(dataclasses.replace(view(picture()), skills={n: SKILLS[n] for n in ("go_to", "abstain")}))
    assert other.calls[0].skill == "abstain"
    assert "mobile manipulator" in other.message


def test_an_image_of_another_size_is_a_planner_error(package):
    planner = CompactVisionPlanner(str(package))
    planner.reset("robot_0", 0)
    with pytest.raises(PlannerError, match="120 x 160"):
        planner.act(view({"robot_0/head_cam": np.zeros((100, 100, 3), np.uint8)}))


def test_runs_in_a_world_and_abstains_in_facts_alone(package):
    request = EpisodeRequest(task_id=TASK, seed=2, planner=f"compact:{package}", world="symbolic")
    assert run_episode(request).outcome == "abstained"
    drones = dataclasses.replace(request, task_id="drones/inspect@1")
    assert run_episode(drones).outcome == "abstained"
    assert isinstance(make_planner(f"compact:{package}?blind=true"), CompactVisionPlanner)


def test_the_shipped_planner_tidies_up_in_physics_at_both_precisions_alike():
    played = play("compact", 500_008, rider="compact?precision=fp32")
    assert (played.success, played.kind, played.agreed) == (True, "solved", True)
    assert played.decisions < 15
    assert shipped("compact-planner@1", "int8-static").stat().st_size < 20e6


def test_other_packages_are_refused(package, tmp_path):
    loaded = load_package(package)
    worse = dataclasses.replace(loaded.contract, kind="controller")
    with pytest.raises(PackageError, match="controller"):
        DevicePlanner(dataclasses.replace(loaded, contract=worse))
    lists = dict(loaded.contract.vocabulary)
    shorter = dataclasses.replace(loaded.contract, vocabulary={**lists, "things": lists["things"][:-1]})
    with pytest.raises(PackageError, match="vocabulary"):
        DevicePlanner(dataclasses.replace(loaded, contract=shorter))
    with pytest.raises(PlannerError, match="refused"):
        CompactVisionPlanner(str(tmp_path / "none.policy"))


def test_a_tiny_training_run_goes_through_and_resumes(tmp_path):
    run = TrainRun(folder=tmp_path, recipe="compact-planner", recipe_version="1", seed=4, steps=4)
    run.begin()
    COMPACT_PLANNER.train(run)
    first = load_checkpoint(run.checkpoint_path)
    curves = [json.loads(line) for line in (tmp_path / "curves.jsonl").read_text().splitlines()]
    assert any("detector_loss" in c for c in curves)
    assert any("decider_loss" in c for c in curves)
    (tmp_path / "decider.pt").unlink()  # interrupted before the last stage
    COMPACT_PLANNER.train(run)
    second = load_checkpoint(run.checkpoint_path)
    for name, value in first["model"].items():
        assert torch.equal(value, second["model"][name]), name
    policy = rebuild(second)
    assert policy.contract.training.dataset_sha256 == first["dataset_sha256"]
    feed = COMPACT_PLANNER.calibration(policy, 3, 0)
    assert {k: v.shape[0] for k, v in feed.items()} == dict.fromkeys(feed, 3)
    assert sum(p.numel() for p in policy.parameters()) < 4_000_000
