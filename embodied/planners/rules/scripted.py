"""The scripted planner: rules read the instruction, a search on the belief does the rest, looking around if need be."""

from __future__ import annotations

from embodied.graph.facts import Graph
from embodied.planners.calls import abstain_call, done_call
from embodied.planners.contract import Plan, PlannerView
from embodied.planners.rules.instruction import read_instruction
from embodied.planners.search.goals import Latches, advance, latches_in, satisfied
from embodied.planners.search.problem import Problem
from embodied.planners.search.pursue import FailureMemory
from embodied.planners.search.serial import find_plan
from embodied.skills.contract import SkillCall, Status
from embodied.tasks.goal import Goal

_EXPLORING = ("go_to", "fly_to", "drive_to", "open", "look")
_FURNITURE = frozenset({"surface", "container", "openable"})
_MAX_EXPANSIONS = 1500


class ScriptedPlanner:
    """An unprivileged baseline without a model: plans on what its agent believes, explores when that is not enough.

    Args:
      max_calls: how many calls of a plan are given before it thinks again.
    """

    privileged = False

    def __init__(self, max_calls: int = 6) -> None:
        self.max_calls = max_calls
        self.reset("", 0)

    def reset(self, agent: str, seed: int) -> None:
        """Begin an episode. There is no randomness; the seed is not used."""
        self._failures = FailureMemory()
        self._latches: Latches = frozenset()
        self._explored: set[str] = set()

    def act(self, view: PlannerView) -> Plan:
        """Answer with a plan for what was understood, with exploration, or with ``done`` or ``abstain``."""
        fresh = self._failures.update(view.memory)
        goal = read_instruction(view.instruction, view.graph, view.agent)
        if goal is None:
            return Plan(calls=(abstain_call(view.skills, "I do not understand the instruction."),))
        self._latch(view, goal, [s.call for s in fresh if s.outcome.status is Status.SUCCEEDED])
        if satisfied(goal, view.graph.facts, self._latches):
            return Plan(calls=(done_call(),))
        calls = (
            self._search(view, goal, self._failures.ruled_out)
            or self._explore(view)
            or self._search(view, goal, frozenset())
        )
        if not calls:
            return Plan(calls=(abstain_call(view.skills, "I looked everywhere and found no way."),))
        return Plan(calls=calls[: self.max_calls])

    def _latch(self, view: PlannerView, goal: Goal, succeeded: list[SkillCall]) -> None:
        nodes = latches_in(goal)
        for call in succeeded:
            skill = view.skills.get(call.skill)
            if skill is not None:
                added, _ = skill.effects(view.graph, view.agent, call)
                self._latches = advance(nodes, view.graph.facts | added, self._latches)
        self._latches = advance(nodes, view.graph.facts, self._latches)

    def _search(self, view: PlannerView, goal: Goal, forbidden: frozenset[SkillCall]) -> tuple[SkillCall, ...]:
        problem = Problem(
            view.graph,
            view.skills,
            view.agent,
            goal,
            extra_cost_s=self._failures.extra_cost_s,
            forbidden=forbidden,
            unknown=_unknown(view.graph),
            latches=self._latches,
        )
        return find_plan(problem, max_expansions=_MAX_EXPANSIONS).calls or ()

    def _explore(self, view: PlannerView) -> tuple[SkillCall, ...]:
        """Go to the next piece of furniture not yet looked at, open it if it is shut, and look."""
        if not _unknown(view.graph):
            return ()
        for node in view.graph.of_kind("fixture"):
            if node.name in self._explored or not node.properties & _FURNITURE:
                continue
            self._explored.add(node.name)
            calls, graph = [], view.graph
            for name in _EXPLORING:
                call = _call_on(view, name, node.name)
                if call is None or view.skills[name].unmet(graph, view.agent, call):
                    continue
                calls.append(call)
                graph = graph.changed(*view.skills[name].effects(graph, view.agent, call))
            if calls:
                return tuple(calls)
        return ()


def _unknown(graph: Graph) -> frozenset[str]:
    """Return the movable things of which the belief says nothing."""
    known = {a for f in graph.facts for a in f.args}
    return frozenset(n.name for n in graph.of_kind("object") if n.name not in known)


def _call_on(view: PlannerView, skill: str, target: str) -> SkillCall | None:
    """Return the call of a skill on one target, if the skill is there and takes just that."""
    if skill not in view.skills:
        return None
    required = [p for p in view.skills[skill].parameters if p.required]
    return SkillCall(skill, ((required[0].name, target),)) if len(required) == 1 else None
