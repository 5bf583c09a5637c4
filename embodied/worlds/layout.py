"""Where things are in the arrays of a compiled model: joints of robots and entities, and how a start is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import mujoco
import numpy as np
from numpy.typing import NDArray

from embodied.errors import WorldError, nearest_hint
from embodied.worlds.contract import Start
from embodied_scenes.builders import CompiledScene

Array = NDArray[np.float64]


class Layout:
    """Addresses into ``qpos`` by name, for one compiled scene."""

    def __init__(self, scene: CompiledScene) -> None:
        self.scene = scene
        model = scene.model
        self.roots: dict[str, tuple[Literal["free", "planar"], int]] = {}
        for name, entity in scene.info.entities.items():
            if entity.movable:
                self.roots[name] = ("free", int(model.joint(f"{name}/free").qposadr[0]))
        for name, robot in scene.info.robots.items():
            root = _robot_root(model, robot.root)
            if root is not None:
                self.roots[name] = root
        self.openings: dict[str, tuple[int, float]] = {
            name: (int(model.joint(e.joint).qposadr[0]), e.joint_upper)
            for name, e in scene.info.entities.items()
            if e.joint is not None
        }
        self.buttons: list[tuple[str, str, int, float]] = [
            (name, b.state, int(model.joint(b.joint).qposadr[0]), b.travel_m / 2)
            for name, e in scene.info.entities.items()
            for b in e.buttons
        ]

    def names(self) -> frozenset[str]:
        """Everything that may carry states: entities, robots and places."""
        info = self.scene.info
        return frozenset(info.entities) | frozenset(info.robots) | frozenset(info.places)

    def write(self, start: Start, qpos: Array) -> None:
        """Write a start into one row of ``qpos``.

        Raises:
          WorldError: an unknown name, a pose of the wrong length or a value that is not finite.
        """
        for name, pose in start.poses.items():
            self.write_pose(name, pose, qpos)
        for name, fraction in start.joints.items():
            self.write_opening(name, fraction, qpos)
        for name, value in start.joint_pos.items():
            try:
                address = int(self.scene.model.joint(name).qposadr[0])
            except KeyError as error:
                raise WorldError(f"No joint {name!r} in scene {self.scene.info.id!r}.") from error
            qpos[address] = value

    def write_pose(self, name: str, pose: tuple[float, ...], qpos: Array) -> None:
        """Write (x, y, z, qw, qx, qy, qz) of a movable entity or a robot into one row of ``qpos``."""
        if name not in self.roots:
            raise WorldError(f"{name!r} is no movable entity or robot. {nearest_hint(name, self.roots)}")
        values = np.asarray(pose, dtype=np.float64)
        if values.shape != (7,) or not np.all(np.isfinite(values)) or np.linalg.norm(values[3:]) < 1e-6:
            raise WorldError(f"The pose of {name!r} must be 7 finite numbers (x, y, z, qw, qx, qy, qz), got {pose}.")
        kind, address = self.roots[name]
        if kind == "free":
            qpos[address : address + 3] = values[:3]
            qpos[address + 3 : address + 7] = values[3:] / np.linalg.norm(values[3:])
        else:
            w, x, y, z = values[3:]
            yaw_rad = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
            qpos[address : address + 3] = (values[0], values[1], yaw_rad)

    def write_opening(self, name: str, fraction: float, qpos: Array) -> None:
        """Write the opening fraction of a door or drawer into one row of ``qpos``."""
        if name not in self.openings:
            raise WorldError(f"{name!r} cannot be opened. {nearest_hint(name, self.openings)}")
        if not 0.0 <= fraction <= 1.0:
            raise WorldError(f"The opening of {name!r} must lie in [0, 1], got {fraction}.")
        address, upper = self.openings[name]
        qpos[address] = fraction * upper

    def opening(self, name: str, qpos: Array) -> float:
        """Return the opening fraction of an entity from one row of ``qpos``."""
        address, upper = self.openings[name]
        return float(qpos[address]) / upper


def _robot_root(model: mujoco.MjModel, root: str) -> tuple[Literal["free", "planar"], int] | None:
    """Return how a robot's root moves and where its position stands; None for one that is fixed to the world."""
    body = model.body(root)
    first, count = int(body.jntadr[0]), int(body.jntnum[0])
    kinds = [int(model.jnt_type[first + i]) for i in range(count)]
    slide, hinge, free = (
        int(k) for k in (mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_FREE)
    )
    if kinds[:1] == [free]:
        return "free", int(model.jnt_qposadr[first])
    if kinds[:3] == [slide, slide, hinge]:
        return "planar", int(model.jnt_qposadr[first])
    return None


def entity_of_body(scene: CompiledScene) -> Mapping[int, str]:
    """Return body index to entity or robot name, for all bodies that belong to one."""
    model, info = scene.model, scene.info
    found: dict[int, str] = {model.body(b).id: n for n, e in info.entities.items() for b in e.bodies}
    for robot in info.robots.values():
        for index in range(model.nbody):
            if model.body(index).name.startswith(robot.prefix):
                found[index] = robot.name
    return found
