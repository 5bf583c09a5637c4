"""MuJoCo worlds: one environment on its own ``MjData``, many on ``mujoco.batch.Batch``.

A single environment steps its ``MjData`` directly, because only that gives contacts and an exact snapshot while bodies
sleep (``mj_copyData``); a batch row does neither. Both step bit-equal trajectories from the same state.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence

import mujoco
import numpy as np
from numpy.typing import NDArray

from embodied.errors import WorldError
from embodied.worlds.base import PhysicsBase
from embodied.worlds.contract import Contacts, Snapshot
from embodied_scenes.builders import CompiledScene

Array = NDArray[np.float64]
_log = logging.getLogger(__name__)
# Engine warnings become errors of the world that raised them; without this they also land in a file of the user's.
mujoco.set_mju_user_warning(lambda message: _log.info("mujoco: %s", message))
_BAD = tuple(
    int(w)
    for w in (
        mujoco.mjtWarning.mjWARN_BADQPOS,
        mujoco.mjtWarning.mjWARN_BADQVEL,
        mujoco.mjtWarning.mjWARN_BADQACC,
        mujoco.mjtWarning.mjWARN_BADCTRL,
    )
)


class MujocoWorld(PhysicsBase):
    """One environment; every array carries a leading axis of one.

    Args:
      scene: compiled scene.
      num_envs: must be 1; see :class:`MujocoBatchWorld`.
    """

    backend = "mujoco"

    def __init__(self, scene: CompiledScene, num_envs: int = 1) -> None:
        if num_envs != 1:
            raise WorldError(f"MujocoWorld holds one environment, got num_envs={num_envs}. Use MujocoBatchWorld.")
        super().__init__(scene, 1)
        self.data = mujoco.MjData(scene.model)
        self._bind()

    def _bind(self) -> None:
        data = self.data
        self._qpos, self._qvel, self._ctrl = data.qpos[None], data.qvel[None], data.ctrl[None]
        self._qfrc_applied = data.qfrc_applied[None]
        self._warnings = data.warning.number  # a live view: reading the counters one by one costs more than a substep
        self._xpos, self._xquat = data.xpos[None], data.xquat[None]
        self._geom_xpos, self._geom_xmat = data.geom_xpos[None], data.geom_xmat[None]
        self._site_xpos, self._site_xmat = data.site_xpos[None], data.site_xmat[None]
        self._cam_xpos, self._cam_xmat = data.cam_xpos[None], data.cam_xmat[None]
        self._sensordata = data.sensordata[None]
        self._actuator_force = data.actuator_force[None]

    @property
    def qpos(self) -> Array:
        """(1, nq) live view."""
        return self._qpos

    @property
    def qvel(self) -> Array:
        """(1, nv) live view."""
        return self._qvel

    @property
    def ctrl(self) -> Array:
        """(1, nu) live view."""
        return self._ctrl

    @property
    def qfrc_applied(self) -> Array:
        """(1, nv) live view."""
        return self._qfrc_applied

    @property
    def body_pos_world_m(self) -> Array:
        """(1, nbody, 3) live view."""
        return self._xpos

    @property
    def body_quat_wxyz(self) -> Array:
        """(1, nbody, 4) live view."""
        return self._xquat

    @property
    def geom_pos_world_m(self) -> Array:
        """(1, ngeom, 3) live view."""
        return self._geom_xpos

    @property
    def geom_rot_world(self) -> Array:
        """(1, ngeom, 9) live view."""
        return self._geom_xmat

    @property
    def site_pos_world_m(self) -> Array:
        """(1, nsite, 3) live view."""
        return self._site_xpos

    @property
    def site_rot_world(self) -> Array:
        """(1, nsite, 9) live view."""
        return self._site_xmat

    @property
    def cam_pos_world_m(self) -> Array:
        """(1, ncam, 3) live view."""
        return self._cam_xpos

    @property
    def cam_rot_world(self) -> Array:
        """(1, ncam, 9) live view."""
        return self._cam_xmat

    @property
    def actuator_force(self) -> Array:
        """(1, nu) live view."""
        return self._actuator_force

    @property
    def sensordata(self) -> Array:
        """(1, nsensordata) live view."""
        return self._sensordata

    def time_s(self, env_index: int = 0) -> float:
        """Simulated time since reset."""
        del env_index
        return float(self.data.time)

    def step(self, num_steps: int = 1) -> None:
        """Advance by ``num_steps``; derived arrays then describe the new state.

        Raises:
          WorldError: a state or input became non-finite or diverged; the message names the time and the warning.
        """
        mujoco.mj_step(self.scene.model, self.data, nstep=num_steps)
        self._check()
        # mj_step leaves derived fields one substep behind; positions are what skills and cameras read.
        mujoco.mj_kinematics(self.scene.model, self.data)
        if self.scene.model.ncam:
            mujoco.mj_camlight(self.scene.model, self.data)
        if self.layout.buttons:
            self._press_buttons()

    def forward(self) -> None:
        """Recompute derived arrays from the present state."""
        mujoco.mj_forward(self.scene.model, self.data)

    def contacts(self, env_index: int = 0) -> Contacts:
        """Return the contacts of the last collision pass."""
        del env_index
        count = self.data.ncon
        force = np.zeros(count)
        wrench = np.zeros(6)
        for i in range(count):
            mujoco.mj_contactForce(self.scene.model, self.data, i, wrench)
            force[i] = wrench[0]
        return Contacts(geom_ids=self.data.contact.geom.copy(), normal_force_n=force)

    def snapshot(self, env_index: int = 0) -> Snapshot:
        """Copy the whole ``MjData``, the sleep state included."""
        states = self._states[env_index]
        payload = (copy.copy(self.data), states.dump(), states.version, list(self._pressed[env_index]))
        return Snapshot(backend=self.backend, payload=payload)

    def restore(self, snapshot: Snapshot, env_index: int = 0) -> None:
        """Write a snapshot back; stepping on is bit-equal to the run it was taken from.

        Raises:
          WorldError: the snapshot is another backend's.
        """
        if snapshot.backend != self.backend:
            raise WorldError(f"A {snapshot.backend!r} snapshot cannot be restored into a {self.backend!r} world.")
        data, states, version, pressed = snapshot.payload
        mujoco.mj_copyData(self.data, self.scene.model, data)
        self._states[env_index].load(states, version)
        self._pressed[env_index] = list(pressed)

    def fork(self) -> MujocoWorld:
        """Return an independent world in the same state."""
        other = MujocoWorld(self.scene)
        other.restore(self.snapshot())
        return other

    def _clear(self, seed: int, env_indices: Sequence[int]) -> None:
        del seed, env_indices
        mujoco.mj_resetData(self.scene.model, self.data)

    def _state_bytes(self, env_index: int) -> bytes:
        del env_index
        size = mujoco.mj_stateSize(self.scene.model, mujoco.mjtState.mjSTATE_INTEGRATION)
        state = np.zeros(size)
        mujoco.mj_getState(self.scene.model, self.data, state, mujoco.mjtState.mjSTATE_INTEGRATION)
        return state.tobytes()

    def _check(self) -> None:
        if not any(self._warnings.tobytes()):
            return
        warnings = self.data.warning
        for index in _BAD:
            if warnings[index].number:
                name = mujoco.mjtWarning(index).name
                raise WorldError(
                    f"Physics failed at {self.data.time:.3f} s: {name} (last index {warnings[index].lastinfo}). "
                    "An input was not finite or the model is unstable; reset before stepping on."
                )


class MujocoBatchWorld(PhysicsBase):
    """Many environments in one native batch, stepped by a thread pool with the interpreter lock released.

    Args:
      scene: compiled scene.
      num_envs: environments.
      num_threads: 0 takes all cores.
    """

    backend = "mujoco"

    def __init__(self, scene: CompiledScene, num_envs: int, num_threads: int = 0) -> None:
        super().__init__(scene, num_envs)
        from mujoco.batch import Batch

        is_sleeping = bool(int(scene.model.opt.enableflags) & int(mujoco.mjtEnableBit.mjENBL_SLEEP))
        self.batch = Batch(scene.model, num_envs, num_threads, persistent=is_sleeping)
        self._scratch = mujoco.MjData(scene.model)
        self._stage = mujoco.mjtStage.mjSTAGE_VEL
        self.batch.reset()

    @property
    def qpos(self) -> Array:
        """(num_envs, nq) live view."""
        return self.batch.bind("qpos")

    @property
    def qvel(self) -> Array:
        """(num_envs, nv) live view."""
        return self.batch.bind("qvel")

    @property
    def ctrl(self) -> Array:
        """(num_envs, nu) live view."""
        return self.batch.bind("ctrl")

    @property
    def qfrc_applied(self) -> Array:
        """(num_envs, nv) live view."""
        return self.batch.bind("qfrc_applied")

    @property
    def body_pos_world_m(self) -> Array:
        """(num_envs, nbody, 3), refreshed by every step once it was asked for."""
        return self.batch.bind("xpos")

    @property
    def body_quat_wxyz(self) -> Array:
        """(num_envs, nbody, 4)."""
        return self.batch.bind("xquat")

    @property
    def geom_pos_world_m(self) -> Array:
        """(num_envs, ngeom, 3)."""
        return self.batch.bind("geom_xpos")

    @property
    def geom_rot_world(self) -> Array:
        """(num_envs, ngeom, 9)."""
        return self.batch.bind("geom_xmat").reshape(self.num_envs, -1, 9)

    @property
    def site_pos_world_m(self) -> Array:
        """(num_envs, nsite, 3)."""
        return self.batch.bind("site_xpos")

    @property
    def site_rot_world(self) -> Array:
        """(num_envs, nsite, 9)."""
        return self.batch.bind("site_xmat").reshape(self.num_envs, -1, 9)

    @property
    def cam_pos_world_m(self) -> Array:
        """(num_envs, ncam, 3)."""
        return self.batch.bind("cam_xpos")

    @property
    def cam_rot_world(self) -> Array:
        """(num_envs, ncam, 9)."""
        return self.batch.bind("cam_xmat").reshape(self.num_envs, -1, 9)

    @property
    def actuator_force(self) -> Array:
        """(num_envs, nu)."""
        return self.batch.bind("actuator_force")

    @property
    def sensordata(self) -> Array:
        """(num_envs, nsensordata)."""
        return self.batch.bind("sensordata")

    def time_s(self, env_index: int = 0) -> float:
        """Simulated time since reset."""
        return float(self.batch.bind("time")[env_index])

    def step(self, num_steps: int = 1) -> None:
        """Advance all environments.

        Raises:
          WorldError: the engine reports a failed environment or a non-finite state; the message names which.
        """
        self.batch.step(nstep=num_steps, stage=self._stage)
        bad = np.flatnonzero(~np.isfinite(self.batch.bind("qvel")).all(axis=1))
        if bad.size:
            raise WorldError(f"Physics failed in environments {bad.tolist()}: a velocity is not finite; reset them.")
        if self.layout.buttons:
            self._press_buttons()

    def clear(self, env_indices: NDArray[np.int64]) -> None:
        """Put the engine's state of some environments back without recomputing derived arrays.

        For callers that write ``qpos`` and ``qvel`` right afterwards; state machines keep their values.
        """
        self.batch.reset(ids=env_indices, stage=mujoco.mjtStage.mjSTAGE_NONE)

    @property
    def act(self) -> Array:
        """(num_envs, na) live view of the actuator activations."""
        return self.batch.bind("act")

    def forward(self) -> None:
        """Recompute derived arrays from the present state."""
        self.batch.forward()

    def contacts(self, env_index: int = 0) -> Contacts:
        """Return the active contacts, recomputed for this environment (a batch keeps none)."""
        self.batch.get_data(env_index, self._scratch)
        mujoco.mj_forward(self.scene.model, self._scratch)
        geoms = self._scratch.contact.geom.copy()
        return Contacts(geom_ids=geoms, normal_force_n=np.zeros(len(geoms)))

    def snapshot(self, env_index: int = 0) -> Snapshot:
        """Copy one row of the integration state. With sleep on, branches from it equal each other, not the source."""
        states = self._states[env_index]
        payload = (self.batch.state[env_index].copy(), states.dump(), states.version, list(self._pressed[env_index]))
        return Snapshot(backend="mujoco-batch", payload=payload)

    def restore(self, snapshot: Snapshot, env_index: int = 0) -> None:
        """Write a row back.

        Raises:
          WorldError: the snapshot is another backend's.
        """
        if snapshot.backend != "mujoco-batch":
            raise WorldError(f"A {snapshot.backend!r} snapshot cannot be restored into a MuJoCo batch.")
        row, states, version, pressed = snapshot.payload
        self.batch.reset(ids=[env_index], stage=mujoco.mjtStage.mjSTAGE_NONE)
        self.batch.state[env_index] = row
        self._states[env_index].load(states, version)
        self._pressed[env_index] = list(pressed)
        self.batch.forward(ids=[env_index])

    def fork(self) -> MujocoBatchWorld:
        """Return an independent batch with equal rows."""
        other = MujocoBatchWorld(self.scene, self.num_envs, self.batch.nthread)
        for index in range(self.num_envs):
            other.restore(self.snapshot(index), index)
        return other

    def _clear(self, seed: int, env_indices: Sequence[int]) -> None:
        del seed
        self.batch.reset(ids=np.asarray(env_indices, dtype=np.int64), stage=mujoco.mjtStage.mjSTAGE_NONE)

    def _state_bytes(self, env_index: int) -> bytes:
        return self.batch.state[env_index].tobytes()
