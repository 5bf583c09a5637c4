"""What the AMR takes and tells, readable without an engine. Numbers and their sources stand in ``model.xml``."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from embodied.robots.base import RobotSpec
from embodied_controllers.contract import ActionSpec, ObservationSpec

DECK_STROKE_M = 0.10
DECK_MASS_KG = 8.0
PAYLOAD_KG = 250.0

AMR = RobotSpec(
    kind="amr",
    mjcf=Path(__file__).with_name("model.xml"),
    driver="embodied.robots.amr.driver:Amr",
    action_spec=ActionSpec(
        names=("forward_mps", "yaw_rate_radps", "deck_m"),
        low=np.array([-0.5, -1.5, 0.0]),
        high=np.array([2.0, 1.5, DECK_STROKE_M]),
        safe=np.array([0.0, 0.0, np.nan]),
        groups={"base": slice(0, 2), "deck": slice(2, 3)},
    ),
    observation_spec=ObservationSpec(
        joint_names=("deck_m",),
        joint_low=np.array([0.0]),
        joint_high=np.array([DECK_STROKE_M]),
        joint_vel_max=np.array([0.03]),
        signals=("battery_ratio", "deck_m", "deck_load_kg"),
        cameras=("front_cam", "code_cam"),
        rate_hz=20.0,
    ),
    dt_ctrl_s=0.05,
    home={"deck": 0.0},
    radius_m=0.5,
    card=(
        "Size, payload and speed of a MiR250 (data sheet of 2020); mass, forces and deck are ours. Wheels are drawn, "
        "not simulated: no slip, no bumps, flat floors only. Odometry is exact. The battery is a counter: 13 h of "
        "driving empty it, standing takes half as much; the skill `charge` says how fast it fills."
    ),
)
