"""Every registered skill: typed, worded, and consistent between its preconditions, groundings and effects."""

from __future__ import annotations

import pytest

from embodied.agents.episode import compile_task, task_start
from embodied.agents.validator import check_call
from embodied.catalog import ROBOTS, SKILLS, TASKS
from embodied.skills.contract import Skill, SkillCall
from embodied.worlds.mujoco import MujocoWorld

FAMILIES = [n for n in TASKS.names() if "behavior" not in n]


@pytest.fixture(scope="module")
def starts():
    found = []
    for name in FAMILIES:
        task = TASKS.get(name).make(1)
        specs = {a.name: ROBOTS.get(a.robot) for a in task.agents}
        world = MujocoWorld(compile_task(task, specs))
        world.reset(1, task_start(task, specs))
        found.append((world.graph(), task.agents[0].name, specs[task.agents[0].name].kind))
    return found


@pytest.fixture(params=SKILLS.names())
def skill(request):
    return SKILLS.get(request.param)


def fitting(skill: Skill, starts):
    return [s for s in starts if s[2] in skill.robot_kinds or "any" in skill.robot_kinds]


def test_declares_itself(skill):
    assert isinstance(skill, Skill)
    assert skill.name in SKILLS
    assert skill.summary
    assert skill.timeout_s > 0
    assert all(p.summary for p in skill.parameters)
    assert all(p.choices for p in skill.parameters if p.kind == "choice")
    assert len(set(skill.failure_codes)) == len(skill.failure_codes)


def test_groundings_pass_the_validator_unless_a_precondition_fails(skill, starts):
    assert fitting(skill, starts), f"no task has a robot that can {skill.name}"
    for graph, agent, _ in fitting(skill, starts):
        calls = list(skill.groundings(graph, agent))
        assert calls == list(skill.groundings(graph, agent)), "groundings must come in a fixed order"
        for call in calls:
            assert call.skill == skill.name
            problem = check_call(call, {skill.name: skill}, graph, agent)
            unmet = skill.unmet(graph, agent, call)
            assert (problem is None) == (not unmet), (call, problem, unmet)
            assert skill.text(call)
            assert skill.cost_s(graph, agent, call) > 0


def test_effects_are_sets_of_facts_and_remove_only_what_they_name(skill, starts):
    for graph, agent, _ in fitting(skill, starts):
        for call in skill.groundings(graph, agent):
            if skill.unmet(graph, agent, call):
                continue
            added, removed = skill.effects(graph, agent, call)
            after = graph.changed(added, removed)
            assert added <= after.facts
            assert not (removed - added) & after.facts


def test_wrong_arguments_are_typed_failures(skill, starts):
    for graph, agent, _ in fitting(skill, starts):
        skills = {skill.name: skill}
        problem = check_call(SkillCall.of(skill.name, no_such_argument="x"), skills, graph, agent)
        assert problem is not None
        assert problem.code == "bad_argument"
        for parameter in skill.parameters:
            if parameter.kind in ("text",):
                continue
            bad = float("nan") if parameter.kind == "number" else "no_such_name"
            given = {p.name: bad if p.name == parameter.name else _some(p, graph) for p in skill.parameters}
            problem = check_call(SkillCall(skill.name, tuple(given.items())), skills, graph, agent)
            assert problem is not None
            assert problem.code in ("bad_argument", "unknown_name")


def _some(parameter, graph):
    if parameter.kind == "number":
        return 1.0
    if parameter.kind == "choice":
        return parameter.choices[0]
    if parameter.kind == "text":
        return "hello"
    kinds = (parameter.kind,) if parameter.kind != "entity" else ("fixture", "object", "place")
    return next((n for n, node in sorted(graph.nodes.items()) if node.kind in kinds), "none_of_this_kind")
