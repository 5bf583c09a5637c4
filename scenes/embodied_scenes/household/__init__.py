"""Scenes of a home."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from embodied_scenes.load import load_scene
from embodied_scenes.spec import SceneSpec

FLAT_FILE = Path(__file__).with_name("flat.yaml")


@cache
def flat() -> SceneSpec:
    """Return ``household/flat@1``: kitchen, living room and bedroom."""
    return load_scene(FLAT_FILE)
