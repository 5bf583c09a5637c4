"""Exact intersections of pixel rays with one geom, inside its screen rectangle; nearest depth wins.

Kernels compiled by numba: their arguments are arrays and numbers whose types the compiler infers.
``o`` is the camera in the geom's frame, ``m`` the camera axes (columns) in that frame, ``s`` the geom's half sizes.
"""
# ruff: noqa: ANN001, ANN201, ANN202, RUF046

from __future__ import annotations

import math

import numpy as np

from embodied.sensors.camera.frame import NEAR_M
from embodied.sensors.camera.kernels import NONE, TINY, jit
from embodied.sensors.camera.table import CAPSULE, CYLINDER, SPHERE


@jit
def draw_box(g, s, o, m, scale, j0, j1, i0, i1, depth, seg):
    """Draw a box: three slabs, without branches so that the loop runs on vector units."""
    height, width = depth.shape
    for i in range(i0, i1):
        y = (0.5 * height - i - 0.5) * scale
        b0, b1, b2 = m[0, 1] * y - m[0, 2], m[1, 1] * y - m[1, 2], m[2, 1] * y - m[2, 2]
        for j in range(j0, j1):
            x = (j + 0.5 - 0.5 * width) * scale
            d0, d1, d2 = b0 + m[0, 0] * x, b1 + m[1, 0] * x, b2 + m[2, 0] * x
            d0 = d0 if abs(d0) > TINY else TINY
            d1 = d1 if abs(d1) > TINY else TINY
            d2 = d2 if abs(d2) > TINY else TINY
            k0, k1, k2 = 1.0 / d0, 1.0 / d1, 1.0 / d2
            c0, c1, c2 = -o[0] * k0, -o[1] * k1, -o[2] * k2
            h0, h1, h2 = s[0] * abs(k0), s[1] * abs(k1), s[2] * abs(k2)
            t, u = c0 - h0, c0 + h0
            t = t if t > c1 - h1 else c1 - h1
            u = u if u < c1 + h1 else c1 + h1
            t = t if t > c2 - h2 else c2 - h2
            u = u if u < c2 + h2 else c2 + h2
            z = depth[i, j]
            hit = (t <= u) & (t >= NEAR_M) & (t < z)
            depth[i, j] = np.float32(t) if hit else z
            seg[i, j] = g if hit else seg[i, j]


@jit
def draw_plane(g, s, o, m, scale, depth, seg):
    """Draw a plane, seen from its upper side only."""
    height, width = depth.shape
    if o[2] <= 0.0:  # seen from behind: planes have one side
        return
    wide = s[0] if s[0] > 0.0 else 1e30
    long = s[1] if s[1] > 0.0 else 1e30
    for i in range(height):
        y = (0.5 * height - i - 0.5) * scale
        for j in range(width):
            x = (j + 0.5 - 0.5 * width) * scale
            d = m[2, 0] * x + m[2, 1] * y - m[2, 2]
            t = -o[2] / d if d < -TINY else NONE
            u = o[0] + t * (m[0, 0] * x + m[0, 1] * y - m[0, 2])
            v = o[1] + t * (m[1, 0] * x + m[1, 1] * y - m[1, 2])
            z = depth[i, j]
            hit = (t >= NEAR_M) & (t < z) & (abs(u) <= wide) & (abs(v) <= long)
            depth[i, j] = np.float32(t) if hit else z
            seg[i, j] = g if hit else seg[i, j]


@jit
def _enter_sphere(ox, oy, oz, dx, dy, dz, r):
    a = dx * dx + dy * dy + dz * dz
    b = ox * dx + oy * dy + oz * dz
    # Distance from the centre to the ray by its foot point: no loss of digits for small far spheres.
    f = b / a
    px, py, pz = ox - f * dx, oy - f * dy, oz - f * dz
    q = r * r - (px * px + py * py + pz * pz)
    return -f - math.sqrt(q / a) if q >= 0.0 else NONE


@jit
def _enter(kind, s, ox, oy, oz, dx, dy, dz):
    """Ray parameter where a ray enters a round geom; ``NONE`` when it misses."""
    if kind == SPHERE:
        return _enter_sphere(ox, oy, oz, dx, dy, dz, s[0])
    if kind in (CAPSULE, CYLINDER):
        a = dx * dx + dy * dy
        a = a if a > 1e-18 else 1e-18
        f = (ox * dx + oy * dy) / a
        px, py = ox - f * dx, oy - f * dy
        q = s[0] * s[0] - (px * px + py * py)
        if q < 0.0:
            return NONE
        w = math.sqrt(q / a)
        if kind == CYLINDER:
            dz = dz if abs(dz) > TINY else TINY
            k = 1.0 / dz
            c, h = -oz * k, s[1] * abs(k)
            t, u = max(-f - w, c - h), min(-f + w, c + h)
            return t if t <= u else NONE
        t = -f - w
        z = oz + t * dz
        if abs(z) <= s[1]:
            return t
        end = s[1] if z > 0.0 else -s[1]
        first = _enter_sphere(ox, oy, oz - end, dx, dy, dz, s[0])
        return first if first < 0.5 * NONE else _enter_sphere(ox, oy, oz + end, dx, dy, dz, s[0])
    return _enter_sphere(ox / s[0], oy / s[1], oz / s[2], dx / s[0], dy / s[1], dz / s[2], 1.0)


@jit
def draw_round(g, kind, s, o, m, scale, j0, j1, i0, i1, depth, seg):
    """Draw a sphere, ellipsoid, capsule or cylinder."""
    height, width = depth.shape
    for i in range(i0, i1):
        y = (0.5 * height - i - 0.5) * scale
        for j in range(j0, j1):
            x = (j + 0.5 - 0.5 * width) * scale
            t = _enter(kind, s, o[0], o[1], o[2], m[0, 0] * x + m[0, 1] * y - m[0, 2],
                       m[1, 0] * x + m[1, 1] * y - m[1, 2], m[2, 0] * x + m[2, 1] * y - m[2, 2])  # fmt: skip
            if NEAR_M <= t < depth[i, j]:
                depth[i, j] = t
                seg[i, j] = g


@jit
def draw_mesh(g, tris, first, count, pos, rot, cam, rot_cam, scale, depth, seg, triangle):
    """Draw ``count`` triangles of a mesh and note which one is seen."""
    height, width = depth.shape
    v = np.empty((3, 3))
    for k in range(first, first + count):
        u0, u1, w0, w1, in_front = 1e30, -1e30, 1e30, -1e30, True
        for c in range(3):
            p = tris[k, c]
            wx = pos[g, 0] + rot[g, 0] * p[0] + rot[g, 1] * p[1] + rot[g, 2] * p[2] - cam[0]
            wy = pos[g, 1] + rot[g, 3] * p[0] + rot[g, 4] * p[1] + rot[g, 5] * p[2] - cam[1]
            wz = pos[g, 2] + rot[g, 6] * p[0] + rot[g, 7] * p[1] + rot[g, 8] * p[2] - cam[2]
            for a in range(3):
                v[c, a] = rot_cam[0, a] * wx + rot_cam[1, a] * wy + rot_cam[2, a] * wz
            if v[c, 2] > -NEAR_M:
                in_front = False
            else:
                u, w = -v[c, 0] / v[c, 2], -v[c, 1] / v[c, 2]
                u0, u1, w0, w1 = min(u0, u), max(u1, u), min(w0, w), max(w1, w)
        if not in_front:  # a triangle that reaches behind the image plane is left out
            continue
        ax, ay, az = v[1, 0] - v[0, 0], v[1, 1] - v[0, 1], v[1, 2] - v[0, 2]
        bx, by, bz = v[2, 0] - v[0, 0], v[2, 1] - v[0, 1], v[2, 2] - v[0, 2]
        nx, ny, nz = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
        top = nx * v[0, 0] + ny * v[0, 1] + nz * v[0, 2]
        if top >= 0.0:  # back face
            continue
        j0 = max(0, int(math.floor(u0 / scale + 0.5 * width - 0.5)))
        j1 = min(width, int(math.ceil(u1 / scale + 0.5 * width + 0.5)))
        i0 = max(0, int(math.floor(0.5 * height - w1 / scale - 0.5)))
        i1 = min(height, int(math.ceil(0.5 * height - w0 / scale + 0.5)))
        for i in range(i0, i1):
            y = (0.5 * height - i - 0.5) * scale
            for j in range(j0, j1):
                x = (j + 0.5 - 0.5 * width) * scale
                inside = True
                for c in range(3):  # the ray passes each edge on the inner side
                    e, f = v[c], v[(c + 1) % 3]
                    cx, cy, cz = e[1] * f[2] - e[2] * f[1], e[2] * f[0] - e[0] * f[2], e[0] * f[1] - e[1] * f[0]
                    if cx * x + cy * y - cz > 0.0:
                        inside = False
                if inside:
                    t = top / (nx * x + ny * y - nz)
                    if NEAR_M <= t < depth[i, j]:
                        depth[i, j] = t
                        seg[i, j] = g
                        triangle[i, j] = k
