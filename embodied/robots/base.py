"""What a robot is before it is anywhere, and how every simulated robot clips, holds and stops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from embodied.errors import RobotError, nearest_hint
from embodied_controllers.contract import ActionSpec, Command, ObservationSpec, RobotState

if TYPE_CHECKING:
    from embodied.worlds.contract import PhysicsWorld

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotSpec:
    """A robot kind: readable without an engine.

    Attributes:
      kind: word used by skills to say which robots can run them.
      mjcf: path of the model file.
      driver: ``module:Class`` of the :class:`SimRobot` subclass.
      home: joint name (without prefix) to position at the start of an episode, rad or m.
      root: ``free``, ``planar`` (slide x, slide y, hinge yaw) or ``fixed`` (mounted where the task says).
      radius_m: radius of the floor disc that holds the robot in its carry posture.
      height_m: z of the robot's root at the start (0 for planar bases, which carry it in the model).
      card: where the numbers come from and what the robot cannot do.
    """

    kind: str
    mjcf: Path
    driver: str
    action_spec: ActionSpec
    observation_spec: ObservationSpec
    dt_ctrl_s: float
    home: Mapping[str, float] = field(default_factory=dict)
    root: str = "planar"
    radius_m: float = 0.3
    height_m: float = 0.0
    card: str = ""


class SimRobot(ABC):
    """A robot in a physics world; satisfies the robot contract of ``embodied_deploy.robot``.

    Subclasses say how an action becomes actuator inputs (:meth:`_apply`) and how a sample is read (:meth:`read`).
    A command entry that is not finite holds the value of the last command, and is counted in ``held_entries``;
    clipped entries are counted in ``clipped_entries``.

    Args:
      world: where it lives.
      name: instance name in the compiled scene.
      spec: its kind.
      env_index: environment of the batch.
    """

    def __init__(self, world: PhysicsWorld, name: str, spec: RobotSpec, env_index: int = 0) -> None:
        robots = world.scene.info.robots
        if name not in robots:
            raise RobotError(f"No robot {name!r} in scene {world.scene.info.id!r}. {nearest_hint(name, robots)}")
        self.world = world
        self.name = name
        self.spec = spec
        self.env_index = env_index
        self.prefix = robots[name].prefix
        self.root_body = int(world.scene.model.body(robots[name].root).id)
        self.clipped_entries = 0
        self.held_entries = 0
        self._last = np.zeros(spec.action_spec.size)
        ratio = spec.dt_ctrl_s / world.dt_sim_s
        if abs(ratio - round(ratio)) > 1e-6 or ratio < 1:
            raise RobotError(
                f"Robot {name!r} wants a command every {spec.dt_ctrl_s} s, which is no whole multiple of the world's "
                f"step of {world.dt_sim_s} s. Choose a preset whose step divides it."
            )

    @property
    def kind(self) -> str:
        """Robot kind."""
        return self.spec.kind

    @property
    def action_spec(self) -> ActionSpec:
        """Order, units and limits of a command."""
        return self.spec.action_spec

    @property
    def observation_spec(self) -> ObservationSpec:
        """Order, units and limits of a state."""
        return self.spec.observation_spec

    @property
    def dt_ctrl_s(self) -> float:
        """Period at which commands are expected."""
        return self.spec.dt_ctrl_s

    @property
    def last_action(self) -> Array:
        """(n,) the command applied last, a copy."""
        return self._last.copy()

    def reset(self) -> None:
        """Take the state after a world reset as the start: hold it, counters at zero."""
        self.clipped_entries = self.held_entries = 0
        self._last = self._present()
        self._apply(self._last)

    def send(self, command: Command) -> Command:
        """Apply a command after clipping; return the one really applied.

        Raises:
          RobotError: the vector has the wrong length; nothing is applied then.
        """
        values = np.asarray(command.values, dtype=np.float64)
        if values.shape != (self.action_spec.size,):
            raise RobotError(
                f"{self.name}: a command has {self.action_spec.size} entries {self.action_spec.names}, "
                f"got shape {values.shape}."
            )
        applied = self.action_spec.clip(values)
        holds = np.isnan(applied)
        self.held_entries += int(holds.sum())
        applied = np.where(holds, self._last, applied)
        self.clipped_entries += int(np.count_nonzero((applied != values) & ~holds))
        self._last = applied
        self._apply(applied)
        return Command(values=applied.copy())

    def stop(self) -> Command:
        """Send the safe action: at rest, everything else held."""
        return self.send(Command(values=self.action_spec.safe))

    def refresh(self) -> None:
        """Re-apply the last command where its actuator inputs depend on the state (called every control period)."""
        self._apply(self._last)

    @abstractmethod
    def read(self) -> RobotState:
        """Return the newest sample."""

    @abstractmethod
    def _apply(self, values: Array) -> None:
        """Write actuator inputs for (n,) clipped action values."""

    @abstractmethod
    def _present(self) -> Array:
        """Return the (n,) action that holds the robot where it is after a reset."""


def make_robot(world: PhysicsWorld, name: str, spec: RobotSpec, env_index: int = 0) -> SimRobot:
    """Build the driver of a robot in a world."""
    import importlib

    module, _, attribute = spec.driver.partition(":")
    driver: type[SimRobot] = getattr(importlib.import_module(module), attribute)
    return driver(world, name, spec, env_index)


def robot_start(name: str, spec: RobotSpec) -> dict[str, float]:
    """Return the home posture of a robot as full joint names, for ``Start.joint_pos``."""
    return {f"{name}/{joint}": value for joint, value in spec.home.items()}
