"""The meaning of a compiled model: where the regions, handles and joints of each entity are."""

from __future__ import annotations

from collections.abc import Mapping

import mujoco
import numpy as np

from embodied_scenes.builders.bodies import body_name
from embodied_scenes.info import ButtonInfo, EntityInfo, HandleInfo, RegionInfo, SolidInfo
from embodied_scenes.spec import EntityModel, EntitySpec, PartSpec, RoomSpec, SceneSpec

_ROUND = ("cylinder", "sphere", "capsule", "ellipsoid")
_SHAPES = {int(getattr(mujoco.mjtGeom, f"mjGEOM_{n.upper()}")): n for n in _ROUND}


def entity_infos(scene: SceneSpec, models: Mapping[str, EntityModel], model: mujoco.MjModel) -> dict[str, EntityInfo]:
    """Return the meaning of every entity, floors of rooms included."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    infos = {e.name: _entity_info(e, models[e.name], model, data) for e in scene.entities}
    for room in scene.rooms:
        infos[f"floor_{room.name}"] = _floor_info(room)
    return infos


def _entity_info(entity: EntitySpec, spec: EntityModel, model: mujoco.MjModel, data: mujoco.MjData) -> EntityInfo:
    root = spec.parts[0].name
    names = {p.name: body_name(entity.name, p.name, is_root=p.name == root) for p in spec.parts}
    bodies = (*names.values(), *(f"{entity.name}/{b.name}" for b in spec.buttons))
    joint_part = next((p for p in spec.parts if p.joint is not None), None)
    axis, anchor = _joint_in_root(entity.name, model, data) if joint_part else (np.zeros(3), np.zeros(3))
    low, high = _box(entity.name, bodies, model, data)
    return EntityInfo(
        name=entity.name,
        category=entity.category,
        movable=entity.movable,
        room=entity.room,
        root=entity.name,
        bodies=bodies,
        joint=f"{entity.name}/joint" if joint_part else None,
        joint_kind=joint_part.joint.kind if joint_part and joint_part.joint else "",
        joint_upper=joint_part.joint.upper if joint_part and joint_part.joint else 0.0,
        joint_axis_root=axis,
        joint_anchor_root_m=anchor,
        joint_part=names[joint_part.name] if joint_part else None,
        regions=tuple(
            RegionInfo(
                name=r.name,
                kind=r.kind,
                body=names[r.part],
                center_body_m=np.array(r.center_m),
                half_size_m=np.array(r.half_size_m),
                approach_root=None if r.approach is None else np.array(r.approach),
            )
            for r in spec.regions
        ),
        handles=tuple(
            HandleInfo(
                name=h.name,
                body=names[h.part],
                pos_body_m=np.array(h.pos_m),
                axis_body=np.array(h.axis),
                outward_body=np.array(h.outward),
            )
            for h in spec.handles
        ),
        buttons=tuple(
            ButtonInfo(
                name=b.name,
                body=f"{entity.name}/{b.name}",
                joint=f"{entity.name}/{b.name}/slide",
                pos_body_m=np.zeros(3),
                outward_body=np.array(b.outward),
                travel_m=b.travel_m,
                state=b.state,
            )
            for b in spec.buttons
        ),
        half_size_m=(high - low) / 2,
        box_center_m=(high + low) / 2,
        mass_kg=float(sum(model.body_mass[model.body(b).id] for b in bodies)),
        label=spec.label,
        properties=frozenset(entity.properties) | _derived(spec, entity, joint_part),
        solids=tuple(s for b in names.values() for s in _solids(b, model)),
    )


def _solids(body: str, model: mujoco.MjModel) -> list[SolidInfo]:
    """Return the boxes around the colliding geoms of one body, in its frame."""
    index = model.body(body).id
    first = int(model.body_geomadr[index])
    found = []
    for geom in range(first, first + int(model.body_geomnum[index])):
        if model.geom_contype[geom] or model.geom_conaffinity[geom]:
            rot = np.zeros(9)
            mujoco.mju_quat2Mat(rot, model.geom_quat[geom])
            rot = rot.reshape(3, 3)
            center = model.geom_pos[geom] + rot @ model.geom_aabb[geom, :3]
            found.append(
                SolidInfo(
                    body=body,
                    shape=_SHAPES.get(int(model.geom_type[geom]), "box"),
                    center_body_m=center,
                    rot_body=rot,
                    half_size_m=model.geom_aabb[geom, 3:].copy(),
                )
            )
    return found


def _derived(spec: EntityModel, entity: EntitySpec, joint_part: PartSpec | None) -> frozenset[str]:
    found = {"graspable"} if entity.movable else set()
    if joint_part is not None:
        found.add("openable")
    if spec.buttons:
        found.add("toggleable")
    found.update({"surface": "surface", "interior": "container"}[r.kind] for r in spec.regions)
    return frozenset(found)


def _joint_in_root(name: str, model: mujoco.MjModel, data: mujoco.MjData) -> tuple[np.ndarray, np.ndarray]:
    """Return axis (unit) and anchor of an entity's joint in its root frame."""
    root = model.body(name).id
    joint = model.joint(f"{name}/joint")
    body = int(joint.bodyid[0])
    rot_world_root = data.xmat[root].reshape(3, 3)
    rot_world_body = data.xmat[body].reshape(3, 3)
    axis = rot_world_root.T @ rot_world_body @ joint.axis
    anchor_world = data.xpos[body] + rot_world_body @ joint.pos
    return axis / np.linalg.norm(axis), rot_world_root.T @ (anchor_world - data.xpos[root])


def _box(
    name: str, bodies: tuple[str, ...], model: mujoco.MjModel, data: mujoco.MjData
) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners (low, high) of the axis-aligned box around the entity's geoms in its root frame."""
    root = model.body(name).id
    rot = data.xmat[root].reshape(3, 3)
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for body in bodies:
        index = model.body(body).id
        for geom in range(model.body_geomadr[index], model.body_geomadr[index] + model.body_geomnum[index]):
            turn = rot.T @ data.geom_xmat[geom].reshape(3, 3)
            center = rot.T @ (data.geom_xpos[geom] - data.xpos[root]) + turn @ model.geom_aabb[geom, :3]
            half = np.abs(turn) @ model.geom_aabb[geom, 3:]
            low, high = np.minimum(low, center - half), np.maximum(high, center + half)
    return low, high


def _floor_info(room: RoomSpec) -> EntityInfo:
    x0, y0, x1, y1 = room.rect_m
    half = np.array([(x1 - x0) / 2, (y1 - y0) / 2, 0.0])
    name = f"floor_{room.name}"
    region = RegionInfo(
        name="top", kind="surface", body=name, center_body_m=np.zeros(3), half_size_m=half, approach_root=None
    )
    return EntityInfo(
        name=name,
        category="floor",
        movable=False,
        room=room.name,
        root=name,
        bodies=(name,),
        joint=None,
        joint_kind="",
        joint_upper=0.0,
        joint_axis_root=np.zeros(3),
        joint_anchor_root_m=np.zeros(3),
        joint_part=None,
        regions=(region,),
        handles=(),
        buttons=(),
        half_size_m=half,
        box_center_m=np.zeros(3),
        mass_kg=0.0,
        label=None,
        properties=frozenset({"surface", "floor"}),
    )
