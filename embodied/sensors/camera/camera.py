"""One front for all routes: ask a camera of a world for a frame."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from embodied.errors import MissingExtraError, WorldError, nearest_hint
from embodied.sensors.camera.frame import Frame, View, look_at
from embodied.sensors.camera.table import GeomTable, geom_table

if TYPE_CHECKING:
    from embodied.worlds.contract import PhysicsWorld
    from embodied_scenes.builders import CompiledScene

Array = NDArray[np.float64]
Route = Literal["auto", "zbuffer", "rays", "gl"]


def resolve_route(route: Route) -> Route:
    """Return the route that ``auto`` means here: the z-buffer where numba is installed, rays otherwise.

    Raises:
      WorldError: an unknown route.
      MissingExtraError: ``zbuffer`` without numba.
    """
    if route not in get_args(Route):
        raise WorldError(f"No camera route {route!r}. {nearest_hint(route, get_args(Route))}")
    has_numba = importlib.util.find_spec("numba") is not None
    if route == "zbuffer" and not has_numba:
        raise MissingExtraError(
            "The z-buffer camera needs numba, which is not installed. "
            "Install it with: pip install 'embodied-stack[fast]', or use route='rays'."
        )
    return ("zbuffer" if has_numba else "rays") if route == "auto" else route


class Camera:
    """A camera of a physics world.

    Args:
      world: any backend.
      name: a camera of the compiled model; one of a robot is called ``<robot>/<camera>``.
      width_px: columns.
      height_px: rows.
      route: how images are made: ``auto``, ``zbuffer``, ``rays`` or ``gl``. All give the same arrays; ``gl`` also draws
        textures, shadows and height fields.
      hidden_geoms: geom indices left out of the image.

    Raises:
      WorldError: no such camera, size or route.
      MissingExtraError: the route's library is not installed.
    """

    def __init__(
        self,
        world: PhysicsWorld,
        name: str,
        width_px: int = 128,
        height_px: int = 128,
        route: Route = "auto",
        *,
        hidden_geoms: Sequence[int] = (),
    ) -> None:
        model = world.scene.model
        names = [model.camera(i).name for i in range(model.ncam)]
        if name not in names:
            raise WorldError(f"Scene {world.scene.info.id!r} has no camera {name!r}. {nearest_hint(name, names)}")
        self.name = name
        self.index = names.index(name)
        self._fovy_deg = float(model.cam_fovy[self.index])
        self._pose: tuple[Array, Array] | None = None
        self._setup(world, width_px, height_px, route, hidden_geoms)

    def _setup(self, world: PhysicsWorld, width_px: int, height_px: int, route: Route, hidden: Sequence[int]) -> None:
        self.world = world
        self.width_px, self.height_px = width_px, height_px
        self.route = resolve_route(route)
        self._table = _table_of(world.scene)
        self._engine: Any = None
        self.hide(hidden)
        self.view()

    def hide(self, geom_ids: Sequence[int]) -> None:
        """Leave these geoms out of the images from now on (walls between the viewer and the robot, for instance)."""
        self._shown = self._table.without(list(geom_ids)) if len(geom_ids) else self._table
        if self._engine is not None:
            self._engine.table = self._shown

    def view(self, env_index: int = 0) -> View:
        """Return the present pose and pinhole."""
        if self._pose is not None:
            pos, rot = self._pose
        else:
            pos = np.array(self.world.cam_pos_world_m[env_index, self.index])
            rot = np.array(self.world.cam_rot_world[env_index, self.index]).reshape(3, 3)
        return View(
            pos_world_m=pos, rot_world=rot, fovy_deg=self._fovy_deg, width_px=self.width_px, height_px=self.height_px
        )

    def render(self, env_index: int = 0) -> Frame:
        """Return what the camera sees in one environment at the world's present state."""
        view, world = self.view(env_index), self.world
        if self.route == "zbuffer":
            from embodied.sensors.camera import zbuffer

            return zbuffer.render(view, self._shown, world.geom_pos_world_m[env_index], world.geom_rot_world[env_index])
        if self.route == "rays":
            from embodied.sensors.camera import rays

            if self._engine is None:
                self._engine = rays.RayCaster(world.scene.model, self._shown)
            self._engine.place(world.geom_pos_world_m[env_index], world.geom_rot_world[env_index],
                               world.body_pos_world_m[env_index], world.body_quat_wxyz[env_index])  # fmt: skip
            return rays.render(view, self._engine)
        from embodied.sensors.camera import gl

        if self._engine is None:
            self._engine = gl.GlRenderer(world.scene.model, self._shown)
        return self._engine.render(view, world.qpos[env_index])


class FreeCamera(Camera):
    """A camera that stands where the viewer puts it; see :func:`free_camera`."""

    def __init__(self, world: PhysicsWorld, fovy_deg: float, width_px: int, height_px: int, route: Route) -> None:
        self.name, self.index, self._fovy_deg = "free", -1, fovy_deg
        self._pose = (np.zeros(3), np.eye(3))
        self._setup(world, width_px, height_px, route, ())

    def aim(self, pos_world_m: Sequence[float] | Array, target_world_m: Sequence[float] | Array) -> None:
        """Stand at one world point and look at another.

        Raises:
          WorldError: the points coincide.
        """
        pos = np.array(pos_world_m, dtype=np.float64)
        self._pose = (pos, look_at(pos, np.array(target_world_m, dtype=np.float64)))


def free_camera(
    world: PhysicsWorld,
    pos_world_m: Sequence[float] | Array,
    target_world_m: Sequence[float] | Array,
    *,
    fovy_deg: float = 50.0,
    width_px: int = 640,
    height_px: int = 480,
    route: Route = "auto",
) -> FreeCamera:
    """Return a camera for views, at any pose.

    Args:
      world: any backend.
      pos_world_m: where it stands.
      target_world_m: what it looks at.
      fovy_deg: vertical opening angle.
      width_px: columns.
      height_px: rows.
      route: as in :class:`Camera`.
    """
    camera = FreeCamera(world, fovy_deg, width_px, height_px, route)
    camera.aim(pos_world_m, target_world_m)
    return camera


_tables: dict[str, GeomTable] = {}


def _table_of(scene: CompiledScene) -> GeomTable:
    if scene.hash not in _tables:
        if len(_tables) >= 32:
            _tables.clear()
        _tables[scene.hash] = geom_table(scene.model)
    return _tables[scene.hash]


def warm_up() -> None:
    """Compile the z-buffer now (seconds the first time on a machine, then read from a cache); nothing without numba."""
    if resolve_route("auto") != "zbuffer":
        return
    from embodied.sensors.camera import zbuffer

    table = GeomTable(
        kind=np.array([6], dtype=np.int32),
        size_m=np.full((1, 3), 0.5),
        bound_center_m=np.zeros((1, 3)),
        bound_half_m=np.full((1, 3), 0.5),
        colour=np.full((1, 3), 128.0, dtype=np.float32),
        triangles_m=np.zeros((0, 3, 3)),
        first_triangle=np.zeros(1, dtype=np.int32),
        num_triangles=np.zeros(1, dtype=np.int32),
    )
    view = View(pos_world_m=np.array([0.0, 0.0, 3.0]), rot_world=np.eye(3), fovy_deg=45.0, width_px=2, height_px=2)
    zbuffer.render(view, table, np.zeros((1, 3)), np.eye(3).reshape(1, 9))
