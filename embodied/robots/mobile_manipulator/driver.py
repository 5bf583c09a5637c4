"""The mobile manipulator in a physics world."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from embodied.robots.base import RobotSpec, SimRobot
from embodied.robots.mobile_manipulator.kinematics import GRIPPER_STIFFNESS_NPM
from embodied.robots.mobile_manipulator.spec import ARM, DEFAULT_FORCE_N, GRIPPER, HEAD, TORSO
from embodied_controllers.contract import RobotState
from embodied_controllers.gripper.force import GripperForceController, GripperSetpoint

if TYPE_CHECKING:
    from embodied.worlds.contract import PhysicsWorld

Array = NDArray[np.float64]
_BASE = ("base_x", "base_y", "base_yaw")
_REST = (
    "torso_lift",
    *(f"arm_{i}" for i in range(7)),
    "finger_left",
    "finger_right",
    "head_pan",
    "head_tilt",
)
_FINGER_DAMPING_NSPM = 20.0  # kv of the finger servos in model.xml


class MobileManipulator(SimRobot):
    """Turns base speeds into joint speeds along the heading, and the gripper's force into servo targets.

    Args:
      world: where it lives.
      name: instance name in the compiled scene.
      spec: its kind.
      env_index: environment of the batch.
    """

    def __init__(self, world: PhysicsWorld, name: str, spec: RobotSpec, env_index: int = 0) -> None:
        super().__init__(world, name, spec, env_index)
        model = world.scene.model
        joints = [model.joint(self.prefix + n) for n in (*_BASE, *_REST)]
        self._q = np.array([int(j.qposadr[0]) for j in joints])
        self._v = np.array([int(j.dofadr[0]) for j in joints])
        self._u = np.array([int(model.actuator(self.prefix + n).id) for n in (*_BASE, *_REST)])
        self._gripper = GripperForceController(GRIPPER_STIFFNESS_NPM)
        self._applied_at_s = -1.0
        self._targets = np.zeros(len(self._u))

    def reset(self) -> None:
        """Take the state after a world reset as the start."""
        self._applied_at_s = -1.0
        finger = self.world.qpos[self.env_index, self._q[11]]
        state = RobotState(time_s=0.0, joint_pos=np.array([float(finger)]), joint_vel=np.zeros(1))
        self._gripper.reset(state)
        super().reset()

    def read(self) -> RobotState:
        """Return the newest sample; ``gripper_force_n`` is the fingers' mean servo force, positive when closing."""
        qpos, qvel = self.world.qpos[self.env_index], self.world.qvel[self.env_index]
        q, v = qpos[self._q], qvel[self._v]
        yaw = float(q[2])
        cos, sin = math.cos(yaw), math.sin(yaw)
        target = self.world.ctrl[self.env_index, self._u[11]]
        force = GRIPPER_STIFFNESS_NPM * (float(q[11] + q[12]) / 2 - float(target))
        force += _FINGER_DAMPING_NSPM * float(v[11] + v[12]) / 2
        return RobotState(
            time_s=self.world.time_s(self.env_index),
            joint_pos=q[3:],
            joint_vel=v[3:],
            base_pos_world_m=np.array([q[0], q[1], 0.0]),
            base_quat_wxyz=np.array([math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2)]),
            base_vel_body_mps=np.array([cos * v[0] + sin * v[1], cos * v[1] - sin * v[0], 0.0]),
            base_angvel_body_radps=np.array([0.0, 0.0, v[2]]),
            signals={"gripper_force_n": force, "gripper_width_m": float(q[11] + q[12])},
        )

    def _apply(self, values: Array) -> None:
        qpos = self.world.qpos[self.env_index]
        yaw = float(qpos[self._q[2]])
        out = self._targets
        out[0], out[1], out[2] = values[0] * math.cos(yaw), values[0] * math.sin(yaw), values[1]
        out[3] = values[TORSO]
        out[4:11] = values[ARM]
        now_s = self.world.time_s(self.env_index)
        # Applying twice at one moment (a command and a refresh) must not move the gripper's reference twice.
        dt_s = self.spec.dt_ctrl_s if now_s > self._applied_at_s + 1e-9 else 0.0
        self._applied_at_s = now_s
        width_m, force_n = values[GRIPPER]
        finger_m = float(qpos[self._q[11]] + qpos[self._q[12]]) / 2
        setpoint = GripperSetpoint(width_m=float(width_m), force_n=float(force_n))
        out[11] = out[12] = self._gripper.target_m(finger_m, setpoint, dt_s)
        out[13:] = values[HEAD]
        self.world.ctrl[self.env_index, self._u] = out

    def _present(self) -> Array:
        q = self.world.qpos[self.env_index, self._q]
        width_m = float(q[11] + q[12])
        return np.array([0.0, 0.0, *q[3:11], max(width_m, 0.002), DEFAULT_FORCE_N, *q[13:]])
