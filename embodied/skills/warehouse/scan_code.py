"""scan_code: read the printed code of a carrier with the robot's code camera."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

from embodied.graph.facts import Fact, Graph, fact
from embodied.skills.contract import (
    SUCCESS,
    Outcome,
    Parameter,
    Skill,
    SkillCall,
    SkillContext,
    SkillRun,
    Unmet,
    failed,
)
from embodied.skills.warehouse.common import KINDS, is_under, liftables

_TRIES_S = 1.0  # twenty pictures


class Reading(Protocol):
    """One code that a reader decoded."""

    @property
    def text(self) -> str:
        """Text of the code."""
        ...


@runtime_checkable
class ReadsCodes(Protocol):
    """A robot with a code reader, simulated or real."""

    def read_codes(self) -> Sequence[Reading]:
        """Return what is readable now."""
        ...


class ScanCode(Skill):
    """Read the code of the carrier above the robot."""

    name = "scan_code"
    summary = "Read the printed code below the carrier that the robot stands under."
    parameters = (Parameter(name="thing", kind="object", summary="the carrier whose code is read"),)
    robot_kinds = KINDS
    failure_codes = ("code_unreadable", "wrong_code", "no_reader")
    timeout_s = 10.0
    labels = frozenset({"perception"})

    def groundings(self, graph: Graph, agent: str) -> Iterable[SkillCall]:
        """Yield every carrier."""
        for name in liftables(graph):
            yield SkillCall.of(self.name, thing=name)

    def unmet(self, graph: Graph, agent: str, call: SkillCall) -> tuple[Unmet, ...]:
        """The robot is under the carrier."""
        thing = str(call.arg("thing"))
        if thing not in liftables(graph):
            return (Unmet(message=f"{thing} carries no code that this robot can read"),)
        if is_under(graph, agent, thing) or graph.holds("lifted", agent, thing):
            return ()
        missing = fact("at", agent, thing)
        return (Unmet(message=f"{agent} is not under {thing}; drive_to {thing} first", missing=missing),)

    def effects(self, graph: Graph, agent: str, call: SkillCall) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """Its code is known."""
        return frozenset({fact("scanned", str(call.arg("thing")))}), frozenset()

    def cost_s(self, graph: Graph, agent: str, call: SkillCall) -> float:
        """One picture and its decoding."""
        return 0.5

    def start(self, ctx: SkillContext, call: SkillCall) -> SkillRun:
        """Begin to look."""
        return _ScanRun(ctx, str(call.arg("thing")))


class _ScanRun:
    def __init__(self, ctx: SkillContext, thing: str) -> None:
        self._thing = thing
        self._began_s = ctx.time_s

    def tick(self, ctx: SkillContext) -> Outcome | None:
        """Read until the expected code comes or the time is up."""
        ctx.robot.stop()
        if not isinstance(ctx.robot, ReadsCodes):
            return failed("no_reader", f"{ctx.agent} has no code reader.")
        texts = [r.text for r in ctx.robot.read_codes()]
        expected = ctx.view.info.entities[self._thing].label
        if expected is not None and expected in texts:
            ctx.log("code", {"agent": ctx.agent, "thing": self._thing, "text": expected})
            ctx.set_state(self._thing, "scanned", True)
            return SUCCESS
        if ctx.time_s - self._began_s < _TRIES_S:
            return None
        if texts:
            return failed("wrong_code", f"Read {texts[0]!r}, expected that of {self._thing}.", text=texts[0])
        return failed("code_unreadable", f"No code of {self._thing} in sight: out of range, slanted or hidden.")

    def cancel(self, ctx: SkillContext) -> None:
        """Stand still."""
        ctx.robot.stop()
