"""The edge runtime on emulated ARM boards against this machine. The board is made beforehand: tests use no network."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx comes with the extra 'export'")
pytest.importorskip("onnxruntime", reason="onnxruntime comes with the extra 'edge'")
from tests.c_policies import mlp, package, quantized

SCRIPT = Path(__file__).parents[2] / "deploy" / "arm" / "run_aarch64.py"
CACHE = os.environ.get("EMBODIED_ARM_CACHE", "")
has_board = pytest.mark.skipif(
    not (CACHE and (Path(CACHE) / "done.json").exists()),
    reason="EMBODIED_ARM_CACHE names no emulated board; make one: python deploy/arm/run_aarch64.py --cache DIR",
)


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, **environment},
        check=False,
    )


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """The same network in fp32 and in int8."""
    folder, rng = tmp_path_factory.mktemp("packages"), np.random.default_rng(4)
    data = mlp(rng, 12, [64, 64], 4, "Elu")
    samples = rng.normal(size=(256, 12)).astype(np.float32)
    int8 = quantized(data, folder, samples, per_channel=True)
    first, _ = package(folder, data, 12, 4, count=64, name="fp32")
    # One unit of the last quantized tensor is far above this: an integer that differs is found.
    second, _ = package(folder, int8, 12, 4, count=64, name="int8", precision="int8-static", parity_atol=1e-5)
    return first, second


@has_board
@pytest.mark.slow
@pytest.mark.parametrize("board", ["cortex-a76", "cortex-a72"])
def test_packages_give_the_same_answers_on_a_board(packages, board):
    done = run("--cache", CACHE, "--board", board, "--steps", 100, "--json", *packages)
    assert done.returncode == 0, done.stderr + done.stdout
    results = json.loads(done.stdout)["results"]
    assert [r["precision"] for r in results] == ["fp32", "int8-static"]
    for result in results:
        assert result["machine"] == "aarch64"
        assert result["modes"] == ["policy"]
        assert result["foreign_modules"] == []
        assert result["bare_import_is_light"]
        assert result["vectors"] == 64
        assert max(result["output_difference"], result["action_difference"], result["parity_error"]) <= 1e-5


@has_board
@pytest.mark.slow
def test_embodied_edge_runs_and_refuses_on_a_board(packages, tmp_path):
    done = run("--cache", CACHE, "--edge", "run", packages[1], "--mode", "lockstep", "--seconds", 1)
    assert done.returncode == 0, done.stderr
    assert "125 policy" in done.stdout
    data = bytearray(packages[1].read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "flipped.policy").write_bytes(data)
    done = run("--cache", CACHE, "--edge", "run", tmp_path / "flipped.policy", "--mode", "lockstep", "--seconds", 1)
    assert done.returncode != 0
    assert "flipped.policy" in done.stderr
    failed = run("--cache", CACHE, "--board", "cortex-a72", tmp_path / "flipped.policy")
    assert failed.returncode == 1
    assert "FAILED" in failed.stdout


def test_without_emulation_the_reason_is_given(tmp_path):
    done = run("--cache", tmp_path / "board", PATH="")
    assert done.returncode == 3
    assert "qemu-aarch64-static (package qemu-user-static)" in done.stderr
    assert not (tmp_path / "board").exists()
    assert run(EMBODIED_ARM_CACHE="").returncode == 2
