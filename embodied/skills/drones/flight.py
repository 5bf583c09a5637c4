"""What the flying skills share: the flight controller of a robot and a run that follows a reference."""

from __future__ import annotations

from math import hypot, pi

import numpy as np
from numpy.typing import NDArray

from embodied.graph.facts import Fact, Graph, fact
from embodied.skills.contract import Outcome, SkillContext, Unmet, failed
from embodied.skills.drones.airspace import Airspace
from embodied_controllers.contract import Command, RobotState
from embodied_controllers.quadrotor.controller import FlightController, FlightSetpoint
from embodied_controllers.quadrotor.trajectory import MinimumJerk, Polyline
from embodied_deploy.robot import Robot

Array = NDArray[np.float64]
SPEED_MPS, ACC_MPS2 = 1.4, 1.6
YAW_RATE_RADPS = 1.2
LOST_M = 1.0  # farther than this from the reference means that something holds or pushes the drone
CRASH_TILT_COS = 0.2


def flight_controller(robot: Robot) -> FlightController:
    """Return the robot's own autopilot where it has one, else a fresh controller at its present state."""
    own = getattr(robot, "autopilot", None)
    if isinstance(own, FlightController):
        return own
    made = FlightController()
    made.reset(robot.read())
    return made


def needs_flying(graph: Graph, agent: str, *, flying: bool) -> tuple[Unmet, ...]:
    """Return the unmet precondition that an agent flies (or does not)."""
    if graph.holds("flying", agent) == flying:
        return ()
    if flying:
        return (Unmet(message=f"{agent} does not fly; take off first.", missing=fact("flying", agent)),)
    return (Unmet(message=f"{agent} flies already."),)


def at_facts(graph: Graph, agent: str) -> frozenset[Fact]:
    """Return where an agent is said to be."""
    return frozenset(graph.find("at", agent))


class Reference:
    """A path with a heading that turns at a limited rate towards where it must face at the end.

    Args:
      path: sampled for position, velocity and acceleration.
      yaw_rad: heading at the start.
      face: heading to reach; None keeps the first.
    """

    def __init__(self, path: Polyline | MinimumJerk, yaw_rad: float, face: float | None) -> None:
        self._path = path
        self._yaw = yaw_rad
        turn = 0.0 if face is None else (face - yaw_rad + pi) % (2 * pi) - pi
        self._turn = turn
        self._turn_s = abs(turn) / YAW_RATE_RADPS
        self.duration_s = max(path.duration_s, self._turn_s)

    def setpoint(self, time_s: float) -> FlightSetpoint:
        """Return the set-point at a time since the start of the path."""
        pos, vel, acc = self._path.sample(time_s)
        share = min(time_s / self._turn_s, 1.0) if self._turn_s > 0 else 1.0
        rate = self._turn / self._turn_s if share < 1.0 else 0.0
        return FlightSetpoint(
            pos_world_m=pos,
            vel_world_mps=vel,
            acc_world_mps2=acc,
            yaw_rad=self._yaw + share * self._turn,
            yaw_rate_radps=rate,
        )


class Follower:
    """Follows references tick by tick and notices when the drone is lost or has tumbled."""

    def __init__(self, ctx: SkillContext) -> None:
        self._pilot = flight_controller(ctx.robot)
        self._reference: Reference | None = None
        self._since_s = 0.0

    def begin(self, ctx: SkillContext, reference: Reference) -> None:
        """Follow a reference from now on."""
        self._reference, self._since_s = reference, ctx.time_s

    def tick(self, ctx: SkillContext) -> tuple[RobotState, float, Outcome | None]:
        """Send one command; return state, time left of the reference (negative: time since its end), and a failure."""
        assert self._reference is not None
        state = ctx.robot.read()
        t = ctx.time_s - self._since_s
        sp = self._reference.setpoint(t)
        thrust = self._pilot.step(state, sp, ctx.robot.dt_ctrl_s)
        gap = state.base_pos_world_m - np.array(sp.pos_world_m)
        distance = float(np.sqrt(gap @ gap))
        _, x, y, _ = state.base_quat_wxyz.tolist()
        problem = None
        if 1 - 2 * (x * x + y * y) < CRASH_TILT_COS:
            problem = failed("crashed", "The drone tumbled; motors off.", tilt_cos=1 - 2 * (x * x + y * y))
            thrust = np.zeros(4)
            ctx.set_state(ctx.agent, "flying", False)
        elif distance > LOST_M:
            near = nearest_obstacle(ctx, state.base_pos_world_m)
            problem = failed(
                "blocked",
                f"The drone is {distance:.2f} m off its path near {near}.",
                distance_m=distance,
                blocked_by=near,
            )
        ctx.robot.send(Command(values=thrust))
        return state, self._reference.duration_s - t, problem


def speed_of(state: RobotState) -> float:
    """Return the speed of a sample, m/s."""
    v = state.base_vel_body_mps
    return float(np.sqrt(v @ v))


def settled(state: RobotState, target_m: Array, yaw_rad: float | None, tolerance_m: float = 0.12) -> bool:
    """Whether the drone stands still at a point, facing a heading."""
    gap = state.base_pos_world_m - target_m
    if float(np.sqrt(gap @ gap)) > tolerance_m or speed_of(state) > 0.2:
        return False
    if yaw_rad is None:
        return True
    w, x, y, z = state.base_quat_wxyz.tolist()
    yaw = float(np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))
    return abs((yaw - yaw_rad + pi) % (2 * pi) - pi) < 0.1


def nearest_obstacle(ctx: SkillContext, pos_m: Array) -> str:
    """Name what stands nearest to a point, for failure facts."""
    space = Airspace.from_view(ctx.view, ctx.agent)
    if not space.names:
        return "nothing"
    local = np.einsum("nji,nj->ni", space.rot_world, pos_m - space.center_m)
    gap = np.linalg.norm(np.maximum(np.abs(local) - space.half_m, 0.0), axis=1)
    return space.names[int(np.argmin(gap))]


def heading(start_m: Array, end_m: Array, default: float) -> float:
    """Return the heading from one point to another, ``default`` if they lie above each other."""
    dx, dy = (end_m - start_m)[:2].tolist()
    return float(np.arctan2(dy, dx)) if hypot(dx, dy) > 0.2 else default


def hold_after_cancel(ctx: SkillContext) -> None:
    """Leave the drone in its safe state: it holds its position in the air."""
    ctx.robot.stop()


def plan_path(ctx: SkillContext, start_m: Array, goal_m: Array) -> Polyline | None:
    """Return a path around all obstacles, or None."""
    points = Airspace.from_view(ctx.view, ctx.agent).path(start_m, goal_m)
    if points is None:
        return None
    return Polyline([p.tolist() for p in points], SPEED_MPS, ACC_MPS2)
