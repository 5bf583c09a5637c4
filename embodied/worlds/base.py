"""What every physics backend shares: state machines, buttons, starts, edits, the truth graph."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from embodied.errors import WorldError
from embodied.graph.facts import Graph
from embodied.graph.truth import TruthGraph
from embodied.worlds.contract import Contacts, Edit, PhysicsWorld, Start, StateValue
from embodied.worlds.layout import Layout
from embodied.worlds.states import StateTable
from embodied_scenes.builders import CompiledScene

Array = NDArray[np.float64]


class PhysicsBase(ABC):
    """Base of the physics worlds. Subclasses own the engine and the arrays."""

    backend: str

    def __init__(self, scene: CompiledScene, num_envs: int) -> None:
        if num_envs < 1:
            raise WorldError(f"A world needs at least one environment, got num_envs={num_envs}.")
        self.scene = scene
        self.num_envs = num_envs
        self.layout = Layout(scene)
        self._truth = TruthGraph(scene)
        self._states = [StateTable(self.layout.names()) for _ in range(num_envs)]
        self._pressed = [[False] * len(self.layout.buttons) for _ in range(num_envs)]

    @property
    def dt_sim_s(self) -> float:
        """Time of one step."""
        return float(self.scene.model.opt.timestep)

    @property
    @abstractmethod
    def qpos(self) -> Array:
        """(num_envs, nq) live view of the generalised positions."""

    @abstractmethod
    def forward(self) -> None:
        """Recompute derived arrays from the present state."""

    @abstractmethod
    def contacts(self, env_index: int = 0) -> Contacts:
        """Return the active contacts."""

    @abstractmethod
    def _state_bytes(self, env_index: int) -> bytes:
        """Return the engine's state as bytes, for hashing."""

    @abstractmethod
    def _clear(self, seed: int, env_indices: Sequence[int]) -> None:
        """Put the engine's state of some environments back to the compiled scene, time zero."""

    def reset(self, seed: int, start: Start | None = None, env_indices: Sequence[int] | None = None) -> None:
        """Return to the compiled scene changed by ``start``; nothing is recompiled.

        Raises:
          WorldError: ``start`` names what the scene does not hold, or values that cannot be.
        """
        start = start or Start()
        chosen = range(self.num_envs) if env_indices is None else env_indices
        self._clear(seed, list(chosen))
        for index in chosen:
            self.layout.write(start, self.qpos[index])
            self._states[index].reset(start.states)
            self._pressed[index] = [False] * len(self.layout.buttons)
        self.forward()

    def graph(self, env_index: int = 0) -> Graph:
        """Return the truth as facts."""
        world = cast("PhysicsWorld", self)
        return self._truth.graph(world, self._states[env_index].facts(), env_index)

    def state(self, entity: str, key: str, default: StateValue = False, env_index: int = 0) -> StateValue:
        """Read a state-machine value."""
        return self._states[env_index].get(entity, key, default)

    def states_version(self, env_index: int = 0) -> int:
        """Return how many transactions the state machines have seen since the reset."""
        return self._states[env_index].version

    def edit(self, edits: Sequence[Edit], env_index: int = 0) -> int:
        """Apply edits as one transaction: ``set_state``, ``set_pose`` (7 numbers) or ``set_joint`` (opening fraction).

        Raises:
          WorldError: any edit is invalid; then none is applied.
        """
        trial = self.qpos[env_index].copy()
        states, moves = [], False
        for edit in edits:
            if edit.kind == "set_state":
                states.append(edit)
            elif edit.kind == "set_pose" and isinstance(edit.value, tuple):
                self.layout.write_pose(edit.entity, edit.value, trial)
                moves = True
            elif edit.kind == "set_joint" and isinstance(edit.value, int | float):
                self.layout.write_opening(edit.entity, float(edit.value), trial)
                moves = True
            else:
                raise WorldError(
                    f"Edit {edit.kind!r} with value {edit.value!r} is not known. "
                    "Use set_state (value), set_pose (7 numbers) or set_joint (fraction)."
                )
        version = self._states[env_index].apply(states)
        if moves:
            self.qpos[env_index] = trial
            self.forward()
        return version

    def hash(self, env_index: int = 0) -> str:
        """Return a hex digest of physics and state machines."""
        digest = hashlib.sha256(self._state_bytes(env_index))
        digest.update(self._states[env_index].dump().encode())
        return digest.hexdigest()

    def _press_buttons(self) -> None:
        """Toggle the state of every button that was pushed past half its travel since the last call."""
        for env_index in range(self.num_envs):
            for number, (entity, key, address, half_m) in enumerate(self.layout.buttons):
                is_pressed = bool(self.qpos[env_index, address] > half_m)
                if is_pressed and not self._pressed[env_index][number]:
                    value = not self._states[env_index].get(entity, key)
                    self._states[env_index].apply([Edit(kind="set_state", entity=entity, key=key, value=value)])
                self._pressed[env_index][number] = is_pressed
