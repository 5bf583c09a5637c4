"""A perfect robot in memory: does at once what it is told. For tests, for `embodied-edge run --robot loopback`."""

from __future__ import annotations

from math import cos, sin

import numpy as np
from numpy.typing import NDArray

from embodied_controllers.contract import ActionSpec, Command, ObservationSpec, RobotState
from embodied_deploy.errors import LinkError
from embodied_deploy.robots.sense import Senses
from embodied_deploy.runtime.clock import Clock

Array = NDArray[np.float64]
_BASE = ("forward_mps", "left_mps", "yaw_rate_radps")


class LoopbackRobot:
    """Integrates what it understands and echoes the rest.

    ``forward_mps``, ``left_mps`` and ``yaw_rate_radps`` move the base in the plane. An action named like a joint is
    where that joint is one period later, within its speed limit. An action named like a signal is the value of that
    signal. Everything else is remembered only.

    Args:
      action_spec: any.
      observation_spec: any.
      kind: robot kind.
      dt_ctrl_s: control period.
      name: instance name.
      clock: time of the samples; None lets each command advance time by one period, for lockstep.
      periods: control periods that one command lasts, in lockstep.
      senses: what :meth:`sense` returns.
    """

    def __init__(
        self,
        action_spec: ActionSpec,
        observation_spec: ObservationSpec,
        kind: str,
        dt_ctrl_s: float,
        *,
        name: str = "loopback_0",
        clock: Clock | None = None,
        periods: int = 1,
        senses: Senses | None = None,
    ) -> None:
        self.name, self.kind, self.dt_ctrl_s = name, kind, dt_ctrl_s
        self.action_spec, self.observation_spec = action_spec, observation_spec
        self._clock, self._periods, self._senses = clock, periods, senses or Senses()
        names = action_spec.names
        self._base = [names.index(n) if n in names else -1 for n in _BASE]
        pairs = [(j, names.index(n)) for j, n in enumerate(observation_spec.joint_names) if n in names]
        self._joints = np.array([j for j, _ in pairs], dtype=np.intp)
        self._servos = np.array([i for _, i in pairs], dtype=np.intp)
        self._signals = [(n, names.index(n) if n in names else -1) for n in observation_spec.signals]
        self._time_s = 0.0 if clock is None else clock.now_s()
        self._pose = [0.0, 0.0, 0.0]
        middle = np.clip(0.0, observation_spec.joint_low, observation_spec.joint_high)
        self._joint_pos = np.asarray(middle, dtype=np.float64).copy()
        self._joint_vel = np.zeros(len(observation_spec.joint_names))
        # What holds the robot where it is: safe values, and each joint at its position.
        self._last = np.nan_to_num(np.clip(action_spec.safe, action_spec.low, action_spec.high), nan=0.0)
        self._last[self._servos] = self._joint_pos[self._joints]
        self.stops = 0

    @property
    def last_action(self) -> Array:
        """(n,) the command applied last, a copy."""
        return self._last.copy()

    def read(self) -> RobotState:
        """Return the state now."""
        if self._clock is not None:
            self._advance(self._clock.now_s() - self._time_s)
        x, y, yaw = self._pose
        return RobotState(
            time_s=self._time_s,
            joint_pos=self._joint_pos.copy(),
            joint_vel=self._joint_vel.copy(),
            base_pos_world_m=np.array([x, y, 0.0]),
            base_quat_wxyz=np.array([cos(yaw / 2), 0.0, 0.0, sin(yaw / 2)]),
            base_vel_body_mps=np.array([self._of_base(0), self._of_base(1), 0.0]),
            base_angvel_body_radps=np.array([0.0, 0.0, self._of_base(2)]),
            signals={n: float(self._last[i]) if i >= 0 else 0.0 for n, i in self._signals},
        )

    def sense(self) -> Senses:
        """Return the readings given at the start."""
        return self._senses

    def send(self, command: Command) -> Command:
        """Apply a command after clipping; NaN holds.

        Raises:
          LinkError: the vector has the wrong length; nothing is applied then.
        """
        values = np.asarray(command.values, dtype=np.float64)
        if values.shape != (self.action_spec.size,):
            raise LinkError(f"{self.name}: a command has {self.action_spec.size} entries, got shape {values.shape}.")
        if self._clock is not None:
            self._advance(self._clock.now_s() - self._time_s)
        clipped = self.action_spec.clip(values)
        self._last = np.where(np.isnan(clipped), self._last, clipped)
        if self._clock is None:
            for _ in range(self._periods):
                self._advance(self.dt_ctrl_s)
        return Command(values=self._last.copy())

    def stop(self) -> Command:
        """Send the safe action."""
        self.stops += 1
        return self.send(Command(values=self.action_spec.safe))

    def _of_base(self, axis: int) -> float:
        return float(self._last[self._base[axis]]) if self._base[axis] >= 0 else 0.0

    def _advance(self, dt_s: float) -> None:
        if dt_s <= 0.0:
            return
        self._time_s += dt_s
        x, y, yaw = self._pose
        forward, left, rate = (self._of_base(i) for i in range(3))
        # Middle heading: exact to second order on arcs.
        middle = yaw + 0.5 * rate * dt_s
        x += (forward * cos(middle) - left * sin(middle)) * dt_s
        y += (forward * sin(middle) + left * cos(middle)) * dt_s
        self._pose = [x, y, yaw + rate * dt_s]
        if len(self._joints):
            limit = self.observation_spec.joint_vel_max[self._joints] * dt_s
            before = self._joint_pos[self._joints]
            move = np.clip(self._last[self._servos] - before, -limit, limit)
            self._joint_pos[self._joints] = before + move
            self._joint_vel[self._joints] = move / dt_s
