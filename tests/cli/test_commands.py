"""Every command through the real entry point: good and bad arguments, exit codes, one JSON object."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from embodied.cli.output import fail

EMBODIED = Path(sys.executable).with_name("embodied")
COMMANDS = (
    [],
    ["bench"],
    ["bench", "run"],
    ["bench", "compare"],
    ["bench", "report"],
    ["study"],
    ["study", "list"],
    ["study", "run"],
    ["export"],
    ["list"],
    ["replay"],
    ["view"],
    ["doctor"],
)


def run(*arguments, cwd=None, **environment):
    command = (
        [str(EMBODIED)] if EMBODIED.exists() else [sys.executable, "-c", "from embodied.cli.main import main; main()"]
    )
    return subprocess.run(
        [*command, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=200,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "120", **environment},
    )


def bench(out, *arguments, episodes=2, planner="oracle"):
    fixed = ["bench", "run", "drones", "--world", "symbolic", "--planner", planner, "--episodes", episodes]
    return run(*fixed, "--out", out, *arguments)


@pytest.fixture(scope="module")
def physics_run(tmp_path_factory):
    out = tmp_path_factory.mktemp("physics") / "run"
    done = run("bench", "run", "drones", "--episodes", 2, "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help(command):
    done = run(*command, "--help")
    assert done.returncode == 0
    assert "Usage: embodied" in done.stdout
    assert done.stderr == ""


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from embodied.cli import main\n"
        "heavy = {'numpy', 'mujoco', 'pydantic', 'rich', 'jinja2', 'scipy', 'numba', 'yaml'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_version():
    done = run("--version")
    assert (done.returncode, done.stdout.split()[0]) == (0, "embodied-stack")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["benhc"], 2, "benhc"),
        (["bench", "run"], 2, "SUITE"),
        (["bench", "run", "quick", "--episodes", "0"], 2, "--episodes"),
        (["bench", "run", "quick", "--episodes", "many"], 2, "--episodes"),
        (["bench", "run", "quick", "--workers", "0"], 2, "--workers"),
        (["bench", "run", "quick", "--seed", "-1"], 2, "--seed"),
        (["bench", "run", "quik"], 2, "Did you mean 'quick'"),
        (["bench", "run", "drones", "--planner", "orakle"], 2, "Did you mean 'oracle'"),
        (["bench", "run", "drones", "--world", "mojoco"], 2, "Did you mean 'mujoco'"),
        (["bench", "report", "nowhere"], 1, "manifest.json"),
        (["bench", "compare", "nowhere", "elsewhere"], 1, "manifest.json"),
        (["replay", "nothing.mcap"], 1, "nothing.mcap"),
        (["view", "drones/yrd"], 2, "drones/yard"),
        (["view", "missing.yaml"], 1, "missing.yaml"),
        (["list", "robts"], 2, "Did you mean 'robots'"),
        (["study", "run"], 1, "--tag"),
        (["study", "run", "perf-clii"], 2, "perf-cli"),
        (["study", "run", "--tag", "nonsense"], 1, "Tags: core"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_wrong_arguments_get_one_message_and_no_traceback(arguments, code, words, tmp_path):
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert not list(tmp_path.iterdir())


def test_debug_shows_the_traceback_at_any_place():
    for arguments in (["--debug", "list", "robts"], ["list", "robts", "--debug"]):
        done = run(*arguments)
        assert "Traceback" in done.stderr
        assert done.returncode == 1


def test_json_of_a_failure_is_one_object():
    done = run("list", "robts", "--json")
    assert json.loads(done.stdout)["error"]["type"] == "UnknownNameError"
    assert done.returncode == 2


def test_bench_run_prints_one_object_and_continues(tmp_path):
    first = bench(tmp_path / "run", "--json")
    assert first.returncode == 0, first.stderr
    summary = json.loads(first.stdout)
    assert {"episodes", "success_rate", "success_low", "success_high", "by_task", "wall_s", "out"} <= summary.keys()
    assert summary["episodes"] == 2
    assert "[2/2]" in first.stderr
    again = bench(tmp_path / "run", "--json")
    assert "2 of 2 episodes are there already" in again.stderr
    assert json.loads(again.stdout)["by_task"] == summary["by_task"]


def test_bench_run_prints_a_table_and_quiet_is_quiet(tmp_path):
    done = bench(tmp_path / "run", "--quiet")
    assert "drones/inspect@1" in done.stdout
    assert done.stderr == ""


def test_ray_is_named_when_it_is_absent(tmp_path):
    import importlib.util

    if importlib.util.find_spec("ray"):
        pytest.skip("Ray is installed here, so nothing is absent")
    done = bench(tmp_path / "run", "--ray")
    assert done.returncode == 1
    assert "pip install ray" in done.stderr
    assert not (tmp_path / "run").exists()


def test_bench_run_into_another_run_is_refused(tmp_path):
    bench(tmp_path / "run")
    done = bench(tmp_path / "run", planner="noop")
    assert done.returncode == 1
    assert "holds another run (planner: there 'oracle', now 'noop')" in done.stderr


def test_compare_pairs_and_refuses_what_is_not_paired(tmp_path):
    bench(tmp_path / "a", episodes=3)
    bench(tmp_path / "b", episodes=3, planner="noop")
    bench(tmp_path / "c", episodes=2, planner="noop")
    done = run("bench", "compare", tmp_path / "a", tmp_path / "b", "--json")
    overall = json.loads(done.stdout)["overall"]
    assert (overall["n"], overall["only_a"], overall["only_b"], overall["p_value"]) == (3, 3, 0, 0.25)
    refused = run("bench", "compare", tmp_path / "a", tmp_path / "c")
    assert refused.returncode == 1
    assert "lacks 1 episodes" in refused.stderr
    common = run("bench", "compare", tmp_path / "a", tmp_path / "c", "--common")
    assert common.returncode == 0
    assert "Compared over the 2 episodes in both" in common.stdout


def test_report_stands_alone(physics_run, tmp_path):
    done = run("bench", "report", physics_run, "--out", tmp_path / "page.html", "--videos", 1)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text()
    assert "saw the truth" in page
    assert "data:video/mp4;base64," in page
    assert "embodied bench run drones" in page
    assert "Wilson" in page
    # Nothing that a browser would fetch.
    assert not [w for w in ('src="http', "src='http", "@import", "url(http", "<link", "<script") if w in page]


def test_report_shows_failures_first_and_needs_results(tmp_path):
    bench(tmp_path / "run", planner="noop")
    done = run("bench", "report", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "run" / "report.html").read_text()
    assert page.index("Failures (2)") < page.index("All episodes")
    assert "unmet" in page
    (tmp_path / "run" / "results.jsonl").write_text("")
    empty = run("bench", "report", tmp_path / "run")
    assert empty.returncode == 1
    assert "no results yet" in empty.stderr


def test_report_tells_of_a_torn_log(tmp_path):
    bench(tmp_path / "run")
    log = sorted((tmp_path / "run" / "episodes").glob("*.mcap"))[0]
    log.write_bytes(log.read_bytes()[:-40])
    assert run("bench", "report", tmp_path / "run").returncode == 0
    assert "torn" in (tmp_path / "run" / "report.html").read_text()


def test_replay_tells_the_episode(physics_run):
    log = sorted((physics_run / "episodes").glob("*.mcap"))[0]
    done = run("replay", log)
    assert done.returncode == 0, done.stderr
    assert "take_off" in done.stdout
    assert json.loads(run("replay", log, "--json").stdout)["outcome"] == "finished"


def test_replay_writes_a_video(physics_run, tmp_path):
    log = sorted((physics_run / "episodes").glob("*.mcap"))[0]
    done = run("replay", log, "--video", tmp_path / "v.mp4", "--size-px", 96)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "v.mp4").read_bytes()[4:8] == b"ftyp"  # ISO/IEC 14496-12: the first box of an MP4 file


def test_view_writes_a_picture(tmp_path):
    done = run("view", "drones/yard@1", "--out", tmp_path / "yard.png", "--size-px", 96)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "yard.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize(
    "kind", ["scenes", "robots", "tasks", "skills", "planners", "controllers", "worlds", "suites", "studies"]
)
def test_list_of_every_kind(kind):
    done = run("list", kind, "--json")
    assert done.returncode == 0, done.stderr
    entries = json.loads(done.stdout)[kind]
    assert entries
    assert all(e["name"] and e["summary"] for e in entries)


def test_list_of_kinds_and_by_tag():
    assert "planners" in json.loads(run("list", "--json").stdout)["kinds"]
    assert "oracle" in run("list", "planners", "--tag", "privileged").stdout


def test_study_list_and_run(tmp_path):
    assert "perf-cli" in run("study", "list", "--tag", "perf").stdout
    done = run("study", "run", "perf-cli", "--quick", "--docs", tmp_path)
    assert done.stdout.strip().splitlines()[-1] in ("3 of 3 hold", "2 of 3 hold", "1 of 3 hold", "0 of 3 hold")
    assert done.returncode == (0 if "3 of 3 hold" in done.stdout else 1)
    assert (tmp_path / "perf-cli.md").exists()
    figures = json.loads((tmp_path / "perf-cli.json").read_text())["figures"]
    assert {f["target"] for f in figures} == {"< 150", "< 50"}


def test_doctor_finds_this_installation():
    done = run("doctor", "--json")
    report = json.loads(done.stdout)
    findings = {f["what"]: f for f in report["findings"]}
    assert report["ok"] == all(f["level"] != "broken" for f in findings.values())
    assert done.returncode == (0 if report["ok"] else 1)
    assert {"python", "embodied-stack", "threads", "plug-ins", "extra sim"} <= findings.keys()
    assert all(f["mend"] for f in findings.values() if f["level"] != "ok")


def test_doctor_finds_a_clash_and_a_broken_plug_in(tmp_path):
    for name, version, files in (
        ("embodied", "2.0.0", {"RECORD": "embodied/agent.py,,\n", "top_level.txt": "embodied\n"}),
        ("bad-plugin", "0.1", {"entry_points.txt": "[embodied.robots]\ntest/bad@1 = no_such_module_here:SPEC\n"}),
    ):
        folder = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        for file, text in files.items():
            (folder / file).write_text(text)
    done = run("doctor", "--json", PYTHONPATH=str(tmp_path))
    broken = {f["what"]: f["found"] for f in json.loads(done.stdout)["findings"] if f["level"] == "broken"}
    assert "embodied also installs a package called embodied" in broken["import name"]
    assert "no_such_module_here" in broken["plug-in test/bad@1"]
    assert done.returncode == 1


def test_interrupted_run_says_how_to_continue(tmp_path):
    import signal
    import time

    # A job started in the background inherits an ignored SIGINT; at a terminal it interrupts.
    program = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    program += "from embodied.cli.main import main; main()"
    command = [sys.executable, "-c", program, "bench", "run", "drones"]
    process = subprocess.Popen(
        [*command, "--episodes", "6", "--out", str(tmp_path / "run")],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    results = tmp_path / "run" / "results.jsonl"
    stop_s = time.monotonic() + 60
    while time.monotonic() < stop_s and not (results.exists() and results.read_text()):
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command continues" in errors
    assert "Traceback" not in errors
    assert 1 <= len(results.read_text().splitlines()) < 6


def test_paths_and_disks_of_the_user_are_no_bug_of_ours(capsys):
    full = OSError(errno.ENOSPC, "No space left on device", "out/run.json")
    assert fail(full, as_json=False) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: cannot write or read out/run.json: No space left on device.")
    assert said.count("\n") == 1
    fail(OSError("of nobody's disk"), as_json=False)
    assert "This is a bug" in capsys.readouterr().err
