"""Every registered controller: any period, finite and bounded output, no jump at rest, no memory across a reset."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from embodied.catalog import CONTROLLERS
from embodied_controllers.arm.impedance import ImpedanceSetpoint
from embodied_controllers.base.lane_following import LaneSetpoint
from embodied_controllers.base.path_following import PathSetpoint, StraightSetpoint
from embodied_controllers.contract import RobotState
from embodied_controllers.gripper.force import GripperSetpoint
from embodied_controllers.quadrotor.controller import FlightSetpoint

REST = RobotState(time_s=0.0, joint_pos=np.array([0.02, -0.3]), joint_vel=np.zeros(2))
IMPEDANCE = {
    "stiffness": np.array([100.0, 50.0]),
    "damping": np.array([10.0, 5.0]),
    "effort_max": np.array([20.0, 10.0]),
    "indices": np.array([0, 1]),
}
# name: (how to build it, a set-point that moves, a set-point at the present state, bound of |output|)
CASES = {
    "path_following": (
        lambda make: make(),
        PathSetpoint(path_world_m=np.array([[1.0, 0.0], [1.0, 1.0]]), final_yaw_rad=0.5),
        PathSetpoint(path_world_m=np.array([[0.0, 0.0]]), final_yaw_rad=0.0),
        2.0,
    ),
    "straight_move": (lambda make: make(), StraightSetpoint(distance_m=-0.4), StraightSetpoint(distance_m=0.0), 2.0),
    "lane_following": (
        lambda make: make(),
        LaneSetpoint(start_world_m=(0.0, 0.0), end_world_m=(3.0, 0.0)),
        LaneSetpoint(start_world_m=(0.0, 0.0), end_world_m=(0.0, 0.0)),
        2.0,
    ),
    "joint_impedance": (
        lambda make: make(**IMPEDANCE),
        ImpedanceSetpoint(joint_pos=np.array([0.5, 0.5])),
        ImpedanceSetpoint(joint_pos=REST.joint_pos),
        20.0,
    ),
    "gripper_force": (
        lambda make: make(1000.0),
        GripperSetpoint(width_m=0.0, force_n=20.0),
        GripperSetpoint(width_m=0.04, force_n=20.0),
        0.2,
    ),
    "quadrotor": (
        lambda make: make(),
        FlightSetpoint(pos_world_m=(0.5, -0.5, 1.0)),
        FlightSetpoint(pos_world_m=(0.0, 0.0, 0.0)),
        0.2,
    ),
}


def test_every_registered_controller_has_a_case():
    assert set(CASES) == set(CONTROLLERS.names())


@pytest.fixture(params=sorted(CASES))
def case(request):
    build, moving, still, bound = CASES[request.param]
    return lambda: build(CONTROLLERS.get(request.param)), moving, still, bound


@pytest.mark.parametrize("dt_s", [0.002, 0.02, 0.05])
def test_output_is_finite_bounded_and_fresh(case, dt_s):
    build, moving, _, bound = case
    controller = build()
    controller.reset(REST)
    outputs = [controller.step(REST, moving, dt_s) for _ in range(20)]
    assert all(o.ndim == 1 and np.all(np.isfinite(o)) and np.abs(o).max() <= bound for o in outputs)
    kept = outputs[0].copy()
    controller.step(REST, moving, dt_s)
    np.testing.assert_array_equal(outputs[0], kept)
    assert any(not np.array_equal(o, outputs[0]) for o in outputs) or np.abs(outputs[0]).max() > 0


def test_reset_forgets_everything(case):
    build, moving, _, _ = case
    used, new = build(), build()
    used.reset(REST)
    for k in range(25):
        used.step(replace(REST, time_s=0.02 * k, joint_vel=np.array([0.3, -0.2])), moving, 0.02)
    for controller in (used, new):
        controller.reset(REST)
    for _ in range(5):
        np.testing.assert_array_equal(used.step(REST, moving, 0.02), new.step(REST, moving, 0.02))


def test_nothing_to_do_means_no_motion(case, request):
    build, _, still, _ = case
    controller = build()
    controller.reset(REST)
    output = [controller.step(REST, still, 0.004) for _ in range(200)][
        -1
    ]  # rotors of a drone at rest must first spin up
    name = request.node.callspec.params["case"]
    if name == "quadrotor":
        assert output.sum() == pytest.approx(0.027 * 9.81, rel=0.02)
        assert np.ptp(output) < 1e-3
    elif name == "gripper_force":
        assert output[0] == pytest.approx(REST.joint_pos[0], abs=1e-3)
    else:
        np.testing.assert_allclose(output, 0.0, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        (
            "joint_impedance",
            ImpedanceSetpoint(joint_pos=np.array([math.nan, math.inf]), joint_vel=np.array([math.nan, 0])),
        ),
        ("quadrotor", FlightSetpoint(pos_world_m=(math.nan, 0.0, 1.0))),
    ],
)
def test_torque_and_thrust_stay_finite_for_a_set_point_that_is_not(name, bad):
    build, _, _, bound = CASES[name]
    controller = build(CONTROLLERS.get(name))
    controller.reset(REST)
    output = controller.step(REST, bad, 0.02)
    assert np.all(np.isfinite(output))
    assert np.abs(output).max() <= bound
