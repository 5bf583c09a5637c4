"""The loopback robot that has exactly what a policy asks for, so that any package can be run and timed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from embodied_controllers.contract import ActionSpec, ObservationSpec
from embodied_deploy.package.contract import Entry, PolicyContract
from embodied_deploy.package.quantities import parse
from embodied_deploy.robots.loopback import LoopbackRobot
from embodied_deploy.robots.sense import Senses
from embodied_deploy.runtime.clock import Clock

Array = NDArray[np.float64]
Range = tuple[float, float]


def loopback_for(contract: PolicyContract, clock: Clock | None = None) -> LoopbackRobot:
    """Return a robot with the actions, joints, signals, cameras, ranges and goals of a policy.

    Limits are the ranges of the contract. Range readings stand at their greatest value (no echo), goals in the middle
    of what the policy was trained for, images are grey.

    Args:
      contract: of the policy.
      clock: see :class:`LoopbackRobot`.
    """
    entries = [e for t in contract.inputs if t.role == "observation" for e in t.entries]
    actions = {e.name: (e.low, e.high) for e in (contract.action.entries if contract.action else ())}
    for name, limits in _named(entries, "last_action").items():
        actions.setdefault(name, limits)
    joints = {**dict.fromkeys(_named(entries, "joint_vel"), (-np.pi, np.pi)), **_named(entries, "joint_pos")}
    action_spec = ActionSpec(
        names=tuple(actions), low=_ends(actions, 0), high=_ends(actions, 1), safe=np.zeros(len(actions))
    )
    observation_spec = ObservationSpec(
        joint_names=tuple(joints),
        joint_low=_ends(joints, 0),
        joint_high=_ends(joints, 1),
        joint_vel_max=np.full(len(joints), np.inf),
        signals=tuple(_named(entries, "signal")),
        cameras=contract.cameras,
        rate_hz=contract.rate_hz,
    )
    dt_s = 1.0 / contract.rate_hz
    return LoopbackRobot(
        action_spec, observation_spec, contract.robot, dt_s, clock=clock, senses=_senses(contract, entries)
    )


def _named(entries: list[Entry], source: str) -> dict[str, Range]:
    found = [(parse(e.name), e) for e in entries]
    return {c.key: (e.low, e.high) for c, e in found if c.source == source}


def _ends(limits: dict[str, Range], side: int) -> Array:
    return np.array([v[side] for v in limits.values()], dtype=np.float64)


def _senses(contract: PolicyContract, entries: list[Entry]) -> Senses:
    vectors: dict[tuple[str, str], Array] = {}
    for entry in entries:
        c = parse(entry.name)
        if c.source.startswith("to_goal_pos"):
            vectors.setdefault(("goal", "pos_world_m"), np.zeros(3))
        if c.source not in ("ranges", "goal"):
            continue
        least = 4 if "quat" in c.key else 3 if c.key.endswith("_xyyaw") or c.key.startswith(("pos_", "vel_")) else 0
        before = vectors.get((c.source, c.key), np.zeros(0))
        after = np.zeros(max(least, c.index + 1, len(before)))
        after[: len(before)] = before
        after[c.index] = entry.high if c.source == "ranges" else (entry.low + entry.high) / 2
        vectors[c.source, c.key] = after
    return Senses(
        ranges={key: v for (source, key), v in vectors.items() if source == "ranges"},
        goal={key: v for (source, key), v in vectors.items() if source == "goal"},
        images={t.source: np.full(t.shape, 128, dtype=np.uint8) for t in contract.inputs if t.role == "image"},
        tokens={t.source or t.name: np.zeros(t.shape, np.int64) for t in contract.inputs if t.role == "tokens"},
    )
