"""A policy as a controller: assembles, asks, carries state, follows chunks, clips, maps to the robot's order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from embodied_controllers.contract import ActionSpec, ObservationSpec
from embodied_deploy.errors import PackageError, PolicyOutputError
from embodied_deploy.package.check import check_robot
from embodied_deploy.policy.channels import Assembler
from embodied_deploy.policy.sample import Sample
from embodied_deploy.policy.session import PolicySession, all_finite

Array = NDArray[np.float64]


class PolicyController:
    """Turns samples into actions of the whole robot. For one thread.

    One period is :meth:`act`. A runtime that asks in one thread and follows in another uses its two halves,
    :meth:`think` and :meth:`follow`; the rule for chunks that are too old is the runtime's, by :attr:`chunk_age_s`.

    Args:
      session: of the policy.
      action_spec: of the robot.
      observation_spec: of the robot.

    Raises:
      PackageError: ``robot``, ``range`` or ``rate``: the policy does not fit the robot, or is no controller.
    """

    def __init__(self, session: PolicySession, action_spec: ActionSpec, observation_spec: ObservationSpec) -> None:
        contract = session.contract
        action = contract.action
        if action is None:
            raise PackageError(
                "robot", f"{contract.name} is a {contract.kind} and puts out no actions; ask its session."
            )
        check_robot(contract, action_spec, observation_spec, contract.robot)
        self.contract = contract
        self._session = session
        self._assembler = Assembler(contract, action_spec, observation_spec)
        self._states = [
            (session.inputs[t.name], session.outputs[t.source]) for t in contract.inputs if t.role == "state"
        ]
        # A view as (horizon, entries); without chunks, the answer is a chunk of one.
        self._output = session.outputs[action.name].reshape(-1, len(action.entries))
        self._index = np.array([action_spec.names.index(e.name) for e in action.entries], dtype=np.intp)
        self._low = np.array([e.low for e in action.entries])
        self._high = np.array([e.high for e in action.entries])
        self._drives_all = self._index.tolist() == list(range(action_spec.size))
        self._undriven = np.full((len(self._output), action_spec.size), np.nan)
        self._execute = contract.chunk.execute if contract.chunk else 1
        self._chunk: Array = self._undriven[:0]
        self._next = 0
        self._stamp_s = float("nan")
        self.reset()

    def reset(self) -> None:
        """Forget the past: recurrent state to zero, no chunk."""
        for state, _ in self._states:
            state[...] = 0
        self._chunk = self._chunk[:0]
        self._next = 0
        self._stamp_s = float("nan")

    @property
    def is_due(self) -> bool:
        """Whether the policy is to be asked before the next action."""
        return self._next >= min(self._execute, len(self._chunk))

    @property
    def actions_left(self) -> int:
        """Actions of the chunk not used yet, those beyond ``chunk.execute`` included."""
        return len(self._chunk) - self._next

    def chunk_age_s(self, now_s: float) -> float:
        """Return how long ago the observation was taken that the present chunk answers; infinite without a chunk.

        Args:
          now_s: time on the robot's clock.
        """
        return now_s - self._stamp_s if len(self._chunk) else float("inf")

    def act(self, sample: Sample) -> Array:
        """Return (n_actions,) for this period in the robot's order and units; NaN where the policy drives nothing.

        The policy is asked when a chunk is used up, which for one without chunks is always.

        Raises:
          ObservationError: the sample does not fit; neither state nor chunk has changed.
          PolicyOutputError: the policy answered NaN; the same holds.
        """
        if self.is_due:
            self.think(sample)
        return self.follow()

    def think(self, sample: Sample) -> None:
        """Ask the policy: the answer becomes the present chunk, the recurrent state moves on.

        Raises:
          ObservationError: see :meth:`act`.
          PolicyOutputError: see :meth:`act`.
        """
        session = self._session
        self._assembler.fill(sample, session.inputs)
        session.run()
        for name, value in session.outputs.items():
            if value.dtype.kind == "f" and not all_finite(value):
                raise PolicyOutputError(
                    f"{self.contract.name}: its output {name} holds NaN or infinity; nothing is used."
                )
        for state, answer in self._states:
            np.copyto(state, answer)
        chunk = np.maximum(self._output, self._low)
        np.minimum(chunk, self._high, out=chunk)
        self._chunk = chunk if self._drives_all else self._spread(chunk)
        self._next = 0
        self._stamp_s = sample.state.time_s

    def follow(self) -> Array:
        """Return the next action of the chunk, also beyond ``chunk.execute``.

        Raises:
          PolicyOutputError: no action is left; ask :meth:`think` first.
        """
        if self._next >= len(self._chunk):
            raise PolicyOutputError(f"{self.contract.name}: its {len(self._chunk)} actions are used up; ask it again.")
        self._next += 1
        return self._chunk[self._next - 1]

    def _spread(self, chunk: Array) -> Array:
        """Place (horizon, entries) in the robot's order; the rest is NaN."""
        spread = self._undriven.copy()
        spread[:, self._index] = chunk
        return spread
