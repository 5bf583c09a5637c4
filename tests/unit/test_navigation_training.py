"""Training, rebuilding, exporting and judging the navigation policies, at the smallest size that does all of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from embodied.export.package import export_policy
from embodied.record.lerobot.layout import DatasetError
from embodied.robots.amr.spec import AMR
from embodied.train.contract import Recipe
from embodied.train.navigation import learn
from embodied.train.navigation.drives import collect
from embodied.train.navigation.evaluate import open_package
from embodied.train.navigation.network import NavigationGru, NavigationMlp
from embodied.train.navigation.promise import NUM_HIDDEN, NUM_INPUTS
from embodied.train.navigation.recipe import BASE_NAVIGATION, BASE_NAVIGATION_MLP
from embodied.train.navigation.rooms import navigation_room
from embodied.train.navigation.store import load_drives, save_drives
from embodied.train.navigation.task import NavigationEpisode
from embodied.train.registry import RECIPES
from embodied.train.run import TrainError, TrainRun, load_checkpoint
from embodied.train.supervised import SupervisedConfig, one_thread
from embodied_deploy.errors import ObservationError
from embodied_deploy.policy.controller import PolicyController

STEPS = 12
_SMALL = SupervisedConfig(batch_size=8, save_every=4, evaluate_every=6)
BOTH = [BASE_NAVIGATION, BASE_NAVIGATION_MLP]


def _run(recipe: Recipe, folder: Path) -> TrainRun:
    return TrainRun(folder=folder, recipe=recipe.id, recipe_version=recipe.version, seed=3, steps=STEPS)


@pytest.fixture(scope="module")
def small() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learn, "CONFIG", _SMALL)
        patch.setattr(learn, "STAGES", 2)
        patch.setattr(learn, "ROOMS_MIN", 3)
        patch.setattr(learn, "collect", lambda seeds, driver, **kw: collect(seeds, driver, steps=60, **kw))
        yield patch


@pytest.fixture(scope="module")
def trained(small: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("navigation") / "run"
    BASE_NAVIGATION.train(_run(BASE_NAVIGATION, folder))
    return folder


@pytest.fixture(scope="module")
def packages(trained: Path, small: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the package of each recipe by its id."""
    out = tmp_path_factory.mktemp("packages")
    BASE_NAVIGATION_MLP.train(_run(BASE_NAVIGATION_MLP, out / "mlp"))
    found = {}
    for recipe, folder in zip(BOTH, (trained, out / "mlp"), strict=True):
        model = recipe.policy(load_checkpoint(folder / "checkpoint.pt"))
        (exported,) = export_policy(model, recipe.calibration(model, 80, 0), out)
        found[recipe.id] = exported.path
    return found


def _network(folder: Path) -> NavigationGru:
    model = learn.rebuild(load_checkpoint(folder / "checkpoint.pt"))
    assert isinstance(model, NavigationGru)
    return model


def test_the_recipes_are_registered() -> None:
    for recipe in BOTH:
        assert RECIPES.get(f"{recipe.id}@{recipe.version}") is recipe


def test_a_run_leaves_curves_drives_and_a_checkpoint(trained: Path) -> None:
    curves = [json.loads(line) for line in (trained / "curves.jsonl").read_text().splitlines()]
    assert {"arrived_ratio", "touched_ratio"} <= set(curves[0])
    assert {"train_loss", "held_out_turn"} <= set(curves[-1])
    checkpoint = load_checkpoint(trained / "checkpoint.pt")
    assert checkpoint["step"] == STEPS
    stages = [load_drives(trained / "drives" / f"stage_{k}") for k in range(learn.STAGES)]
    wanted = {s for k in range(learn.STAGES) for s in learn.stage_seeds(_run(BASE_NAVIGATION, trained), k)}
    assert {int(s) for d in stages if d is not None for s in d.seeds} == wanted
    assert checkpoint["dataset_sha256"] == learn.digest([d for d in stages if d is not None])


def test_an_interrupted_run_ends_in_the_same_bits(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut once between the stages and once inside the last one."""
    save, saved = TrainRun.save, []

    def interrupted(run: TrainRun, step: int, state: Any) -> None:
        save(run, step, state)
        saved.append(step)
        if len(saved) in (1, 3):
            raise KeyboardInterrupt

    monkeypatch.setattr(TrainRun, "save", interrupted)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            BASE_NAVIGATION.train(_run(BASE_NAVIGATION, tmp_path))
    BASE_NAVIGATION.train(_run(BASE_NAVIGATION, tmp_path))
    one, two = (load_checkpoint(f / "checkpoint.pt") for f in (trained, tmp_path))
    assert one["dataset_sha256"] == two["dataset_sha256"]
    for name, value in one["ema"].items():
        assert torch.equal(value, two["ema"][name]), name
    assert (trained / "curves.jsonl").read_text() == (tmp_path / "curves.jsonl").read_text()


@pytest.mark.parametrize("recipe", BOTH)
def test_the_loss_falls_on_what_is_trained_on(recipe: Recipe, tmp_path: Path) -> None:
    drives = collect(range(840, 844), steps=60)
    model = learn.build(learn.contract_training(_run(recipe, tmp_path), ""), *learn.statistics(drives), 0)
    samples = learn.samples_of([drives])
    batch = samples.batch(np.arange(len(samples.groups)), None)
    optimizer, values = torch.optim.Adam(model.parameters(), 3e-3), []
    with one_thread():
        for _ in range(25):
            found = learn.loss(model, batch)["loss"]
            optimizer.zero_grad()
            found.backward()
            optimizer.step()
            values.append(found.item())
    assert values[-1] < 0.6 * values[0]


def test_a_sequence_is_what_the_cell_does_step_by_step(trained: Path) -> None:
    """Training runs a fused kernel, the graph the cell written out."""
    model = _network(trained)
    seen = torch.from_numpy(collect([850, 851], steps=30).observations)
    hidden = torch.zeros(2, NUM_HIDDEN)
    with torch.no_grad():
        whole = model.sequence(seen)
        for t in range(seen.shape[1]):
            action, hidden = model(seen[:, t], hidden)
            torch.testing.assert_close(action, whole[:, t], atol=2e-6, rtol=0.0)


@pytest.mark.parametrize("kind", [NavigationGru, NavigationMlp])
def test_actions_stay_within_limits(kind: type[NavigationGru | NavigationMlp], tmp_path: Path) -> None:
    recipe = BOTH[kind is NavigationMlp]
    training = learn.contract_training(_run(recipe, tmp_path), "")
    model = learn.build(training, np.zeros(NUM_INPUTS), np.ones(NUM_INPUTS), 0)
    assert isinstance(model, kind)
    seen = 1e3 * torch.randn(64, 1, NUM_INPUTS)
    with torch.no_grad():
        action = model.sequence(seen)[:, 0].numpy()
    for column, entry in zip(action.T, model.contract.outputs[0].entries, strict=True):
        assert column.min() >= np.float32(entry.low)
        assert column.max() <= np.float32(entry.high)


def test_drives_come_back_from_disk_as_they_were(tmp_path: Path) -> None:
    drives = collect(range(860, 863), steps=40)
    save_drives(tmp_path / "d", drives)
    found = load_drives(tmp_path / "d")
    assert found is not None
    for name in ("seeds", "observations", "labels", "applied", "lengths", "arrived", "touched"):
        np.testing.assert_array_equal(getattr(found, name), getattr(drives, name))
    assert found.sha256 == drives.sha256
    assert load_drives(tmp_path / "none") is None
    next((tmp_path / "d" / "data").glob("*/*.parquet")).unlink()
    with pytest.raises(DatasetError, match="torn"):
        load_drives(tmp_path / "d")


def test_calibration_carries_the_memory_of_the_policys_own_drives(trained: Path) -> None:
    model = _network(trained)
    feed = BASE_NAVIGATION.calibration(model, 80, 0)
    assert {k: v.shape for k, v in feed.items()} == {"observation": (80, NUM_INPUTS), "hidden": (80, NUM_HIDDEN)}
    assert (feed["hidden"][0] == 0.0).all()
    assert np.abs(feed["hidden"]).max() > 0.01
    again = BASE_NAVIGATION.calibration(model, 80, 0)
    np.testing.assert_array_equal(feed["hidden"], again["hidden"])


def test_the_package_carries_and_resets_its_memory(trained: Path, packages: dict[str, Path]) -> None:
    session = open_package(packages["base-navigation"])
    episode = NavigationEpisode(navigation_room(9))
    controller = PolicyController(session, AMR.action_spec, AMR.observation_spec)
    driver = learn.NetworkDriver(_network(trained))
    samples, actions = [], []
    for _ in range(6):
        sample = episode.observe()
        action = controller.act(sample)
        wanted = driver(session.inputs["observation"].copy())[0]
        np.testing.assert_allclose(action[:2], wanted, atol=1e-5)
        assert np.isnan(action[2])  # the deck is not the policy's
        samples.append(sample)
        actions.append(action)
        episode.step(action)
    with_memory = controller.act(samples[0])
    controller.reset()
    np.testing.assert_array_equal(controller.act(samples[0])[:2], actions[0][:2])
    assert not np.array_equal(with_memory[:2], actions[0][:2])


@pytest.mark.parametrize("recipe", BOTH)
def test_a_bad_scan_or_no_goal_is_refused_and_the_memory_stays(recipe: Recipe, packages: dict[str, Path]) -> None:
    session = open_package(packages[recipe.id])
    episode = NavigationEpisode(navigation_room(10))
    controller = PolicyController(session, AMR.action_spec, AMR.observation_spec)
    sample = episode.observe()
    controller.act(sample)
    expected = None
    for _ in range(2):
        ranges = sample.ranges["lidar"].copy()
        ranges[7] = np.nan
        with pytest.raises(ObservationError, match=r"ranges\.lidar\.7"):
            controller.act(replace(sample, ranges={"lidar": ranges}))
        with pytest.raises(ObservationError, match="goal"):
            controller.act(replace(sample, goal={}))
        if "hidden" in session.inputs:
            hidden = session.inputs["hidden"].copy()
            assert expected is None or np.array_equal(hidden, expected)
            expected = hidden


@pytest.mark.parametrize("recipe", BOTH)
def test_a_package_is_judged_alike_by_any_number_of_workers(recipe: Recipe, packages: dict[str, Path]) -> None:
    scores = recipe.evaluate(packages[recipe.id], [9, 10])
    assert [s.seed for s in scores] == [9, 10]
    assert all(s.value in (0.0, 1.0) and s.outcome in ("arrived", "collided", "late") for s in scores)
    assert scores == recipe.evaluate(packages[recipe.id], [9, 10], workers=2)


def test_another_number_of_steps_is_refused(trained: Path, small: Any) -> None:
    with pytest.raises(TrainError, match="steps"):
        BASE_NAVIGATION.train(replace(_run(BASE_NAVIGATION, trained), steps=STEPS * 2))
