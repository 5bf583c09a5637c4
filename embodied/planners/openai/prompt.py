"""The words of a request: what never changes first, so that a server's prefix cache pays, the moment last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from embodied.graph.facts import Graph
from embodied.planners.contract import PlannerView, Step
from embodied.skills.contract import Parameter, Skill

_RULES = """You control one robot by calling its skills. Read the instruction, what the robot believes and what it \
did so far, and answer with the next skill calls in order.
Rules: use only the skills below and only names that occur in the scene. A skill needs its preconditions: go to a \
thing before using it, open a door before reaching inside, hold one thing at a time. After a failure do something \
else. Call done when the instruction is fulfilled, abstain when it cannot be."""

_FORMAT = """Answer with one JSON object and nothing else, for instance
{"calls": [{"skill": "go_to", "args": {"target": "table_1"}}]}"""


def system_text(skills: Mapping[str, Skill], max_calls: int, *, is_json: bool) -> str:
    """Return the constant prefix: rules, skills, form of the answer."""
    lines = [_RULES, "", "Skills:"]
    lines += [_skill_line(skills[name]) for name in sorted(skills)]
    lines += ["", f"Give between 1 and {max_calls} calls."]
    if is_json:
        lines.append(_FORMAT)
    return "\n".join(lines)


def _skill_line(skill: Skill) -> str:
    arguments = ", ".join(_parameter(p) for p in skill.parameters)
    return f"- {skill.name}({arguments}): {skill.summary}"


def _parameter(parameter: Parameter) -> str:
    kind = "|".join(parameter.choices) if parameter.choices else parameter.kind
    return f"{parameter.name}{'' if parameter.required else '?'}: {kind}"


def view_text(view: PlannerView, memory_steps: int) -> str:
    """Return the changing part: the instruction and the scene's names first, then facts, past steps and budget."""
    lines = [
        f"You are {view.agent}.",
        f"Instruction: {view.instruction}",
        "",
        names_text(view.graph),
        "",
        "Believed now:",
        facts_text(view.graph),
        "",
        "Last steps:",
        steps_text(view.memory, memory_steps),
    ]
    lines += [f"Message from {m.sender}: {m.text}" for m in view.inbox]
    lines.append(f"Left: {view.budget.sim_time_s:.0f} s, {view.budget.decisions} decisions.")
    return "\n".join(lines)


def names_text(graph: Graph) -> str:
    """List the names of a scene by kind, with what they afford."""
    lines = []
    for kind in ("room", "place", "fixture", "object", "agent"):
        nodes = graph.of_kind(kind)
        if nodes:
            words = [n.name + (f"[{','.join(sorted(n.properties))}]" if n.properties else "") for n in nodes]
            lines.append(f"{kind}s: {' '.join(words)}")
    return "\n".join(lines)


def facts_text(graph: Graph) -> str:
    """Say facts compactly: those of two arguments grouped by predicate and second argument."""
    groups: dict[tuple[str, str], list[str]] = {}
    for f in sorted(graph.facts):
        if len(f.args) == 2:
            groups.setdefault((f.predicate, f.args[1]), []).append(f.args[0])
        else:
            groups.setdefault((f.predicate, ""), []).append(",".join(f.args))
    lines = [
        f"{word} {target}: {' '.join(things)}" if target else f"{word}: {' '.join(things)}"
        for (word, target), things in sorted(groups.items())
    ]
    return "\n".join(lines) if lines else "nothing"


def steps_text(memory: Sequence[Step], count: int) -> str:
    """Say the last steps and how they ended."""
    if not memory:
        return "none"
    lines = []
    for step in memory[-count:] if count else ():
        outcome = step.outcome
        end = str(outcome.status) + (f" ({outcome.code}: {outcome.message})" if outcome.code else "")
        lines.append(f"{step.time_s:.1f} s {step.call}: {end}")
    return "\n".join(lines) if lines else "none"
