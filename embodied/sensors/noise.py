"""Errors that any sensor can have: depth noise, a rate below the world's, a delay."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from embodied.errors import WorldError
from embodied.sensors.camera.frame import Frame

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthNoiseConfig:
    """Errors of a structured-light or stereo depth camera.

    The axial error grows with the square of the depth, ``sigma = base_m + slope_per_m * depth_m**2``; the defaults lie
    between the fits for Kinect (Khoshelham and Elberink, Sensors 12(2), 2012: 1.4e-3 z**2) and its near range.

    Attributes:
      base_m: standard deviation at depth 0.
      slope_per_m: growth with depth squared, 1/m.
      dropout: probability that a pixel has no depth.
      min_depth_m: nearer pixels have no depth.
      max_depth_m: farther pixels have no depth.
    """

    base_m: float = 0.001
    slope_per_m: float = 0.0014
    dropout: float = 0.01
    min_depth_m: float = 0.2
    max_depth_m: float = 8.0


def noisy_depth(frame: Frame, config: DepthNoiseConfig, rng: np.random.Generator) -> Frame:
    """Return the frame with a depth image as such a camera gives it; pixels without depth are inf.

    Args:
      frame: exact frame.
      config: sizes of the errors.
      rng: the sensor's stream.
    """
    depth = frame.depth_m.astype(np.float64)
    finite = np.where(np.isfinite(depth), depth, 0.0)
    noisy = depth + (config.base_m + config.slope_per_m * finite**2) * rng.standard_normal(depth.shape)
    lost = rng.random(depth.shape) < config.dropout
    lost |= ~np.isfinite(depth) | (noisy < config.min_depth_m) | (noisy > config.max_depth_m)
    out: NDArray[np.float32] = np.where(lost, np.inf, noisy).astype(np.float32)
    return Frame(rgb=frame.rgb, depth_m=out, segmentation=frame.segmentation)


@dataclass(frozen=True, slots=True)
class Stamped(Generic[T]):
    """A measurement and the simulated time at which it was taken."""

    time_s: float
    value: T


class Delayed(Generic[T]):
    """Gives a sensor a rate and a delay: offers samples as they are taken, hands out the newest that has arrived.

    Args:
      rate_hz: samples per second; 0 takes every one that is offered.
      delay_s: time from taking a sample to having it.

    Raises:
      WorldError: a negative rate or delay.
    """

    def __init__(self, rate_hz: float = 0.0, delay_s: float = 0.0) -> None:
        if not (rate_hz >= 0.0 and delay_s >= 0.0):
            raise WorldError(f"A sensor's rate_hz and delay_s must be >= 0, got {rate_hz} and {delay_s}.")
        self._period_s = 1.0 / rate_hz if rate_hz > 0.0 else 0.0
        self._delay_s = delay_s
        self.reset()

    def reset(self) -> None:
        """Forget all samples."""
        self._underway: deque[Stamped[T]] = deque()
        self._newest: Stamped[T] | None = None
        self._taken = 0
        self._start_s: float | None = None

    def is_due(self, time_s: float) -> bool:
        """Whether a sample should be taken now; ask before computing an expensive one."""
        if self._start_s is None or self._period_s == 0.0:
            return True
        # Counted from the first sample, so that rounding does not add up to a drift.
        return time_s >= self._start_s + self._taken * self._period_s - 1e-9

    def offer(self, time_s: float, value: T) -> None:
        """Take a sample if one is due."""
        if not self.is_due(time_s):
            return
        if self._start_s is None:
            self._start_s = time_s
        self._taken += 1
        if self._period_s:  # samples missed while nobody offered are not made up for
            self._taken = max(self._taken, int((time_s - self._start_s) / self._period_s + 1e-9) + 1)
        self._underway.append(Stamped(time_s, value))

    def read(self, time_s: float) -> Stamped[T] | None:
        """Return the newest sample that has arrived, with its stamp, or None before the first one."""
        while self._underway and self._underway[0].time_s + self._delay_s <= time_s + 1e-9:
            self._newest = self._underway.popleft()
        return self._newest
