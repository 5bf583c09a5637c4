"""Rotations: matrices, scalar-first quaternions and rotation vectors. All functions broadcast over leading axes.

References:
  J. Diebel, "Representing attitude: Euler angles, unit quaternions, and rotation vectors" (2006), equations 124-131.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def rot_x(angle_rad: Array | float) -> Array:
    """Return (..., 3, 3) rotations about x."""
    return _about(np.asarray(angle_rad, dtype=np.float64), 0)


def rot_y(angle_rad: Array | float) -> Array:
    """Return (..., 3, 3) rotations about y."""
    return _about(np.asarray(angle_rad, dtype=np.float64), 1)


def rot_z(angle_rad: Array | float) -> Array:
    """Return (..., 3, 3) rotations about z."""
    return _about(np.asarray(angle_rad, dtype=np.float64), 2)


def _about(angle_rad: Array, axis: int) -> Array:
    out = np.zeros((*angle_rad.shape, 3, 3))
    i, j = (axis + 1) % 3, (axis + 2) % 3
    out[..., axis, axis] = 1.0
    out[..., i, i] = out[..., j, j] = np.cos(angle_rad)
    out[..., j, i] = np.sin(angle_rad)
    out[..., i, j] = -out[..., j, i]
    return out


def matrix_of_quat(quat_wxyz: Array) -> Array:
    """Return (..., 3, 3) matrices of (..., 4) unit quaternions, scalar first."""
    w, x, y, z = np.moveaxis(np.asarray(quat_wxyz, dtype=np.float64), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(r, axis=-1) for r in rows], axis=-2)


def quat_of_matrix(rot: Array) -> Array:
    """Return the (4,) scalar-first unit quaternion, w >= 0, of a (3, 3) rotation matrix."""
    m = np.asarray(rot, dtype=np.float64)
    # The symmetric 4x4 form has the quaternion as its leading eigenvector: no branch loses precision.
    k = np.array(
        [
            [m[0, 0] + m[1, 1] + m[2, 2], m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]],
            [0.0, m[0, 0] - m[1, 1] - m[2, 2], m[0, 1] + m[1, 0], m[0, 2] + m[2, 0]],
            [0.0, 0.0, m[1, 1] - m[0, 0] - m[2, 2], m[1, 2] + m[2, 1]],
            [0.0, 0.0, 0.0, m[2, 2] - m[0, 0] - m[1, 1]],
        ]
    )
    quat = np.linalg.eigh(k + np.triu(k, 1).T)[1][:, -1]
    return quat if quat[0] >= 0.0 else -quat


def quat_multiply(a_wxyz: Array, b_wxyz: Array) -> Array:
    """Return (..., 4) products a * b: rotation b first, then a."""
    aw, ax, ay, az = np.moveaxis(np.asarray(a_wxyz, dtype=np.float64), -1, 0)
    bw, bx, by, bz = np.moveaxis(np.asarray(b_wxyz, dtype=np.float64), -1, 0)
    return np.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        axis=-1,
    )


def quat_conjugate(quat_wxyz: Array) -> Array:
    """Return (..., 4) inverses of unit quaternions."""
    return np.asarray(quat_wxyz, dtype=np.float64) * np.array([1.0, -1.0, -1.0, -1.0])


def quat_of_axis_angle(axis: Array, angle_rad: float) -> Array:
    """Return the (4,) quaternion of a turn about a (3,) axis.

    Raises:
      ValueError: the axis has no length.
    """
    length = float(np.linalg.norm(axis))
    if not length > 1e-12:
        raise ValueError(f"axis: got {axis}; expected a vector with a length.")
    half = angle_rad / 2
    return np.concatenate([[np.cos(half)], np.sin(half) / length * np.asarray(axis, dtype=np.float64)])


def yaw_of_quat(quat_wxyz: Array) -> float:
    """Return the heading [rad] of a (4,) unit quaternion: the turn about the vertical that its x axis shows."""
    w, x, y, z = (float(q) for q in quat_wxyz)
    return float(np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))


def exp_rotation(rotvec_rad: Array) -> Array:
    """Return (..., 3, 3) rotations of (..., 3) rotation vectors (axis times angle), by Rodrigues' formula."""
    v = np.asarray(rotvec_rad, dtype=np.float64)
    angle = np.linalg.norm(v, axis=-1)[..., None, None]
    k = skew(v)
    a = np.sinc(angle / np.pi)
    b = 0.5 * np.sinc(angle / (2 * np.pi)) ** 2
    return np.eye(3) + a * k + b * (k @ k)


def log_rotation(rot: Array) -> Array:
    """Return the (3,) rotation vector, angle in [0, pi], of a (3, 3) rotation."""
    quat = quat_of_matrix(rot)
    sine = float(np.linalg.norm(quat[1:]))
    if sine < 1e-9:
        return 2.0 * quat[1:]
    return 2.0 * np.arctan2(sine, quat[0]) / sine * quat[1:]


def skew(v: Array) -> Array:
    """Return the (..., 3, 3) cross product matrices of (..., 3) vectors."""
    out = np.zeros((*v.shape, 3))
    out[..., 0, 1], out[..., 0, 2], out[..., 1, 2] = -v[..., 2], v[..., 1], -v[..., 0]
    out[..., 1, 0], out[..., 2, 0], out[..., 2, 1] = v[..., 2], -v[..., 1], v[..., 0]
    return out
