"""The watchdog outside of the inference, with real threads and a real clock. Limits are wide: machines are busy."""

import threading
import time

import numpy as np
import pytest

from embodied_deploy.policy.sample import Sample
from embodied_deploy.runtime.clock import MonotonicClock
from embodied_deploy.runtime.inference import ThreadInference
from embodied_deploy.runtime.loop import EdgeLoop, LoopConfig
from embodied_deploy.runtime.recovery import Limits
from tests.edge_rig import FaultyRobot, ScriptedPolicy, contract


class BlockingPolicy(ScriptedPolicy):
    """From its n-th question on, it does not answer until it is released."""

    def __init__(self, made, block_at):
        super().__init__(made)
        self.block_at, self.gate, self.blocked = block_at, threading.Event(), threading.Event()

    def think(self, sample):
        if self.questions >= self.block_at:
            self.blocked.set()
            self.gate.wait(30)
        super().think(sample)


def _loop(policy, recorder, **limits):
    clock = MonotonicClock()
    robot = FaultyRobot(clock)
    config = LoopConfig(recorder=recorder, warm_up=3, limits=Limits(**limits))
    return EdgeLoop(robot, policy, ThreadInference(policy, clock), clock=clock, config=config), robot


def test_a_policy_that_hangs_does_not_keep_the_robot_from_its_safe_action():
    policy = BlockingPolicy(contract(latency_budget_s=0.5, max_observation_age_s=5.0, on_late="safe"), block_at=23)
    hung, after = [], []

    def record(k, state, action, mode):
        if policy.gate.is_set():
            after.append(mode)
        elif policy.blocked.is_set():
            hung.append((mode, action))
            if len(hung) == 40:
                policy.gate.set()

    loop, _ = _loop(policy, record, stop_s=60.0)
    begin_s = time.monotonic()
    loop.run(ticks=400)
    assert time.monotonic() - begin_s < 60
    assert len(hung) == 40
    # The period in which it began to hang may have been served by the answer before.
    assert {mode for mode, _ in hung[1:]} == {"safe"}, "while it hung, each period got the safe action"
    assert all(np.array_equal(action, [0.0, 0.0]) for _, action in hung[1:])
    assert "policy" in after, "and it came back"
    assert loop.timing.misses >= 1


def test_a_crash_of_the_policy_ends_the_run_with_its_error_and_the_robot_stopped():
    class Broken(ScriptedPolicy):
        def think(self, sample):
            super().think(sample)
            if self.questions > 10:
                raise RuntimeError("a fault of the program")

    loop, robot = _loop(Broken(contract(latency_budget_s=0.5, max_observation_age_s=5.0)), None)
    with pytest.raises(RuntimeError, match="a fault of the program"):
        loop.run(ticks=400)
    assert robot.stops == 1


def test_a_question_is_answered_in_the_worker():
    names = []

    class Named(ScriptedPolicy):
        def think(self, sample):
            names.append(threading.current_thread().name)
            super().think(sample)

    prepared = []
    clock = MonotonicClock()
    policy = Named()
    inference = ThreadInference(policy, clock, prepare=lambda: prepared.append(threading.current_thread().name))
    sample = Sample(state=FaultyRobot(clock).read(), last_action=np.zeros(2))
    inference.submit(7, sample)
    answer = inference.take(clock.now_s() + 10)
    assert answer is not None
    assert answer.tick == 7
    assert answer.actions.shape == (1, 2)
    assert names == prepared == ["inference"]
    inference.close()
    assert not [t for t in threading.enumerate() if t is inference._thread]


def test_onnxruntime_lets_the_loop_run_while_it_computes(tmp_path):
    """A graph of big products really computes; the loop's thread must get the interpreter meanwhile."""
    from onnx import helper

    from embodied_deploy.package.load import load_package
    from embodied_deploy.policy.session import PolicySession
    from tests import tiny_packages

    size = 700
    rng = np.random.default_rng(0)
    w = (rng.normal(size=(size, size)) / np.sqrt(size)).astype(np.float32)
    first, last = np.ones((5, size), np.float32), np.ones((size, 4), np.float32)
    widen = np.ones((1, size, 1), np.float32)
    nodes = [
        helper.make_node("MatMul", ["obs", "first"], ["row"]),
        helper.make_node("Unsqueeze", ["row", "axis"], ["r"]),
    ]
    nodes.append(helper.make_node("Mul", ["r", "widen"], ["h0"]))
    count = 12
    nodes += [helper.make_node("MatMul", [f"h{i}", "w"], [f"h{i + 1}"]) for i in range(count)]
    nodes.append(helper.make_node("ReduceMean", [f"h{count}", "axis"], ["flat"], keepdims=0))
    nodes.append(helper.make_node("MatMul", ["flat", "last"], ["action"]))
    weights = [("first", first), ("w", w), ("last", last), ("widen", widen), ("axis", np.array([1]))]
    sides = [("obs", "float32", (5,))], [("action", "float32", (4,))]
    graph = tiny_packages.model(nodes, *sides, weights)
    path = tiny_packages.write(tmp_path / "slow.policy", graph=graph)
    session = PolicySession(load_package(path, check_parity=False))

    begin_s = time.perf_counter()
    session.run()
    alone_s = time.perf_counter() - begin_s
    steps, done = 0, threading.Event()

    def work():
        for _ in range(5):
            session.run()
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.is_set():
        time.sleep(0.001)
        steps += 1
    thread.join()
    # With the interpreter locked, the loop could step only between runs: 5 times.
    assert steps > 20, f"{steps} steps in 5 runs of {alone_s:.3f} s"
