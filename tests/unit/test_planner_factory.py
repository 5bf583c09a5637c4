"""Specs, the floor planners and the errors of the factory."""

from __future__ import annotations

import pytest

from embodied.errors import PlannerError, UnknownNameError
from embodied.planners.factory import make_planner, parse_spec
from embodied.planners.search.oracle import OraclePlanner
from tests.planner_support import household, household_skills, view_of

SKILLS = household_skills()


def test_spec_parts() -> None:
    assert parse_spec("openai:m/x-1?images=0&mode=replay&temperature=0.5&strict=true") == (
        "openai",
        "m/x-1",
        {"images": 0, "mode": "replay", "temperature": 0.5, "strict": True},
    )


@pytest.mark.parametrize(
    "spec", ["", "?a=1", "oracle?weight", "oracle?weight=1&weight=2", "oracle?colour=red", "noop:x:y?z=1"]
)
def test_bad_specs_say_what_is_wrong(spec: str) -> None:
    with pytest.raises(PlannerError) as caught:
        make_planner(spec)
    assert len(str(caught.value)) > 40


def test_unknown_planner_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="oracle"):
        make_planner("orcale")


def test_options_reach_the_planner() -> None:
    planner = make_planner("oracle?weight=2", max_expansions=7)
    assert isinstance(planner, OraclePlanner)
    assert (planner.weight, planner.max_expansions) == (2, 7)


def test_random_repeats_with_its_seed_and_differs_without() -> None:
    view = view_of(household(8), SKILLS)

    def run(seed: int) -> list[str]:
        planner = make_planner("random")
        planner.reset("robot_0", seed)
        return [str(planner.act(view).calls[0]) for _ in range(12)]

    assert run(3) == run(3)
    assert run(3) != run(4)
    assert set(run(3)) <= {str(c) for c in view.admissible}


def test_noop_waits_and_stops_in_time() -> None:
    planner = make_planner("noop")
    assert [c.skill for c in planner.act(view_of(household(1), SKILLS)).calls] == ["wait"]
    assert [c.skill for c in planner.act(view_of(household(1), SKILLS, sim_time_s=20.0)).calls] == ["done"]
    assert [c.skill for c in planner.act(view_of(household(1), SKILLS, decisions=1)).calls] == ["done"]


@pytest.mark.parametrize("name", ["random", "noop"])
def test_floor_planners_are_not_privileged(name: str) -> None:
    assert make_planner(name).privileged is False
