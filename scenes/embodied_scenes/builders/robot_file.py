"""Read what a robot file holds: joints, actuators, cameras and the kind of its root."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from embodied_scenes.resolve import SceneBuildError

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotFile:
    """A robot file read by the engine.

    Attributes:
      mjcf: path of the model to mount (the file itself, or a converted copy).
      root: ``free``, ``planar`` or ``fixed``.
      joints: hinges and slides in model order, without those of a planar root.
      joint_low: (n_joints,) rad or m; -inf where unlimited.
      joint_high: (n_joints,) rad or m.
      actuators: names in model order.
      ctrl_low: (n_actuators,) in the actuator's own unit.
      ctrl_high: (n_actuators,).
      holds_position: whether each actuator is a position servo.
    """

    mjcf: Path
    root: str
    joints: tuple[str, ...]
    joint_low: Array
    joint_high: Array
    actuators: tuple[str, ...]
    ctrl_low: Array
    ctrl_high: Array
    holds_position: tuple[bool, ...]
    cameras: tuple[str, ...]
    mass_kg: float


def read_mjcf(path: Path) -> RobotFile:
    """Read an MJCF file with one root body.

    Raises:
      SceneBuildError: the file is missing, does not parse or has several root bodies.
    """
    spec = _spec(path)
    roots = list(spec.worldbody.bodies)
    if len(roots) != 1:
        raise SceneBuildError(
            f"{path}: a robot file has one root body, got {[b.name for b in roots]}. Remove floors and scene bodies."
        )
    return _describe(path, _compiled(path, spec))


def read_urdf(path: Path, *, stiffness: float, damping: float) -> RobotFile:
    """Read a URDF file, give every joint a position servo, and keep the result as MJCF in the temporary folder.

    Args:
      path: the URDF file.
      stiffness: of the servos, N·m/rad or N/m.
      damping: of the servos, N·m·s/rad or N·s/m.

    Raises:
      SceneBuildError: the file is missing or the engine refuses it.
    """
    spec = _spec(path)
    spec.compiler.discardvisual = False
    for joint in spec.joints:
        if int(joint.type) in (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)):
            actuator = spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
            actuator.set_to_position(kp=stiffness, kv=damping)
    if spec.meshdir == "" or not Path(spec.meshdir).is_absolute():
        spec.meshdir = str((path.parent / spec.meshdir).resolve())
    _collect_roots(spec)
    model = _compiled(path, spec)
    digest = hashlib.sha256(path.read_bytes() + f"{stiffness}/{damping}".encode()).hexdigest()[:16]
    out = Path(tempfile.gettempdir()) / f"embodied-urdf-{digest}.xml"
    out.write_text(spec.to_xml())
    return _describe(out, model)


def _collect_roots(spec: mujoco.MjSpec) -> None:
    """Put what a URDF fixes to the world into one root body, as a robot file needs it."""
    geoms = list(spec.worldbody.geoms)
    bodies = list(spec.worldbody.bodies)
    if len(bodies) == 1 and not geoms:
        return
    root = spec.worldbody.add_body(name="base")
    for geom in geoms:
        copy = root.add_geom(type=geom.type, size=geom.size, pos=geom.pos, quat=geom.quat, rgba=geom.rgba)
        copy.meshname = geom.meshname
        spec.delete(geom)
    for body in bodies:
        root.add_frame().attach_body(body, "", "")
        spec.delete(body)


def _spec(path: Path) -> mujoco.MjSpec:
    if not path.is_file():
        raise SceneBuildError(f"No robot file at {path}.")
    try:
        return mujoco.MjSpec.from_file(str(path))
    except ValueError as error:
        raise SceneBuildError(f"{path} does not parse: {error}") from error


def _compiled(path: Path, spec: mujoco.MjSpec) -> mujoco.MjModel:
    try:
        return spec.compile()
    except ValueError as error:
        raise SceneBuildError(f"{path} does not compile: {error}") from error


def _describe(path: Path, model: mujoco.MjModel) -> RobotFile:
    slide, hinge = int(mujoco.mjtJoint.mjJNT_SLIDE), int(mujoco.mjtJoint.mjJNT_HINGE)
    first, count = int(model.body_jntadr[1]), int(model.body_jntnum[1])
    kinds = [int(model.jnt_type[first + i]) for i in range(count)]
    root, skipped = "fixed", 0
    if kinds[:1] == [int(mujoco.mjtJoint.mjJNT_FREE)]:
        root = "free"
    elif kinds[:3] == [slide, slide, hinge]:
        root, skipped = "planar", 3
    joints = [j for j in range(model.njnt) if int(model.jnt_type[j]) in (slide, hinge) and j >= first + skipped]
    limited = model.jnt_limited[joints].astype(bool)
    has_range = model.actuator_ctrllimited.astype(bool)
    return RobotFile(
        mjcf=path,
        root=root,
        joints=tuple(model.joint(j).name or f"joint_{j}" for j in joints),
        joint_low=np.where(limited, model.jnt_range[joints, 0], -np.inf),
        joint_high=np.where(limited, model.jnt_range[joints, 1], np.inf),
        actuators=tuple(model.actuator(i).name or f"actuator_{i}" for i in range(model.nu)),
        ctrl_low=np.where(has_range, model.actuator_ctrlrange[:, 0], -np.inf),
        ctrl_high=np.where(has_range, model.actuator_ctrlrange[:, 1], np.inf),
        holds_position=tuple(bool(model.actuator_biasprm[i, 1] < 0) for i in range(model.nu)),
        cameras=tuple(model.camera(i).name for i in range(model.ncam)),
        mass_kg=float(model.body_mass.sum()),
    )
