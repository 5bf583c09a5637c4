"""Which action of the last answer is due, and when an answer is too old to follow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from embodied_deploy.package.contract import PolicyContract
from embodied_deploy.runtime.inference import Answer

Array = NDArray[np.float64]


class ChunkFollower:
    """Follows answers, period by period. A policy without chunks answers chunks of one.

    Action ``k`` of an answer belongs to period ``tick + k``, also when the answer came late: actions whose period has
    passed are never sent.

    Args:
      contract: of the policy.
    """

    def __init__(self, contract: PolicyContract) -> None:
        chunk = contract.chunk
        self._execute = chunk.execute if chunk else 1
        self._max_age_ticks = int(chunk.max_age_s * contract.rate_hz + 1e-9) if chunk else 0
        self._actions: Array = np.zeros((0, 0))
        self._tick = 0

    def forget(self) -> None:
        """Follow nothing."""
        self._actions = self._actions[:0]

    def accept(self, answer: Answer) -> None:
        """Follow this answer from now on."""
        self._actions, self._tick = answer.actions, answer.tick

    def is_due(self, tick: int) -> bool:
        """Whether the policy is to be asked in this period."""
        k = tick - self._tick
        return k >= min(self._execute, len(self._actions)) or k > self._max_age_ticks

    def action(self, tick: int) -> Array | None:
        """Return (n_actions,) for this period, or None when the answer is used up or too old."""
        k = tick - self._tick
        if k >= len(self._actions) or k > self._max_age_ticks:
            return None
        return self._actions[k]
