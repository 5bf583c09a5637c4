"""``embodied train`` from start to end with a recipe of seconds: curves, interruption, resumption."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from typer.testing import CliRunner  # noqa: E402

from embodied.cli.main import app  # noqa: E402
from embodied.train.contract import Recipe  # noqa: E402
from embodied.train.modules import MlpTrunk  # noqa: E402
from embodied.train.registry import RECIPES  # noqa: E402
from embodied.train.run import load_checkpoint  # noqa: E402
from embodied.train.supervised import ArraySamples, SupervisedConfig, seeded_module, train_supervised  # noqa: E402

CONFIG = SupervisedConfig(batch_size=16, evaluate_every=10, save_every=10)


class Line(Recipe):
    """Learns a line; may be told to be interrupted in a step."""

    id = "line@1"
    version = "1"
    summary = "a line"
    default_steps = 30

    def __init__(self, stop_at=None):
        self.stop_at, self.calls = stop_at, 0

    def train(self, run):
        x = np.linspace(-1, 1, 64)[:, None]

        def loss(model, batch):
            self.calls += 1
            if self.calls == self.stop_at:
                raise KeyboardInterrupt
            return {"loss": torch.nn.functional.mse_loss(model(batch["x"]), batch["y"])}

        model = seeded_module(lambda: MlpTrunk((1, 8, 1)), run.seed)
        train_supervised(run, model, ArraySamples({"x": x, "y": 2 * x}), loss, CONFIG)

    def policy(self, checkpoint):
        raise NotImplementedError

    def calibration(self, policy, count, seed):
        raise NotImplementedError

    def evaluate(self, package, seeds, workers=1):
        raise NotImplementedError


def _train(monkeypatch, *arguments, stop_at=None):
    entries = {name: entry for name, entry in RECIPES._entries.items() if name != "line@1"}
    monkeypatch.setattr(RECIPES, "_entries", entries)
    monkeypatch.setitem(globals(), "LINE", Line(stop_at))
    RECIPES.add("line@1", f"{__name__}:LINE", summary="a line")
    return CliRunner().invoke(app, ["train", *map(str, arguments)])


def test_a_run_shows_its_curves_and_names_its_checkpoint(tmp_path, monkeypatch):
    done = _train(monkeypatch, "line", "--out", tmp_path / "run", "--seed", 7)
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert [line.split("  ")[0] for line in lines[:-1]] == ["step 10", "step 20", "step 30"]
    assert "held_out_loss" in lines[0]
    assert lines[-1].endswith("checkpoint.pt")
    record = json.loads((tmp_path / "run/run.json").read_text())
    assert (record["recipe"], record["seed"], record["steps"]) == ("line@1", 7, 30)
    assert len((tmp_path / "run/curves.jsonl").read_text().splitlines()) == 3


def test_an_interrupted_run_is_resumed_to_the_same_end(tmp_path, monkeypatch):
    assert _train(monkeypatch, "line", "--out", tmp_path / "whole").exit_code == 0
    cut = _train(monkeypatch, "line", "--out", tmp_path / "cut", stop_at=24)
    assert cut.exit_code == 130
    assert "--resume" in cut.output
    assert load_checkpoint(tmp_path / "cut/checkpoint.pt")["step"] < 30
    assert _train(monkeypatch, "line", "--out", tmp_path / "cut").exit_code != 0  # not without --resume
    done = _train(monkeypatch, "line", "--out", tmp_path / "cut", "--resume", "--json")
    assert json.loads(done.output)["steps"] == 30
    a, b = (load_checkpoint(tmp_path / name / "checkpoint.pt") for name in ("whole", "cut"))
    assert all(torch.equal(v, b["ema"][k]) for k, v in a["ema"].items())
    assert (tmp_path / "whole/curves.jsonl").read_text() == (tmp_path / "cut/curves.jsonl").read_text()


def test_steps_of_another_number_are_refused_on_resumption(tmp_path, monkeypatch):
    assert _train(monkeypatch, "line", "--out", tmp_path / "run").exit_code == 0
    done = _train(monkeypatch, "line", "--out", tmp_path / "run", "--resume", "--steps", 50)
    assert done.exit_code == 1
    assert "30 steps" in str(done.exception)
