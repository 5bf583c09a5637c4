"""Checks a planner's call before a robot moves; what is wrong goes back to the planner in words and as a code."""

from __future__ import annotations

import math
from collections.abc import Mapping

from embodied.errors import nearest_hint
from embodied.graph.facts import Graph
from embodied.skills.contract import Outcome, Parameter, Skill, SkillCall, failed

_KINDS = {
    "object": ("object",),
    "fixture": ("fixture",),
    "place": ("place",),
    "room": ("room",),
    "agent": ("agent",),
    "entity": ("object", "fixture", "place", "room", "agent"),
}


def check_call(call: SkillCall, skills: Mapping[str, Skill], graph: Graph, agent: str) -> Outcome | None:
    """Return why a call may not start, or None when it may.

    Codes: ``unknown_skill``, ``bad_argument``, ``unknown_name``, ``precondition``.
    """
    skill = skills.get(call.skill)
    if skill is None:
        return failed("unknown_skill", f"No skill {call.skill!r} on this robot. {nearest_hint(call.skill, skills)}")
    given = dict(call.args)
    for parameter in skill.parameters:
        if parameter.name not in given:
            if parameter.required:
                return failed(
                    "bad_argument", f"{call.skill} needs the argument {parameter.name!r}: {parameter.summary}."
                )
            continue
        problem = _check_argument(call, parameter, given.pop(parameter.name), graph)
        if problem is not None:
            return problem
    if given:
        names = [p.name for p in skill.parameters]
        return failed("bad_argument", f"{call.skill} takes no argument {sorted(given)}. It takes {names}.")
    unmet = skill.unmet(graph, agent, call)
    if unmet:
        facts = {"missing": str(unmet[0].missing)} if unmet[0].missing else {}
        return failed("precondition", "; ".join(u.message for u in unmet), **facts)
    return None


def _check_argument(call: SkillCall, parameter: Parameter, value: object, graph: Graph) -> Outcome | None:
    where = f"{call.skill}: argument {parameter.name!r}"
    if parameter.kind == "number":
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return failed("bad_argument", f"{where} must be a finite number, got {value!r}.")
        return None
    if not isinstance(value, str):
        return failed("bad_argument", f"{where} must be text, got {value!r}.")
    if parameter.kind == "choice" and value not in parameter.choices:
        return failed("bad_argument", f"{where} must be one of {parameter.choices}, got {value!r}.")
    if parameter.kind in _KINDS:
        node = graph.nodes.get(value)
        if node is None:
            return failed("unknown_name", f"{where}: nothing is called {value!r}. {nearest_hint(value, graph.nodes)}")
        if node.kind not in _KINDS[parameter.kind]:
            return failed(
                "bad_argument", f"{where} must be of kind {parameter.kind}, but {value!r} is of kind {node.kind}."
            )
    return None
