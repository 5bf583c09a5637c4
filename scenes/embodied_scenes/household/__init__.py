"""Scenes of a home."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from embodied_scenes.errors import SceneFileError
from embodied_scenes.load import load_scene, parse_scene, read_yaml
from embodied_scenes.spec import SceneSpec

FLAT_FILE = Path(__file__).with_name("flat.yaml")
GARDEN_FILE = Path(__file__).with_name("flat_garden.yaml")
_ADDED = ("rooms", "walls", "cameras", "entities", "places")


@cache
def flat() -> SceneSpec:
    """Return ``household/flat@1``: kitchen, living room and bedroom."""
    return load_scene(FLAT_FILE)


@cache
def flat_garden() -> SceneSpec:
    """Return ``household/flat_garden@1``: the flat with five more rooms and no movable things."""
    return extended(FLAT_FILE, GARDEN_FILE)


def extended(base: Path, addition: Path) -> SceneSpec:
    """Build a variant of a scene from the file of what is different.

    Args:
      base: scene file; its movable things are left out.
      addition: its ``id`` and ``summary`` replace those of the base, its lists are added, and ``drop_walls`` names
        walls of the base by their ends.

    Raises:
      SceneFileError: a wall to drop that the base does not have, or whatever is wrong with the outcome.
    """
    data, more = dict(read_yaml(base)), dict(read_yaml(addition))
    walls = list(data.get("walls", ()))
    for ends in more.pop("drop_walls", ()):
        found = [w for w in walls if [w["start_m"], w["end_m"]] == ends]
        if not found:
            have = [[w["start_m"], w["end_m"]] for w in walls]
            raise SceneFileError(f"{addition.name}: drop_walls: {base.name} has no wall {ends}. It has {have}.")
        walls.remove(found[0])
    data["walls"] = walls
    data["entities"] = [e for e in data.get("entities", ()) if not e.get("movable")]
    for key in _ADDED:
        data[key] = [*data.get(key, ()), *more.pop(key, ())]
    return parse_scene({**data, **more}, addition.name)
