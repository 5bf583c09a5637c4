"""Goals as a search sees them: a state is a set of facts and the latches that have fired."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from embodied.graph.facts import Fact
from embodied.tasks.goal import AllOf, AtLeast, Goal, HoldFor, Holds, Latched, Not

Latches = frozenset[Latched]
Literal = tuple[Fact, bool]
Demand = tuple[float, tuple[Literal, ...]]

INFINITE = float("inf")


def latches_in(goal: Goal) -> tuple[Latched, ...]:
    """Return every ``Latched`` part of a goal, inner ones first."""
    found: list[Latched] = []
    for part in parts_of(goal):
        found.extend(latches_in(part))
    if isinstance(goal, Latched):
        found.append(goal)
    return tuple(dict.fromkeys(found))


def hold_s(goal: Goal) -> float:
    """Return the longest ``HoldFor`` of a goal in seconds, 0 if it has none."""
    own = goal.duration_s if isinstance(goal, HoldFor) else 0.0
    return max([own, *(hold_s(p) for p in parts_of(goal))])


def parts_of(goal: Goal) -> Iterator[Goal]:
    """Yield the direct parts of a goal."""
    if isinstance(goal, AllOf | AtLeast):
        yield from goal.parts
    elif isinstance(goal, Not | Latched | HoldFor):
        yield goal.part


def satisfied(goal: Goal, facts: frozenset[Fact], latches: Latches = frozenset()) -> bool:
    """Whether a goal holds; the duration of ``HoldFor`` is left to waiting."""
    if isinstance(goal, Holds):
        return goal.fact in facts
    if isinstance(goal, Not):
        return not satisfied(goal.part, facts, latches)
    if isinstance(goal, AllOf):
        return all(satisfied(p, facts, latches) for p in goal.parts)
    if isinstance(goal, AtLeast):
        count = sum(satisfied(p, facts, latches) for p in goal.parts)
        return count == goal.count if goal.exactly else count >= goal.count
    if isinstance(goal, Latched):
        return goal in latches or satisfied(goal.part, facts, latches)
    return satisfied(goal.part, facts, latches)


def advance(nodes: tuple[Latched, ...], facts: frozenset[Fact], latches: Latches) -> Latches:
    """Return the latches after ``facts`` became true; ``nodes`` as :func:`latches_in` gives them."""
    for node in nodes:
        if node not in latches and satisfied(node.part, facts, latches):
            latches = latches | {node}
    return latches


def literals(goal: Goal, *, wanted: bool = True) -> Iterator[Literal]:
    """Yield every (fact, wanted value) that may have to be reached for a goal to hold (or to fail)."""
    if isinstance(goal, Holds):
        yield goal.fact, wanted
        return
    for part in parts_of(goal):
        if isinstance(goal, AtLeast) and goal.exactly:
            yield from literals(part, wanted=True)
            yield from literals(part, wanted=False)
        else:
            yield from literals(part, wanted=wanted != isinstance(goal, Not))


def demand(
    goal: Goal, facts: frozenset[Fact], latches: Latches, cost_of: Callable[[Literal], float], *, wanted: bool = True
) -> Demand:
    """Return the cheapest estimated cost of making a goal hold (or fail), and the literals chosen for it."""
    if isinstance(goal, Holds):
        literal = (goal.fact, wanted)
        return (0.0, ()) if (goal.fact in facts) == wanted else (cost_of(literal), (literal,))
    if isinstance(goal, Not):
        return demand(goal.part, facts, latches, cost_of, wanted=not wanted)
    if isinstance(goal, Latched) and goal in latches:
        return (0.0, ()) if wanted else (INFINITE, ())
    if isinstance(goal, Latched | HoldFor):
        return demand(goal.part, facts, latches, cost_of, wanted=wanted)
    parts = goal.parts
    if isinstance(goal, AtLeast) and goal.exactly:
        return _exactly(goal, facts, latches, cost_of, wanted=wanted)
    needed = len(parts) if isinstance(goal, AllOf) else goal.count
    if not wanted:
        needed = len(parts) - needed + 1
    return _cheapest([demand(p, facts, latches, cost_of, wanted=wanted) for p in parts], needed)


def _cheapest(demands: list[Demand], count: int) -> Demand:
    if count > len(demands):
        return INFINITE, ()
    chosen = sorted(demands, key=lambda d: d[0])[: max(count, 0)]
    return sum(d[0] for d in chosen), tuple(x for d in chosen for x in d[1])


def _exactly(
    goal: AtLeast, facts: frozenset[Fact], latches: Latches, cost_of: Callable[[Literal], float], *, wanted: bool
) -> Demand:
    true = [p for p in goal.parts if satisfied(p, facts, latches)]
    false = [p for p in goal.parts if not satisfied(p, facts, latches)]
    raise_one = [demand(p, facts, latches, cost_of) for p in false]
    lower_one = [demand(p, facts, latches, cost_of, wanted=False) for p in true]
    if not wanted:
        return (0.0, ()) if len(true) != goal.count else _cheapest(raise_one + lower_one, 1)
    gap = goal.count - len(true)
    return _cheapest(raise_one, gap) if gap >= 0 else _cheapest(lower_one, -gap)
