"""Check a plan against the skills' model before anything moves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from embodied.errors import nearest_hint
from embodied.graph.facts import Graph
from embodied.planners.search.goals import advance, latches_in, satisfied
from embodied.planners.search.graph import IndexedGraph
from embodied.skills.contract import Skill, SkillCall
from embodied.tasks.goal import AllOf, Goal, describe


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """Verdict on a plan.

    Attributes:
      ok: every call may start in turn, no constraint breaks and the goal (if given) holds at the end.
      index: the call at fault; the length of the plan if only the goal does not hold.
      message: why not, empty when ok.
      graph: the graph after the calls up to the fault.
    """

    ok: bool
    index: int
    message: str
    graph: Graph


def validate_plan(
    graph: Graph,
    skills: Mapping[str, Skill],
    agent: str,
    calls: Iterable[SkillCall],
    goal: Goal | None = None,
    constraints: tuple[Goal, ...] = (),
) -> Validation:
    """Run ``calls`` on the skills' symbolic model from ``graph`` and judge them; never raises for a bad plan."""
    state = IndexedGraph.of(graph)
    nodes = latches_in(AllOf((*((goal,) if goal else ()), *constraints)))
    latches = advance(nodes, state.facts, frozenset())
    index = 0
    for index, call in enumerate(calls, start=1):
        skill = skills.get(call.skill)
        if skill is None:
            return _bad(index, f"{agent} has no skill {call.skill!r}. {nearest_hint(call.skill, skills)}", state)
        unmet = skill.unmet(state, agent, call)
        if unmet:
            return _bad(index, f"{call} cannot start: {'; '.join(u.message for u in unmet)}", state)
        state = state.changed(*skill.effects(state, agent, call))
        latches = advance(nodes, state.facts, latches)
        broken = next((c for c in constraints if not satisfied(c, state.facts, latches)), None)
        if broken is not None:
            return _bad(index, f"{call} breaks the constraint {describe(broken)}", state)
    if goal is not None and not satisfied(goal, state.facts, latches):
        parts = goal.parts if isinstance(goal, AllOf) else (goal,)
        lacking = [describe(p) for p in parts if not satisfied(p, state.facts, latches)]
        return _bad(index + 1, f"the goal does not hold after the plan: {'; '.join(lacking)}", state)
    return Validation(ok=True, index=index, message="", graph=state)


def _bad(position: int, message: str, graph: Graph) -> Validation:
    return Validation(ok=False, index=position - 1, message=message, graph=graph)
