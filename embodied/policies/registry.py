"""The registry of shipped policies. Add yours at the end; reading it imports nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from embodied.registry import Registry

if TYPE_CHECKING:
    from embodied.policies.shipped import ShippedPolicy

POLICIES: Registry[ShippedPolicy] = Registry("policies")


def shipped(name: str, precision: str = "fp32") -> Path:
    """Return the package file of a shipped policy.

    Args:
      name: its registered name, such as ``quad-waypoint@1``, or without ``@version`` for the newest.
      precision: one of its precisions.

    Raises:
      UnknownNameError: no such policy or precision; the message holds the nearest ones.
    """
    return POLICIES.get(name).path(precision)


POLICIES.add(
    "quad-hover@1",
    "embodied.policies.shipped:QUAD_HOVER",
    summary="quadrotor: hold a point in wind, 50 Hz, MLP",
    tags=("quadrotor", "controller"),
)
POLICIES.add(
    "quad-waypoint@1",
    "embodied.policies.shipped:QUAD_WAYPOINT",
    summary="quadrotor: fly to points in wind, 50 Hz, MLP",
    tags=("quadrotor", "controller"),
)
POLICIES.add(
    "reach-and-grasp@1",
    "embodied.policies.shipped:REACH_AND_GRASP",
    summary="mobile manipulator: take a thing from a table by the wrist camera, 10 Hz, CNN, chunks of actions",
    tags=("mobile_manipulator", "controller"),
)
POLICIES.add(
    "base-navigation@1",
    "embodied.policies.shipped:BASE_NAVIGATION",
    summary="mobile robot: drive to a goal through a furnished room by its scanner, 10 Hz, GRU",
    tags=("amr", "controller"),
)
POLICIES.add(
    "compact-planner@1",
    "embodied.policies.shipped:COMPACT_PLANNER",
    summary="mobile manipulator: head camera image and instruction to the next skill, in a home",
    tags=("mobile_manipulator", "planner"),
)
