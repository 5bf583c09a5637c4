"""A package, a robot, and everything around the loop: session, threads, priorities, log, clean end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from embodied_deploy.package.load import Package
from embodied_deploy.policy.controller import PolicyController
from embodied_deploy.policy.session import PolicySession
from embodied_deploy.robot import Robot
from embodied_deploy.runtime.clock import MonotonicClock
from embodied_deploy.runtime.inference import InlineInference, ThreadInference
from embodied_deploy.runtime.log import NO_LOG, Log
from embodied_deploy.runtime.loop import EdgeLoop, LoopConfig
from embodied_deploy.runtime.notify import Notifier
from embodied_deploy.runtime.realtime import RealtimeOptions, apply_to_thread, quiet_interpreter

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostConfig:
    """How a package is run.

    Attributes:
      realtime: by the clock of the machine; else in lockstep.
      ticks: periods to run, None for no limit.
      goal: set-points of the caller.
      threads: of the session, see :func:`embodied_deploy.policy.session.open_session`.
      session: further session options.
      options: what to ask the kernel for.
      loop: limits and hooks.
    """

    realtime: bool = True
    ticks: int | None = None
    goal: Mapping[str, Array] = field(default_factory=dict)
    threads: int = 1
    session: Mapping[str, str] = field(default_factory=dict)
    options: RealtimeOptions = field(default_factory=RealtimeOptions)
    loop: LoopConfig = field(default_factory=LoopConfig)


def drive(
    package: Package,
    robot: Robot,
    config: HostConfig,
    *,
    log: Log = NO_LOG,
    notifier: Notifier | None = None,
    on_loop: Callable[[EdgeLoop], None] | None = None,
) -> EdgeLoop:
    """Run a package on a robot until its time is up; return the loop with health and timing.

    SIGTERM and SIGINT end the run after the present period when this is the main thread. The robot is stopped in the
    end, whatever happened.

    Args:
      package: loaded for this robot.
      robot: what is driven.
      config: how.
      log: takes events; not closed here.
      notifier: tells the service manager.
      on_loop: gets the loop before it runs, for callers that want to end it.

    Raises:
      PackageError: the policy does not fit the robot.
      LinkError: the robot does not answer.
    """
    session = PolicySession(package, threads=config.threads, config=config.session)
    policy = PolicyController(session, robot.action_spec, robot.observation_spec)
    clock = MonotonicClock() if config.realtime else None
    options = config.options

    log.event("package", policy=package.contract.name, version=package.contract.version, sha256=package.sha256)

    def tell(refused: list[str]) -> None:
        for line in refused:
            name, _, message = line.partition(": ")
            log.event("warning", name=name, message=message)

    inference = (
        InlineInference(policy)
        if clock is None
        else ThreadInference(policy, clock, prepare=lambda: tell(apply_to_thread(options.worker)))
    )
    loop = EdgeLoop(
        robot, policy, inference, clock=clock, goal=config.goal, log=log, config=config.loop, notifier=notifier
    )
    if on_loop is not None:
        on_loop(loop)
    tell(apply_to_thread(options))
    with _ending_by_signal(loop), quiet_interpreter():
        loop.run(ticks=config.ticks)
    return loop


@contextmanager
def _ending_by_signal(loop: EdgeLoop) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {s: signal.signal(s, lambda *_: loop.end()) for s in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for s, handler in before.items():
            signal.signal(s, handler)
