"""Pursue a goal with search, learning from failures: shared by the oracle and by the rules on a belief."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from embodied.planners.contract import Step
from embodied.skills.contract import SkillCall, Status

_FAILURE_COST_S = 30.0
MAX_SAME_FAILURES = 2
HOPELESS_FAILURES = 6  # a call without an alternative is given up after so many failures


class FailureMemory:
    """Counts failed calls, makes them dear, and rules them out once they failed more than twice in a row."""

    def __init__(self) -> None:
        self._seen = 0
        self._failures: Counter[SkillCall] = Counter()

    def update(self, memory: Sequence[Step]) -> tuple[Step, ...]:
        """Take in the steps since the last call and return them."""
        fresh = tuple(memory[self._seen :])
        self._seen = len(memory)
        for step in fresh:
            if step.outcome.status is Status.SUCCEEDED:
                self._failures.pop(step.call, None)
            elif step.outcome.status is Status.FAILED:
                self._failures[step.call] += 1
        return fresh

    @property
    def extra_cost_s(self) -> dict[SkillCall, float]:
        """Seconds to add to the cost of calls that failed: the more often, the dearer."""
        return {call: _FAILURE_COST_S * 3.0 ** (count - 1) for call, count in self._failures.items()}

    @property
    def ruled_out(self) -> frozenset[SkillCall]:
        """Calls that failed too often to be tried while another way exists."""
        return frozenset(c for c, n in self._failures.items() if n >= MAX_SAME_FAILURES)

    @property
    def hopeless(self) -> frozenset[SkillCall]:
        """Calls that are not tried again even if nothing else is left."""
        return frozenset(c for c, n in self._failures.items() if n >= HOPELESS_FAILURES)
