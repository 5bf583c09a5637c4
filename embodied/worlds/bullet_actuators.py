"""MuJoCo's actuators on Bullet bodies.

Position servos whose damping an explicit force could not hold stable become constraint motors with the servo's force
limit and its time constant kv/kp; velocity servos become velocity motors. Other joint actuators, and rotors and drives
at sites, become forces, with first-order activation lag. Springs of joints and gravity compensation are forces too.
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from embodied.worlds.bullet_build import BulletMap

Array = NDArray[np.float64]
_STABLE_DAMPING = 0.5  # largest kv·dt/inertia for which an explicit damping force is well behaved


class BulletActuators:
    """Applies ``ctrl`` of a model's data to its Bullet bodies."""

    def __init__(self, bullet: Any, client: int, model: mujoco.MjModel, names: BulletMap) -> None:  # noqa: ANN401
        self._bullet, self._client, self._model, self._map = bullet, client, model, names
        self._activation = np.zeros(model.nu)
        self._motors: list[tuple[int, int, int, int]] = []  # (actuator, joint, body, link)
        self._forces: list[tuple[int, int, int, int]] = []
        self._drives: list[tuple[int, int, int, int]] = []  # at sites: (actuator, site, body, link)
        self._springs: list[tuple[int, int, int]] = []  # (joint, body, link)
        self._weights: list[tuple[int, int, int, float]] = []  # (MuJoCo body, body, link, fraction)
        self._read()

    def _read(self) -> None:
        model = self._model
        joint_type, site_type = int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_SITE)
        for actuator in range(model.nu):
            kind, target = int(model.actuator_trntype[actuator]), int(model.actuator_trnid[actuator, 0])
            if kind == joint_type and target in self._map.joints:
                row = (actuator, target, *self._map.joints[target])
                (self._motors if self._needs_motor(actuator, target) else self._forces).append(row)
            elif kind == site_type:
                self._drives.append((actuator, target, *self._map.body_link[int(model.site_bodyid[target])]))
        for joint, (body, link) in self._map.joints.items():
            if float(np.ravel(model.jnt_stiffness[joint])[0]) > 0:
                self._springs.append((joint, body, link))
        for mj_body in range(1, model.nbody):
            if model.body_gravcomp[mj_body] > 0 and mj_body in self._map.body_link:
                body, link = self._map.body_link[mj_body]
                self._weights.append((mj_body, body, link, float(model.body_gravcomp[mj_body])))
        for _, _, body, link in self._forces:
            self._bullet.setJointMotorControl2(
                body, link, self._bullet.VELOCITY_CONTROL, force=0, physicsClientId=self._client
            )

    def _needs_motor(self, actuator: int, joint: int) -> bool:
        """Whether a servo's damping is too stiff for explicit forces at this step."""
        model = self._model
        dof = int(model.jnt_dofadr[joint])
        damping = -float(model.actuator_biasprm[actuator, 2])
        inertia = max(float(model.dof_M0[dof]) - float(model.dof_armature[dof]), 1e-6)
        return damping * float(model.opt.timestep) / inertia > _STABLE_DAMPING

    def set_targets(self, data: mujoco.MjData) -> None:
        """Give constraint motors their targets for the coming steps."""
        model, bullet = self._model, self._bullet
        for actuator, joint, body, link in self._motors:
            command = self._command(data, actuator)
            kp, kv = -float(model.actuator_biasprm[actuator, 1]), -float(model.actuator_biasprm[actuator, 2])
            limit = float(model.actuator_forcerange[actuator, 1]) if model.actuator_forcelimited[actuator] else 1e4
            if kp == 0.0:
                bullet.setJointMotorControl2(
                    body,
                    link,
                    bullet.VELOCITY_CONTROL,
                    targetVelocity=command,
                    force=limit,
                    physicsClientId=self._client,
                )
                continue
            target = command - float(model.qpos0[int(model.jnt_qposadr[joint])])
            bullet.setJointMotorControl2(
                body,
                link,
                bullet.POSITION_CONTROL,
                targetPosition=target,
                positionGain=min(float(model.opt.timestep) * kp / max(kv, 1e-9), 0.5),
                velocityGain=1.0,
                force=limit,
                physicsClientId=self._client,
            )

    def apply_forces(self, data: mujoco.MjData) -> None:
        """Apply forces for one step."""
        model, bullet, client = self._model, self._bullet, self._client
        for actuator, _, body, link in self._forces:
            position, velocity = bullet.getJointState(body, link, physicsClientId=client)[:2]
            gear = float(model.actuator_gear[actuator, 0])
            force = gear * self._force(data, actuator, gear * position, gear * velocity)
            bullet.setJointMotorControl2(body, link, bullet.TORQUE_CONTROL, force=force, physicsClientId=client)
        for joint, body, link in self._springs:
            position = bullet.getJointState(body, link, physicsClientId=client)[0]
            rest = float(model.qpos_spring[int(model.jnt_qposadr[joint])] - model.qpos0[int(model.jnt_qposadr[joint])])
            force = -float(np.ravel(model.jnt_stiffness[joint])[0]) * (position - rest)
            bullet.setJointMotorControl2(body, link, bullet.TORQUE_CONTROL, force=force, physicsClientId=client)
        for mj_body, body, link, fraction in self._weights:
            lift = (-model.opt.gravity * model.body_mass[mj_body] * fraction).tolist()
            bullet.applyExternalForce(
                body, link, lift, self._com(body, link), bullet.WORLD_FRAME, physicsClientId=client
            )
        for actuator, site, body, link in self._drives:
            self._push_site(data, actuator, site, body, link)

        for joint, (body, mj_body) in self._map.free.items():
            first = int(model.jnt_dofadr[joint])
            applied = data.qfrc_applied[first : first + 6]
            if applied.any():
                self._push_body(body, mj_body, applied)

    def _push_body(self, body: int, mj_body: int, applied: Array) -> None:
        """Apply a free joint's generalised force: (3,) at its origin in the world, (3,) torque in the body frame."""
        com, quat_xyzw, _, _ = self._motion(body, -1)
        rot_inertial = np.array(self._bullet.getMatrixFromQuaternion(quat_xyzw)).reshape(3, 3)
        rot_body = rot_inertial @ _matrix(self._model.body_iquat[mj_body]).T
        origin = com - rot_body @ self._model.body_ipos[mj_body]
        frame, client = self._bullet.WORLD_FRAME, self._client
        self._bullet.applyExternalForce(body, -1, applied[:3].tolist(), origin.tolist(), frame, physicsClientId=client)
        torque = (rot_body @ applied[3:]).tolist()
        self._bullet.applyExternalTorque(body, -1, torque, frame, physicsClientId=client)

    def after_step(self, data: mujoco.MjData) -> None:
        """Advance the activations by one step and note what the motors did."""
        model = self._model
        for actuator, _, body, link in self._motors:
            state = self._bullet.getJointState(body, link, physicsClientId=self._client)
            data.actuator_force[actuator] = state[3]
        for actuator in range(model.nu):
            if int(model.actuator_dyntype[actuator]) != int(mujoco.mjtDyn.mjDYN_NONE):
                tau_s = max(float(model.actuator_dynprm[actuator, 0]), 1e-9)
                target = self._clipped(data, actuator)
                share = 1.0 - np.exp(-float(model.opt.timestep) / tau_s)
                self._activation[actuator] += share * (target - self._activation[actuator])

    def state(self) -> Array:
        """Return the activations, a copy."""
        return self._activation.copy()

    def set_state(self, activation: Array) -> None:
        """Take back what :meth:`state` gave."""
        self._activation[:] = activation

    def reset(self) -> None:
        """Forget the activations."""
        self._activation[:] = 0.0

    def _clipped(self, data: mujoco.MjData, actuator: int) -> float:
        value = float(data.ctrl[actuator])
        if self._model.actuator_ctrllimited[actuator]:
            low, high = self._model.actuator_ctrlrange[actuator]
            value = min(max(value, float(low)), float(high))
        return value

    def _command(self, data: mujoco.MjData, actuator: int) -> float:
        has_lag = int(self._model.actuator_dyntype[actuator]) != int(mujoco.mjtDyn.mjDYN_NONE)
        return float(self._activation[actuator]) if has_lag else self._clipped(data, actuator)

    def _force(self, data: mujoco.MjData, actuator: int, position: float, velocity: float) -> float:
        """Return the actuator's scalar force: affine in position and velocity, inside its limits."""
        model = self._model
        gain, bias = model.actuator_gainprm[actuator], model.actuator_biasprm[actuator]
        force = float(gain[0]) * self._command(data, actuator)
        force += float(bias[0]) + float(bias[1]) * position + float(bias[2]) * velocity
        if model.actuator_forcelimited[actuator]:
            low, high = model.actuator_forcerange[actuator]
            force = min(max(force, float(low)), float(high))
        data.actuator_force[actuator] = force
        return force

    def _com(self, body: int, link: int) -> list[float]:
        if link < 0:
            return list(self._bullet.getBasePositionAndOrientation(body, physicsClientId=self._client)[0])
        return list(self._bullet.getLinkState(body, link, physicsClientId=self._client)[0])

    def _push_site(self, data: mujoco.MjData, actuator: int, site: int, body: int, link: int) -> None:
        """Apply a rotor or drive: its gear holds force and torque per unit in the frame of the site."""
        model, bullet = self._model, self._bullet
        com, quat_xyzw, linear, angular = self._motion(body, link)
        mj_body = int(model.site_bodyid[site])
        rot_inertial = np.array(bullet.getMatrixFromQuaternion(quat_xyzw)).reshape(3, 3)
        rot_body = rot_inertial @ _matrix(model.body_iquat[mj_body]).T
        rot_site = rot_body @ _matrix(model.site_quat[site])
        arm = rot_body @ (model.site_pos[site] - model.body_ipos[mj_body])
        gear = model.actuator_gear[actuator]
        velocity = float(gear[:3] @ rot_site.T @ (linear + np.cross(angular, arm)) + gear[3:] @ rot_site.T @ angular)
        amount = self._force(data, actuator, 0.0, velocity)
        force, torque = rot_site @ (gear[:3] * amount), rot_site @ (gear[3:] * amount)
        frame = bullet.WORLD_FRAME
        bullet.applyExternalForce(body, link, force.tolist(), (com + arm).tolist(), frame, physicsClientId=self._client)
        bullet.applyExternalTorque(body, link, torque.tolist(), frame, physicsClientId=self._client)

    def _motion(self, body: int, link: int) -> tuple[Array, list[float], Array, Array]:
        """Return centre of mass, inertial orientation (xyzw), linear and angular velocity of a link in the world."""
        bullet, client = self._bullet, self._client
        if link < 0:
            com, quat_xyzw = bullet.getBasePositionAndOrientation(body, physicsClientId=client)
            linear, angular = bullet.getBaseVelocity(body, physicsClientId=client)
        else:
            state = bullet.getLinkState(body, link, computeLinkVelocity=1, physicsClientId=client)
            com, quat_xyzw, linear, angular = state[0], state[1], state[6], state[7]
        return np.array(com), list(quat_xyzw), np.array(linear), np.array(angular)


def _matrix(quat_wxyz: Array) -> Array:
    out = np.zeros(9)
    mujoco.mju_quat2Mat(out, quat_wxyz)
    return out.reshape(3, 3)
