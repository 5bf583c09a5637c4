"""Household families on facts alone: unsolved at the start, solved by their witness, deterministic."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from embodied.errors import TaskError
from embodied.graph.facts import Fact, Graph, fact
from embodied.tasks.goal import GoalTracker
from embodied.tasks.household.behavior import ACTIVITIES, BEHAVIOR
from embodied.tasks.household.put_away import HOMES, PUT_AWAY, stage
from embodied.tasks.household.stage import AGENT
from embodied.worlds.mujoco import MujocoWorld
from embodied_scenes.builders import compile_scene

DATA = Path(os.environ.get("EMBODIED_DATA") or Path(__file__).parents[2].parent / "shared" / "data") / "behavior"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"no BEHAVIOR activities at {DATA}; set EMBODIED_DATA")


def play(graph: Graph, plan) -> Graph:
    """Follow a plan by the meaning of its skills; fails where a step could not start."""
    held: str | None = None
    at: str | None = None
    for call in plan:
        target = str(call.arg("target", ""))
        openable = {n.name for n in graph.nodes.values() if "openable" in n.properties}
        if call.skill == "go_to":
            assert target in graph.nodes
            at = target
        elif call.skill in ("open", "close"):
            assert held is None
            assert at == target
            assert graph.holds("open", target) is (call.skill == "close"), f"{call} changes nothing"
            state = [fact("open", target)]
            graph = graph.changed(add=state) if call.skill == "open" else graph.changed(remove=state)
        elif call.skill == "pick":
            thing = str(call.arg("object"))
            assert held is None
            support = graph.support_of(thing)
            assert support is not None
            assert support.args[1] == at
            assert support.predicate != "inside" or at not in openable or graph.holds("open", at), f"{call}: shut"
            graph, held = graph.changed(remove=[f for f in graph.facts if f.args[0] == thing]), thing
        else:
            assert call.skill == "place"
            assert held == call.arg("object")
            assert at == target
            inside = call.arg("relation") == "in"
            needed = "container" if inside else "surface"
            assert needed in graph.nodes[target].properties, f"{target} is no {needed}"
            assert not inside or target not in openable or graph.holds("open", target), f"{call}: shut"
            graph = graph.changed(add=[Fact("inside" if inside else "ontop", (str(held), target))])
            held = None
    assert held is None
    return graph


def check(task, world):
    world.reset(task.seed, task.start)
    graph = world.graph()
    assert not GoalTracker(task.goal).update(graph, 0.0), "solved before the first step"
    assert GoalTracker(task.goal).update(play(graph, task.witness[AGENT]), 1.0), "the witness does not solve it"


def test_a_hundred_tidying_tasks_are_unsolved_and_solvable():
    world = MujocoWorld(compile_scene(stage().scene))
    counts = set()
    relations = set()
    for seed in range(100):
        task = PUT_AWAY.make(seed)
        check(task, world)
        counts.add(len(task.start.poses))
        relations |= {c.arg("relation") for c in task.witness[AGENT] if c.skill == "place"}
        assert len({task.instruction, *task.paraphrases}) == 1 + len(task.paraphrases) >= 3
        assert task.budgets.decisions > 1.5 * len(task.witness[AGENT])
    assert counts == {1, 2, 3}
    assert relations == {"in", "on"}


def test_homes_exist_and_take_things_that_way():
    info = stage().info
    for homes in HOMES.values():
        for relation, fixture in homes:
            kind = "interior" if relation == "in" else "surface"
            assert kind in {r.kind for r in info.entities[fixture].regions}, fixture


def test_tidying_refuses_a_wrong_count():
    for count in (0, 4):
        with pytest.raises(TaskError, match="num_things must lie in"):
            PUT_AWAY.make(0, num_things=count)


@needs_data
@pytest.mark.public_data
@pytest.mark.parametrize("index", range(20))
def test_published_activities_are_unsolved_solvable_and_settle(index):
    task = BEHAVIOR.make(index)
    world = MujocoWorld(compile_scene(task.scene))
    check(task, world)
    for seed in range(index + 20, 100, 20):
        again = BEHAVIOR.make(seed)
        assert again.scene == task.scene
        check(again, world)
    facts = {f for f in world.graph().facts if f.predicate in ("ontop", "inside")}
    world.step(round(1.0 / world.dt_sim_s))
    assert facts == {f for f in world.graph().facts if f.predicate in ("ontop", "inside")}


@needs_data
@pytest.mark.public_data
def test_an_unknown_activity_is_refused_with_the_nearest():
    assert len(set(ACTIVITIES)) == 20
    with pytest.raises(TaskError, match="store_honey"):
        BEHAVIOR.make(0, activity="store_hony")


def test_missing_data_says_where_to_put_it(tmp_path, monkeypatch):
    from embodied.tasks.household import behavior

    monkeypatch.setenv("EMBODIED_DATA", str(tmp_path))
    behavior._prepared.cache_clear()
    with pytest.raises(TaskError, match="set EMBODIED_DATA"):
        BEHAVIOR.make(0)
    behavior._prepared.cache_clear()
