"""Wind over time: a steady part and gusts.

A pure function of seed and time, so that forks and replays meet the same air.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from embodied.seeding import stream_seed

# Gusts between 0.05 and 1 Hz hold most of the energy of low-altitude turbulence that moves a small vehicle
# (shape of the Dryden spectrum, MIL-F-8785C, at a few metres height and a few m/s).
_FREQUENCIES_HZ = (0.06, 0.11, 0.17, 0.29, 0.47, 0.83)
_CORNER_HZ = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Wind:
    """Velocity of the air at one place.

    ``w(t) = mean + Σ_k a_k sin(2π f_k t + φ_k)`` per axis, with amplitudes that fall off as ``1/√(1 + (f/f_c)²)`` and
    are scaled so that the root mean square of each horizontal axis is ``gust_mps`` (half of it vertically).

    Attributes:
      mean_world_mps: steady part (x, y, z).
      gust_mps: root mean square of the gusts per horizontal axis.
      seed: of the phases.
    """

    mean_world_mps: tuple[float, float, float] = (0.0, 0.0, 0.0)
    gust_mps: float = 0.0
    seed: int = 0

    def velocity_world_mps(self, time_s: float) -> tuple[float, float, float]:
        """Return (x, y, z) of the air's velocity at a time, world frame."""
        mx, my, mz = self.mean_world_mps
        if self.gust_mps == 0.0:
            return mx, my, mz
        gust = [0.0, 0.0, 0.0]
        for axis, waves in enumerate(_waves(self.seed)):
            gust[axis] = sum(a * math.sin(w * time_s + p) for a, w, p in waves)
        g = self.gust_mps
        return mx + g * gust[0], my + g * gust[1], mz + 0.5 * g * gust[2]


@lru_cache(maxsize=256)
def _waves(seed: int) -> tuple[tuple[tuple[float, float, float], ...], ...]:
    raw = [1 / math.sqrt(1 + (f / _CORNER_HZ) ** 2) for f in _FREQUENCIES_HZ]
    scale = math.sqrt(2 / sum(a * a for a in raw))  # a sine of amplitude a has a mean square of a²/2
    return tuple(
        tuple(
            (a * scale, 2 * math.pi * f, 2 * math.pi * (stream_seed(seed, "wind", axis, k) / 2**63))
            for k, (a, f) in enumerate(zip(raw, _FREQUENCIES_HZ, strict=True))
        )
        for axis in range(3)
    )
