"""What every registered planner must keep to."""

from __future__ import annotations

import pytest

from embodied.catalog import PLANNERS
from embodied.errors import PlannerError
from embodied.graph.facts import fact
from embodied.planners.contract import Plan
from embodied.planners.factory import make_planner
from embodied.skills.contract import SkillCall
from embodied.tasks.goal import Holds
from tests.planner_support import household, household_skills, task_of, view_of

SKILLS = household_skills()
TASK = task_of(Holds(fact("ontop", "thing_0", "table_9")), instruction="Put thing_0 on table_9.")
OFFLINE = [n for n in PLANNERS.names() if "model" not in PLANNERS.entry(n).tags]


def answer(name: str, seed: int = 5) -> Plan:
    planner = make_planner(name)
    planner.reset("robot_0", seed)
    graph = household(5)
    return planner.act(view_of(graph, SKILLS, task=TASK, truth=graph if planner.privileged else None))


@pytest.mark.parametrize("name", OFFLINE)
def test_answers_with_known_skills_the_same_each_time(name: str) -> None:
    plan = answer(name)
    assert plan.calls
    assert all(isinstance(c, SkillCall) and c.skill in SKILLS for c in plan.calls)
    assert plan == answer(name)


@pytest.mark.parametrize("name", OFFLINE)
def test_privilege_is_declared_by_a_tag(name: str) -> None:
    assert make_planner(name).privileged == ("privileged" in PLANNERS.entry(name).tags)


@pytest.mark.parametrize("name", OFFLINE)
def test_a_second_episode_starts_afresh(name: str) -> None:
    planner = make_planner(name)
    graph = household(5)
    view = view_of(graph, SKILLS, task=TASK, truth=graph if planner.privileged else None)
    planner.reset("robot_0", 1)
    first = [planner.act(view) for _ in range(3)]
    planner.reset("robot_0", 1)
    assert [planner.act(view) for _ in range(3)] == first


@pytest.mark.parametrize("entry", list(PLANNERS), ids=lambda e: e.name)
def test_every_entry_has_a_summary_and_loads(entry: object) -> None:
    assert entry.summary  # type: ignore[attr-defined]
    assert callable(entry.load())  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", OFFLINE)
def test_unknown_options_are_refused(name: str) -> None:
    with pytest.raises(PlannerError, match="cannot be built"):
        make_planner(f"{name}?no_such_option=1")
