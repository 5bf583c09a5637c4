"""The camera without GL: an analytic z-buffer over primitives, compiled with numba, one thread per image, no GIL.

Each geom is culled by its bounding sphere, projected to a screen rectangle and intersected exactly inside it, nearest
geoms first. Rays are scaled so that the ray parameter is the depth along the optical axis.
"""
# ruff: noqa: ANN001, ANN202, RUF046

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from embodied.sensors.camera.frame import NEAR_M, Frame, View
from embodied.sensors.camera.kernels import NONE, jit
from embodied.sensors.camera.table import BOX, MESH, PLANE, GeomTable
from embodied.sensors.camera.zdraw import draw_box, draw_mesh, draw_plane, draw_round
from embodied.sensors.camera.zshade import shade_image

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
    _visible(table.kind, table.size_m, *bounds, *meshes, *pose, depth, seg, triangle)
    if colours:
        surfaces = (table.kind, table.size_m, table.colour, table.triangles_m)
        shade_image(*surfaces, *pose, depth, seg, triangle, rgb)
    _open(depth)
    return Frame(rgb=rgb, depth_m=depth, segmentation=seg)


@jit
def _open(depth):
    for i in range(depth.shape[0]):
        for j in range(depth.shape[1]):
            if depth[i, j] >= 0.5e9:
                depth[i, j] = np.inf


@jit
def _rect(center, half, o_cam, to_cam, scale, width, height, rect):
    """Screen rectangle and nearest depth of an oriented box; returns -1 when it lies outside the image."""
    corner = np.empty((8, 3))
    for k in range(8):
        x = center[0] + (half[0] if k & 1 else -half[0])
        y = center[1] + (half[1] if k & 2 else -half[1])
        z = center[2] + (half[2] if k & 4 else -half[2])
        for a in range(3):
            corner[k, a] = o_cam[a] + to_cam[a, 0] * x + to_cam[a, 1] * y + to_cam[a, 2] * z
        corner[k, 2] = -corner[k, 2]
    u0, u1, v0, v1, nearest = 1e30, -1e30, 1e30, -1e30, 1e30
    for k in range(8):
        d = corner[k, 2]
        if d >= NEAR_M:
            u, v = corner[k, 0] / d, corner[k, 1] / d
            u0, u1, v0, v1, nearest = min(u0, u), max(u1, u), min(v0, v), max(v1, v), min(nearest, d)
        for b in range(3):
            m = k ^ (1 << b)
            e = corner[m, 2]
            if k < m and (d >= NEAR_M) != (e >= NEAR_M):  # an edge through the near plane
                f = (NEAR_M - d) / (e - d)
                u = (corner[k, 0] + f * (corner[m, 0] - corner[k, 0])) / NEAR_M
                v = (corner[k, 1] + f * (corner[m, 1] - corner[k, 1])) / NEAR_M
                u0, u1, v0, v1, nearest = min(u0, u), max(u1, u), min(v0, v), max(v1, v), NEAR_M
    if nearest > 1e29:
        return -1.0
    wide, high = float(width), float(height)
    rect[0] = int(math.floor(max(0.0, min(wide, u0 / scale + 0.5 * wide - 0.5))))
    rect[1] = int(math.ceil(max(0.0, min(wide, u1 / scale + 0.5 * wide + 0.5))))
    rect[2] = int(math.floor(max(0.0, min(high, 0.5 * high - v1 / scale - 0.5))))
    rect[3] = int(math.ceil(max(0.0, min(high, 0.5 * high - v0 / scale + 0.5))))
    if rect[0] >= rect[1] or rect[2] >= rect[3]:
        return -1.0
    return nearest


@jit
def _visible(kind, size, bound_c, bound_h, tris, tri0, ntri, pos, rot, cam, rot_cam, scale, depth, seg, triangle):
    height, width = depth.shape
    n = kind.shape[0]
    rects = np.empty((n, 4), np.int64)
    nearest = np.full(n, 1e30)
    half_w, half_h = 0.5 * width * scale, 0.5 * height * scale
    norm_w, norm_h = math.sqrt(1.0 + half_w * half_w), math.sqrt(1.0 + half_h * half_h)
    o_cam = np.empty(3)
    to_cam = np.empty((3, 3))
    for g in range(n):
        if kind[g] < 0:
            continue
        for a in range(3):
            o_cam[a] = 0.0
            for b in range(3):
                o_cam[a] += rot_cam[b, a] * (pos[g, b] - cam[b])
        if kind[g] == PLANE:
            rects[g] = (0, width, 0, height)
            nearest[g] = 1e20  # after everything else
            continue
        c, h = bound_c[g], bound_h[g]
        r = math.sqrt(h[0] * h[0] + h[1] * h[1] + h[2] * h[2]) + math.sqrt(c[0] * c[0] + c[1] * c[1] + c[2] * c[2])
        d = -o_cam[2]
        if d + r < NEAR_M or abs(o_cam[0]) - half_w * d > r * norm_w or abs(o_cam[1]) - half_h * d > r * norm_h:
            continue
        for a in range(3):
            for b in range(3):
                to_cam[a, b] = rot_cam[0, a] * rot[g, b] + rot_cam[1, a] * rot[g, 3 + b] + rot_cam[2, a] * rot[g, 6 + b]
        near = _rect(c, h, o_cam, to_cam, scale, width, height, rects[g])
        if near > 0.0:
            nearest[g] = near
    basis = np.empty((3, 3))
    origin = np.empty(3)
    for g in np.argsort(nearest, kind="mergesort"):
        if nearest[g] > 1e29:
            break
        j0, j1, i0, i1 = rects[g]
        if kind[g] != PLANE:  # hidden by what is already drawn?
            farthest = np.float32(0.0)
            for i in range(i0, i1):
                for j in range(j0, j1):
                    z = depth[i, j]
                    farthest = z if z > farthest else farthest
            if farthest <= nearest[g]:
                continue
        _local(g, pos, rot, cam, rot_cam, origin, basis)
        s = size[g]
        if kind[g] == BOX:
            draw_box(g, s, origin, basis, scale, j0, j1, i0, i1, depth, seg)
        elif kind[g] == PLANE:
            draw_plane(g, s, origin, basis, scale, depth, seg)
        elif kind[g] == MESH:
            draw_mesh(g, tris, tri0[g], ntri[g], pos, rot, cam, rot_cam, scale, depth, seg, triangle)
        else:
            draw_round(g, kind[g], s, origin, basis, scale, j0, j1, i0, i1, depth, seg)


@jit
def _local(g, pos, rot, cam, rot_cam, origin, basis):
    """Camera position, and camera axes (columns), in the frame of a geom."""
    for a in range(3):
        origin[a] = 0.0
        for b in range(3):
            origin[a] += rot[g, 3 * b + a] * (cam[b] - pos[g, b])
            basis[a, b] = rot[g, a] * rot_cam[0, b] + rot[g, 3 + a] * rot_cam[1, b] + rot[g, 6 + a] * rot_cam[2, b]
