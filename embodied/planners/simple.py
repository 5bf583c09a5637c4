"""The floor of every benchmark: a planner that waits and one that picks at random."""

from __future__ import annotations

import numpy as np

from embodied.planners.calls import done_call, wait_call
from embodied.planners.contract import Plan, PlannerView

_SHORTEST_WAIT_S = 0.1


class NoopPlanner:
    """Waits until the budget is nearly used, then says ``done``.

    Args:
      wait_s: length of one wait.
    """

    privileged = False

    def __init__(self, wait_s: float = 30.0) -> None:
        self.wait_s = wait_s

    def reset(self, agent: str, seed: int) -> None:
        """Begin an episode; there is nothing to forget."""

    def act(self, view: PlannerView) -> Plan:
        """Answer with a wait, or ``done`` when neither time nor decisions are left for another."""
        left_s = view.budget.sim_time_s - self.wait_s
        if left_s <= _SHORTEST_WAIT_S or view.budget.decisions <= 1:
            return Plan(calls=(done_call(),))
        return Plan(calls=(wait_call(view.skills, self.wait_s),))


class RandomPlanner:
    """Picks one of the calls that may start now in its belief, each with the same chance."""

    privileged = False

    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)

    def reset(self, agent: str, seed: int) -> None:
        """Begin an episode with the random stream of ``seed``."""
        self._rng = np.random.default_rng(seed)

    def act(self, view: PlannerView) -> Plan:
        """Answer with one random call."""
        calls = view.admissible
        if not calls:
            return Plan(calls=(wait_call(view.skills, 1.0),))
        return Plan(calls=(calls[int(self._rng.integers(len(calls)))],))
