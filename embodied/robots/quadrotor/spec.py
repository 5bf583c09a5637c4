"""What the quadrotor is, readable without an engine."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from embodied.robots.base import RobotSpec
from embodied_controllers.contract import ActionSpec, ObservationSpec
from embodied_controllers.quadrotor.params import CRAZYFLIE_21

# The camera that inspects: name and vertical field of view as in model.xml, image 4:3.
FRONT_CAMERA = "front_cam"
FRONT_CAMERA_FOVY_DEG = 60.0
FRONT_CAMERA_ASPECT = 4 / 3
FRONT_CAMERA_POS_BODY_M = (0.034, 0.0, 0.0)

QUADROTOR = RobotSpec(
    kind="quadrotor",
    mjcf=Path(__file__).with_name("model.xml"),
    driver="embodied.robots.quadrotor.driver:Quadrotor",
    # Safe: motors off is safe on the ground only; the driver's stop() holds the position in the air instead.
    action_spec=ActionSpec(
        names=("thrust_1_n", "thrust_2_n", "thrust_3_n", "thrust_4_n"),
        low=np.zeros(4),
        high=np.full(4, CRAZYFLIE_21.thrust_max_n),
        safe=np.zeros(4),
        groups={"rotors": slice(0, 4)},
    ),
    observation_spec=ObservationSpec(
        joint_names=(),
        joint_low=np.zeros(0),
        joint_high=np.zeros(0),
        joint_vel_max=np.zeros(0),
        signals=(
            "thrust_1_n", "thrust_2_n", "thrust_3_n", "thrust_4_n",
            "acc_x_body_mps2", "acc_y_body_mps2", "acc_z_body_mps2",
        ),
        cameras=(FRONT_CAMERA, "down_cam"),
        rate_hz=250.0,
    ),
    root="free",
    dt_ctrl_s=0.004,
    radius_m=0.07,
    height_m=0.0145,
    card=(
        "Crazyflie 2.1, 27 g. Numbers and their sources stand in model.xml and embodied_controllers.quadrotor.params. "
        "Linear rotor drag and first-order thrust lag; no ground effect, no downwash between drones, no battery sag, "
        "no blade flapping. Estimation is perfect: state and thrust are read from the simulation."
    ),
)  # fmt: skip
