"""The planner contract: from what an agent believes and sees to the skills it wants to run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from embodied.errors import PrivilegedReadError
from embodied.graph.facts import Graph
from embodied.skills.contract import Outcome, Skill, SkillCall

if TYPE_CHECKING:
    from embodied.tasks.contract import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a planner answers.

    Attributes:
      calls: skills to run in order; the agent asks again after the last one or after a failure.
      message: words to say to the other agents or the user, empty for none.
      confidence: the planner's own estimate in [0, 1], or None.
      expected: what it expects to observe afterwards, empty for nothing.
    """

    calls: tuple[SkillCall, ...]
    message: str = ""
    confidence: float | None = None
    expected: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One line of an agent's memory: a call it made and how it ended."""

    time_s: float
    call: SkillCall
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message between agents."""

    time_s: float
    sender: str
    receiver: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What is left to an agent."""

    sim_time_s: float
    decisions: int


@dataclass(kw_only=True)
class PlannerView:
    """All that a planner may look at. Images are rendered only when asked for.

    Attributes:
      graph: the agent's belief.
      skills: the skills of this agent's robot, by name.
      admissible: calls whose preconditions hold in the belief (computed on first use).
      images: call it to get {camera name: (H, W, 3) uint8 rgb} of the present moment.
    """

    agent: str
    instruction: str
    time_s: float
    graph: Graph
    skills: dict[str, Skill]
    memory: Sequence[Step]
    inbox: Sequence[Message]
    budget: Budget
    images: Callable[[], dict[str, NDArray[np.uint8]]]
    _truth: Callable[[], tuple[Graph, Task]] | None = field(default=None, repr=False)

    @property
    def admissible(self) -> tuple[SkillCall, ...]:
        """Calls that may start now, sorted by their text."""
        calls = [
            call
            for skill in self.skills.values()
            for call in skill.groundings(self.graph, self.agent)
            if not skill.unmet(self.graph, self.agent, call)
        ]
        return tuple(sorted(calls, key=str))

    def truth(self) -> tuple[Graph, Task]:
        """Return the truth graph and the task with its goal: the privileged, tainted channel.

        Raises:
          PrivilegedReadError: this planner was not declared privileged.
        """
        if self._truth is None:
            raise PrivilegedReadError(
                "This planner read the truth but is not declared privileged. "
                "Set `privileged = True` on the planner class to be reported as such, or plan from `view.graph`."
            )
        return self._truth()


class Planner(Protocol):
    """Chooses skills for one agent.

    ``privileged`` planners may call :meth:`PlannerView.truth`; the report marks them.
    """

    privileged: bool

    def reset(self, agent: str, seed: int) -> None:
        """Begin an episode."""
        ...

    def act(self, view: PlannerView) -> Plan:
        """Answer with the next skills.

        Raises:
          PlannerError: no answer could be had (time-out, malformed after retries); counted as an outcome of its own.
        """
        ...
