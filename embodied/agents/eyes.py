"""The cameras of robots: what they show, as entity names and as images."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from embodied.robots.base import SimRobot
from embodied.worlds.contract import PhysicsWorld

if TYPE_CHECKING:
    from embodied.sensors.camera import Camera

SEEING_PX = (96, 72)  # enough to tell which things are in view; a tenth of the cost of an image for a model
IMAGE_PX = (320, 240)
MIN_PIXELS = 6


class Eyes:
    """The cameras of one robot, made on first use.

    Args:
      world: where the robot is.
      robot: whose cameras they are.
    """

    def __init__(self, world: PhysicsWorld, robot: SimRobot) -> None:
        self._world = world
        self._names = [f"{robot.prefix}{c}" for c in robot.observation_spec.cameras]

    def visible(self) -> list[str]:
        """Return the names of the entities of which some camera shows at least ``MIN_PIXELS`` pixels, sorted."""
        from embodied.sensors.camera import visible_entities

        found: set[str] = set()
        for camera in self._seeing.values():
            found.update(visible_entities(camera.render(), self._world.scene, MIN_PIXELS))
        return sorted(found)

    def images(self) -> dict[str, NDArray[np.uint8]]:
        """Return camera name to (H, W, 3) rgb of the present moment."""
        return {name: camera.render().rgb for name, camera in self._imaging.items()}

    @cached_property
    def _seeing(self) -> dict[str, Camera]:
        return self._make(*SEEING_PX)

    @cached_property
    def _imaging(self) -> dict[str, Camera]:
        return self._make(*IMAGE_PX)

    def _make(self, width_px: int, height_px: int) -> dict[str, Camera]:
        from embodied.sensors.camera import Camera

        return {n: Camera(self._world, n, width_px, height_px) for n in self._names}


class CameraService:
    """The service ``camera`` of an episode: what any agent sees, by agent name."""

    def __init__(self, eyes: Mapping[str, Eyes]) -> None:
        self._eyes = eyes

    def visible(self, agent: str) -> list[str]:
        """Return the names of what the cameras of ``agent`` show now."""
        return self._eyes[agent].visible()
