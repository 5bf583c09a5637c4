"""Look at a scene: in a window where there is a display, else as a picture or a turning video."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from embodied.errors import SceneError

if TYPE_CHECKING:
    from embodied.worlds.contract import PhysicsWorld
    from embodied_scenes.spec import SceneSpec

Image = NDArray[np.uint8]
_TURN_FPS, _TURN_S = 15.0, 8.0


def view_scene(
    scene: str | SceneSpec,
    out: Path | str | None = None,
    *,
    width_px: int = 960,
    height_px: int = 640,
    camera: str = "",
) -> Path | None:
    """Show a scene.

    Args:
      scene: a scene id, the path of a scene file (``.yaml``) or a description.
      out: ``.png`` for a picture, ``.mp4`` for a turn around the scene; None opens a window, and without a display
        writes ``<scene>.png`` into the working folder.
      width_px: columns.
      height_px: rows.
      camera: a camera of the scene for a picture; by default everything is shown from above.

    Returns:
      The file written, or None when a window was shown until the user closed it.

    Raises:
      SceneError: ``out`` has another suffix.
      UnknownNameError: no such scene.
    """
    from embodied.record.video import write_png, write_video

    world = _world_of(scene)
    if out is None and has_display():
        _show_window(world)
        return None
    out = Path(out) if out is not None else Path(world.scene.info.id.replace("/", "_") + ".png")
    if out.suffix == ".png":
        return write_png(out, picture(world, camera, width_px=width_px, height_px=height_px))
    if out.suffix == ".mp4":
        write_video(out, turntable(world, width_px=width_px, height_px=height_px), fps=_TURN_FPS)
        return out
    raise SceneError(f"A view is written as .png or .mp4, got {out.name!r}. Give a path with one of these suffixes.")


def picture(world: PhysicsWorld, camera: str = "", *, width_px: int = 960, height_px: int = 640) -> Image:
    """Return one image of a world, by a camera of its scene or from above."""
    from embodied.record.stage import overview_camera
    from embodied.sensors.camera import Camera

    if camera:
        return Camera(world, camera, width_px, height_px).render().rgb
    return overview_camera(world, width_px=width_px, height_px=height_px).render().rgb


def turntable(world: PhysicsWorld, *, width_px: int = 960, height_px: int = 640) -> Iterator[Image]:
    """Yield the images of one turn around a world."""
    from embodied.record.stage import aim_overview, overview_camera

    camera = overview_camera(world, width_px=width_px, height_px=height_px)
    count = round(_TURN_FPS * _TURN_S)
    for index in range(count):
        aim_overview(camera, world, -np.pi / 2 + 2 * np.pi * index / count)
        yield camera.render().rgb


def has_display() -> bool:
    """Whether a window can be opened here."""
    if sys.platform.startswith("linux"):
        return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return True


def _world_of(scene: str | SceneSpec) -> PhysicsWorld:
    from embodied.catalog import SCENES
    from embodied.worlds.mujoco import MujocoWorld
    from embodied_scenes.builders import compile_scene
    from embodied_scenes.load import load_scene

    if isinstance(scene, str):
        scene = load_scene(Path(scene)) if scene.endswith((".yaml", ".yml")) else SCENES.get(scene)()
    world = MujocoWorld(compile_scene(scene))
    world.reset(0)
    return world


def _show_window(world: PhysicsWorld) -> None:
    from embodied.worlds.window import show_window

    show_window(world)
