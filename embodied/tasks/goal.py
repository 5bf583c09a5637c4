"""Goals as programs over facts.

A goal is a tree: facts, negation, all-of, any-of, n-of, and two temporal marks, ``Latched`` (once true, it stays) and
``HoldFor`` (true without a break for a time). :class:`GoalTracker` follows a goal over a run of graphs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from embodied.errors import TaskError
from embodied.graph.facts import Fact, Graph


@dataclass(frozen=True, slots=True)
class Holds:
    """A fact must be true."""

    fact: Fact


@dataclass(frozen=True, slots=True)
class Not:
    """Its part must be false."""

    part: Goal


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every part must hold."""

    parts: tuple[Goal, ...]


@dataclass(frozen=True, slots=True)
class AtLeast:
    """At least ``count`` of the parts must hold; ``count`` 1 is any-of."""

    count: int
    parts: tuple[Goal, ...]
    exactly: bool = False


@dataclass(frozen=True, slots=True)
class Latched:
    """Once its part was true it counts as true for the rest of the episode."""

    part: Goal


@dataclass(frozen=True, slots=True)
class HoldFor:
    """Its part must hold for ``duration_s`` without a break."""

    part: Goal
    duration_s: float


Goal = Holds | Not | AllOf | AtLeast | Latched | HoldFor


def any_of(*parts: Goal) -> AtLeast:
    """Goal that holds when one of ``parts`` does."""
    return AtLeast(1, parts)


class GoalTracker:
    """Follows one goal over time; feed it every change with :meth:`update`."""

    def __init__(self, goal: Goal) -> None:
        self.goal = goal
        self._latched: set[int] = set()
        self._since_s: dict[int, float] = {}

    def update(self, graph: Graph, time_s: float) -> bool:
        """Take the graph that holds from ``time_s`` on; return whether the goal holds now."""
        return self._holds(self.goal, graph, time_s)

    def fraction(self, graph: Graph, time_s: float) -> float:
        """Return how much of the goal holds, in [0, 1]: the mean over the parts of a conjunction."""
        return self._fraction(self.goal, graph, time_s)

    def unmet(self, graph: Graph, time_s: float) -> tuple[str, ...]:
        """Say which leaves of a conjunction do not hold."""
        parts = self.goal.parts if isinstance(self.goal, AllOf) else (self.goal,)
        return tuple(describe(p) for p in parts if not self._holds(p, graph, time_s))

    def _holds(self, goal: Goal, graph: Graph, time_s: float) -> bool:
        if isinstance(goal, Holds):
            return goal.fact in graph.facts
        if isinstance(goal, Not):
            return not self._holds(goal.part, graph, time_s)
        if isinstance(goal, AllOf):
            return all([self._holds(p, graph, time_s) for p in goal.parts])
        if isinstance(goal, AtLeast):
            count = sum([self._holds(p, graph, time_s) for p in goal.parts])
            return count == goal.count if goal.exactly else count >= goal.count
        if isinstance(goal, Latched):
            if self._holds(goal.part, graph, time_s):
                self._latched.add(id(goal))
            return id(goal) in self._latched
        if self._holds(goal.part, graph, time_s):
            return time_s - self._since_s.setdefault(id(goal), time_s) >= goal.duration_s
        self._since_s.pop(id(goal), None)
        return False

    def _fraction(self, goal: Goal, graph: Graph, time_s: float) -> float:
        if isinstance(goal, AllOf):
            return sum(self._fraction(p, graph, time_s) for p in goal.parts) / max(len(goal.parts), 1)
        if isinstance(goal, AtLeast) and not goal.exactly and goal.count > 0:
            best = sorted((self._fraction(p, graph, time_s) for p in goal.parts), reverse=True)
            return sum(best[: goal.count]) / goal.count
        return float(self._holds(goal, graph, time_s))


def goal_facts(goal: Goal) -> frozenset[Fact]:
    """Return every fact a goal speaks of."""
    if isinstance(goal, Holds):
        return frozenset([goal.fact])
    if isinstance(goal, AllOf | AtLeast):
        return frozenset().union(*(goal_facts(p) for p in goal.parts))
    return goal_facts(goal.part)


def describe(goal: Goal) -> str:
    """Say a goal in words."""
    if isinstance(goal, Holds):
        return str(goal.fact)
    if isinstance(goal, Not):
        return f"not {describe(goal.part)}"
    if isinstance(goal, AllOf):
        return "(" + " and ".join(describe(p) for p in goal.parts) + ")" if goal.parts else "nothing"
    if isinstance(goal, AtLeast):
        words = "exactly" if goal.exactly else "at least"
        return f"{words} {goal.count} of (" + "; ".join(describe(p) for p in goal.parts) + ")"
    if isinstance(goal, Latched):
        return f"once {describe(goal.part)}"
    return f"{describe(goal.part)} for {goal.duration_s:g} s"


def to_json(goal: Goal) -> dict[str, Any]:
    """Return a plain form that :func:`from_json` reads back to an equal goal."""
    if isinstance(goal, Holds):
        return {"holds": [goal.fact.predicate, *goal.fact.args]}
    if isinstance(goal, Not):
        return {"not": to_json(goal.part)}
    if isinstance(goal, AllOf):
        return {"all": [to_json(p) for p in goal.parts]}
    if isinstance(goal, AtLeast):
        return {"at_least": goal.count, "exactly": goal.exactly, "of": [to_json(p) for p in goal.parts]}
    if isinstance(goal, Latched):
        return {"latched": to_json(goal.part)}
    return {"hold_for_s": goal.duration_s, "part": to_json(goal.part)}


def from_json(data: Mapping[str, Any]) -> Goal:
    """Read a goal from its plain form.

    Raises:
      TaskError: the form is none of those that :func:`to_json` writes.
    """
    try:
        if "holds" in data:
            predicate, *args = data["holds"]
            return Holds(Fact(str(predicate), tuple(str(a) for a in args)))
        if "not" in data:
            return Not(from_json(data["not"]))
        if "all" in data:
            return AllOf(_many(data["all"]))
        if "at_least" in data:
            return AtLeast(int(data["at_least"]), _many(data["of"]), bool(data.get("exactly", False)))
        if "latched" in data:
            return Latched(from_json(data["latched"]))
        if "hold_for_s" in data:
            return HoldFor(from_json(data["part"]), float(data["hold_for_s"]))
    except (KeyError, TypeError, ValueError) as error:
        raise TaskError(f"A goal part is malformed: {data!r} ({error}).") from error
    raise TaskError(f"A goal part must have one of holds, not, all, at_least, latched, hold_for_s; got {sorted(data)}.")


def _many(items: Sequence[Mapping[str, Any]]) -> tuple[Goal, ...]:
    return tuple(from_json(i) for i in items)
