"""When the policy may drive, and what the robot gets while it may not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from embodied_controllers.contract import Command, RobotState
from embodied_deploy.errors import ObservationError
from embodied_deploy.package.contract import PolicyContract
from embodied_deploy.robot import Robot
from embodied_deploy.runtime.fallback import make_fallback

Array = NDArray[np.float64]
_STALE = ("link", "stamp", "stale", "clock_jump", "observation", "output")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long what is endured.

    Attributes:
      recover_ticks: good periods in a row before the policy drives again; a shorter outage needs as many as it lasted.
      hold_s: a command is held no longer than this, then the robot is stopped.
      stop_s: an outage longer than this stops the robot for good.
      forget_s: a policy that was not asked for this long starts from scratch.
    """

    recover_ticks: int = 5
    hold_s: float = 0.5
    stop_s: float = 5.0
    forget_s: float = 0.5


class Recovery:
    """Counts good and bad periods.

    Args:
      recover_ticks: see :class:`Limits`.
    """

    def __init__(self, recover_ticks: int) -> None:
        self._recover_ticks = recover_ticks
        self._bad = self._good = 0
        self.outage_ticks = 0

    @property
    def is_degraded(self) -> bool:
        """Whether the policy may not drive."""
        return self._bad > 0

    def bad(self) -> None:
        """Count a period without a usable action."""
        self._bad += 1
        self._good = 0
        self.outage_ticks += 1

    def good(self) -> bool:
        """Count a period with a usable action; return whether it may be sent."""
        if not self._bad:
            return True
        self._good += 1
        if self._good >= min(self._bad, self._recover_ticks):
            self._bad = self._good = self.outage_ticks = 0
            return True
        self.outage_ticks += 1
        return False


class DegradedModes:
    """Commands a robot without its policy, as the contract says.

    Args:
      contract: of the policy.
      robot: what is driven.
      limits: how long a command is held.

    Raises:
      PackageError: the contract's fallback is not known or does not fit.
    """

    def __init__(self, contract: PolicyContract, robot: Robot, limits: Limits) -> None:
        self._contract, self._robot = contract, robot
        dt_s = 1.0 / contract.rate_hz
        self._hold_ticks = max(int(limits.hold_s / dt_s), 2)
        spec = robot.action_spec
        self._safe = np.full(spec.size, np.nan)
        assert contract.action is not None
        for entry, value in zip(contract.action.entries, contract.safe_action, strict=True):
            if value is not None:
                self._safe[spec.names.index(entry.name)] = value
        name = contract.fallback
        self._fallback = make_fallback(name, spec, robot.observation_spec, dt_s) if name else None
        self._engaged = False

    def release(self) -> None:
        """Note that the policy drives again."""
        self._engaged = False

    def drive(self, reason: str, state: RobotState | None, last: Array, outage_ticks: int) -> tuple[str, Array]:
        """Send what the robot gets in this period; return the mode and the (n,) action applied.

        Args:
          reason: why the policy does not drive.
          state: a fresh state, None while there is none.
          last: (n,) action applied last.
          outage_ticks: periods since the policy drove.

        Raises:
          LinkError: the command did not reach the robot.
        """
        mode = self._contract.on_stale if reason in _STALE else self._contract.on_late
        if mode == "hold" and outage_ticks <= self._hold_ticks:
            return "hold", self._robot.send(Command(values=last)).values
        if mode == "hold":
            return self.stop()
        if mode == "fallback":
            action = self._by_fallback(state, last)
            if action is not None:
                return "fallback", self._robot.send(Command(values=action)).values
        return "safe", self._robot.send(Command(values=self._safe)).values

    def stop(self) -> tuple[str, Array]:
        """Stop the robot by its own means."""
        return "stop", self._robot.stop().values

    def _by_fallback(self, state: RobotState | None, last: Array) -> Array | None:
        assert self._fallback is not None
        if state is None and self._fallback.needs_state:
            self._engaged = False
            return None
        try:
            if not self._engaged:
                self._fallback.reset(state or _NOWHERE, last)
                self._engaged = True
            return self._fallback.act(state or _NOWHERE)
        except ObservationError:
            self._engaged = False
            return None


_NOWHERE = RobotState(time_s=float("nan"), joint_pos=np.zeros(0), joint_vel=np.zeros(0))
"""For fallbacks that need no state."""
