"""A process pool that survives its workers: one job per message, so a worker that dies costs one job.

``concurrent.futures`` breaks the whole pool when one process is killed; here the job is tried once more in a fresh
process and then reported as lost, while the others go on.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Literal

Status = Literal["done", "raised", "died", "late"]

# One thread each: several workers with a thread pool each would fight for the same cores.
SINGLE_THREAD = {
    name: "1"
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "LP_NUM_THREADS")
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One unit of work.

    Attributes:
      key: names it in the answers.
      payload: picklable argument of the function.
    """

    key: str
    payload: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a job ended.

    Attributes:
      key: key of the job.
      status: ``done``; ``raised`` an exception; its process ``died``; ``late``, killed after the limit.
      value: what the function returned when done.
      error: type name of the exception when it raised.
      message: text of the exception, or how the process died.
      trace: traceback when it raised.
      wall_s: wall-clock seconds of the last try.
      attempts: how often it was tried.
    """

    key: str
    status: Status
    value: Any = None
    error: str = ""
    message: str = ""
    trace: str = ""
    wall_s: float = 0.0
    attempts: int = 1


def run_jobs(target: str, jobs: Sequence[Job], *, workers: int, timeout_s: float, retries: int = 1) -> Iterator[Ending]:
    """Run jobs on worker processes and yield their endings as they come.

    Args:
      target: ``module:function`` called with each payload in a worker.
      jobs: what to run; started in this order.
      workers: number of processes.
      timeout_s: wall-clock limit of one try, in seconds.
      retries: how often a job whose process died is tried again.
    """
    waiting = deque((job, 1) for job in jobs)
    idle: list[_Worker] = []
    busy: list[_Worker] = []
    try:
        while waiting or busy:
            while waiting and len(busy) < workers:
                worker = idle.pop() if idle else _Worker(target)
                worker.give(*waiting.popleft(), timeout_s)
                busy.append(worker)
            for worker in _ready(busy):
                busy.remove(worker)
                ending, is_usable = worker.collect()
                if is_usable:
                    idle.append(worker)
                elif ending.status == "died" and ending.attempts <= retries:
                    waiting.appendleft((worker.job, ending.attempts + 1))
                    continue
                yield ending
    finally:
        for worker in [*idle, *busy]:
            worker.kill()


def _ready(busy: Sequence[_Worker]) -> list[_Worker]:
    """Wait for news of any worker: an answer, its death or its time limit."""
    remaining_s = max(0.0, min(w.deadline_s for w in busy) - time.monotonic())
    signals: list[Any] = [w.connection for w in busy]
    signals += [w.process.sentinel for w in busy]
    found = set(wait(signals, timeout=remaining_s))
    now_s = time.monotonic()
    return [w for w in busy if w.connection in found or w.process.sentinel in found or now_s >= w.deadline_s]


class _Worker:
    """A process with a pipe to it."""

    job: Job

    def __init__(self, target: str) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=_serve, args=(theirs, target), daemon=True)
        # The libraries read these when they load, which is before any code of ours runs in the new process.
        before = {name: os.environ.get(name) for name in SINGLE_THREAD}
        os.environ.update(SINGLE_THREAD)
        try:
            self.process.start()
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
        theirs.close()

    def give(self, job: Job, attempt: int, timeout_s: float) -> None:
        self.job, self.attempt = job, attempt
        self.start_s = time.monotonic()
        self.deadline_s = self.start_s + timeout_s
        with contextlib.suppress(OSError):  # it died while idle: collect() will see that
            self.connection.send(job.payload)

    def collect(self) -> tuple[Ending, bool]:
        """Return how the job ended and whether the process can take another one."""
        wall_s = time.monotonic() - self.start_s
        common = {"key": self.job.key, "wall_s": wall_s, "attempts": self.attempt}
        try:
            if self.connection.poll():
                return Ending(**common, **self.connection.recv()), True
        except (EOFError, OSError):
            pass  # the pipe broke: the process is gone
        if self.process.is_alive() and time.monotonic() >= self.deadline_s:
            self.kill()
            return Ending(**common, status="late", message="stopped at the wall-clock limit"), False
        self.process.join(5.0)
        code = self.process.exitcode
        self.kill()
        how = f"killed by signal {-code}" if code is not None and code < 0 else f"left with exit code {code}"
        return Ending(**common, status="died", message=f"worker process {how}"), False

    def kill(self) -> None:
        self.connection.close()
        if self.process.is_alive():
            self.process.kill()
        self.process.join()


def _serve(connection: Connection, target: str) -> None:
    """Answer jobs until the pipe closes. Runs in the worker process."""
    import importlib
    import signal

    # Control-C reaches the whole group; the parent alone decides what to do about it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)  # engines print to stdout, which belongs to the parent's result
    module, _, attribute = target.partition(":")
    while True:
        try:
            payload = connection.recv()
        except (EOFError, OSError):
            return
        try:
            function = getattr(importlib.import_module(module), attribute)
            answer: dict[str, Any] = {"status": "done", "value": function(payload)}
        except Exception as error:
            answer = {
                "status": "raised",
                "error": type(error).__name__,
                "message": str(error),
                "trace": traceback.format_exc(),
            }
        try:
            connection.send(answer)
        except OSError:
            return
