"""The vocabulary of the compact planner: words of the task's instructions, skills, and names of the flat."""

from __future__ import annotations

from functools import cache

from embodied.skills.contract import SkillCall
from embodied.tasks.household.put_away import HOMES, stage, wordings
from embodied.train.planner.teacher import SURFACES, TOUR
from embodied_deploy.planner.vocabulary import NONE, OTHER, Call, Vocabulary, words_of

SKILLS = ("go_to", "look", "open", "close", "pick", "place", "done")
OUTCOMES = (
    "success",
    "precondition",
    "not_found",
    "unreachable",
    "blocked",
    "grasp_failed",
    "dropped",
    "slipped",
    "stuck",
    "closed",
    "occupied",
    "timeout",
    "already_open",
    "already_closed",
    "bad_argument",
    "unknown_name",
    OTHER,
)
INSTRUCTION_TOKENS = 32


@cache
def vocabulary() -> Vocabulary:
    """Return the vocabulary; its order is part of every trained package."""
    info = stage().info
    things = sorted(n for n in stage().movable if info.entities[n].category in HOMES)
    names = {name for stop in TOUR for name in stop} | set(SURFACES.values())
    names |= {target for homes in HOMES.values() for _, target in homes}
    furniture = sorted(names)
    text = " ".join(wordings([("x", "in", "y"), ("x", "on", "y"), ("x", "on", "y")]))
    words = sorted(set(words_of(text)) - {"x", "y"})
    return Vocabulary(
        words=("<pad>", "<unknown>", *words, *things, *furniture),
        skills=SKILLS,
        things=(NONE, *things),
        furniture=(NONE, *furniture),
        relations=(NONE, "in", "on"),
        outcomes=OUTCOMES,
    )


def to_call(call: SkillCall) -> Call:
    """Return a skill call as the device writes it."""
    given = {k: str(v) for k, v in call.args}
    return Call(call.skill, given.get("thing", ""), given.get("target", ""), given.get("relation", ""))


def to_skill_call(call: Call) -> SkillCall:
    """Return a device's call as skills take it."""
    given = (("thing", call.thing), ("target", call.furniture), ("relation", call.relation))
    return SkillCall(call.skill, tuple((k, v) for k, v in given if v))


def outcome_word(code: str) -> str:
    """Return the word of an outcome code; success has none."""
    return code or "success"
