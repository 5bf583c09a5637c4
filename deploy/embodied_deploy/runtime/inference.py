"""Asking the policy, in the loop's own thread or in another.

``session.run`` cannot be pre-empted. So in real time a worker thread runs it, which releases the interpreter lock while
it computes, and the loop waits for the answer with a time limit: a policy that takes too long cannot keep the loop from
sending the degraded action. Answers cross the border as copies; the policy object is touched by the worker alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from embodied_deploy.errors import ObservationError, PolicyOutputError
from embodied_deploy.package.contract import PolicyContract
from embodied_deploy.policy.sample import Sample
from embodied_deploy.runtime.clock import Clock

Array = NDArray[np.float64]


class Policy(Protocol):
    """What the runtime asks: :class:`embodied_deploy.policy.controller.PolicyController` or a stand-in for tests."""

    contract: PolicyContract

    def reset(self) -> None:
        """Forget the past."""
        ...

    def think(self, sample: Sample) -> None:
        """Ask the policy; its answer is one action or a chunk."""
        ...

    @property
    def actions_left(self) -> int:
        """Actions that :meth:`follow` can still give."""
        ...

    def follow(self) -> Array:
        """Return the next action, (n_actions,) in the robot's order."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of one question.

    Attributes:
      tick: period in which it was asked.
      stamp_s: of the observation, robot's clock.
      actions: (horizon, n_actions), one period apart; empty when the question failed.
      compute_s: how long it took; 0 without a clock.
      failure: ``observation`` or ``output``, empty when it went well.
      message: of the error.
    """

    tick: int
    stamp_s: float
    actions: Array
    compute_s: float
    failure: str = ""
    message: str = ""


class Inference(Protocol):
    """One question at a time."""

    @property
    def is_busy(self) -> bool:
        """Whether an answer is still to come; no question may be put then."""
        ...

    def submit(self, tick: int, sample: Sample, *, reset: bool = False) -> None:
        """Ask; with ``reset`` the policy forgets its past first."""
        ...

    def take(self, deadline_s: float) -> Answer | None:
        """Return the answer, or None when it is not there by ``deadline_s`` (of the loop's clock)."""
        ...

    def close(self) -> None:
        """End the worker."""
        ...


class InlineInference:
    """Asks in the caller's thread: for lockstep, and for tests on a clock that the policy moves.

    An answer that took longer than its deadline is kept back until the next call, as a worker's would be.

    Args:
      policy: who is asked.
      clock: measures; None in lockstep, where no answer is late.
    """

    def __init__(self, policy: Policy, clock: Clock | None = None) -> None:
        self._policy, self._clock = policy, clock
        self._answer: Answer | None = None

    @property
    def is_busy(self) -> bool:
        """Whether an answer was kept back."""
        return self._answer is not None

    def submit(self, tick: int, sample: Sample, *, reset: bool = False) -> None:
        """Ask and wait."""
        self._answer = _ask(self._policy, tick, sample, reset, self._clock.now_s if self._clock else _no_time)

    def take(self, deadline_s: float) -> Answer | None:
        """Return the answer unless the clock has passed ``deadline_s``; with ``-inf`` return what was kept back."""
        if self._clock is not None and self._clock.now_s() > deadline_s > float("-inf"):
            return None
        answer, self._answer = self._answer, None
        return answer

    def close(self) -> None:
        """Nothing to end."""


class ThreadInference:
    """Asks in a worker thread of its own.

    Args:
      policy: who is asked; from now on only by the worker.
      clock: the loop's, in real time.
      prepare: called once in the worker, for priority and pinning.
    """

    def __init__(self, policy: Policy, clock: Clock, prepare: Callable[[], None] | None = None) -> None:
        self._policy, self._clock, self._prepare = policy, clock, prepare
        # Two locks as semaphores: the cheapest hand-over between threads that the standard library has.
        self._go, self._done = threading.Lock(), threading.Lock()
        self._go.acquire()
        self._done.acquire()
        self._question: tuple[int, Sample, bool] | None = None
        self._answer: Answer | None = None
        self._crash: BaseException | None = None
        self._busy = False
        self._thread = threading.Thread(target=self._work, name="inference", daemon=True)
        self._thread.start()

    @property
    def is_busy(self) -> bool:
        """Whether the worker computes or its answer was not taken yet."""
        return self._busy

    def submit(self, tick: int, sample: Sample, *, reset: bool = False) -> None:
        """Hand a question to the worker."""
        assert not self._busy, "one question at a time"
        self._busy = True
        self._question = (tick, sample, reset)
        self._go.release()

    def take(self, deadline_s: float) -> Answer | None:
        """Wait for the answer until ``deadline_s``; only look when that has passed.

        Raises:
          BaseException: what the policy raised that is no error of an observation: a programming error.
        """
        left_s = deadline_s - self._clock.now_s()
        if not (self._done.acquire(timeout=left_s) if left_s > 0 else self._done.acquire(blocking=False)):
            return None
        self._busy = False
        if self._crash is not None:
            raise self._crash
        answer, self._answer = self._answer, None
        return answer

    def close(self) -> None:
        """End the worker; one that is stuck in a run is left behind as a daemon."""
        self._question = None
        if not self._busy:
            self._go.release()
            self._thread.join(timeout=1.0)

    def _work(self) -> None:
        if self._prepare is not None:
            self._prepare()
        while True:
            self._go.acquire()
            if self._question is None:
                return
            tick, sample, reset = self._question
            try:
                self._answer = _ask(self._policy, tick, sample, reset, self._clock.now_s)
            except BaseException as error:
                self._crash = error
            self._done.release()


def _no_time() -> float:
    return 0.0


def _ask(policy: Policy, tick: int, sample: Sample, reset: bool, now_s: Callable[[], float]) -> Answer:
    begin_s = now_s()
    if reset:
        policy.reset()
    failure = message = ""
    actions: list[Array] = []
    try:
        policy.think(sample)
        actions = [policy.follow() for _ in range(policy.actions_left)]
    except PolicyOutputError as error:
        failure, message = "output", str(error)
    except ObservationError as error:
        failure, message = "observation", str(error)
    return Answer(
        tick=tick,
        stamp_s=sample.state.time_s,
        actions=np.array(actions),
        compute_s=now_s() - begin_s,
        failure=failure,
        message=message,
    )
