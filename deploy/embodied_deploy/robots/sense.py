"""What a robot senses beyond its own state: ranges, images, and the goal that its caller set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from embodied_controllers.contract import RobotState
from embodied_deploy.policy.sample import Sample
from embodied_deploy.robot import Robot

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Senses:
    """The parts of a :class:`embodied_deploy.policy.sample.Sample` that are not the robot's own state.

    Attributes:
      ranges: named range readings [m].
      images: camera name to (H, W, 3) uint8 rgb.
      goal: named set-points.
      tokens: name to int64 tokens.
    """

    ranges: Mapping[str, Array] = field(default_factory=dict)
    images: Mapping[str, NDArray[np.uint8]] = field(default_factory=dict)
    goal: Mapping[str, Array] = field(default_factory=dict)
    tokens: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)


@runtime_checkable
class SensingRobot(Protocol):
    """A robot with more senses than its state; :meth:`sense` belongs to the sample that ``read`` returned last."""

    def sense(self) -> Senses:
        """Return the newest readings."""
        ...


NOTHING = Senses()


def senses_of(robot: Robot) -> Senses:
    """Return what a robot senses beyond its state, nothing for one that senses nothing."""
    # Not isinstance: for a protocol that takes longer than the reading.
    sense: Callable[[], Senses] | None = getattr(robot, "sense", None)
    return NOTHING if sense is None else sense()


def sample_of(robot: Robot, state: RobotState, last_action: Array, goal: Mapping[str, Array]) -> Sample:
    """Return the sample for a policy.

    Args:
      robot: it is asked for its senses.
      state: read from it just now.
      last_action: (n,) action applied last.
      goal: set-points of the caller; they win over those that the robot's side sends.
    """
    senses = senses_of(robot)
    return Sample(
        state=state,
        last_action=last_action,
        goal={**senses.goal, **goal} if senses.goal else goal,
        ranges=senses.ranges,
        images=senses.images,
        tokens=senses.tokens,
    )


def first_action(robot: Robot) -> Array:
    """Return (n,) the action in force before the first command: the robot's own record, else its safe action.

    Entries that the safe action holds count as zero.
    """
    known = getattr(robot, "last_action", None)
    if known is not None:
        return np.array(known, dtype=np.float64)
    return np.nan_to_num(robot.action_spec.safe, nan=0.0)
