"""Colours of the z-buffer's image: the formulas of ``shading`` in compiled form."""
# ruff: noqa: ANN001, ANN201, ANN202, RUF046

from __future__ import annotations

import math

import numpy as np

from embodied.sensors.camera import shading
from embodied.sensors.camera.kernels import jit
from embodied.sensors.camera.table import BOX, CAPSULE, CYLINDER, MESH, PLANE, SPHERE

_KEY = np.array(shading.KEY)
_FILL = np.array(shading.FILL)


@jit
def _normal(kind, s, x, y, z):
    """Unit normal of a primitive at a point of its surface, in its own frame."""
    if kind == BOX:
        ax, ay, az = abs(x) / s[0], abs(y) / s[1], abs(z) / s[2]
        if ax >= ay and ax >= az:
            return (1.0 if x > 0 else -1.0), 0.0, 0.0
        if ay >= az:
            return 0.0, (1.0 if y > 0 else -1.0), 0.0
        return 0.0, 0.0, (1.0 if z > 0 else -1.0)
    if kind == PLANE:
        return 0.0, 0.0, 1.0
    if kind == CYLINDER:
        if abs(z) / s[1] > math.sqrt(x * x + y * y) / s[0]:
            return 0.0, 0.0, (1.0 if z > 0 else -1.0)
        z = 0.0
    elif kind == CAPSULE:
        z = z - s[1] if z > s[1] else (z + s[1] if z < -s[1] else 0.0)
    elif kind != SPHERE:
        x, y, z = x / (s[0] * s[0]), y / (s[1] * s[1]), z / (s[2] * s[2])
    r = 1.0 / math.sqrt(x * x + y * y + z * z + 1e-30)
    return x * r, y * r, z * r


@jit
def shade_image(kind, size, colour, tris, pos, rot, cam, rot_cam, scale, depth, seg, triangle, rgb):
    """Fill ``rgb`` from what ``depth``, ``seg`` and ``triangle`` say is seen."""
    height, width = depth.shape
    n = np.empty(3)
    p = np.empty(3)
    for i in range(height):
        y = (0.5 * height - i - 0.5) * scale
        for j in range(width):
            x = (j + 0.5 - 0.5 * width) * scale
            g = seg[i, j]
            t = depth[i, j]
            light = 1.0
            if i + 1 < height and seg[i + 1, j] != g:
                z = depth[i + 1, j]
                light = shading.OUTLINE_DARK if abs(z - t) > shading.OUTLINE_JUMP * min(z, t) else light
            if j + 1 < width and seg[i, j + 1] != g:
                z = depth[i, j + 1]
                light = shading.OUTLINE_DARK if abs(z - t) > shading.OUTLINE_JUMP * min(z, t) else light
            dx = rot_cam[0, 0] * x + rot_cam[0, 1] * y - rot_cam[0, 2]
            dy = rot_cam[1, 0] * x + rot_cam[1, 1] * y - rot_cam[1, 2]
            dz = rot_cam[2, 0] * x + rot_cam[2, 1] * y - rot_cam[2, 2]
            if g < 0:
                mix = min(1.0, max(0.0, 0.5 + dz / math.sqrt(1.0 + x * x + y * y)))
                for c in range(3):
                    sky = (1.0 - mix) * shading.SKY_LOW[c] + mix * shading.SKY_HIGH[c]
                    rgb[i, j, c] = np.uint8(min(255.0, light * sky))
                continue
            p[0], p[1], p[2] = cam[0] + t * dx - pos[g, 0], cam[1] + t * dy - pos[g, 1], cam[2] + t * dz - pos[g, 2]
            u = rot[g, 0] * p[0] + rot[g, 3] * p[1] + rot[g, 6] * p[2]
            v = rot[g, 1] * p[0] + rot[g, 4] * p[1] + rot[g, 7] * p[2]
            w = rot[g, 2] * p[0] + rot[g, 5] * p[1] + rot[g, 8] * p[2]
            if kind[g] == MESH:
                k = triangle[i, j]
                ax, ay, az = tris[k, 1, 0] - tris[k, 0, 0], tris[k, 1, 1] - tris[k, 0, 1], tris[k, 1, 2] - tris[k, 0, 2]
                bx, by, bz = tris[k, 2, 0] - tris[k, 0, 0], tris[k, 2, 1] - tris[k, 0, 1], tris[k, 2, 2] - tris[k, 0, 2]
                n0, n1, n2 = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
                r = 1.0 / math.sqrt(n0 * n0 + n1 * n1 + n2 * n2 + 1e-30)
                n0, n1, n2 = n0 * r, n1 * r, n2 * r
            else:
                n0, n1, n2 = _normal(kind[g], size[g], u, v, w)
            for a in range(3):
                n[a] = rot[g, 3 * a] * n0 + rot[g, 3 * a + 1] * n1 + rot[g, 3 * a + 2] * n2
            key = n[0] * _KEY[0] + n[1] * _KEY[1] + n[2] * _KEY[2]
            fill = n[0] * _FILL[0] + n[1] * _FILL[1] + n[2] * _FILL[2]
            lit = shading.AMBIENT + shading.HEMISPHERE * 0.5 * (1.0 + n[2])
            lit += shading.KEY_GAIN * max(0.0, key) + shading.FILL_GAIN * max(0.0, fill)
            if kind[g] == PLANE:
                cell = int(math.floor(u / shading.CHECKER_M)) + int(math.floor(v / shading.CHECKER_M))
                lit = lit * shading.CHECKER_DARK if cell & 1 else lit
            light *= lit
            for c in range(3):
                rgb[i, j, c] = np.uint8(min(255.0, light * colour[g, c]))
