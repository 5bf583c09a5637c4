"""The flights of training: many quadrotors as arrays, each with its own weather and tired motors.

They are stepped by the rigid-body model of ``embodied_controllers.quadrotor.dynamics``, the one that cross-check tests
hold against the physics engine: it takes 4 µs for 20 ms of one flight where the engine's batch takes 75 µs. Scores are
always measured on the simulated robot in the engine (:mod:`embodied.train.flight.mission`).
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embodied.train.flight.channels import GOAL_M, PATHS, RATE_HZ, RATE_RADPS, SPEED_MPS, THRUST_MAX_N
from embodied_controllers.quadrotor.dynamics import rk4_step, rotation
from embodied_controllers.quadrotor.params import CRAZYFLIE_21

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]
FlightTask: TypeAlias = Literal["hover", "waypoint"]

WIND_MAX_MPS, GUST_MAX_MPS = 3.5, 1.0
"""Beyond the task's own weather (``drones/inspect``: 2.5 and 0.8 m/s), so that the policy has room on both sides."""
GAIN_COMMON, GAIN_EACH = 0.10, 0.03
NUM_STEPS = {"hover": 400, "waypoint": 600}
NUM_PRIVILEGED = 8
SUBSTEPS = 2
_GROUND_M, _STRAY_M = 0.1, {"hover": 4.0, "waypoint": 9.0}
_REACHED_M = 0.2  # a little inside what the task asks for
_GUST_KEEP = 0.98  # gusts forget themselves within a second
_LEGS = 4
_LIMITS = np.array([GOAL_M] * 3 + [1.001] * 9 + [SPEED_MPS] * 3 + [RATE_RADPS] * 3 + [THRUST_MAX_N] * 4)


class TrainingFlights:
    """Flights side by side. Action, per rotor: thrust from 0 (-1) to its maximum (+1), held for 20 ms.

    Mass and motor strength act alike (``a = gain · thrust / mass``), so one common gain within ±10 % stands for both;
    each rotor differs by another ±3 %. The vehicle does not know: its thrust signals follow the command.

    Args:
      num_envs: flights.
      task: ``hover``: return to a point and stay; ``waypoint``: the point moves on when it was reached, the last one is
        held.
    """

    def __init__(self, num_envs: int, task: FlightTask) -> None:
        self.num_envs, self.task = num_envs, task
        self.state = np.zeros((num_envs, 17))
        """(N, 17) as in ``embodied_controllers.quadrotor.dynamics``; thrusts are those that really act."""
        self.targets_m = np.zeros((num_envs, _LEGS + 1, 3))
        self.gain = np.ones((num_envs, 4))
        self.wind_world_mps = np.zeros((num_envs, 3))
        self._gust = np.zeros((num_envs, 3))
        self._gust_rms = np.zeros((num_envs, 1))
        self._believed_n = np.zeros((num_envs, 4))
        self._last_command = np.zeros((num_envs, 4))
        self._leg = np.zeros(num_envs, dtype=np.int64)
        self._steps = np.zeros(num_envs, dtype=np.int64)
        self._gap_m = np.zeros(num_envs)
        self._rows = np.arange(num_envs)
        self._rng = np.random.default_rng(0)
        self._keep = float(np.exp(-1.0 / (RATE_HZ * CRAZYFLIE_21.motor_tau_s)))

    def reset(self, rng: np.random.Generator, env_indices: Indices | None = None) -> None:
        """Begin new flights; ``rng`` also draws the gusts from now on."""
        self._rng = rng
        ids = self._rows if env_indices is None else env_indices
        n = len(ids)
        spread = (1.2, 1.2, 1.0) if self.task == "hover" else (2.5, 2.5, 1.0)
        state = np.zeros((n, 17))
        state[:, 0:3] = np.array([0.0, 0.0, 1.6]) + rng.uniform(-1.0, 1.0, (n, 3)) * spread
        state[:, 3:7] = _starts(rng, n)
        state[:, 7:10] = rng.uniform(-1.0, 1.0, (n, 3))
        state[:, 10:13] = rng.uniform(-1.5, 1.5, (n, 3))
        # from motors off, as after a reset of the robot, to hover
        thrust_n = CRAZYFLIE_21.hover_thrust_n * np.minimum(rng.uniform(-0.4, 1.2, (n, 1)).clip(0.0), 1.0)
        state[:, 13:17] = self._believed_n[ids] = self._last_command[ids] = thrust_n
        self.state[ids] = state
        angle, speed = rng.uniform(-np.pi, np.pi, n), rng.uniform(0.0, WIND_MAX_MPS, n)
        self.wind_world_mps[ids] = np.stack([speed * np.cos(angle), speed * np.sin(angle), np.zeros(n)], axis=1)
        self._gust_rms[ids] = rng.uniform(0.0, GUST_MAX_MPS, (n, 1))
        self._gust[ids] = self._gust_rms[ids] * rng.normal(size=(n, 3))
        common = rng.uniform(1.0 - GAIN_COMMON, 1.0 + GAIN_COMMON, (n, 1))
        self.gain[ids] = common * rng.uniform(1.0 - GAIN_EACH, 1.0 + GAIN_EACH, (n, 4))
        if self.task == "hover":
            self.targets_m[ids] = (0.0, 0.0, 1.6)
        else:
            self.targets_m[ids] = rng.uniform((-2.6, -2.6, 0.7), (2.6, 2.6, 2.7), (n, _LEGS + 1, 3))
        self._leg[ids] = 0
        self._steps[ids] = 0
        self._gap_m[ids] = np.linalg.norm(self.targets_m[ids, 0] - state[:, 0:3], axis=1)

    def desynchronise(self, rng: np.random.Generator) -> None:
        """Let the flights end at different times."""
        self._steps[:] = rng.integers(0, NUM_STEPS[self.task] // 2, self.num_envs)

    def step(self, actions: NDArray[np.floating]) -> tuple[Array, Flags, Flags]:
        """Advance all flights by 20 ms.

        Args:
          actions: (num_envs, 4) in [-1, 1].

        Returns:
          Rewards (num_envs,), ended and cut flags (num_envs,).
        """
        command = (np.clip(actions, -1.0, 1.0) + 1.0) * (0.5 * THRUST_MAX_N)
        noise = self._rng.normal(size=self._gust.shape)
        self._gust = _GUST_KEEP * self._gust + self._gust_rms * np.sqrt(1.0 - _GUST_KEEP**2) * noise
        wind = self.wind_world_mps + self._gust * (1.0, 1.0, 0.5)
        for _ in range(SUBSTEPS):
            dt_s = 1.0 / (RATE_HZ * SUBSTEPS)
            self.state = rk4_step(self.state, command * self.gain, dt_s, wind_world_mps=wind)
        self._believed_n = command + self._keep * (self._believed_n - command)
        self._steps += 1
        jerk = np.abs(command - self._last_command).mean(axis=1) / THRUST_MAX_N
        self._last_command = command
        return self._judge(jerk)

    def observe(self) -> NDArray[np.float32]:
        """Return (num_envs, 22): the observation of the policy, in the order of :data:`channels.PATHS`."""
        out = np.empty((self.num_envs, len(PATHS)))
        out[:, 0:3] = self.targets_m[self._rows, self._leg] - self.state[:, :3]
        out[:, 3:12] = rotation(self.state[:, 3:7]).reshape(-1, 9)
        out[:, 12:18] = self.state[:, 7:13]
        out[:, 18:22] = self._believed_n
        return np.clip(out, -_LIMITS, _LIMITS).astype(np.float32)

    def privileged(self) -> NDArray[np.float32]:
        """Return (num_envs, 8) what only the critic sees: wind (3), gains less one (4), share of the flight done."""
        done = self._steps[:, None] / NUM_STEPS[self.task]
        return np.concatenate([self.wind_world_mps + self._gust, self.gain - 1.0, done], axis=1).astype(np.float32)

    @property
    def target_error_m(self) -> Array:
        """(num_envs,) distance to the present target."""
        return self._gap_m.copy()

    def _judge(self, jerk: Array) -> tuple[Array, Flags, Flags]:
        pos, quat, rate = self.state[:, :3], self.state[:, 3:7], self.state[:, 10:13]
        up = 1.0 - 2.0 * (quat[:, 1] ** 2 + quat[:, 2] ** 2)
        gap = np.sqrt(((self.targets_m[self._rows, self._leg] - pos) ** 2).sum(axis=1))
        near = 0.5 * np.exp(-gap) + 0.5 * np.exp(-((gap / 0.12) ** 2))
        calm = 0.02 * np.minimum((rate**2).sum(axis=1), 20.0) + 0.25 * jerk
        reward = 0.05 * (near - calm)
        if self.task == "waypoint":
            reached = (gap < _REACHED_M) & (self._leg < _LEGS)
            reward += 0.5 * (self._gap_m - gap) + 0.5 * reached
            self._leg += reached
            gap = np.sqrt(((self.targets_m[self._rows, self._leg] - pos) ** 2).sum(axis=1))
        self._gap_m = gap
        ended = (pos[:, 2] < _GROUND_M) | (up < -0.2) | (gap > _STRAY_M[self.task])
        reward -= 2.0 * ended
        return reward, ended, (self._steps >= NUM_STEPS[self.task]) & ~ended


def _starts(rng: np.random.Generator, n: int) -> Array:
    """Return (n, 4) quaternions: any heading, tilted by up to 0.5 rad about a horizontal axis."""
    yaw, axis = rng.uniform(-np.pi, np.pi, n) / 2, rng.uniform(-np.pi, np.pi, n)
    tilt = rng.uniform(0.0, 0.5, n) / 2
    a, b, c, s = np.sin(tilt) * np.cos(axis), np.sin(tilt) * np.sin(axis), np.cos(yaw), np.sin(yaw)
    w = np.cos(tilt)
    return np.stack([w * c, a * c + b * s, b * c - a * s, w * s], axis=1)  # (w, a, b, 0) ⊗ (c, 0, 0, s)
