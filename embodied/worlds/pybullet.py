"""Bullet physics on the compiled MuJoCo model: same geometry, masses, limits and commands, another engine.

Bullet steps; MuJoCo's kinematics then derive every pose from the joint positions read back, so that robots, sensors and
the truth graph read the same arrays on both backends. Trajectories differ from MuJoCo's; tasks must not.
"""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np
from numpy.typing import NDArray

from embodied.errors import WorldError
from embodied.worlds.bullet_actuators import BulletActuators
from embodied.worlds.bullet_build import build, connect
from embodied.worlds.contract import Contacts, Snapshot
from embodied.worlds.mujoco import MujocoWorld
from embodied_scenes.builders import CompiledScene

Array = NDArray[np.float64]


class PybulletWorld(MujocoWorld):
    """One environment stepped by Bullet; arrays as in :class:`MujocoWorld`.

    Args:
      scene: compiled scene.
      num_envs: must be 1 (a client takes about 30 MB).
    """

    backend = "pybullet"

    def __init__(self, scene: CompiledScene, num_envs: int = 1) -> None:
        super().__init__(scene, num_envs)
        model = scene.model
        self._bullet, self._client = connect(float(model.opt.timestep), model.opt.gravity)
        self._map = build(self._bullet, self._client, model)
        self._actuators = BulletActuators(self._bullet, self._client, model, self._map)
        self._joint_groups = self._group_joints()
        self._written = self.qpos.copy()
        self._saved: list[int] = []

    def close(self) -> None:
        """Close the client; the world cannot be used afterwards."""
        if self._client >= 0:
            self._bullet.disconnect(self._client)
            self._client = -1

    def __del__(self) -> None:
        if getattr(self, "_client", -1) >= 0:
            self.close()

    def step(self, num_steps: int = 1) -> None:
        """Advance by ``num_steps``.

        Raises:
          WorldError: an input or the state became non-finite.
        """
        if not np.all(np.isfinite(self.data.ctrl)):
            raise WorldError(f"Physics failed at {self.data.time:.3f} s: an actuator input is not finite.")
        if not np.array_equal(self._written, self.qpos):
            self._push_state()
        self._actuators.set_targets(self.data)
        for _ in range(num_steps):
            self._actuators.apply_forces(self.data)
            self._bullet.stepSimulation(physicsClientId=self._client)
            self._actuators.after_step(self.data)
        self._pull_state()
        self.data.time += num_steps * self.dt_sim_s
        if not np.all(np.isfinite(self.data.qpos)):
            raise WorldError(f"Physics failed at {self.data.time:.3f} s: a position is not finite.")
        mujoco.mj_kinematics(self.scene.model, self.data)
        mujoco.mj_comPos(self.scene.model, self.data)
        mujoco.mj_camlight(self.scene.model, self.data)
        mujoco.mj_sensorPos(self.scene.model, self.data)
        if self.layout.buttons:
            self._press_buttons()

    def forward(self) -> None:
        """Write the present ``qpos`` and ``qvel`` into Bullet and recompute derived arrays."""
        super().forward()
        if hasattr(self, "_map"):
            self._push_state()

    def contacts(self, env_index: int = 0) -> Contacts:
        """Return Bullet's contacts; each side's geom is the one of its link that lies nearest to the contact point."""
        del env_index
        geoms, forces = [], []
        for point in self._bullet.getContactPoints(physicsClientId=self._client):
            first = self._nearest_geom((point[1], point[3]), np.array(point[5]))
            second = self._nearest_geom((point[2], point[4]), np.array(point[6]))
            if first >= 0 and second >= 0:
                geoms.append((first, second))
                forces.append(float(point[9]))
        return Contacts(geom_ids=np.array(geoms, dtype=np.int32).reshape(-1, 2), normal_force_n=np.array(forces))

    def snapshot(self, env_index: int = 0) -> Snapshot:
        """Save Bullet's state in its client; a branch from it equals other branches, not the uninterrupted run."""
        base = super().snapshot(env_index)
        saved = self._bullet.saveState(physicsClientId=self._client)
        self._saved.append(saved)
        return Snapshot(backend=self.backend, payload=(id(self), saved, base.payload, self._actuators.state()))

    def restore(self, snapshot: Snapshot, env_index: int = 0) -> None:
        """Write a snapshot of this very world back.

        Raises:
          WorldError: the snapshot is of another backend or world; Bullet's states stay in their client.
        """
        if snapshot.backend != self.backend or snapshot.payload[0] != id(self):
            raise WorldError("A Bullet snapshot can be restored only into the world that made it. Use fork().")
        _, saved, payload, actuators = snapshot.payload
        super().restore(Snapshot(backend=self.backend, payload=payload), env_index)
        self._bullet.restoreState(saved, physicsClientId=self._client)
        self._actuators.set_state(actuators)
        self._written = self.qpos.copy()

    def fork(self) -> PybulletWorld:
        """Return an independent world with equal positions and velocities (contact caches are not copied)."""
        other = PybulletWorld(self.scene)
        mujoco.mj_copyData(other.data, self.scene.model, self.data)
        other._states[0].load(self._states[0].dump(), self._states[0].version)
        other._pressed = [list(self._pressed[0])]
        other._actuators.set_state(self._actuators.state())
        other._push_state()
        return other

    def _clear(self, seed: int, env_indices: Sequence[int]) -> None:
        super()._clear(seed, env_indices)
        if hasattr(self, "_actuators"):
            self._actuators.reset()

    def _group_joints(self) -> list[tuple[int, list[int], NDArray[np.int64], NDArray[np.int64]]]:
        """Group hinges and slides by Bullet body: (body, links, qpos addresses, dof addresses)."""
        model = self.scene.model
        groups: dict[int, list[tuple[int, int]]] = {}
        for joint, (body, link) in self._map.joints.items():
            groups.setdefault(body, []).append((link, joint))
        found = []
        for body, pairs in groups.items():
            joints = [j for _, j in pairs]
            found.append((body, [link for link, _ in pairs], model.jnt_qposadr[joints], model.jnt_dofadr[joints]))
        return found

    def _pull_state(self) -> None:
        """Read positions and velocities from Bullet."""
        data, model = self.data, self.scene.model
        for body, links, positions, dofs in self._joint_groups:
            states = self._bullet.getJointStates(body, links, physicsClientId=self._client)
            data.qpos[positions] = [s[0] for s in states] + model.qpos0[positions]
            data.qvel[dofs] = [s[1] for s in states]
        for joint, (body, mj_body) in self._map.free.items():
            position, quat_xyzw = self._bullet.getBasePositionAndOrientation(body, physicsClientId=self._client)
            linear, angular = self._bullet.getBaseVelocity(body, physicsClientId=self._client)
            self._take_free(
                joint, mj_body, np.array(position), np.array(quat_xyzw), np.array(linear), np.array(angular)
            )
        self._written = self.qpos.copy()

    def _take_free(
        self, joint: int, mj_body: int, com_m: Array, quat_xyzw: Array, linear_mps: Array, angular_radps: Array
    ) -> None:
        """Turn Bullet's centre-of-mass frame into MuJoCo's body frame."""
        model, data = self.scene.model, self.data
        q, v = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
        inertial = quat_xyzw[[3, 0, 1, 2]]
        back, quat = np.zeros(4), np.zeros(4)
        mujoco.mju_negQuat(back, model.body_iquat[mj_body])
        mujoco.mju_mulQuat(quat, inertial, back)
        arm, local = np.zeros(3), np.zeros(3)
        mujoco.mju_rotVecQuat(arm, model.body_ipos[mj_body], quat)
        data.qpos[q : q + 3] = com_m - arm
        data.qpos[q + 3 : q + 7] = quat
        data.qvel[v : v + 3] = linear_mps - np.cross(angular_radps, arm)
        mujoco.mju_negQuat(back, quat)
        mujoco.mju_rotVecQuat(local, angular_radps, back)
        data.qvel[v + 3 : v + 6] = local

    def _push_state(self) -> None:
        """Write positions and velocities into Bullet."""
        data, model, bullet = self.data, self.scene.model, self._bullet
        for joint, (body, link) in self._map.joints.items():
            q, v = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
            value = float(data.qpos[q] - model.qpos0[q])
            bullet.resetJointState(body, link, value, float(data.qvel[v]), physicsClientId=self._client)
        for joint, (body, mj_body) in self._map.free.items():
            q, v = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
            quat = data.qpos[q + 3 : q + 7].copy()
            arm, inertial, angular = np.zeros(3), np.zeros(4), np.zeros(3)
            mujoco.mju_rotVecQuat(arm, model.body_ipos[mj_body], quat)
            mujoco.mju_mulQuat(inertial, quat, model.body_iquat[mj_body])
            mujoco.mju_rotVecQuat(angular, data.qvel[v + 3 : v + 6].copy(), quat)
            bullet.resetBasePositionAndOrientation(
                body,
                (data.qpos[q : q + 3] + arm).tolist(),
                inertial[[1, 2, 3, 0]].tolist(),
                physicsClientId=self._client,
            )
            linear = data.qvel[v : v + 3] + np.cross(angular, arm)
            bullet.resetBaseVelocity(body, linear.tolist(), angular.tolist(), physicsClientId=self._client)
        self._written = self.qpos.copy()

    def _nearest_geom(self, link: tuple[int, int], point_world_m: Array) -> int:
        model, data = self.scene.model, self.data
        mj_body = self._map.link_body.get(link, -1)
        if mj_body < 0:
            return -1
        first, count = int(model.body_geomadr[mj_body]), int(model.body_geomnum[mj_body])
        best, best_gap = -1, np.inf
        for geom in range(first, first + count):
            if not (model.geom_contype[geom] or model.geom_conaffinity[geom]):
                continue
            local = data.geom_xmat[geom].reshape(3, 3).T @ (point_world_m - data.geom_xpos[geom])
            local -= model.geom_aabb[geom, :3]
            gap = float(np.linalg.norm(np.maximum(np.abs(local) - model.geom_aabb[geom, 3:], 0.0)))
            if gap < best_gap:
                best, best_gap = geom, gap
        return best
