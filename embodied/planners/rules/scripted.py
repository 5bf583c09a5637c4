"""The scripted planner: rules read the instruction, a search on the belief does the rest, looking around if need be."""

from __future__ import annotations

from embodied.planners.calls import abstain_call, done_call
from embodied.planners.contract import Plan, PlannerView
from embodied.planners.rules.instruction import read_instruction
from embodied.planners.search.goals import Latches, advance, latches_in, satisfied
from embodied.planners.search.problem import Problem
from embodied.planners.search.pursue import FailureMemory
from embodied.planners.search.serial import find_plan
from embodied.skills.contract import SkillCall, Status
from embodied.tasks.goal import Goal

_EXPLORERS = ("look", "open", "go_to", "fly_to", "drive_to")
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
        self._explored: set[SkillCall] = set()

    def act(self, view: PlannerView) -> Plan:
        """Answer with a plan for what was understood, with exploration, or with ``done`` or ``abstain``."""
        fresh = self._failures.update(view.memory)
        goal = read_instruction(view.instruction, view.graph, view.agent)
        if goal is None:
            return Plan(calls=(abstain_call(view.skills, "I do not understand the instruction."),))
        self._latch(view, goal, [s.call for s in fresh if s.outcome.status is Status.SUCCEEDED])
        if satisfied(goal, view.graph.facts, self._latches):
            return Plan(calls=(done_call(),))
        calls = self._search(view, goal)
        if calls:
            return Plan(calls=calls[: self.max_calls])
        step = self._explore(view)
        if step is None:
            return Plan(calls=(abstain_call(view.skills, "I looked everywhere and found no way."),))
        return Plan(calls=(step,))

    def _latch(self, view: PlannerView, goal: Goal, succeeded: list[SkillCall]) -> None:
        nodes = latches_in(goal)
        for call in succeeded:
            skill = view.skills.get(call.skill)
            if skill is not None:
                added, _ = skill.effects(view.graph, view.agent, call)
                self._latches = advance(nodes, view.graph.facts | added, self._latches)
        self._latches = advance(nodes, view.graph.facts, self._latches)

    def _search(self, view: PlannerView, goal: Goal) -> tuple[SkillCall, ...]:
        for forbidden in dict.fromkeys((self._failures.ruled_out, frozenset())):
            problem = Problem(
                view.graph,
                view.skills,
                view.agent,
                goal,
                extra_cost_s=self._failures.extra_cost_s,
                forbidden=forbidden,
                latches=self._latches,
            )
            found = find_plan(problem, max_expansions=_MAX_EXPANSIONS)
            if found.calls:
                return found.calls
        return ()

    def _explore(self, view: PlannerView) -> SkillCall | None:
        """Return a call that may show something new: look here, open what is shut, go where it has not been."""
        last = view.memory[-1].call if view.memory else None
        admissible = view.admissible
        for name in _EXPLORERS:
            for call in admissible:
                again = call in self._explored and not (name == "look" and last is not None and last.skill != "look")
                if call.skill == name and not again and call not in self._failures.ruled_out:
                    self._explored.add(call)
                    return call
        return None
