"""A task: one episode that can be run, judged and repeated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from embodied.skills.contract import SkillCall
from embodied.tasks.goal import Goal
from embodied.worlds.contract import Start
from embodied_scenes.spec import SceneSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """One agent: its robot and where it starts.

    Attributes:
      robot: id in the registry of robots.
      pos_m: (x, y, z) of the robot's root in the world.
    """

    name: str
    robot: str
    pos_m: tuple[float, float, float]
    yaw_rad: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """Limits of an episode; passing one ends it as not successful."""

    sim_time_s: float = 300.0
    decisions: int = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One episode.

    Attributes:
      id: ``family/name@version``.
      seed: what the family made it from.
      scene: the whole scene, extra entities of this task included; equal scenes compile once.
      start: poses, openings and states that a reset writes.
      goal: what must hold; see :mod:`embodied.tasks.goal`.
      constraints: goals that must hold at every moment.
      witness: agent to a plan that solves it; checked on the symbolic world by the tests.
      feasible: False for variants where abstaining is right.
      prior: what agents know at the start: ``map`` (fixtures, rooms and places) or ``inventory`` (all things too).
    """

    id: str
    seed: int
    scene: SceneSpec
    agents: tuple[AgentSpec, ...]
    start: Start
    instruction: str
    goal: Goal
    paraphrases: tuple[str, ...] = ()
    constraints: tuple[Goal, ...] = ()
    budgets: Budgets = Budgets()
    witness: Mapping[str, tuple[SkillCall, ...]] = field(default_factory=dict)
    feasible: bool = True
    prior: Literal["map", "inventory"] = "map"
    log_hz: float = 10.0


class TaskFamily(Protocol):
    """A generator of tasks, registered under ``family/name@version``."""

    id: str
    summary: str

    def make(self, seed: int) -> Task:
        """Return the task of a seed: same seed, same task.

        Raises:
          TaskError: the family cannot make a solvable task from what it was given.
        """
        ...
