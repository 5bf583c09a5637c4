"""A scripted policy and a robot with faults, for tests of the edge runtime. No onnxruntime needed."""

from dataclasses import dataclass, field, replace

import numpy as np

from embodied_controllers.contract import ActionSpec, Command, ObservationSpec, RobotState
from embodied_deploy.errors import LinkError, ObservationError, PolicyOutputError
from embodied_deploy.package.contract import Chunk, PolicyContract, TensorSpec, Training
from embodied_deploy.package.quantities import action_entry, observation_entry
from embodied_deploy.robots.loopback import LoopbackRobot
from embodied_deploy.runtime.clock import ManualClock
from embodied_deploy.runtime.inference import InlineInference
from embodied_deploy.runtime.loop import EdgeLoop, LoopConfig

DT_S = 0.01
BASE = ActionSpec(
    names=("forward_mps", "yaw_rate_radps"), low=np.array([-1.0, -2.0]), high=np.array([1.0, 2.0]), safe=np.zeros(2)
)
EYES = ObservationSpec(
    joint_names=(), joint_low=np.zeros(0), joint_high=np.zeros(0), joint_vel_max=np.zeros(0), rate_hz=100.0
)


def contract(horizon=0, execute=1, max_age_s=0.1, **changes):
    """A policy that drives a base at 100 Hz with a budget of 4 ms and a safe action of (0, 0)."""
    entries = tuple(action_entry(n, lo, hi) for n, lo, hi in zip(BASE.names, BASE.low, BASE.high, strict=True))
    seen = (observation_entry("base_pos_world_m.x", -10, 10),)
    shape = (horizon, 2) if horizon else (2,)
    fields = {
        "name": "driver",
        "version": "1.0.0",
        "kind": "controller",
        "robot": "base",
        "rate_hz": 1 / DT_S,
        "inputs": (TensorSpec(name="obs", role="observation", dtype="float32", shape=(1,), entries=seen),),
        "outputs": (TensorSpec(name="action", role="action", dtype="float32", shape=shape, entries=entries),),
        "safe_action": (0.0, 0.0),
        "latency_budget_s": 0.004,
        "max_observation_age_s": 0.025,
        "training": Training(recipe="none@1", seed=0, commit=""),
        "chunk": Chunk(horizon=horizon, execute=execute, max_age_s=max_age_s) if horizon else None,
    }
    return PolicyContract(**(fields | changes))


class ScriptedPolicy:
    """Answers (0.5, k/1000) for its k-th question; ``compute_s`` and ``output`` say how it misbehaves then."""

    def __init__(self, made=None, clock=None, compute_s=None, output=None):
        self.contract = made or contract()
        self._clock, self._compute_s, self._output = clock, compute_s or {}, output or {}
        self.questions = self.resets = 0
        self._actions = []

    def reset(self):
        self.resets += 1

    def think(self, sample):
        k = self.questions
        if not np.isfinite(sample.state.base_pos_world_m).all():
            raise ObservationError("base_pos_world_m.x: NaN")
        self.questions += 1
        if self._clock is not None:
            self._clock.advance(self._compute_s.get(k, 0.001))
        if self._output.get(k):
            raise PolicyOutputError("NaN")
        chunk = self.contract.chunk
        self._actions = [np.array([0.5, (k + i / 100) / 1000]) for i in range(chunk.horizon if chunk else 1)]

    @property
    def actions_left(self):
        return len(self._actions)

    def follow(self):
        return self._actions.pop(0)


@dataclass
class Faults:
    """Ticks of reading at which the robot misbehaves."""

    frozen: set = field(default_factory=set)  # the sample before once more
    nan: set = field(default_factory=set)
    gone: set = field(default_factory=set)
    bad_stamp: set = field(default_factory=set)
    jump_s: dict = field(default_factory=dict)  # from this read on, the robot's clock is off by so much


class FaultyRobot(LoopbackRobot):
    """A loopback base that misbehaves on purpose and remembers what it was sent."""

    def __init__(self, clock=None, faults=None):
        super().__init__(BASE, EYES, "base", DT_S, clock=clock)
        self.faults, self.reads, self.sent = faults or Faults(), -1, []
        self._before = None
        self._jump_s = 0.0

    def read(self) -> RobotState:
        self.reads += 1
        k, f = self.reads, self.faults
        if k in f.gone:
            raise LinkError("the robot is silent.")
        if k in f.frozen and self._before is not None:
            return self._before
        self._jump_s += f.jump_s.get(k, 0.0)
        state = super().read()
        time_s = float("nan") if k in f.bad_stamp else state.time_s + self._jump_s
        state = replace(state, time_s=time_s)
        if k in f.nan:
            state = replace(state, base_pos_world_m=np.array([np.nan, 0.0, 0.0]))
        self._before = state
        return state

    def send(self, command: Command) -> Command:
        self.sent.append(np.array(command.values))
        return super().send(command)


@dataclass
class Run:
    """What a run did."""

    robot: FaultyRobot
    policy: ScriptedPolicy
    loop: EdgeLoop
    modes: list
    actions: np.ndarray

    def short(self):
        """Modes as one letter each: policy p, hold h, safe s, fallback f, stop x, unreached u."""
        return "".join("x" if m == "stop" else m[0] for m in self.modes)


def run(ticks=20, made=None, faults=None, compute_s=None, output=None, lockstep=False, log=None, **config):
    """Run a scripted policy on a faulty robot. Numbers of reads equal ticks: the warm-up is one read of its own."""
    clock = None if lockstep else ManualClock(100.0)
    robot = FaultyRobot(clock)
    policy = ScriptedPolicy(made, clock, compute_s, output)
    modes, actions = [], []

    def record(k, state, action, mode):
        modes.append(mode)
        actions.append(np.array(action))

    settings = LoopConfig(recorder=record, warm_up=1, **config)
    extra = {} if log is None else {"log": log}
    loop = EdgeLoop(robot, policy, InlineInference(policy, clock), clock=clock, config=settings, **extra)
    warm_up = loop._warm_up

    def warm_up_then_break(clock):
        # Faults count from the first period.
        warm_up(clock)
        robot.reads, policy.questions, robot.faults = -1, 0, faults or Faults()
        robot.sent.clear()

    loop._warm_up = warm_up_then_break
    if lockstep:
        robot.faults = faults or Faults()
    loop.run(ticks=ticks)
    return Run(robot, policy, loop, modes, np.array(actions))
