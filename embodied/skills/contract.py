"""The skill contract: one symbolic model for planners, validators and the symbolic world, one run for robots.

A skill is named and typed, says when it may start, what it changes and what it costs, and how it fails. Its run is
ticked at the robot's control rate and sees the world only through a :class:`SceneView` and the robot contract.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from embodied.graph.facts import Fact, Graph
from embodied.worlds.contract import StateValue
from embodied_deploy.robot import Robot
from embodied_scenes.info import SceneInfo

Array = NDArray[np.float64]
ArgValue = str | float
ParameterKind = Literal["object", "fixture", "place", "room", "agent", "entity", "choice", "text", "number"]


class Status(StrEnum):
    """Life of a skill run."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    PREEMPTED = "preempted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One typed argument; ``choices`` only for kind ``choice``."""

    name: str
    kind: ParameterKind
    summary: str
    choices: tuple[str, ...] = ()
    required: bool = True


@dataclass(frozen=True, slots=True)
class SkillCall:
    """A skill with its arguments, as a planner asks for it. Hashable; ``args`` keeps the order of the parameters."""

    skill: str
    args: tuple[tuple[str, ArgValue], ...] = ()

    @classmethod
    def of(cls, skill: str, **args: ArgValue) -> SkillCall:
        """Build a call from keyword arguments."""
        return cls(skill, tuple(args.items()))

    def arg(self, name: str, default: ArgValue | None = None) -> ArgValue:
        """Return one argument.

        Raises:
          KeyError: it is absent and no default was given.
        """
        for key, value in self.args:
            if key == name:
                return value
        if default is None:
            raise KeyError(f"{self} carries no argument {name!r}")
        return default

    def __str__(self) -> str:
        return f"{self.skill}({', '.join(str(v) for _, v in self.args)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmet:
    """A precondition that does not hold, in words and as the fact that is missing."""

    message: str
    missing: Fact | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a skill run ended.

    Attributes:
      code: one of the skill's failure codes, empty on success.
      facts: what was observed at the failure and a planner can use (``blocked_by``, ``distance_m`` …).
    """

    status: Status
    code: str = ""
    message: str = ""
    facts: Mapping[str, str | float] = field(default_factory=dict)


SUCCESS = Outcome(status=Status.SUCCEEDED)


def failed(code: str, message: str, **facts: str | float) -> Outcome:
    """Build a failure outcome."""
    return Outcome(status=Status.FAILED, code=code, message=message, facts=facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityPose:
    """A pose in the world: (3,) metres and (4,) scalar-first quaternion."""

    pos_world_m: Array
    quat_wxyz: Array


class SceneView(Protocol):
    """What a skill may know of the world: the static map, and poses as believed (or true, for privileged agents)."""

    @property
    def info(self) -> SceneInfo:
        """Static meaning of the scene."""
        ...

    @property
    def graph(self) -> Graph:
        """Believed facts."""
        ...

    def pose(self, entity: str) -> EntityPose | None:
        """Pose of an entity, robot or place; None if unknown."""
        ...

    def body_pose(self, body: str) -> EntityPose | None:
        """Pose of one body of an entity (a door, a drawer)."""
        ...

    def opening(self, entity: str) -> float:
        """Opening fraction of an openable entity in [0, 1]."""
        ...

    def footprints(self, *, ignore: Sequence[str] = ()) -> Array:
        """(n, 5) floor boxes of obstacles, other robots too: centre x, y [m], half x, half y [m], yaw [rad]."""
        ...


@dataclass(kw_only=True)
class SkillContext:
    """What a skill run is given each tick.

    Attributes:
      set_state: change a state-machine value, ``set_state(entity, key, value)``.
      services: shared helpers by name, such as ``traffic`` (path reservations of a fleet), ``messages``, ``camera``.
      log: record an event of the skill, ``log(kind, payload)``.
    """

    agent: str
    robot: Robot
    view: SceneView
    time_s: float
    rng: np.random.Generator
    set_state: Callable[[str, str, StateValue], None]
    services: Mapping[str, object] = field(default_factory=dict)
    log: Callable[[str, Mapping[str, object]], None] = lambda kind, payload: None


class SkillRun(Protocol):
    """One execution in progress."""

    def tick(self, ctx: SkillContext) -> Outcome | None:
        """Advance by one control period; None while running. Must send a command each tick."""
        ...

    def cancel(self, ctx: SkillContext) -> None:
        """Stop early and leave the robot in its safe state."""
        ...


class Skill(ABC):
    """Base of all skills; instances carry no state."""

    name: ClassVar[str]
    summary: ClassVar[str]
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    robot_kinds: ClassVar[frozenset[str]]
    failure_codes: ClassVar[tuple[str, ...]]
    timeout_s: ClassVar[float] = 60.0
    interruptible: ClassVar[bool] = True
    labels: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def groundings(self, graph: Graph, agent: str) -> Iterable[SkillCall]:
        """Yield the calls that make sense for this agent in this graph, whether or not they may start now."""

    @abstractmethod
    def unmet(self, graph: Graph, agent: str, call: SkillCall) -> tuple[Unmet, ...]:
        """Return the preconditions that do not hold; empty means the call may start."""

    @abstractmethod
    def effects(self, graph: Graph, agent: str, call: SkillCall) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """Return (added, removed) facts of a successful run."""

    @abstractmethod
    def start(self, ctx: SkillContext, call: SkillCall) -> SkillRun:
        """Begin a run on the robot of ``ctx``."""

    def cost_s(self, graph: Graph, agent: str, call: SkillCall) -> float:
        """Estimate the duration of a successful run."""
        return 5.0

    def text(self, call: SkillCall) -> str:
        """Say the call in words, for prompts and reports."""
        return " ".join([self.name.replace("_", " "), *(str(v) for _, v in call.args)])
