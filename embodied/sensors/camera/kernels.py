"""The compiled part of the z-buffer, in one file: numba's cache notices changes of the file a kernel stands in only.

``o`` is the camera in a geom's frame, ``m`` the camera axes (columns) in that frame, ``s`` the geom's half sizes.
Arguments are arrays and numbers whose types the compiler infers, hence no annotations.
"""
# ruff: noqa: ANN001, ANN201, ANN202, RUF046

from __future__ import annotations

import math

import numba
import numpy as np

# MuJoCo's geom types, the near plane and the depth of "nothing", as numbers:
# the cache would not see them change elsewhere.
PLANE, SPHERE, CAPSULE, CYLINDER, BOX, MESH = 0, 2, 3, 5, 6, 7
NEAR_M = 0.01
NONE = 0.5e9
TINY = 1e-12

# No assumption about infinities or NaN: both occur for rays parallel to a face.
jit = numba.njit(cache=True, nogil=True, fastmath={"contract", "nsz", "arcp"}, error_model="numpy")


@jit
def open_depth(depth):
    """Write infinity where nothing is."""
    for i in range(depth.shape[0]):
        for j in range(depth.shape[1]):
            if depth[i, j] >= NONE:
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
def find_visible(kind, size, bound_c, bound_h, tris, tri0, ntri, pos, rot, cam, rot_cam, scale, depth, seg, triangle):
    """Fill ``depth``, ``seg`` and ``triangle`` with what each pixel sees."""
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
            w = np.float32(t)  # compared as it is stored, so that faces in one plane do not fight pixel by pixel
            hit = (t <= u) & (t >= NEAR_M) & (w < z)
            depth[i, j] = w if hit else z
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
            w = np.float32(t)
            hit = (t >= NEAR_M) & (w < z) & (abs(u) <= wide) & (abs(v) <= long)
            depth[i, j] = w if hit else z
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
        return first if first < NONE else _enter_sphere(ox, oy, oz + end, dx, dy, dz, s[0])
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
            if t >= NEAR_M and np.float32(t) < depth[i, j]:
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
                    f = c + 1 if c < 2 else 0
                    cx = v[c, 1] * v[f, 2] - v[c, 2] * v[f, 1]
                    cy = v[c, 2] * v[f, 0] - v[c, 0] * v[f, 2]
                    cz = v[c, 0] * v[f, 1] - v[c, 1] * v[f, 0]
                    if cx * x + cy * y - cz > 0.0:
                        inside = False
                if inside:
                    t = top / (nx * x + ny * y - nz)
                    if t >= NEAR_M and np.float32(t) < depth[i, j]:
                        depth[i, j] = t
                        seg[i, j] = g
                        triangle[i, j] = k


@jit
def _normal(kind, s0, s1, s2, x, y, z):
    """Unit normal of a primitive at a point of its surface, in its own frame."""
    if kind == BOX:
        ax, ay, az = abs(x) - s0, abs(y) - s1, abs(z) - s2
        if ax >= ay and ax >= az:
            return (1.0 if x > 0 else -1.0), 0.0, 0.0
        if ay >= az:
            return 0.0, (1.0 if y > 0 else -1.0), 0.0
        return 0.0, 0.0, (1.0 if z > 0 else -1.0)
    if kind == PLANE:
        return 0.0, 0.0, 1.0
    if kind == CYLINDER:
        if abs(z) / s1 > math.sqrt(x * x + y * y) / s0:
            return 0.0, 0.0, (1.0 if z > 0 else -1.0)
        z = 0.0
    elif kind == CAPSULE:
        z = z - s1 if z > s1 else (z + s1 if z < -s1 else 0.0)
    elif kind != SPHERE:
        x, y, z = x / (s0 * s0), y / (s1 * s1), z / (s2 * s2)
    r = 1.0 / math.sqrt(x * x + y * y + z * z + 1e-30)
    return x * r, y * r, z * r


@jit
def shade_image(kind, size, colour, tris, pos, rot, cam, rot_cam, scale, look, depth, seg, triangle, rgb):
    """Fill ``rgb`` from what is seen; ``look`` is ``shading.LOOK``."""
    height, width = depth.shape
    lamp = np.empty((kind.shape[0], 9))  # directions to key light, fill light and zenith in each geom's frame
    for g in range(kind.shape[0]):
        for a in range(3):
            lamp[g, a] = rot[g, a] * look[8] + rot[g, 3 + a] * look[9] + rot[g, 6 + a] * look[10]
            lamp[g, 3 + a] = rot[g, a] * look[11] + rot[g, 3 + a] * look[12] + rot[g, 6 + a] * look[13]
            lamp[g, 6 + a] = rot[g, 6 + a]
    for i in range(height):
        y = (0.5 * height - i - 0.5) * scale
        for j in range(width):
            x = (j + 0.5 - 0.5 * width) * scale
            g = seg[i, j]
            t = depth[i, j]
            light = 1.0
            if i + 1 < height and seg[i + 1, j] != g:
                z = depth[i + 1, j]
                light = look[0] if abs(z - t) > look[1] * min(z, t) else light
            if j + 1 < width and seg[i, j + 1] != g:
                z = depth[i, j + 1]
                light = look[0] if abs(z - t) > look[1] * min(z, t) else light
            dx = rot_cam[0, 0] * x + rot_cam[0, 1] * y - rot_cam[0, 2]
            dy = rot_cam[1, 0] * x + rot_cam[1, 1] * y - rot_cam[1, 2]
            dz = rot_cam[2, 0] * x + rot_cam[2, 1] * y - rot_cam[2, 2]
            if g < 0:
                mix = min(1.0, max(0.0, 0.5 + dz / math.sqrt(1.0 + x * x + y * y)))
                for c in range(3):
                    sky = (1.0 - mix) * look[14 + c] + mix * look[17 + c]
                    rgb[i, j, c] = np.uint8(min(255.0, light * sky))
                continue
            px, py, pz = cam[0] + t * dx - pos[g, 0], cam[1] + t * dy - pos[g, 1], cam[2] + t * dz - pos[g, 2]
            u = rot[g, 0] * px + rot[g, 3] * py + rot[g, 6] * pz
            v = rot[g, 1] * px + rot[g, 4] * py + rot[g, 7] * pz
            w = rot[g, 2] * px + rot[g, 5] * py + rot[g, 8] * pz
            if kind[g] == MESH:
                k = triangle[i, j]
                ax, ay, az = tris[k, 1, 0] - tris[k, 0, 0], tris[k, 1, 1] - tris[k, 0, 1], tris[k, 1, 2] - tris[k, 0, 2]
                bx, by, bz = tris[k, 2, 0] - tris[k, 0, 0], tris[k, 2, 1] - tris[k, 0, 1], tris[k, 2, 2] - tris[k, 0, 2]
                n0, n1, n2 = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
                r = 1.0 / math.sqrt(n0 * n0 + n1 * n1 + n2 * n2 + 1e-30)
                n0, n1, n2 = n0 * r, n1 * r, n2 * r
            else:
                n0, n1, n2 = _normal(kind[g], size[g, 0], size[g, 1], size[g, 2], u, v, w)
            key = n0 * lamp[g, 0] + n1 * lamp[g, 1] + n2 * lamp[g, 2]
            fill = n0 * lamp[g, 3] + n1 * lamp[g, 4] + n2 * lamp[g, 5]
            lit = look[2] + look[3] * 0.5 * (1.0 + n0 * lamp[g, 6] + n1 * lamp[g, 7] + n2 * lamp[g, 8])
            lit += look[4] * max(0.0, key) + look[5] * max(0.0, fill)
            if kind[g] == PLANE:
                cell = int(math.floor(u / look[6])) + int(math.floor(v / look[6]))
                lit = lit * look[7] if cell & 1 else lit
            light *= lit
            for c in range(3):
                rgb[i, j, c] = np.uint8(min(255.0, light * colour[g, c]))
