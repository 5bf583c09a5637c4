"""Every task family: seeded, unsolved at the start, solvable by its witness on facts, unsolved by doing nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from embodied.agents.episode import EpisodeRequest, compile_task, run_episode, task_start
from embodied.catalog import ROBOTS, TASKS
from embodied.tasks.goal import GoalTracker, from_json, goal_facts, to_json
from embodied.worlds.mujoco import MujocoWorld

DATA = Path(os.environ.get("EMBODIED_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
SEEDS = (0, 1, 2)


@pytest.fixture(params=TASKS.names())
def family(request):
    if "behavior" in request.param and not (DATA / "behavior").is_dir():
        pytest.skip(f"no BEHAVIOR activities at {DATA}; set EMBODIED_DATA")
    return TASKS.get(request.param)


@pytest.mark.parametrize("seed", SEEDS)
def test_made_twice_is_equal_and_speaks(family, seed):
    task = family.make(seed)
    assert task == family.make(seed)
    assert task.seed == seed
    assert task.id in TASKS
    assert len(task.instruction) > 10
    assert from_json(to_json(task.goal)) == task.goal
    assert task.budgets.sim_time_s > 0
    assert task.budgets.decisions > 0


def test_seeds_differ(family):
    assert len({(family.make(s).instruction, str(family.make(s).start)) for s in range(6)}) > 1


@pytest.mark.parametrize("seed", SEEDS)
def test_start_is_physical_unsolved_and_speaks_of_what_exists(family, seed):
    task = family.make(seed)
    specs = {a.name: ROBOTS.get(a.robot) for a in task.agents}
    world = MujocoWorld(compile_task(task, specs))
    world.reset(seed, task_start(task, specs))
    graph = world.graph()
    assert not GoalTracker(task.goal).update(graph, 0.0), "solved before the first step"
    for constraint in task.constraints:
        assert GoalTracker(constraint).update(graph, 0.0)
    unknown = {a for f in goal_facts(task.goal) for a in f.args if a not in graph.nodes}
    assert not unknown
    before = {n: world.body_pos_world_m[0, world.scene.model.body(n).id].copy() for n in movable(world)}
    world.step(round(1.0 / world.dt_sim_s))
    for name, pos in before.items():
        moved_m = abs(world.body_pos_world_m[0, world.scene.model.body(name).id] - pos).max()
        assert moved_m < 0.03, f"{name} moved {moved_m:.3f} m on its own: it overlaps or floats"


def movable(world):
    return [e.name for e in world.scene.info.entities.values() if e.movable]


@pytest.mark.parametrize("seed", SEEDS)
def test_oracle_solves_it_on_facts_and_noop_does_not(family, seed):
    solved = run_episode(EpisodeRequest(task_id=family.id, seed=seed, planner="oracle", world="symbolic"))
    assert solved.success, solved.reason
    assert solved.privileged
    assert solved.initial_fraction < 1.0
    idle = run_episode(EpisodeRequest(task_id=family.id, seed=seed, planner="noop", world="symbolic"))
    assert not idle.success
    assert idle.fraction <= solved.fraction
