"""Printed codes as a camera reads them: in range, in the picture, not too slanted, not hidden.

The decoding itself is exact (what a camera resolves, a reader decodes); resolving is geometry: distance, field of view,
slant of the plate and a ray to it. By the rule of scenes the plate is the last geom of its entity's root body.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import mujoco
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from embodied.worlds.contract import PhysicsWorld

MAX_RANGE_M = 1.2  # a 12 cm code of 25 modules seen by a camera of 1 mrad per pixel keeps 4 pixels per module
MAX_SLANT_RAD = np.deg2rad(60.0)  # foreshortening to a half, the usual limit of code readers


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeReading:
    """One code that was read.

    Attributes:
      entity: which entity carries it; for logs and tests, a reader on hardware gives only ``text``.
    """

    text: str
    entity: str
    distance_m: float


class CodeReader:
    """Reads the printed codes that one camera sees.

    Args:
      world: physics world.
      camera: full name of the camera in the compiled model.
      env_index: environment of the batch.
    """

    def __init__(self, world: PhysicsWorld, camera: str, env_index: int = 0) -> None:
        model = world.scene.model
        self._world, self._env = world, env_index
        self._camera = int(model.camera(camera).id)
        self._half_angle_rad = np.deg2rad(float(model.cam_fovy[self._camera])) / 2
        self._own_body = int(model.cam_bodyid[self._camera])
        self._plates: list[tuple[str, str, int]] = []
        for entity in world.scene.info.entities.values():
            if entity.label is not None:
                body = int(model.body(entity.root).id)
                plate = int(model.body_geomadr[body] + model.body_geomnum[body] - 1)
                self._plates.append((entity.name, entity.label, plate))
        self._data = mujoco.MjData(model)

    def read(self) -> tuple[CodeReading, ...]:
        """Return what is readable now, nearest first."""
        world, env = self._world, self._env
        eye = world.cam_pos_world_m[env, self._camera]
        axis = -world.cam_rot_world[env, self._camera].reshape(3, 3)[:, 2]
        found = []
        for entity, text, plate in self._plates:
            to_plate = world.geom_pos_world_m[env, plate] - eye
            distance_m = float(np.linalg.norm(to_plate))
            if distance_m > MAX_RANGE_M or distance_m < 1e-6:
                continue
            ray = to_plate / distance_m
            normal = world.geom_rot_world[env, plate].reshape(3, 3)[:, self._thin_axis(plate)]
            if ray @ axis < np.cos(self._half_angle_rad) or abs(ray @ normal) < np.cos(MAX_SLANT_RAD):
                continue
            if self._first_hit(eye, ray) == plate:
                found.append(CodeReading(text=text, entity=entity, distance_m=distance_m))
        return tuple(sorted(found, key=lambda r: (r.distance_m, r.entity)))

    def _thin_axis(self, plate: int) -> int:
        return int(np.argmin(self._world.scene.model.geom_size[plate]))

    def _first_hit(self, eye: NDArray[np.float64], ray: NDArray[np.float64]) -> int:
        model, data = self._world.scene.model, self._data
        data.geom_xpos[:] = self._world.geom_pos_world_m[self._env]
        data.geom_xmat[:] = self._world.geom_rot_world[self._env]
        data.xpos[:] = self._world.body_pos_world_m[self._env]
        hit = np.zeros(1, np.int32)
        mujoco.mj_ray(model, data, eye, ray, None, 1, self._own_body, hit)
        return int(hit[0])
