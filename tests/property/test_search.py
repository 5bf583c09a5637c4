"""The search against an independent uniform-cost search on small random problems, and on households."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embodied.graph.facts import Fact, Graph, Node, fact
from embodied.planners.search.goals import satisfied
from embodied.planners.search.graph import IndexedGraph
from embodied.planners.search.problem import Problem
from embodied.planners.search.serial import find_plan
from embodied.planners.search.validate import validate_plan
from embodied.skills.contract import SkillCall, Unmet
from embodied.tasks.goal import AllOf, AtLeast, Goal, Holds, Latched, Not
from tests.planner_support import SymbolicSkill, household, household_skills

ATOMS = tuple(fact("p", f"x{i}") for i in range(5))


class Strips(SymbolicSkill):
    """A random set of operators: needs, must-not-hold, adds, deletes, cost."""

    name = "act"

    def __init__(self, operators: list[tuple[set[int], set[int], set[int], set[int], int]]) -> None:
        self.operators = operators

    def groundings(self, graph: Graph, agent: str) -> Iterable[SkillCall]:
        return [SkillCall.of("act", index=f"o{i}") for i in range(len(self.operators))]

    def _of(self, call: SkillCall) -> tuple[set[int], set[int], set[int], set[int], int]:
        return self.operators[int(str(call.arg("index"))[1:])]

    def unmet(self, graph: Graph, agent: str, call: SkillCall) -> tuple[Unmet, ...]:
        needs, against, *_ = self._of(call)
        lacking = [Unmet(message="needs", missing=ATOMS[i]) for i in sorted(needs) if ATOMS[i] not in graph.facts]
        return (*lacking, *[Unmet(message="in the way") for i in sorted(against) if ATOMS[i] in graph.facts])

    def effects(self, graph: Graph, agent: str, call: SkillCall) -> tuple[frozenset[Fact], frozenset[Fact]]:
        _, _, adds, deletes, _ = self._of(call)
        return frozenset(ATOMS[i] for i in adds), frozenset(ATOMS[i] for i in deletes - adds)

    def cost_s(self, graph: Graph, agent: str, call: SkillCall) -> float:
        return float(self._of(call)[4])


def cheapest(skill: Strips, graph: Graph, goal: Goal) -> float | None:
    """Dijkstra over all states, written without the code under test except the goal's meaning."""
    queue: list[tuple[float, int, frozenset[Fact]]] = [(0.0, 0, graph.facts)]
    done: set[frozenset[Fact]] = set()
    count = 0
    while queue:
        cost, _, facts = heapq.heappop(queue)
        if facts in done:
            continue
        done.add(facts)
        if satisfied(goal, facts):
            return cost
        here = Graph(graph.nodes, facts)
        for call in skill.groundings(here, "a"):
            if not skill.unmet(here, "a", call):
                count += 1
                after = here.changed(*skill.effects(here, "a", call)).facts
                heapq.heappush(queue, (cost + skill.cost_s(here, "a", call), count, after))
    return None


INDEX = st.sets(st.integers(0, 4), max_size=2)
ADDS = st.sets(st.integers(0, 4), min_size=1, max_size=2)
OPERATORS = st.lists(st.tuples(INDEX, INDEX, ADDS, INDEX, st.integers(1, 9)), min_size=1, max_size=6)
LEAVES = st.integers(0, 4).map(lambda i: Holds(ATOMS[i]))
GOALS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        inner.map(Not),
        st.lists(inner, min_size=1, max_size=3).map(lambda p: AllOf(tuple(p))),
        st.tuples(st.lists(inner, min_size=1, max_size=3), st.integers(0, 3), st.booleans()).map(
            lambda t: AtLeast(min(t[1], len(t[0])), tuple(t[0]), t[2])
        ),
    ),
    max_leaves=4,
)


@settings(max_examples=150, deadline=None)
@given(OPERATORS, st.sets(st.integers(0, 4)), GOALS)
def test_agrees_with_uniform_cost_search(operators: list, start: set[int], goal: Goal) -> None:
    skill = Strips(operators)
    graph = Graph({}, frozenset(ATOMS[i] for i in start))
    best = cheapest(skill, graph, goal)
    found = find_plan(Problem(graph, {"act": skill}, "a", goal))
    if best is None:
        assert found.calls is None
        assert found.exhausted
    else:
        assert found.calls is not None
        assert found.cost_s >= best - 1e-9
        assert validate_plan(graph, {"act": skill}, "a", found.calls, goal).ok


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["holding", "inside", "ontop", "p"]), st.sampled_from("abc"), st.sampled_from("abc")),
        max_size=12,
    ),
    st.data(),
)
def test_indexed_graph_answers_like_a_plain_one(rows: list[tuple[str, str, str]], data: st.DataObject) -> None:
    facts = [fact(p, x, y) for p, x, y in rows]
    plain: Graph = Graph({}, frozenset(facts[: len(facts) // 2]))
    indexed: Graph = IndexedGraph.of(plain)
    for _ in range(3):
        add = data.draw(st.sets(st.sampled_from(facts))) if facts else set()
        remove = data.draw(st.sets(st.sampled_from(facts))) if facts else set()
        plain, indexed = plain.changed(add, remove), indexed.changed(add, remove)
        assert indexed.facts == plain.facts
        for word in ("holding", "inside", "p"):
            assert list(indexed.find(word, "a")) == list(plain.find(word, "a"))
            assert list(indexed.find(word, None, "b")) == list(plain.find(word, None, "b"))
        assert indexed.support_of("a") == plain.support_of("a")
        assert (indexed.held_by("b") is None) == (plain.held_by("b") is None)


def put_away(count: int) -> Goal:
    stored = [Holds(fact("inside", f"thing_{i}", f"cabinet_{i % 3}")) for i in range(count)]
    return AllOf((*stored, *[Not(Holds(fact("open", f"cabinet_{i}"))) for i in range(8)]))


@pytest.mark.parametrize("seed", range(4))
def test_household_errands_are_planned_with_few_expansions(seed: int) -> None:
    graph, skills = household(30, seed=seed), household_skills()
    found = find_plan(Problem(graph, skills, "robot_0", put_away(8)))
    assert found.calls is not None
    assert 20 <= len(found.calls) <= 60
    assert found.expanded < 400
    assert validate_plan(graph, skills, "robot_0", found.calls, put_away(8)).ok
    again = find_plan(Problem(graph, skills, "robot_0", put_away(8)))
    assert again == found


def test_an_unrelated_thing_in_the_hand_is_put_down_first() -> None:
    graph, skills = household(6), household_skills()
    held = graph.support_of("thing_5")
    assert held is not None
    graph = graph.changed([fact("holding", "robot_0", "thing_5")], [held])
    goal = Holds(fact("ontop", "thing_0", "table_9"))
    found = find_plan(Problem(graph, skills, "robot_0", goal))
    assert found.calls is not None
    assert validate_plan(graph, skills, "robot_0", found.calls, goal).ok


def test_constraints_hold_on_the_way() -> None:
    graph, skills = household(4), household_skills()
    goal = Holds(fact("inside", "thing_0", "cabinet_2"))
    never = Not(Holds(fact("at", "robot_0", "table_12")))
    found = find_plan(Problem(graph, skills, "robot_0", goal, constraints=(never,)))
    assert found.calls is not None
    assert validate_plan(graph, skills, "robot_0", found.calls, goal, (never,)).ok
    support = graph.support_of("thing_0")
    assert support is not None
    shut_out = Not(Holds(fact("at", "robot_0", support.args[1])))
    blocked = find_plan(Problem(graph, skills, "robot_0", goal, constraints=(shut_out,)))
    assert blocked.calls is None
    assert blocked.exhausted


def test_latched_parts_may_be_left_again() -> None:
    graph, skills = household(2), household_skills()
    goal = AllOf(tuple(Latched(Holds(fact("at", "robot_0", f"table_{i}"))) for i in (8, 9, 10)))
    found = find_plan(Problem(graph, skills, "robot_0", goal))
    assert found.calls is not None
    assert sorted(str(c) for c in found.calls) == ["go_to(table_10)", "go_to(table_8)", "go_to(table_9)"]


def test_validator_names_the_call_at_fault() -> None:
    graph, skills = household(3), household_skills()
    bad = validate_plan(
        graph, skills, "robot_0", [SkillCall.of("go_to", target="table_9"), SkillCall.of("pick", thing="thing_0")]
    )
    assert not bad.ok
    assert bad.index == 1
    assert "pick(thing_0) cannot start" in bad.message
    unknown = validate_plan(graph, skills, "robot_0", [SkillCall.of("pikc", thing="thing_0")])
    assert "Did you mean 'pick'" in unknown.message
    short = validate_plan(graph, skills, "robot_0", [], Holds(fact("open", "cabinet_0")))
    assert not short.ok
    assert "open(cabinet_0)" in short.message


def test_impossible_goal_is_proven_so() -> None:
    graph, skills = household(3), household_skills()
    nodes = {**graph.nodes, "safe": Node(name="safe", kind="fixture", category="safe")}
    found = find_plan(Problem(Graph(nodes, graph.facts), skills, "robot_0", Holds(fact("inside", "thing_0", "safe"))))
    assert found.calls is None
    assert found.exhausted
