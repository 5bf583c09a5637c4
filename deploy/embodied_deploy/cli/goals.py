"""Set-points given on the command line, held against what the policy asks for before the robot is driven."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

from embodied_deploy.errors import UsageError

if TYPE_CHECKING:
    from embodied_deploy.package.contract import PolicyContract

_LARGEST = 1e9
"""Set-points are metres, radians and their like; more is a slip of the finger, and beyond 3e38 no float32."""


def read_goal(text: str) -> tuple[str, list[float]]:
    """Return key and values of ``KEY=V,V,V``, for an argument's ``type``."""
    key, _, values = text.partition("=")
    try:
        numbers = [float(v) for v in values.split(",")]
    except ValueError:
        numbers = []
    if not key or not numbers or not all(-_LARGEST <= v <= _LARGEST for v in numbers):
        raise argparse.ArgumentTypeError(f"{text!r}: expected KEY=V,V,V in finite numbers, such as pos_world_m=0,0,1")
    return key, numbers


def check_goal(contract: PolicyContract, goals: Iterable[tuple[str, list[float]]]) -> None:
    """Refuse set-points that the policy does not take, and such that are too short.

    Raises:
      UsageError: which, and what the policy takes.
    """
    takes = goal_sizes(contract)
    for key, values in goals:
        if key not in takes:
            known = ", ".join(f"{k} ({n} values)" for k, n in takes.items()) or "no set-point"
            raise UsageError(f"--goal {key}: {contract.name} takes {known}.")
        if len(values) < takes[key]:
            raise UsageError(f"--goal {key}: {len(values)} values, {contract.name} takes {takes[key]}.")


def goal_sizes(contract: PolicyContract) -> dict[str, int]:
    """Return how many values of each set-point the policy reads."""
    from embodied_deploy.package.quantities import parse

    sizes: dict[str, int] = {}
    for entry in (e for t in contract.tensors("observation") for e in t.entries):
        channel = parse(entry.name)
        if channel.source == "goal":
            sizes[channel.key] = max(sizes.get(channel.key, 0), channel.index + 1)
        elif channel.source.startswith("to_goal_pos"):
            sizes["pos_world_m"] = 3
    return sizes
