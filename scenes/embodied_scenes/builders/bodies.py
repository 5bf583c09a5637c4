"""Parts of a scene description as bodies of an engine spec."""

from __future__ import annotations

import math
from collections.abc import Sequence

import mujoco
import numpy as np

from embodied_scenes.spec import (
    ButtonSpec,
    CameraSpec,
    EntityModel,
    EntitySpec,
    GeomSpec,
    PartSpec,
    PlaceSpec,
    RoomSpec,
    WallSpec,
)

_SHAPES = {
    "box": mujoco.mjtGeom.mjGEOM_BOX,
    "cylinder": mujoco.mjtGeom.mjGEOM_CYLINDER,
    "sphere": mujoco.mjtGeom.mjGEOM_SPHERE,
    "capsule": mujoco.mjtGeom.mjGEOM_CAPSULE,
    "ellipsoid": mujoco.mjtGeom.mjGEOM_ELLIPSOID,
}
_DEFAULT_DENSITY_KGPM3 = 500.0  # between wood and water; entities that matter carry masses
_BUTTON_STIFFNESS_NPM = 300.0  # a 10 mm button takes about 3 N, as a household switch does


def yaw_quat(yaw_rad: float) -> np.ndarray:
    """Return the (4,) scalar-first quaternion of a rotation about z."""
    return np.array([math.cos(yaw_rad / 2), 0.0, 0.0, math.sin(yaw_rad / 2)])


def body_name(entity: str, part: str, *, is_root: bool) -> str:
    """Return the engine's body name of a part: the root carries the entity's own name."""
    return entity if is_root else f"{entity}/{part}"


def add_room(spec: mujoco.MjSpec, room: RoomSpec) -> None:
    """Add the visible floor of a room as the fixture ``floor_<room>``; the ground plane below carries the contacts."""
    x0, y0, x1, y1 = room.rect_m
    body = spec.worldbody.add_body(name=f"floor_{room.name}", pos=[(x0 + x1) / 2, (y0 + y1) / 2, 0.0])
    geom = body.add_geom(name=f"floor_{room.name}/0", type=mujoco.mjtGeom.mjGEOM_BOX)
    geom.size = np.array([(x1 - x0) / 2, (y1 - y0) / 2, 0.001])
    geom.pos = np.array([0, 0, 0.0005])
    geom.rgba = np.array(room.floor_rgba)
    geom.contype = geom.conaffinity = 0


def add_wall(spec: mujoco.MjSpec, wall: WallSpec, index: int) -> None:
    """Add a wall as a static box."""
    (x0, y0), (x1, y1) = wall.start_m, wall.end_m
    length_m = math.hypot(x1 - x0, y1 - y0)
    body = spec.worldbody.add_body(name=f"wall_{index}", pos=[(x0 + x1) / 2, (y0 + y1) / 2, wall.height_m / 2])
    body.quat = yaw_quat(math.atan2(y1 - y0, x1 - x0))
    geom = body.add_geom(name=f"wall_{index}/0", type=mujoco.mjtGeom.mjGEOM_BOX)
    geom.size = np.array([length_m / 2 + wall.thickness_m / 2, wall.thickness_m / 2, wall.height_m / 2])
    geom.rgba = np.array(wall.rgba)


def add_entity(spec: mujoco.MjSpec, entity: EntitySpec, model: EntityModel) -> None:
    """Add all bodies of an entity; a movable one floats on a free joint and starts asleep."""
    bodies: dict[str, mujoco.MjsBody] = {}
    root = model.parts[0]
    for part in model.parts:
        if part is root:
            body = spec.worldbody.add_body(name=entity.name, pos=entity.pos_m, quat=yaw_quat(entity.yaw_rad))
            if entity.movable:
                body.add_freejoint(name=f"{entity.name}/free")
                body.sleep = mujoco.mjtSleepPolicy.mjSLEEP_INIT
        else:
            parent = bodies[part.parent or root.name]
            name = body_name(entity.name, part.name, is_root=False)
            body = parent.add_body(name=name, pos=part.pos_m, quat=part.quat_wxyz)
        bodies[part.name] = body
        _add_joint(body, part, entity.name)
        for index, geom in enumerate(part.geoms):
            _add_geom(body, geom, f"{body.name}/{index}", movable=entity.movable)
    for button in model.buttons:
        _add_button(bodies[button.part], button, entity.name)


def _add_joint(body: mujoco.MjsBody, part: PartSpec, entity: str) -> None:
    if part.joint is None:
        return
    joint = body.add_joint(name=f"{entity}/joint", axis=part.joint.axis, pos=part.joint.pos_m)
    is_hinge = part.joint.kind == "hinge"
    joint.type = mujoco.mjtJoint.mjJNT_HINGE if is_hinge else mujoco.mjtJoint.mjJNT_SLIDE
    joint.limited = True
    joint.range = np.array([0.0, part.joint.upper])
    joint.damping[0] = part.joint.damping
    joint.frictionloss = part.joint.friction
    joint.armature = 0.01


def _add_geom(body: mujoco.MjsBody, geom: GeomSpec, name: str, *, movable: bool) -> None:
    out = body.add_geom(name=name, type=_SHAPES[geom.shape])
    size = np.zeros(3)
    size[: len(geom.size_m)] = geom.size_m
    out.size = size
    out.pos = np.array(geom.pos_m)
    out.quat = np.array(geom.quat_wxyz)
    out.rgba = np.array(geom.rgba)
    out.friction = np.array([geom.sliding_friction, 0.005, 0.0001])
    if movable:
        out.condim = 4
    if geom.mass_kg is not None:
        out.mass = geom.mass_kg
    else:
        out.density = _DEFAULT_DENSITY_KGPM3
    if not geom.collide:
        out.contype = out.conaffinity = 0
        if geom.mass_kg is None:
            out.density = 0.0


def _add_button(parent: mujoco.MjsBody, button: ButtonSpec, entity: str) -> None:
    outward = np.array(button.outward) / np.linalg.norm(button.outward)
    body = parent.add_body(name=f"{entity}/{button.name}", pos=button.pos_m)
    joint = body.add_joint(name=f"{entity}/{button.name}/slide", axis=-outward)
    joint.type = mujoco.mjtJoint.mjJNT_SLIDE
    joint.limited = True
    joint.range = np.array([0.0, button.travel_m])
    joint.stiffness[0] = _BUTTON_STIFFNESS_NPM
    joint.damping[0] = 2.0
    joint.armature = 0.01
    geom = body.add_geom(name=f"{entity}/{button.name}/0", type=mujoco.mjtGeom.mjGEOM_CYLINDER)
    geom.size = np.array([button.radius_m, button.travel_m, 0.0])
    geom.quat = _z_to(outward)
    geom.rgba = np.array([0.85, 0.15, 0.12, 1.0])
    geom.mass = 0.02


def _z_to(direction: np.ndarray) -> np.ndarray:
    """Return the (4,) quaternion that turns z into a unit ``direction``."""
    quat = np.zeros(4)
    mujoco.mju_quatZ2Vec(quat, direction)
    return quat


def add_places(spec: mujoco.MjSpec, places: Sequence[PlaceSpec]) -> None:
    """Add a site for each named place, so that it can be seen in viewers and found by name."""
    for place in places:
        site = spec.worldbody.add_site(name=f"place/{place.name}", pos=place.pos_m, size=[0.05, 0.05, 0.05])
        site.quat = yaw_quat(place.yaw_rad)
        site.rgba = np.array([0.2, 0.6, 0.9, 0.0])


def add_camera(spec: mujoco.MjSpec, camera: CameraSpec) -> None:
    """Add a fixed camera in a body of its own: rays skip a camera's own body, which must not be the world."""
    forward = np.array(camera.target_m) - np.array(camera.pos_m)
    z_axis = -forward / np.linalg.norm(forward)
    x_axis = np.cross([0.0, 0.0, 1.0], z_axis)
    x_axis = x_axis / np.linalg.norm(x_axis) if np.linalg.norm(x_axis) > 1e-6 else np.array([1.0, 0.0, 0.0])
    rotation = np.stack([x_axis, np.cross(z_axis, x_axis), z_axis], axis=1)
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, rotation.ravel())
    body = spec.worldbody.add_body(name=f"camera/{camera.name}", pos=camera.pos_m, quat=quat)
    body.add_camera(name=camera.name, fovy=camera.fovy_deg)
