"""Wheel odometry: exact motion becomes an estimate that drifts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class OdometryConfig:
    """Errors of odometry. Variances grow with the path and the turn, so the drift does not depend on the period.

    Attributes:
      turn_per_turn: standard deviation of the heading after 1 rad turned on the spot, rad.
      turn_per_m: standard deviation of the heading after 1 m driven, rad.
      drive_per_m: standard deviation of the distance after 1 m driven, m.
      drive_per_turn: standard deviation of the distance after 1 rad turned on the spot, m.
      scale: standard deviation of the constant error of the wheel radius, as a ratio.
    """

    turn_per_turn: float = 0.02
    turn_per_m: float = 0.005
    drive_per_m: float = 0.01
    drive_per_turn: float = 0.002
    scale: float = 0.005


class Odometry:
    """Integrates the noisy motion of a planar base.

    Args:
      config: sizes of the errors.
      rng: the sensor's stream.
      pose: exact start (x_m, y_m, yaw_rad); the estimate starts without error.
    """

    def __init__(self, config: OdometryConfig, rng: np.random.Generator, pose: tuple[float, float, float]) -> None:
        self.config = config
        self._rng = rng
        self._truth = np.array(pose, dtype=np.float64)
        self._estimate = self._truth.copy()
        self._scale = 1.0 + config.scale * float(rng.standard_normal())

    @property
    def pose(self) -> Array:
        """(3,) estimate x_m, y_m, yaw_rad in the world."""
        return self._estimate.copy()

    def update(self, pose: tuple[float, float, float]) -> Array:
        """Take the exact pose one period later and return the (3,) estimate."""
        truth = np.array(pose, dtype=np.float64)
        yaw = self._truth[2]
        cos, sin = np.cos(yaw), np.sin(yaw)
        step_world = truth[:2] - self._truth[:2]
        step_base = np.array([cos * step_world[0] + sin * step_world[1], cos * step_world[1] - sin * step_world[0]])
        turn = (truth[2] - yaw + np.pi) % (2 * np.pi) - np.pi
        drive, turned = float(np.linalg.norm(step_base)), abs(turn)
        c, draws = self.config, self._rng.standard_normal(2)
        step_base = step_base * self._scale
        if drive > 0.0:
            error_m = draws[0] * np.sqrt(c.drive_per_m**2 * drive + c.drive_per_turn**2 * turned)
            step_base = step_base * (1.0 + error_m / drive)
        turn += draws[1] * np.sqrt(c.turn_per_turn**2 * turned + c.turn_per_m**2 * drive)
        cos, sin = np.cos(self._estimate[2]), np.sin(self._estimate[2])
        self._estimate[0] += cos * step_base[0] - sin * step_base[1]
        self._estimate[1] += sin * step_base[0] + cos * step_base[1]
        self._estimate[2] = (self._estimate[2] + turn + np.pi) % (2 * np.pi) - np.pi
        self._truth = truth
        return self.pose
