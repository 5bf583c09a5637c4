"""A planning problem over opaque skills: which calls exist, what they reach, what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from embodied.graph.facts import Fact, Graph
from embodied.planners.search.goals import Latches, advance, latches_in, satisfied
from embodied.planners.search.graph import IndexedGraph
from embodied.skills.contract import Skill, SkillCall, Unmet
from embodied.tasks.goal import AllOf, Goal, Holds, Not

_MIN_COST_S = 0.1  # a free call would let a search wander without a price


@dataclass(frozen=True, slots=True)
class Candidate:
    """A call that may serve, and the facts under which it was found to make sense."""

    skill: Skill
    call: SkillCall
    assumed: frozenset[Fact]


@dataclass(frozen=True, slots=True)
class State:
    """A node of the search."""

    graph: IndexedGraph
    latches: Latches

    @property
    def key(self) -> tuple[frozenset[Fact], Latches]:
        """What makes two states the same."""
        return self.graph.facts, self.latches


class Problem:
    """One agent, its skills, a start and a goal.

    Args:
      constraints: goals that no reached state may break if the start does not.
      extra_cost_s: call to seconds added to its cost, for calls that failed before.
      forbidden: calls not to use at all.
      unknown: names of things whose place is not known; no call may use them.
      latches: latches of ``goal`` that have already fired.
    """

    def __init__(
        self,
        graph: Graph,
        skills: Mapping[str, Skill],
        agent: str,
        goal: Goal,
        *,
        constraints: tuple[Goal, ...] = (),
        extra_cost_s: Mapping[SkillCall, float] | None = None,
        forbidden: frozenset[SkillCall] = frozenset(),
        unknown: frozenset[str] = frozenset(),
        latches: Latches = frozenset(),
    ) -> None:
        self.skills = dict(sorted(skills.items()))
        self.agent = agent
        self.goal = goal
        self.extra_cost_s = extra_cost_s or {}
        self.forbidden = forbidden
        self.unknown = unknown
        self._latch_nodes = latches_in(AllOf((goal, *constraints)))
        indexed = IndexedGraph.of(graph)
        self.start = State(indexed, advance(self._latch_nodes, indexed.facts, latches))
        self._constraints = tuple(c for c in constraints if satisfied(c, indexed.facts, self.start.latches))
        self._barred = frozenset(
            c.part.fact for c in self._constraints if isinstance(c, Not) and isinstance(c.part, Holds)
        )
        self._achievers: dict[Fact, list[Candidate]] = {}
        self._by_argument: dict[str, list[Candidate]] = {}
        self._calls: list[Candidate] = []
        self._known: set[tuple[SkillCall, frozenset[Fact]]] = set()
        self._searched: set[Fact] = set()
        self._deleters: dict[Fact, tuple[Candidate, ...]] = {}
        self._absorb(indexed, frozenset())

    def is_goal(self, state: State) -> bool:
        """Whether a state ends the search."""
        return satisfied(self.goal, state.graph.facts, state.latches)

    def groundings(self, graph: Graph) -> Iterator[tuple[Skill, SkillCall]]:
        """Yield the allowed calls that make sense in a graph."""
        for skill in self.skills.values():
            for call in skill.groundings(graph, self.agent):
                if call in self.forbidden or (self.unknown and any(v in self.unknown for _, v in call.args)):
                    continue
                yield skill, call

    def unmet(self, graph: Graph, candidate: Candidate) -> tuple[Unmet, ...]:
        """Return what keeps a candidate from starting."""
        return candidate.skill.unmet(graph, self.agent, candidate.call)

    def apply(self, state: State, skill: Skill, call: SkillCall) -> State | None:
        """Return the state after a call, or None if it changes nothing or breaks a constraint."""
        add, remove = skill.effects(state.graph, self.agent, call)
        graph = state.graph.changed(add, remove)
        if graph is state.graph:
            return None
        latches = advance(self._latch_nodes, graph.facts, state.latches)
        if not all(satisfied(c, graph.facts, latches) for c in self._constraints):
            return None
        return State(graph, latches)

    def cost_s(self, graph: Graph, skill: Skill, call: SkillCall) -> float:
        """Return the cost of a call, what was added for past failures included."""
        return max(skill.cost_s(graph, self.agent, call), _MIN_COST_S) + self.extra_cost_s.get(call, 0.0)

    def achievers(self, wanted: Fact) -> list[Candidate]:
        """Return the calls known to make a fact true, looking one imagined step ahead if none is known."""
        if wanted in self._barred:
            return []
        if wanted not in self._achievers and wanted not in self._searched:
            self._searched.add(wanted)
            self._imagine(wanted)
        return self._achievers.get(wanted, [])

    def deleters(self, graph: IndexedGraph, unwanted: Fact) -> tuple[Candidate, ...]:
        """Return the calls that make a true fact false."""
        found = self._deleters.get(unwanted, ())
        if not found:
            near = dict.fromkeys(c for arg in unwanted.args for c in self._by_argument.get(arg, ()))
            # a call such as lower() names nothing of what it undoes, so all are asked when the near ones do not
            for pool in (near, self._calls):
                found = tuple(c for c in pool if unwanted in self._effects(graph, c)[1])
                if found:
                    break
            self._deleters[unwanted] = found
        return found

    def _effects(self, graph: IndexedGraph, candidate: Candidate) -> tuple[frozenset[Fact], frozenset[Fact]]:
        seen = graph.changed(candidate.assumed) if candidate.assumed else graph
        return candidate.skill.effects(seen, self.agent, candidate.call)

    def _absorb(self, graph: IndexedGraph, assumed: frozenset[Fact]) -> None:
        """Learn the calls of a graph that differs from the start by ``assumed``."""
        for skill, call in self.groundings(graph):
            if (call, assumed) in self._known:
                continue
            is_new = (call, frozenset()) not in self._known
            self._known.add((call, assumed))
            candidate = Candidate(skill, call, assumed)
            add, remove = skill.effects(graph, self.agent, call)
            for f in add - remove if add & remove else add:
                # a known call may do more under the assumption: driving moves what was lifted before
                if is_new or all(c.call != call for c in self._achievers.get(f, ())):
                    self._achievers.setdefault(f, []).append(candidate)
            if not is_new:
                continue
            self._calls.append(candidate)
            for arg in dict.fromkeys(str(v) for _, v in call.args):
                self._by_argument.setdefault(arg, []).append(candidate)

    def _imagine(self, wanted: Fact) -> None:
        """Ground the skills after each single call that speaks of an argument of ``wanted``."""
        start = self.start.graph
        near: Iterable[Candidate] = dict.fromkeys(
            c for arg in wanted.args if arg != self.agent for c in self._by_argument.get(arg, ())
        )
        tried: set[frozenset[Fact]] = set()
        for candidate in list(near):
            add, remove = self._effects(start, candidate)
            assumed = (add | candidate.assumed) - start.facts
            if not assumed or assumed in tried:
                continue
            tried.add(assumed)
            self._absorb(start.changed(assumed, remove), assumed)
