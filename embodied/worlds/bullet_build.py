"""Bullet bodies from the arrays of a compiled MuJoCo model.

Every tree below the world becomes one multi-body; a body with several joints becomes a chain of links of which the last
carries mass and shape. PyBullet's own MJCF reader loses joints, masses and free bodies, hence this converter.

Carried over: geometry, masses, inertias, joint axes, limits, damping, dry friction, sliding friction, contact filters.
Not carried over: armature, solver softness, tendons, equality constraints, muscles.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from embodied.errors import MissingExtraError, WorldError, require

Array = NDArray[np.float64]
_DUMMY_KG = 0.001
_DUMMY_INERTIA = 1e-6


@dataclass(slots=True)
class BulletMap:
    """How MuJoCo's names map to Bullet's.

    Attributes:
      joints: MuJoCo joint index to (body id, link index), for hinges and slides.
      free: MuJoCo joint index to (body id, MuJoCo body index), for free joints.
      link_body: (body id, link index) to MuJoCo body index; link -1 is the base.
    """

    joints: dict[int, tuple[int, int]] = field(default_factory=dict)
    free: dict[int, tuple[int, int]] = field(default_factory=dict)
    link_body: dict[tuple[int, int], int] = field(default_factory=dict)
    body_link: dict[int, tuple[int, int]] = field(default_factory=dict)


@dataclass(slots=True)
class _Link:
    mj_body: int
    joint: int
    parent: int
    pos: Array
    quat: Array
    is_last: bool


def connect(dt_sim_s: float, gravity_mps2: Array) -> tuple[Any, int]:
    """Open a Bullet client without a window; return (module, client id).

    Raises:
      MissingExtraError: PyBullet is not installed (its wheels end at CPython 3.11).
    """
    try:
        bullet: Any = require("pybullet", "bullet")
    except MissingExtraError as error:
        raise MissingExtraError(
            f"{error} PyBullet's wheels exist up to CPython 3.11; on newer ones use MuJoCo."
        ) from error
    client = bullet.connect(bullet.DIRECT)
    if client < 0:
        raise WorldError("PyBullet could not open a client; it holds about 30 MB each, close some first.")
    bullet.setGravity(*gravity_mps2, physicsClientId=client)
    bullet.setPhysicsEngineParameter(
        fixedTimeStep=dt_sim_s,
        numSolverIterations=50,
        numSubSteps=1,
        deterministicOverlappingPairs=1,
        enableConeFriction=1,
        physicsClientId=client,
    )
    return bullet, client


def build(bullet: Any, client: int, model: mujoco.MjModel) -> BulletMap:  # noqa: ANN401 -- an untyped C module
    """Create all bodies of ``model`` in a client."""
    names = BulletMap()
    _build_world_geoms(bullet, client, model, names)
    tops = [b for b in range(1, model.nbody) if int(model.body_parentid[b]) == 0]
    for top in tops:
        _build_tree(bullet, client, model, top, names)
    _filter_pairs(bullet, client, model, names)
    return names


def _build_world_geoms(bullet: Any, client: int, model: mujoco.MjModel, names: BulletMap) -> None:  # noqa: ANN401
    for geom in range(int(model.body_geomadr[0]), int(model.body_geomadr[0]) + int(model.body_geomnum[0])):
        if not (model.geom_contype[geom] or model.geom_conaffinity[geom]):
            continue
        if int(model.geom_type[geom]) == int(mujoco.mjtGeom.mjGEOM_PLANE):
            shape = bullet.createCollisionShape(bullet.GEOM_PLANE, planeNormal=[0, 0, 1], physicsClientId=client)
        else:
            shape = _shape(bullet, client, model, [geom], np.zeros(3))
        body = bullet.createMultiBody(0, shape, physicsClientId=client)
        bullet.changeDynamics(body, -1, lateralFriction=float(model.geom_friction[geom, 0]), physicsClientId=client)
        names.link_body[(body, -1)] = 0
        names.body_link[0] = (body, -1)


def _build_tree(bullet: Any, client: int, model: mujoco.MjModel, top: int, names: BulletMap) -> None:  # noqa: ANN401
    free, joints = int(mujoco.mjtJoint.mjJNT_FREE), _joints_of(model, top)
    is_free = bool(joints) and int(model.jnt_type[joints[0]]) == free
    links = _links(model, top, is_base_moving=is_free or not joints)
    if not links and not joints and not _solid_geoms(model, top):
        return
    has_base_shape = is_free or not joints
    base_shape = _shape(bullet, client, model, _solid_geoms(model, top), np.zeros(3)) if has_base_shape else -1
    body = bullet.createMultiBody(
        baseMass=float(model.body_mass[top]) if is_free else 0.0,
        baseCollisionShapeIndex=base_shape,
        basePosition=model.body_pos[top].tolist(),
        baseOrientation=_xyzw(model.body_quat[top]),
        baseInertialFramePosition=model.body_ipos[top].tolist() if is_free else [0, 0, 0],
        baseInertialFrameOrientation=_xyzw(model.body_iquat[top]) if is_free else [0, 0, 0, 1],
        **_link_arguments(bullet, client, model, links),
        physicsClientId=client,
    )
    if has_base_shape:
        names.link_body[(body, -1)] = top
        names.body_link[top] = (body, -1)
        _dynamics(bullet, client, model, top, body, -1, is_moving=is_free)
    if is_free and not _is_actuated(model, top):
        # What lies still sleeps until something touches it; else forty resting things cost more than the robot.
        bullet.changeDynamics(body, -1, activationState=bullet.ACTIVATION_STATE_ENABLE_SLEEPING, physicsClientId=client)
    if is_free:
        names.free[joints[0]] = (body, top)
    for index, link in enumerate(links):
        if link.is_last:
            names.link_body[(body, index)] = link.mj_body
            names.body_link[link.mj_body] = (body, index)
            _dynamics(bullet, client, model, link.mj_body, body, index, is_moving=True)
        else:
            bullet.changeDynamics(body, index, localInertiaDiagonal=[_DUMMY_INERTIA] * 3, physicsClientId=client)
        if link.joint >= 0:
            names.joints[link.joint] = (body, index)
            _joint_dynamics(bullet, client, model, link.joint, body, index)


def _is_actuated(model: mujoco.MjModel, top: int) -> bool:
    """Whether an actuator acts on a site or joint of a tree, which then must not fall asleep."""
    site_type = int(mujoco.mjtTrn.mjTRN_SITE)
    for actuator in range(model.nu):
        target = int(model.actuator_trnid[actuator, 0])
        is_site = int(model.actuator_trntype[actuator]) == site_type
        body = int(model.site_bodyid[target]) if is_site else int(model.jnt_bodyid[target])
        if int(model.body_rootid[body]) == top:
            return True
    return False


def _joints_of(model: mujoco.MjModel, body: int) -> list[int]:
    first = int(model.body_jntadr[body])
    return list(range(first, first + int(model.body_jntnum[body])))


def _links(model: mujoco.MjModel, top: int, *, is_base_moving: bool) -> list[_Link]:
    """Flatten a tree into links, parents first; a top body with hinges or slides is a link on a fixed base itself."""
    links: list[_Link] = []
    holder: dict[int, tuple[int, Array]] = {}  # MuJoCo body to (link index, anchor offset of its link frame)

    def add(body: int, parent_link: int, parent_offset: Array, pos: Array, quat: Array) -> None:
        joints = _joints_of(model, body)
        offset = model.jnt_pos[joints[-1]].copy() if joints else np.zeros(3)
        turn = _matrix(quat)
        frame = pos + turn @ offset - parent_offset
        for number, joint in enumerate(joints or [-1]):
            is_last = number == max(len(joints) - 1, 0)
            first = number == 0
            links.append(
                _Link(
                    mj_body=body,
                    joint=joint,
                    parent=parent_link,
                    pos=frame if first else np.zeros(3),
                    quat=quat if first else np.array([1.0, 0.0, 0.0, 0.0]),
                    is_last=is_last,
                )
            )
            parent_link = len(links) - 1
        holder[body] = (parent_link, offset)

    if is_base_moving:
        holder[top] = (-1, np.zeros(3))
    else:
        add(top, -1, np.zeros(3), np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))
    for body in range(top + 1, model.nbody):
        parent = int(model.body_parentid[body])
        if int(model.body_rootid[body]) == top and parent in holder:
            parent_link, parent_offset = holder[parent]
            add(body, parent_link, parent_offset, model.body_pos[body], model.body_quat[body])
    return links


def _link_arguments(bullet: Any, client: int, model: mujoco.MjModel, links: list[_Link]) -> dict[str, Any]:  # noqa: ANN401
    if not links:
        return {}
    kinds = {
        int(mujoco.mjtJoint.mjJNT_HINGE): bullet.JOINT_REVOLUTE,
        int(mujoco.mjtJoint.mjJNT_SLIDE): bullet.JOINT_PRISMATIC,
    }
    rows: dict[str, list[Any]] = {
        k: [] for k in ("mass", "shape", "pos", "quat", "ipos", "iquat", "parent", "kind", "axis")
    }
    for link in links:
        offset = model.jnt_pos[link.joint] if link.joint >= 0 else np.zeros(3)
        geoms = _solid_geoms(model, link.mj_body) if link.is_last else []
        rows["mass"].append(max(float(model.body_mass[link.mj_body]), _DUMMY_KG) if link.is_last else _DUMMY_KG)
        rows["shape"].append(_shape(bullet, client, model, geoms, offset))
        rows["pos"].append(link.pos.tolist())
        rows["quat"].append(_xyzw(link.quat))
        rows["ipos"].append((model.body_ipos[link.mj_body] - offset).tolist() if link.is_last else [0, 0, 0])
        rows["iquat"].append(_xyzw(model.body_iquat[link.mj_body]) if link.is_last else [0, 0, 0, 1])
        rows["parent"].append(link.parent + 1)  # 0 is the base
        rows["kind"].append(kinds[int(model.jnt_type[link.joint])] if link.joint >= 0 else bullet.JOINT_FIXED)
        rows["axis"].append(model.jnt_axis[link.joint].tolist() if link.joint >= 0 else [0, 0, 1])
    return {
        "linkMasses": rows["mass"],
        "linkCollisionShapeIndices": rows["shape"],
        "linkVisualShapeIndices": [-1] * len(links),
        "linkPositions": rows["pos"],
        "linkOrientations": rows["quat"],
        "linkInertialFramePositions": rows["ipos"],
        "linkInertialFrameOrientations": rows["iquat"],
        "linkParentIndices": rows["parent"],
        "linkJointTypes": rows["kind"],
        "linkJointAxis": rows["axis"],
    }


def _solid_geoms(model: mujoco.MjModel, body: int) -> list[int]:
    first = int(model.body_geomadr[body])
    ids = range(first, first + int(model.body_geomnum[body]))
    return [g for g in ids if model.geom_contype[g] or model.geom_conaffinity[g]]


def _shape(bullet: Any, client: int, model: mujoco.MjModel, geoms: list[int], offset: Array) -> int:  # noqa: ANN401
    """Create one compound shape from geoms, moved by minus ``offset``; -1 for none."""
    if not geoms:
        return -1
    kinds = {
        int(mujoco.mjtGeom.mjGEOM_BOX): bullet.GEOM_BOX,
        int(mujoco.mjtGeom.mjGEOM_SPHERE): bullet.GEOM_SPHERE,
        int(mujoco.mjtGeom.mjGEOM_CYLINDER): bullet.GEOM_CYLINDER,
        int(mujoco.mjtGeom.mjGEOM_CAPSULE): bullet.GEOM_CAPSULE,
        int(mujoco.mjtGeom.mjGEOM_ELLIPSOID): bullet.GEOM_SPHERE,
    }
    types, radii, halves, lengths = [], [], [], []
    for geom in geoms:
        kind = int(model.geom_type[geom])
        if kind not in kinds:
            raise WorldError(
                f"Geom {model.geom(geom).name!r} is no primitive; the Bullet backend takes primitives only."
            )
        size = model.geom_size[geom]
        types.append(kinds[kind])
        radii.append(float(size[0]) if kind != int(mujoco.mjtGeom.mjGEOM_ELLIPSOID) else float(size.mean()))
        halves.append(size.tolist())
        lengths.append(float(2 * size[1]))
    return bullet.createCollisionShapeArray(
        shapeTypes=types,
        radii=radii,
        halfExtents=halves,
        lengths=lengths,
        collisionFramePositions=[(model.geom_pos[g] - offset).tolist() for g in geoms],
        collisionFrameOrientations=[_xyzw(model.geom_quat[g]) for g in geoms],
        physicsClientId=client,
    )


def _dynamics(
    bullet: Any,  # noqa: ANN401
    client: int,
    model: mujoco.MjModel,
    mj_body: int,
    body: int,
    link: int,
    *,
    is_moving: bool,
) -> None:
    geoms = _solid_geoms(model, mj_body)
    friction = float(max((model.geom_friction[g, 0] for g in geoms), default=0.5))
    arguments: dict[str, Any] = {"lateralFriction": friction, "spinningFriction": 0.002, "rollingFriction": 0.0005}
    if is_moving:
        # The coupled inertia of massless fixed frames must stay positive for Bullet.
        inertia = np.maximum(model.body_inertia[mj_body], _DUMMY_INERTIA)
        arguments |= {"localInertiaDiagonal": inertia.tolist(), "linearDamping": 0.0, "angularDamping": 0.0}
    bullet.changeDynamics(body, link, physicsClientId=client, **arguments)
    if geoms:
        group = int(np.bitwise_or.reduce(model.geom_contype[geoms]))
        mask = int(np.bitwise_or.reduce(model.geom_conaffinity[geoms]))
        bullet.setCollisionFilterGroupMask(body, link, group, mask, physicsClientId=client)


def _joint_dynamics(bullet: Any, client: int, model: mujoco.MjModel, joint: int, body: int, link: int) -> None:  # noqa: ANN401
    dof = int(model.jnt_dofadr[joint])
    arguments: dict[str, Any] = {"jointDamping": float(np.ravel(model.dof_damping[dof])[0])}
    if model.jnt_limited[joint]:
        low, high = model.jnt_range[joint] - model.qpos0[int(model.jnt_qposadr[joint])]
        arguments |= {"jointLowerLimit": float(low), "jointUpperLimit": float(high)}
    bullet.changeDynamics(body, link, physicsClientId=client, **arguments)
    # Velocity motors are on by default; at speed zero with the dry friction as limit they are a dry friction.
    bullet.setJointMotorControl2(
        body,
        link,
        bullet.VELOCITY_CONTROL,
        targetVelocity=0.0,
        force=float(model.dof_frictionloss[dof]),
        physicsClientId=client,
    )


def _filter_pairs(bullet: Any, client: int, model: mujoco.MjModel, names: BulletMap) -> None:  # noqa: ANN401
    for index in range(model.nexclude):
        signature = int(model.exclude_signature[index])
        first, second = signature >> 16, signature & 0xFFFF
        if first in names.body_link and second in names.body_link:
            (body_a, link_a), (body_b, link_b) = names.body_link[first], names.body_link[second]
            bullet.setCollisionFilterPair(body_a, body_b, link_a, link_b, 0, physicsClientId=client)


def _xyzw(quat_wxyz: Array) -> list[float]:
    w, x, y, z = (float(v) for v in quat_wxyz)
    return [x, y, z, w]


def _matrix(quat_wxyz: Array) -> Array:
    out = np.zeros(9)
    mujoco.mju_quat2Mat(out, np.ascontiguousarray(quat_wxyz, dtype=np.float64))
    return out.reshape(3, 3)
