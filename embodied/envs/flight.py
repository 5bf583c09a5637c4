"""Many quadrotors in one native batch: actions in, observations and rewards out, whole arrays only.

One environment is a batch of one: the Gymnasium single and vector environments are both thin faces of this.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embodied.errors import WorldError
from embodied.robots.quadrotor.spec import QUADROTOR
from embodied.worlds.mujoco import MujocoBatchWorld
from embodied_controllers.quadrotor.dynamics import drag_force_world_n, rotation
from embodied_controllers.quadrotor.params import CRAZYFLIE_21
from embodied_scenes.builders import RobotMount, compile_scene
from embodied_scenes.drones.open_air import open_air

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
FlightTask: TypeAlias = Literal["hover", "waypoint"]
OBSERVATION_NAMES = (
    *(f"to_target_{a}_world_m" for a in "xyz"),
    *(f"to_next_target_{a}_world_m" for a in "xyz"),
    *(f"rot_world_body_{i}{j}" for i in range(3) for j in range(3)),
    *(f"vel_{a}_world_mps" for a in "xyz"),
    *(f"angvel_{a}_body_radps" for a in "xyz"),
    *(f"thrust_{i}_ratio" for i in range(1, 5)),
)
_LIMITS = np.array([10.0] * 6 + [1.0] * 9 + [20.0] * 3 + [60.0] * 3 + [1.0] * 4, dtype=np.float32)
OBSERVATION_LOW, OBSERVATION_HIGH = -_LIMITS, _LIMITS
NUM_STEPS = {"hover": 500, "waypoint": 1000}  # 10 s and 20 s at 50 Hz
NUM_WAYPOINTS = 6
SUBSTEPS = 10
REACHED_M = 0.25
_TARGET_Z_M = 1.5
_GROUND_M = 0.1  # one period of a fall above the floor: flights end before contacts, which would slow the batch
_STRAY_M = {"hover": 3.0, "waypoint": 7.0}


class FlightBatch:
    """State of ``num_envs`` flights.

    Action, per rotor: thrust from 0 (-1) to its maximum (+1), held for 20 ms; it passes the lag of the model. An entry
    that is not finite holds its last value. Observations: :data:`OBSERVATION_NAMES`, clipped to their limits.

    Task ``hover``: return to a point from up to a metre away, tilted and moving. Reward in [0, 1]:
    ``0.7/(1 + (2e)²) + 0.15 max(R₃₃, 0) + 0.15/(1 + ω²/10)``.
    Task ``waypoint``: visit six points in order. Reward: metres gained, plus 1 per point reached, minus 1 for a crash;
    the flight ends when the last point is reached.
    A flight also ends when the drone touches the ground, turns over or strays; it is cut at the time limit.

    Args:
      num_envs: flights side by side.
      task: ``hover`` or ``waypoint``.
      num_threads: threads of the batch; 0 takes all cores.
      wind_mps: (x, y, z) of a steady wind.
    """

    def __init__(
        self,
        num_envs: int,
        task: FlightTask = "hover",
        num_threads: int = 0,
        wind_mps: tuple[float, float, float] = (0.0, 0.0, 0.0),
    ) -> None:
        if task not in NUM_STEPS:
            raise WorldError(f"Flight task {task!r} is not known; use one of {sorted(NUM_STEPS)}.")
        scene = compile_scene(open_air(), [RobotMount(name="drone_0", kind="quadrotor", mjcf=QUADROTOR.mjcf)])
        self.task: FlightTask = task
        self.num_envs = num_envs
        self.world = MujocoBatchWorld(scene, num_envs, num_threads)
        self.period_s = SUBSTEPS * self.world.dt_sim_s
        self._wind = np.asarray(wind_mps, dtype=np.float64)
        self._qpos, self._qvel, self._ctrl = self.world.qpos, self.world.qvel, self.world.ctrl
        self._force = self.world.qfrc_applied
        self._keep = float(np.exp(-self.period_s / CRAZYFLIE_21.motor_tau_s))
        self._thrust = np.zeros((num_envs, 4))
        self._targets = np.zeros((num_envs, NUM_WAYPOINTS + 1, 3))
        self._leg = np.zeros(num_envs, dtype=np.int64)
        self._steps = np.zeros(num_envs, dtype=np.int64)
        self._rows = np.arange(num_envs)
        self._gap_m = np.zeros(num_envs)

    def reset(self, rng: np.random.Generator, env_indices: NDArray[np.int64] | None = None) -> None:
        """Begin new flights; nothing is recompiled.

        Args:
          rng: draws starts and targets.
          env_indices: which; None resets all.
        """
        ids = self._rows if env_indices is None else env_indices
        n = len(ids)
        self.world.clear(ids)
        pos = np.array([0.0, 0.0, _TARGET_Z_M]) + rng.uniform(-1.0, 1.0, (n, 3)) * (1.0, 1.0, 0.8)
        self._qpos[ids, :3] = pos
        self._qpos[ids, 3:7] = _small_tilts(rng, n)
        self._qvel[ids, :3] = rng.uniform(-0.5, 0.5, (n, 3))
        self._qvel[ids, 3:6] = rng.uniform(-1.0, 1.0, (n, 3))
        hover = CRAZYFLIE_21.hover_thrust_n
        self.world.act[ids] = hover
        self._ctrl[ids] = hover
        self._thrust[ids] = hover
        if self.task == "hover":
            self._targets[ids] = (0.0, 0.0, _TARGET_Z_M)
        else:
            self._targets[ids] = rng.uniform((-2.5, -2.5, 0.8), (2.5, 2.5, 2.6), (n, NUM_WAYPOINTS + 1, 3))
            self._targets[ids, -1] = self._targets[ids, -2]
        self._leg[ids] = 0
        self._steps[ids] = 0
        self._gap_m[ids] = np.linalg.norm(self._targets[ids, 0] - pos, axis=1)

    def step(self, actions: NDArray[np.floating]) -> tuple[NDArray[np.float64], Flags, Flags]:
        """Advance all flights by 20 ms.

        Args:
          actions: (num_envs, 4) in [-1, 1].

        Returns:
          Rewards (num_envs,), terminated and truncated flags (num_envs,).
        """
        command = (np.clip(actions, -1.0, 1.0) + 1.0) * (0.5 * CRAZYFLIE_21.thrust_max_n)
        command = np.where(np.isfinite(command), command, self._ctrl)
        self._ctrl[:] = command
        self._force[:, :3] = drag_force_world_n(self._qpos[:, 3:7], self._qvel[:, :3], self._wind)
        self.world.step(SUBSTEPS)
        self._thrust = command + self._keep * (self._thrust - command)
        self._steps += 1
        return self._judge()

    def observe(self) -> NDArray[np.float32]:
        """Return a new (num_envs, 25) array of observations."""
        out = np.empty((self.num_envs, len(OBSERVATION_NAMES)), dtype=np.float32)
        pos = self._qpos[:, :3]
        out[:, 0:3] = self._targets[self._rows, self._leg] - pos
        out[:, 3:6] = self._targets[self._rows, np.minimum(self._leg + 1, NUM_WAYPOINTS)] - pos
        out[:, 6:15] = rotation(self._qpos[:, 3:7]).reshape(-1, 9)
        out[:, 15:21] = self._qvel[:, :6]
        out[:, 21:25] = self._thrust * (2.0 / CRAZYFLIE_21.thrust_max_n) - 1.0
        return np.clip(out, OBSERVATION_LOW, OBSERVATION_HIGH, out=out)

    @property
    def targets_reached(self) -> NDArray[np.int64]:
        """(num_envs,) waypoints reached in this flight."""
        return self._leg.copy()

    @property
    def target_error_m(self) -> Array:
        """(num_envs,) distance to the present target."""
        return self._gap_m.copy()

    def _judge(self) -> tuple[NDArray[np.float64], Flags, Flags]:
        pos, quat, rate = self._qpos[:, :3], self._qpos[:, 3:7], self._qvel[:, 3:6]
        up = 1.0 - 2.0 * (quat[:, 1] ** 2 + quat[:, 2] ** 2)
        gap = np.sqrt(((self._targets[self._rows, self._leg] - pos) ** 2).sum(axis=1))
        crashed = (pos[:, 2] < _GROUND_M) | (up < -0.2)
        if self.task == "hover":
            spin = (rate**2).sum(axis=1)
            reward = 0.7 / (1.0 + 4.0 * gap**2) + 0.15 * np.maximum(up, 0.0) + 0.15 / (1.0 + spin / 10.0)
            ended = crashed | (gap > _STRAY_M["hover"])
            self._gap_m = gap
        else:
            reached = gap < REACHED_M
            reward = self._gap_m - gap + reached - crashed
            self._leg += reached
            finished = self._leg >= NUM_WAYPOINTS
            self._gap_m = np.sqrt(((self._targets[self._rows, self._leg] - pos) ** 2).sum(axis=1))
            ended = crashed | finished | (np.abs(pos).max(axis=1) > _STRAY_M["waypoint"])
        return reward, ended, (self._steps >= NUM_STEPS[self.task]) & ~ended


def _small_tilts(rng: np.random.Generator, n: int) -> Array:
    """Return (n, 4) quaternions: any heading, tilted by up to 0.3 rad about x and y."""
    yaw, roll, pitch = rng.uniform(-np.pi, np.pi, n) / 2, rng.uniform(-0.3, 0.3, n) / 2, rng.uniform(-0.3, 0.3, n) / 2
    cy, sy, cr, sr, cp, sp = np.cos(yaw), np.sin(yaw), np.cos(roll), np.sin(roll), np.cos(pitch), np.sin(pitch)
    return np.stack(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ],
        axis=1,
    )
