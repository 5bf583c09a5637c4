"""Wall-clock figures of an episode, in a file of their own beside its log: the log itself stays equal between runs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from embodied.errors import LogError
from embodied.record.wire import plain


def wall_path(log_path: Path | str) -> Path:
    """Return where the figures of a log live: ``episode.mcap`` has ``episode.wall.json``."""
    return Path(log_path).with_suffix(".wall.json")


def write_wall(log_path: Path | str, figures: Mapping[str, Any]) -> Path:
    """Write figures such as ``wall_s`` or ``planner_wall_s`` beside a log and return the file's path."""
    target = wall_path(log_path)
    part = target.with_name(target.name + ".part")
    part.write_text(json.dumps(plain(figures), sort_keys=True, indent=1) + "\n")
    os.replace(part, target)
    return target


def read_wall(log_path: Path | str) -> dict[str, Any]:
    """Read the figures beside a log; empty if there are none.

    Raises:
      LogError: the file is no JSON object.
    """
    target = wall_path(log_path)
    if not target.is_file():
        return {}
    try:
        figures = json.loads(target.read_text())
    except ValueError as error:
        raise LogError(f"{target.name} is no JSON: {error}. Delete it; it holds wall-clock figures only.") from error
    if not isinstance(figures, dict):
        raise LogError(f"{target.name} holds a {type(figures).__name__}, expected an object of figures. Delete it.")
    return figures
