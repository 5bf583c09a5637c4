"""The driver of robots read from files: one action entry per actuator, in the actuator's own unit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from embodied.robots.base import RobotSpec, SimRobot
from embodied.worlds.contract import PhysicsWorld
from embodied_controllers.contract import RobotState

Array = NDArray[np.float64]


class GenericRobot(SimRobot):
    """Reads joints and the root's pose, writes actuator inputs as they come."""

    def __init__(self, world: PhysicsWorld, name: str, spec: RobotSpec, env_index: int = 0) -> None:
        super().__init__(world, name, spec, env_index)
        model = world.scene.model
        joints = [model.joint(f"{self.prefix}{j}") for j in spec.observation_spec.joint_names]
        self._qpos = np.array([int(j.qposadr[0]) for j in joints], dtype=np.int64)
        self._qvel = np.array([int(j.dofadr[0]) for j in joints], dtype=np.int64)
        self._ctrl = np.array([model.actuator(f"{self.prefix}{a}").id for a in spec.action_spec.names], dtype=np.int64)
        self._servo_joint = [int(model.actuator_trnid[a, 0]) for a in self._ctrl]
        self._servo_address = [int(model.jnt_qposadr[j]) for j in self._servo_joint]

    def read(self) -> RobotState:
        """Return joints and base pose; base velocities are left at zero for fixed roots."""
        world, env = self.world, self.env_index
        return RobotState(
            time_s=world.time_s(env),
            joint_pos=world.qpos[env, self._qpos].copy(),
            joint_vel=world.qvel[env, self._qvel].copy(),
            base_pos_world_m=world.body_pos_world_m[env, self.root_body].copy(),
            base_quat_wxyz=world.body_quat_wxyz[env, self.root_body].copy(),
        )

    def _apply(self, values: Array) -> None:
        self.world.ctrl[self.env_index, self._ctrl] = values

    def _present(self) -> Array:
        qpos = self.world.qpos[self.env_index]
        holds = np.isnan(self.action_spec.safe)
        present = np.array([qpos[a] for a in self._servo_address])
        return np.clip(np.where(holds, present, 0.0), self.action_spec.low, self.action_spec.high)
