"""Judging a packaged policy in physics: the runtime's own controller drives, no torch is loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from embodied.benchmark.pool import Ending, Job, run_jobs
from embodied.robots.amr.spec import AMR
from embodied.seeding import stream_rng
from embodied.train.contract import Score
from embodied.train.navigation.rooms import navigation_room
from embodied.train.navigation.task import NavigationEpisode
from embodied.train.navigation.teacher import SPEED_MAX_MPS, YAW_RATE_MAX_RADPS, Teacher
from embodied_deploy.package.load import load_package
from embodied_deploy.policy.controller import PolicyController
from embodied_deploy.policy.session import PolicySession

Act = Callable[[NavigationEpisode], NDArray[np.float64]]

_EPISODE_LIMIT_S = 120.0
_loaded: dict[str, PolicySession] = {}


def evaluate_package(package: Path, seeds: Sequence[int], workers: int = 1) -> list[Score]:
    """Return one score per seed, in order.

    Args:
      package: signed or unsigned package file.
      seeds: room seeds.
      workers: processes.
    """
    if workers <= 1:
        session = open_package(package)
        return [run_policy(session, seed) for seed in seeds]
    jobs = [Job(key=str(seed), payload=(str(package), int(seed))) for seed in seeds]
    endings = {e.key: e for e in run_jobs(f"{__name__}:run_seed", jobs, workers=workers, timeout_s=_EPISODE_LIMIT_S)}
    return [_score(endings[job.key], job.payload[1]) for job in jobs]


def open_package(package: Path) -> PolicySession:
    """Load a package for the AMR."""
    return PolicySession(load_package(package, robot=AMR))


def run_seed(payload: tuple[str, int]) -> Score:
    """Run one (package, seed) in a process that keeps the package open."""
    package, seed = payload
    if package not in _loaded:
        _loaded[package] = open_package(Path(package))
    return run_policy(_loaded[package], seed)


def run_policy(session: PolicySession, seed: int) -> Score:
    """Return the score of one episode; the memory begins empty."""
    controller = PolicyController(session, AMR.action_spec, AMR.observation_spec)
    return run_episode(lambda episode: controller.act(episode.observe()), seed)


def run_teacher(seed: int) -> Score:
    """Return the score of the teacher, who knows the map."""
    teacher = Teacher([navigation_room(seed)])
    return run_episode(lambda episode: teacher.act(episode.pose[None])[0], seed)


def run_straight(seed: int) -> Score:
    """Return the score of driving straight at the goal: turn to it, go."""
    return run_episode(_straight, seed)


def run_random(seed: int) -> Score:
    """Return the score of actions at random, each held for a second."""
    rng = stream_rng(seed, "policy", "random")
    held = np.zeros(2)

    def act(episode: NavigationEpisode) -> NDArray[np.float64]:
        if episode.steps % 10 == 0:
            held[:] = rng.uniform([0.0, -YAW_RATE_MAX_RADPS], [SPEED_MAX_MPS, YAW_RATE_MAX_RADPS])
        return held

    return run_episode(act, seed)


def run_episode(act: Act, seed: int) -> Score:
    """Return the score of one episode."""
    episode = NavigationEpisode(navigation_room(seed))
    while not episode.is_over:
        episode.step(act(episode))
    return Score(seed=seed, value=float(episode.is_success), outcome=episode.outcome, steps=episode.steps)


def _straight(episode: NavigationEpisode) -> NDArray[np.float64]:
    x, y, yaw = episode.pose
    ahead = episode.room.goal_world_m - (x, y)
    error = (np.arctan2(ahead[1], ahead[0]) - yaw + np.pi) % (2 * np.pi) - np.pi
    speed = SPEED_MAX_MPS * np.clip(1.0 - abs(error), 0.0, 1.0)
    return np.array([speed, np.clip(2.2 * error, -YAW_RATE_MAX_RADPS, YAW_RATE_MAX_RADPS)])


def _score(ending: Ending, seed: int) -> Score:
    """Return what a worker answered; one that failed counts as a failed episode."""
    return ending.value if ending.status == "done" else Score(seed=seed, value=0.0, outcome=f"crash: {ending.message}")
