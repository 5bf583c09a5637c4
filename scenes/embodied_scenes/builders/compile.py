"""Compile a scene description and its robots into one MuJoCo model with its meaning."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

from embodied_scenes.builders.bodies import add_camera, add_entity, add_places, add_room, add_wall, yaw_quat
from embodied_scenes.builders.meaning import entity_infos
from embodied_scenes.builders.overlap import check_overlaps
from embodied_scenes.builders.presets import apply_preset
from embodied_scenes.info import PlaceInfo, RobotInfo, RoomInfo, SceneInfo
from embodied_scenes.resolve import SceneBuildError, resolve_model
from embodied_scenes.spec import EntityModel, SceneSpec

_CACHE_SIZE = 16
_cache: OrderedDict[str, CompiledScene] = OrderedDict()


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotMount:
    """A robot to compile into a scene.

    Attributes:
      name: instance name; its bodies, joints and actuators get the prefix ``<name>/``.
      kind: robot kind, kept for :class:`RobotInfo`.
      mjcf: path of its model file.
      pos_m: where a robot with a fixed root stands; leave it for roots that move.
      yaw_rad: its heading.
    """

    name: str
    kind: str
    mjcf: Path
    pos_m: tuple[float, float, float] = (0.0, 0.0, 0.0)
    yaw_rad: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class CompiledScene:
    """One engine model with its meaning; shared by worlds, never changed.

    Attributes:
      model: the compiled model. Treat as read-only.
      info: names, regions, handles, rooms.
      hash: digest of description, robots and engine version.
    """

    model: mujoco.MjModel
    info: SceneInfo
    hash: str


def compile_scene(scene: SceneSpec, robots: Sequence[RobotMount] = ()) -> CompiledScene:
    """Compile a scene once; an equal scene with equal robots comes from a cache.

    Args:
      scene: the description.
      robots: robots to attach, in order.

    Raises:
      SceneBuildError: names that clash, unknown templates, unknown parts, solids that stand inside each other, or
        geometry the engine refuses.
    """
    key = _digest(scene, robots)
    if key in _cache:
        _cache.move_to_end(key)
        return _cache[key]
    compiled = _compile(scene, robots, key)
    _cache[key] = compiled
    while len(_cache) > _CACHE_SIZE:
        _cache.popitem(last=False)
    return compiled


def _digest(scene: SceneSpec, robots: Sequence[RobotMount]) -> str:
    text = hashlib.sha256(scene.model_dump_json().encode())
    for robot in robots:
        text.update(f"{robot.name}:{robot.kind}:{robot.pos_m}:{robot.yaw_rad}:".encode() + robot.mjcf.read_bytes())
    text.update(mujoco.__version__.encode())
    return text.hexdigest()


def _compile(scene: SceneSpec, robots: Sequence[RobotMount], digest: str) -> CompiledScene:
    models = _resolve(scene)
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    apply_preset(spec, scene.preset)
    spec.option.wind = np.array(scene.wind_mps)
    spec.option.density = scene.air_density_kgpm3
    spec.modelname = scene.id.replace("/", "_")
    floor = spec.worldbody.add_geom(name="ground", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 0.05])
    floor.rgba = np.array([0.55, 0.58, 0.55, 1.0])
    spec.worldbody.add_light(name="sun", pos=[0, 0, 8], dir=[0.2, 0.3, -1], diffuse=[0.6, 0.6, 0.6])
    for room in scene.rooms:
        add_room(spec, room)
    for index, wall in enumerate(scene.walls):
        add_wall(spec, wall, index)
    for entity in scene.entities:
        add_entity(spec, entity, models[entity.name])
    add_places(spec, scene.places)
    for camera in scene.cameras:
        add_camera(spec, camera)
    infos = {robot.name: _attach(spec, robot) for robot in robots}
    try:
        model = spec.compile()
    except ValueError as error:
        raise SceneBuildError(f"Scene {scene.id!r} does not compile: {error}") from error
    entities = entity_infos(scene, models, model)
    check_overlaps(scene.id, model, entities)
    info = SceneInfo(
        id=scene.id,
        preset=scene.preset,
        entities=entities,
        rooms=tuple(RoomInfo(name=r.name, category=r.category, rect_m=r.rect_m) for r in scene.rooms),
        places={
            p.name: PlaceInfo(
                name=p.name, category=p.category, pos_world_m=np.array(p.pos_m), yaw_rad=p.yaw_rad, room=p.room
            )
            for p in scene.places
        },
        robots=infos,
    )
    return CompiledScene(model, info, digest)


def _resolve(scene: SceneSpec) -> Mapping[str, EntityModel]:
    names: dict[str, str] = {}
    for group, items in (("room", scene.rooms), ("entity", scene.entities), ("place", scene.places)):
        for item in items:
            if item.name in names:
                raise SceneBuildError(
                    f"Scene {scene.id!r}: the name {item.name!r} is used twice (as {names[item.name]} and as {group}). "
                    "Give one of them another name."
                )
            names[item.name] = group
    return {e.name: resolve_model(e) for e in scene.entities}


def _attach(spec: mujoco.MjSpec, robot: RobotMount) -> RobotInfo:
    try:
        child = mujoco.MjSpec.from_file(str(robot.mjcf))
    except ValueError as error:
        raise SceneBuildError(f"Robot {robot.name!r}: {robot.mjcf.name} does not parse: {error}") from error
    roots = list(child.worldbody.bodies)
    if len(roots) != 1:
        raise SceneBuildError(f"Robot {robot.name!r}: its model must have one root body, got {len(roots)}.")
    root = f"{robot.name}/{roots[0].name}"
    frame = spec.worldbody.add_frame(pos=robot.pos_m, quat=yaw_quat(robot.yaw_rad))
    spec.attach(child, prefix=f"{robot.name}/", frame=frame)
    return RobotInfo(name=robot.name, kind=robot.kind, prefix=f"{robot.name}/", root=root)
