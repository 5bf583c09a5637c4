"""Calls every planner needs: to finish, to give up and to wait, in the words of the skills at hand."""

from __future__ import annotations

from collections.abc import Mapping

from embodied.skills.contract import ArgValue, Parameter, Skill, SkillCall


def done_call() -> SkillCall:
    """Return the call that says the goal holds."""
    return SkillCall("done")


def abstain_call(skills: Mapping[str, Skill], reason: str) -> SkillCall:
    """Return the call that says the task cannot be done, with a reason if the skill takes one."""
    return SkillCall("abstain", _filled(skills, "abstain", reason, 0.0))


def wait_call(skills: Mapping[str, Skill], duration_s: float) -> SkillCall:
    """Return a wait of ``duration_s``, or ``done`` for a robot that cannot wait."""
    if "wait" not in skills:
        return done_call()
    return SkillCall("wait", _filled(skills, "wait", "", duration_s))


def _filled(skills: Mapping[str, Skill], name: str, text: str, number: float) -> tuple[tuple[str, ArgValue], ...]:
    parameters = skills[name].parameters if name in skills else ()
    return tuple((p.name, _value(p, text, number)) for p in parameters if p.kind in ("text", "number", "choice"))


def _value(parameter: Parameter, text: str, number: float) -> ArgValue:
    if parameter.kind == "number":
        return number
    return parameter.choices[0] if parameter.choices else text
