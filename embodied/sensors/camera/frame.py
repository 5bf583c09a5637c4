"""What a camera gives, and from where it looks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from embodied.errors import WorldError

Array = NDArray[np.float64]

NEAR_M = 0.01
"""Surfaces closer than this to the image plane are cut away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One image of one camera.

    Attributes:
      rgb: (height, width, 3) colours, row 0 at the top.
      depth_m: (height, width) distance along the optical axis; inf where nothing is hit.
      segmentation: (height, width) geom indices of the scene's model; -1 where nothing is hit.
    """

    rgb: NDArray[np.uint8]
    depth_m: NDArray[np.float32]
    segmentation: NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Pose and pinhole of a camera. The camera frame has x right, y up and looks along -z.

    Attributes:
      pos_world_m: (3,) optical centre.
      rot_world: (3, 3) columns are the camera's axes in the world.
      fovy_deg: vertical opening angle.
      width_px: columns of the image.
      height_px: rows of the image.
    """

    pos_world_m: Array
    rot_world: Array
    fovy_deg: float
    width_px: int
    height_px: int

    def __post_init__(self) -> None:
        if not (1 <= self.width_px <= 8192 and 1 <= self.height_px <= 8192):
            raise WorldError(
                f"Camera size {self.width_px} x {self.height_px} px is not usable. "
                "Expected 1 to 8192 pixels each way; give width_px and height_px in that range."
            )
        if not 0.1 < self.fovy_deg < 179.0:
            raise WorldError(
                f"Vertical opening angle {self.fovy_deg} deg is not usable. "
                "Expected more than 0.1 and less than 179 degrees; orthographic cameras are not supported."
            )

    @property
    def pixel_scale(self) -> float:
        """Width of a pixel at 1 m along the optical axis, metres."""
        return float(2.0 * np.tan(np.radians(self.fovy_deg) / 2.0) / self.height_px)

    def rays_cam(self) -> Array:
        """Return (height, width, 3) directions through the pixel centres, scaled to 1 m of depth."""
        scale = self.pixel_scale
        x = (np.arange(self.width_px) + 0.5 - self.width_px / 2.0) * scale
        y = (self.height_px / 2.0 - np.arange(self.height_px) - 0.5) * scale
        rays = np.full((self.height_px, self.width_px, 3), -1.0)
        rays[:, :, 0] = x[None, :]
        rays[:, :, 1] = y[:, None]
        return rays

    def project(self, point_world_m: Array) -> tuple[float, float, float]:
        """Return (column, row, depth_m) of a world point; depth <= 0 means behind the camera."""
        cam = self.rot_world.T @ (np.asarray(point_world_m, dtype=np.float64) - self.pos_world_m)
        depth = float(-cam[2])
        if depth <= 0.0:
            return float("nan"), float("nan"), depth
        scale = self.pixel_scale * depth
        return float(cam[0] / scale + self.width_px / 2.0), float(self.height_px / 2.0 - cam[1] / scale), depth


def look_at(pos_world_m: Array, target_world_m: Array) -> Array:
    """Return the (3, 3) camera rotation that looks from one world point at another with the horizon level.

    Raises:
      WorldError: the two points coincide.
    """
    pos = np.asarray(pos_world_m, dtype=np.float64)
    forward = np.asarray(target_world_m, dtype=np.float64) - pos
    length = float(np.linalg.norm(forward))
    if not length > 1e-9:
        raise WorldError(f"A camera at {pos.tolist()} cannot look at its own position. Give a target somewhere else.")
    forward = forward / length
    right = np.cross(forward, (0.0, 0.0, 1.0))
    if np.linalg.norm(right) < 1e-6:  # straight up or down: north is up in the image
        right = np.array([1.0, 0.0, 0.0])
    right = right / np.linalg.norm(right)
    up = np.cross(right, forward)
    return np.column_stack([right, up, -forward])
