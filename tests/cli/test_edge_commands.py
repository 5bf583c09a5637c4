"""``embodied-edge`` end to end: each command, each exit code, one line per error."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from embodied_deploy.links.server import RobotServer, serving
from embodied_deploy.package.load import load_package
from embodied_deploy.robots.stand_in import loopback_for
from embodied_deploy.runtime.clock import MonotonicClock
from embodied_deploy.runtime.host import HostConfig, drive
from embodied_deploy.runtime.loop import LoopConfig

tiny = pytest.importorskip("tests.tiny_packages", reason="onnx and onnxruntime come with the extra 'export'")
EDGE = [sys.executable, "-m", "embodied_deploy.cli.main"]


def edge(*arguments, code=0, **options):
    """Run the command; return stdout, or stderr of a failure, which must be one line."""
    done = subprocess.run(
        [*EDGE, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False, **options
    )
    assert done.returncode == code, f"exit {done.returncode}: {done.stdout}{done.stderr}"
    if code in (0, 5):
        return done.stdout
    if code != 2:
        assert done.stderr.count("\n") == 1, done.stderr
        assert done.stderr.startswith("embodied-edge: ")
    return done.stderr


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A small policy of 125 Hz with a budget that a busy machine keeps."""
    path = tmp_path_factory.mktemp("package") / "tiny.policy"
    return tiny.write(path, tiny.contract(latency_budget_s=1.0, max_observation_age_s=10.0))


@pytest.mark.parametrize("command", ["", "info", "verify", "run", "bench", "install", "confirm", "rollback", "status"])
def test_every_command_has_help(command):
    text = edge(*command.split(), "--help")
    assert text.startswith("usage: embodied-edge")
    if not command:
        assert "7  the package on trial failed and was rolled back" in text, "exit codes are documented"


def test_info_and_verify(package):
    text = edge("info", package)
    assert "tiny 1.0.0, controller, fp32, opset 20" in text
    assert "125 Hz, answer within 1000 ms" in text
    assert json.loads(edge("info", package, "--json"))["name"] == "tiny"
    assert edge("verify", package).startswith("ok: tiny 1.0.0, unsigned, parity 0.00e+00")


def test_verify_refuses_what_is_torn_unsigned_or_missing(package, tmp_path):
    torn = tmp_path / "torn.policy"
    torn.write_bytes(package.read_bytes()[:-50])
    assert "torn" in edge("verify", torn, code=3)
    assert "torn" in edge("run", torn, "--seconds", 1, code=3), "a torn file never starts"
    key = tmp_path / "key.pub"
    key.write_text("00" * 32 + "\n")
    assert edge("verify", package, "--key", key, code=3).startswith("embodied-edge: signature")
    assert "cannot be read" in edge("verify", tmp_path / "none.policy", code=3)


def test_lockstep_runs_are_equal_to_the_last_bit(package):
    runs = [edge("run", package, "--mode", "lockstep", "--seconds", 2) for _ in range(2)]
    assert runs[0] == runs[1]
    assert runs[0].startswith("ok; periods: 250 policy; spoilt: none")


def test_a_run_in_real_time_is_logged(package, tmp_path):
    log = tmp_path / "run.jsonl"
    text = edge("run", package, "--seconds", 1.5, "--log", log, "--pin", 100_000)
    assert "compute" in text
    assert "misses" in text
    lines = [json.loads(x) for x in log.read_text().splitlines()]
    kinds = [x["event"] for x in lines]
    assert kinds[0] == "package"
    assert "start" in kinds
    assert "second" in kinds
    assert kinds[-1] == "end"
    assert {x["name"] for x in lines if x["event"] == "warning"} == {"pin_refused"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_run_cleanly(package, tmp_path, number):
    log = tmp_path / "run.jsonl"
    process = subprocess.Popen([*EDGE, "run", str(package), "--log", str(log)], stdout=subprocess.PIPE, text=True)
    end_s = time.monotonic() + 60
    while not (log.exists() and '"start"' in log.read_text()) and time.monotonic() < end_s:
        time.sleep(0.05)
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    # On a busy machine the last period may have been late.
    assert out.startswith(("ok; periods", "degraded: late; periods"))
    assert json.loads(log.read_text().splitlines()[-1])["event"] == "end"


@pytest.mark.parametrize("lockstep", [True, False])
def test_a_served_robot_is_driven(package, lockstep):
    contract = load_package(package, check_parity=False).contract
    robot = loopback_for(contract, None if lockstep else MonotonicClock())
    server = RobotServer(robot, "tcp:127.0.0.1:0", 30, lockstep=lockstep)
    with serving(server):
        text = edge("run", package, "--robot", server.endpoint, "--seconds", 1)
        assert " policy" in text
        wrong = "realtime" if lockstep else "lockstep"
        assert "is served in" in edge("run", package, "--robot", server.endpoint, "--mode", wrong, code=4)
    assert server.sessions == 2


def test_a_robot_that_is_not_there(package):
    assert "no robot at tcp:127.0.0.1:9" in edge("run", package, "--robot", "tcp:127.0.0.1:9", code=4)
    assert "Expected loopback" in edge("run", package, "--robot", "nothing", code=4)
    assert "No module named" in edge("run", package, "--robot", "no_module:robot", code=4)


_FACTORY = """
import numpy as np
from embodied_deploy.robots.stand_in import loopback_for

def fine(contract, clock):
    return loopback_for(contract, clock)

def blind(contract, clock):
    robot = loopback_for(contract, clock)
    read = robot.read
    def broken():
        state = read()
        if state.time_s > 0.4:
            state.base_pos_world_m[0] = np.nan
        return state
    robot.read = broken
    return robot

def other(contract, clock):
    robot = loopback_for(contract, clock)
    robot.kind = "submarine"
    return robot
"""


def _with_factory(tmp_path):
    (tmp_path / "my_robots.py").write_text(_FACTORY)
    return {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}


def test_a_robot_of_ones_own(package, tmp_path):
    env = _with_factory(tmp_path)
    options = ("--mode", "lockstep", "--seconds", 1)
    assert edge("run", package, "--robot", "my_robots:fine", *options, env=env).startswith("ok; periods: 125 policy")
    assert edge("run", package, "--robot", "my_robots:other", *options, code=3, env=env).startswith(
        "embodied-edge: robot"
    )


def test_a_run_that_ends_stopped_says_so_by_its_exit_code(package, tmp_path):
    options = ("--robot", "my_robots:blind", "--mode", "lockstep", "--seconds", 8)
    text = edge("run", package, *options, code=5, env=_with_factory(tmp_path))
    assert text.startswith("stopped: outage")
    assert "observation" in text


def test_slots_from_install_to_confirmation(package, tmp_path):
    slots = tmp_path / "slots"
    assert "nothing is installed" in edge("run", "--slots", slots, "--seconds", 1, code=6)
    assert "slot A, on trial" in edge("install", package, "--slots", slots)
    options = ("--mode", "lockstep", "--seconds", 4, "--trial", 1)
    edge("run", "--slots", slots, *options)
    status = json.loads(edge("status", "--slots", slots))
    assert status["current"]["on_trial"] is False, "confirmed by its health"
    assert status["slots"]["A"].startswith("tiny 1.0.0")
    assert "not on trial" in edge("confirm", "--slots", slots, code=6)
    edge("install", package, "--slots", slots)
    assert "back to slot A" in edge("rollback", "--slots", slots)


def test_a_package_that_fails_its_trial_is_rolled_back_by_itself(package, tmp_path):
    slots, log, env = tmp_path / "slots", tmp_path / "run.jsonl", _with_factory(tmp_path)
    edge("install", package, "--slots", slots)
    edge("confirm", "--slots", slots)
    edge("install", package, "--slots", slots)
    options = ("--robot", "my_robots:blind", "--mode", "lockstep", "--seconds", 8, "--trial", 4, "--log", log)
    assert "trial failed, back to slot A" in edge("run", "--slots", slots, *options, code=7, env=env)
    status = json.loads(edge("status", "--slots", slots))
    assert status["current"]["slot"] == "A"
    assert "observation" in status["current"]["last_rollback"]
    assert '"event":"rollback"' in log.read_text()


def test_starts_that_end_well_or_find_no_robot_do_not_use_up_a_trial(package, tmp_path):
    slots = tmp_path / "slots"
    edge("install", package, "--slots", slots)
    for _ in range(4):
        edge("run", "--slots", slots, "--mode", "lockstep", "--seconds", 1, "--trial", 30)
        edge("run", "--slots", slots, "--robot", "tcp:127.0.0.1:9", code=4)
    current = json.loads(edge("status", "--slots", slots))["current"]
    assert current["on_trial"] is True
    assert current["starts"] == 0


def test_the_service_manager_hears_ready_alive_and_stopping(package, tmp_path):
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(str(tmp_path / "notify"))
    manager.settimeout(60)
    env = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "400000"}
    edge("run", package, "--seconds", 1.5, env=env)
    heard = []
    while not heard or "STOPPING" not in heard[-1]:
        heard.append(manager.recv(200).decode())
    manager.close()
    assert heard[0] == "READY=1"
    alive = heard[1:-1]
    assert len(alive) >= 3
    assert all(x.startswith("WATCHDOG=1\nSTATUS=") for x in alive)


def test_bench_reports_times_of_both_kinds(package):
    found = json.loads(edge("bench", package, "--seconds", 0.5, "--rate", 50, "--json"))
    assert found["cpu"]
    assert found["rate_hz"] == 50
    assert found["ticks"] + found["skipped"] >= 25
    for part in ("tight_run_us", "tight_act_us", "compute_us", "response_us", "wake_us"):
        assert 0 < found[part]["p50"] <= found[part]["p99"] <= found[part]["max"]
    assert "graph alone, tight loop" in edge("bench", package, "--seconds", 0.2)


def test_wrong_usage_is_exit_code_two(package):
    for arguments in (("run",), ("run", package, "--seconds", -1), ("run", package, "--goal", "x=y"), ("fly",), ()):
        edge(*arguments, code=2)


@pytest.mark.parametrize(
    "arguments",
    [
        ("bench", "--seconds", "nan"),
        ("bench", "--seconds", "inf"),
        ("bench", "--seconds", "0"),
        ("bench", "--rate", "0"),
        ("bench", "--rate", "-1"),
        ("bench", "--rate", "nan"),
        ("bench", "--rate", "1e9"),
        ("bench", "--threads", "0"),
        ("bench", "--threads", "99999999999"),
        ("run", "--threads", "two"),
        ("run", "--pin", "-1"),
        ("run", "--pin", "99999999999999999999"),
        ("run", "--fifo", "0"),
        ("run", "--fifo", "100"),
        ("run", "--trial", "0"),
        ("run", "--goal", "pos_world_m=nan,0,0"),
        ("run", "--goal", "pos_world_m=1e300,0,0"),
        ("run", "--goal", "=1"),
    ],
)
def test_numbers_that_mean_nothing_are_wrong_usage(package, arguments):
    command, option, value = arguments
    assert f"argument {option}" in edge(command, package, f"{option}={value}", code=2)


def test_a_rate_that_the_machine_cannot_keep_ends_in_time(package):
    begin_s = time.monotonic()
    found = json.loads(edge("bench", package, "--rate", 10_000, "--seconds", 0.2, "--json"))
    assert time.monotonic() - begin_s < 30
    assert found["ticks"] > 0


def test_a_goal_that_the_policy_does_not_take_is_named(tmp_path):
    made = tiny.contract(inputs=(tiny.observation(("to_goal_pos_world_m.x",)),))
    path = tiny.write(tmp_path / "goal.policy", made, tiny.linear(n_in=1))
    assert "pos_world_m (3 values)" in edge("run", path, "--goal", "position=0,0,1", code=2)
    assert "2 values, tiny takes 3" in edge("run", path, "--goal", "pos_world_m=0,0", code=2)


def test_what_the_kernel_refuses_is_said_without_a_log(package):
    done = subprocess.run(
        [*EDGE, "run", str(package), "--seconds", "0.1", "--pin", "4095"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "warning: pin_refused: processor 4095" in done.stderr


@pytest.mark.parametrize(
    ("robot", "words"), [("os:getcwd", "called as factory"), ("builtins:print", "without name"), ("os:none", "no attr")]
)
def test_a_factory_that_makes_no_robot_is_an_error_in_words(package, robot, words):
    done = subprocess.run(
        [*EDGE, "run", str(package), "--robot", robot], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 4
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_package_is_a_file_and_no_device_without_end():
    assert "expected a file" in edge("info", "/dev/zero", code=3)


def test_a_look_at_slots_that_are_none_makes_no_folder(tmp_path):
    assert json.loads(edge("status", "--slots", tmp_path / "none"))["current"] is None
    for command in ("run", "confirm", "rollback"):
        assert "nothing is installed" in edge(command, "--slots", tmp_path / "none", code=6)
    assert not (tmp_path / "none").exists()


def test_a_log_that_cannot_be_written_is_exit_code_nine(package, tmp_path):
    assert "missing" in edge("run", package, "--log", tmp_path / "missing" / "x.jsonl", code=9)


def test_without_onnxruntime_the_exit_code_says_so(package, tmp_path):
    (tmp_path / "onnxruntime.py").write_text("raise ImportError('hidden by a test')\n")
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    assert "embodied-stack[edge]" in edge("verify", package, code=8, env=env)


def test_goals_reach_the_policy(tmp_path):
    paths = ("to_goal_pos_world_m.x", "to_goal_pos_world_m.y")
    made = tiny.contract(inputs=(tiny.observation(paths),), latency_budget_s=1.0, max_observation_age_s=10.0)
    path = tiny.write(tmp_path / "goal.policy", made, tiny.linear(n_in=2))
    assert edge("run", path, "--mode", "lockstep", "--seconds", 1, "--goal", "pos_world_m=1,0,0").startswith("ok")
    package = load_package(path)
    actions = []
    for x in (0.0, 1.0):
        loop = LoopConfig(recorder=lambda k, state, action, mode: actions.append(action))
        goal = {"pos_world_m": np.array([x, 0.0, 0.0])}
        drive(package, loopback_for(package.contract), HostConfig(realtime=False, ticks=1, goal=goal, loop=loop))
    assert not np.array_equal(*actions)
