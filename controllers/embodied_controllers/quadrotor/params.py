"""What a flight controller knows about its airframe."""

from __future__ import annotations

from dataclasses import dataclass

GRAVITY_MPS2 = 9.81


@dataclass(frozen=True, slots=True, kw_only=True)
class QuadrotorParams:
    """Airframe of a quadrotor in X configuration; body x forward, y left, z up.

    Rotors in order: front right, rear right, rear left, front left; 1 and 3 push the body clockwise
    (negative yaw torque).

    Attributes:
      mass_kg: take-off mass.
      inertia_kgm2: principal moments about the body axes.
      rotor_offset_m: distance of each rotor axis from the x and from the y axis.
      torque_per_thrust_m: yaw torque of a rotor over its thrust.
      thrust_max_n: largest thrust of one rotor.
      motor_tau_s: time constant of the first-order thrust lag.
      drag_body_nspm: linear drag force over air speed along the body axes.

    Raises:
      ValueError: a number is not finite or not positive (drag may be zero).
    """

    mass_kg: float
    inertia_kgm2: tuple[float, float, float]
    rotor_offset_m: float
    torque_per_thrust_m: float
    thrust_max_n: float
    motor_tau_s: float
    drag_body_nspm: tuple[float, float, float]

    def __post_init__(self) -> None:
        positive = {
            "mass_kg": self.mass_kg,
            "rotor_offset_m": self.rotor_offset_m,
            "torque_per_thrust_m": self.torque_per_thrust_m,
            "thrust_max_n": self.thrust_max_n,
            "motor_tau_s": self.motor_tau_s,
            **{f"inertia_kgm2[{i}]": v for i, v in enumerate(self.inertia_kgm2)},
        }
        for name, value in positive.items():
            if not 0.0 < value < float("inf"):
                raise ValueError(f"QuadrotorParams.{name} must be positive and finite, got {value!r}.")
        for i, value in enumerate(self.drag_body_nspm):
            if not 0.0 <= value < float("inf"):
                raise ValueError(f"QuadrotorParams.drag_body_nspm[{i}] must be finite and not negative, got {value!r}.")
        if 4 * self.thrust_max_n <= self.mass_kg * GRAVITY_MPS2:
            raise ValueError(
                f"QuadrotorParams.thrust_max_n: four rotors of {self.thrust_max_n} N cannot lift {self.mass_kg} kg; "
                f"more than {self.mass_kg * GRAVITY_MPS2 / 4:.4f} N each is needed."
            )

    @property
    def hover_thrust_n(self) -> float:
        """Thrust of one rotor in still hover."""
        return self.mass_kg * GRAVITY_MPS2 / 4.0


# Crazyflie 2.1. Mass and 46 mm arm: Bitcraze data sheet. Inertia, torque per thrust and drag: Förster, "System
# Identification of the Crazyflie 2.0 Nano Quadrocopter", ETH Zurich 2015; his drag of 9.1785e-7 (x, y) and 10.311e-7
# (z) N·s/m per rad/s of summed rotor speed is taken at hover, four times 1515 rad/s (k_F = 3.16e-10 N/rpm², the value
# of Panerati et al., IROS 2021). Thrust limit: thrust-to-weight 2.27, after the 2.25 of Panerati et al.
# Lag: utiasDSL drone-models, params.toml, entry cf2x_L250.
CRAZYFLIE_21 = QuadrotorParams(
    mass_kg=0.027,
    inertia_kgm2=(16.571710e-6, 16.655602e-6, 29.261652e-6),
    rotor_offset_m=0.03253,
    torque_per_thrust_m=0.005964552,
    thrust_max_n=0.15,
    motor_tau_s=0.03,
    drag_body_nspm=(5.56e-3, 5.56e-3, 6.25e-3),
)
