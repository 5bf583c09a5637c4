"""The loop: reads, asks, sends, every period, whatever the policy does.

In real time the loop's thread is the watchdog of the inference: it wakes at absolute deadlines, hands the sample to the
worker, waits no longer than the latency budget, and sends either the answer or the degraded action. In lockstep there
is no clock: the robot's side advances with each command, and nothing is late.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from embodied_controllers.contract import Command, RobotState
from embodied_deploy.errors import DeployError, LinkError, ObservationError
from embodied_deploy.policy.sample import Sample
from embodied_deploy.robot import Robot
from embodied_deploy.robots.sense import first_action, sample_of
from embodied_deploy.runtime.age import StampWatch
from embodied_deploy.runtime.chunk import ChunkFollower
from embodied_deploy.runtime.clock import Clock
from embodied_deploy.runtime.health import Health, State, Timing
from embodied_deploy.runtime.inference import Inference, Policy
from embodied_deploy.runtime.log import NO_LOG, Log
from embodied_deploy.runtime.notify import Notifier
from embodied_deploy.runtime.recovery import DegradedModes, Limits, Recovery

Array = NDArray[np.float64]
Goal = Mapping[str, Array]
Recorder = Callable[[int, "RobotState | None", Array, str], None]
_NEVER = float("-inf")
CHANGES_PER_S = 10
"""Changes of health that are logged each second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopConfig:
    """What may be left as it is.

    Attributes:
      limits: how long what is endured.
      start_s: how long to wait for the first good sample.
      warm_up: questions before the first command, through the whole path; none in lockstep.
      step: advances the robot's side after each command in lockstep; None where ``send`` does.
      recorder: called each period with tick, state, action applied and mode.
      watcher: called about once a second with the health; true ends the loop.
    """

    limits: Limits = field(default_factory=Limits)
    start_s: float = 5.0
    warm_up: int = 20
    step: Callable[[], object] | None = None
    recorder: Recorder | None = None
    watcher: Callable[[Health], bool] | None = None


class EdgeLoop:
    """Drives one robot by one policy.

    Args:
      robot: what is driven.
      policy: who is asked; its contract says rate, budgets and degraded modes.
      inference: how it is asked.
      clock: None for lockstep.
      goal: set-points of the caller, or a function of the time on the robot's clock that returns them.
      log: takes events.
      config: limits and hooks.
      notifier: tells the service manager.

    Attributes:
      health: state, reasons and modes so far.
      timing: durations so far, without the present second.
    """

    def __init__(
        self,
        robot: Robot,
        policy: Policy,
        inference: Inference,
        *,
        clock: Clock | None,
        goal: Goal | Callable[[float], Goal] | None = None,
        log: Log = NO_LOG,
        config: LoopConfig | None = None,
        notifier: Notifier | None = None,
    ) -> None:
        self._contract = policy.contract
        self._config = config or LoopConfig()
        self._robot, self._inference, self._clock, self._log = robot, inference, clock, log
        self._goal: Goal | Callable[[float], Goal] = {} if goal is None else goal
        self._notifier = notifier
        self._dt_s = 1.0 / self._contract.rate_hz
        self._stamps = StampWatch(self._contract.max_observation_age_s, self._dt_s, lockstep=clock is None)
        self._chunk = ChunkFollower(self._contract)
        self._recovery = Recovery(self._config.limits.recover_ticks)
        self._degraded = DegradedModes(self._contract, robot, self._config.limits)
        self._stop_ticks = max(int(self._config.limits.stop_s / self._dt_s), 1)
        execute = self._contract.chunk.execute if self._contract.chunk else 1
        self._forget_ticks = max(int(self._config.limits.forget_s / self._dt_s), 2 * execute)
        self._asked: int | None = None
        self._last = first_action(robot)
        self._ending = False
        self._changes = 0
        self._said = ""
        self.health, self.timing, self._second = Health(), Timing(), Timing()

    def end(self) -> None:
        """End :meth:`run` after the present period; may be called by a signal handler or another thread."""
        self._ending = True

    def run(self, *, ticks: int | None = None, seconds: float | None = None) -> Health:
        """Drive until the time is up or :meth:`end` is called; the robot is stopped then, whatever happened.

        Args:
          ticks: number of periods; None for no limit.
          seconds: the same as a duration; counted in periods.

        Raises:
          LinkError: no good sample came within ``start_s``, or in lockstep the robot is gone.
        """
        if seconds is not None:
            ticks = min(round(seconds / self._dt_s), ticks or 1 << 62)
        try:
            if self._clock is None:
                self._run_lockstep(ticks)
            else:
                self._run_realtime(self._clock, ticks)
        finally:
            self._finish()
        return self.health

    def _run_lockstep(self, ticks: int | None) -> None:
        self._event("start", mode="lockstep")
        k = 0
        while not self._ending and k != ticks:
            self._tick(k, 0.0)
            if self._config.step is not None:
                self._config.step()
            k += 1
            if k % max(round(self._contract.rate_hz), 1) == 0:
                self._summarize()

    def _run_realtime(self, clock: Clock, ticks: int | None) -> None:
        self._warm_up(clock)
        self._event("start", mode="realtime")
        if self._notifier is not None:
            self._notifier.send(READY="1")
        start_s = clock.now_s() + self._dt_s
        alive_s, second_s = _NEVER, start_s + 1.0
        k = 0
        while not self._ending and (ticks is None or k < ticks):
            due_s = start_s + k * self._dt_s
            clock.sleep_until(due_s)
            now_s = clock.now_s()
            late = int((now_s - due_s) / self._dt_s)
            if late > 0:
                # Periods slept through are not made up for: a burst of old commands helps no robot.
                self._second.skipped += late
                k, due_s = k + late, due_s + late * self._dt_s
            self._second.wake.add(now_s - due_s)
            self._tick(k, due_s)
            k += 1
            now_s = clock.now_s()
            if self._notifier is not None and now_s - alive_s >= self._notifier.period_s:
                self._notifier.send(WATCHDOG="1", STATUS=f"{self.health.state} {self.health.reason}".strip())
                alive_s = now_s
            if now_s >= second_s:
                self._summarize()
                second_s += 1.0 + int(now_s - second_s)

    def _warm_up(self, clock: Clock) -> None:
        """Wait for a good sample, then ask a few times without driving: first runs are several times slower."""
        begin_s = clock.now_s()
        asked, said = 0, ""
        while asked < max(self._config.warm_up, 1):
            if self._ending:
                return
            if clock.now_s() - begin_s > self._config.start_s:
                last = ": ".join(w for w in (self.health.reason or "the policy does not answer", said) if w)
                raise LinkError(
                    f"{self._robot.name}: no good sample within {self._config.start_s:g} s (last fault: {last}). Is "
                    "the robot on, and does it send what the policy needs?"
                )
            state, fault = self._observe(clock.now_s())
            sample, fault = self._sample(state) if state is not None else (None, fault)
            self.health.reason = fault
            said = self._said if fault == "observation" else ""
            if sample is None:
                clock.sleep_until(clock.now_s() + self._dt_s)
                continue
            if not self._inference.is_busy:
                self._inference.submit(-1, sample)
            answer = self._inference.take(clock.now_s() + self._config.start_s)
            if answer is not None and not answer.failure:
                asked += 1
            elif answer is not None:
                self.health.reason, said = answer.failure, answer.message
                clock.sleep_until(clock.now_s() + self._dt_s)
        self.health.reason = ""
        self._stamps.forget()

    def _tick(self, k: int, due_s: float) -> None:
        clock = self._clock
        begin_s = clock.now_s() if clock is not None else 0.0
        state, fault = self._observe(begin_s)
        action: Array | None = None
        if state is not None:
            action, fault = self._policy_action(k, state, begin_s, due_s)
        elif self._inference.is_busy:
            self._inference.take(_NEVER)
        mode = self._send(action, fault, state)
        if clock is not None:
            self._second.response.add(clock.now_s() - due_s)
        self._second.ticks += 1
        self.health.modes[mode] += 1
        if self._config.recorder is not None:
            self._config.recorder(k, state, self._last, mode)

    def _observe(self, now_s: float) -> tuple[RobotState | None, str]:
        """Return a fresh state, or None and why there is none."""
        try:
            state = self._robot.read()
        except LinkError:
            return None, "link"
        verdict = self._stamps.judge(state.time_s, now_s)
        return (None, verdict) if verdict else (state, "")

    def _sample(self, state: RobotState) -> tuple[Sample | None, str]:
        try:
            goal = self._goal(state.time_s) if callable(self._goal) else self._goal
            return sample_of(self._robot, state, self._last, goal), ""
        except LinkError:
            return None, "link"
        except ObservationError as error:
            self._said = str(error)
            return None, "observation"

    def _policy_action(self, k: int, state: RobotState, begin_s: float, due_s: float) -> tuple[Array | None, str]:
        """Return the policy's action for this period, or None and why there is none."""
        if self._inference.is_busy:
            late = self._inference.take(_NEVER)
            if late is not None and not late.failure:
                self._chunk.accept(late)
        if self._chunk.is_due(k):
            fault = "late" if self._inference.is_busy else self._ask(k, state, begin_s, due_s)
            if fault and fault != "late":
                return None, fault
        action = self._chunk.action(k)
        return action, "" if action is not None else ("chunk" if self._contract.chunk else "late")

    def _ask(self, k: int, state: RobotState, begin_s: float, due_s: float) -> str:
        """Ask the policy and wait for the answer within its budget; return what went wrong."""
        sample, fault = self._sample(state)
        if sample is None:
            return fault
        forget = self._asked is None or k - self._asked > self._forget_ticks
        self._inference.submit(k, sample, reset=forget)
        self._asked = k
        # Counted from the question, and never beyond this period.
        answer = self._inference.take(min(begin_s + self._contract.latency_budget_s, due_s + self._dt_s))
        if answer is None:
            self._second.misses += 1
            return "late"
        if self._clock is not None:
            self._second.compute.add(answer.compute_s)
        if answer.failure:
            if self.health.state == "ok":
                self._event("refused", reason=answer.failure, message=answer.message)
            return answer.failure
        self._chunk.accept(answer)
        return ""

    def _send(self, action: Array | None, fault: str, state: RobotState | None) -> str:
        """Command the robot; return the mode it was commanded in."""
        recovery, health = self._recovery, self.health
        if action is None:
            recovery.bad()
            health.reasons[fault] += 1
        usable = action is not None and recovery.good() and health.state != "stopped"
        if recovery.outage_ticks >= self._stop_ticks and health.state != "stopped":
            health.reasons["outage"] += 1
            self._change("stopped", "outage", fault)
        try:
            if health.state == "stopped":
                mode, self._last = self._degraded.stop()
            elif usable:
                assert action is not None
                self._last = self._robot.send(Command(values=action)).values
                self._degraded.release()
                mode = "policy"
                self._change("ok", "", "")
            else:
                reason = fault or health.reason
                mode, self._last = self._degraded.drive(reason, state, self._last, recovery.outage_ticks)
                self._change("degraded", reason, mode)
        except LinkError:
            if self._clock is None:
                raise
            health.reasons["link"] += 1
            if usable:
                recovery.bad()
            if health.state != "stopped":
                self._change("degraded", "link", "")
            return "unreached"
        return mode

    def _change(self, state: State, reason: str, detail: str) -> None:
        health = self.health
        if (health.state, health.reason) != (state, reason):
            health.state, health.reason = state, reason
            # A policy that is late every other period must not flood the log; the counts of the second tell the rest.
            self._changes += 1
            if self._changes <= CHANGES_PER_S:
                self._event("health", state=state, reason=reason, detail=detail)

    def _event(self, kind: str, **fields: object) -> None:
        time_s = self._clock.now_s() if self._clock is not None else None
        self._log.event(kind, time_s=time_s, policy=self._contract.name, robot=self._robot.name, **fields)

    def _summarize(self) -> None:
        second, self._second = self._second, Timing()
        self._changes = 0
        self.timing.merge(second)
        self._event("second", **second.as_dict(), **self.health.as_dict())
        if self._config.watcher is not None and self._config.watcher(self.health):
            self._ending = True

    def _finish(self) -> None:
        self.timing.merge(self._second)
        self._second = Timing()
        try:
            self._robot.stop()
        except DeployError as error:
            self._event("unreached", message=str(error))
        if self._notifier is not None:
            self._notifier.send(STOPPING="1")
        self._inference.close()
        self._event("end", **self.timing.as_dict(), **self.health.as_dict())
