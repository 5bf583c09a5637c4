"""From collective thrust and body torques to rotor thrusts, attitude first when they do not all fit."""

from __future__ import annotations

from embodied_controllers.quadrotor.params import QuadrotorParams


def mix(thrust_n: float, torque_nm: tuple[float, float, float], params: QuadrotorParams) -> list[float]:
    """Return four rotor thrusts [N] in [0, thrust_max_n].

    Inverts ``T = Σf``, ``τ_x = d(−f₁−f₂+f₃+f₄)``, ``τ_y = d(−f₁+f₂+f₃−f₄)``, ``τ_z = c(−f₁+f₂−f₃+f₄)``. When the
    result leaves the limits, roll and pitch are kept longest: first yaw is scaled down, then the collective moves so
    that the differences fit, and only differences wider than the whole range are shrunk.

    Args:
      thrust_n: collective thrust along body z.
      torque_nm: body torques about x, y, z.
      params: offsets, torque ratio and limit of the rotors.

    Returns:
      Thrusts in rotor order.

    References:
      M. Faessler et al., "Thrust mixing, saturation, and body-rate control", RA-L 2017, section III (iterative order).
    """
    top = params.thrust_max_n
    a = torque_nm[0] / (4.0 * params.rotor_offset_m)
    b = torque_nm[1] / (4.0 * params.rotor_offset_m)
    c = torque_nm[2] / (4.0 * params.torque_per_thrust_m)
    tilt = (-a - b, -a + b, a + b, a - b)
    wide = max(tilt) - min(tilt)
    if wide > top:
        tilt = tuple(t * top / wide for t in tilt)
    base = min(max(thrust_n / 4.0, -min(tilt)), top - max(tilt))
    # the largest share of yaw that fits beside roll and pitch at this collective
    share = 1.0
    for t, sign in zip(tilt, (-1.0, 1.0, -1.0, 1.0), strict=True):
        step = sign * c
        if step > 0.0:
            share = min(share, (top - base - t) / step)
        elif step < 0.0:
            share = min(share, (base + t) / -step)
    c *= max(share, 0.0)
    yaw = (-c, c, -c, c)
    return [min(max(base + t + y, 0.0), top) for t, y in zip(tilt, yaw, strict=True)]
