"""The camera without GL: an analytic z-buffer over primitives, compiled with numba, one thread per image, no GIL.

Each geom is culled by its bounding sphere, projected to a screen rectangle and intersected exactly inside it, nearest
geoms first. Rays are scaled so that the ray parameter is the depth along the optical axis.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from embodied.sensors.camera.frame import Frame, View
from embodied.sensors.camera.kernels import NONE, find_visible, open_depth, shade_image
from embodied.sensors.camera.shading import LOOK
from embodied.sensors.camera.table import GeomTable

Array = NDArray[np.float64]


def render(
    view: View, table: GeomTable, geom_pos_world_m: Array, geom_rot_world: Array, *, colours: bool = True
) -> Frame:
    """Draw one image.

    Args:
      view: camera pose and pinhole.
      table: static arrays of the model.
      geom_pos_world_m: (n, 3) geom centres.
      geom_rot_world: (n, 9) row-major geom rotations.
      colours: False leaves ``rgb`` black and saves about a third of the time.

    Returns:
      The frame; the same arguments give the same bytes on one machine.
    """
    height, width = view.height_px, view.width_px
    depth = np.full((height, width), NONE, dtype=np.float32)
    seg = np.full((height, width), -1, dtype=np.int32)
    triangle = np.zeros((height, width) if len(table.triangles_m) else (1, 1), dtype=np.int32)
    rgb = np.zeros((height, width, 3), dtype=np.uint8)
    pos = np.ascontiguousarray(geom_pos_world_m, dtype=np.float64)
    rot = np.ascontiguousarray(geom_rot_world, dtype=np.float64).reshape(-1, 9)
    cam = np.ascontiguousarray(view.pos_world_m, dtype=np.float64)
    rot_cam = np.ascontiguousarray(view.rot_world, dtype=np.float64)
    pose = (pos, rot, cam, rot_cam, view.pixel_scale)
    bounds = (table.bound_center_m, table.bound_half_m)
    meshes = (table.triangles_m, table.first_triangle, table.num_triangles)
    find_visible(table.kind, table.size_m, *bounds, *meshes, *pose, depth, seg, triangle)
    if colours:
        surfaces = (table.kind, table.size_m, table.colour, table.triangles_m)
        shade_image(*surfaces, *pose, LOOK, depth, seg, triangle, rgb)
    open_depth(depth)
    return Frame(rgb=rgb, depth_m=depth, segmentation=seg)
