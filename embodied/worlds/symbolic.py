"""The symbolic world: the truth graph alone, for thousands of decisions a second.

Its facts at the start are read from the compiled scene, so a task begins in the same facts on every backend; from then
on skills change facts by their declared effects.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from embodied.errors import WorldError
from embodied.graph.facts import Fact, Graph
from embodied.worlds.contract import Edit, Snapshot, Start, StateValue
from embodied.worlds.states import StateTable
from embodied_scenes.builders import CompiledScene


class SymbolicWorld:
    """Facts and a clock.

    Args:
      scene: compiled scene; its geometry is used once per reset, to read the facts of the start.
      num_envs: must be 1; fork it for more.
    """

    backend = "symbolic"

    def __init__(self, scene: CompiledScene, num_envs: int = 1) -> None:
        if num_envs != 1:
            raise WorldError(f"A symbolic world holds one environment, got num_envs={num_envs}. Fork it for more.")
        from embodied.worlds.mujoco import MujocoWorld

        self.scene = scene
        self.num_envs = 1
        self._geometry = MujocoWorld(scene)
        self._states = StateTable(self._geometry.layout.names())
        self._graph = self._geometry.graph()
        self._steps = 0

    @property
    def dt_sim_s(self) -> float:
        """Time of one step."""
        return 0.1

    def time_s(self, env_index: int = 0) -> float:
        """Simulated time since reset."""
        del env_index
        return self._steps * self.dt_sim_s

    def reset(self, seed: int, start: Start | None = None, env_indices: Sequence[int] | None = None) -> None:
        """Read the facts of a start from its geometry; the clock goes to zero."""
        self._geometry.reset(seed, start, env_indices)
        self._graph = self._geometry.graph()
        self._states.reset((start or Start()).states)
        self._steps = 0

    def step(self, num_steps: int = 1) -> None:
        """Let time pass."""
        self._steps += num_steps

    def graph(self, env_index: int = 0) -> Graph:
        """Return the facts."""
        del env_index
        return self._graph

    def change_facts(self, add: Iterable[Fact], remove: Iterable[Fact]) -> None:
        """Apply the effects of a skill.

        Raises:
          WorldError: a fact names what the scene does not hold.
        """
        add = tuple(add)
        for f in add:
            unknown = [a for a in f.args if a not in self._graph.nodes]
            if unknown and f.predicate in ("ontop", "inside", "at", "holding", "under", "nextto", "inroom"):
                raise WorldError(f"Effect {f} names {unknown}, which this scene does not hold.")
        self._graph = self._graph.changed(add, remove)

    def edit(self, edits: Sequence[Edit], env_index: int = 0) -> int:
        """Apply ``set_state`` edits as one transaction.

        Raises:
          WorldError: another kind of edit; facts have no poses.
        """
        del env_index
        for edit in edits:
            if edit.kind != "set_state":
                raise WorldError(f"A symbolic world takes set_state only, got {edit.kind!r}.")
        before = self._states.facts()
        version = self._states.apply(edits)
        self._graph = self._graph.changed(self._states.facts(), before)
        return version

    def state(self, entity: str, key: str, default: StateValue = False, env_index: int = 0) -> StateValue:
        """Read a state-machine value."""
        del env_index
        return self._states.get(entity, key, default)

    def snapshot(self, env_index: int = 0) -> Snapshot:
        """Copy the state."""
        del env_index
        payload = (self._graph, self._steps, self._states.dump(), self._states.version)
        return Snapshot(backend=self.backend, payload=payload)

    def restore(self, snapshot: Snapshot, env_index: int = 0) -> None:
        """Write a snapshot back.

        Raises:
          WorldError: the snapshot is another backend's.
        """
        del env_index
        if snapshot.backend != self.backend:
            raise WorldError(f"A {snapshot.backend!r} snapshot cannot be restored into a symbolic world.")
        self._graph, self._steps, states, version = snapshot.payload
        self._states.load(states, version)

    def fork(self) -> SymbolicWorld:
        """Return an independent world in the same state."""
        other = SymbolicWorld(self.scene)
        other.restore(self.snapshot())
        return other

    def hash(self, env_index: int = 0) -> str:
        """Return a hex digest of facts, states and clock."""
        del env_index
        digest = hashlib.sha256("\n".join(map(str, sorted(self._graph.facts))).encode())
        digest.update(f"{self._steps}{self._states.dump()}".encode())
        return digest.hexdigest()
