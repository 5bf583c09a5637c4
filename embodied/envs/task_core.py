"""A task's world as arrays: actions of its robots in, their states as vectors out, reward from its goal.

The single and the multi-agent face share this. It adds nothing to the worlds, robots and goals it drives.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embodied.agents.episode import compile_task, task_start
from embodied.catalog import ROBOTS, TASKS
from embodied.errors import TaskError
from embodied.robots.base import RobotSpec, SimRobot, make_robot
from embodied.seeding import stream_seed
from embodied.tasks.contract import Task
from embodied.tasks.goal import Goal, GoalTracker, HoldFor, goal_facts, to_json
from embodied.worlds.mujoco import MujocoWorld
from embodied_controllers.contract import Command, RobotState

Array = NDArray[np.float64]
_STILL = 2e-3  # m or rad; what moved less since the last reading has changed no fact that matters
GOAL_PERIOD_S = 0.5  # facts change slowly and reading them costs more than a step
_POS_LIMIT_M, _VEL_LIMIT_MPS, _RATE_LIMIT_RADPS, _SIGNAL_LIMIT = 100.0, 30.0, 60.0, 1e4
_MARGIN = 1.5  # joints may pass their limits a little and their speed limits for a moment


class RobotPort:
    """One robot as two bounded vectors.

    The observation is joint positions, joint velocities, base position, quaternion, velocity and rates, signals, each
    clipped to its limits. The action is the robot's action vector with every entry mapped to [-1, 1].
    """

    def __init__(self, spec: RobotSpec) -> None:
        action, seen = spec.action_spec, spec.observation_spec
        self.action_size = action.size
        self._middle = (action.high + action.low) / 2
        self._half = (action.high - action.low) / 2
        self.observation_names = (
            *seen.joint_names,
            *(f"{n}_vel" for n in seen.joint_names),
            *(f"base_{a}_world_m" for a in "xyz"),
            *(f"base_quat_{a}" for a in "wxyz"),
            *(f"base_vel_{a}_body_mps" for a in "xyz"),
            *(f"base_angvel_{a}_body_radps" for a in "xyz"),
            *(f"signal_{n}" for n in seen.signals),
        )
        self._signals = seen.signals
        span = np.where(np.isfinite(seen.joint_high - seen.joint_low), seen.joint_high - seen.joint_low, 100.0)
        speed = np.where(np.isfinite(seen.joint_vel_max), seen.joint_vel_max, 100.0)
        common = np.array([_POS_LIMIT_M] * 3 + [1.0] * 4 + [_VEL_LIMIT_MPS] * 3 + [_RATE_LIMIT_RADPS] * 3)
        signals = np.full(len(seen.signals), _SIGNAL_LIMIT)
        low = np.nan_to_num(seen.joint_low, neginf=-100.0) - (_MARGIN - 1) * span
        high = np.nan_to_num(seen.joint_high, posinf=100.0) + (_MARGIN - 1) * span
        self.low = np.concatenate([low, -_MARGIN * 4 * speed, -common, -signals]).astype(np.float32)
        self.high = np.concatenate([high, _MARGIN * 4 * speed, common, signals]).astype(np.float32)

    def observation(self, state: RobotState) -> NDArray[np.float32]:
        """Return a new vector of one sample."""
        values = np.concatenate(
            (
                state.joint_pos,
                state.joint_vel,
                state.base_pos_world_m,
                state.base_quat_wxyz,
                state.base_vel_body_mps,
                state.base_angvel_body_radps,
                [state.signals[n] for n in self._signals],
            ),
            dtype=np.float32,
        )
        return np.minimum(np.maximum(values, self.low), self.high, out=values)

    def command(self, action: NDArray[np.floating]) -> Command:
        """Return the command of an action in [-1, 1]; NaN stays NaN and holds its entry."""
        return Command(values=self._middle + self._half * np.asarray(action, dtype=np.float64))

    def action_of(self, values: Array) -> NDArray[np.float32]:
        """Return the action in [-1, 1] that means these action values."""
        return ((values - self._middle) / self._half).astype(np.float32)


class TaskCore:
    """World, robots and goal of a task family, for repeated episodes without recompiling.

    Args:
      task_id: id of a task family.
      num_tasks: how many of its tasks are used; each reset draws one.
      task_seed: root of their seeds.
      task_options: passed to the family.
      time_limit_s: length of an episode; None takes the task's own budget.
      period_s: time of one step, a multiple of every robot's control period, which repeat the command meanwhile; None
        takes the longest of them.

    Raises:
      TaskError: ``num_tasks`` below one, or a period that does not fit.
    """

    def __init__(
        self,
        task_id: str,
        num_tasks: int = 1,
        task_seed: int = 0,
        task_options: dict[str, Any] | None = None,
        time_limit_s: float | None = None,
        period_s: float | None = None,
    ) -> None:
        if num_tasks < 1:
            raise TaskError(f"An environment needs at least one task, got num_tasks={num_tasks}.")
        self._family, self._options = TASKS.get(task_id), dict(task_options or {})
        self._num_tasks, self._task_seed, self._limit_s = num_tasks, task_seed, time_limit_s
        self._tasks: dict[int, Task] = {}
        self._worlds: dict[str, tuple[MujocoWorld, dict[str, SimRobot]]] = {}
        self.task = self._task(0)
        self.specs: dict[str, RobotSpec] = {a.name: ROBOTS.get(a.robot) for a in self.task.agents}
        self.ports = {name: RobotPort(spec) for name, spec in self.specs.items()}
        self.world, self.robots = self._world(self.task)
        self.period_s = max(s.dt_ctrl_s for s in self.specs.values()) if period_s is None else period_s
        self._substeps = self._schedule()
        self._tracker = GoalTracker(self.task.goal)
        self._needs_agents = False
        self._watched = np.zeros(0, dtype=np.int64)
        self._seen = (np.zeros(0), -1)
        self._fraction = 0.0
        self._goal_due_s = 0.0
        self.is_reached = False

    def reset(self, rng: np.random.Generator) -> None:
        """Begin an episode: one of the tasks, its start, robots in their home posture.

        Raises:
          TaskError: the drawn task has other robots than the first.
        """
        task = self._task(int(rng.integers(self._num_tasks)))
        if [(a.name, a.robot) for a in task.agents] != [(a.name, a.robot) for a in self.task.agents]:
            raise TaskError(f"{task.id}: seed {task.seed} has other robots than seed {self.task.seed}.")
        self.task = task
        self.world, self.robots = self._world(task)
        self.world.reset(int(rng.integers(2**62)), task_start(task, self.specs))
        for robot in self.robots.values():
            robot.reset()
        self._tracker = GoalTracker(task.goal)
        words = {a for f in goal_facts(task.goal) for a in f.args}
        self._needs_agents = bool(words & set(self.specs)) or _is_timed(task.goal)
        self._watched = _joint_addresses(self.world, words)
        self._seen = self._scenery()
        graph = self.world.graph()
        self.is_reached = self._tracker.update(graph, 0.0)
        self._fraction = self._tracker.fraction(graph, 0.0)
        self._goal_due_s = GOAL_PERIOD_S

    def step(self, actions: dict[str, NDArray[np.floating]]) -> float:
        """Advance by one period; robots without an action keep their last command. Returns the reward.

        The reward is the gain in the held fraction of the goal, read every half second, plus 1 when it is reached.
        """
        for name, action in actions.items():
            self.robots[name].send(self.ports[name].command(action))
        last = len(self._substeps) - 1
        for i, (num_steps, due) in enumerate(self._substeps):
            self.world.step(num_steps)
            if i < last:
                for name in due:
                    self.robots[name].refresh()
        time_s = self.world.time_s()
        if time_s < self._goal_due_s - 1e-9:
            return 0.0
        self._goal_due_s += GOAL_PERIOD_S
        if not self._has_changed():
            return 0.0
        graph = self.world.graph()
        self.is_reached = self._tracker.update(graph, time_s)
        fraction = self._tracker.fraction(graph, time_s)
        gain, self._fraction = fraction - self._fraction, fraction
        return gain + float(self.is_reached)

    @property
    def is_over_time(self) -> bool:
        """Whether the time limit has passed."""
        limit_s = self.task.budgets.sim_time_s if self._limit_s is None else self._limit_s
        return self.world.time_s() >= limit_s - 1e-9

    def observation(self, agent: str) -> NDArray[np.float32]:
        """Return a new observation vector of one robot."""
        return self.ports[agent].observation(self.robots[agent].read())

    def info(self, agent: str) -> dict[str, Any]:
        """Return the instruction's progress and what became of the action."""
        robot = self.robots[agent]
        return {
            "goal_fraction": self._fraction,
            "is_success": self.is_reached,
            "action_applied": robot.last_action,
            "clipped_entries": robot.clipped_entries,
        }

    def _has_changed(self) -> bool:
        """Whether the goal's facts may differ from the last reading: what it speaks of moved, or a state was set."""
        if self._needs_agents:
            return True
        now = self._scenery()
        moved = now[0].size and float(np.abs(now[0] - self._seen[0]).max()) > _STILL
        if not moved and now[1] == self._seen[1]:
            return False
        self._seen = now
        return True

    def _scenery(self) -> tuple[Array, int]:
        """Return the joint positions of what the goal speaks of, and the version of the state machines."""
        return self.world.qpos[0, self._watched], self.world.states_version()

    def _schedule(self) -> list[tuple[int, list[str]]]:
        """Split a period at the control instants of the robots: (steps, robots due after them)."""
        fine_s = math.gcd(*(round(s.dt_ctrl_s * 1e6) for s in self.specs.values())) / 1e6
        if any(
            abs(self.period_s / s.dt_ctrl_s - round(self.period_s / s.dt_ctrl_s)) > 1e-6 for s in self.specs.values()
        ):
            periods = {n: s.dt_ctrl_s for n, s in self.specs.items()}
            raise TaskError(f"period_s must be a multiple of every control period {periods}, got {self.period_s}.")
        num_steps = round(fine_s / self.world.dt_sim_s)
        count = round(self.period_s / fine_s)
        return [
            (num_steps, [n for n, s in self.specs.items() if (i + 1) % round(s.dt_ctrl_s / fine_s) == 0])
            for i in range(count)
        ]

    def _task(self, index: int) -> Task:
        if index not in self._tasks:
            seed = stream_seed(self._task_seed, "task", index) % 2**31
            self._tasks[index] = self._family.make(seed, **self._options)
        return self._tasks[index]

    def _world(self, task: Task) -> tuple[MujocoWorld, dict[str, SimRobot]]:
        scene = compile_task(task, self.specs)
        if scene.hash not in self._worlds:
            world = MujocoWorld(scene)
            self._worlds[scene.hash] = (world, {n: make_robot(world, n, s) for n, s in self.specs.items()})
        return self._worlds[scene.hash]


def _joint_addresses(world: MujocoWorld, names: set[str]) -> NDArray[np.int64]:
    """Return the addresses in ``qpos`` of all joints of some entities."""
    model, prefixes = world.scene.model, tuple(f"{n}/" for n in sorted(names))
    widths = {0: 7, 1: 4, 2: 1, 3: 1}  # free, ball, slide, hinge
    ids: list[int] = []
    for index in range(model.njnt):
        if model.joint(index).name.startswith(prefixes):
            first = int(model.jnt_qposadr[index])
            ids.extend(range(first, first + widths[int(model.jnt_type[index])]))
    return np.array(ids, dtype=np.int64)


def _is_timed(goal: Goal) -> bool:
    """Whether a goal may come true by time alone."""
    return isinstance(goal, HoldFor) or "hold_for_s" in str(to_json(goal))
