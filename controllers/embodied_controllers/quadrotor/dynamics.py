"""Rigid-body model of a quadrotor with thrust lag and linear drag, for a whole batch at once.

A second formulation of what the physics engine integrates: it serves as prediction model on board and as the oracle
of cross-check tests.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from embodied_controllers.quadrotor.params import CRAZYFLIE_21, GRAVITY_MPS2, QuadrotorParams

Array = NDArray[np.float64]
STATE_SIZE = 17  # position 3, quaternion wxyz 4, world velocity 3, body rates 3, thrusts 4


def derivative(
    state: Array, command_n: Array, params: QuadrotorParams = CRAZYFLIE_21, wind_world_mps: Array | None = None
) -> Array:
    """Return d/dt of (N, 17) states under (N, 4) commanded thrusts.

    ``ṗ = v``, ``q̇ = ½ q ⊗ (0, ω)``, ``m v̇ = R e₃ Σf − m g e₃ − R D Rᵀ(v − w)``, ``J ω̇ = τ(f) − ω × J ω``,
    ``ḟ = (u − f)/T``.

    Args:
      state: (N, 17) position [m], quaternion (scalar first), velocity [m/s] (world), rates [rad/s] (body), thrusts [N].
      command_n: (N, 4) commanded thrusts.
      params: the airframe.
      wind_world_mps: (3,) or (N, 3); None leaves drag out altogether.

    Returns:
      (N, 17) derivative.
    """
    quat, vel, rate, thrust = state[:, 3:7], state[:, 7:10], state[:, 10:13], state[:, 13:17]
    w, x, y, z = quat.T
    p, q, r = rate.T
    jx, jy, jz = params.inertia_kgm2
    d, c = params.rotor_offset_m, params.torque_per_thrust_m
    f1, f2, f3, f4 = thrust.T
    out = np.empty_like(state)
    out[:, 0:3] = vel
    out[:, 3] = 0.5 * (-x * p - y * q - z * r)
    out[:, 4] = 0.5 * (w * p + y * r - z * q)
    out[:, 5] = 0.5 * (w * q + z * p - x * r)
    out[:, 6] = 0.5 * (w * r + x * q - y * p)
    acc = (f1 + f2 + f3 + f4) / params.mass_kg
    out[:, 7] = 2 * (x * z + w * y) * acc
    out[:, 8] = 2 * (y * z - w * x) * acc
    out[:, 9] = (1 - 2 * (x * x + y * y)) * acc - GRAVITY_MPS2
    if wind_world_mps is not None:
        out[:, 7:10] += drag_force_world_n(quat, vel, wind_world_mps, params) / params.mass_kg
    out[:, 10] = (d * (-f1 - f2 + f3 + f4) - q * r * (jz - jy)) / jx
    out[:, 11] = (d * (-f1 + f2 + f3 - f4) - r * p * (jx - jz)) / jy
    out[:, 12] = (c * (-f1 + f2 - f3 + f4) - p * q * (jy - jx)) / jz
    out[:, 13:17] = (command_n - thrust) / params.motor_tau_s
    return out


def drag_force_world_n(
    quat_wxyz: Array, vel_world_mps: Array, wind_world_mps: Array, params: QuadrotorParams = CRAZYFLIE_21
) -> Array:
    """Return (N, 3) linear drag ``R D Rᵀ (w − v)`` in the world frame [N].

    Args:
      quat_wxyz: (N, 4) orientations.
      vel_world_mps: (N, 3) velocities.
      wind_world_mps: (3,) or (N, 3) velocity of the air.
      params: its ``drag_body_nspm`` is D.
    """
    R = rotation(quat_wxyz)
    air_body = np.einsum("nji,nj->ni", R, wind_world_mps - vel_world_mps)
    return np.einsum("nij,nj->ni", R, air_body * np.asarray(params.drag_body_nspm))


def rotation(quat_wxyz: Array) -> Array:
    """Return (N, 3, 3) rotations of (N, 4) unit quaternions, scalar first."""
    w, x, y, z = quat_wxyz.T
    return np.stack(
        [
            np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], axis=-1),
            np.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], axis=-1),
            np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], axis=-1),
        ],
        axis=1,
    )


def rk4_step(
    state: Array,
    command_n: Array,
    dt_s: float,
    params: QuadrotorParams = CRAZYFLIE_21,
    wind_world_mps: Array | None = None,
) -> Array:
    """Return (N, 17) states one classical Runge-Kutta step of ``dt_s`` later, quaternions renormalised."""
    k1 = derivative(state, command_n, params, wind_world_mps)
    k2 = derivative(state + 0.5 * dt_s * k1, command_n, params, wind_world_mps)
    k3 = derivative(state + 0.5 * dt_s * k2, command_n, params, wind_world_mps)
    k4 = derivative(state + dt_s * k3, command_n, params, wind_world_mps)
    out = state + dt_s / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4)
    out[:, 3:7] /= np.linalg.norm(out[:, 3:7], axis=1, keepdims=True)
    return out
