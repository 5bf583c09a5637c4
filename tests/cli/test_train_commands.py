"""``embodied train``, ``policy`` and ``dataset`` through the real entry point."""

import json

import numpy as np
import pytest
from test_commands import run

from embodied.policies.registry import shipped


@pytest.mark.parametrize(
    "command",
    [
        ["train"],
        ["policy"],
        ["policy", "list"],
        ["policy", "eval"],
        ["dataset"],
        ["dataset", "info"],
        ["dataset", "export"],
    ],
    ids=" ".join,
)
def test_help(command):
    done = run(*command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage: embodied" in done.stdout


def test_an_unknown_recipe_has_neighbours(tmp_path):
    done = run("train", "quad-hovr", "--out", tmp_path / "run")
    assert done.returncode == 2
    assert "quad-hover@1" in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_folder_is_not_taken_over_by_accident(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "run.json").write_text(json.dumps({"recipe": "quad-hover@1", "recipe_version": "1", "seed": 0}))
    done = run("train", "quad-hover", "--out", tmp_path)
    assert done.returncode == 1
    assert "--resume" in done.stderr
    done = run("train", "quad-hover", "--out", tmp_path, "--resume", "--seed", 4)
    assert done.returncode == 1
    assert "seed 0" in done.stderr
    done = run("train", "quad-hover", "--out", tmp_path / "nothing", "--resume")
    assert done.returncode == 1
    assert "no run" in done.stderr


def test_without_torch_the_line_to_install_it_is_said(tmp_path):
    blocker = tmp_path / "torch.py"
    blocker.write_text("raise ImportError('not installed')\n")
    done = run("train", "quad-hover", "--out", tmp_path / "run", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert "pip install 'embodied-stack[train]'" in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("library", "extra"), [("mujoco", "sim"), ("onnxruntime", "edge")])
def test_what_judging_needs_is_named_with_the_line_to_install_it(tmp_path, library, extra):
    pytest.importorskip("onnxruntime")
    (tmp_path / f"{library}.py").write_text("raise ImportError('not installed')\n")
    done = run("policy", "eval", "quad-hover", "--episodes", 1, PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert f"pip install 'embodied-stack[{extra}]'" in done.stderr


def test_policies_are_listed():
    done = run("policy", "list", "--json")
    policies = {p["name"]: p["precisions"] for p in json.loads(done.stdout)["policies"]}
    assert "fp32" in policies["quad-hover@1"]


def test_a_policy_is_judged_with_an_interval_for_any_number_of_workers():
    pytest.importorskip("onnxruntime")
    one = json.loads(run("policy", "eval", "quad-hover", "--episodes", 2, "--json").stdout)
    two = json.loads(run("policy", "eval", shipped("quad-hover@1"), "--episodes", 2, "--workers", 2, "--json").stdout)
    assert one["episodes"] == two["episodes"]
    assert one["score"] == 1.0
    assert one["low"] < 0.5 < one["high"] == 1.0
    assert [e["seed"] for e in one["episodes"]] == [0, 1]


def test_scores_between_failure_and_success_get_an_interval_too():
    from embodied.cli.train import score_interval

    value, low, high = score_interval([1.0] * 9 + [0.0])
    assert value == pytest.approx(0.9)
    assert 0.55 < low < 0.65  # Wilson: 0.596
    value, low, high = score_interval([0.2, 0.4, 0.6, 0.8])
    assert value == pytest.approx(0.5)
    assert low < 0.5 < high


def test_a_package_that_is_none_is_refused(tmp_path):
    (tmp_path / "a.policy").write_bytes(shipped("quad-hover@1").read_bytes()[:1000])
    done = run("policy", "eval", tmp_path / "a.policy")
    assert done.returncode == 1
    assert "torn" in done.stderr
    assert "bug" not in done.stderr
    assert run("policy", "eval", tmp_path / "missing.policy").returncode == 1
    done = run("policy", "eval", "quad-hver")
    assert done.returncode == 2
    assert "quad-hover@1" in done.stderr


def test_a_log_becomes_a_dataset(tmp_path):
    pytest.importorskip("pyarrow")
    pytest.importorskip("imageio_ffmpeg")
    from embodied.record.lerobot.reader import LeRobotDataset
    from embodied.record.log import read_log

    assert run("bench", "run", "drones", "--episodes", 1, "--out", tmp_path / "run").returncode == 0
    (log,) = (tmp_path / "run").rglob("*.mcap")
    out = tmp_path / "set"
    done = run("dataset", "export", log, "--out", out, "--size-px", 32, "--camera", "drone_0/front_cam", "--json")
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    data, episode = LeRobotDataset(out), read_log(log)
    assert data.fps == 10
    assert counts["frames"] == data.num_frames == int(episode.time_s[-1] * 10 + 1e-6) + 1
    assert data.tasks == (episode.meta["instruction"],)
    columns = data.episode(0)
    assert columns["observation.images.drone_0.front_cam"].shape == (data.num_frames, 32, 32, 3)
    assert data.features["action"].names == ("thrust_1_n", "thrust_2_n", "thrust_3_n", "thrust_4_n")
    row = 50
    sample = int(np.argmin(np.abs(episode.time_s - row / 10)))
    assert np.allclose(columns["observation.state"][row, :3], episode.qpos[sample, -7:-4], atol=1e-3)
    assert np.allclose(columns["action"][row], episode.actions["drone_0"][sample], atol=1e-6)
    assert columns["next.success"][:, 0].tolist() == [False] * (data.num_frames - 1) + [True]

    done = run("dataset", "info", out, "--json")
    assert json.loads(done.stdout)["sha256"] == counts["sha256"]
    again = run("dataset", "export", log, "--out", out)
    assert again.returncode == 1
    assert "exists" in again.stderr
    path = out / "data/chunk-000/file-000.parquet"
    path.write_bytes(path.read_bytes()[:-100])
    torn = run("dataset", "info", out)
    assert torn.returncode == 1
    assert "file-000.parquet" in torn.stderr
