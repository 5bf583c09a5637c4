"""Best-first search over skill calls: weighted A*, helpful calls first, everything else when those run dry."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

from embodied.planners.search.goals import INFINITE, satisfied
from embodied.planners.search.heuristic import estimate
from embodied.planners.search.problem import Candidate, Problem, State
from embodied.skills.contract import Skill, SkillCall
from embodied.tasks.goal import Goal

_PATIENCE = 40  # expansions without progress before unhelpful calls are tried too
_UNHELPFUL_EVERY = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """What a search found.

    Attributes:
      calls: the plan, or None.
      cost_s: its estimated duration.
      expanded: states expanded.
      end: the state after the plan.
      exhausted: True if no plan was found because none exists in the skills' model, False if the limit was met.
    """

    calls: tuple[SkillCall, ...] | None
    cost_s: float
    expanded: int
    exhausted: bool
    end: State | None = None


@dataclass(slots=True)
class _Node:
    state: State
    cost_s: float
    estimate_s: float
    helpful: tuple[Candidate, ...]
    parent: _Node | None
    step: tuple[Skill, SkillCall] | None


class _Search:
    def __init__(self, problem: Problem, goal: Goal, weight: float) -> None:
        self.problem = problem
        self.goal = goal
        self.weight = weight
        self.count = 0
        self.best_cost_s: dict[object, float] = {}
        self.helpful: list[tuple[float, float, int, _Node]] = []
        self.rest: list[tuple[float, float, int, _Node]] = []

    def is_goal(self, state: State) -> bool:
        return satisfied(self.goal, state.graph.facts, state.latches)

    def push(self, queue: list[tuple[float, float, int, _Node]], node: _Node) -> None:
        self.count += 1
        heapq.heappush(queue, (node.cost_s + self.weight * node.estimate_s, node.estimate_s, self.count, node))

    def pop(self, *, unhelpful: bool) -> tuple[_Node, bool]:
        if self.helpful and not (unhelpful and self.rest):
            return heapq.heappop(self.helpful)[3], False
        return heapq.heappop(self.rest)[3], True

    def steps(self, node: _Node, *, all_calls: bool) -> Iterator[tuple[Skill, SkillCall]]:
        if not all_calls:
            yield from ((c.skill, c.call) for c in node.helpful)
            return
        graph = node.state.graph
        for skill, call in self.problem.groundings(graph):
            if not skill.unmet(graph, self.problem.agent, call):
                yield skill, call

    def expand(self, node: _Node, *, all_calls: bool) -> Iterator[_Node]:
        problem, graph = self.problem, node.state.graph
        for skill, call in self.steps(node, all_calls=all_calls):
            state = problem.apply(node.state, skill, call)
            if state is None:
                continue
            cost_s = node.cost_s + problem.cost_s(graph, skill, call)
            if cost_s >= self.best_cost_s.get(state.key, INFINITE):
                continue
            self.best_cost_s[state.key] = cost_s
            if self.is_goal(state):
                yield _Node(state, cost_s, 0.0, (), node, (skill, call))
                continue
            guess = estimate(problem, state, self.goal)
            if guess.cost_s < INFINITE:
                yield _Node(state, cost_s, guess.cost_s, guess.helpful, node, (skill, call))


def search(
    problem: Problem,
    *,
    goal: Goal | None = None,
    start: State | None = None,
    weight: float = 5.0,
    max_expansions: int = 5000,
) -> SearchResult:
    """Find a plan by weighted A*. Deterministic: no clock, ties by order of discovery.

    Args:
      problem: skills, agent, start and costs.
      goal: what to reach, the problem's goal if not given.
      start: where from, the problem's start if not given.
      weight: how much the estimate counts over the cost so far; large finds plans fast, small finds cheap ones.
      max_expansions: states after which it gives up.
    """
    run = _Search(problem, problem.goal if goal is None else goal, weight)
    start = problem.start if start is None else start
    if run.is_goal(start):
        return SearchResult(calls=(), cost_s=0.0, expanded=0, exhausted=False, end=start)
    first = estimate(problem, start, run.goal)
    if first.cost_s == INFINITE:
        return SearchResult(calls=None, cost_s=INFINITE, expanded=0, exhausted=True)
    run.best_cost_s[start.key] = 0.0
    run.push(run.helpful, _Node(start, 0.0, first.cost_s, first.helpful, None, None))
    nearest, stalled, expanded = first.cost_s, 0, 0
    while (run.helpful or run.rest) and expanded < max_expansions:
        unhelpful = stalled > _PATIENCE and stalled % _UNHELPFUL_EVERY == 0
        node, all_calls = run.pop(unhelpful=unhelpful)
        if node.cost_s > run.best_cost_s[node.state.key]:
            continue
        expanded, stalled = expanded + 1, stalled + 1
        for child in run.expand(node, all_calls=all_calls):
            if child.estimate_s == 0.0 and run.is_goal(child.state):
                return SearchResult(
                    calls=_trace(child), cost_s=child.cost_s, expanded=expanded, exhausted=False, end=child.state
                )
            if child.estimate_s < nearest:
                nearest, stalled = child.estimate_s, 0
            run.push(run.helpful, child)
        if not all_calls:
            run.push(run.rest, node)
    return SearchResult(calls=None, cost_s=INFINITE, expanded=expanded, exhausted=not (run.helpful or run.rest))


def _trace(node: _Node) -> tuple[SkillCall, ...]:
    calls: list[SkillCall] = []
    at: _Node | None = node
    while at is not None and at.step is not None:
        calls.append(at.step[1])
        at = at.parent
    return tuple(reversed(calls))
