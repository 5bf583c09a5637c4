"""The look of the GL-free cameras: two fixed lights, soft ambient, sky gradient, checkered planes, thin outlines.

The z-buffer repeats these formulas in compiled code; a test holds the two together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from embodied.sensors.camera.frame import View

Array = NDArray[np.float64]

# Directions towards the lights (world, unit length to 1e-3) and their strengths.
# No shadows: they hide more than they tell at 128 px.
KEY = (0.450, -0.350, 0.821)
FILL = (-0.701, 0.584, 0.409)
KEY_GAIN, FILL_GAIN, AMBIENT, HEMISPHERE = 0.38, 0.16, 0.50, 0.14
CHECKER_M, CHECKER_DARK = 1.0, 0.90
SKY_LOW, SKY_HIGH = (214.0, 220.0, 226.0), (126.0, 160.0, 204.0)
# A pixel whose right or lower neighbour shows another geom this much nearer or farther (ratio of depths) is darkened.
OUTLINE_DARK, OUTLINE_JUMP = 0.72, 0.02

LOOK = np.array([
    OUTLINE_DARK, OUTLINE_JUMP, AMBIENT, HEMISPHERE, KEY_GAIN, FILL_GAIN, CHECKER_M, CHECKER_DARK, *KEY, *FILL,
    *SKY_LOW, *SKY_HIGH,
])  # fmt: skip
"""All of the above in the order in which the compiled kernel reads it."""


def shade(
    view: View,
    depth_m: NDArray[np.float32],
    segmentation: NDArray[np.int32],
    normal_world: Array,
    plane_uv_m: Array,
    is_plane: NDArray[np.bool_],
    colour: NDArray[np.float32],
) -> NDArray[np.uint8]:
    """Colour an image from its visible surfaces.

    Args:
      view: where the camera stands.
      depth_m: (h, w) depth, inf where nothing is.
      segmentation: (h, w) geom indices, -1 where nothing is.
      normal_world: (h, w, 3) unit normals of the visible surfaces.
      plane_uv_m: (h, w, 2) position of the hit in the frame of its geom, for the checker.
      is_plane: (h, w) whether the hit geom is a plane.
      colour: (n_geoms, 3) colours in [0, 255].

    Returns:
      (h, w, 3) image.
    """
    hit = segmentation >= 0
    light = (
        AMBIENT
        + HEMISPHERE * 0.5 * (1.0 + normal_world[..., 2])
        + KEY_GAIN * np.maximum(0.0, normal_world @ np.array(KEY))
        + FILL_GAIN * np.maximum(0.0, normal_world @ np.array(FILL))
    )
    cell = np.floor(plane_uv_m / CHECKER_M).astype(np.int64)
    dark = is_plane & (((cell[..., 0] + cell[..., 1]) & 1) == 1)
    light = np.where(dark, light * CHECKER_DARK, light)
    edge = np.zeros_like(hit)
    near = np.where(hit, depth_m, 1e9).astype(np.float64)
    for axis in (0, 1):
        here, there = _pair(near, axis)
        seg_here, seg_there = _pair(segmentation, axis)
        jump = (seg_here != seg_there) & (np.abs(here - there) > OUTLINE_JUMP * np.minimum(here, there))
        if axis == 0:
            edge[:-1] |= jump
        else:
            edge[:, :-1] |= jump
    light = np.where(edge, light * OUTLINE_DARK, light)
    rgb = colour[np.maximum(segmentation, 0)].astype(np.float64) * light[..., None]
    rays = view.rays_cam() @ view.rot_world.T
    rise = rays[..., 2] / np.linalg.norm(rays, axis=-1)
    mix = np.clip(0.5 + rise, 0.0, 1.0)[..., None]
    sky = (1.0 - mix) * np.array(SKY_LOW) + mix * np.array(SKY_HIGH)
    sky = np.where(edge[..., None], sky * OUTLINE_DARK, sky)
    return np.minimum(np.where(hit[..., None], rgb, sky), 255.0).astype(np.uint8)


def _pair(image: NDArray, axis: int) -> tuple[NDArray, NDArray]:
    return (image[:-1], image[1:]) if axis == 0 else (image[:, :-1], image[:, 1:])
