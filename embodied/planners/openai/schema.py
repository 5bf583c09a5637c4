"""The JSON schema of an answer, in the form that vendors' strict mode and local servers both take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embodied.graph.facts import Graph
from embodied.skills.contract import Parameter, Skill

_KINDS = {
    "object": ("object",),
    "fixture": ("fixture",),
    "place": ("place",),
    "room": ("room",),
    "agent": ("agent",),
    "entity": ("agent", "fixture", "object", "place", "room"),
}


def response_format(skills: Mapping[str, Skill], max_calls: int, names: Graph | None = None) -> dict[str, Any]:
    """Return ``response_format`` for an answer of 1 to ``max_calls`` calls.

    Args:
      skills: what may be called.
      max_calls: most calls in one answer.
      names: a graph to restrict entity arguments to its names; None leaves them free (the schema then never changes,
        which servers cache).
    """
    calls = {
        "type": "array",
        "minItems": 1,
        "maxItems": max_calls,
        "items": {"anyOf": [_call(skills[name], names) for name in sorted(skills)]},
    }
    schema = _object({"calls": calls})
    return {"type": "json_schema", "json_schema": {"name": "plan", "strict": True, "schema": schema}}


def tools(skills: Mapping[str, Skill], names: Graph | None = None) -> list[dict[str, Any]]:
    """Return one function tool for each skill."""
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": skills[name].summary,
                "strict": True,
                "parameters": _arguments(skills[name], names),
            },
        }
        for name in sorted(skills)
    ]


def _call(skill: Skill, names: Graph | None) -> dict[str, Any]:
    return _object({"skill": {"type": "string", "enum": [skill.name]}, "args": _arguments(skill, names)})


def _arguments(skill: Skill, names: Graph | None) -> dict[str, Any]:
    return _object({p.name: _value(p, names) for p in skill.parameters})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _value(parameter: Parameter, names: Graph | None) -> dict[str, Any]:
    kind = "number" if parameter.kind == "number" else "string"
    found: dict[str, Any] = {"type": kind if parameter.required else [kind, "null"]}
    values = list(parameter.choices)
    if names is not None and parameter.kind in _KINDS:
        values = [n for n in sorted(names.nodes) if names.nodes[n].kind in _KINDS[parameter.kind]]
    if values:
        found["enum"] = values if parameter.required else [*values, None]
    return found
