"""The quadrotor against closed forms and against a second formulation of its dynamics."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from embodied.robots.base import make_robot
from embodied.robots.quadrotor.spec import FRONT_CAMERA, FRONT_CAMERA_FOVY_DEG, FRONT_CAMERA_POS_BODY_M, QUADROTOR
from embodied.worlds.contract import Start
from embodied.worlds.mujoco import MujocoWorld
from embodied.worlds.wind import Wind
from embodied_controllers.contract import Command, RobotState
from embodied_controllers.quadrotor.controller import FlightController, FlightSetpoint, desired_rotation
from embodied_controllers.quadrotor.dynamics import drag_force_world_n, rk4_step, rotation
from embodied_controllers.quadrotor.params import CRAZYFLIE_21, GRAVITY_MPS2
from embodied_scenes.builders import RobotMount, compile_scene
from embodied_scenes.drones.parts import windsock
from embodied_scenes.spec import RoomSpec, SceneSpec

FIELD = SceneSpec(
    id="test/field@1",
    preset="flight",
    rooms=(RoomSpec(name="yard", category="yard", rect_m=(-9, -9, 9, 9)),),
    entities=(windsock("windsock", (8.0, 8.0, 0.0)),),
)


@pytest.fixture(scope="module")
def scene():
    return compile_scene(FIELD, [RobotMount(name="d", kind="quadrotor", mjcf=QUADROTOR.mjcf)])


def place(scene, pose, wind=(0.0, 0.0), gust=0.0):
    world = MujocoWorld(scene)
    keys = {"wind_x_mps": wind[0], "wind_y_mps": wind[1], "gust_mps": gust, "gust_seed": 5}
    world.reset(0, Start(poses={"d": pose}, states={("windsock", k): v for k, v in keys.items()}))
    robot = make_robot(world, "d", QUADROTOR)
    robot.reset()
    return world, robot


def fly(world, robot, setpoint, duration_s):
    """Return (n, 7) positions and thrusts."""
    rows = []
    for _ in range(round(duration_s / robot.dt_ctrl_s)):
        state = robot.read()
        thrust = robot.autopilot.step(state, setpoint, robot.dt_ctrl_s)
        robot.send(Command(values=thrust))
        world.step(2)
        rows.append([*state.base_pos_world_m, *thrust])
    return np.array(rows)


LEVEL = (0.0, 0.0, 1.5, 1.0, 0.0, 0.0, 0.0)
HERE = FlightSetpoint(pos_world_m=(0.0, 0.0, 1.5))


def test_model_file_and_parameters_agree():
    model = mujoco.MjModel.from_xml_path(str(QUADROTOR.mjcf))
    p = CRAZYFLIE_21
    assert model.body("base").mass == pytest.approx(p.mass_kg)
    np.testing.assert_allclose(model.body("base").inertia, p.inertia_kgm2)
    signs = [(1, -1), (-1, -1), (-1, 1), (1, 1)]
    for i, (sx, sy) in enumerate(signs, start=1):
        d = p.rotor_offset_m
        np.testing.assert_allclose(model.site(f"rotor_{i}").pos, (sx * d, sy * d, 0.0), atol=1e-12)
        motor = model.actuator(f"thrust_{i}")
        spin = -1 if i % 2 else 1
        np.testing.assert_allclose(motor.gear, (0, 0, 1, 0, 0, spin * p.torque_per_thrust_m))
        assert motor.ctrlrange[1] == pytest.approx(p.thrust_max_n)
        assert motor.dynprm[0] == pytest.approx(p.motor_tau_s)
        assert int(motor.dyntype[0]) == int(mujoco.mjtDyn.mjDYN_FILTER)
    camera = model.camera(FRONT_CAMERA)
    assert camera.fovy[0] == pytest.approx(FRONT_CAMERA_FOVY_DEG)
    np.testing.assert_allclose(camera.pos, FRONT_CAMERA_POS_BODY_M)
    assert np.hypot(p.rotor_offset_m, p.rotor_offset_m) == pytest.approx(0.046, rel=1e-3)


def test_open_loop_hover_thrust_balances_the_weight_within_one_percent(scene):
    """Free fall at 1 % of g moves 4.9 cm in a second; hover thrust must keep the drone within that."""
    world, robot = place(scene, LEVEL)
    world.data.act[:] = CRAZYFLIE_21.hover_thrust_n
    robot.send(Command(values=np.full(4, CRAZYFLIE_21.hover_thrust_n)))
    world.step(500)
    assert abs(float(world.qpos[0, 2]) - 1.5) < 0.5 * 0.01 * GRAVITY_MPS2
    assert robot.clipped_entries == 0


def test_numpy_rk4_agrees_with_the_engine(scene):
    world, _ = place(scene, (0.0, 0.0, 5.0, 0.9, 0.1, -0.3, 0.2))
    rng = np.random.default_rng(3)
    world.qvel[0, :6] = rng.normal(size=6)
    state = np.zeros((1, 17))
    state[0, :7], state[0, 7:13] = world.qpos[0, :7], world.qvel[0, :6]
    for _ in range(50):
        command = rng.uniform(0.0, CRAZYFLIE_21.thrust_max_n, 4)
        world.ctrl[0] = command
        world.step(5)
        for _ in range(5):
            state = rk4_step(state, command[None], 0.002)
    np.testing.assert_allclose(world.qpos[0, :7], state[0, :7], atol=2e-7)
    np.testing.assert_allclose(world.qvel[0, :6], state[0, 7:13], atol=2e-6)
    np.testing.assert_allclose(world.data.act, state[0, 13:], atol=1e-9)


def test_drag_has_the_closed_form_terminal_speed():
    """With thrust balancing the weight the speed approaches the wind as 1 − exp(−d t / m)."""
    p, wind = CRAZYFLIE_21, np.array([2.0, 0.0, 0.0])
    state = np.zeros((1, 17))
    state[0, 3], state[0, 13:] = 1.0, p.hover_thrust_n
    for _ in range(1000):
        state = rk4_step(state, np.full((1, 4), p.hover_thrust_n), 0.002, p, wind)
    expected = 2.0 * (1.0 - np.exp(-p.drag_body_nspm[0] * 2.0 / p.mass_kg))
    assert state[0, 7] == pytest.approx(expected, rel=1e-6)


def test_driver_drag_equals_the_batched_formula(scene):
    world, robot = place(scene, (0.0, 0.0, 3.0, 0.8, 0.2, 0.4, -0.4), wind=(1.5, -0.7), gust=0.5)
    world.qvel[0, :3] = (0.3, -1.1, 0.4)
    robot.send(Command(values=np.full(4, 0.05)))
    air = Wind(mean_world_mps=(1.5, -0.7, 0.0), gust_mps=0.5, seed=5).velocity_world_mps(0.0)
    expected = drag_force_world_n(world.qpos[:, 3:7], world.qvel[:, :3], np.array(air))
    np.testing.assert_allclose(world.qfrc_applied[0, :3], expected[0], rtol=1e-12)


def test_thrust_estimate_follows_the_engine(scene):
    world, robot = place(scene, LEVEL)
    rng = np.random.default_rng(0)
    for _ in range(30):
        robot.send(Command(values=rng.uniform(0, 0.15, 4)))
        world.step(2)
    signals = robot.read().signals
    np.testing.assert_allclose([signals[f"thrust_{i}_n"] for i in (1, 2, 3, 4)], world.data.act, atol=1e-8)


def test_body_velocity_is_the_rotated_world_velocity(scene):
    world, robot = place(scene, (0.0, 0.0, 3.0, 0.8, 0.2, 0.4, -0.4))
    world.qvel[0, :3] = (0.3, -1.1, 0.4)
    expected = rotation(world.qpos[:, 3:7])[0].T @ world.qvel[0, :3]
    np.testing.assert_allclose(robot.read().base_vel_body_mps, expected, atol=1e-12)


def test_hover_settles_at_the_weight(scene):
    track = fly(*place(scene, LEVEL), HERE, 4.0)
    assert np.abs(track[-250:, :3] - (0, 0, 1.5)).max() < 0.01
    assert track[-250:, 3:].sum(axis=1).mean() == pytest.approx(CRAZYFLIE_21.mass_kg * GRAVITY_MPS2, rel=0.01)


def test_step_response(scene):
    track = fly(*place(scene, LEVEL), FlightSetpoint(pos_world_m=(1.0, 0.0, 1.5)), 5.0)
    x = track[:, 0]
    assert x[round(1.5 / 0.004)] > 0.8, "too slow"
    assert x.max() < 1.1, "overshoot above 10 %"
    assert abs(x[-1] - 1.0) < 0.02
    assert track[:, 3:].max() <= CRAZYFLIE_21.thrust_max_n


@pytest.mark.parametrize(("wind", "gust", "bound_m"), [((3.0, 0.0), 0.0, 0.10), ((0.0, -2.0), 1.0, 0.12)])
def test_wind_is_rejected(scene, wind, gust, bound_m):
    track = fly(*place(scene, LEVEL, wind, gust), HERE, 8.0)
    assert np.abs(track[:, :3] - (0, 0, 1.5)).max() < bound_m
    if gust == 0.0:
        assert np.abs(track[-250:, :3] - (0, 0, 1.5)).max() < 0.02, "a steady wind must leave no error"


def test_recovers_from_upside_down(scene):
    track = fly(*place(scene, (0.0, 0.0, 3.0, 0.2, 0.98, 0.0, 0.0)), FlightSetpoint(pos_world_m=(0, 0, 3.0)), 5.0)
    assert track[:, 2].min() > 1.5
    assert np.linalg.norm(track[-1, :3] - (0, 0, 3.0)) < 0.1


def test_stop_in_the_air_holds_and_on_the_ground_stays_off(scene):
    world, robot = place(scene, LEVEL)
    fly(world, robot, HERE, 0.5)
    for _ in range(500):
        robot.stop()
        world.step(2)
    assert np.linalg.norm(world.qpos[0, :3] - (0, 0, 1.5)) < 0.05
    world, robot = place(scene, (0.0, 0.0, 0.0145, 1.0, 0.0, 0.0, 0.0))
    assert robot.stop().values.max() == 0.0


def sample(pos=(0.0, 0.0, 1.0), quat=(1.0, 0.0, 0.0, 0.0)) -> RobotState:
    return RobotState(
        time_s=0.0,
        joint_pos=np.zeros(0),
        joint_vel=np.zeros(0),
        base_pos_world_m=np.array(pos, dtype=float),
        base_quat_wxyz=np.array(quat, dtype=float),
    )


def test_bad_setpoint_is_replaced_and_bad_state_stops_the_rotors():
    pilot = FlightController()
    pilot.reset(sample())
    nan = FlightSetpoint(pos_world_m=(float("nan"), 0.0, 1.0))
    other = FlightController()
    other.reset(sample())
    np.testing.assert_array_equal(
        pilot.step(sample(), nan, 0.004), other.step(sample(), FlightSetpoint(pos_world_m=(0.0, 0.0, 1.0)), 0.004)
    )
    for _ in range(50):
        blind = pilot.step(sample(pos=(np.nan, 0.0, 1.0)), HERE, 0.004)
    assert blind.max() == 0.0
    with pytest.raises(ValueError, match="none to hold"):
        FlightController().step(sample(), nan, 0.004)
    with pytest.raises(ValueError, match="dt_s"):
        pilot.step(sample(), HERE, 0.0)


def test_desired_rotation_is_a_rotation_with_thrust_axis_and_heading():
    R = np.array(desired_rotation((0.3, -0.2, 0.9), 0.7)).reshape(3, 3)
    np.testing.assert_allclose(R.T @ R, np.eye(3), atol=1e-12)
    assert np.linalg.det(R) == pytest.approx(1.0)
    np.testing.assert_allclose(R[:, 2], np.array([0.3, -0.2, 0.9]) / np.linalg.norm([0.3, -0.2, 0.9]))
    assert np.dot(R[:, 1], (np.cos(0.7), np.sin(0.7), 0.0)) == pytest.approx(0.0, abs=1e-12)


def test_lag_compensation_shortens_the_lag():
    """At a step of the demanded thrust, the compensated rotor covers 63 % in about the shorter time constant."""
    pilot = FlightController()
    pilot.reset(sample())
    pilot._thrust_n = [0.06] * 4
    thrust, t, dt = 0.06, 0.0, 0.001
    while thrust < 0.06 + 0.632 * 0.01:
        send = pilot._lagged([0.07] * 4, dt)[0]
        thrust += (1 - np.exp(-dt / CRAZYFLIE_21.motor_tau_s)) * (send - thrust)
        t += dt
    assert t == pytest.approx(pilot.gains.lag_target_s, abs=0.002)


@pytest.mark.parametrize(
    ("field", "value"),
    [("mass_kg", 0.0), ("thrust_max_n", 0.05), ("motor_tau_s", float("nan")), ("drag_body_nspm", (-1.0, 0.0, 0.0))],
)
def test_bad_parameters_are_refused(field, value):
    with pytest.raises(ValueError, match=field):
        replace(CRAZYFLIE_21, **{field: value})


def test_wind_is_a_function_of_seed_and_time_with_the_stated_strength():
    wind = Wind(mean_world_mps=(1.0, -0.5, 0.0), gust_mps=0.8, seed=11)
    times = np.arange(0.0, 600.0, 0.05)
    air = np.array([wind.velocity_world_mps(float(t)) for t in times])
    np.testing.assert_allclose(air[:, :2].mean(axis=0), (1.0, -0.5), atol=0.05)
    np.testing.assert_allclose(air.std(axis=0), (0.8, 0.8, 0.4), rtol=0.1)
    assert wind.velocity_world_mps(3.21) == Wind(
        mean_world_mps=(1.0, -0.5, 0.0), gust_mps=0.8, seed=11
    ).velocity_world_mps(3.21)
    assert Wind(gust_mps=0.8, seed=12).velocity_world_mps(1.0) != Wind(gust_mps=0.8, seed=13).velocity_world_mps(1.0)
