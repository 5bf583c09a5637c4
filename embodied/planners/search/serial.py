"""Plan one part of a conjunction after the other, keeping what already holds; then drop what was in vain.

Household goals are many small errands. One search over all of them meets every order of the errands; one search per
errand does not. Where an order paints itself into a corner, the whole goal is searched at once.
"""

from __future__ import annotations

from embodied.planners.search.goals import INFINITE, satisfied
from embodied.planners.search.heuristic import estimate
from embodied.planners.search.problem import Problem, State
from embodied.planners.search.search import SearchResult, search
from embodied.skills.contract import SkillCall
from embodied.tasks.goal import AllOf, AtLeast, Goal

_ERRAND_EXPANSIONS = 300
_ERRAND_TRIES = 3


def find_plan(problem: Problem, *, weight: float = 5.0, max_expansions: int = 5000) -> SearchResult:
    """Find a plan for the problem's goal; see :func:`embodied.planners.search.search.search` for the arguments."""
    spent = 0
    parts = _parts(problem.goal)
    if len(parts) > 1:
        result, spent = _errands(problem, parts, weight, max_expansions)
        if result is not None:
            return result
    found = search(problem, weight=weight, max_expansions=max(max_expansions - spent, 1))
    return _finish(problem, found.calls, found.expanded + spent) if found.calls is not None else found


def _errands(
    problem: Problem, parts: tuple[Goal, ...], weight: float, max_expansions: int
) -> tuple[SearchResult | None, int]:
    if isinstance(problem.goal, AllOf) and any(
        estimate(problem, problem.start, p).cost_s == INFINITE for p in parts if not _holds(p, problem.start)
    ):
        return SearchResult(calls=None, cost_s=INFINITE, expanded=0, exhausted=True), 0
    state, calls, spent = problem.start, (), 0
    while not problem.is_goal(state):
        step, used = _next_errand(problem, parts, state, weight)
        spent += used
        if step is None or step.end is None or step.calls is None or spent > max_expansions:
            return None, spent
        state, calls = step.end, calls + step.calls
    return _finish(problem, calls, spent), spent


def _next_errand(
    problem: Problem, parts: tuple[Goal, ...], state: State, weight: float
) -> tuple[SearchResult | None, int]:
    """Search for the cheapest part that does not hold yet, next cheapest if that fails."""
    kept = tuple(p for p in parts if _holds(p, state))
    waiting = [(estimate(problem, state, p).cost_s, i, p) for i, p in enumerate(parts) if not _holds(p, state)]
    spent = 0
    for cost_s, _, part in sorted(waiting, key=lambda w: w[:2])[:_ERRAND_TRIES]:
        if cost_s == INFINITE:
            break
        goal = AllOf((*kept, part))
        found = search(problem, goal=goal, start=state, weight=weight, max_expansions=_ERRAND_EXPANSIONS)
        spent += found.expanded
        if found.calls is not None:
            return found, spent
    return None, spent


def _parts(goal: Goal) -> tuple[Goal, ...]:
    """Flatten nested conjunctions; an n-of goal gives its parts."""
    if isinstance(goal, AllOf):
        return tuple(q for p in goal.parts for q in (_parts(p) if isinstance(p, AllOf) else (p,)))
    return goal.parts if isinstance(goal, AtLeast) else (goal,)


def _holds(goal: Goal, state: State) -> bool:
    return satisfied(goal, state.graph.facts, state.latches)


def _finish(problem: Problem, calls: tuple[SkillCall, ...], expanded: int) -> SearchResult:
    calls, cost_s = shorten(problem, calls)
    return SearchResult(calls=calls, cost_s=cost_s, expanded=expanded, exhausted=False)


def shorten(problem: Problem, calls: tuple[SkillCall, ...]) -> tuple[tuple[SkillCall, ...], float]:
    """Drop calls that a plan can do without; return what stays and its cost in seconds."""
    index = 0
    while index < len(calls):
        kept = _without(problem, calls, index)
        if kept is None:
            index += 1
        else:
            calls = kept
    state, cost_s = problem.start, 0.0
    for call in calls:
        skill = problem.skills[call.skill]
        cost_s += problem.cost_s(state.graph, skill, call)
        state = problem.apply(state, skill, call) or state
    return calls, cost_s


def _without(problem: Problem, calls: tuple[SkillCall, ...], index: int) -> tuple[SkillCall, ...] | None:
    """Return the plan without one call and without those that then cannot start, if it still reaches the goal."""
    state, kept = problem.start, []
    for i, call in enumerate(calls):
        skill = problem.skills[call.skill]
        if i == index or skill.unmet(state.graph, problem.agent, call):
            continue
        after = problem.apply(state, skill, call)
        if after is not None:
            state = after
            kept.append(call)
    return tuple(kept) if problem.is_goal(state) else None
