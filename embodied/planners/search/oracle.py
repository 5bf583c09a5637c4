"""The oracle sees the truth and the goal, and searches. Its score says what the skills allow, not how planners do."""

from __future__ import annotations

from embodied.errors import PlannerError
from embodied.graph.facts import Graph
from embodied.planners.calls import abstain_call, done_call, wait_call
from embodied.planners.contract import Plan, PlannerView
from embodied.planners.search.allocate import allocate, reachable_parts
from embodied.planners.search.goals import Latches, advance, hold_s, latches_in, satisfied
from embodied.planners.search.graph import IndexedGraph
from embodied.planners.search.problem import Problem
from embodied.planners.search.pursue import FailureMemory
from embodied.planners.search.serial import find_plan
from embodied.skills.contract import Skill, Status
from embodied.tasks.contract import Task
from embodied.tasks.goal import AllOf, Goal

_OTHERS_WAIT_S = 10.0
_PATIENCE_WAITS = 12  # waits for the others before their share is taken over
_TEAM_CHUNK = 4  # others change the world: plans of a team member are asked for anew after so many calls


class OraclePlanner:
    """Plans by search on the truth graph.

    Args:
      max_expansions: states of one search before it gives up with an error.
      weight: greed of the search (see :func:`embodied.planners.search.serial.find_plan`).
    """

    privileged = True

    def __init__(self, max_expansions: int = 5000, weight: float = 5.0) -> None:
        self.max_expansions = max_expansions
        self.weight = weight
        self.reset("", 0)

    def reset(self, agent: str, seed: int) -> None:
        """Begin an episode. The search has no randomness; the seed is not used."""
        self._agent = agent
        self._failures = FailureMemory()
        self._latches: Latches = frozenset()
        self._previous: Graph | None = None
        self._own: tuple[Goal, ...] | None = None
        self._waits = 0

    def act(self, view: PlannerView) -> Plan:
        """Answer with the calls that reach the goal, ``done`` once it holds, ``abstain`` if nothing can reach it.

        Raises:
          PlannerError: the search met its limit.
        """
        graph, task = view.truth()
        self._remember(view, graph, task)
        if satisfied(task.goal, graph.facts, self._latches):
            rest_s = hold_s(task.goal)
            return Plan(calls=(wait_call(view.skills, rest_s), done_call()) if rest_s > 0 else (done_call(),))
        team = len(task.agents) > 1
        own = self._share(view, graph, task)
        if satisfied(own, graph.facts, self._latches):
            self._waits += 1
            return Plan(calls=(wait_call(view.skills, _OTHERS_WAIT_S),))
        plan = self._search(view, graph, task, own)
        if plan is None and team:
            self._waits += 1
            return Plan(calls=(wait_call(view.skills, _OTHERS_WAIT_S),))
        if plan is None:
            return Plan(calls=(abstain_call(view.skills, "No sequence of my skills reaches the goal."),))
        return Plan(calls=plan.calls[:_TEAM_CHUNK]) if team else plan

    def _share(self, view: PlannerView, graph: Graph, task: Task) -> Goal:
        """Return this agent's share of the goal; all of it once the others were waited for in vain."""
        if len(task.agents) < 2:
            return task.goal
        if self._own is None:
            self._own = allocate(graph, task, view.skills, view.agent)
        elif self._waits >= _PATIENCE_WAITS:
            self._own = reachable_parts(graph, task, view.skills, view.agent)
        return AllOf(self._own)

    def _search(self, view: PlannerView, graph: Graph, task: Task, goal: Goal) -> Plan | None:
        for forbidden in dict.fromkeys((self._failures.ruled_out, self._failures.hopeless)):
            problem = Problem(
                graph,
                view.skills,
                view.agent,
                goal,
                constraints=task.constraints,
                extra_cost_s=self._failures.extra_cost_s,
                forbidden=forbidden,
                latches=self._latches,
            )
            result = find_plan(problem, weight=self.weight, max_expansions=self.max_expansions)
            if result.calls is not None:
                return Plan(calls=result.calls, confidence=1.0)
            if not result.exhausted:
                raise PlannerError(
                    f"The oracle expanded {result.expanded} states at {view.time_s:.1f} s without finding a plan. "
                    "Raise max_expansions (oracle?max_expansions=20000) or check that the skills can reach the goal."
                )
        return None

    def _remember(self, view: PlannerView, graph: Graph, task: Task) -> None:
        """Bring failures and latches up to now; what held between two decisions is replayed on the skills' model."""
        fresh = self._failures.update(view.memory)
        nodes = latches_in(AllOf((task.goal, *task.constraints)))
        if nodes and self._previous is not None:
            state = IndexedGraph.of(self._previous)
            for step in fresh:
                skill: Skill | None = view.skills.get(step.call.skill)
                if skill is not None and step.outcome.status is Status.SUCCEEDED:
                    state = state.changed(*skill.effects(state, view.agent, step.call))
                    self._latches = advance(nodes, state.facts, self._latches)
        self._latches = advance(nodes, graph.facts, self._latches)
        self._previous = graph
