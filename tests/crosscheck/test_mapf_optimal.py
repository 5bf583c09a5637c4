"""The traffic's plans against a small optimal solver: never better, seldom much worse."""

from __future__ import annotations

from collections import deque
from itertools import product

import numpy as np
import pytest

from embodied.planners.mapf.pibt import distances
from embodied.planners.mapf.traffic import Traffic
from embodied_scenes.warehouse.grid import GridMap

SIZE = 4
CELLS = [(r, c) for r in range(SIZE) for c in range(SIZE)]
NEAR = {(r, c): [n for n in ((r, c + 1), (r - 1, c), (r, c - 1), (r + 1, c)) if n in CELLS] for r, c in CELLS}


def optimal_makespan(starts, goals):
    """Breadth-first search over joint cells; moves without vertex or edge conflict and without rotation."""
    seen, queue = {starts: 0}, deque([starts])
    while queue:
        at = queue.popleft()
        if at == goals:
            return seen[at]
        for to in product(*([*NEAR[c], c] for c in at)):
            if len(set(to)) < len(to) or to in seen:
                continue
            owner = {c: i for i, c in enumerate(at)}
            swaps = any(to[i] in owner and owner[to[i]] != i and to[owner[to[i]]] == at[i] for i in range(len(at)))
            if not swaps:
                seen[to] = seen[at] + 1
                queue.append(to)
    raise AssertionError("no solution")


def steps_of_traffic(starts, goals):
    """Lockstep execution: every robot enters at most one promised cell per step."""
    traffic = Traffic(GridMap(name="g", kinds=np.full((SIZE, SIZE), 2, np.uint8)))
    names = [f"r{i}" for i in range(len(starts))]
    for name, start in zip(names, starts, strict=True):
        traffic.enter(name, start)
    for name, goal in zip(names, goals, strict=True):
        traffic.set_goal(name, goal)
    for step in range(200):
        if all(traffic.has_arrived(n) for n in names):
            return step
        promised = {n: traffic.promised(n) for n in names}
        for name, cells in promised.items():
            if cells:
                traffic.advance(name, *traffic.grid.center_m(cells[0][0]))
    raise AssertionError("not solved")


@pytest.mark.parametrize("agents", [2, 3])
def test_makespan_against_the_optimum(agents):
    rng = np.random.default_rng(7)
    ratios = []
    for _ in range(25):
        order = rng.permutation(len(CELLS))
        starts = tuple(CELLS[i] for i in order[:agents])
        goals = tuple(CELLS[i] for i in rng.permutation(len(CELLS))[:agents])
        best = optimal_makespan(starts, goals)
        got = steps_of_traffic(starts, goals)
        assert got >= best
        ratios.append(got / best if best else 1.0)
    assert np.mean(ratios) < 1.5


def test_distances_match_floyd_warshall():
    n = len(CELLS)
    table = np.full((n, n), np.inf)
    for i, cell in enumerate(CELLS):
        table[i, i] = 0
        for other in NEAR[cell]:
            table[i, CELLS.index(other)] = 1
    for k in range(n):
        table = np.minimum(table, table[:, k : k + 1] + table[k : k + 1, :])
    for i, cell in enumerate(CELLS):
        found = distances(cell, NEAR)
        assert [found[c] for c in CELLS] == table[i].tolist()
