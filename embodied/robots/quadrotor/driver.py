"""The quadrotor in a physics world: rotor thrusts in, state out, wind as a force on the body."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from embodied.robots.base import RobotSpec, SimRobot
from embodied.worlds.contract import PhysicsWorld
from embodied.worlds.wind import Wind
from embodied_controllers.contract import Command, RobotState
from embodied_controllers.quadrotor.controller import FlightController, FlightSetpoint
from embodied_controllers.quadrotor.params import CRAZYFLIE_21, QuadrotorParams

Array = NDArray[np.float64]
_OFF_N = 1e-3  # all rotors below this: the motors are off


class Quadrotor(SimRobot):
    """Action: four rotor thrusts [N]; they pass the first-order lag of the model.

    Linear drag against the moving air acts on the body and is renewed with every command. The air's velocity comes
    from the states ``wind_x_mps``, ``wind_y_mps``, ``gust_mps`` and ``gust_seed`` of the scene's windsock (an entity of
    category ``windsock``); without one the air stands still.

    ``stop`` in the air holds the position where it was called first; on the ground it keeps the motors off.

    Attributes:
      autopilot: the flight controller of this vehicle. Skills share it, so that what its integral learned about the
        wind survives from one skill to the next.
    """

    params: QuadrotorParams = CRAZYFLIE_21

    def __init__(self, world: PhysicsWorld, name: str, spec: RobotSpec, env_index: int = 0) -> None:
        super().__init__(world, name, spec, env_index)
        model = world.scene.model
        joint = model.joint(f"{self.prefix}root")
        self._qpos_at, self._dof_at = int(joint.qposadr[0]), int(joint.dofadr[0])
        first = int(model.actuator(f"{self.prefix}thrust_1").id)
        self._ctrl_at = slice(first, first + 4)
        self._acc_at = int(model.sensor(f"{self.prefix}imu_acc").adr[0])
        self._windsock = next((e.name for e in world.scene.info.entities.values() if e.category == "windsock"), None)
        self._wind = Wind()
        self._thrust_n = [0.0] * 4
        self._thrust_time_s = 0.0
        self._hold: FlightSetpoint | None = None
        self.autopilot = FlightController(self.params)

    def reset(self) -> None:
        """Motors off, autopilot fresh."""
        self._thrust_n = [0.0] * 4
        self._thrust_time_s = self.world.time_s(self.env_index)
        self._hold = None
        super().reset()
        self.autopilot.reset(self.read())

    def read(self) -> RobotState:
        """Return pose, velocities and thrusts of the vehicle."""
        q, v = self._qpos_at, self._dof_at
        qpos, qvel = self.world.qpos[self.env_index], self.world.qvel[self.env_index]
        quat = qpos[q + 3 : q + 7].copy()
        acc = self.world.sensordata[self.env_index, self._acc_at : self._acc_at + 3].tolist()
        t1, t2, t3, t4 = self._thrusts()
        empty = np.zeros(0)
        return RobotState(
            time_s=self.world.time_s(self.env_index),
            joint_pos=empty,
            joint_vel=empty,
            base_pos_world_m=qpos[q : q + 3].copy(),
            base_quat_wxyz=quat,
            # a free joint's linear velocity is in the world frame, its angular velocity in the body frame
            base_vel_body_mps=_to_body(quat, qvel[v : v + 3]),
            base_angvel_body_radps=qvel[v + 3 : v + 6].copy(),
            signals={
                "thrust_1_n": t1, "thrust_2_n": t2, "thrust_3_n": t3, "thrust_4_n": t4,
                "acc_x_body_mps2": acc[0], "acc_y_body_mps2": acc[1], "acc_z_body_mps2": acc[2],
            },
        )  # fmt: skip

    def send(self, command: Command) -> Command:
        """Apply thrusts after clipping; return those really applied."""
        self._hold = None
        return super().send(command)

    def stop(self) -> Command:
        """Hold the position in the air; keep the motors off on the ground."""
        if float(self._last.max()) < _OFF_N:
            return super().send(Command(values=np.zeros(4)))
        state = self.read()
        if self._hold is None:
            x, y, z = state.base_pos_world_m.tolist()
            self._hold = FlightSetpoint(pos_world_m=(x, y, z), yaw_rad=yaw_of(state.base_quat_wxyz))
        return super().send(Command(values=self.autopilot.step(state, self._hold, self.dt_ctrl_s)))

    def _apply(self, values: Array) -> None:
        self._advance_thrusts()
        self.world.ctrl[self.env_index, self._ctrl_at] = values
        self.world.qfrc_applied[self.env_index, self._dof_at : self._dof_at + 3] = self._drag_world_n()

    def _present(self) -> Array:
        return np.zeros(4)

    def _drag_world_n(self) -> tuple[float, float, float]:
        v = self.world.qvel[self.env_index, self._dof_at : self._dof_at + 3].tolist()
        quat = self.world.qpos[self.env_index, self._qpos_at + 3 : self._qpos_at + 7]
        wind = self._air().velocity_world_mps(self.world.time_s(self.env_index))
        dx, _, dz = self.params.drag_body_nspm
        ax, ay, az = wind[0] - v[0], wind[1] - v[1], wind[2] - v[2]
        # D is isotropic in the rotor plane, so R D Rᵀ a = d_xy a + (d_z − d_xy)(n·a) n with n the thrust axis
        w, x, y, z = quat.tolist()
        nx, ny, nz = 2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)
        extra = (dz - dx) * (nx * ax + ny * ay + nz * az)
        return dx * ax + extra * nx, dx * ay + extra * ny, dx * az + extra * nz

    def _air(self) -> Wind:
        if self._windsock is None:
            return self._wind
        keys = ("wind_x_mps", "wind_y_mps", "gust_mps", "gust_seed")
        x, y, gust, seed = (self.world.state(self._windsock, k, 0.0, self.env_index) for k in keys)
        if (x, y, 0.0) != self._wind.mean_world_mps or gust != self._wind.gust_mps or seed != self._wind.seed:
            self._wind = Wind(mean_world_mps=(float(x), float(y), 0.0), gust_mps=float(gust), seed=int(seed))
        return self._wind

    def _advance_thrusts(self) -> None:
        """Carry the thrusts through their lag up to now, under the command that was in force."""
        self._thrust_n = list(self._thrusts())
        self._thrust_time_s = self.world.time_s(self.env_index)

    def _thrusts(self) -> tuple[float, ...]:
        dt_s = self.world.time_s(self.env_index) - self._thrust_time_s
        keep = float(np.exp(-max(dt_s, 0.0) / self.params.motor_tau_s))
        sent = self.world.ctrl[self.env_index, self._ctrl_at].tolist()
        return tuple(u + keep * (f - u) for f, u in zip(self._thrust_n, sent, strict=True))


def yaw_of(quat_wxyz: Array) -> float:
    """Return the heading of a (4,) scalar-first quaternion, rad."""
    w, x, y, z = quat_wxyz.tolist()
    return float(np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))


def _to_body(quat_wxyz: Array, vec_world: Array) -> Array:
    w, x, y, z = quat_wxyz.tolist()
    a, b, c = vec_world.tolist()
    # v' = v − 2w (u × v) + 2 u × (u × v), the inverse rotation, with u = (x, y, z)
    tx, ty, tz = 2 * (y * c - z * b), 2 * (z * a - x * c), 2 * (x * b - y * a)
    return np.array(
        [
            a - w * tx + y * tz - z * ty,
            b - w * ty + z * tx - x * tz,
            c - w * tz + x * ty - y * tx,
        ]
    )
