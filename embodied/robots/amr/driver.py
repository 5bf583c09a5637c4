"""The AMR in a physics world."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from embodied.robots.amr.spec import DECK_MASS_KG
from embodied.robots.base import RobotSpec, SimRobot
from embodied.worlds.contract import Edit
from embodied_controllers.contract import Array, RobotState

if TYPE_CHECKING:
    from embodied.sensors.codes import CodeReader, CodeReading
    from embodied.sensors.lidar import Lidar, Scan
    from embodied.worlds.contract import PhysicsWorld

GRAVITY_MPS2 = 9.81
DECK_SPEED_MPS = 0.03  # 100 mm in 3.3 s (own: slow enough that a stack on the tray does not sway)
DRIVING_DRAIN_1PS = 1.0 / (13.0 * 3600.0)  # 13 h of driving on a battery (data sheet, see model.xml)
STANDING_DRAIN_1PS = DRIVING_DRAIN_1PS / 2.0  # computers and scanners stay on


class Amr(SimRobot):
    """Turns (forward_mps, yaw_rate_radps, deck_m) into servo inputs and keeps the battery's count.

    The deck follows its target at :data:`DECK_SPEED_MPS`. Speeds hold between commands. The battery is a state of the
    world (``battery_ratio`` of this robot), so that it is restored with snapshots; without an entry it is full.
    """

    def __init__(self, world: PhysicsWorld, name: str, spec: RobotSpec, env_index: int = 0) -> None:
        super().__init__(world, name, spec, env_index)
        model = world.scene.model
        self._qpos = int(model.joint(f"{self.prefix}base_x").qposadr[0])
        self._qvel = int(model.joint(f"{self.prefix}base_x").dofadr[0])
        self._deck_qpos = int(model.joint(f"{self.prefix}deck").qposadr[0])
        self._deck_qvel = int(model.joint(f"{self.prefix}deck").dofadr[0])
        self._ctrl = [int(model.actuator(f"{self.prefix}{a}").id) for a in ("forward", "sideways", "turn", "lift")]
        self._codes: CodeReader | None = None
        self._lidar: Lidar | None = None
        self._applied_s = 0.0

    def read(self) -> RobotState:
        """Return the newest sample: exact odometry, deck height, what rests on the deck, battery."""
        qpos, qvel = self.world.qpos[self.env_index], self.world.qvel[self.env_index]
        x_m, y_m, yaw_rad = (float(v) for v in qpos[self._qpos : self._qpos + 3])
        vx, vy, yaw_rate = (float(v) for v in qvel[self._qvel : self._qvel + 3])
        cos, sin = np.cos(yaw_rad), np.sin(yaw_rad)
        deck_m, deck_mps = float(qpos[self._deck_qpos]), float(qvel[self._deck_qvel])
        return RobotState(
            time_s=self.world.time_s(self.env_index),
            joint_pos=np.array([deck_m]),
            joint_vel=np.array([deck_mps]),
            base_pos_world_m=np.array([x_m, y_m, 0.0]),
            base_quat_wxyz=np.array([np.cos(yaw_rad / 2), 0.0, 0.0, np.sin(yaw_rad / 2)]),
            base_vel_body_mps=np.array([cos * vx + sin * vy, cos * vy - sin * vx, 0.0]),
            base_angvel_body_radps=np.array([0.0, 0.0, yaw_rate]),
            signals={
                "battery_ratio": self.battery_ratio,
                "deck_m": deck_m,
                "deck_load_kg": self._load_kg(),
            },
        )

    @property
    def battery_ratio(self) -> float:
        """Charge of the battery in [0, 1]."""
        return float(self.world.state(self.name, "battery_ratio", 1.0, self.env_index))

    def charge_by(self, ratio: float) -> float:
        """Add (or, negative, take) charge and return the new ratio."""
        value = min(max(self.battery_ratio + ratio, 0.0), 1.0)
        self.world.edit([Edit(kind="set_state", entity=self.name, key="battery_ratio", value=value)], self.env_index)
        return value

    def read_codes(self) -> tuple[CodeReading, ...]:
        """Return the printed codes that the camera below the deck's opening can read now."""
        from embodied.sensors.codes import CodeReader

        if self._codes is None:
            self._codes = CodeReader(self.world, f"{self.prefix}code_cam", self.env_index)
        return self._codes.read()

    def scan(self, rng: np.random.Generator | None = None) -> Scan:
        """Return a scan of the safety scanner in the front, its own body left out; exact without ``rng``."""
        from embodied.sensors.lidar import Lidar, LidarConfig

        if self._lidar is None:
            self._lidar = Lidar(self.world, f"{self.prefix}lidar", LidarConfig(), ignore_prefix=self.prefix)
        return self._lidar.scan(rng, self.env_index)

    def _load_kg(self) -> float:
        """Weight on the deck from the lift's force, its own weight taken off."""
        force_n = float(self.world.actuator_force[self.env_index, self._ctrl[3]])
        return max(force_n / GRAVITY_MPS2 - DECK_MASS_KG, 0.0)

    def _apply(self, values: Array) -> None:
        ctrl = self.world.ctrl[self.env_index]
        forward_mps, yaw_rate_radps, deck_m = (float(v) for v in values)
        now_s = self.world.time_s(self.env_index)
        # a second command in the same moment replaces the first; time does not pass twice
        past_s = 0.0 if now_s == self._applied_s else self.dt_ctrl_s
        self._applied_s = now_s
        forward, sideways, turn, lift = self._ctrl
        ctrl[forward], ctrl[sideways], ctrl[turn] = forward_mps, 0.0, yaw_rate_radps
        step_m = DECK_SPEED_MPS * past_s
        ctrl[lift] += min(max(deck_m - float(ctrl[lift]), -step_m), step_m)
        # drain before the inputs of the next period act
        is_moving = abs(forward_mps) > 1e-6 or abs(yaw_rate_radps) > 1e-6
        self.charge_by(-(DRIVING_DRAIN_1PS if is_moving else STANDING_DRAIN_1PS) * past_s)

    def _present(self) -> Array:
        deck_m = float(self.world.qpos[self.env_index, self._deck_qpos])
        self.world.ctrl[self.env_index, self._ctrl[3]] = deck_m
        self._applied_s = self.world.time_s(self.env_index)
        return np.array([0.0, 0.0, deck_m])
