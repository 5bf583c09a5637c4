"""MuJoCo's own viewer window on a world, for a machine with a display."""

from __future__ import annotations

from typing import cast

from embodied.errors import WorldError
from embodied.worlds.contract import PhysicsWorld
from embodied.worlds.mujoco import MujocoWorld


def show_window(world: PhysicsWorld) -> None:
    """Open the engine's viewer on a world and return when its user closes it.

    Raises:
      WorldError: the world is not a MuJoCo world, or the window system refuses.
    """
    if not isinstance(world, MujocoWorld):
        raise WorldError(f"A window shows the mujoco world only, got {world.backend!r}. Use a picture or a video.")
    try:
        from mujoco import viewer
    except ImportError as error:
        raise WorldError(
            f"The viewer cannot be loaded ({error}). Write a picture instead: embodied view SCENE --out scene.png"
        ) from error
    world = cast("MujocoWorld", world)
    viewer.launch(world.scene.model, world.data)
