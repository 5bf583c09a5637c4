"""Randomised variants of the flat: the same names and rooms, other layouts and looks, by seed."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import numpy as np

from embodied_scenes.load import parse_scene, read_yaml
from embodied_scenes.spec import SceneSpec

_FORWARD_M, _SIDEWAYS_M, _TURN_RAD = 0.05, 0.015, 0.012  # away from the wall; neighbours in a row must not touch
_FREE_M, _FREE_RAD = 0.08, 0.08
_FREE = ("coffee_table",)  # stands in the middle of its room
_TINT = 0.10


@cache
def _flat_data() -> dict[str, Any]:
    from embodied_scenes.household import FLAT_FILE

    return dict(read_yaml(FLAT_FILE))


def flat_variant(rng: np.random.Generator, amount: float = 1.0) -> SceneSpec:
    """Return the flat with its furniture shifted and turned a little, and walls and floors in other tones.

    What stands on furniture goes with it; furniture built of two entities stays together. Colours of furniture and
    things are for the camera to change, see ``embodied.train.planner.stage``.

    Args:
      rng: source of all choices.
      amount: 0 is the flat itself; at 1 furniture moves by up to 50 mm from its wall, what stands free by 80 mm.

    Returns:
      A scene ``household/flat_variant@1``; it may overlap where furniture stands close, then compiling refuses it.
    """
    data = copy.deepcopy(_flat_data())
    data["id"] = "household/flat_variant@1"
    moved: dict[tuple[float, ...], tuple[float, float, float]] = {}
    for entity in data["entities"]:
        if entity.get("movable") or "on" in entity:
            continue
        x, y, z = entity["pos_m"]
        if (x, y) not in moved:
            moved[x, y] = _shift(entity, rng, amount)
        dx, dy, turn = moved[x, y]
        entity["pos_m"] = [x + dx, y + dy, z]
        entity["yaw_rad"] = float(entity.get("yaw_rad", 0.0)) + turn
    for room in data["rooms"]:
        room["floor_rgba"] = _tinted(room["floor_rgba"], rng, amount)
    tone = _tinted([0.88, 0.87, 0.84, 1.0], rng, amount)
    for wall in data["walls"]:
        wall["rgba"] = tone
    return parse_scene(data, "flat.yaml (variant)")


def _shift(entity: dict[str, Any], rng: np.random.Generator, amount: float) -> tuple[float, float, float]:
    u = rng.uniform(-1.0, 1.0, 3) * amount
    if entity["name"] in _FREE:
        return float(u[0] * _FREE_M), float(u[1] * _FREE_M), float(u[2] * _FREE_RAD)
    yaw = float(entity.get("yaw_rad", 0.0))
    ahead, left = abs(float(u[0])) * _FORWARD_M, float(u[1]) * _SIDEWAYS_M
    dx, dy = np.cos(yaw) * ahead - np.sin(yaw) * left, np.sin(yaw) * ahead + np.cos(yaw) * left
    return float(dx), float(dy), float(u[2]) * _TURN_RAD


def _tinted(rgba: list[float], rng: np.random.Generator, amount: float) -> list[float]:
    rgb = np.clip(np.array(rgba[:3]) + rng.uniform(-_TINT, _TINT, 3) * amount, 0.0, 1.0)
    return [*(float(v) for v in rgb), rgba[3]]
