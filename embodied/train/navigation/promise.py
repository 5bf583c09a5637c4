"""The contract of the navigation policies: names, units, limits, rates. Loads no torch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from embodied.robots.amr.spec import AMR
from embodied.train.navigation.scanner import NUM_RANGES, RANGE_MAX_M
from embodied.train.navigation.task import DT_S, RATE_HZ
from embodied.train.navigation.teacher import SPEED_MAX_MPS, YAW_RATE_MAX_RADPS
from embodied_deploy.package.contract import PolicyContract, TensorSpec, Training
from embodied_deploy.package.quantities import action_entry, observation_entry

NUM_HIDDEN = 64
REVERSE_MPS = 0.2
NUM_INPUTS = 4 + NUM_RANGES
_GOAL_MAX_M = 14.0
ENTRIES = (
    observation_entry("to_goal_pos_body_m.x", -_GOAL_MAX_M, _GOAL_MAX_M),
    observation_entry("to_goal_pos_body_m.y", -_GOAL_MAX_M, _GOAL_MAX_M),
    observation_entry("base_vel_body_mps.x", -0.5, 1.0),
    observation_entry("base_angvel_body_radps.z", -1.6, 1.6),
    *(observation_entry(f"ranges.lidar.{i}", 0.0, RANGE_MAX_M) for i in range(NUM_RANGES)),
)
ACTIONS = (
    action_entry("forward_mps", -REVERSE_MPS, SPEED_MAX_MPS),
    action_entry("yaw_rate_radps", -YAW_RATE_MAX_RADPS, YAW_RATE_MAX_RADPS),
)


def navigation_contract(name: str, training: Training, *, is_recurrent: bool) -> PolicyContract:
    """Return the contract.

    Args:
      name: of the policy.
      training: where the weights come from.
      is_recurrent: whether the graph carries a hidden state.
    """
    observation = TensorSpec(
        name="observation", role="observation", dtype="float32", shape=(NUM_INPUTS,), entries=ENTRIES
    )
    action = TensorSpec(name="action", role="action", dtype="float32", shape=(len(ACTIONS),), entries=ACTIONS)
    hidden, next_hidden = (
        TensorSpec(name=n, role="state", dtype="float32", shape=(NUM_HIDDEN,), source=s)
        for n, s in (("hidden", "next_hidden"), ("next_hidden", ""))
    )
    return PolicyContract(
        name=name,
        version="1.0.0",
        kind="controller",
        robot=AMR.kind,
        rate_hz=RATE_HZ,
        inputs=(observation, hidden) if is_recurrent else (observation,),
        outputs=(action, next_hidden) if is_recurrent else (action,),
        safe_action=(0.0, 0.0),
        latency_budget_s=0.25 * DT_S,
        max_observation_age_s=DT_S,
        on_stale="safe",
        on_late="safe",  # a base that keeps its speed without looking drives into things
        training=training,
    )


def observation_rows(
    to_goal_body_m: NDArray[np.float64], vel_body: NDArray[np.float64], ranges_m: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Return (n, NUM_INPUTS) observations in the order of :data:`ENTRIES`.

    Args:
      to_goal_body_m: (n, 2).
      vel_body: (n, 3) forward, sideways [m/s] and turning rate [rad/s].
      ranges_m: (n, NUM_RANGES).
    """
    return np.column_stack([to_goal_body_m, vel_body[:, 0], vel_body[:, 2], ranges_m]).astype(np.float32)
