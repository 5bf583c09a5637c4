"""Split a goal among agents that plan alone: the same split comes out for each of them."""

from __future__ import annotations

from collections.abc import Mapping

from embodied.graph.facts import Graph
from embodied.planners.search.goals import INFINITE
from embodied.planners.search.heuristic import estimate
from embodied.planners.search.problem import Problem
from embodied.skills.contract import Skill
from embodied.tasks.contract import Task
from embodied.tasks.goal import AllOf, Goal, goal_facts


def allocate(graph: Graph, task: Task, skills: Mapping[str, Skill], agent: str) -> tuple[Goal, ...]:
    """Return the parts of a task's goal that are for ``agent`` to reach.

    A part that names one agent is that agent's; one whose things occur in the witness of one agent only is that
    agent's; the rest goes to whoever of the robots like this one has the least estimated work, one part at a time.
    """
    parts = task.goal.parts if isinstance(task.goal, AllOf) else (task.goal,)
    names = [a.name for a in task.agents]
    if len(names) < 2:
        return parts
    kind = {a.name: a.robot for a in task.agents}
    alike = [n for n in names if kind[n] == kind[agent]]
    owners: dict[int, str] = {}
    load_s = dict.fromkeys(names, 0.0)
    for index, part in enumerate(parts):
        owner = _named(part, names) or _from_witness(part, task, names)
        if owner is not None:
            owners[index] = owner
            load_s[owner] += _work_s(graph, skills, owner, part) if owner in alike else 0.0
    for index, part in enumerate(parts):
        if index not in owners:
            work_s = {n: _work_s(graph, skills, n, part) for n in alike}
            able = [n for n in alike if work_s[n] < INFINITE]
            if able:
                owners[index] = min(able, key=lambda n: (load_s[n] + work_s[n], names.index(n)))
                load_s[owners[index]] += work_s[owners[index]]
    return tuple(p for i, p in enumerate(parts) if owners.get(i) == agent)


def reachable_parts(graph: Graph, task: Task, skills: Mapping[str, Skill], agent: str) -> tuple[Goal, ...]:
    """Return the parts of a task's goal that ``agent`` could reach alone."""
    parts = task.goal.parts if isinstance(task.goal, AllOf) else (task.goal,)
    return tuple(p for p in parts if _work_s(graph, skills, agent, p) < INFINITE)


def _named(part: Goal, names: list[str]) -> str | None:
    found = {a for f in goal_facts(part) for a in f.args if a in names}
    return next(iter(found)) if len(found) == 1 else None


def _from_witness(part: Goal, task: Task, names: list[str]) -> str | None:
    things = {f.args[0] for f in goal_facts(part) if f.args}
    users = [n for n in names if any(v in things for c in task.witness.get(n, ()) for _, v in c.args)]
    return users[0] if len(users) == 1 else None


def _work_s(graph: Graph, skills: Mapping[str, Skill], agent: str, part: Goal) -> float:
    problem = Problem(graph, skills, agent, part)
    return estimate(problem, problem.start).cost_s
