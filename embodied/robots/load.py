"""Bring your own robot: from an MJCF or URDF file, or from the Menagerie collection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from embodied.errors import RobotError, nearest_hint, require
from embodied.robots.base import RobotSpec
from embodied_controllers.contract import ActionSpec, ObservationSpec
from embodied_scenes.resolve import SceneBuildError

_DRIVER = "embodied.robots.generic:GenericRobot"


def from_mjcf(path: str | Path, *, kind: str | None = None, dt_ctrl_s: float = 0.02) -> RobotSpec:
    """Describe a robot from an MJCF file with one root body.

    The action vector holds the file's actuators in their own units. A root with a free joint floats, one with slide x,
    slide y and hinge yaw drives, any other is fixed where it is mounted.

    Args:
      path: the file.
      kind: robot kind; the file's stem if None.
      dt_ctrl_s: control period.

    Raises:
      RobotError: the file is missing, does not parse, has several roots or no actuator.
    """
    from embodied_scenes.builders.robot_file import read_mjcf

    try:
        return _spec(read_mjcf(Path(path)), kind or Path(path).stem, dt_ctrl_s)
    except SceneBuildError as error:
        raise RobotError(str(error)) from error


def from_urdf(
    path: str | Path,
    *,
    kind: str | None = None,
    dt_ctrl_s: float = 0.02,
    stiffness: float = 100.0,
    damping: float = 10.0,
) -> RobotSpec:
    """Describe a robot from a URDF file; a URDF has no actuators, so each joint gets a position servo.

    Args:
      path: the file.
      kind: robot kind; the file's stem if None.
      dt_ctrl_s: control period.
      stiffness: of the servos, N·m/rad or N/m.
      damping: of the servos, N·m·s/rad or N·s/m.

    Raises:
      RobotError: the file is missing or the engine refuses it.
    """
    from embodied_scenes.builders.robot_file import read_urdf

    try:
        file = read_urdf(Path(path), stiffness=stiffness, damping=damping)
        return _spec(file, kind or Path(path).stem, dt_ctrl_s)
    except SceneBuildError as error:
        raise RobotError(str(error)) from error


def from_menagerie(name: str, *, dt_ctrl_s: float = 0.02) -> RobotSpec:
    """Describe a robot of the MuJoCo Menagerie by its folder name, for instance ``franka_emika_panda``.

    The collection downloads a model on first use; set ``MENAGERIE_ROOT`` to a local copy to work offline.

    Raises:
      MissingExtraError: the package ``mujoco-menagerie`` is not installed.
      RobotError: no such model, or it cannot be downloaded from here.
    """
    import os

    root = os.environ.get("MENAGERIE_ROOT")
    if root and (Path(root) / name).is_dir():
        return from_mjcf(_main_file(Path(root) / name), kind=name, dt_ctrl_s=dt_ctrl_s)
    menagerie: Any = require("mujoco_menagerie", "menagerie")
    try:
        robot = menagerie.get(name)
        path = Path(robot.xml(robot.default_model))
    except menagerie.UnknownRobotError as error:
        raise RobotError(f"The Menagerie has no model {name!r}. {nearest_hint(name, menagerie.names())}") from error
    except menagerie.MenagerieError as error:
        raise RobotError(
            f"Menagerie model {name!r} could not be had: {error}. It is downloaded on first use; connect to a network "
            "once, or set MENAGERIE_ROOT to a folder that holds a copy."
        ) from error
    return from_mjcf(path, kind=name, dt_ctrl_s=dt_ctrl_s)


def _main_file(folder: Path) -> Path:
    files = sorted(f for f in folder.glob("*.xml") if "scene" not in f.stem and "mjx" not in f.stem)
    if not files:
        raise RobotError(f"{folder} holds no robot file (*.xml).")
    return min(files, key=lambda f: len(f.stem))


def _spec(file: object, kind: str, dt_ctrl_s: float) -> RobotSpec:
    from embodied_scenes.builders.robot_file import RobotFile

    assert isinstance(file, RobotFile)
    if not file.actuators:
        raise RobotError(f"{file.mjcf} has no actuators, so nothing could be commanded. Add an <actuator> section.")
    count = len(file.actuators)
    return RobotSpec(
        kind=kind,
        mjcf=file.mjcf,
        driver=_DRIVER,
        root=file.root,
        dt_ctrl_s=dt_ctrl_s,
        action_spec=ActionSpec(
            names=file.actuators,
            low=file.ctrl_low,
            high=file.ctrl_high,
            safe=np.where(file.holds_position, np.nan, 0.0),
            groups={"all": slice(0, count)},
        ),
        observation_spec=ObservationSpec(
            joint_names=file.joints,
            joint_low=file.joint_low,
            joint_high=file.joint_high,
            joint_vel_max=np.full(len(file.joints), np.inf),
            cameras=file.cameras,
            rate_hz=1.0 / dt_ctrl_s,
        ),
        card=f"Read from {file.mjcf.name}: {count} actuators, {len(file.joints)} joints, {file.mass_kg:.2f} kg.",
    )
