"""Scripts of motion: a skill run written top to bottom, one ``yield`` per control period."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

import numpy as np
from numpy.typing import NDArray

from embodied.robots.mobile_manipulator.kinematics import (
    ARM_SPEED_RADPS,
    MOUNT_M,
    SERVO_LAG_S,
    TORSO_SPEED_MPS,
    arm_chain,
)
from embodied.robots.mobile_manipulator.spec import ARM, TORSO
from embodied.skills.contract import SUCCESS, Outcome, SceneView, SkillContext, Status, failed
from embodied.skills.household.navigation import BackOut, DriveTo
from embodied.skills.household.obstacles import Boxes, scene_boxes
from embodied.skills.household.reach import carry_postures, join
from embodied_controllers.arm.trajectory import trapezoid_trajectory
from embodied_controllers.base.path_following import wrap_angle
from embodied_controllers.contract import Command
from embodied_controllers.rotation import matrix_of_quat, rot_z, yaw_of_quat

Array = NDArray[np.float64]
Script = Generator[None, None, None]

SPEED_MAX = np.array([TORSO_SPEED_MPS, *(0.8 * ARM_SPEED_RADPS)])
EMPTY_WIDTH_M = 0.004  # narrower: the fingers closed on nothing
_SETTLE_RAD, _SETTLE_S = 0.012, 0.6
_CHAIN = arm_chain()


class SkillFailureError(Exception):
    """Ends a script with a failure outcome; never leaves the run."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


def fail(code: str, message: str, **facts: str | float) -> SkillFailureError:
    """Return the exception that ends a script with a failure."""
    return SkillFailureError(failed(code, message, **facts))


class ManipulationRun:
    """A skill run that follows a script of arm, gripper and base motions; subclasses write :meth:`script`."""

    def __init__(self, ctx: SkillContext) -> None:
        self.ctx = ctx
        # The safe action holds the arm where it was told to be; what was applied is where every motion starts.
        self.command = ctx.robot.stop().values.copy()
        self._script = self.script()

    def script(self) -> Script:
        """Yield once per control period, after sending a command."""
        raise NotImplementedError

    def tick(self, ctx: SkillContext) -> Outcome | None:
        """Advance by one control period; None while running."""
        self.ctx = ctx
        try:
            next(self._script)
        except StopIteration:
            ctx.robot.stop()
            return SUCCESS
        except SkillFailureError as error:
            ctx.robot.stop()
            return error.outcome
        return None

    def cancel(self, ctx: SkillContext) -> None:
        """Stop where it is; the gripper keeps what it holds."""
        self._script.close()
        ctx.robot.stop()

    @property
    def posture(self) -> Array:
        """(8,) torso [m] and arm [rad] as commanded last."""
        return self.command[TORSO : ARM.stop].copy()

    @property
    def base_xyyaw(self) -> Array:
        """(3,) measured base pose in the world."""
        state = self.ctx.robot.read()
        return np.array([*state.base_pos_world_m[:2], yaw_of_quat(state.base_quat_wxyz)])

    @property
    def width_m(self) -> float:
        """Measured opening of the gripper."""
        return float(self.ctx.robot.read().signals["gripper_width_m"])

    def tool_pose(self) -> tuple[Array, Array]:
        """Return the measured tool origin (3,) [m] and axes (3, 3) in the world."""
        state = self.ctx.robot.read()
        pos, rot = _CHAIN.tool(state.joint_pos[1:8])
        turn = rot_z(yaw_of_quat(state.base_quat_wxyz))
        local = pos + MOUNT_M + np.array([0.0, 0.0, float(state.joint_pos[0])])
        return state.base_pos_world_m + turn @ local, turn @ rot

    def send(self) -> None:
        """Send the present command."""
        self.ctx.robot.send(Command(values=self.command))

    def wait(self, time_s: float) -> Script:
        """Keep the present command for a while."""
        for _ in range(max(round(time_s / self.ctx.robot.dt_ctrl_s), 1)):
            self.send()
            yield

    def follow(self, line: Array, *, speed_ratio: float = 1.0, watch: Callable[[], None] | None = None) -> Script:
        """Move torso and arm along a (k, 8) polyline and wait until they are there.

        Args:
          line: postures; the first should be the present command.
          speed_ratio: fraction of the usual speed.
          watch: called each period; may raise :class:`SkillFailureError`.
        """
        path = np.concatenate([self.posture[None], line])
        accel_s = 0.25 if speed_ratio > 0.5 else 0.16
        motion = trapezoid_trajectory(
            path, SPEED_MAX * speed_ratio, accel_time_s=accel_s, dt_s=self.ctx.robot.dt_ctrl_s
        )
        for pos, vel in zip(motion.pos, motion.vel, strict=True):
            # The servos follow a moving target late by their damping over stiffness: aim that much ahead.
            self.command[TORSO : ARM.stop] = pos + SERVO_LAG_S * vel
            self.send()
            if watch is not None:
                watch()
            yield
        self.command[TORSO : ARM.stop] = line[-1]
        for _ in range(round(_SETTLE_S / self.ctx.robot.dt_ctrl_s)):
            if np.abs(self.ctx.robot.read().joint_pos[:8] - line[-1]).max() < _SETTLE_RAD:
                break
            self.send()
            yield

    def grip(self, width_m: float, force_n: float, *, limit_s: float = 1.6) -> Script:
        """Open or close until the fingers rest; opening ends when the width is reached."""
        self.command[10:12] = width_m, force_n
        dt_s = self.ctx.robot.dt_ctrl_s
        steady, last = 0, self.width_m
        for i in range(round(limit_s / dt_s)):
            self.send()
            yield
            now = self.width_m
            steady = steady + 1 if abs(now - last) < 2e-4 else 0
            last = now
            if width_m > 0.0 and abs(now - width_m) < 0.004:
                return
            pressing = abs(float(self.ctx.robot.read().signals["gripper_force_n"])) > 0.9 * force_n
            if i * dt_s > 0.2 and steady >= 5 and (pressing or (width_m > 0.0 and i * dt_s > 0.8)):
                return

    def drive(self, goal: Array, *, ignore: Sequence[str] = ()) -> Script:
        """Drive to a base pose (3,); raises the failure of the drive."""
        here = self.base_xyyaw
        if np.hypot(*(goal[:2] - here[:2])) < 0.02 and abs(wrap_angle(float(goal[2] - here[2]))) < 0.03:
            return
        drive = DriveTo(goal[:2], float(goal[2]), ignore=ignore)
        while (outcome := drive.tick(self.ctx)) is None:
            yield
        if outcome.status is not Status.SUCCEEDED:
            raise SkillFailureError(outcome)

    def back_out(self, distance_m: float) -> Script:
        """Move straight back."""
        back = BackOut(distance_m)
        while back.tick(self.ctx) is None:
            yield

    def tuck(self, held: str | None = None, held_tool_m: Array | None = None) -> Script:
        """Bring the arm to the carry posture from wherever it is, backing out if it is stuck in something."""
        goals = carry_postures(held_tool_m)
        if np.abs(self.posture[None, 1:] - goals[:, 1:]).max(axis=1).min() < 0.03:
            return
        goal = goals[0]
        ignore = () if held is None else (held,)
        for attempt in range(3):
            boxes = scene_boxes(self.ctx.view, ignore=ignore)
            boxes = boxes.near(np.array([*self.base_xyyaw[:2], 0.9]), 1.4)
            line = join(boxes, self.base_xyyaw, self.posture, goal, max(self.width_m, 0.02), held_tool_m)
            if line is not None:
                yield from self.follow(line[1:])
                return
            if attempt < 2:
                yield from self.back_out(0.25)
        yield from self.follow(goal[None], speed_ratio=0.4)


def held_points(
    view: SceneView, thing: str, tool_pos: Array, tool_rot: Array, *, clear_of: Boxes | None = None
) -> Array | None:
    """Return corners, face middles and centre (k, 3) of a thing's box in the tool frame, or None if unknown.

    Args:
      view: poses.
      thing: its name.
      tool_pos: (3,) tool origin in the world [m].
      tool_rot: (3, 3) tool axes in the world.
      clear_of: leave out points that already touch one of these boxes: what a thing leans on cannot block its way out.
    """
    info, pose = view.info.entities[thing], view.pose(thing)
    if pose is None:
        return None
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=np.float64)
    faces = np.concatenate([np.eye(3), -np.eye(3), np.zeros((1, 3))])
    local = info.box_center_m + np.concatenate([corners, faces]) * info.half_size_m
    world = pose.pos_world_m + local @ matrix_of_quat(pose.quat_wxyz).T
    if clear_of is not None and len(clear_of.owners):
        raised = world + np.array([0.0, 0.0, 0.01])
        world = world[(clear_of.clearance_m(raised) > 0.006).all(axis=1)]
        world = world if len(world) else None
    return None if world is None else (world - tool_pos) @ tool_rot
