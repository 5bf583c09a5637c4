"""Cameras that need no GL: ``Camera(world, name).render()`` gives colours, depth and segmentation."""

from __future__ import annotations

from embodied.sensors.camera.camera import Camera, FreeCamera, Route, free_camera, resolve_route, warm_up
from embodied.sensors.camera.frame import Frame, View, look_at
from embodied.sensors.camera.seen import entity_mask, entity_of_geom, visible_entities

__all__ = [
    "Camera",
    "Frame",
    "FreeCamera",
    "Route",
    "View",
    "entity_mask",
    "entity_of_geom",
    "free_camera",
    "look_at",
    "resolve_route",
    "visible_entities",
    "warm_up",
]
