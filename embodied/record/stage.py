"""Where the viewer's camera stands: on a scene's camera, behind a robot, above everything, or turning around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from embodied.record.follow import FollowCamera, wall_geoms
from embodied.sensors.camera import Camera, FreeCamera, free_camera

if TYPE_CHECKING:
    from embodied.record.replay import ReplayConfig
    from embodied.worlds.contract import PhysicsWorld

Array = NDArray[np.float64]
Image = NDArray[np.uint8]
_FOVY_DEG = 42.0


class Stage:
    """The viewer's camera of a replay, chosen by name (see ``ReplayConfig.camera``)."""

    def __init__(self, world: PhysicsWorld, config: ReplayConfig) -> None:
        robots = list(world.scene.info.robots)
        name = config.camera
        if name == "auto":
            name = "follow" if len(robots) == 1 else "overview"
        self._follow: FollowCamera | None = None
        width_px, height_px = config.width_px, config.height_px
        if name.startswith("follow") and robots:
            robot = name.partition(":")[2] or robots[0]
            self._follow = FollowCamera(world, robot, width_px, height_px)
            self._camera: Camera = self._follow.camera
            self.inset_camera = _own_camera(world, robot, config.height_px)
        elif name == "overview" or name.startswith("follow"):
            self._camera = overview_camera(world, width_px=width_px, height_px=height_px)
            self.inset_camera = None
        else:
            self._camera = Camera(world, name, width_px, height_px)
            self.inset_camera = None

    def render(self, dt_s: float) -> Image:
        """Return the image after ``dt_s`` more of the video."""
        if self._follow is not None:
            self._follow.update(dt_s)
        return self._camera.render().rgb


def overview_camera(
    world: PhysicsWorld, azimuth_rad: float = -0.5 * np.pi - 0.12, *, width_px: int = 640, height_px: int = 360
) -> FreeCamera:
    """Return a camera that sees the whole scene from above at an angle; walls on its side of the scene are left out.

    Args:
      world: any backend.
      azimuth_rad: direction from the middle of the scene to the camera; -pi/2 is the south.
      width_px: columns.
      height_px: rows.
    """
    camera = free_camera(world, (0, 0, 1), (1, 0, 0), fovy_deg=_FOVY_DEG, width_px=width_px, height_px=height_px)
    aim_overview(camera, world, azimuth_rad)
    return camera


def aim_overview(camera: FreeCamera, world: PhysicsWorld, azimuth_rad: float) -> None:
    """Turn an overview camera to another azimuth."""
    low, high = scene_box(world)
    middle = (low + high) / 2
    corners = np.array([[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])
    elevation = np.radians(52.0)
    away = np.array(
        [np.cos(elevation) * np.cos(azimuth_rad), np.cos(elevation) * np.sin(azimuth_rad), np.sin(elevation)]
    )
    distance = 0.5
    tan_y = np.tan(np.radians(_FOVY_DEG) / 2) * 0.96
    tan_x = tan_y * camera.width_px / camera.height_px
    for _ in range(80):  # back off until every corner is in the picture
        camera.aim(middle + distance * away, middle)
        view = camera.view()
        local = (corners - view.pos_world_m) @ view.rot_world
        depth = -local[:, 2]
        if (
            np.all(depth > 0.05)
            and np.all(np.abs(local[:, 0]) <= tan_x * depth)
            and np.all(np.abs(local[:, 1]) <= tan_y * depth)
        ):
            break
        distance *= 1.08
    _hide_near_walls(camera, world, away, middle)


def scene_box(world: PhysicsWorld) -> tuple[Array, Array]:
    """Return the (3,) lowest and highest corner of what a viewer wants to see: rooms, entities, places and robots."""
    info, model = world.scene.info, world.scene.model
    points: list[Array] = [p.pos_world_m for p in info.places.values()]
    for room in info.rooms:
        x0, y0, x1, y1 = room.rect_m
        points += [np.array([x0, y0, 0.0]), np.array([x1, y1, 0.5])]
    names = [b for e in info.entities.values() for b in e.bodies] + [r.root for r in info.robots.values()]
    bodies = {model.body(name).id for name in names}
    for geom in np.flatnonzero([int(b) in bodies for b in model.geom_bodyid]):
        rot = np.array(world.geom_rot_world[0, geom]).reshape(3, 3)
        middle = world.geom_pos_world_m[0, geom] + rot @ model.geom_aabb[geom, :3]
        reach = np.abs(rot) @ model.geom_aabb[geom, 3:]
        if np.all(reach < 1e3):  # planes have no end
            points += [middle - reach, middle + reach]
    if not points:
        return np.array([-2.0, -2.0, 0.0]), np.array([2.0, 2.0, 1.0])
    stack = np.array(points)
    low, high = stack.min(axis=0), stack.max(axis=0)
    low[2] = max(low[2], 0.0)
    return low, np.maximum(high, low + 0.5)


def _hide_near_walls(camera: FreeCamera, world: PhysicsWorld, away: Array, middle: Array) -> None:
    """Leave out outer walls whose inner face looks away from the camera: those between it and the rooms."""
    hidden: list[int] = []
    low, high = scene_box(world)
    half = (high - low)[:2] / 2
    for geom in wall_geoms(world):
        centre = np.array(world.geom_pos_world_m[0, geom])
        out = (centre - middle)[:2] / np.maximum(half, 1e-6)
        side = np.zeros(2)
        axis = int(np.argmax(np.abs(out)))
        side[axis] = np.sign(out[axis])
        is_outer = abs(out[axis]) > 0.9
        if is_outer and float(side @ away[:2]) > 0.15:
            hidden.append(geom)
    camera.hide(hidden)


def _own_camera(world: PhysicsWorld, robot: str, height_px: int) -> Camera | None:
    model, prefix = world.scene.model, world.scene.info.robots[robot].prefix
    names = [n for i in range(model.ncam) if (n := model.camera(i).name).startswith(prefix)]
    if not names:
        return None
    size = max(48, height_px // 3)
    chosen = next((n for n in names if "head" in n), names[0])
    return Camera(world, chosen, round(size * 4 / 3), size)
