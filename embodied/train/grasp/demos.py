"""Demonstrations: the teacher drives and stumbles, or the learner drives; the teacher says what would have been right.

References:
  M. Laskey et al., "DART: Noise Injection for Robust Imitation Learning", CoRL (2017): noise while demonstrating.
  S. Ross, G. Gordon, D. Bagnell, "A Reduction of Imitation Learning and Structured Prediction to No-Regret Online
  Learning", AISTATS (2011), algorithm 3.1: labels on the learner's own states.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embodied.seeding import stream_rng
from embodied.train.grasp.scene import grasp_scene
from embodied.train.grasp.task import GraspEpisode, proprioception, thing_in_tool
from embodied.train.grasp.teacher import CLOSE_N, OPEN_M, label

Array = NDArray[np.float64]
Actor = Callable[[NDArray[np.uint8], Array], Array]
"""Image (64, 64, 3) and proprioception (10,) to a chunk (horizon, 9)."""

_NOISE_RAD, _NOISE_KEEP = 0.025, 0.8  # at the hover height; less where the hand is about to touch
_GLITCH_CHANCE, _GLITCH_PERIODS = 0.015, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Demos:
    """Labelled moments of many episodes, in order.

    Attributes:
      images: (n, 64, 64, 3) uint8.
      proprio: (n, 10) float32, see ``proprioception``.
      chunks: (n, horizon, 9) float32 joint targets [rad], opening [m], force [N] by the teacher.
      applied: (n, 9) float32 what was really done.
      things: (n, 5) float32 where the thing is, see ``thing_in_tool``.
      episodes: (n,) int64 seed of the episode.
      successes: (n,) bool whether that episode succeeded.
    """

    images: NDArray[np.uint8]
    proprio: NDArray[np.float32]
    chunks: NDArray[np.float32]
    applied: NDArray[np.float32]
    things: NDArray[np.float32]
    episodes: NDArray[np.int64]
    successes: NDArray[np.bool_]

    @property
    def size(self) -> int:
        """Moments."""
        return len(self.images)


FIELDS = ("images", "proprio", "chunks", "applied", "things", "episodes", "successes")


def join(parts: Sequence[Demos]) -> Demos:
    """Return all parts as one."""
    return Demos(**{name: np.concatenate([getattr(p, name) for p in parts]) for name in FIELDS})


def collect(seeds: Sequence[int], actor: Actor | None = None, *, execute: int = 4, share: float = 1.0) -> Demos:
    """Run episodes and label every moment.

    Args:
      seeds: one episode each.
      actor: who drives; None lets the teacher drive, disturbed.
      execute: actions of a chunk that a learner uses before it is asked again.
      share: part of the episodes that the learner drives; the teacher drives the others.
    """
    columns: dict[str, list[Any]] = {name: [] for name in FIELDS}
    for seed in seeds:
        rng = stream_rng(seed, "policy", "demo")
        driver = actor if actor is not None and rng.random() < share else None
        _episode(seed, driver, execute, rng, columns)
    kinds: dict[str, Any] = {"images": np.uint8, "episodes": np.int64, "successes": np.bool_}
    arrays: dict[str, Any] = {n: np.asarray(columns[n], dtype=kinds.get(n, np.float32)) for n in FIELDS}
    return Demos(**arrays)


def _episode(
    seed: int, actor: Actor | None, execute: int, rng: np.random.Generator, columns: dict[str, list[Any]]
) -> None:
    episode = GraspEpisode(grasp_scene(seed))
    scale = rng.uniform(0.0, 1.0) * _NOISE_RAD
    noise, glitch = np.zeros(7), 0
    planned = np.zeros((0, 9))
    while not episode.is_over:
        image, proprio, wanted = episode.image(), proprioception(episode.robot.read()), label(episode)
        if actor is None:
            noise = _NOISE_KEEP * noise + np.sqrt(1 - _NOISE_KEEP**2) * scale * rng.standard_normal(7)
            glitch = glitch - 1 if glitch else _GLITCH_PERIODS * int(rng.random() < _GLITCH_CHANCE)
            action = _disturbed(wanted[0], noise * _room(episode), glitch > 0, episode.steps)
        else:
            if not len(planned):
                planned = actor(image, proprio)[:execute]
            action, planned = planned[0], planned[1:]
        row = (image, proprio, wanted, action, thing_in_tool(episode), seed, False)
        for name, value in zip(FIELDS, row, strict=True):
            columns[name].append(np.asarray(value))
        episode.step(action)
    columns["successes"][-episode.steps :] = [np.asarray(episode.is_success)] * episode.steps


def _room(episode: GraspEpisode) -> float:
    """Return how much of the noise there is room for: all of it far above the thing, little beside it."""
    pos, _ = episode.tool_world()
    return float(np.clip((pos[2] - episode.thing_world_m[2]) / 0.15, 0.25, 1.0))


def _disturbed(action: Array, noise: Array, is_glitch: bool, step: int) -> Array:
    out = action.copy()
    is_open = action[7] > OPEN_M / 2
    out[:7] += noise * (1.0 if is_open else 0.3)
    if is_glitch and is_open and step > 3:
        out[7:] = 0.0, CLOSE_N  # the hand closes on nothing and has to begin again
    return out
