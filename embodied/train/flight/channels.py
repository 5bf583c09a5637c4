"""What a flight policy sees and puts out: the same for training, contract and robot. No torch."""

from __future__ import annotations

from embodied.robots.quadrotor.spec import QUADROTOR
from embodied_controllers.quadrotor.params import CRAZYFLIE_21
from embodied_deploy.package.contract import TensorSpec
from embodied_deploy.package.quantities import action_entry, observation_entry

RATE_HZ = 50.0
THRUST_MAX_N = CRAZYFLIE_21.thrust_max_n
GOAL_M, SPEED_MPS, RATE_RADPS = 10.0, 20.0, 60.0  # what the flights of training are cut to
_RANGES = (
    *((f"to_goal_pos_world_m.{a}", -GOAL_M, GOAL_M) for a in "xyz"),
    *((f"base_rot_world_body.{i}{j}", -1.001, 1.001) for i in range(3) for j in range(3)),
    *((f"base_vel_world_mps.{a}", -SPEED_MPS, SPEED_MPS) for a in "xyz"),
    *((f"base_angvel_body_radps.{a}", -RATE_RADPS, RATE_RADPS) for a in "xyz"),
    *((f"signal.thrust_{i}_n", 0.0, THRUST_MAX_N) for i in range(1, 5)),
)
PATHS = tuple(path for path, _, _ in _RANGES)
"""Channels of the observation, in order; the thrusts are those that the vehicle believes to have."""


def observation_spec() -> TensorSpec:
    """Return the input of the graph."""
    entries = tuple(observation_entry(*row) for row in _RANGES)
    return TensorSpec(name="observation", role="observation", dtype="float32", shape=(len(entries),), entries=entries)


def action_spec() -> TensorSpec:
    """Return the output of the graph: the thrust of each rotor."""
    robot = QUADROTOR.action_spec
    rows = zip(robot.names, robot.low, robot.high, strict=True)
    entries = tuple(action_entry(name, float(low), float(high)) for name, low, high in rows)
    return TensorSpec(name="action", role="action", dtype="float32", shape=(len(entries),), entries=entries)
