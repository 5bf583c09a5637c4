"""Goals: reading back what was written, and the algebra of their parts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embodied.errors import TaskError
from embodied.graph.facts import Fact, Graph, fact
from embodied.tasks.goal import (
    AllOf,
    AtLeast,
    GoalTracker,
    HoldFor,
    Holds,
    Latched,
    Not,
    any_of,
    describe,
    from_json,
    goal_facts,
    to_json,
)

FACTS = [fact("ontop", a, b) for a in "abc" for b in "xy"] + [fact("open", "x")]
leaves = st.sampled_from(FACTS).map(Holds)
goals = st.recursive(
    leaves,
    lambda part: st.one_of(
        part.map(Not),
        part.map(Latched),
        st.tuples(part, st.floats(0, 5)).map(lambda p: HoldFor(*p)),
        st.lists(part, max_size=3).map(lambda p: AllOf(tuple(p))),
        st.tuples(st.integers(0, 3), st.lists(part, max_size=3), st.booleans()).map(
            lambda p: AtLeast(p[0], tuple(p[1]), p[2])
        ),
    ),
    max_leaves=8,
)
graphs = st.sets(st.sampled_from(FACTS)).map(lambda f: Graph({}, frozenset(f)))


@given(goals)
def test_json_round_trip(goal):
    assert from_json(to_json(goal)) == goal


@given(goals, graphs)
def test_negation_flips_and_fraction_is_bounded(goal, graph):
    assert GoalTracker(Not(goal)).update(graph, 0.0) != GoalTracker(goal).update(graph, 0.0)
    assert 0.0 <= GoalTracker(goal).fraction(graph, 0.0) <= 1.0


@given(st.lists(leaves, min_size=1, max_size=4), graphs)
def test_any_and_all_agree_with_python(parts, graph):
    truth = [p.fact in graph.facts for p in parts]
    assert GoalTracker(AllOf(tuple(parts))).update(graph, 0.0) == all(truth)
    assert GoalTracker(any_of(*parts)).update(graph, 0.0) == any(truth)
    assert GoalTracker(AllOf(tuple(parts))).fraction(graph, 0.0) == pytest.approx(sum(truth) / len(truth))


@given(goals, graphs)
def test_facts_of_a_goal_decide_it(goal, graph):
    only = Graph({}, graph.facts & goal_facts(goal))
    assert GoalTracker(goal).update(graph, 0.0) == GoalTracker(goal).update(only, 0.0)
    assert describe(goal)


def test_latched_stays_and_hold_for_needs_a_break_free_time():
    on, off = Graph({}, frozenset([FACTS[0]])), Graph({}, frozenset())
    latched = GoalTracker(Latched(Holds(FACTS[0])))
    assert not latched.update(off, 0.0)
    assert latched.update(on, 1.0)
    assert latched.update(off, 2.0)
    held = GoalTracker(HoldFor(Holds(FACTS[0]), 2.0))
    assert not held.update(on, 0.0)
    assert not held.update(off, 1.0)
    assert not held.update(on, 1.5)
    assert held.update(on, 3.5)


@pytest.mark.parametrize("bad", [{}, {"holds": []}, {"all": 3}, {"at_least": "two", "of": []}, {"hold_for_s": 1}])
def test_malformed_goals_are_refused(bad):
    with pytest.raises(TaskError):
        from_json(bad)


def test_fact_reads_like_a_sentence():
    assert str(Fact("ontop", ("cup", "table"))) == "ontop(cup, table)"
