"""The estimate that guides the search: the goal is chained back through the skills' missing facts.

The additive heuristic of Bonet and Geffner (2001, https://doi.org/10.1016/S0004-3702(01)00108-4), computed backwards
from the goal so that only calls that can matter are looked at, with the helpful actions of Hoffmann and Nebel (2001,
https://doi.org/10.1613/jair.855): the applicable calls of the chosen chains.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from embodied.planners.search.goals import INFINITE, Literal, demand, literals
from embodied.planners.search.problem import Candidate, Problem, State
from embodied.skills.contract import SkillCall
from embodied.tasks.goal import Goal

_UNNAMED_COST_S = 10.0  # a precondition that names no fact (a full hand) costs about one more skill
_MAX_SWEEPS = 50


@dataclass(slots=True)
class _Option:
    candidate: Candidate
    own_s: float
    needs: tuple[Literal, ...]
    ready: bool


@dataclass(slots=True)
class Estimate:
    """Estimated seconds to the goal (infinite: no chain reaches it) and the calls that start the chosen chains."""

    cost_s: float
    helpful: tuple[Candidate, ...] = field(default=())


def estimate(problem: Problem, state: State, goal: Goal | None = None) -> Estimate:
    """Estimate the cost from ``state`` to ``goal`` (the problem's own if not given)."""
    facts = state.graph.facts
    goal = problem.goal if goal is None else goal
    wanted = [x for x in literals(goal) if (x[0] in facts) != x[1]]
    options = _collect(problem, state, wanted)
    value, best = _settle(options)
    cost, chosen = demand(goal, facts, state.latches, lambda x: value.get(x, INFINITE))
    if cost == INFINITE:
        return Estimate(INFINITE)
    return Estimate(cost, _helpful(chosen, best))


def _collect(problem: Problem, state: State, wanted: list[Literal]) -> dict[Literal, list[_Option]]:
    options: dict[Literal, list[_Option]] = {}
    known: dict[tuple[SkillCall, frozenset[object]], _Option] = {}
    open_list = list(dict.fromkeys(wanted))
    for literal in open_list:  # grows while it is walked
        if literal in options:
            continue
        f, positive = literal
        candidates = problem.achievers(f) if positive else problem.deleters(state.graph, f)
        options[literal] = row = []
        for candidate in candidates:
            key = (candidate.call, candidate.assumed)
            if key not in known:
                known[key] = _option(problem, state, candidate)
            option = known[key]
            row.append(option)
            open_list.extend(x for x in option.needs if x not in options)
    return options


def _option(problem: Problem, state: State, candidate: Candidate) -> _Option:
    graph = state.graph
    lacking = candidate.assumed - graph.facts
    seen = graph.changed(lacking) if lacking else graph
    own_s = problem.cost_s(seen, candidate.skill, candidate.call)
    needs: list[Literal] = [(f, True) for f in sorted(lacking)]
    missing = problem.unmet(seen, candidate)
    for item in missing:
        if item.missing is None:
            own_s += _UNNAMED_COST_S
        else:
            needs.append((item.missing, item.missing not in seen.facts))
    return _Option(candidate, own_s, tuple(needs), ready=not missing and not lacking)


def _settle(options: dict[Literal, list[_Option]]) -> tuple[dict[Literal, float], dict[Literal, _Option]]:
    """Sweep until no literal gets cheaper."""
    value = dict.fromkeys(options, INFINITE)
    best: dict[Literal, _Option] = {}
    order = list(reversed(options))  # what is needed was collected after what needs it
    for _ in range(_MAX_SWEEPS):
        changed = False
        for literal in order:
            for option in options[literal]:
                cost = option.own_s
                for need in option.needs:
                    cost += value[need]
                if cost < value[literal]:
                    value[literal], best[literal], changed = cost, option, True
        if not changed:
            break
    return value, best


def _helpful(chosen: tuple[Literal, ...], best: dict[Literal, _Option]) -> tuple[Candidate, ...]:
    found: dict[SkillCall, Candidate] = {}
    todo, seen = list(chosen), set(chosen)
    for literal in todo:
        option = best.get(literal)
        if option is None:
            continue
        if option.ready:
            found[option.candidate.call] = option.candidate
        for need in option.needs:
            if need not in seen:
                seen.add(need)
                todo.append(need)
    return tuple(found.values())
