"""A camera that follows robots: high at three quarters, from the open side of the room, walls in between left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from embodied.sensors.camera import FreeCamera, Route, free_camera

if TYPE_CHECKING:
    from embodied.worlds.contract import PhysicsWorld

Array = NDArray[np.float64]

# Distance along the ground, height above the target and aim height, per robot kind; chosen by eye on the three worlds.
_STANCE_M = {"quadrotor": (2.0, 1.2, 0.0), "amr": (3.6, 3.4, 0.2)}
_DEFAULT_STANCE_M = (2.7, 2.6, 0.75)
# Off the line from the robot to the middle of its room, so that its body hides less; the first free one is taken.
_TURNS_RAD = tuple(np.radians((38.0, -38.0, 80.0, -80.0, 125.0, -125.0, 180.0)))
_SMALL_M = 0.12  # what is smaller hides no robot
_SETTLE_S = 0.9  # the camera swings round the robot with this time constant


class FollowCamera:
    """Keeps one robot in the picture.

    Args:
      world: a world with the robot.
      robot: its name.
      width_px: columns.
      height_px: rows.
      route: see :class:`embodied.sensors.camera.Camera`.
    """

    def __init__(
        self, world: PhysicsWorld, robot: str, width_px: int = 640, height_px: int = 360, route: Route = "auto"
    ) -> None:
        info, model = world.scene.info, world.scene.model
        self._world = world
        self._body = int(model.body(info.robots[robot].root).id)
        self._stance = _stance(info.robots[robot].kind)
        self._walls = wall_geoms(world)
        self._wall_half_m = np.asarray(model.geom_size)[self._walls]
        self.camera: FreeCamera = free_camera(
            world, (0, 0, 1), (1, 0, 0), width_px=width_px, height_px=height_px, route=route, fovy_deg=48.0
        )
        self._turn = 0
        prefix = info.robots[robot].prefix
        owner = [model.body(int(b)).name for b in model.geom_bodyid]
        big = np.asarray(model.geom_rbound) > _SMALL_M
        self._things = np.array(
            [g for g in range(model.ngeom) if big[g] and g not in self._walls and not owner[g].startswith(prefix)],
            dtype=np.int64,
        )
        self._things_box = np.array(model.geom_aabb)[self._things]
        self._offset: Array | None = None

    def update(self, dt_s: float) -> None:
        """Move on by ``dt_s`` of the log; the first call jumps to the place."""
        distance_m, height_m, aim_m = self._stance
        robot = np.array(self._world.body_pos_world_m[0, self._body])
        target = robot + np.array([0.0, 0.0, aim_m])
        away = self._open_side(robot)
        places = [target + np.append(_turned(away, turn) * distance_m, height_m - aim_m) for turn in _TURNS_RAD]
        if self._is_blocked(places[self._turn], target):
            free = [index for index, place in enumerate(places) if not self._is_blocked(place, target)]
            self._turn = free[0] if free else self._turn
        wanted = (places[self._turn] - target)[:2]
        last = wanted if self._offset is None else self._offset
        offset = last + (1.0 - np.exp(-dt_s / _SETTLE_S)) * (wanted - last)
        offset = offset * distance_m / max(float(np.linalg.norm(offset)), 1e-6)
        self._offset = offset
        pos = target + np.append(offset, height_m - aim_m)
        self.camera.aim(pos, target)
        self.camera.hide(self._between(pos, robot))

    def _open_side(self, robot: Array) -> Array:
        info = self._world.scene.info
        name = info.room_at(float(robot[0]), float(robot[1]))
        rects = [r.rect_m for r in info.rooms if r.name == name] or [r.rect_m for r in info.rooms]
        if not rects:
            return np.array([0.0, -1.0])
        rect = np.array(rects)
        middle = np.array([rect[:, 0].min() + rect[:, 2].max(), rect[:, 1].min() + rect[:, 3].max()]) / 2
        away = middle - robot[:2] + np.array([0.0, -0.35])  # from the south when the robot stands in the middle
        return away / max(float(np.linalg.norm(away)), 1e-6)

    def _is_blocked(self, camera: Array, target: Array) -> bool:
        """Whether furniture or the like stands between the camera and the robot."""
        rot = np.array(self._world.geom_rot_world[0, self._things]).reshape(-1, 3, 3)
        centre = self._world.geom_pos_world_m[0, self._things]
        start = np.einsum("nij,ni->nj", rot, camera - centre) - self._things_box[:, :3]
        end = np.einsum("nij,ni->nj", rot, target - centre) - self._things_box[:, :3]
        return bool(np.any(_crosses(start, end, self._things_box[:, 3:])))

    def _between(self, camera: Array, robot: Array) -> list[int]:
        """Walls that a line from the camera to the robot or to a metre around it crosses."""
        hidden: list[int] = []
        offsets = [(0, 0, 0.1), (0, 0, 1.3), (0.9, 0, 0.5), (-0.9, 0, 0.5), (0, 0.9, 0.5), (0, -0.9, 0.5)]
        inner = np.array([robot + np.array(o) for o in offsets])
        for geom, half in zip(self._walls, self._wall_half_m, strict=True):
            rot = np.array(self._world.geom_rot_world[0, geom]).reshape(3, 3)
            centre = self._world.geom_pos_world_m[0, geom]
            start = (camera - centre) @ rot
            ends = (inner - centre) @ rot
            if any(_crosses(start, end, half) for end in ends if not np.all(np.abs(end) <= half + 0.05)):
                hidden.append(int(geom))
        return hidden


def wall_geoms(world: PhysicsWorld) -> list[int]:
    """Return the geom indices of the scene's walls (bodies called ``wall_…`` by the scene compiler)."""
    model = world.scene.model
    walls = {b for b in range(model.nbody) if model.body(b).name.startswith("wall_")}
    return [g for g in range(model.ngeom) if int(model.geom_bodyid[g]) in walls]


def _stance(kind: str) -> tuple[float, float, float]:
    return next((s for word, s in _STANCE_M.items() if word in kind), _DEFAULT_STANCE_M)


def _turned(direction: Array, angle_rad: float) -> Array:
    cos, sin = np.cos(angle_rad), np.sin(angle_rad)
    return np.array([cos * direction[0] - sin * direction[1], sin * direction[0] + cos * direction[1]])


def _crosses(start: Array, end: Array, half: Array) -> NDArray[np.bool_]:
    """Whether segments (…, 3) pass through boxes around the origin."""
    step = end - start
    step = np.where(np.abs(step) < 1e-12, 1e-12, step)
    low, high = (-half - start) / step, (half - start) / step
    first, last = np.minimum(low, high).max(axis=-1), np.maximum(low, high).min(axis=-1)
    # A wall that a target just behind it touches at its very end is the background, not an obstacle.
    return (first <= last) & (last >= 0.0) & (first <= 0.97)
