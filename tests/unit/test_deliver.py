"""warehouse/deliver@1: seeded, unsolved at the start, solved by its witness, refused when it cannot be made."""

from __future__ import annotations

import pytest

from embodied.agents.episode import EpisodeRequest, compile_task, run_episode, task_start
from embodied.catalog import ROBOTS
from embodied.errors import TaskError
from embodied.skills.warehouse.all import charge, drive_to, lift, lower, scan_code
from embodied.tasks.goal import GoalTracker
from embodied.tasks.warehouse.deliver import DELIVER
from embodied.worlds.symbolic import SymbolicWorld

SKILLS = {s.name: s for s in (charge, drive_to, lift, lower, scan_code)}


@pytest.mark.parametrize("agents", [1, 3])
def test_witness_solves_every_seed_and_the_start_does_not(agents):
    for seed in range(12):
        task = DELIVER.make(seed, agents=agents)
        specs = {a.name: ROBOTS.get(a.robot) for a in task.agents}
        world = SymbolicWorld(compile_task(task, specs))
        world.reset(seed, task_start(task, specs))
        assert not GoalTracker(task.goal).update(world.graph(), 0.0)
        for agent, plan in task.witness.items():
            for call in plan[:-1]:
                graph, skill = world.graph(), SKILLS[call.skill]
                assert skill.unmet(graph, agent, call) == (), (seed, str(call))
                world.change_facts(*skill.effects(graph, agent, call))
        assert GoalTracker(task.goal).update(world.graph(), 1.0)


def test_seeds_differ_and_some_ask_for_a_scan():
    tasks = [DELIVER.make(s) for s in range(30)]
    assert DELIVER.make(4) == DELIVER.make(4)
    assert len({t.instruction for t in tasks}) > 10
    scans = sum("Scan" in t.instruction for t in tasks)
    assert 3 <= scans <= 20
    for task in tasks:
        assert len({task.instruction, *task.paraphrases}) == 3


@pytest.mark.parametrize("agents", [0, 4])
def test_too_many_robots_are_refused(agents):
    with pytest.raises(TaskError, match="one pick station each"):
        DELIVER.make(0, agents=agents)


def test_the_oracle_delivers_alone_and_in_a_team_and_rules_do_from_belief():
    assert run_episode(EpisodeRequest(task_id=DELIVER.id, seed=2)).success
    assert run_episode(EpisodeRequest(task_id=DELIVER.id, seed=2, options={"task": {"agents": 3}})).success
    assert run_episode(EpisodeRequest(task_id=DELIVER.id, seed=3, planner="scripted")).success
