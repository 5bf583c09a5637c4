"""Hand episodes to Ray instead of the local pool: same jobs, same endings.

Logs are written where a job runs, so the run folder must lie on storage that all machines share.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator, Sequence
from typing import Any

from embodied.benchmark.pool import SINGLE_THREAD, Ending, Job
from embodied.errors import MissingExtraError


def run_jobs_on_ray(target: str, jobs: Sequence[Job], *, timeout_s: float, retries: int = 1) -> Iterator[Ending]:
    """Run jobs on a Ray cluster and yield their endings as they come.

    Joins the cluster of ``RAY_ADDRESS``, or starts one on this machine.

    Args:
      target: ``module:function`` called with each payload.
      jobs: what to run.
      timeout_s: wall-clock limit of one job, in seconds, from when it was handed over once all before it began.
      retries: how often Ray tries a job again whose worker died.

    Raises:
      MissingExtraError: Ray is not installed.
    """
    ray = load_ray()
    if not ray.is_initialized():
        ray.init(log_to_driver=False, configure_logging=False, runtime_env={"env_vars": SINGLE_THREAD})
    remote = ray.remote(num_cpus=1, max_retries=retries)(answer)
    running = {remote.remote(target, job.payload, timeout_s): job for job in jobs}
    try:
        while running:
            (reference,), _ = ray.wait(list(running), num_returns=1)
            job = running.pop(reference)
            try:
                yield Ending(key=job.key, **ray.get(reference))
            except ray.exceptions.RayError as error:
                text = str(error).splitlines()[0]
                yield Ending(key=job.key, status="died", message=f"Ray worker: {text}", attempts=retries + 1)
    finally:
        for reference in running:
            ray.cancel(reference, force=True)


def load_ray() -> Any:  # noqa: ANN401  an untyped module
    """Import Ray.

    Raises:
      MissingExtraError: it is not installed.
    """
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise MissingExtraError(
            f"--ray hands the episodes to Ray, which is not installed ({error}). Install it with: pip install ray. "
            "Without --ray the episodes run on this machine's own processes (--workers)."
        ) from error


def answer(target: str, payload: object, timeout_s: float) -> dict[str, Any]:
    """Run one job in a child process of a Ray worker, so that its limit can be enforced, and return its ending."""
    from embodied.benchmark.pool import run_jobs

    start_s = time.monotonic()
    (ending,) = run_jobs(target, [Job(key="", payload=payload)], workers=1, timeout_s=timeout_s)
    found = {name: getattr(ending, name) for name in ("status", "value", "error", "message", "trace", "attempts")}
    return {**found, "wall_s": time.monotonic() - start_s}
