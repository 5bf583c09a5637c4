"""Driving the base from within a skill.

Use it like this, once per tick until it answers::

    drive = DriveTo((x_m, y_m), yaw_rad)          # plans around everything on the floor at its first tick
    outcome = drive.tick(ctx)                     # None while driving; sends a command each time
    if outcome is not None and outcome.status is Status.SUCCEEDED: ...

    back = BackOut(0.25)                          # straight back (or on, if negative) from wherever the base is

Both leave arm, torso, gripper and head alone (NaN entries: hold). A finished drive has stopped the base. Failures:
``unreachable`` (no way to the goal), ``blocked`` (a way existed, but the base could not follow it).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from embodied.skills.contract import SUCCESS, Outcome, SceneView, SkillContext, failed
from embodied_controllers.base.grid_path import NoPathError, OccupancyGrid, PathResult, box_clearance, plan_path
from embodied_controllers.base.path_following import (
    BaseLimits,
    DifferentialPathFollower,
    FollowerConfig,
    PathSetpoint,
    StraightMove,
    StraightSetpoint,
)
from embodied_controllers.contract import Command, RobotState

Array = NDArray[np.float64]

DRUM_RADIUS_M = 0.25  # the base itself
CRUISE_RADIUS_M = 0.32  # arm in its carry posture (0.30 m) and a margin
TIGHT_RADIUS_M = 0.275  # last resort, slowly: the drum and what the follower may err
LIMITS = BaseLimits(speed_mps=0.7, yaw_rate_radps=1.3, accel_mps2=0.8, yaw_accel_radps2=3.0)
_CHECK_S = 0.5
_PATIENCE_S = 8.0
_STUCK_S = 2.5


def base_command(ctx: SkillContext, forward_mps: float, yaw_rate_radps: float) -> Command:
    """Return a command that drives the base and holds everything else."""
    values = np.full(ctx.robot.action_spec.size, np.nan)
    values[0], values[1] = forward_mps, yaw_rate_radps
    return Command(values=values)


def floor_bounds(view: SceneView, *points: Sequence[float] | Array) -> tuple[float, float, float, float]:
    """Return (x0, y0, x1, y1) around all rooms, or around the furniture where there are none, and the points."""
    corners = [(r.rect_m[0], r.rect_m[1]) for r in view.info.rooms] + [
        (r.rect_m[2], r.rect_m[3]) for r in view.info.rooms
    ]
    margin = 0.1
    if not corners:
        poses = [view.pose(e.name) for e in view.info.entities.values()]
        corners = [(float(p.pos_world_m[0]), float(p.pos_world_m[1])) for p in poses if p is not None]
        margin = 2.0
    corners += [(float(p[0]) + s, float(p[1]) + s) for p in points for s in (-0.3, 0.3)]
    low, high = np.min(corners, axis=0) - margin, np.max(corners, axis=0) + margin
    return float(low[0]), float(low[1]), float(high[0]), float(high[1])


def plan_drive(view: SceneView, start_m: Array, goal_m: Array, *, ignore: Sequence[str] = ()) -> PathResult:
    """Find a way with the comfortable radius or, failing that, with tighter ones.

    Raises:
      NoPathError: not even the tightest radius finds one.
    """
    boxes = view.footprints(ignore=ignore)
    bounds = floor_bounds(view, start_m, goal_m)
    problem: NoPathError | None = None
    for radius in (CRUISE_RADIUS_M, 0.295, TIGHT_RADIUS_M):
        try:
            grid = OccupancyGrid(boxes, radius_m=radius, bounds_m=bounds)
            return plan_path(grid, start_m, goal_m, max_start_nudge_m=0.6)
        except NoPathError as error:
            problem = error
    assert problem is not None
    raise problem


class DriveTo:
    """Drive to a pose on the floor.

    Args:
      goal_xy_m: (2,) goal in the world.
      goal_yaw_rad: heading at the goal; None leaves it.
      ignore: entities that are no obstacles, for instance a held thing.
      speed_mps: speed limit.
      pos_tol_m: arrival tolerance.
      yaw_tol_rad: arrival tolerance on the heading.
    """

    def __init__(
        self,
        goal_xy_m: Sequence[float] | Array,
        goal_yaw_rad: float | None,
        *,
        ignore: Sequence[str] = (),
        speed_mps: float = LIMITS.speed_mps,
        pos_tol_m: float = 0.015,
        yaw_tol_rad: float = 0.02,
    ) -> None:
        self._goal = np.asarray(goal_xy_m, dtype=np.float64)[:2]
        self._yaw, self._ignore, self._speed = goal_yaw_rad, tuple(ignore), speed_mps
        self._follower = DifferentialPathFollower(
            FollowerConfig(limits=LIMITS, pos_tol_m=pos_tol_m, yaw_tol_rad=yaw_tol_rad)
        )
        self._setpoint: PathSetpoint | None = None
        self._retreat: BackOut | None = None
        self._next_check_s = self._next_plan_s = self._blocked_since_s = -1.0
        self._moved_at_s = 0.0
        self._moved_from = np.zeros(3)
        self._retreats = 0

    @property
    def remaining_m(self) -> float:
        """Distance left along the path."""
        return self._follower.remaining_m

    def tick(self, ctx: SkillContext) -> Outcome | None:
        """Advance by one control period and send a command; None while driving."""
        state = ctx.robot.read()
        if self._retreat is not None:
            if self._retreat.tick(ctx) is None:
                return None
            self._retreat, self._setpoint = None, None
        if self._setpoint is None:
            if ctx.time_s < self._next_plan_s:
                ctx.robot.stop()
                return None
            self._next_plan_s = ctx.time_s + _CHECK_S
            problem = self._plan(ctx, state)
            if problem is not None:
                ctx.robot.stop()
                return problem if self._blocked_since_s < 0.0 else self._wait(ctx, problem)
        elif ctx.time_s >= self._next_check_s:
            self._next_check_s = ctx.time_s + _CHECK_S
            if not self._is_clear(ctx, state):
                self._setpoint = None  # plan anew at the next tick, wait if there is no way
                if self._blocked_since_s < 0.0:
                    self._blocked_since_s = ctx.time_s
                ctx.robot.stop()
                return None
            self._blocked_since_s = -1.0
        assert self._setpoint is not None
        v, w = self._follower.step(state, self._setpoint, ctx.robot.dt_ctrl_s)
        if self._follower.arrived:
            ctx.robot.stop()
            return SUCCESS
        ctx.robot.send(base_command(ctx, float(v), float(w)))
        return self._watch(ctx, state)

    def cancel(self, ctx: SkillContext) -> None:
        """Stop the base."""
        ctx.robot.stop()

    def _plan(self, ctx: SkillContext, state: RobotState) -> Outcome | None:
        start = state.base_pos_world_m[:2]
        try:
            found = plan_drive(ctx.view, start, self._goal, ignore=self._ignore)
        except NoPathError as error:
            distance = float(np.hypot(*(self._goal - start)))
            return failed("unreachable", f"No way for the base: {error}", reason=error.reason, distance_m=distance)
        self._follower.reset(state)
        self._setpoint = PathSetpoint(
            path_world_m=found.path_world_m, final_yaw_rad=self._yaw, speed_limit_mps=self._speed
        )
        self._next_check_s = ctx.time_s + _CHECK_S
        self._moved_at_s = ctx.time_s
        self._moved_from = _pose(state)
        return None

    def _wait(self, ctx: SkillContext, problem: Outcome) -> Outcome | None:
        """Give whoever stands in the way some time before giving up."""
        if ctx.time_s - self._blocked_since_s > _PATIENCE_S:
            return failed("blocked", f"The way is blocked. {problem.message}", **problem.facts)
        return None

    def _is_clear(self, ctx: SkillContext, state: RobotState) -> bool:
        """Whether the next metre and a half of the path is free of what moved in."""
        assert self._setpoint is not None
        path, here = self._setpoint.path_world_m, state.base_pos_world_m[:2]
        boxes = ctx.view.footprints(ignore=self._ignore)
        near = np.hypot(boxes[:, 0] - here[0], boxes[:, 1] - here[1]) - np.hypot(boxes[:, 2], boxes[:, 3]) < 2.0
        boxes = boxes[near]
        dense = np.concatenate(
            [
                a + np.linspace(0, 1, max(int(np.hypot(*(b - a)) / 0.05), 1) + 1)[:, None] * (b - a)
                for a, b in _pairs(path)
            ]
        )
        gap = np.hypot(*(dense - here).T)
        first = int(np.argmin(gap))
        ahead = dense[first:][np.hypot(*(dense[first:] - here).T) < 1.5]
        ahead = ahead[np.hypot(*(ahead - here).T) > 0.15]
        return len(ahead) == 0 or float(box_clearance(ahead, boxes).min()) > DRUM_RADIUS_M

    def _watch(self, ctx: SkillContext, state: RobotState) -> Outcome | None:
        """Back off and plan anew when the base does not move although it should."""
        pose = _pose(state)
        if np.abs(pose - self._moved_from).max() > 0.02:
            self._moved_from, self._moved_at_s = pose, ctx.time_s
        elif ctx.time_s - self._moved_at_s > _STUCK_S:
            self._retreats += 1
            self._moved_at_s = ctx.time_s
            if self._retreats > 3:
                ctx.robot.stop()
                return failed(
                    "blocked", "The base pushed against something and could not get past.", distance_m=self.remaining_m
                )
            self._retreat = BackOut(0.15 if self._retreats % 2 else -0.1)
        return None


class BackOut:
    """Move straight back by ``distance_m`` (forward if negative), without planning; ends early where it is stopped."""

    def __init__(self, distance_m: float, *, speed_mps: float = 0.25) -> None:
        self._setpoint = StraightSetpoint(distance_m=-distance_m, speed_limit_mps=speed_mps)
        self._move = StraightMove(LIMITS)
        self._began_s = -1.0
        self._limit_s = 2.0 + 3.0 * abs(distance_m) / speed_mps

    def tick(self, ctx: SkillContext) -> Outcome | None:
        """Advance by one control period and send a command; None while moving."""
        state = ctx.robot.read()
        if self._began_s < 0.0:
            self._began_s = ctx.time_s
            self._move.reset(state)
        v, w = self._move.step(state, self._setpoint, ctx.robot.dt_ctrl_s)
        if self._move.arrived or ctx.time_s - self._began_s > self._limit_s:
            ctx.robot.stop()
            return SUCCESS
        ctx.robot.send(base_command(ctx, float(v), float(w)))
        return None

    def cancel(self, ctx: SkillContext) -> None:
        """Stop the base."""
        ctx.robot.stop()


def _pairs(path: Array) -> list[tuple[Array, Array]]:
    return [(path[i], path[i + 1]) for i in range(len(path) - 1)]


def _pose(state: RobotState) -> Array:
    x, y = state.base_pos_world_m[:2]
    w, _, _, z = state.base_quat_wxyz
    return np.array([x, y, 2.0 * np.arctan2(z, w)])
