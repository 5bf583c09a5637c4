"""A simulated robot as the robot's side of a link, or of an edge loop in lockstep."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from embodied.robots.base import SimRobot
from embodied_controllers.contract import ActionSpec, Command, ObservationSpec, RobotState
from embodied_deploy.robots.sense import Senses

Array = NDArray[np.float64]


class ServedRobot:
    """A simulated robot that steps its world one control period at a time.

    Serve it with ``RobotServer(served, endpoint, watchdog_s, step=served.step)``, or give :meth:`step` as often as the
    policy's period demands to the loop of ``embodied_deploy.runtime``.

    Args:
      robot: in a world that nobody else steps.
      senses: called for what the robot senses beyond its state, such as images and the task's goal.

    Attributes:
      applied: actions applied so far, in order, without those of :meth:`stop`.
    """

    def __init__(self, robot: SimRobot, senses: Callable[[], Senses] = Senses) -> None:
        self._robot, self._senses = robot, senses
        self._substeps = round(robot.dt_ctrl_s / robot.world.dt_sim_s)
        self._is_fresh = True
        self.applied: list[Array] = []

    @property
    def name(self) -> str:
        """Instance name."""
        return self._robot.name

    @property
    def kind(self) -> str:
        """Robot kind."""
        return self._robot.kind

    @property
    def action_spec(self) -> ActionSpec:
        """Order, units and limits of a command."""
        return self._robot.action_spec

    @property
    def observation_spec(self) -> ObservationSpec:
        """Order, units and limits of a state."""
        return self._robot.observation_spec

    @property
    def dt_ctrl_s(self) -> float:
        """Period at which commands are expected."""
        return self._robot.dt_ctrl_s

    @property
    def last_action(self) -> Array:
        """(n,) the command applied last, a copy."""
        return self._robot.last_action

    def read(self) -> RobotState:
        """Return the newest sample."""
        return self._robot.read()

    def sense(self) -> Senses:
        """Return what the robot senses beyond its state."""
        return self._senses()

    def send(self, command: Command) -> Command:
        """Apply a command; it acts from the next :meth:`step` on."""
        done = self._robot.send(command)
        self.applied.append(done.values)
        self._is_fresh = True
        return done

    def stop(self) -> Command:
        """Bring the robot to its safe state."""
        self._is_fresh = True
        return self._robot.stop()

    def step(self) -> None:
        """Let one control period pass."""
        if not self._is_fresh:
            self._robot.refresh()
        self._is_fresh = False
        self._robot.world.step(self._substeps)
