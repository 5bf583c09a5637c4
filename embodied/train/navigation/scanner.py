"""The robot's scanner as the policy is given it: sectors of beams, the nearest echo of each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from embodied.sensors.lidar import LidarConfig

Array = NDArray[np.float64]

NUM_RANGES = 48
"""Sectors; each is the least of :data:`BEAMS_PER_RANGE` neighbouring beams."""
BEAMS_PER_RANGE = 3
RANGE_MAX_M = 5.0
"""A sector without an echo reads this; what is farther does not change how to drive now."""
RANGE_MIN_M = 0.05
MOUNT_X_M = 0.39
"""The scanner sits this far ahead of the base's origin."""
CONFIG = LidarConfig(
    num_beams=NUM_RANGES * BEAMS_PER_RANGE,
    min_range_m=RANGE_MIN_M,
    max_range_m=RANGE_MAX_M,
    noise_m=0.01,  # own: the order of the statistical error of small safety scanners
    dropout=0.005,
)
BEAM_RAD = np.linspace(CONFIG.start_rad, CONFIG.stop_rad, CONFIG.num_beams)
"""(num_beams,) angles from straight ahead, counter-clockwise."""


def sectors(beams_m: Array) -> Array:
    """Return (..., NUM_RANGES) the nearest echo of each sector.

    Args:
      beams_m: (..., num_beams) ranges, inf where nothing came back. A NaN stays one, so that it is refused later.
    """
    least = beams_m.reshape(*beams_m.shape[:-1], NUM_RANGES, BEAMS_PER_RANGE).min(axis=-1)
    return np.minimum(least, RANGE_MAX_M)


def pooled(beams_m: Array, rng: np.random.Generator | None = None) -> Array:
    """Return the sectors of exact beams, with the noise and drop-outs of :data:`CONFIG` when ``rng`` is given."""
    if rng is not None:
        noisy = beams_m + CONFIG.noise_m * rng.standard_normal(beams_m.shape)
        lost = rng.random(beams_m.shape) < CONFIG.dropout
        beams_m = np.where(lost | ~(noisy >= RANGE_MIN_M) | (noisy > RANGE_MAX_M), np.inf, noisy)
    return sectors(beams_m)
