"""Cascaded geometric flight control with lag compensation and attitude-first saturation.

Written in plain floats: on three-vectors they are several times faster than NumPy calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, exp, isfinite, sin, sqrt, tan

import numpy as np
from numpy.typing import NDArray

from embodied_controllers.contract import RobotState
from embodied_controllers.quadrotor.mixer import mix
from embodied_controllers.quadrotor.params import CRAZYFLIE_21, GRAVITY_MPS2, QuadrotorParams

Array = NDArray[np.float64]
Vec3 = tuple[float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightSetpoint:
    """Where to be and how to move there, in the world frame.

    A set-point with an entry that is not finite is replaced by the last good one.
    """

    pos_world_m: Vec3
    vel_world_mps: Vec3 = (0.0, 0.0, 0.0)
    acc_world_mps2: Vec3 = (0.0, 0.0, 0.0)
    yaw_rad: float = 0.0
    yaw_rate_radps: float = 0.0

    @property
    def is_finite(self) -> bool:
        """Whether every entry is a finite number."""
        values = (*self.pos_world_m, *self.vel_world_mps, *self.acc_world_mps2, self.yaw_rad, self.yaw_rate_radps)
        return all(isfinite(v) for v in values)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightGains:
    """Gains of the cascade. Each loop is about three times slower than the one inside it.

    Attributes:
      position_ps2: acceleration per position error, 1/s² (2.6 rad/s natural frequency).
      velocity_ps: acceleration per velocity error, 1/s (damping ratio near 1).
      integral_ps3: acceleration per integrated position error, 1/s³; carries steady wind.
      integral_max_mps2: limit of what the integral may add.
      integral_zone_m: position error within which the integral grows.
      error_max_m: position error beyond which the pull no longer grows, so that far set-points do not cause full tilt.
      attitude_ps: body rate per attitude error about roll and pitch, 1/s.
      yaw_ps: body rate per attitude error about yaw, 1/s.
      rate_ps: angular acceleration per body rate error about roll and pitch, 1/s.
      yaw_rate_ps: the same about yaw.
      tilt_max_rad: largest angle of the demanded thrust to the vertical.
      lag_target_s: time constant that lag compensation aims for.
    """

    position_ps2: float = 7.0
    velocity_ps: float = 4.8
    integral_ps3: float = 2.5
    integral_max_mps2: float = 3.0
    integral_zone_m: float = 0.3
    error_max_m: float = 0.8
    attitude_ps: float = 10.0
    yaw_ps: float = 4.0
    rate_ps: float = 28.0
    yaw_rate_ps: float = 12.0
    tilt_max_rad: float = 0.6
    lag_target_s: float = 0.012


class FlightController:
    """Thrusts of four rotors [N] from a state and a :class:`FlightSetpoint`.

    1. position: ``a = k_p e_p + k_v e_v + k_i ∫e_p + a_ref``, force ``F = m (a + g e_3) + D v`` with limited tilt;
    2. attitude: ``R_d`` with its third axis along ``F`` and the demanded heading, error
       ``e_R = ½ (R_dᵀ R − Rᵀ R_d)^∨``, body rates ``ω_d = −k_R e_R + Rᵀ e_3 ψ̇``;
    3. rates: ``τ = J k_ω (ω_d − ω) + ω × J ω``;
    4. mixer with attitude first (:func:`embodied_controllers.quadrotor.mixer.mix`);
    5. lag compensation: with the estimate ``f̂`` of the thrust, ``u = f̂ + (T / T_d)(f − f̂)`` makes a lag ``T`` act
       like the shorter ``T_d``; ``f̂`` follows ``u`` by the exact step of the first-order lag.

    Args:
      params: the airframe.
      gains: the gains.

    References:
      T. Lee, M. Leok, N. H. McClamroch, "Geometric tracking control of a quadrotor UAV on SE(3)", CDC 2010, eqs. 8-16.
      D. Mellinger, V. Kumar, "Minimum snap trajectory generation and control for quadrotors", ICRA 2011, section IV.
      M. Faessler, D. Falanga, D. Scaramuzza, "Thrust mixing, saturation, and body-rate control for accurate aggressive
      quadrotor flight", RA-L 2017 (mixing order, motor lag).
    """

    def __init__(self, params: QuadrotorParams = CRAZYFLIE_21, gains: FlightGains | None = None) -> None:
        self.params = params
        self.gains = gains or FlightGains()
        self._integral: Vec3 = (0.0, 0.0, 0.0)
        self._thrust_n = [params.hover_thrust_n] * 4
        self._last: FlightSetpoint | None = None

    def reset(self, state: RobotState) -> None:
        """Forget integral and set-point; hold the present position and heading until given another.

        The thrust estimate starts from the signals ``thrust_1_n`` … ``thrust_4_n`` of the state, zero without them.
        """
        self._integral = (0.0, 0.0, 0.0)
        self._thrust_n = [float(state.signals.get(f"thrust_{i}_n", 0.0)) for i in (1, 2, 3, 4)]
        x, y, z = (float(v) for v in state.base_pos_world_m)
        w, qx, qy, qz = (float(v) for v in state.base_quat_wxyz)
        yaw_rad = float(np.arctan2(2 * (w * qz + qx * qy), 1 - 2 * (qy * qy + qz * qz)))
        self._last = FlightSetpoint(pos_world_m=(x, y, z), yaw_rad=yaw_rad)

    def step(self, state: RobotState, setpoint: FlightSetpoint, dt_s: float) -> Array:
        """Return (4,) rotor thrusts [N] within the limits.

        Args:
          state: with position, orientation, body velocity and body rates of the base; if any of it is not finite the
            rotors are stopped, for nothing sensible can be flown blind.
          setpoint: in the world frame.
          dt_s: period since the last call.

        Raises:
          ValueError: ``dt_s`` is not positive and finite.
        """
        if not 0.0 < dt_s < 1.0:
            raise ValueError(f"FlightController.step: dt_s must lie in (0, 1) s, got {dt_s!r}.")
        if setpoint.is_finite:
            self._last = setpoint
        elif self._last is None:
            raise ValueError("FlightController.step: the first set-point is not finite and reset() gave none to hold.")
        pos = state.base_pos_world_m.tolist()
        quat = state.base_quat_wxyz.tolist()
        vel = state.base_vel_body_mps.tolist()
        rate = state.base_angvel_body_radps.tolist()
        if not all(isfinite(v) for v in (*pos, *quat, *vel, *rate)):
            return self._lagged([0.0, 0.0, 0.0, 0.0], dt_s)
        sp = self._last
        R = _rotation(*quat)
        force = self._force(pos, _mul(R, vel), sp, dt_s)
        # collective: the demanded force along the present thrust axis (Lee, eq. 15)
        thrust = force[0] * R[2] + force[1] * R[5] + force[2] * R[8]
        torque = self._torque(R, rate, force, sp)
        p = self.params
        want = mix(thrust, torque, p)
        return self._lagged(want, dt_s)

    def _force(self, pos: list[float], vel: Vec3, sp: FlightSetpoint, dt_s: float) -> Vec3:
        g, p = self.gains, self.params
        ex, ey, ez = (r - a for r, a in zip(sp.pos_world_m, pos, strict=True))
        distance = sqrt(ex * ex + ey * ey + ez * ez)
        scale = min(1.0, g.error_max_m / distance) if distance > 0 else 1.0
        ex, ey, ez = ex * scale, ey * scale, ez * scale
        ix, iy, iz = self._integral
        # integrate only near the path: winding up on the way to a far set-point would overshoot it
        if distance < g.integral_zone_m:
            limit, ki = g.integral_max_mps2, g.integral_ps3 * dt_s
            ix, iy, iz = (max(-limit, min(limit, i + ki * e)) for i, e in ((ix, ex), (iy, ey), (iz, ez)))
            self._integral = (ix, iy, iz)
        rx, ry, rz = sp.vel_world_mps
        ax, ay, az = sp.acc_world_mps2
        # drag is compensated for the reference speed, with the horizontal coefficient on all axes
        d = p.drag_body_nspm[0]
        fx = p.mass_kg * (g.position_ps2 * ex + g.velocity_ps * (rx - vel[0]) + ix + ax) + d * rx
        fy = p.mass_kg * (g.position_ps2 * ey + g.velocity_ps * (ry - vel[1]) + iy + ay) + d * ry
        fz = p.mass_kg * (g.position_ps2 * ez + g.velocity_ps * (rz - vel[2]) + iz + az + GRAVITY_MPS2) + d * rz
        # never ask for less than a third of the weight upwards, nor for more than the tilt limit sideways
        fz = max(fz, p.mass_kg * GRAVITY_MPS2 / 3)
        side, side_max = sqrt(fx * fx + fy * fy), fz * tan(g.tilt_max_rad)
        if side > side_max:
            fx, fy = fx * side_max / side, fy * side_max / side
        return fx, fy, fz

    def _torque(self, R: tuple[float, ...], rate: list[float], force: Vec3, sp: FlightSetpoint) -> Vec3:
        g, (jx, jy, jz) = self.gains, self.params.inertia_kgm2
        D = desired_rotation(force, sp.yaw_rad)
        # e_R = 1/2 vee(R_d^T R - R^T R_d), entries of A = R_d^T R
        a21 = D[2] * R[1] + D[5] * R[4] + D[8] * R[7]
        a12 = D[1] * R[2] + D[4] * R[5] + D[7] * R[8]
        a02 = D[0] * R[2] + D[3] * R[5] + D[6] * R[8]
        a20 = D[2] * R[0] + D[5] * R[3] + D[8] * R[6]
        a10 = D[1] * R[0] + D[4] * R[3] + D[7] * R[6]
        a01 = D[0] * R[1] + D[3] * R[4] + D[6] * R[7]
        ex, ey, ez = 0.5 * (a21 - a12), 0.5 * (a02 - a20), 0.5 * (a10 - a01)
        wx, wy, wz = rate
        yaw_rate = sp.yaw_rate_radps
        tx = jx * g.rate_ps * (-g.attitude_ps * ex + R[6] * yaw_rate - wx) + wy * wz * (jz - jy)
        ty = jy * g.rate_ps * (-g.attitude_ps * ey + R[7] * yaw_rate - wy) + wz * wx * (jx - jz)
        tz = jz * g.yaw_rate_ps * (-g.yaw_ps * ez + R[8] * yaw_rate - wz) + wx * wy * (jy - jx)
        return tx, ty, tz

    def _lagged(self, want: list[float], dt_s: float) -> Array:
        p = self.params
        lead = p.motor_tau_s / min(self.gains.lag_target_s, p.motor_tau_s)
        gain = 1.0 - exp(-dt_s / p.motor_tau_s)
        out = np.empty(4)
        for i, target in enumerate(want):
            have = self._thrust_n[i]
            send = min(max(have + lead * (target - have), 0.0), p.thrust_max_n)
            self._thrust_n[i] = have + gain * (send - have)
            out[i] = send
        return out


def desired_rotation(force_world: Vec3, yaw_rad: float) -> tuple[float, ...]:
    """Return the row-major rotation (9 entries) whose z axis runs along a force and whose x axis heads to ``yaw_rad``.

    ``z = F/‖F‖``, ``y = z × (cos ψ, sin ψ, 0) / ‖·‖``, ``x = y × z`` (Mellinger and Kumar 2011, section IV).

    Args:
      force_world: demanded force, world frame; must not be horizontal along the heading.
      yaw_rad: demanded heading.
    """
    fx, fy, fz = force_world
    n = 1.0 / sqrt(fx * fx + fy * fy + fz * fz)
    zx, zy, zz = fx * n, fy * n, fz * n
    cx, cy = cos(yaw_rad), sin(yaw_rad)
    yx, yy, yz = -zz * cy, zz * cx, zx * cy - zy * cx
    n = 1.0 / sqrt(yx * yx + yy * yy + yz * yz)
    yx, yy, yz = yx * n, yy * n, yz * n
    xx, xy, xz = yy * zz - yz * zy, yz * zx - yx * zz, yx * zy - yy * zx
    return xx, yx, zx, xy, yy, zy, xz, yz, zz


def _rotation(w: float, x: float, y: float, z: float) -> tuple[float, ...]:
    n = 2.0 / max(w * w + x * x + y * y + z * z, 1e-12)
    return (
        1 - n * (y * y + z * z), n * (x * y - w * z), n * (x * z + w * y),
        n * (x * y + w * z), 1 - n * (x * x + z * z), n * (y * z - w * x),
        n * (x * z - w * y), n * (y * z + w * x), 1 - n * (x * x + y * y),
    )  # fmt: skip


def _mul(R: tuple[float, ...], v: list[float]) -> Vec3:
    a, b, c = v
    return (
        R[0] * a + R[1] * b + R[2] * c,
        R[3] * a + R[4] * b + R[5] * c,
        R[6] * a + R[7] * b + R[8] * c,
    )
