"""``embodied export-c`` through the real entry point."""

import json

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx comes with the extra 'export'")
from embodied.export.c_code.build import HOST
from tests.c_policies import mlp, package
from tests.cli.test_commands import run


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    return package(tmp_path_factory.mktemp("policy"), mlp(np.random.default_rng(0), 5, [8], 4), 5, 4)[0]


def test_help():
    done = run("export-c", "--help")
    assert done.returncode == 0
    assert "Usage: embodied export-c" in done.stdout
    assert done.stderr == ""


def test_files_and_parity_are_reported(policy, tmp_path):
    done = run("export-c", policy, "--out", tmp_path / "c", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [f.rpartition("/")[2] for f in told["files"]][:2] == ["tiny.h", "tiny.c"]
    assert all((tmp_path / "c" / f.rpartition("/")[2]).stat().st_size > 0 for f in told["files"])
    if HOST.missing():
        assert told["parity"] is None
        assert "gcc not installed" in done.stderr
    else:
        assert told["parity"]["difference"] <= told["parity"]["tolerance"]


def test_without_check_nothing_is_compiled(policy, tmp_path):
    done = run("export-c", policy, "--out", tmp_path / "c", "--no-check", PATH="")
    assert done.returncode == 0, done.stderr
    assert "bytes of constants" in done.stdout
    assert "not run" in done.stderr


def test_a_broken_package_is_named(policy, tmp_path):
    torn = tmp_path / "torn.policy"
    torn.write_bytes(policy.read_bytes()[:100])
    for bad in (torn, tmp_path / "absent.policy"):
        done = run("export-c", bad, "--out", tmp_path / "c", "--json")
        assert done.returncode == 1
        assert "torn" in json.loads(done.stdout)["error"]["message"]
        assert not (tmp_path / "c").exists()
    assert run("export-c", policy).returncode == 2
