"""The task as an episode on the full simulated robot: what the policy is given, and when it has arrived or failed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from embodied.robots.amr.spec import AMR
from embodied.robots.base import make_robot, robot_start
from embodied.seeding import stream_rng
from embodied.sensors.lidar import Lidar
from embodied.train.navigation.rooms import ROBOT, Room
from embodied.train.navigation.scanner import CONFIG, sectors
from embodied.worlds.contract import Start
from embodied.worlds.mujoco import MujocoWorld
from embodied_controllers.contract import Command
from embodied_deploy.policy.sample import Sample

Array = NDArray[np.float64]

RATE_HZ = 10.0
DT_S = 1.0 / RATE_HZ
STEPS = 400
"""Control periods in an episode."""
ARRIVED_M = 0.25
"""The base's origin is this near to the goal."""


class NavigationEpisode:
    """One episode in physics, stepped at :data:`RATE_HZ`; the deck stays down.

    Args:
      room: what a seed stands for.
    """

    def __init__(self, room: Room) -> None:
        self.room = room
        self.world = MujocoWorld(room.compile())
        self.robot = make_robot(self.world, ROBOT, AMR)
        prefix = self.robot.prefix
        self.lidar = Lidar(self.world, f"{prefix}lidar", CONFIG, ignore_prefix=prefix)
        model = self.world.scene.model
        self._is_own = np.array(
            [model.body(int(model.geom_bodyid[g])).name.startswith(prefix) for g in range(model.ngeom)]
        )
        self._rng = stream_rng(room.seed, "sensor", "navigation")
        x, y, yaw = (float(v) for v in room.start_xyyaw)
        joint_pos = robot_start(ROBOT, AMR) | {f"{prefix}base_x": x, f"{prefix}base_y": y, f"{prefix}base_yaw": yaw}
        self.world.reset(room.seed, Start(joint_pos=joint_pos))
        self.robot.reset()
        self._substeps = round(self.robot.dt_ctrl_s / self.world.dt_sim_s)
        self._periods = round(DT_S / self.robot.dt_ctrl_s)
        self.goal = {"pos_world_m": np.array([*room.goal_world_m, 0.0])}
        self.steps = 0
        self.has_touched = False

    @property
    def pose(self) -> Array:
        """(3,) x, y [m] and yaw [rad] of the robot in the world."""
        state = self.robot.read()
        quat = state.base_quat_wxyz
        return np.array([*state.base_pos_world_m[:2], 2.0 * np.arctan2(quat[3], quat[0])])

    @property
    def distance_m(self) -> float:
        """Distance of the base's origin to the goal."""
        return float(np.hypot(*(self.room.goal_world_m - self.pose[:2])))

    @property
    def is_success(self) -> bool:
        """At the goal without having touched anything."""
        return not self.has_touched and self.distance_m <= ARRIVED_M

    @property
    def is_over(self) -> bool:
        """Arrived, touched something, or time is up."""
        return self.has_touched or self.steps >= STEPS or self.is_success

    @property
    def outcome(self) -> str:
        """What became of the episode, in one word."""
        return "collided" if self.has_touched else "arrived" if self.is_success else "late"

    def observe(self, *, is_exact: bool = False) -> Sample:
        """Return what the policy may know now: the robot's state, the goal and a scan.

        Args:
          is_exact: leave out noise and drop-outs of the scanner.
        """
        scan = self.lidar.scan(None if is_exact else self._rng)
        return Sample(
            state=self.robot.read(),
            last_action=self.robot.last_action,
            goal=self.goal,
            ranges={"lidar": sectors(scan.range_m)},
        )

    def step(self, action: Array) -> None:
        """Hold an action for one control period.

        Args:
          action: (3,) the robot's action, or (2,) forward speed [m/s] and turning rate [rad/s].
        """
        values = np.full(self.robot.action_spec.size, np.nan)
        values[: len(action)] = action
        self.robot.send(Command(values=values))
        for period in range(self._periods):
            if period:
                self.robot.refresh()
            self.world.step(self._substeps)
            self.has_touched |= self._is_touching()
        self.steps += 1

    def _is_touching(self) -> bool:
        pairs = self.world.contacts().geom_ids
        return bool(len(pairs)) and bool((self._is_own[pairs[:, 0]] != self._is_own[pairs[:, 1]]).any())
