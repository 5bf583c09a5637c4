"""Judging a packaged policy: the runtime's own controller drives, no torch is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from embodied.benchmark.pool import Ending, Job, run_jobs
from embodied.robots.mobile_manipulator.spec import MOBILE_MANIPULATOR
from embodied.train.contract import Score
from embodied.train.grasp.scene import grasp_scene
from embodied.train.grasp.task import GraspEpisode
from embodied.train.grasp.teacher import label
from embodied_deploy.package.load import load_package
from embodied_deploy.policy.controller import PolicyController
from embodied_deploy.policy.session import PolicySession

_EPISODE_LIMIT_S = 120.0
_loaded: dict[str, PolicySession] = {}


def evaluate_package(package: Path, seeds: Sequence[int], workers: int = 1) -> list[Score]:
    """Return one score per seed, in order.

    Args:
      package: signed or unsigned package file.
      seeds: scene seeds.
      workers: processes.
    """
    if workers <= 1:
        session = open_package(package)
        return [run_episode(session, seed) for seed in seeds]
    jobs = [Job(key=str(seed), payload=(str(package), int(seed))) for seed in seeds]
    endings = {e.key: e for e in run_jobs(f"{__name__}:run_seed", jobs, workers=workers, timeout_s=_EPISODE_LIMIT_S)}
    return [_score(endings[job.key], job.payload[1]) for job in jobs]


def open_package(package: Path) -> PolicySession:
    """Load a package for the mobile manipulator."""
    return PolicySession(load_package(package, robot=MOBILE_MANIPULATOR))


def run_seed(payload: tuple[str, int]) -> Score:
    """Run one (package, seed) in a process that keeps the package open."""
    package, seed = payload
    if package not in _loaded:
        _loaded[package] = open_package(Path(package))
    return run_episode(_loaded[package], seed)


def run_teacher(seed: int) -> Score:
    """Return the score of the teacher that knows all poses, undisturbed."""
    episode = GraspEpisode(grasp_scene(seed))
    while not episode.is_over:
        episode.step(label(episode, 1)[0])
    return Score(seed=seed, value=float(episode.is_success), outcome=episode.outcome, steps=episode.steps)


def _score(ending: Ending, seed: int) -> Score:
    """Return what a worker answered; one that failed counts as a failed episode."""
    return ending.value if ending.status == "done" else Score(seed=seed, value=0.0, outcome=f"crash: {ending.message}")


def run_episode(session: PolicySession, seed: int) -> Score:
    """Return the score of one episode."""
    episode = GraspEpisode(grasp_scene(seed))
    controller = PolicyController(session, episode.robot.action_spec, episode.robot.observation_spec)
    while not episode.is_over:
        episode.step(controller.act(episode.observe()))
    return Score(seed=seed, value=float(episode.is_success), outcome=episode.outcome, steps=episode.steps)
