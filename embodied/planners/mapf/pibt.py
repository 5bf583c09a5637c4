"""One step of priority inheritance with backtracking, without rotations.

Every agent wishes for a cell; one that wants an occupied cell lends its priority to whoever stands there and so pushes
it on. Unlike the original, an agent never follows into a cell whose owner waits for it in turn (no cycle of moves): a
plan without cycles can be carried out by robots that enter a cell only after it was left.

References:
  K. Okumura et al., "Priority Inheritance with Backtracking for Iterative Multi-agent Path Finding", Artificial
  Intelligence 310 (2022), algorithm 1.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import TypeVar

C = TypeVar("C", bound=Hashable)


def pibt_step(
    at: Sequence[C], order: Sequence[int], wishes: Callable[[int], Sequence[C]], fixed: Collection[int] = ()
) -> list[C]:
    """Return where every agent goes next.

    Args:
      at: cell of each agent; all different.
      order: agents by falling priority; those left out stay unless they are pushed.
      wishes: cells an agent could take next, best first, its own cell among them; only its own and neighbours.
      fixed: agents that may not move.

    Returns:
      One cell per agent: all different, no two agents swap, no cycle of agents moves round.
    """
    target: list[C | None] = [None] * len(at)
    owner = {cell: i for i, cell in enumerate(at)}
    taken: set[C] = set()
    asking: set[int] = set()
    for i in fixed:
        target[i] = at[i]
        taken.add(at[i])

    def move(i: int) -> bool:
        asking.add(i)
        for cell in wishes(i):
            if cell in taken:
                continue
            j = owner.get(cell, i)
            if j != i and (j in asking or target[j] == at[i]):
                continue
            target[i] = cell
            taken.add(cell)
            if j != i and target[j] is None and not move(j):
                continue  # j stays, and its stay keeps the cell taken
            asking.discard(i)
            return True
        target[i] = at[i]
        taken.add(at[i])
        asking.discard(i)
        return False

    for i in order:
        if target[i] is None:
            move(i)
    return [at[i] if cell is None else cell for i, cell in enumerate(target)]


def distances(goal: C, neighbours: Mapping[C, Sequence[C]], blocked: Collection[C] = ()) -> dict[C, int]:
    """Return the number of moves to ``goal`` from every cell that can reach it, breadth first.

    Args:
      goal: where to; counts as free.
      neighbours: cell to the cells next to it.
      blocked: cells that may not be crossed; they still get a distance, to lead out of them.
    """
    found = {goal: 0}
    queue = deque([goal])
    while queue:
        cell = queue.popleft()
        if cell in blocked and cell != goal:
            continue
        for other in neighbours[cell]:
            if other not in found:
                found[other] = found[cell] + 1
                queue.append(other)
    return found
