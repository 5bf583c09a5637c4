"""Run a suite on worker processes into a folder that can be continued at any time."""

from __future__ import annotations

import dataclasses
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import embodied.errors as errors
from embodied.benchmark.pool import Ending, Job, run_jobs
from embodied.benchmark.progress import make_progress
from embodied.benchmark.store import Manifest, RunFolder, machine, versions
from embodied.benchmark.suites import SUITES, Episode, episodes
from embodied.benchmark.summary import summarise
from embodied.record.wall import write_wall

WORK = "embodied.benchmark.runner:work"
# These say that the run as a whole is set up wrongly, not that one episode failed.
_SETUP_ERRORS = ("UnknownNameError", "DuplicateNameError", "MissingExtraError")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """What to run and where to.

    Attributes:
      suite: name in the registry of suites.
      planner: planner spec.
      world: backend.
      out: folder of the run.
      episodes: how many; None for the suite's own number.
      workers: worker processes.
      seed: root seed.
      timeout_s: wall-clock limit of one episode, in seconds.
      use_ray: hand the episodes to Ray.
      quiet: no progress.
      options: options of every episode, for instance ``{"task": {…}}``.
    """

    suite: str
    out: Path
    planner: str = "oracle"
    world: str = "mujoco"
    episodes: int | None = None
    workers: int = 1
    seed: int = 0
    timeout_s: float = 600.0
    use_ray: bool = False
    quiet: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    def command(self) -> str:
        """Return the shell command of this run."""
        words = ["embodied", "bench", "run", self.suite, "--planner", self.planner, "--world", self.world]
        if self.episodes is not None:
            words += ["--episodes", str(self.episodes)]
        words += ["--workers", str(self.workers), "--seed", str(self.seed), "--out", str(self.out)]
        if self.timeout_s != 600.0:
            words += ["--timeout-s", f"{self.timeout_s:g}"]
        return shlex.join(words + (["--ray"] if self.use_ray else []))


def run_suite(config: RunConfig) -> dict[str, Any]:
    """Run what is missing in the folder and return the summary of all.

    Args:
      config: what to run.

    Returns:
      The object that ``--json`` prints: ``episodes``, ``success_rate``, ``success_low``, ``success_high``, ``by_task``,
      ``outcomes``, ``wall_s``, ``out`` and what was run.

    Raises:
      UnknownNameError: an unknown suite, planner, world or task.
      MissingExtraError: the world, planner or Ray is not installed.
      RunFolderError: the folder belongs to another run.
    """
    started_s = time.monotonic()
    rows = episodes(SUITES.get(config.suite), root_seed=config.seed, count=config.episodes)
    _check_names(config, rows)
    manifest = Manifest(
        command=config.command(),
        suite=config.suite,
        planner=config.planner,
        world=config.world,
        root_seed=config.seed,
        episodes=rows,
        options=dict(config.options),
        versions=versions(),
        machine=machine(),
    )
    folder = RunFolder(config.out)
    done = folder.open(manifest)
    todo = [row for row in rows if row.key not in done]
    _run_missing(config, folder, todo, done, len(rows))
    folder.rewrite(list(done.values()))
    head = {k: getattr(config, k) for k in ("suite", "planner", "world", "seed")}
    tail = {"wall_s": round(time.monotonic() - started_s, 3), "out": str(config.out), "command": config.command()}
    return head | summarise(folder.results()) | tail


def _run_missing(
    config: RunConfig, folder: RunFolder, todo: Sequence[Episode], done: dict[str, dict[str, Any]], total: int
) -> None:
    by_key = {row.key: row for row in todo}
    jobs = [Job(key=row.key, payload=_payload(config, folder, row)) for row in todo]
    progress = make_progress(quiet=config.quiet)
    progress.start(total, list(done.values()))
    try:
        for ending in _endings(config, jobs):
            if ending.status == "raised" and ending.error in _SETUP_ERRORS:
                raise getattr(errors, ending.error)(ending.message)
            row = by_key[ending.key]
            result, wall = _result(folder, row, ending)
            write_wall(folder.log_path(row.key), wall)
            folder.append(row.key, result)
            done[row.key] = {"key": row.key, **result}
            progress.advance(result, ending.wall_s)
    finally:
        progress.stop()


def _endings(config: RunConfig, jobs: Sequence[Job]) -> Iterator[Ending]:
    if config.use_ray:
        from embodied.benchmark.ray_pool import run_jobs_on_ray

        return run_jobs_on_ray(WORK, jobs, timeout_s=config.timeout_s)
    return run_jobs(WORK, jobs, workers=config.workers, timeout_s=config.timeout_s)


def _check_names(config: RunConfig, rows: Sequence[Episode]) -> None:
    """Refuse unknown names before anything is written."""
    from embodied.catalog import TASKS, WORLDS
    from embodied.planners.factory import make_planner

    WORLDS.entry(config.world)
    if config.use_ray:
        from embodied.benchmark.ray_pool import load_ray

        load_ray()
    make_planner(config.planner)  # wrong options and missing extras show here, once
    for task_id in {row.task_id for row in rows}:
        TASKS.entry(task_id)


def _payload(config: RunConfig, folder: RunFolder, row: Episode) -> dict[str, Any]:
    return {
        "task_id": row.task_id,
        "seed": row.seed,
        "planner": config.planner,
        "world": config.world,
        "log_path": folder.log_path(row.key),
        "options": dict(config.options),
    }


def work(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Run one episode in a worker process and return its result as plain data."""
    from embodied.agents.episode import EpisodeRequest, run_episode

    # What a killed try left behind must not be taken for the log of this one.
    Path(payload["log_path"]).unlink(missing_ok=True)
    return dataclasses.asdict(run_episode(EpisodeRequest(**payload)))


def _result(folder: RunFolder, row: Episode, ending: Ending) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split an ending into what is the same in every run and what is wall clock."""
    wall: dict[str, Any] = {"wall_s": ending.wall_s, "attempts": ending.attempts}
    if ending.status == "done":
        result = dict(ending.value)
        wall["planner_stats"] = result.pop("planner_stats", {})
        if ending.wall_s > 0:
            wall["real_time_factor"] = result["sim_time_s"] / ending.wall_s
    else:
        result = _lost(row, ending)
        if ending.trace:
            wall["trace"] = ending.trace
    log = folder.log_path(row.key)
    result["log_path"] = str(log.relative_to(folder.path)) if log.exists() else None
    return result, wall


def _lost(row: Episode, ending: Ending) -> dict[str, Any]:
    """Return the result of an episode that gave none: it counts as not successful."""
    is_planner = ending.error == "PlannerError"
    outcome = "timeout" if ending.status == "late" else "planner_failure" if is_planner else "crash"
    reason = f"{ending.error}: {ending.message}" if ending.error else ending.message
    return {
        "task_id": row.task_id,
        "seed": row.seed,
        "success": False,
        "fraction": 0.0,
        "initial_fraction": 0.0,
        "outcome": outcome,
        "reason": reason,
        "sim_time_s": 0.0,
        "decisions": 0,
        "skill_steps": 0,
        "privileged": False,
    }
