"""Staying where one is: ``wait``, and the two ends of an episode, ``done`` and ``abstain``."""

from __future__ import annotations

import math
from collections.abc import Iterable

from embodied.errors import SkillError
from embodied.graph.facts import Fact, Graph
from embodied.skills.contract import SUCCESS, Outcome, Parameter, Skill, SkillCall, SkillContext, SkillRun, Unmet

MAX_WAIT_S = 300.0


class _HoldRun:
    """Keeps the robot in its safe state for a time."""

    def __init__(self, duration_s: float) -> None:
        self._duration_s = duration_s
        self._until_s: float | None = None

    def tick(self, ctx: SkillContext) -> Outcome | None:
        ctx.robot.stop()
        if self._until_s is None:
            self._until_s = ctx.time_s + self._duration_s
        return SUCCESS if ctx.time_s >= self._until_s - 1e-9 else None

    def cancel(self, ctx: SkillContext) -> None:
        ctx.robot.stop()


class _Still(Skill):
    """What the skills of this module share."""

    robot_kinds = frozenset({"any"})
    failure_codes = ()

    def unmet(self, graph: Graph, agent: str, call: SkillCall) -> tuple[Unmet, ...]:
        """Staying is always possible."""
        del graph, agent, call
        return ()

    def effects(self, graph: Graph, agent: str, call: SkillCall) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """Staying changes no facts."""
        del graph, agent, call
        return frozenset(), frozenset()


class WaitSkill(_Still):
    """Do nothing for a while."""

    name = "wait"
    summary = "keep still for some seconds"
    parameters = (Parameter(name="duration_s", kind="number", summary=f"seconds, 0 to {MAX_WAIT_S:g}"),)
    timeout_s = MAX_WAIT_S + 5.0

    def groundings(self, graph: Graph, agent: str) -> Iterable[SkillCall]:
        """Offer one short wait."""
        del graph, agent
        yield SkillCall.of("wait", duration_s=5.0)

    def start(self, ctx: SkillContext, call: SkillCall) -> SkillRun:
        """Begin to wait.

        Raises:
          SkillError: the duration is no number within the limits.
        """
        del ctx
        return _HoldRun(_seconds(call.arg("duration_s")))

    def cost_s(self, graph: Graph, agent: str, call: SkillCall) -> float:
        """The duration asked for."""
        del graph, agent
        return _seconds(call.arg("duration_s"))


class DoneSkill(_Still):
    """Say that the task is done; ends the episode for this agent."""

    name = "done"
    summary = "say that the goal is reached; ends your part"
    timeout_s = 5.0
    labels = frozenset({"final"})

    def groundings(self, graph: Graph, agent: str) -> Iterable[SkillCall]:
        """Always offered."""
        del graph, agent
        yield SkillCall("done")

    def start(self, ctx: SkillContext, call: SkillCall) -> SkillRun:
        """Begin."""
        del ctx, call
        return _HoldRun(0.0)

    def cost_s(self, graph: Graph, agent: str, call: SkillCall) -> float:
        """A word costs next to nothing."""
        del graph, agent, call
        return 0.1


class AbstainSkill(DoneSkill):
    """Say that the task cannot or should not be done; ends the episode for this agent."""

    name = "abstain"
    summary = "say that the goal cannot be reached, and why; ends your part"
    parameters = (Parameter(name="reason", kind="text", summary="why", required=False),)

    def groundings(self, graph: Graph, agent: str) -> Iterable[SkillCall]:
        """Always offered, without a reason."""
        del graph, agent
        yield SkillCall("abstain")


def _seconds(value: object) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(float(value)) or not 0.0 <= float(value) <= MAX_WAIT_S:  # type: ignore[arg-type]
        raise SkillError(f"wait: duration_s must be a number of seconds from 0 to {MAX_WAIT_S:g}, got {value!r}.")
    return float(value)  # type: ignore[arg-type]


WAIT, DONE, ABSTAIN = WaitSkill(), DoneSkill(), AbstainSkill()
