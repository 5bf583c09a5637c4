"""The task as an episode: a world with its robot and camera, what the policy is given, and when it has succeeded."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from embodied.robots.base import make_robot, robot_start
from embodied.robots.mobile_manipulator.kinematics import arm_chain
from embodied.robots.mobile_manipulator.spec import ARM, GRIPPER, MOBILE_MANIPULATOR
from embodied.sensors.camera.camera import Camera
from embodied.train.grasp.scene import ROBOT, START_WIDTH_M, THING, GraspScene
from embodied.worlds.contract import Start
from embodied.worlds.mujoco import MujocoWorld
from embodied_controllers.contract import Command, RobotState
from embodied_controllers.rotation import matrix_of_quat
from embodied_deploy.policy.sample import Sample

Array = NDArray[np.float64]

RATE_HZ = 10.0
DT_S = 1.0 / RATE_HZ
STEPS = 80
"""Control periods in an episode."""
LIFT_M, HOLD_S = 0.05, 1.0
UPRIGHT_MIN = 0.8
"""Cosine of the tilt beyond which a thing has toppled; a grasp from above is no answer to that."""
IMAGE_PX = 64
CAMERA = "wrist_cam"
DRIVEN = np.r_[np.arange(14)[ARM], np.arange(14)[GRIPPER]]
"""Entries of the robot's action that the policy drives: arm and gripper."""

_CHAIN = arm_chain()


class GraspEpisode:
    """One episode, stepped at :data:`RATE_HZ`; base, torso and head hold their place.

    Args:
      scene: what a seed stands for.
    """

    def __init__(self, scene: GraspScene) -> None:
        self.scene = scene
        self.world = MujocoWorld(scene.compile())
        self.robot = make_robot(self.world, ROBOT, MOBILE_MANIPULATOR)
        self.camera = Camera(self.world, f"{ROBOT}/{CAMERA}", IMAGE_PX, IMAGE_PX)
        self._body = int(self.world.scene.model.body(THING).id)
        self._substeps = round(self.robot.dt_ctrl_s / self.world.dt_sim_s)
        self._periods = round(DT_S / self.robot.dt_ctrl_s)
        x, y, yaw = scene.base_xyyaw
        joint_pos = robot_start(ROBOT, MOBILE_MANIPULATOR)
        joint_pos |= {f"{ROBOT}/arm_{i}": float(scene.arm_rad[i]) for i in range(7)}
        joint_pos |= {f"{ROBOT}/finger_{side}": START_WIDTH_M / 2 for side in ("left", "right")}
        joint_pos |= {f"{ROBOT}/base_x": x, f"{ROBOT}/base_y": y, f"{ROBOT}/base_yaw": yaw}
        joint_pos |= {f"{ROBOT}/torso_lift": scene.torso_m}
        self.world.reset(scene.seed, Start(joint_pos=joint_pos))
        self.robot.reset()
        self._start_m = float(self.thing_world_m[2])
        self._held_s = 0.0
        self.steps = 0

    @property
    def thing_world_m(self) -> Array:
        """(3,) middle of the thing."""
        return self.world.body_pos_world_m[0, self._body].copy()

    @property
    def thing_rot_world(self) -> Array:
        """(3, 3) axes of the thing."""
        return matrix_of_quat(self.world.body_quat_wxyz[0, self._body])

    @property
    def lift_m(self) -> float:
        """How far the thing is above where it lay."""
        return float(self.thing_world_m[2]) - self._start_m

    @property
    def is_success(self) -> bool:
        """The thing has been lifted by :data:`LIFT_M` and held for :data:`HOLD_S`."""
        return self._held_s >= HOLD_S - 1e-9

    @property
    def is_over(self) -> bool:
        """Success, time is up, or the thing toppled or fell off the table."""
        return self.is_success or self.steps >= STEPS or self._is_lost

    @property
    def _is_lost(self) -> bool:
        return self.lift_m < -0.1 or float(self.thing_rot_world[2, 2]) < UPRIGHT_MIN

    @property
    def outcome(self) -> str:
        """What became of the episode, in one word."""
        if self.is_success:
            return "lifted"
        if self._is_lost:
            return "toppled"
        return "dropped" if self._was_up else "missed"

    _was_up = False

    def observe(self) -> Sample:
        """Return what the policy may know now."""
        return Sample(state=self.robot.read(), last_action=self.robot.last_action, images={CAMERA: self.image()})

    def image(self) -> NDArray[np.uint8]:
        """Return (64, 64, 3) what the wrist camera sees, with this episode's brightness and tint."""
        rgb = self.camera.render().rgb
        return np.clip(rgb * self.scene.gain_rgb, 0.0, 255.0).astype(np.uint8)

    def tool_world(self) -> tuple[Array, Array]:
        """Return the tool's position (3,) and axes (3, 3) by the joints."""
        site = int(self.world.scene.model.site(f"{ROBOT}/grasp_site").id)
        return self.world.site_pos_world_m[0, site].copy(), self.world.site_rot_world[0, site].reshape(3, 3).copy()

    def step(self, action: Array) -> None:
        """Hold an action for one control period.

        Args:
          action: (9,) joint targets of the arm [rad], gripper opening [m] and force [N]; or (14,) the robot's whole
            action with NaN for what is held.
        """
        values = np.full(self.robot.action_spec.size, np.nan)
        if len(action) == len(DRIVEN):
            values[DRIVEN] = action
        else:
            values[:] = action
        values[:2] = 0.0  # the base stands
        self.robot.send(Command(values=values))
        for period in range(self._periods):
            if period:
                self.robot.refresh()
            self.world.step(self._substeps)
        self.steps += 1
        is_up = self.lift_m >= LIFT_M
        self._was_up |= is_up
        self._held_s = self._held_s + DT_S if is_up else 0.0


def proprioception(state: RobotState) -> Array:
    """Return (10,) torso [m], arm [rad], gripper opening [m] and force [N]: what the policy feels."""
    signals = state.signals
    return np.array([*state.joint_pos[:8], signals["gripper_width_m"], signals["gripper_force_n"]])


def thing_in_tool(episode: GraspEpisode) -> Array:
    """Return (5,) where the thing is as the tool sees it; only training may know it.

    Three are the middle of its top in the frame of the tool [m], two are cosine and sine of twice the turn between
    hand and thing, both zero for things without corners.
    """
    pos, rot = episode.tool_world()
    top = episode.thing_world_m + np.array([0.0, 0.0, episode.scene.thing_half_m[2]])
    turn = np.zeros(2)
    if not episode.scene.is_round:
        along, across = rot[:, 2] @ episode.thing_rot_world[:, 0], rot[:, 1] @ episode.thing_rot_world[:, 0]
        twice = 2.0 * np.arctan2(across, along)
        turn = np.array([np.cos(twice), np.sin(twice)])
    return np.concatenate([rot.T @ (top - pos), turn])
