"""The robot contract: everything above it is the same code in simulation, in the loop and on hardware."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from embodied_controllers.contract import ActionSpec, Command, ObservationSpec, RobotState


@runtime_checkable
class Robot(Protocol):
    """A body that can be read, commanded and stopped.

    Specs are readable before :meth:`read` works, so that policies can be checked against a robot that is switched off.
    """

    @property
    def name(self) -> str:
        """Instance name, for instance ``amr_0``."""
        ...

    @property
    def kind(self) -> str:
        """Robot kind in the registry, for instance ``mobile_manipulator``."""
        ...

    @property
    def action_spec(self) -> ActionSpec:
        """Order, units and limits of a command."""
        ...

    @property
    def observation_spec(self) -> ObservationSpec:
        """Order, units and limits of a state."""
        ...

    @property
    def dt_ctrl_s(self) -> float:
        """Period at which commands are expected."""
        ...

    def read(self) -> RobotState:
        """Return the newest sample."""
        ...

    def send(self, command: Command) -> Command:
        """Apply a command and return the one really applied, after clipping; entries that are NaN hold their value."""
        ...

    def stop(self) -> Command:
        """Bring the robot to its safe state and return the command that does it."""
        ...
