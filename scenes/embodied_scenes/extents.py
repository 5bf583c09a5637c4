"""The size of a template without an engine: the axis-aligned box around its primitives."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from embodied_scenes.spec import EntityModel, GeomSpec, PartSpec, Vec3, Vec4

Matrix = tuple[Vec3, Vec3, Vec3]


def model_box(model: EntityModel) -> tuple[Vec3, Vec3]:
    """Return the corners (low, high) of the box around all geoms in the root frame, joints at zero, metres."""
    frames: dict[str, tuple[Matrix, Vec3]] = {}
    low, high = [float("inf")] * 3, [float("-inf")] * 3
    for index, part in enumerate(model.parts):
        rot, pos = frames[part.name] = _frame(part, frames, is_root=index == 0)
        for geom in part.geoms:
            center = _add(pos, _turn(rot, geom.pos_m))
            half = _half(_times(rot, _matrix(geom.quat_wxyz)), geom)
            for axis in range(3):
                low[axis] = min(low[axis], center[axis] - half[axis])
                high[axis] = max(high[axis], center[axis] + half[axis])
    return (low[0], low[1], low[2]), (high[0], high[1], high[2])


def _frame(part: PartSpec, frames: dict[str, tuple[Matrix, Vec3]], *, is_root: bool) -> tuple[Matrix, Vec3]:
    if is_root:
        return _matrix((1.0, 0.0, 0.0, 0.0)), (0.0, 0.0, 0.0)
    rot, pos = frames[part.parent] if part.parent else next(iter(frames.values()))
    return _times(rot, _matrix(part.quat_wxyz)), _add(pos, _turn(rot, part.pos_m))


def _half(rot: Matrix, geom: GeomSpec) -> Vec3:
    """Half extents along the root's axes."""
    s = geom.size_m
    if geom.shape == "sphere":
        return (s[0], s[0], s[0])
    if geom.shape == "box":
        return _extent(lambda i: sum(abs(rot[i][k]) * s[k] for k in range(3)))
    if geom.shape == "ellipsoid":
        return _extent(lambda i: sum((rot[i][k] * s[k]) ** 2 for k in range(3)) ** 0.5)
    if geom.shape == "capsule":
        return _extent(lambda i: abs(rot[i][2]) * s[1] + s[0])
    return _extent(lambda i: abs(rot[i][2]) * s[1] + s[0] * max(0.0, 1.0 - rot[i][2] ** 2) ** 0.5)


def _extent(along: Callable[[int], float]) -> Vec3:
    return (along(0), along(1), along(2))


def _matrix(quat_wxyz: Vec4) -> Matrix:
    w, x, y, z = quat_wxyz
    return (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )


def _times(a: Matrix, b: Matrix) -> Matrix:
    flat = [sum(a[i][k] * b[k][j] for k in range(3)) for i, j in product(range(3), range(3))]
    return ((flat[0], flat[1], flat[2]), (flat[3], flat[4], flat[5]), (flat[6], flat[7], flat[8]))


def _turn(rot: Matrix, v: Vec3) -> Vec3:
    return _extent(lambda i: sum(rot[i][k] * v[k] for k in range(3)))


def _add(a: Vec3, b: Vec3) -> Vec3:
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])
