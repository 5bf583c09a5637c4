"""Two real processes: bit-equal actions, and a robot that is safe after its policy's process was killed or frozen."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from embodied_controllers.contract import Command
from embodied_deploy.cli.main import main
from embodied_deploy.links.server import RobotServer, serving
from embodied_deploy.package.load import load_package
from embodied_deploy.policy.controller import PolicyController
from embodied_deploy.policy.session import PolicySession
from embodied_deploy.robots.sense import first_action, sample_of
from embodied_deploy.robots.stand_in import loopback_for
from embodied_deploy.runtime.clock import MonotonicClock
from embodied_deploy.runtime.host import HostConfig, drive
from embodied_deploy.runtime.loop import LoopConfig

tiny = pytest.importorskip("tests.tiny_packages", reason="onnx and onnxruntime come with the extra 'export'")
EDGE = [sys.executable, "-m", "embodied_deploy.cli.main"]
TICKS = 200


@pytest.fixture(scope="module")
def package_file(tmp_path_factory):
    """A policy with recurrent state, so that one lost or repeated question would change all that follows."""
    from onnx import helper

    made, _ = tiny.recurrent()
    seen = tiny.observation(("last_action.thrust_1_n",))
    made = replace(made, inputs=(seen, made.inputs[1]), latency_budget_s=1.0, max_observation_age_s=10.0)
    # memory' = sin(50 memory + obs + 1): chaotic enough to show the smallest difference. Thrust = 0.05 + 0.04 memory'.
    weights = [(n, np.float32(v)) for n, v in (("many", 50), ("one", 1), ("half", 0.05), ("small", 0.04))]
    nodes = [
        helper.make_node("Mul", ["memory", "many"], ["m50"]),
        helper.make_node("Add", ["m50", "obs"], ["sum"]),
        helper.make_node("Add", ["sum", "one"], ["sum1"]),
        helper.make_node("Sin", ["sum1"], ["memory_next"]),
        helper.make_node("Mul", ["memory_next", "small"], ["scaled"]),
        helper.make_node("Add", ["scaled", "half"], ["thrust"]),
        helper.make_node("Concat", ["thrust"] * 4, ["action"], axis=1),
    ]
    one = ("float32", (1,))
    sides = [("obs", *one), ("memory", *one)], [("action", "float32", (4,)), ("memory_next", *one)]
    graph = tiny.model(nodes, *sides, [(n, np.array(v)) for n, v in weights])
    return tiny.write(tmp_path_factory.mktemp("package") / "wild.policy", made, graph)


def _direct(package):
    robot = loopback_for(package.contract)
    robot.stop()
    policy = PolicyController(PolicySession(package), robot.action_spec, robot.observation_spec)
    actions, last = [], first_action(robot)
    for _ in range(TICKS):
        sample = sample_of(robot, robot.read(), last, {})
        last = robot.send(Command(values=policy.act(sample))).values
        actions.append(last)
    return np.array(actions)


class Listening:
    """A robot that remembers what it applied."""

    def __init__(self, robot):
        self._robot, self.applied = robot, []

    def __getattr__(self, name):
        return getattr(self._robot, name)

    def send(self, command):
        done = self._robot.send(command)
        self.applied.append(done.values)
        return done


def test_same_actions_direct_in_the_loop_and_behind_a_link_in_one_process_and_two(package_file):
    package = load_package(package_file)
    direct = _direct(package)
    assert len(np.unique(direct[:, 0])) > 0.95 * TICKS, "actions differ, so equality says something"

    looped = []
    loop = LoopConfig(recorder=lambda k, state, action, mode: looped.append(action))
    robot = loopback_for(package.contract)
    robot.stop()
    drive(package, robot, HostConfig(realtime=False, ticks=TICKS, loop=loop))
    assert np.array(looped).tobytes() == direct.tobytes()

    for in_two in (False, True):
        robot = Listening(loopback_for(package.contract))
        server = RobotServer(robot, "tcp:127.0.0.1:0", 60)
        with serving(server):
            seconds = TICKS / package.contract.rate_hz
            command = ["run", str(package_file), "--robot", server.endpoint, "--seconds", str(seconds)]
            if in_two:
                subprocess.run([*EDGE, *command], check=True, timeout=120, capture_output=True)
            else:
                assert main(command) == 0
        assert np.array(robot.applied)[:TICKS].tobytes() == direct.tobytes(), f"two processes: {in_two}"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "frozen"])
def test_a_policy_process_that_dies_leaves_the_robot_safe_within_one_watchdog_period(package_file, number):
    watchdog_s = 1.0
    package = load_package(package_file, check_parity=False)
    robot = Listening(loopback_for(package.contract, MonotonicClock()))
    ended, safe_s = threading.Event(), []

    def hear(kind, facts):
        if kind in ("lost", "watchdog"):
            safe_s.append(time.monotonic())
            ended.set()

    server = RobotServer(robot, "tcp:127.0.0.1:0", watchdog_s, lockstep=False, on_event=hear)
    with serving(server):
        process = subprocess.Popen([*EDGE, "run", str(package_file), "--robot", server.endpoint])
        try:
            end_s = time.monotonic() + 60
            while len(robot.applied) < 50 and time.monotonic() < end_s:
                time.sleep(0.01)
            # On a busy machine the watchdog may have come before us; the process connects again then.
            while (server.is_safe or np.max(robot.last_action) == 0.0) and time.monotonic() < end_s:
                time.sleep(0.01)
            assert not server.is_safe, "in mid-flight"
            safe_s.clear()
            ended.clear()
            killed_s = time.monotonic()
            os.kill(process.pid, number)
            assert ended.wait(30)
            assert np.array_equal(robot.last_action, robot.action_spec.safe)
            count = len(robot.applied)
            time.sleep(0.2)
            assert np.array_equal(robot.last_action, robot.action_spec.safe)
            assert len(robot.applied) == count, "nothing was obeyed after that"
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.wait(30)
    # The rest above the watchdog's time is what a busy machine takes to wake a thread.
    assert safe_s[0] - killed_s < watchdog_s + 1.0


def test_a_run_loads_nothing_that_a_device_lacks(package_file):
    code = f"""
import sys
from embodied_deploy.cli.main import main
assert main(["run", {str(package_file)!r}, "--mode", "lockstep", "--seconds", "1"]) == 0
strangers = {{"torch", "mujoco", "pydantic", "typer", "onnx", "embodied", "scipy", "yaml", "cryptography"}}
loaded = strangers & set(sys.modules)
assert not loaded, loaded
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_help_and_parsing_load_neither_numpy_nor_onnxruntime():
    code = """
import sys
from embodied_deploy.cli.main import build_parser
build_parser().parse_args(["run", "x.policy", "--goal", "a=1,2"])
loaded = {"numpy", "onnxruntime"} & set(sys.modules)
assert not loaded, loaded
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
