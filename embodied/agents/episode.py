"""One episode from a request to a result: build the world, run the agents, write the log, judge it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from embodied import __version__
from embodied.agents.bodies import Body, PhysicalBody, SymbolicBody
from embodied.agents.eyes import Eyes
from embodied.agents.messages import MessageBus
from embodied.agents.recorder import Recorder
from embodied.agents.runtime import AgentRuntime
from embodied.agents.services import make_services
from embodied.catalog import ROBOTS, SKILLS, TASKS, WORLDS
from embodied.errors import TaskError, WorldError, nearest_hint
from embodied.graph.facts import Graph
from embodied.planners.contract import Planner
from embodied.robots.base import RobotSpec, SimRobot, make_robot, robot_start
from embodied.seeding import stream_rng, stream_seed
from embodied.skills.contract import Skill
from embodied.tasks.contract import AgentSpec, Task
from embodied.tasks.evaluator import evaluate
from embodied.tasks.goal import goal_facts
from embodied.worlds.contract import PhysicsWorld, Start, World
from embodied_scenes.builders import CompiledScene, RobotMount, SceneBuildError, compile_scene


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeRequest:
    """What to run. Picklable, so that a worker process can take it.

    Attributes:
      task_id: id of a task family.
      seed: seed of the task and of everything random in the episode.
      planner: planner spec, for instance ``oracle`` or ``openai:gpt-x``.
      world: backend.
      log_path: where the episode log goes; None keeps it in memory.
      options: further options, for instance ``{"task": {…}}`` passed to the family.
    """

    task_id: str
    seed: int
    planner: str = "oracle"
    world: str = "mujoco"
    log_path: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeResult:
    """How it ended; all in simulated time, so that equal runs give equal results (``planner_stats`` apart)."""

    task_id: str
    seed: int
    success: bool
    fraction: float
    initial_fraction: float
    outcome: str
    reason: str
    sim_time_s: float
    decisions: int
    skill_steps: int
    privileged: bool
    planner_stats: dict[str, Any]
    log_path: str | None


class Episode:
    """A world with its agents, ready to run. Use :func:`run_episode` unless you want to step it yourself.

    Args:
      task: what to do.
      planners: agent name to planner.
      world_name: backend.
      seed: root seed of all streams.
      recorder: takes facts, events and states.
    """

    def __init__(
        self, task: Task, planners: Mapping[str, Planner], world_name: str, seed: int, recorder: Recorder
    ) -> None:
        self.task, self.seed, self.recorder = task, seed, recorder
        self.specs: dict[str, RobotSpec] = {a.name: ROBOTS.get(a.robot) for a in task.agents}
        self.scene = compile_task(task, self.specs)
        self.world: World = WORLDS.get(world_name)(self.scene)
        self.world.reset(stream_seed(seed, "physics"), task_start(task, self.specs))
        check_names(task, self.world.graph())
        self.bus = MessageBus(tuple(self.specs))
        self.robots: dict[str, SimRobot] = {}
        if world_name != "symbolic":
            physics = cast("PhysicsWorld", self.world)
            self.robots = {name: make_robot(physics, name, spec) for name, spec in self.specs.items()}
            for robot in self.robots.values():
                robot.reset()
        self.eyes = {name: Eyes(robot.world, robot) for name, robot in self.robots.items()}
        self.services = make_services(self.specs, self.bus, self.eyes)
        self.dt_tick_s = self._tick_period()
        self.agents = [self._make_agent(name, planners[name]) for name in self.specs]
        self._ticks = 0

    def run(self) -> str:
        """Run to the end; return the outcome ``finished``, ``timeout`` or ``planner_failure``."""
        self.recorder.begin(self.world, self.robots)
        while True:
            outcome = self.outcome()
            if outcome:
                break
            self.tick()
        time_s = self.world.time_s()
        for agent in self.agents:
            agent.stop(time_s)
        self.recorder.end(self.world, self.robots, outcome)
        return outcome

    def outcome(self) -> str:
        """Return how the episode stands: empty while it runs."""
        if all(a.is_finished for a in self.agents):
            return "planner_failure" if any(a.finished == "planner_failure" for a in self.agents) else "finished"
        return "timeout" if self.world.time_s() >= self.task.budgets.sim_time_s else ""

    def tick(self) -> None:
        """Advance all agents and the world by one period."""
        time_s = self.world.time_s()
        for agent in self.agents:
            if self._is_due(agent.agent):
                agent.tick(time_s)
        self.world.step(round(self.dt_tick_s / self.world.dt_sim_s))
        self._ticks += 1
        self.recorder.observe(self.world, self.robots)

    def _is_due(self, agent: str) -> bool:
        if not self.robots:
            return True
        return self._ticks % max(round(self.specs[agent].dt_ctrl_s / self.dt_tick_s), 1) == 0

    def _tick_period(self) -> float:
        return min(s.dt_ctrl_s for s in self.specs.values()) if self.robots else self.world.dt_sim_s

    def _make_agent(self, name: str, planner: Planner) -> AgentRuntime:
        kind = self.specs[name].kind
        skills: dict[str, Skill] = {}
        for entry in SKILLS:
            skill = entry.load()
            if kind in skill.robot_kinds or "any" in skill.robot_kinds:
                skills[skill.name] = skill
        planner.reset(name, stream_seed(self.seed, "planner", name))
        log = self.recorder.event
        body: Body
        if self.robots:
            body = PhysicalBody(
                cast("PhysicsWorld", self.world),
                self.robots[name],
                stream_rng(self.seed, "policy", name),
                self.services,
                lambda kind, payload: log(self.world.time_s(), kind, {"agent": name, **payload}),
                is_privileged=planner.privileged,
                prior=prior_belief(self.world.graph(), self.task.prior),
                eyes=self.eyes[name],
            )
        else:
            from embodied.worlds.symbolic import SymbolicWorld

            body = SymbolicBody(cast("SymbolicWorld", self.world), name)
        return AgentRuntime(name, body, planner, skills, self.task, self.bus, log, self.world.graph)


def compile_task(task: Task, specs: Mapping[str, RobotSpec]) -> CompiledScene:
    """Compile a task's scene with its robots (cached).

    Raises:
      TaskError: the scene cannot be built.
    """
    mounts = [_mount(a, specs[a.name]) for a in task.agents]
    try:
        return compile_scene(task.scene, mounts)
    except SceneBuildError as error:
        raise TaskError(f"Task {task.id} (seed {task.seed}): {error}") from error


def _mount(agent: AgentSpec, spec: RobotSpec) -> RobotMount:
    if spec.root == "fixed":
        return RobotMount(name=agent.name, kind=spec.kind, mjcf=spec.mjcf, pos_m=agent.pos_m, yaw_rad=agent.yaw_rad)
    return RobotMount(name=agent.name, kind=spec.kind, mjcf=spec.mjcf)


def task_start(task: Task, specs: Mapping[str, RobotSpec]) -> Start:
    """Return the start of a task with its robots placed in their home postures."""
    poses, joints = dict(task.start.poses), dict(task.start.joint_pos)
    for agent in task.agents:
        joints.update(robot_start(agent.name, specs[agent.name]))
        if specs[agent.name].root == "fixed":
            continue
        half = agent.yaw_rad / 2
        x_m, y_m, z_m = agent.pos_m
        z_m = z_m + specs[agent.name].height_m
        poses[agent.name] = (x_m, y_m, z_m, float(np.cos(half)), 0.0, 0.0, float(np.sin(half)))
    return Start(poses=poses, joints=task.start.joints, joint_pos=joints, states=task.start.states)


def check_names(task: Task, graph: Graph) -> None:
    """Refuse a goal or constraint that speaks of what the scene does not hold: it could never be reached.

    Raises:
      TaskError: names the fact, the unknown name and the nearest known ones.
    """
    for goal in (task.goal, *task.constraints):
        for f in sorted(goal_facts(goal)):
            unknown = [a for a in f.args if a not in graph.nodes]
            if unknown:
                raise TaskError(
                    f"Task {task.id} (seed {task.seed}): the goal {f} can never hold, scene {task.scene.id!r} has no "
                    f"{unknown[0]!r}. {nearest_hint(unknown[0], graph.nodes)}"
                )


def prior_belief(truth: Graph, prior: str) -> Graph:
    """Return what an agent knows before it looked: all, or all but the movable things."""
    if prior == "inventory":
        return truth
    movable = {n.name for n in truth.nodes.values() if n.kind == "object"}
    return Graph(truth.nodes, frozenset(f for f in truth.facts if not movable.intersection(f.args)))


def run_episode(request: EpisodeRequest) -> EpisodeResult:
    """Run one episode.

    Args:
      request: what to run.

    Returns:
      The result; a physics failure is the outcome ``crash``, with the log kept up to that moment.

    Raises:
      TaskError: the task cannot be made or built.
      UnknownNameError: an unknown task, planner, world or robot.
    """
    from embodied.planners.factory import make_planner

    task = TASKS.get(request.task_id).make(request.seed, **request.options.get("task", {}))
    planners = {a.name: make_planner(request.planner) for a in task.agents}
    is_privileged = any(p.privileged for p in planners.values())
    recorder = Recorder(task, request, is_privileged, __version__)
    try:
        episode = Episode(task, planners, request.world, request.seed, recorder)
        try:
            outcome, trouble = episode.run(), ""
        except WorldError as error:
            outcome, trouble = "crash", str(error)
            recorder.event(episode.world.time_s(), "crash", {"message": trouble})
            recorder.event(episode.world.time_s(), "end", {"outcome": outcome})
    finally:
        recorder.close()
    score = evaluate(task, recorder.changes, recorder.events)
    is_success = score.success and outcome != "crash"
    return EpisodeResult(
        task_id=task.id,
        seed=request.seed,
        success=is_success,
        fraction=score.fraction,
        initial_fraction=score.initial_fraction,
        outcome=_outcome_word(outcome, is_success, [a.finished for a in episode.agents]),
        reason=trouble or score.reason,
        sim_time_s=episode.world.time_s(),
        decisions=sum(a.decisions for a in episode.agents),
        skill_steps=sum(a.skill_steps for a in episode.agents),
        privileged=is_privileged,
        planner_stats=_planner_stats(planners),
        log_path=str(request.log_path) if request.log_path else None,
    )


def _outcome_word(outcome: str, is_success: bool, finished: list[str]) -> str:
    if outcome in ("crash", "planner_failure"):
        return outcome
    if is_success:
        return "success"
    if outcome == "timeout":
        return "timeout"
    if "decisions_used_up" in finished:
        return "decisions_used_up"
    return "abstained" if "abstain" in finished else "failure"


def _planner_stats(planners: Mapping[str, Planner]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, planner in planners.items():
        stats = getattr(planner, "stats", None)
        if stats is not None:
            found[name] = stats() if callable(stats) else stats
    return found
