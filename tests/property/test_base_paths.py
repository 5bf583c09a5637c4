"""Grid paths and the path follower on random floors."""

from __future__ import annotations

import heapq
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embodied_controllers.base.grid_path import NoPathError, OccupancyGrid, box_clearance, plan_path
from embodied_controllers.base.path_following import (
    DifferentialPathFollower,
    FollowerConfig,
    PathSetpoint,
    StraightMove,
    StraightSetpoint,
    wrap_angle,
)
from embodied_controllers.contract import RobotState

RADIUS_M = 0.3


def floor(seed: int, n: int = 12) -> np.ndarray:
    """Boxes in a walled room of 6 x 5 m."""
    rng = np.random.default_rng(seed)
    walls = [(3, 0, 3, 0.05, 0), (3, 5, 3, 0.05, 0), (0, 2.5, 0.05, 2.5, 0), (6, 2.5, 0.05, 2.5, 0)]
    things = [
        (*rng.uniform([0.5, 0.5], [5.5, 4.5]), *rng.uniform(0.05, 0.4, 2), rng.uniform(-math.pi, math.pi))
        for _ in range(n)
    ]
    return np.array([*walls, *things])


def free_points(grid: OccupancyGrid, seed: int, n: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    points = rng.uniform([0.3, 0.3], [5.7, 4.7], (400, 2))
    return points[grid.is_free(points)][:n]


def drive(
    follower: DifferentialPathFollower, setpoint: PathSetpoint, pose: tuple[float, float, float], *, lag: float = 0.3
) -> tuple[float, float, float, list[tuple[float, float]], list[np.ndarray]]:
    """Simulate a unicycle whose speeds follow the commands with a lag; return the end, the trace and the commands."""
    x, y, yaw = pose
    v = w = 0.0
    trace, commands = [], []
    for i in range(6000):
        state = RobotState(
            time_s=i * 0.02,
            joint_pos=np.zeros(0),
            joint_vel=np.zeros(0),
            base_pos_world_m=np.array([x, y, 0.0]),
            base_quat_wxyz=np.array([math.cos(yaw / 2), 0, 0, math.sin(yaw / 2)]),
            base_vel_body_mps=np.array([v, 0, 0]),
            base_angvel_body_radps=np.array([0, 0, w]),
        )
        if i == 0:
            follower.reset(state)
        command = follower.step(state, setpoint, 0.02)
        commands.append(command)
        if follower.arrived:
            break
        v += (command[0] - v) * lag
        w += (command[1] - w) * lag
        x, y, yaw = x + v * math.cos(yaw) * 0.02, y + v * math.sin(yaw) * 0.02, yaw + w * 0.02
        trace.append((x, y))
    return x, y, yaw, trace, commands


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10_000))
def test_follows_planned_paths_without_touching(seed: int) -> None:
    boxes = floor(seed)
    grid = OccupancyGrid(boxes, radius_m=RADIUS_M, bounds_m=(0, 0, 6, 5))
    points = free_points(grid, seed, 2)
    if len(points) < 2:
        return
    start, goal = points
    try:
        found = plan_path(grid, start, goal)
    except NoPathError as error:
        assert error.reason == "no_route"  # noqa: PT017 -- a random floor may be cut in two
        return
    path = found.path_world_m
    assert np.allclose(path[0], start)
    assert np.allclose(path[-1], goal)
    dense = np.concatenate([a + np.linspace(0, 1, 100)[:, None] * (b - a) for a, b in itertools.pairwise(path)])
    assert box_clearance(dense, boxes).min() > RADIUS_M - 0.5 * grid.cell_m
    rng = np.random.default_rng(seed)
    yaw = float(rng.uniform(-math.pi, math.pi))
    follower = DifferentialPathFollower()
    x, y, end, trace, commands = drive(
        follower, PathSetpoint(path_world_m=path, final_yaw_rad=yaw), (*start, float(rng.uniform(-3, 3)))
    )
    limits = follower.config.limits
    assert follower.arrived
    assert math.hypot(x - goal[0], y - goal[1]) < 0.02
    assert abs(wrap_angle(end - yaw)) < math.radians(2)
    assert box_clearance(np.array(trace), boxes).min() > RADIUS_M - 0.09 if trace else True
    steps = np.abs(np.diff(np.array(commands), axis=0))
    assert (steps <= np.array([limits.accel_mps2, limits.yaw_accel_radps2]) * 0.02 + 1e-9).all()
    assert (np.abs(commands) <= np.array([limits.speed_mps, limits.yaw_rate_radps]) + 1e-9).all()


def plain_dijkstra(grid: OccupancyGrid, start: int) -> np.ndarray:
    """Dijkstra's algorithm with a heap, one cell at a time."""
    nx, blocked, cost = grid.nx, grid.blocked.ravel(), grid.cost.ravel()
    dist = np.full(blocked.size, np.inf)
    dist[start] = 0.0
    heap = [(0.0, start)]
    while heap:
        d, u = heapq.heappop(heap)
        if d > dist[u]:
            continue
        for dx in (-1, 0, 1):
            for dy in (-1, 0, 1):
                v = u + dx + dy * nx
                if v == u or blocked[v] or (dx and dy and (blocked[u + dx] or blocked[u + dy * nx])):
                    continue
                new = d + math.hypot(dx, dy) * 0.5 * (cost[u] + cost[v])
                if new < dist[v]:
                    dist[v] = new
                    heapq.heappush(heap, (new, v))
    return dist


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 10_000))
def test_costs_equal_a_plain_dijkstra(seed: int) -> None:
    grid = OccupancyGrid(floor(seed), radius_m=RADIUS_M, bounds_m=(0, 0, 6, 5), cell_m=0.1)
    points = free_points(grid, seed, 1)
    start = grid.nearest_free(points[0], 0.5) if len(points) else None
    if start is None:
        return
    ours, parent = grid.field(start)
    assert np.allclose(ours, plain_dijkstra(grid, start))
    reached = np.flatnonzero(np.isfinite(ours))
    assert (ours[parent[reached[reached != start]]] < ours[reached[reached != start]]).all()


def test_start_and_goal_in_inflation_are_moved_out() -> None:
    boxes = np.array([[1.0, 0.0, 0.5, 0.5, 0.0]])
    grid = OccupancyGrid(boxes, radius_m=0.3, bounds_m=(-3, -3, 4, 3))
    with pytest.raises(NoPathError) as caught:
        plan_path(grid, (0.3, 0.0), (1.7, 0.0))
    assert caught.value.reason == "goal_blocked"
    found = plan_path(grid, (0.3, 0.0), (1.7, 0.0), max_goal_nudge_m=0.3)
    assert 0.0 < found.start_nudge_m < 0.2
    assert 0.0 < found.goal_nudge_m < 0.2
    with pytest.raises(NoPathError) as caught:
        plan_path(grid, (1.0, 0.0), (3.0, 0.0), max_start_nudge_m=0.2)
    assert caught.value.reason == "start_blocked"
    with pytest.raises(NoPathError) as caught:
        plan_path(grid, (-1.0, 0.0), (9.0, 0.0))
    assert caught.value.reason == "outside"


@pytest.mark.parametrize("bad", [(math.nan, 0.0), (math.inf, 0.0)])
def test_goals_that_are_no_points(bad: tuple[float, float]) -> None:
    grid = OccupancyGrid(np.zeros((0, 5)), radius_m=0.3)
    with pytest.raises(NoPathError, match="finite"):
        plan_path(grid, (0.0, 0.0), bad)


def test_bad_boxes_and_paths_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(n, 5\)"):
        OccupancyGrid(np.zeros((2, 4)), radius_m=0.3)
    with pytest.raises(ValueError, match="finite"):
        OccupancyGrid(np.full((1, 5), np.nan), radius_m=0.3)
    state = RobotState(time_s=0.0, joint_pos=np.zeros(0), joint_vel=np.zeros(0))
    follower = DifferentialPathFollower()
    follower.reset(state)
    for path in (np.zeros((0, 2)), np.zeros((3, 3)), np.array([[0.0, np.nan]])):
        with pytest.raises(ValueError, match="path_world_m"):
            follower.step(state, PathSetpoint(path_world_m=path), 0.02)
    with pytest.raises(ValueError, match="final_yaw_rad"):
        follower.step(state, PathSetpoint(path_world_m=np.zeros((1, 2)), final_yaw_rad=math.nan), 0.02)


def test_a_path_of_one_point_turns_on_the_spot() -> None:
    follower = DifferentialPathFollower(FollowerConfig())
    x, y, yaw, _, _ = drive(follower, PathSetpoint(path_world_m=np.zeros((1, 2)), final_yaw_rad=2.0), (0.0, 0.0, -2.0))
    assert follower.arrived
    assert math.hypot(x, y) < 0.01
    assert abs(wrap_angle(yaw - 2.0)) < 0.03


@pytest.mark.parametrize("distance_m", [0.4, -0.4])
def test_straight_moves(distance_m: float) -> None:
    move = StraightMove()
    x = y = 0.0
    for i in range(400):
        state = RobotState(
            time_s=i * 0.02,
            joint_pos=np.zeros(0),
            joint_vel=np.zeros(0),
            base_pos_world_m=np.array([x, y, 0.0]),
            base_quat_wxyz=np.array([math.cos(0.25), 0, 0, math.sin(0.25)]),
        )
        if i == 0:
            move.reset(state)
        v, w = move.step(state, StraightSetpoint(distance_m=distance_m), 0.02)
        assert abs(w) < 1e-9
        if move.arrived:
            break
        x, y = x + v * math.cos(0.5) * 0.02, y + v * math.sin(0.5) * 0.02
    assert move.arrived
    assert x * math.cos(0.5) + y * math.sin(0.5) == pytest.approx(distance_m, abs=0.008)
