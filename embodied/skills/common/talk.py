"""Saying something: ``message`` to another agent, ``ask`` the user."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, cast

from embodied.errors import SkillError
from embodied.graph.facts import Fact, Graph
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

MAX_TEXT = 2000
USER = "user"


class Bus(Protocol):
    """What the service ``messages`` offers."""

    def send(self, sender: str, receiver: str, text: str, time_s: float) -> int:
        """Deliver a text and return how many agents received it."""
        ...


class _SayRun:
    """Says one sentence in its first tick."""

    def __init__(self, receiver: str, text: str) -> None:
        self._receiver, self._text = receiver, text

    def tick(self, ctx: SkillContext) -> Outcome | None:
        ctx.robot.stop()
        bus = ctx.services.get("messages")
        if bus is None:
            return failed("no_channel", "This episode has no message bus.")
        received = cast("Bus", bus).send(ctx.agent, self._receiver, self._text, ctx.time_s)
        ctx.log("message", {"receiver": self._receiver, "text": self._text})
        if received == 0 and self._receiver not in (USER, "all"):
            return failed("unknown_receiver", f"Nobody called {self._receiver!r} listens.", receiver=self._receiver)
        return SUCCESS

    def cancel(self, ctx: SkillContext) -> None:
        ctx.robot.stop()


def _checked_text(skill: str, text: object) -> str:
    if not isinstance(text, str) or not text.strip():
        raise SkillError(f"{skill}: text must be words, got {text!r}.")
    if len(text) > MAX_TEXT:
        raise SkillError(f"{skill}: a text has at most {MAX_TEXT} characters, got {len(text)}.")
    return text


class MessageSkill(Skill):
    """Send a text to one agent, or to ``all``."""

    name = "message"
    summary = "send a text to another agent, or to all of them"
    parameters = (
        Parameter(name="receiver", kind="text", summary="name of an agent, or all"),
        Parameter(name="text", kind="text", summary="what to say"),
    )
    robot_kinds = frozenset({"any"})
    failure_codes = ("no_channel", "unknown_receiver")
    timeout_s = 5.0
    labels = frozenset({"communication"})

    def groundings(self, graph: Graph, agent: str) -> Iterable[SkillCall]:
        """Nothing: the words are the planner's own."""
        del graph, agent
        return ()

    def unmet(self, graph: Graph, agent: str, call: SkillCall) -> tuple[Unmet, ...]:
        """The receiver must be another agent, or ``all``."""
        receiver = str(call.arg("receiver"))
        node = graph.nodes.get(receiver)
        if receiver == "all" or (node is not None and node.kind == "agent" and receiver != agent):
            return ()
        others = sorted(n.name for n in graph.of_kind("agent") if n.name != agent)
        return (Unmet(message=f"no other agent is called {receiver!r}; there are: {', '.join(others) or 'none'}"),)

    def effects(self, graph: Graph, agent: str, call: SkillCall) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """Words change no facts."""
        del graph, agent, call
        return frozenset(), frozenset()

    def start(self, ctx: SkillContext, call: SkillCall) -> SkillRun:
        """Begin; the text is sent with the first tick."""
        del ctx
        return _SayRun(str(call.arg("receiver")), _checked_text(self.name, call.arg("text")))

    def cost_s(self, graph: Graph, agent: str, call: SkillCall) -> float:
        """Talking takes a moment."""
        del graph, agent, call
        return 1.0


class AskSkill(Skill):
    """Put a question to the user; an answer, if any, comes as a message."""

    name = "ask"
    summary = "ask the user a question"
    parameters = (Parameter(name="text", kind="text", summary="the question"),)
    robot_kinds = frozenset({"any"})
    failure_codes = ("no_channel",)
    timeout_s = 5.0
    labels = frozenset({"communication"})

    def groundings(self, graph: Graph, agent: str) -> Iterable[SkillCall]:
        """Nothing: the words are the planner's own."""
        del graph, agent
        return ()

    def unmet(self, graph: Graph, agent: str, call: SkillCall) -> tuple[Unmet, ...]:
        """Asking is always possible."""
        del graph, agent, call
        return ()

    def effects(self, graph: Graph, agent: str, call: SkillCall) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """Words change no facts."""
        del graph, agent, call
        return frozenset(), frozenset()

    def start(self, ctx: SkillContext, call: SkillCall) -> SkillRun:
        """Begin; the question is sent with the first tick."""
        del ctx
        return _SayRun(USER, _checked_text(self.name, call.arg("text")))

    def cost_s(self, graph: Graph, agent: str, call: SkillCall) -> float:
        """Asking takes a moment."""
        del graph, agent, call
        return 1.0


MESSAGE, ASK = MessageSkill(), AskSkill()
