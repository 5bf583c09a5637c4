"""The evaluator: a pure function of a task's goal and an episode's record of facts and events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from embodied.graph.facts import Graph
from embodied.record.contract import Event, FactChange
from embodied.tasks.contract import Task
from embodied.tasks.goal import GoalTracker, describe


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Verdict of an episode.

    Attributes:
      success: the goal held at the end and no constraint was broken (for infeasible tasks: the agents abstained).
      fraction: how much of the goal held at the end, in [0, 1].
      initial_fraction: how much held at step zero.
      gained: progress credit, (fraction - initial) / (1 - initial), in [0, 1].
      reason: in words.
    """

    success: bool
    fraction: float
    initial_fraction: float
    gained: float
    reason: str


def evaluate(task: Task, changes: Sequence[FactChange], events: Sequence[Event]) -> Score:
    """Judge an episode.

    Args:
      task: what was asked.
      changes: all changes of facts in order of time; the first holds the facts of the start.
      events: all events; the last one is ``end``.

    Returns:
      The score; equal inputs give equal scores.
    """
    if not changes:
        return Score(success=False, fraction=0.0, initial_fraction=0.0, gained=0.0, reason="no facts were recorded")
    goal = GoalTracker(task.goal)
    constraints = [GoalTracker(c) for c in task.constraints]
    broken: str = ""
    graph = Graph({}, frozenset())
    initial = 0.0
    for number, change in enumerate(changes):
        graph = graph.changed(change.added, change.removed)
        goal.update(graph, change.time_s)
        if number == 0:
            initial = goal.fraction(graph, change.time_s)
        for tracker in constraints:
            if not tracker.update(graph, change.time_s) and not broken:
                broken = f"constraint {describe(tracker.goal)} was broken at {change.time_s:.1f} s"
    end_s = events[-1].time_s if events else changes[-1].time_s
    fraction = goal.fraction(graph, end_s)
    holds = goal.update(graph, end_s)
    gained = 0.0 if initial >= 1.0 else max(0.0, (fraction - initial) / (1.0 - initial))
    abstained = any(e.kind == "skill_end" and e.payload.get("skill") == "abstain" for e in events)
    if not task.feasible:
        reason = "abstained from an infeasible task" if abstained else "did not abstain from an infeasible task"
        success = abstained
    elif broken:
        success, reason = False, broken
    elif holds:
        success, reason = True, "the goal holds"
    else:
        unmet = goal.unmet(graph, end_s)
        success, reason = False, "unmet: " + "; ".join(unmet[:4]) + (" …" if len(unmet) > 4 else "")
    return Score(success=success, fraction=fraction, initial_fraction=initial, gained=gained, reason=reason)
