"""The shared supervised loop: it learns, holds out whole groups, and resumes bit by bit."""

import json
from itertools import pairwise

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from embodied.train.modules import Limiter, MlpTrunk, Normalizer  # noqa: E402
from embodied.train.run import TrainError, TrainRun, load_checkpoint  # noqa: E402
from embodied.train.supervised import (  # noqa: E402
    ArraySamples,
    SupervisedConfig,
    batch_indices,
    learning_rate,
    seeded_module,
    split_groups,
    train_supervised,
)

CONFIG = SupervisedConfig(batch_size=32, evaluate_every=20, save_every=20, learning_rate=1e-2)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.normalizer = Normalizer(np.zeros(3), np.ones(3))
        self.trunk = MlpTrunk((3, 16, 2))
        self.dropout = torch.nn.Dropout(0.1)  # something random in the step itself
        self.limiter = Limiter(np.full(2, -2.0), np.full(2, 2.0))

    def forward(self, x):
        return self.limiter(self.trunk(self.dropout(self.normalizer(x))))


def _samples():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    return ArraySamples({"x": x, "y": np.stack([np.sin(x[:, 0]), x[:, 1]], axis=1)}, np.repeat(np.arange(20), 20))


def _loss(model, batch):
    return {"loss": torch.nn.functional.mse_loss(model(batch["x"]), batch["y"])}


def _run(folder, seed=3, steps=60):
    return TrainRun(folder=folder, recipe="test", recipe_version="1", seed=seed, steps=steps)


class _StopError(Exception):
    pass


def test_it_learns_and_logs_both_losses(tmp_path):
    run = _run(tmp_path, steps=200)
    train_supervised(run, seeded_module(Net, 3), _samples(), _loss, CONFIG)
    curves = [json.loads(line) for line in (tmp_path / "curves.jsonl").read_text().splitlines()]
    assert [c["step"] for c in curves] == list(range(20, 201, 20))
    assert curves[-1]["held_out_loss"] < 0.5 * curves[0]["held_out_loss"]
    assert curves[-1]["learning_rate"] < 0.05 * CONFIG.learning_rate


def test_an_interrupted_run_ends_in_the_same_bits(tmp_path):
    whole, parts = _run(tmp_path / "whole"), _run(tmp_path / "parts")
    train_supervised(whole, seeded_module(Net, 3), _samples(), _loss, CONFIG, {"width": 16})

    calls = 0

    def stop_later(model, batch):
        nonlocal calls
        calls += 1
        if calls == 50:
            raise _StopError
        return _loss(model, batch)

    with pytest.raises(_StopError):
        train_supervised(parts, seeded_module(Net, 3), _samples(), stop_later, CONFIG, {"width": 16})
    assert load_checkpoint(parts.checkpoint_path)["step"] == 40
    with (parts.folder / "curves.jsonl").open("a") as stream:
        stream.write('{"step": 41, "held')  # the line that the interruption cut off
    torch.manual_seed(99)  # the state of the global generator must not matter
    train_supervised(parts, seeded_module(Net, 3), _samples(), _loss, CONFIG, {"width": 16})

    a, b = load_checkpoint(whole.checkpoint_path), load_checkpoint(parts.checkpoint_path)
    assert a["step"] == b["step"] == 60
    assert b["width"] == 16
    for kind in ("model", "ema"):
        for name, value in a[kind].items():
            assert torch.equal(value, b[kind][name]), (kind, name)
    assert (whole.folder / "curves.jsonl").read_text() == (parts.folder / "curves.jsonl").read_text()


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    train_supervised(_run(tmp_path), seeded_module(Net, 3), _samples(), _loss, CONFIG)
    with pytest.raises(TrainError, match="seed 3, this run 4"):
        train_supervised(_run(tmp_path, seed=4), seeded_module(Net, 4), _samples(), _loss, CONFIG)
    with pytest.raises(TrainError, match="60 steps, this one has 80"):
        train_supervised(_run(tmp_path, steps=80), seeded_module(Net, 3), _samples(), _loss, CONFIG)
    with pytest.raises(TrainError, match="another model"):
        train_supervised(_run(tmp_path), MlpTrunk((3, 8, 2)), _samples(), _loss, CONFIG)


def test_a_torn_checkpoint_is_named(tmp_path):
    run = _run(tmp_path)
    train_supervised(run, seeded_module(Net, 3), _samples(), _loss, CONFIG)
    data = run.checkpoint_path.read_bytes()
    run.checkpoint_path.write_bytes(data[: len(data) // 2])
    with pytest.raises(TrainError, match="torn"):
        run.resume()


def test_code_in_a_checkpoint_is_not_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "was_run"), "w"))

    torch.save({"format": 1, "x": Evil()}, tmp_path / "checkpoint.pt")
    with pytest.raises(TrainError):
        load_checkpoint(tmp_path / "checkpoint.pt")
    assert not (tmp_path / "was_run").exists()


def test_begin_refuses_the_folder_of_another_run(tmp_path):
    _run(tmp_path).begin()
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["seed"] == 3
    assert record["commit"]
    assert "torch" in record["versions"]
    _run(tmp_path).begin()
    with pytest.raises(TrainError, match="seed"):
        _run(tmp_path, seed=5).begin()


def test_a_loss_that_is_not_finite_stops_with_the_step(tmp_path):
    def broken(model, batch):
        return {"loss": _loss(model, batch)["loss"] * float("nan")}

    with pytest.raises(TrainError, match="step 0"):
        train_supervised(_run(tmp_path), seeded_module(Net, 3), _samples(), broken, CONFIG)
    assert not (tmp_path / "checkpoint.pt").exists()


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({}, "rows above 0"),
        ({"x": np.zeros((3, 1)), "y": np.zeros((2, 1))}, "common number"),
        ({"x": np.array([[np.nan]])}, "NaN"),
    ],
)
def test_samples_that_do_not_fit_are_refused(arrays, words):
    with pytest.raises(TrainError, match=words):
        ArraySamples(arrays)


def test_groups_are_held_out_whole():
    groups = np.repeat(np.arange(11), 7)
    train, held_out = split_groups(groups, 0.2, seed=0)
    assert not set(groups[train]) & set(groups[held_out])
    assert len(set(groups[held_out])) == 2
    assert sorted([*train, *held_out]) == list(range(77))
    assert len(split_groups(np.zeros(5, dtype=int), 0.5, seed=0)[1]) == 0


def test_an_epoch_visits_every_sample_once():
    train = np.arange(100, 196)
    seen = np.concatenate([batch_indices(train, 32, step, seed=1) for step in range(3)])
    assert sorted(seen) == list(train)
    again = np.concatenate([batch_indices(train, 32, step, seed=1) for step in range(3, 6)])
    assert not np.array_equal(seen, again)


def test_the_rate_rises_then_falls():
    rates = [learning_rate(s, 100, CONFIG) for s in range(100)]
    assert max(rates) == pytest.approx(CONFIG.learning_rate)
    assert all(a > b for a, b in pairwise(rates[5:]))
