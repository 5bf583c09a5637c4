"""The rules: what they read from instructions, and that they solve what they read without privilege."""

from __future__ import annotations

import pytest

from embodied.graph.facts import Graph, Node, fact
from embodied.planners.rules.instruction import read_instruction
from embodied.planners.rules.scripted import ScriptedPlanner
from embodied.skills.contract import SkillCall
from embodied.tasks.goal import AllOf, Holds, describe
from tests.planner_support import household, household_skills, run_symbolically, task_of, view_of

SKILLS = household_skills()


def scene() -> Graph:
    nodes = {
        n.name: n
        for n in (
            Node(name="apple_1", kind="object", category="apple"),
            Node(name="apple_2", kind="object", category="apple"),
            Node(name="package_3", kind="object", category="package"),
            Node(name="fridge", kind="fixture", category="fridge", properties=frozenset({"container", "openable"})),
            Node(name="kitchen_table", kind="fixture", category="table", properties=frozenset({"surface"})),
            Node(name="station_2", kind="place", category="station"),
            Node(name="kitchen", kind="room", category="kitchen"),
            Node(name="target_a", kind="fixture", category="target"),
            Node(name="target_b", kind="fixture", category="target"),
            Node(name="pad", kind="place", category="pad"),
            Node(name="bot", kind="agent", category="robot"),
        )
    }
    return Graph(nodes, frozenset())


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("Put the apple in the fridge and close it.", "(inside(apple_1, fridge) and not open(fridge))"),
        ("Put all apples on the kitchen table.", "(ontop(apple_1, kitchen_table) and ontop(apple_2, kitchen_table))"),
        ("Deliver package 3 to station 2.", "(at(package_3, station_2))"),
        ("Bring apple_2 to the fridge, then open the fridge", "(inside(apple_2, fridge) and open(fridge))"),
        (
            "Inspect every target and land on the pad.",
            "(inspected(target_a) and inspected(target_b) and at(bot, pad) and not flying(bot))",
        ),
        ("Move the apples into the kitchen", "(inroom(apple_1, kitchen) and inroom(apple_2, kitchen))"),
        ("Put apple_1 on the table. Close what you open.", "(ontop(apple_1, kitchen_table) and not open(fridge))"),
        ("Take apple_1 to the table, and shut every door.", "(ontop(apple_1, kitchen_table) and not open(fridge))"),
        ("Go to station_2", "(once at(bot, station_2))"),
    ],
)
def test_reads(text: str, meaning: str) -> None:
    goal = read_instruction(text, scene(), "bot")
    assert goal is not None
    assert describe(goal) == meaning


def test_nonsense_is_abstained_from() -> None:
    planner = ScriptedPlanner()
    planner.reset("robot_0", 0)
    plan = planner.act(view_of(household(2), SKILLS, task=task_of(AllOf(()), instruction="colourless green ideas")))
    assert [c.skill for c in plan.calls] == ["abstain"]


def test_solves_a_household_instruction_on_its_belief() -> None:
    goal = Holds(fact("inside", "thing_1", "cabinet_3"))
    task = task_of(goal, instruction="Put thing 1 into cabinet_3.")
    planner = ScriptedPlanner()
    planner.reset("robot_0", 0)
    graph, ran = run_symbolically(planner, household(6), SKILLS, task)
    assert graph.holds("inside", "thing_1", "cabinet_3")
    assert ran[-1].skill == "done"


def test_explores_when_the_thing_was_never_seen() -> None:
    graph = household(2)
    support = graph.support_of("thing_0")
    assert support is not None
    task = task_of(Holds(fact("ontop", "thing_0", "table_9")), instruction="Put thing_0 on table_9")
    planner = ScriptedPlanner()
    planner.reset("robot_0", 0)
    seen: set[str] = set()
    for _ in range(5):
        calls = planner.act(view_of(graph.changed(remove=[support]), SKILLS, task=task)).calls
        assert [c.skill for c in calls] == ["go_to", "open"]
        seen.add(str(calls))
    assert len(seen) == 5
    found = planner.act(view_of(graph, SKILLS, task=task)).calls
    assert found[-1] == SkillCall.of("place", thing="thing_0", relation="on", target="table_9")


def test_gives_up_when_all_furniture_was_seen() -> None:
    graph = household(1)
    graph = graph.changed(remove=graph.facts)
    task = task_of(Holds(fact("ontop", "thing_0", "table_9")), instruction="Put thing_0 on table_9")
    planner = ScriptedPlanner()
    planner.reset("robot_0", 0)
    skills = [planner.act(view_of(graph, SKILLS, task=task)).calls[0].skill for _ in range(21)]
    assert skills == ["go_to"] * 20 + ["abstain"]
