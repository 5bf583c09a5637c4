"""Every offline planner: honest about privilege, seeded, and unable to break an episode."""

from __future__ import annotations

import pytest

from embodied.agents.episode import EpisodeRequest, run_episode
from embodied.catalog import PLANNERS, TASKS

OFFLINE = [n for n in PLANNERS.names() if not n.startswith("openai")]
FAMILIES = [n for n in TASKS.names() if "behavior" not in n]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("planner", OFFLINE)
def test_same_seed_same_episode(planner, family):
    request = EpisodeRequest(task_id=family, seed=2, planner=planner, world="symbolic")
    first, second = run_episode(request), run_episode(request)
    assert (first.outcome, first.decisions, first.skill_steps, first.sim_time_s) == (
        second.outcome,
        second.decisions,
        second.skill_steps,
        second.sim_time_s,
    )
    assert first.outcome not in ("crash", "planner_failure")


@pytest.mark.parametrize("planner", OFFLINE)
def test_privilege_is_declared_in_the_result(planner):
    result = run_episode(EpisodeRequest(task_id=FAMILIES[0], seed=0, planner=planner, world="symbolic"))
    assert result.privileged is bool(PLANNERS.get(planner)().privileged)
