"""From pixels to names: which entities a frame shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from embodied.sensors.camera.frame import Frame

if TYPE_CHECKING:
    from embodied_scenes.builders import CompiledScene


def entity_of_geom(scene: CompiledScene) -> tuple[str | None, ...]:
    """Return for each geom of the model the entity or robot it belongs to; None for walls, floors and marks."""
    model, info = scene.model, scene.info
    owner: dict[int, str] = {model.body(b).id: n for n, e in info.entities.items() for b in e.bodies}
    for robot in info.robots.values():
        for body in range(model.nbody):
            if model.body(body).name.startswith(robot.prefix):
                owner[body] = robot.name
    return tuple(owner.get(int(body)) for body in model.geom_bodyid)


def visible_entities(frame: Frame, scene: CompiledScene, min_pixels: int = 4) -> Mapping[str, int]:
    """Return the names of entities and robots in a frame with their pixel counts.

    Args:
      frame: a frame of a camera in a world of ``scene``.
      scene: the compiled scene.
      min_pixels: an entity with fewer pixels counts as not seen.

    Returns:
      Name to number of pixels, most pixels first, ties by name.
    """
    owners = _owners(scene)
    ids = frame.segmentation[frame.segmentation >= 0]
    per_geom = np.bincount(ids, minlength=len(owners))
    counts: dict[str, int] = {}
    for geom in np.flatnonzero(per_geom):
        name = owners[geom]
        if name is not None:
            counts[name] = counts.get(name, 0) + int(per_geom[geom])
    return {n: c for n, c in sorted(counts.items(), key=lambda item: (-item[1], item[0])) if c >= min_pixels}


def entity_mask(frame: Frame, scene: CompiledScene, name: str) -> NDArray[np.bool_]:
    """Return (height, width) where a frame shows one entity or robot."""
    geoms = [g for g, owner in enumerate(_owners(scene)) if owner == name]
    return np.isin(frame.segmentation, geoms)


_cache: dict[str, tuple[str | None, ...]] = {}


def _owners(scene: CompiledScene) -> tuple[str | None, ...]:
    if scene.hash not in _cache:
        if len(_cache) >= 32:
            _cache.clear()
        _cache[scene.hash] = entity_of_geom(scene)
    return _cache[scene.hash]
