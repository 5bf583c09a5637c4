"""The world protocol: one clock, one owner per state, batched from the start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from embodied.graph.facts import Graph

if TYPE_CHECKING:
    from embodied_scenes.builders import CompiledScene

Array = NDArray[np.float64]
StateValue = bool | int | float | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a reset changes against the compiled scene; nothing is recompiled.

    Attributes:
      poses: entity or robot name to (x, y, z, qw, qx, qy, qz) in the world.
      joints: openable entity to its opening fraction in [0, 1].
      joint_pos: full joint name (``<robot>/<joint>``) to position, rad or m; how robots take their home posture.
      states: state-machine values, (entity, key) to value.
    """

    poses: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    joints: Mapping[str, float] = field(default_factory=dict)
    joint_pos: Mapping[str, float] = field(default_factory=dict)
    states: Mapping[tuple[str, str], StateValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A validated change of what a state machine owns (``set_state``) or of physics (``set_pose``, ``set_joint``).

    Skills may only send ``set_state``; the others are for resets, tools and tests.
    """

    kind: str
    entity: str
    key: str = ""
    value: StateValue | tuple[float, ...] = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Contacts:
    """Active contacts of one environment.

    Attributes:
      geom_ids: (n, 2) geom indices.
      normal_force_n: (n,) force along the normal; 0 where the engine gives none.
    """

    geom_ids: NDArray[np.int32]
    normal_force_n: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything needed to continue exactly: owned by the backend that made it."""

    backend: str
    payload: Any


class World(Protocol):
    """Common to all fidelities. ``env_index`` picks one environment of the batch."""

    @property
    def backend(self) -> str:
        """``mujoco``, ``pybullet`` or ``symbolic``."""
        ...

    @property
    def num_envs(self) -> int:
        """Environments in the batch."""
        ...

    @property
    def dt_sim_s(self) -> float:
        """Time of one step."""
        ...

    def time_s(self, env_index: int = 0) -> float:
        """Simulated time since reset."""
        ...

    def reset(self, seed: int, start: Start | None = None, env_indices: Sequence[int] | None = None) -> None:
        """Return to the compiled scene changed by ``start``; same seed, same state."""
        ...

    def step(self, num_steps: int = 1) -> None:
        """Advance all environments."""
        ...

    def snapshot(self, env_index: int = 0) -> Snapshot:
        """Copy the whole state of one environment."""
        ...

    def restore(self, snapshot: Snapshot, env_index: int = 0) -> None:
        """Write a snapshot back."""
        ...

    def fork(self) -> World:
        """Return an independent world in the same state, on the same compiled scene."""
        ...

    def hash(self, env_index: int = 0) -> str:
        """Return a hex digest of the state (physics and state machines)."""
        ...

    def graph(self, env_index: int = 0) -> Graph:
        """Return the truth as facts."""
        ...

    def edit(self, edits: Sequence[Edit], env_index: int = 0) -> int:
        """Apply edits as one transaction (all or none) and return the new version number."""
        ...

    def state(self, entity: str, key: str, default: StateValue = False, env_index: int = 0) -> StateValue:
        """Read a state-machine value."""
        ...


class PhysicsWorld(World, Protocol):
    """A world with bodies. Arrays follow the layout of ``scene.model``, whatever engine steps them."""

    @property
    def scene(self) -> CompiledScene:
        """The compiled scene: model and meaning."""
        ...

    @property
    def qpos(self) -> Array:
        """(num_envs, nq) generalised positions, a live view; after writing call :meth:`forward`."""
        ...

    @property
    def qvel(self) -> Array:
        """(num_envs, nv) generalised velocities, a live view."""
        ...

    @property
    def ctrl(self) -> Array:
        """(num_envs, nu) actuator inputs, a live view."""
        ...

    @property
    def qfrc_applied(self) -> Array:
        """(num_envs, nv) generalised forces from outside (wind), held until written again, a live view."""
        ...

    @property
    def body_pos_world_m(self) -> Array:
        """(num_envs, nbody, 3) origins of the body frames at the present state."""
        ...

    @property
    def body_quat_wxyz(self) -> Array:
        """(num_envs, nbody, 4) orientations of the bodies, scalar first."""
        ...

    @property
    def geom_pos_world_m(self) -> Array:
        """(num_envs, ngeom, 3) geom centres."""
        ...

    @property
    def geom_rot_world(self) -> Array:
        """(num_envs, ngeom, 9) row-major rotation matrices of the geoms."""
        ...

    @property
    def site_pos_world_m(self) -> Array:
        """(num_envs, nsite, 3) site positions."""
        ...

    @property
    def site_rot_world(self) -> Array:
        """(num_envs, nsite, 9) row-major rotation matrices of the sites."""
        ...

    @property
    def cam_pos_world_m(self) -> Array:
        """(num_envs, ncam, 3) camera positions."""
        ...

    @property
    def cam_rot_world(self) -> Array:
        """(num_envs, ncam, 9) row-major camera rotations (x right, y up, looking along -z)."""
        ...

    @property
    def actuator_force(self) -> Array:
        """(num_envs, nu) scalar forces of the actuators in the last step, N or N·m."""
        ...

    @property
    def sensordata(self) -> Array:
        """(num_envs, nsensordata) sensor values."""
        ...

    def forward(self) -> None:
        """Recompute derived arrays from the present state."""
        ...

    def contacts(self, env_index: int = 0) -> Contacts:
        """Return the active contacts."""
        ...
