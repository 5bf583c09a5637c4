"""Find solids of different entities that stand inside each other, before physics pushes them apart."""

from __future__ import annotations

from collections.abc import Mapping

import mujoco
import numpy as np

from embodied_scenes.info import EntityInfo
from embodied_scenes.resolve import SceneBuildError

ALLOWED_DEPTH_M = 0.01  # what contacts settle by themselves without a visible jump


def check_overlaps(scene_id: str, model: mujoco.MjModel, entities: Mapping[str, EntityInfo]) -> None:
    """Refuse a scene in which an entity stands more than a centimetre inside another or inside a wall.

    Args:
      scene_id: for the message.
      model: the compiled scene, judged at its own start.
      entities: whose bodies to compare; robots are placed later and left out.

    Raises:
      SceneBuildError: names the deepest pair, how deep it is, how many there are and how to mend it.
    """
    found = sorted(_overlaps(model, entities), reverse=True)
    if not found:
        return
    depth_m, first, second = found[0]
    more = f" ({len(found) - 1} more pairs overlap.)" if len(found) > 1 else ""
    raise SceneBuildError(
        f"Scene {scene_id!r}: {first!r} stands {depth_m * 100:.1f} cm inside {second!r}, at most "
        f"{ALLOWED_DEPTH_M * 100:.0f} cm is allowed. Move one of them, or set `collide: false` on geoms that are only "
        f"looks.{more}"
    )


def _overlaps(model: mujoco.MjModel, entities: Mapping[str, EntityInfo]) -> list[tuple[float, str, str]]:
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    owner = _owners(model, entities)
    solid = [g for g in owner if model.geom_contype[g] or model.geom_conaffinity[g]]
    low, high = _boxes(model, data, np.array(solid, dtype=np.int64))
    deepest: dict[tuple[str, str], float] = {}
    for i, geom in enumerate(solid):
        near = np.flatnonzero((low[i + 1 :] < high[i]).all(axis=1) & (high[i + 1 :] > low[i]).all(axis=1)) + i + 1
        for j in near:
            other = solid[int(j)]
            if owner[geom] == owner[other] or not _collide(model, geom, other):
                continue
            depth_m = -float(mujoco.mj_geomDistance(model, data, geom, other, 0.001, None))
            if depth_m > ALLOWED_DEPTH_M:
                first, second = sorted((owner[geom], owner[other]))
                deepest[(first, second)] = max(depth_m, deepest.get((first, second), 0.0))
    return [(depth_m, first, second) for (first, second), depth_m in deepest.items()]


def _owners(model: mujoco.MjModel, entities: Mapping[str, EntityInfo]) -> dict[int, str]:
    """Return geom index to the entity or wall it belongs to; walls count as one, for they meet at corners."""
    bodies = {model.body(b).id: e.name for e in entities.values() for b in e.bodies}
    bodies |= {i: "a wall" for i in range(model.nbody) if model.body(i).name.startswith("wall_")}
    owners = {}
    for geom in range(model.ngeom):
        body = int(model.geom_bodyid[geom])
        if body in bodies:
            owners[geom] = bodies[body]
    return owners


def _collide(model: mujoco.MjModel, first: int, second: int) -> bool:
    return bool(
        (model.geom_contype[first] & model.geom_conaffinity[second])
        or (model.geom_contype[second] & model.geom_conaffinity[first])
    )


def _boxes(model: mujoco.MjModel, data: mujoco.MjData, geoms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners of the axis-aligned boxes around geoms in the world, (n, 3) each, metres."""
    rot = data.geom_xmat[geoms].reshape(-1, 3, 3)
    center = data.geom_xpos[geoms] + np.einsum("nij,nj->ni", rot, model.geom_aabb[geoms, :3])
    half = np.einsum("nij,nj->ni", np.abs(rot), model.geom_aabb[geoms, 3:])
    return center - half, center + half
