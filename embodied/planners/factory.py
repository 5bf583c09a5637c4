"""From a planner's spelling on the command line to the planner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from embodied.errors import PlannerError
from embodied.planners.contract import Planner


def make_planner(spec: str, **options: Any) -> Planner:  # noqa: ANN401  options are the planner's own
    """Build a planner from ``name``, ``name:argument`` or ``name:argument?option=value&option=value``.

    Args:
      spec: for instance ``oracle``, ``oracle?weight=2`` or ``openai:gpt-x?cassette=run.jsonl&mode=replay&images=0``.
      options: further keyword arguments, stronger than those of ``spec``.

    Raises:
      UnknownNameError: no such planner; the message holds the nearest names.
      PlannerError: the planner does not take these options or this argument.
    """
    from embodied.catalog import PLANNERS

    name, argument, given = parse_spec(spec)
    build = PLANNERS.get(name)
    merged: dict[str, Any] = {**given, **options}
    positional = (argument,) if argument else ()
    try:
        return build(*positional, **merged)
    except TypeError as error:
        raise PlannerError(
            f"Planner {spec!r} cannot be built: {error}. Write it as name[:argument][?option=value&…] with the "
            f"options of {name!r} (see docs/planners.md)."
        ) from error


def parse_spec(spec: str) -> tuple[str, str, Mapping[str, str | int | float | bool]]:
    """Split a planner spec into name, argument and options; numbers and true/false are read as such."""
    head, _, query = spec.strip().partition("?")
    name, _, argument = head.partition(":")
    if not name:
        raise PlannerError(f"A planner spec needs a name; got {spec!r}. For instance: oracle, random, openai:MODEL.")
    options: dict[str, str | int | float | bool] = {}
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError as error:
        raise PlannerError(f"Options of planner {spec!r} must read option=value&…; got {query!r}.") from error
    for key, value in pairs:
        if key in options:
            raise PlannerError(f"Option {key!r} stands twice in planner {spec!r}; give it once.")
        options[key] = _read(value)
    return name, argument, options


def _read(text: str) -> str | int | float | bool:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
