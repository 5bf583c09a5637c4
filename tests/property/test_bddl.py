"""BDDL: hostile text never crashes the reader, published files all parse, quantifiers mean what they say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embodied.errors import TaskError
from embodied.graph.facts import Graph, fact
from embodied.tasks.bddl import ground_goal, parse_problem
from embodied.tasks.goal import GoalTracker

DATA = Path(os.environ.get("EMBODIED_DATA") or Path(__file__).parents[2].parent / "shared" / "data") / "behavior"

PROBLEM = """
(define (problem demo-0) (:domain omnigibson)
  (:objects cup.n.01_1 cup.n.01_2 cup.n.01_3 - cup.n.01  box.n.01_1 box.n.01_2 - box.n.01 table.n.02_1 - table.n.02)
  (:init (ontop cup.n.01_1 table.n.02_1) (not (open box.n.01_1)) (inroom table.n.02_1 kitchen))
  (:goal GOAL))
"""
CUPS, BOXES = [f"cup.n.01_{i}" for i in (1, 2, 3)], [f"box.n.01_{i}" for i in (1, 2)]
IN = "(inside ?cup.n.01 ?box.n.01)"


def problem(goal: str = "(and)"):
    return parse_problem(PROBLEM.replace("GOAL", goal), "demo.bddl")


tokens = st.sampled_from(
    [
        *("(", ")", "define", "problem", ":domain", ":objects", ":init", ":goal", "and"),
        *("or", "not", "forall", "exists", "forn", "forpairs", "fornpairs", "imply", "cup.n.01_1"),
        *("?cup.n.01", "cup.n.01", "-", "(2)", "ontop", "inside", "x", ";"),
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.text(max_size=80), st.lists(tokens, max_size=40).map(" ".join)))
def test_the_reader_only_ever_raises_task_errors(text):
    for whole in (text, PROBLEM.replace("GOAL", text), PROBLEM.replace("(:init", f"(:init {text}")):
        message = "fuzz.bddl:"
        try:
            ground_goal(parse_problem(whole, "fuzz.bddl"))
        except TaskError as error:
            message = str(error)
        assert "fuzz.bddl:" in message


@settings(max_examples=100, deadline=None)
@given(st.sets(st.tuples(st.sampled_from(CUPS), st.sampled_from(BOXES))))
def test_quantifiers_agree_with_counting(pairs):
    graph = Graph({}, frozenset(fact("inside", c, b) for c, b in pairs))
    per_cup = [sum((c, b) in pairs for b in BOXES) for c in CUPS]
    per_box = [sum((c, b) in pairs for c in CUPS) for b in BOXES]
    left, right = sum(n > 0 for n in per_cup), sum(n > 0 for n in per_box)
    first = sum((c, BOXES[0]) in pairs for c in CUPS)
    var = "(?cup.n.01 - cup.n.01) (?box.n.01 - box.n.01)"
    expected = {
        f"(forall (?cup.n.01 - cup.n.01) (exists (?box.n.01 - box.n.01) {IN}))": left == 3,
        f"(exists (?box.n.01 - box.n.01) (forall (?cup.n.01 - cup.n.01) {IN}))": 3 in per_box,
        "(forn (2) (?cup.n.01 - cup.n.01) (inside ?cup.n.01 box.n.01_1))": first == 2,
        f"(forpairs {var} {IN})": left >= 2 and right >= 2,
        f"(fornpairs (1) {var} {IN})": left >= 1 and right >= 1,
        "(imply (inside cup.n.01_1 box.n.01_1) (inside cup.n.01_2 box.n.01_1))": (CUPS[0], BOXES[0]) not in pairs
        or (CUPS[1], BOXES[0]) in pairs,
        "(or (inside cup.n.01_1 box.n.01_1) (not (inside cup.n.01_2 box.n.01_1)))": (CUPS[0], BOXES[0]) in pairs
        or (CUPS[1], BOXES[0]) not in pairs,
    }
    for goal, value in expected.items():
        assert GoalTracker(ground_goal(problem(goal))).update(graph, 0.0) is value, goal


BAD = [
    ("(and (ontop cup.n.01_1", "demo.bddl:", "never closed"),
    ("(ontop cup.n.01_1 tabel.n.02_1)", "demo.bddl:5:28", "table.n.02_1"),
    ("(ontpo cup.n.01_1 table.n.02_1)", "demo.bddl:5:10", "ontop"),
    ("(ontop cup.n.01_1)", "demo.bddl:5:10", "takes 2 arguments"),
    ("(forall (?c - cupp.n.01) (and))", "demo.bddl:5:18", "cup.n.01"),
    ("(forn (two) (?c - cup.n.01) (and))", "demo.bddl:5:16", "expected a count"),
    ("(not (and) (and))", "demo.bddl:5:10", "takes 1 parts"),
]


@pytest.mark.parametrize(("goal", "place", "mend"), BAD)
def test_errors_point_at_the_place_and_the_mend(goal, place, mend):
    with pytest.raises(TaskError) as caught:
        ground_goal(problem(goal))
    assert place in str(caught.value)
    assert mend in str(caught.value)


def test_a_missing_section_and_a_typeless_object_are_named():
    with pytest.raises(TaskError, match="section \\(:goal …\\) is missing"):
        parse_problem(PROBLEM.replace("(:goal GOAL)", ""), "demo.bddl")
    with pytest.raises(TaskError, match="has no type"):
        parse_problem(PROBLEM.replace("table.n.02_1 - table.n.02)", "table.n.02_1)"), "demo.bddl")
    with pytest.raises(TaskError, match="the file is empty"):
        parse_problem("; nothing\n", "demo.bddl")


@pytest.mark.public_data
@pytest.mark.skipif(not DATA.is_dir(), reason=f"no BEHAVIOR activities at {DATA}; set EMBODIED_DATA")
def test_every_published_activity_parses_and_grounds():
    files = sorted((DATA / "activities").glob("*.bddl"))
    assert len(files) == 1016
    for path in files:
        parsed = parse_problem(path.read_text(encoding="utf-8"), path.name)
        assert parsed.objects
        ground_goal(parsed)
