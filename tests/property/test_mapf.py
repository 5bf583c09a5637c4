"""Traffic: no two robots in a cell, no swaps, no rotations, promises kept, everybody arrives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embodied.planners.mapf.pibt import distances, pibt_step
from embodied.planners.mapf.traffic import Traffic
from embodied_scenes.warehouse.grid import GridMap

ROWS, COLS = 6, 7


def grid_of(blocked=()):
    kinds = np.full((ROWS, COLS), 2, np.uint8)
    for r, c in blocked:
        kinds[r, c] = 0
    return GridMap(name="g", kinds=kinds)


CELLS = [(r, c) for r in range(ROWS) for c in range(COLS)]


def near(cell):
    r, c = cell
    return [n for n in ((r, c + 1), (r - 1, c), (r, c - 1), (r + 1, c)) if n in set(CELLS)]


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_a_step_has_no_vertex_edge_or_rotation_conflict(data):
    n = data.draw(st.integers(1, 12))
    at = data.draw(st.permutations(CELLS))[:n]
    goals = data.draw(st.lists(st.sampled_from(CELLS), min_size=n, max_size=n))
    order = data.draw(st.permutations(range(n)))
    fixed = data.draw(st.sets(st.integers(0, n - 1), max_size=3))
    fields = [distances(g, {c: near(c) for c in CELLS}) for g in goals]
    to = pibt_step(at, order, lambda i: sorted([*near(at[i]), at[i]], key=lambda c: fields[i][c]), fixed)
    assert len(set(to)) == n
    assert all(b == a or b in near(a) for a, b in zip(at, to, strict=True))
    assert all(to[i] == at[i] for i in fixed)
    owner = {c: i for i, c in enumerate(at)}
    for i in range(n):
        j, hops = i, 0
        while to[j] != at[j] and to[j] in owner and hops <= n:
            j, hops = owner[to[j]], hops + 1
        assert hops <= n, "a cycle of moves"


def drive(traffic, names, goals, rng, limit=4000):
    """Robots in continuous motion at random speeds; returns the steps until all arrived."""
    pos = {n: np.array(traffic.grid.center_m(traffic.cell_of(n))) for n in names}
    for name, goal in zip(names, goals, strict=True):
        traffic.set_goal(name, goal)
    for step in range(limit):
        for name in names:
            traffic.advance(name, *pos[name])
            ahead = traffic.promised(name)
            target = np.array(traffic.grid.center_m(ahead[0][0] if ahead else traffic.cell_of(name)))
            gap = target - pos[name]
            length = float(np.linalg.norm(gap))
            if length > 1e-9:
                pos[name] = pos[name] + gap * min(1.0, rng.uniform(0.0, 0.3) / length)
        held = [c for cells in traffic.holdings().values() for c in cells]
        assert len(held) == len(set(held)), "a cell promised twice"
        for i, a in enumerate(names):
            for b in names[i + 1 :]:
                assert np.abs(pos[a] - pos[b]).max() > 0.75 * traffic.grid.cell_m
        if all(traffic.has_arrived(n) for n in names):
            return step
    raise AssertionError("not all arrived")


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**31 - 1), st.integers(2, 8))
def test_robots_at_any_speed_arrive_without_meeting(seed, count):
    rng = np.random.default_rng(seed)
    cells = [CELLS[i] for i in rng.permutation(len(CELLS))]
    traffic = Traffic(grid_of())
    names = [f"r{i}" for i in range(count)]
    for name, cell in zip(names, cells, strict=False):
        traffic.enter(name, cell)
    drive(traffic, names, cells[20 : 20 + count], rng)


def test_head_on_in_a_corridor_with_a_bay():
    # row 2 is a corridor, (1, 3) the only bay
    blocked = [(r, c) for r in range(ROWS) for c in range(COLS) if r != 2 and (r, c) != (1, 3)]
    traffic = Traffic(grid_of(blocked))
    traffic.enter("a", (2, 2))
    traffic.enter("b", (2, 4))
    with pytest.raises(AssertionError, match="not all arrived"):
        # where PIBT has no way to swap, robots stand still rather than collide
        drive(traffic, ["a", "b"], [(2, 6), (2, 0)], np.random.default_rng(0), limit=300)


def test_loaded_robots_go_around_carriers_and_empty_ones_below():
    traffic = Traffic(grid_of())
    traffic.enter("a", (2, 0))
    traffic.set_obstacles([(2, 3)])
    drive_path = []
    traffic.set_goal("a", (2, 6), is_loaded=True)
    for _ in range(40):
        for cell, _visit in traffic.promised("a"):
            traffic.advance("a", *traffic.grid.center_m(cell))
            drive_path.append(cell)
    assert traffic.has_arrived("a")
    assert (2, 3) not in drive_path
    assert not traffic.reachable("a", (2, 3), is_loaded=True)
    assert traffic.reachable("a", (2, 3), is_loaded=False)


def test_a_robot_cannot_enter_a_wall_or_a_taken_cell():
    traffic = Traffic(grid_of([(0, 0)]))
    traffic.enter("a", (1, 1))
    with pytest.raises(ValueError, match="blocked"):
        traffic.enter("b", (0, 0))
    with pytest.raises(ValueError, match="promised"):
        traffic.enter("b", (1, 1))
