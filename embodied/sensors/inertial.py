"""An inertial measurement unit: exact rates and specific force made wrong as real ones are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from embodied.errors import WorldError

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImuConfig:
    """Errors of an IMU: white noise, a constant bias per run and a bias that walks.

    Defaults are the data sheet figures of the Bosch BMI088 (accelerometer 175 ug/sqrt(Hz), gyroscope
    0.014 deg/s/sqrt(Hz), offsets 20 mg and 1 deg/s); the bias walks are of the usual size of such sensors.

    Attributes:
      gyro_noise: density of the white noise, rad/s/sqrt(Hz).
      accel_noise: density of the white noise, m/s²/sqrt(Hz).
      gyro_bias_radps: standard deviation of the bias at the start.
      accel_bias_mps2: standard deviation of the bias at the start.
      gyro_walk: growth of the bias, rad/s/sqrt(s).
      accel_walk: growth of the bias, m/s²/sqrt(s).
      gyro_range_radps: readings saturate here.
      accel_range_mps2: readings saturate here.
    """

    gyro_noise: float = 2.44e-4
    accel_noise: float = 1.72e-3
    gyro_bias_radps: float = 0.0175
    accel_bias_mps2: float = 0.196
    gyro_walk: float = 2e-5
    accel_walk: float = 3e-4
    gyro_range_radps: float = 34.9
    accel_range_mps2: float = 235.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ImuReading:
    """One reading, both (3,) in the body frame; the accelerometer measures specific force (+g upwards at rest)."""

    gyro_body_radps: Array
    accel_body_mps2: Array


class Imu:
    """Makes exact rates and specific force wrong.

    Args:
      config: sizes of the errors.
      rng: the sensor's stream; equal streams give equal errors.
      dt_s: time between readings.

    Raises:
      WorldError: ``dt_s`` is not positive.
    """

    def __init__(self, config: ImuConfig, rng: np.random.Generator, dt_s: float) -> None:
        if not dt_s > 0.0:
            raise WorldError(f"An IMU needs dt_s > 0, got {dt_s}. Give the time between readings in seconds.")
        self.config = config
        self._rng = rng
        self._dt_s = dt_s
        self.gyro_bias_radps = config.gyro_bias_radps * rng.standard_normal(3)
        self.accel_bias_mps2 = config.accel_bias_mps2 * rng.standard_normal(3)

    def measure(self, gyro_body_radps: Array, accel_body_mps2: Array) -> ImuReading:
        """Return a reading of the exact (3,) angular velocity and (3,) specific force, both in the body frame."""
        c, root = self.config, np.sqrt(self._dt_s)
        draws = self._rng.standard_normal((4, 3))
        self.gyro_bias_radps = self.gyro_bias_radps + c.gyro_walk * root * draws[0]
        self.accel_bias_mps2 = self.accel_bias_mps2 + c.accel_walk * root * draws[1]
        gyro = np.asarray(gyro_body_radps) + self.gyro_bias_radps + c.gyro_noise / root * draws[2]
        accel = np.asarray(accel_body_mps2) + self.accel_bias_mps2 + c.accel_noise / root * draws[3]
        return ImuReading(
            gyro_body_radps=np.clip(gyro, -c.gyro_range_radps, c.gyro_range_radps),
            accel_body_mps2=np.clip(accel, -c.accel_range_mps2, c.accel_range_mps2),
        )
