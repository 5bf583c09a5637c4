"""Drives: the teacher drives and is disturbed, or the learner drives; the teacher says what would have been right.

References:
  M. Laskey et al., "DART: Noise Injection for Robust Imitation Learning", CoRL (2017): noise while demonstrating.
  S. Ross, G. Gordon, D. Bagnell, "A Reduction of Imitation Learning and Structured Prediction to No-Regret Online
  Learning", AISTATS (2011), algorithm 3.1: labels on the learner's own states.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from embodied.seeding import stream_rng
from embodied.train.navigation.kinematic import KinematicWorld
from embodied.train.navigation.promise import NUM_INPUTS, REVERSE_MPS, observation_rows
from embodied.train.navigation.rooms import navigation_room
from embodied.train.navigation.scanner import pooled
from embodied.train.navigation.task import ARRIVED_M, DT_S
from embodied.train.navigation.teacher import SPEED_MAX_MPS, YAW_RATE_MAX_RADPS, Teacher

Array = NDArray[np.float64]
F32 = NDArray[np.float32]

STEPS = 300
"""Control periods after which a drive in training ends."""
LOW, HIGH = np.array([-REVERSE_MPS, -YAW_RATE_MAX_RADPS]), np.array([SPEED_MAX_MPS, YAW_RATE_MAX_RADPS])
_NOISE, _NOISE_KEEP = np.array([0.25, 0.6]), 0.9
_WINDOW, _STRIDE = 40, 24


class Driver(Protocol):
    """Drives a batch; remembers what it wants to."""

    def __call__(self, observations: F32) -> Array:
        """Return (n, 2) actions of (n, 52) observations, always of the same n robots."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Drives:
    """Labelled drives, one row per room.

    Attributes:
      seeds: (n,) of the rooms.
      observations: (n, t, 52), zero after the end.
      labels: (n, t, 2) what the teacher would have done, m/s and rad/s.
      applied: (n, t, 2) what was done.
      lengths: (n,) control periods.
      arrived: (n,) whether the drive ended at the goal.
      touched: (n,) whether it ended at an obstacle.
    """

    seeds: NDArray[np.int64]
    observations: F32
    labels: F32
    applied: F32
    lengths: NDArray[np.int64]
    arrived: NDArray[np.bool_]
    touched: NDArray[np.bool_]

    @property
    def sha256(self) -> str:
        """Digest of everything that is learnt from."""
        digest = hashlib.sha256()
        for array in (self.seeds, self.lengths, self.observations, self.labels):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def collect(
    seeds: Sequence[int], driver: Driver | None = None, *, share: float = 1.0, noise: float = 1.0, steps: int = STEPS
) -> Drives:
    """Drive one room per seed, all at once, and label every moment.

    Args:
      seeds: of the rooms.
      driver: who drives; None lets the teacher drive.
      share: part of the rooms that the driver drives; the disturbed teacher drives the others.
      noise: scale of the teacher's disturbance, which itself varies from room to room.
      steps: control periods after which a drive ends.
    """
    rooms = [navigation_room(seed) for seed in seeds]
    world, teacher, count = KinematicWorld(rooms), Teacher(rooms), len(rooms)
    rng = stream_rng(int(seeds[0]), "policy", "drives", count)
    is_learner = rng.random(count) < (share if driver is not None else 0.0)
    scale = noise * rng.random((count, 1)) * _NOISE
    shake = np.zeros((count, 2))
    observations = np.zeros((count, steps, NUM_INPUTS), np.float32)
    labels, applied = (np.zeros((count, steps, 2), np.float32) for _ in range(2))
    lengths, live = np.zeros(count, np.int64), np.ones(count, bool)
    arrived, touched = np.zeros(count, bool), np.zeros(count, bool)
    for step in range(steps):
        seen = np.zeros((count, NUM_INPUTS), np.float32)
        at = np.flatnonzero(live)  # scans are what takes the time
        seen[at] = observation_rows(world.to_goal_body_m()[at], world.vel_body[at], pooled(world.beams_m(at), rng))
        wanted = teacher.act(world.pose)
        shake = _NOISE_KEEP * shake + np.sqrt(1 - _NOISE_KEEP**2) * scale * rng.standard_normal((count, 2))
        action = np.clip(wanted + shake, LOW, HIGH)
        if driver is not None:
            action = np.where(is_learner[:, None], driver(seen), action)
        observations[live, step], labels[live, step], applied[live, step] = seen[live], wanted[live], action[live]
        lengths += live
        world.step(action, DT_S, live)
        touched |= live & world.is_touching()
        left = world.to_goal_body_m()
        arrived |= live & ~touched & (np.hypot(left[:, 0], left[:, 1]) <= ARRIVED_M)
        live &= ~(touched | arrived)
        if not live.any():
            break
    longest = int(lengths.max())
    return Drives(
        seeds=np.asarray(seeds, dtype=np.int64),
        observations=observations[:, :longest],
        labels=labels[:, :longest],
        applied=applied[:, :longest],
        lengths=lengths,
        arrived=arrived,
        touched=touched,
    )


def windows(drives: Sequence[Drives], window: int = _WINDOW, stride: int = _STRIDE) -> dict[str, NDArray[np.generic]]:
    """Cut drives into overlapping windows for training through time.

    The memory is empty at the first moment of a window. In windows that do not begin with the drive, the overlap only
    fills the memory: its moments weigh nothing.

    Returns:
      ``observations`` (k, window, 52), ``labels`` (k, window, 2), ``weights`` (k, window) and ``groups`` (k,) seeds.
    """
    columns: dict[str, list[NDArray[np.generic]]] = {n: [] for n in ("observations", "labels", "weights", "groups")}
    for part in drives:
        for row, length in enumerate(part.lengths):
            for start in range(0, max(1, int(length) - (window - stride)), stride):
                stop = min(start + window, int(length))
                pad = ((0, window - (stop - start)), (0, 0))
                weights = np.zeros(window, np.float32)
                weights[(window - stride if start else 0) : stop - start] = 1.0
                columns["observations"].append(np.pad(part.observations[row, start:stop], pad))
                columns["labels"].append(np.pad(part.labels[row, start:stop], pad))
                columns["weights"].append(weights)
                columns["groups"].append(part.seeds[row])
    return {name: np.stack(values) for name, values in columns.items()}
