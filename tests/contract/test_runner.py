"""Runs into a folder: continued, refused, equal for any number of workers, complete when workers die."""

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from embodied.benchmark.runner import RunConfig, run_suite
from embodied.benchmark.store import RunFolder, RunFolderError
from embodied.errors import UnknownNameError


def _config(out, **changes):
    given = {"suite": "drones", "planner": "oracle", "world": "symbolic", "episodes": 3, "quiet": True}
    return RunConfig(out=Path(out), **{**given, **changes})


def _bytes(out):
    return {p.name: p.read_bytes() for p in [*Path(out).glob("episodes/*.mcap"), Path(out) / "results.jsonl"]}


def test_summary_holds_what_json_promises(tmp_path):
    summary = run_suite(_config(tmp_path / "run"))
    promised = {
        "episodes",
        "success_rate",
        "success_low",
        "success_high",
        "by_task",
        "wall_s",
        "out",
        "outcomes",
        "command",
    }
    assert promised <= summary.keys()
    assert summary["episodes"] == 3
    assert summary["success_low"] <= summary["success_rate"] <= summary["success_high"]
    json.dumps(summary)


def test_equal_bytes_for_any_number_of_workers(tmp_path):
    run_suite(_config(tmp_path / "one", workers=1, world="mujoco", planner="random"))
    run_suite(_config(tmp_path / "two", workers=2, world="mujoco", planner="random"))
    one, two = _bytes(tmp_path / "one"), _bytes(tmp_path / "two")
    assert len(one) == 4
    assert one == two


def test_continues_and_grows_without_running_twice(tmp_path):
    run_suite(_config(tmp_path / "run", episodes=2))
    logs = {p: p.stat().st_mtime_ns for p in (tmp_path / "run" / "episodes").glob("*.mcap")}
    summary = run_suite(_config(tmp_path / "run", episodes=3))
    assert summary["episodes"] == 3
    assert all(p.stat().st_mtime_ns == stamp for p, stamp in logs.items())


def test_torn_last_line_runs_again(tmp_path):
    run_suite(_config(tmp_path / "run"))
    results = tmp_path / "run" / "results.jsonl"
    whole = results.read_bytes()
    results.write_bytes(whole[:-25])
    assert len(RunFolder(tmp_path / "run").results()) == 2
    run_suite(_config(tmp_path / "run"))
    assert results.read_bytes() == whole


def test_damaged_middle_line_is_named(tmp_path):
    run_suite(_config(tmp_path / "run"))
    results = tmp_path / "run" / "results.jsonl"
    lines = results.read_text().splitlines()
    results.write_text("\n".join([lines[0], "{oops", lines[2]]) + "\n")
    with pytest.raises(RunFolderError, match="line 2"):
        run_suite(_config(tmp_path / "run"))


@pytest.mark.parametrize("change", [{"planner": "noop"}, {"seed": 5}, {"world": "mujoco"}, {"suite": "quick"}])
def test_folder_of_another_run_is_refused(tmp_path, change):
    run_suite(_config(tmp_path / "run", episodes=1))
    before = _bytes(tmp_path / "run")
    try:
        with pytest.raises(RunFolderError, match="another run"):
            run_suite(_config(tmp_path / "run", episodes=1, **change))
    except UnknownNameError:
        pytest.skip("a task of the suite quick is not registered")
    assert _bytes(tmp_path / "run") == before


def test_shorter_run_and_foreign_folder_are_refused(tmp_path):
    run_suite(_config(tmp_path / "run", episodes=2))
    with pytest.raises(RunFolderError, match="--episodes 2"):
        run_suite(_config(tmp_path / "run", episodes=1))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("do not touch")
    with pytest.raises(RunFolderError, match=r"no manifest\.json"):
        run_suite(_config(tmp_path / "mine"))
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("change", [{"suite": "quik"}, {"planner": "orakle"}, {"world": "mojoco"}])
def test_unknown_names_are_refused_before_anything_is_written(tmp_path, change):
    with pytest.raises(UnknownNameError, match="Did you mean"):
        run_suite(_config(tmp_path / "run", **change))
    assert not (tmp_path / "run").exists()


def test_late_episode_counts_as_not_successful(tmp_path):
    summary = run_suite(_config(tmp_path / "run", episodes=2, timeout_s=0.05))
    assert summary["episodes"] == 2
    assert summary["outcomes"] == {"timeout": 2}
    assert summary["success_rate"] == 0.0
    assert all("wall-clock" in r["reason"] for r in RunFolder(tmp_path / "run").results())


def _children():
    found = []
    for task in Path("/proc/self/task").iterdir():
        found += [int(p) for p in (task / "children").read_text().split()]
    return found


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds its workers through /proc")
def test_killed_worker_loses_nothing(tmp_path):
    known = set(_children())
    shots = []

    def kill_one():
        stop_s = time.monotonic() + 20
        while time.monotonic() < stop_s and not shots:
            for pid in set(_children()) - known:
                command = Path(f"/proc/{pid}/cmdline").read_bytes() if Path(f"/proc/{pid}").exists() else b""
                if b"spawn_main" in command:
                    time.sleep(0.2)
                    os.kill(pid, signal.SIGKILL)
                    shots.append(pid)
                    return
            time.sleep(0.01)

    shooter = threading.Thread(target=kill_one)
    shooter.start()
    summary = run_suite(_config(tmp_path / "run", workers=1))
    shooter.join()
    assert len(shots) == 1
    assert summary["episodes"] == 3
    assert summary["outcomes"] == {"success": 3}  # the killed one was tried again in a fresh process


def test_every_log_has_its_wall_clock_beside_it_and_none_inside(tmp_path):
    run_suite(_config(tmp_path / "run", episodes=1))
    folder = RunFolder(tmp_path / "run")
    (result,) = folder.results()
    assert not [k for k in result if "wall" in k]
    wall = json.loads((tmp_path / "run" / "episodes" / f"{result['key']}.wall.json").read_text())
    assert wall["wall_s"] > 0
    assert wall["attempts"] == 1
