"""The oracle as the agent loop sees it: plans, finishes, gives up, learns from failures, shares work."""

from __future__ import annotations

import pytest

from embodied.errors import PrivilegedReadError
from embodied.graph.facts import Graph, Node, fact
from embodied.planners.contract import Step
from embodied.planners.search.allocate import allocate
from embodied.planners.search.oracle import OraclePlanner
from embodied.skills.contract import SkillCall, failed
from embodied.tasks.goal import AllOf, HoldFor, Holds, Latched, Not, any_of
from tests.planner_support import household, household_skills, run_symbolically, task_of, view_of

SKILLS = household_skills()


def oracle() -> OraclePlanner:
    planner = OraclePlanner()
    planner.reset("robot_0", 0)
    return planner


def test_reaches_the_goal_and_says_done() -> None:
    task = task_of(AllOf((Holds(fact("inside", "thing_0", "cabinet_0")), Not(Holds(fact("open", "cabinet_0"))))))
    graph, ran = run_symbolically(oracle(), household(10), SKILLS, task)
    assert graph.holds("inside", "thing_0", "cabinet_0")
    assert not graph.holds("open", "cabinet_0")
    assert ran[-1].skill == "done"
    assert [c.skill for c in ran].count("done") == 1


def test_abstains_from_the_impossible() -> None:
    graph = household(3)
    graph = Graph({**graph.nodes, "safe": Node(name="safe", kind="fixture", category="safe")}, graph.facts)
    task = task_of(Holds(fact("inside", "thing_0", "safe")), feasible=False)
    plan = oracle().act(view_of(graph, SKILLS, task=task, truth=graph))
    assert [c.skill for c in plan.calls] == ["abstain"]
    assert "reach" in str(plan.calls[0].arg("reason"))


def test_reads_the_truth_only_through_the_privileged_channel() -> None:
    with pytest.raises(PrivilegedReadError, match="not declared privileged"):
        oracle().act(view_of(household(3), SKILLS))


def test_a_call_that_keeps_failing_is_avoided() -> None:
    graph = household(3)
    task = task_of(Holds(fact("ontop", "thing_0", "table_9")))
    other = task_of(AllOf((task.goal,)))
    planner = oracle()
    first = planner.act(view_of(graph, SKILLS, task=other, truth=graph)).calls[0]
    memory = tuple(Step(time_s=1.0, call=first, outcome=failed("unreachable", "blocked")) for _ in range(2))
    # the only way to reach the support is the failing call: it is tried again rather than given up
    again = planner.act(view_of(graph, SKILLS, task=other, truth=graph, memory=memory))
    assert again.calls
    assert again.calls[0].skill == "go_to"


def test_another_way_is_taken_after_two_failures() -> None:
    graph = household(3)
    goal = Holds(fact("at", "robot_0", "table_9"))
    either = task_of(any_of(goal, Holds(fact("at", "robot_0", "table_10"))))
    planner = oracle()
    call = planner.act(view_of(graph, SKILLS, task=either, truth=graph)).calls[0]
    once = (Step(time_s=1.0, call=call, outcome=failed("unreachable", "blocked")),)
    other = planner.act(view_of(graph, SKILLS, task=either, truth=graph, memory=once)).calls[0]
    assert other != call


def test_latches_fire_between_decisions() -> None:
    goal = AllOf((Latched(Holds(fact("at", "robot_0", "table_8"))), Latched(Holds(fact("at", "robot_0", "table_9")))))
    graph, ran = run_symbolically(oracle(), household(2), SKILLS, task_of(goal))
    assert len(ran) == 3
    assert ran[-1] == SkillCall("done")
    assert graph.holds("at", "robot_0", "table_9")


def test_holds_for_the_asked_time_before_done() -> None:
    graph = household(2).changed([fact("open", "cabinet_0")])
    task = task_of(HoldFor(Holds(fact("open", "cabinet_0")), 12.0))
    plan = oracle().act(view_of(graph, SKILLS, task=task, truth=graph))
    assert plan.calls == (SkillCall.of("wait", duration_s=12.0), SkillCall("done"))


def test_team_splits_the_goal_the_same_way_for_all() -> None:
    team = ("robot_0", "robot_1", "robot_2")
    graph = household(9, agents=team)
    things = [Holds(fact("ontop", f"thing_{i}", "table_11")) for i in range(9)]
    parts = (*things, Holds(fact("at", "robot_1", "table_9")))
    task = task_of(AllOf(parts), agents=team)
    shares = [allocate(graph, task, SKILLS, agent) for agent in team]
    assert sorted(map(str, (p for s in shares for p in s))) == sorted(map(str, parts))
    assert parts[-1] in shares[1]
    assert min(len(s) for s in shares) >= 2


def test_a_member_whose_share_is_done_waits_for_the_others() -> None:
    team = ("robot_0", "robot_1")
    graph = household(1, agents=team).changed([fact("at", "robot_0", "table_8")])
    goal = AllOf(tuple(Holds(fact("at", a, f"table_{8 + i}")) for i, a in enumerate(team)))
    plan = oracle().act(view_of(graph, SKILLS, task=task_of(goal, agents=team), truth=graph))
    assert [c.skill for c in plan.calls] == ["wait"]
