"""Training, rebuilding, exporting and judging the grasping policy, at the smallest size that does all of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from embodied.export.package import export_policy
from embodied.record.lerobot.layout import DatasetError
from embodied.train.grasp import learn
from embodied.train.grasp.demos import Demos, collect, join
from embodied.train.grasp.recipe import REACH_AND_GRASP
from embodied.train.grasp.scene import grasp_scene
from embodied.train.grasp.store import digest, load_demos, save_demos
from embodied.train.grasp.task import DRIVEN, GraspEpisode, proprioception
from embodied.train.run import TrainError, TrainRun, load_checkpoint
from embodied.train.supervised import SupervisedConfig, one_thread
from embodied_deploy.package.load import load_package
from embodied_deploy.policy.controller import PolicyController
from embodied_deploy.policy.session import PolicySession

STEPS = 4
_SMALL = SupervisedConfig(batch_size=8, save_every=2, evaluate_every=4)


def _run(folder: Path) -> TrainRun:
    r = REACH_AND_GRASP
    return TrainRun(folder=folder, recipe=r.id, recipe_version=r.version, seed=3, steps=STEPS)


@pytest.fixture(scope="module")
def small() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learn, "CONFIG", _SMALL)
        patch.setattr(learn, "episodes_in", lambda stage, steps: 2)
        yield patch


@pytest.fixture(scope="module")
def trained(small: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("grasp") / "run"
    REACH_AND_GRASP.train(_run(folder))
    return folder


def test_a_run_leaves_curves_demonstrations_and_a_checkpoint(trained: Path) -> None:
    curves = [json.loads(line) for line in (trained / "curves.jsonl").read_text().splitlines()]
    assert {"train_arm", "train_grip", "train_where"} <= set(curves[-1])
    checkpoint = load_checkpoint(trained / "checkpoint.pt")
    assert checkpoint["step"] == STEPS
    folders = [trained / "demos" / f"stage_{k}" for k in range(learn.STAGES)]
    assert checkpoint["dataset_sha256"] == digest(folders)
    stages = [load_demos(f) for f in folders]
    assert [len(np.unique(s.episodes)) for s in stages if s is not None] == [2] * learn.STAGES
    assert len({int(s) for d in stages if d is not None for s in d.episodes}) == 2 * learn.STAGES


def test_an_interrupted_run_ends_in_the_same_weights(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gather, collected = learn.gather, []

    def interrupted(run: TrainRun, stage: int, *rest: Any) -> Demos:
        if stage == 1:
            raise KeyboardInterrupt
        return gather(run, stage, *rest)

    monkeypatch.setattr(learn, "gather", interrupted)
    with pytest.raises(KeyboardInterrupt):
        REACH_AND_GRASP.train(_run(tmp_path))
    monkeypatch.setattr(learn, "gather", gather)
    monkeypatch.setattr(learn, "collect", _counting(learn.collect, collected))
    REACH_AND_GRASP.train(_run(tmp_path))
    assert len(collected) == 1  # the first stage was read from disk
    one, two = (load_checkpoint(f / "checkpoint.pt") for f in (trained, tmp_path))
    assert one["dataset_sha256"] == two["dataset_sha256"]
    for name, value in one["ema"].items():
        assert torch.equal(value, two["ema"][name]), name


def _counting(call: Callable[..., Any], calls: list[Any]) -> Callable[..., Any]:
    def counted(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        return call(*args, **kwargs)

    return counted


def test_the_loss_falls_on_what_is_trained_on(small: Any, tmp_path: Path) -> None:
    demos = collect([1, 2])
    model = learn.build(learn.contract_training(_run(tmp_path), ""), learn.statistics(demos), 0)
    batch = learn.samples_of(demos).batch(np.arange(16), None)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    values = []
    with one_thread():
        for _ in range(15):
            found = learn.loss(model, batch)["loss"]
            optimizer.zero_grad()
            found.backward()
            optimizer.step()
            values.append(found.item())
    assert values[-1] < 0.7 * values[0]


def test_a_chunk_starts_from_the_present_joints_and_stays_within_limits(trained: Path) -> None:
    model = learn.rebuild(load_checkpoint(trained / "checkpoint.pt"))
    action = model.contract.action
    assert action is not None
    low = torch.tensor([e.low for e in action.entries])
    high = torch.tensor([e.high for e in action.entries])
    image = torch.randint(0, 256, (3, 64, 64, 3), dtype=torch.uint8)
    proprio = torch.randn(3, 10) * 5.0
    with torch.no_grad():
        (chunk,) = model(image, proprio)
        model.head.weight.zero_()
        model.head.bias.zero_()
        (still,) = model(image, proprio * 0.1)
    assert chunk.shape == (3, *action.shape)
    assert (chunk >= low).all()
    assert (chunk <= high).all()
    np.testing.assert_allclose(still[:, :, :7], proprio[:, None, 1:8].mul(0.1).expand(-1, 8, -1), atol=1e-6)


def test_demonstrations_come_back_from_disk_as_they_were(tmp_path: Path) -> None:
    demos = join([collect([5]), collect([6])])
    save_demos(tmp_path / "d", demos)
    found = load_demos(tmp_path / "d")
    assert found is not None
    for name in ("images", "proprio", "chunks", "applied", "things", "episodes", "successes"):
        np.testing.assert_array_equal(getattr(found, name), getattr(demos, name))
    assert load_demos(tmp_path / "none") is None


def test_a_torn_dataset_is_refused(tmp_path: Path) -> None:
    save_demos(tmp_path / "d", collect([5]))
    next((tmp_path / "d" / "data").glob("*/*.parquet")).unlink()
    with pytest.raises(DatasetError, match="torn"):
        load_demos(tmp_path / "d")


def test_the_package_acts_as_the_network_and_is_judged(trained: Path, tmp_path: Path) -> None:
    model = learn.rebuild(load_checkpoint(trained / "checkpoint.pt"))
    feed = REACH_AND_GRASP.calibration(model, 64, 0)
    assert {k: v.shape for k, v in feed.items()} == {"image": (64, 64, 64, 3), "proprio": (64, 10)}
    (exported,) = export_policy(model, feed, tmp_path)
    session = PolicySession(load_package(exported.path))
    episode = GraspEpisode(grasp_scene(9))
    controller = PolicyController(session, episode.robot.action_spec, episode.robot.observation_spec)
    chunk = learn.actor_of(model)(episode.image(), proprioception(episode.robot.read()))
    execute = model.contract.chunk.execute if model.contract.chunk else 0
    for k in range(execute):  # asked once, then followed
        action = controller.act(episode.observe())
        np.testing.assert_allclose(action[DRIVEN], chunk[k], atol=1e-4)
        assert np.isnan(np.delete(action, DRIVEN)).all()
        episode.step(action)
    assert controller.is_due
    scores = REACH_AND_GRASP.evaluate(exported.path, [9, 10])
    assert [s.seed for s in scores] == [9, 10]
    assert all(s.value in (0.0, 1.0) and s.outcome and s.steps > 0 for s in scores)
    assert scores == REACH_AND_GRASP.evaluate(exported.path, [9, 10], workers=2)


def test_a_checkpoint_of_another_size_of_run_is_refused(trained: Path) -> None:
    with pytest.raises(TrainError, match="steps"):
        REACH_AND_GRASP.train(replace(_run(trained), steps=STEPS * 2))
