"""Why a tidying episode failed, read from what the agent did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from embodied.train.planner.teacher import OPENABLE, Done, Move, Progress

KINDS = ("solved", "not found", "wrong thing", "wrong place", "skill failed", "left open", "budget", "other")
_MANY = 3  # failures of one call that did not stem from a wrong decision
_BODILY = frozenset(
    {"unreachable", "blocked", "grasp_failed", "dropped", "slipped", "stuck", "occupied", "timeout", "closed"}
)


def failure_kind(moves: Sequence[Move], past: Sequence[Done], *, success: bool, out_of_budget: bool) -> str:
    """Return one of :data:`KINDS`, the first that fits.

    Args:
      moves: what was asked.
      past: all calls with their outcomes.
      success: the verdict of the evaluator.
      out_of_budget: whether time or decisions ran out.
    """
    if success:
        return "solved"
    asked = {m.thing: m for m in moves}
    good = [d.call for d in past if not d.code]
    picked = [str(c.arg("thing")) for c in good if c.skill == "pick"]
    placed = {
        (str(c.arg("thing")), str(c.arg("relation", "on")), str(c.arg("target"))) for c in good if c.skill == "place"
    }
    right = {(m.thing, m.relation, m.target) for m in moves}
    if any(t not in asked for t in picked):
        return "wrong thing"
    if placed - right and not right <= placed:
        return "wrong place"
    hard = Counter(d.call for d in past if d.code in _BODILY)
    unplaced = {t for t, *_ in right - placed}
    stuck = any(
        n >= _MANY and (c.skill in ("open", "close", "go_to") or str(c.arg("thing", " ")) in unplaced)
        for c, n in hard.items()
    )
    if stuck:
        return "skill failed"
    if not unplaced:
        open_now = Progress.of(past).opened
        return "left open" if {m.target for m in moves if m.target in OPENABLE} & open_now else "other"
    if unplaced - set(picked):
        return "not found"
    return "budget" if out_of_budget else "other"
