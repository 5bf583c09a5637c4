"""From a model's words to skill calls: strict reading, a few counted repairs, a named fault for all the rest."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from embodied.errors import nearest_hint
from embodied.graph.facts import Graph
from embodied.skills.contract import ArgValue, Parameter, Skill, SkillCall


class AnswerFault(Exception):  # noqa: N818  a fault of the model, not of this program
    """An answer that cannot be used.

    Attributes:
      kind: ``empty``, ``prose``, ``truncated``, ``not_a_number``, ``schema``, ``unknown_skill``, ``bad_argument`` or
        ``refused``.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class _Call(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    skill: str = Field(min_length=1)
    args: dict[str, str | int | float | None] = Field(default_factory=dict)


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    calls: list[_Call] = Field(min_length=1)
    message: str = ""
    confidence: float | None = Field(default=None, ge=0.0, le=1.0)
    expected: str = ""


class Answer(BaseModel):
    """A usable answer."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)
    calls: tuple[SkillCall, ...]
    message: str = ""
    confidence: float | None = None
    expected: str = ""


def read_response(
    response: Mapping[str, Any], skills: Mapping[str, Skill], graph: Graph, max_calls: int, repairs: Counter[str]
) -> Answer:
    """Read a response of :mod:`embodied.planners.openai.client`.

    Args:
      response: ``content``, ``tool_calls``, ``finish_reason``.
      skills: what may be called.
      graph: for the names of things.
      max_calls: calls beyond it are cut off (and counted as a repair).
      repairs: counter to add repairs to.

    Raises:
      AnswerFault: it holds no usable calls.
    """
    if response.get("tool_calls"):
        calls = [{"skill": t["name"], "args": _loads(t["arguments"] or "{}", "")} for t in response["tool_calls"]]
        data: Any = {"calls": calls}
    else:
        if response.get("refusal"):
            raise AnswerFault("refused", f"The model refused: {_short(str(response['refusal']))}")
        data = _read_json(str(response.get("content") or ""), str(response.get("finish_reason") or ""), repairs)
    answer = _validate(_shaped(data, skills, repairs))
    if len(answer.calls) > max_calls:
        repairs["cut_to_max_calls"] += 1
    calls = tuple(_to_call(c, skills, graph, repairs) for c in answer.calls[:max_calls])
    return Answer(calls=calls, message=answer.message, confidence=answer.confidence, expected=answer.expected)


def _read_json(text: str, finish_reason: str, repairs: Counter[str]) -> Any:  # noqa: ANN401
    stripped = text.strip()
    if not stripped:
        raise AnswerFault("empty", "The answer is empty. Answer with a JSON object that has calls.")
    start = min((i for i in (stripped.find("{"), stripped.find("[")) if i >= 0), default=-1)
    if start < 0:
        raise AnswerFault("prose", f"The answer holds no JSON: {_short(stripped)}")
    if start > 0:
        repairs["json_cut_out_of_text"] += 1
    return _loads(stripped[start:], finish_reason, repairs)


def _loads(text: str, finish_reason: str, repairs: Counter[str] | None = None) -> Any:  # noqa: ANN401
    def refuse(word: str) -> float:
        raise AnswerFault("not_a_number", f"{word} is not a number JSON allows. Give finite numbers.")

    try:
        data, end = json.JSONDecoder(parse_constant=refuse).raw_decode(text)
    except json.JSONDecodeError as error:
        is_cut = finish_reason == "length" or error.pos >= len(text.rstrip()) - 1 or "Unterminated" in error.msg
        if is_cut:
            raise AnswerFault("truncated", "The JSON ends before it is complete. Give fewer calls.") from error
        kind = "prose" if text.lstrip()[:1] not in "{[" else "schema"
        raise AnswerFault(kind, f"The JSON is broken at character {error.pos}: {error.msg}.") from error
    except (RecursionError, ValueError) as error:
        raise AnswerFault("schema", "The JSON is nested too deep or holds a number too long.") from error
    if repairs is not None and text[end:].strip():
        repairs["text_after_json"] += 1
    return data


def _shaped(data: Any, skills: Mapping[str, Skill], repairs: Counter[str]) -> Any:  # noqa: ANN401
    """Bring the usual other shapes (a bare call, a bare list, flat or positional arguments) into the one asked for."""
    if isinstance(data, list):
        repairs["bare_list"] += 1
        data = {"calls": data}
    elif isinstance(data, dict) and "calls" not in data and "skill" in data:
        repairs["bare_call"] += 1
        data = {"calls": [data]}
    if isinstance(data, dict) and isinstance(data.get("calls"), list):
        return {**data, "calls": [_shaped_call(c, skills, repairs) for c in data["calls"]]}
    return data


def _shaped_call(call: Any, skills: Mapping[str, Skill], repairs: Counter[str]) -> Any:  # noqa: ANN401
    if not isinstance(call, dict) or "skill" not in call:
        return call
    if "args" not in call and len(call) > 1:
        repairs["flat_arguments"] += 1
        return {"skill": call["skill"], "args": {k: v for k, v in call.items() if k != "skill"}}
    if isinstance(call.get("args"), list) and str(call["skill"]) in skills:
        repairs["positional_arguments"] += 1
        names = [p.name for p in skills[str(call["skill"])].parameters]
        return {**call, "args": dict(zip(names, call["args"], strict=False))}
    return call


def _validate(data: Any) -> _Answer:  # noqa: ANN401
    if isinstance(data, dict) and data.get("calls") == []:
        raise AnswerFault("empty", "calls is empty. Give at least one call, or done, or abstain.")
    try:
        return _Answer.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(x) for x in first["loc"]) or "the answer"
        raise AnswerFault("schema", f"{where}: {first['msg']}.") from error


def _to_call(call: _Call, skills: Mapping[str, Skill], graph: Graph, repairs: Counter[str]) -> SkillCall:
    name = call.skill
    if name not in skills:
        name = re.sub(r"[\s\-]+", "_", name.strip()).lower().removesuffix("()")
        if name not in skills:
            raise AnswerFault("unknown_skill", f"No skill {call.skill!r}. {nearest_hint(call.skill, skills)}")
        repairs["skill_respelled"] += 1
    skill = skills[name]
    unknown = sorted(set(call.args) - {p.name for p in skill.parameters})
    if unknown:
        raise AnswerFault("bad_argument", f"{name} has no argument {unknown}; it takes {_names(skill.parameters)}.")
    args: list[tuple[str, ArgValue]] = []
    for parameter in skill.parameters:
        value = call.args.get(parameter.name)
        if value is None and parameter.required:
            raise AnswerFault("bad_argument", f"{name} needs {parameter.name!r}: {parameter.summary}.")
        if value is not None:
            args.append((parameter.name, _value(name, parameter, value, graph, repairs)))
    return SkillCall(name, tuple(args))


def _value(skill: str, parameter: Parameter, value: str | int | float, graph: Graph, repairs: Counter[str]) -> ArgValue:
    where = f"{skill}: {parameter.name!r}"
    if parameter.kind == "number":
        try:
            number = float(value)
        except (ValueError, OverflowError) as error:
            raise AnswerFault("bad_argument", f"{where} must be a number; got {value!r}.") from error
        if not math.isfinite(number):
            raise AnswerFault("not_a_number", f"{where} must be finite; got {value!r}.")
        if isinstance(value, str):
            repairs["number_as_text"] += 1
        return number
    text = value if isinstance(value, str) else str(value)
    if parameter.kind == "choice":
        return _among(where, text, parameter.choices, repairs)
    if parameter.kind == "text" or text in graph.nodes:
        return text
    return _among(where, text, sorted(graph.nodes), repairs)


def _among(where: str, text: str, allowed: Sequence[str], repairs: Counter[str]) -> str:
    if text in allowed:
        return text
    plain = _plain(text)
    matches = [a for a in allowed if _plain(a) == plain]
    if len(matches) != 1:
        raise AnswerFault("bad_argument", f"{where} cannot be {text!r}. {nearest_hint(text, allowed)}")
    repairs["name_respelled"] += 1
    return matches[0]


def _plain(text: str) -> str:
    return re.sub(r"[\s_\-]+", "_", text.strip().lower())


def _names(parameters: Sequence[Parameter]) -> list[str]:
    return [p.name for p in parameters]


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "…"
