"""The mobile manipulator's numbers in Python are those of its model file, and its hand works as its controllers say."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embodied.robots.mobile_manipulator import kinematics as k
from embodied.robots.mobile_manipulator.spec import ACTION, MOBILE_MANIPULATOR, OBSERVATION
from embodied_controllers.contract import Command
from embodied_scenes.spec import EntityModel, EntitySpec, GeomSpec, PartSpec
from tests.manipulator_rig import Rig, room_scene

MODEL = mujoco.MjModel.from_xml_path(str(MOBILE_MANIPULATOR.mjcf))
CHAIN = k.torso_arm_chain()
QPOS = np.array([int(MODEL.joint(n).qposadr[0]) for n in CHAIN.names])
DOFS = np.array([int(MODEL.joint(n).dofadr[0]) for n in CHAIN.names])
SITE = MODEL.site("grasp_site").id


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31 - 1))
def test_chain_equals_the_engine(seed: int) -> None:
    q = np.random.default_rng(seed).uniform(CHAIN.low, CHAIN.high)
    data = mujoco.MjData(MODEL)
    data.qpos[QPOS] = q
    mujoco.mj_forward(MODEL, data)
    pos, rot = CHAIN.tool(q)
    np.testing.assert_allclose(pos, data.site_xpos[SITE], atol=1e-9)
    np.testing.assert_allclose(rot, data.site_xmat[SITE].reshape(3, 3), atol=1e-9)
    jac = np.zeros((6, MODEL.nv))
    mujoco.mj_jacSite(MODEL, data, jac[:3], jac[3:], SITE)
    np.testing.assert_allclose(CHAIN.jacobian(q), jac[:, DOFS], atol=1e-9)


def test_limits_and_servos_equal_the_model() -> None:
    ids = [MODEL.joint(n).id for n in CHAIN.names]
    np.testing.assert_allclose(MODEL.jnt_range[ids], np.stack([CHAIN.low, CHAIN.high], axis=1), atol=1e-4)
    servos = [MODEL.actuator(n).id for n in k.ARM_NAMES]
    np.testing.assert_allclose(MODEL.actuator_gainprm[servos, 0], k.ARM_STIFFNESS_NMPRAD)
    np.testing.assert_allclose(MODEL.actuator_forcerange[servos, 1], k.ARM_TORQUE_NM)
    lag = -MODEL.actuator_biasprm[[MODEL.actuator("torso_lift").id, *servos], 2]
    lag = lag / MODEL.actuator_gainprm[[MODEL.actuator("torso_lift").id, *servos], 0]
    np.testing.assert_allclose(lag, k.SERVO_LAG_S)
    assert MODEL.actuator("finger_left").gainprm[0] == k.GRIPPER_STIFFNESS_NPM
    assert 2 * MODEL.joint("finger_left").range[1] == pytest.approx(k.GRIPPER_MAX_M)


def test_home_posture_touches_nothing() -> None:
    data = mujoco.MjData(MODEL)
    for joint, value in MOBILE_MANIPULATOR.home.items():
        data.qpos[MODEL.joint(joint).qposadr[0]] = value
    mujoco.mj_forward(MODEL, data)
    assert data.ncon == 0


GEOMS = {
    "box": GeomSpec(size_m=(0.03, 0.03, 0.03), mass_kg=0.2),
    "cylinder": GeomSpec(shape="cylinder", size_m=(0.03, 0.04), mass_kg=0.2),
    "sphere": GeomSpec(shape="sphere", size_m=(0.03,), mass_kg=0.2),
}


def grasped(shape: str) -> tuple[Rig, np.ndarray]:
    """A rig that holds 0.2 kg between its fingers, and the action that keeps it there."""
    thing = EntitySpec(
        name="thing",
        category="box",
        custom=EntityModel(parts=(PartSpec(geoms=(GEOMS[shape],)),)),
        movable=True,
        pos_m=(2.0, 0, 0.1),
    )
    scene = room_scene((thing,))
    site = Rig(scene).world
    index = site.scene.model.site("robot_0/grasp_site").id
    x, y, z = site.site_pos_world_m[0, index]
    rig = Rig(scene, poses={"thing": (float(x), float(y), float(z), 1.0, 0.0, 0.0, 0.0)})
    action = rig.robot.last_action
    action[10:12] = 0.0, 30.0
    for _ in range(60):
        rig.robot.send(Command(values=action))
        rig.step()
    return rig, action


@pytest.mark.parametrize("shape", sorted(GEOMS))
def test_friction_alone_holds_and_survives_shaking(shape: str) -> None:
    rig, action = grasped(shape)
    start = in_tool(rig)
    for _ in range(200):  # 4 s of rest
        rig.robot.send(Command(values=action))
        rig.step()
    assert np.linalg.norm(in_tool(rig) - start) < 0.002
    signals = rig.robot.read().signals
    assert signals["gripper_width_m"] == pytest.approx(0.06, abs=0.004)
    assert signals["gripper_force_n"] == pytest.approx(30.0, abs=3.0)
    rest = action.copy()
    for i in range(100):  # 2 s of shaking at 2.5 Hz
        action[2:10] = rest[2:10] + 0.03 * np.sin(2 * np.pi * 2.5 * i * 0.02)
        rig.robot.send(Command(values=action))
        rig.step()
    assert np.linalg.norm(in_tool(rig) - start) < 0.002
    assert rig.world.graph().holds("holding", "robot_0", "thing")


def in_tool(rig: Rig) -> np.ndarray:
    world = rig.world
    index = world.scene.model.site("robot_0/grasp_site").id
    rot = world.site_rot_world[0, index].reshape(3, 3)
    return rot.T @ (world.body_pos_world_m[0, world.scene.model.body("thing").id] - world.site_pos_world_m[0, index])


def test_letting_go_drops_it_at_once() -> None:
    rig, action = grasped("box")
    action[10] = 0.1
    for _ in range(25):
        rig.robot.send(Command(values=action))
        rig.step()
    assert not rig.world.graph().holds("holding", "robot_0", "thing")
    assert rig.robot.read().signals["gripper_width_m"] > 0.08


def test_commands_that_are_not_numbers_hold_and_wild_ones_are_clipped() -> None:
    rig = Rig(room_scene(()))
    before = rig.robot.last_action
    applied = rig.robot.send(Command(values=np.full(ACTION.size, np.nan))).values
    np.testing.assert_array_equal(applied, before)
    assert rig.robot.held_entries == ACTION.size
    applied = rig.robot.send(Command(values=np.full(ACTION.size, 1e9))).values
    np.testing.assert_array_equal(applied, ACTION.high)
    rig.robot.stop()
    for _ in range(100):
        rig.step()
        rig.robot.refresh()
    state = rig.robot.read()
    assert np.isfinite(state.joint_pos).all()
    assert len(state.joint_pos) == len(OBSERVATION.joint_names)
    assert (state.joint_pos <= OBSERVATION.joint_high + 0.01).all()


def test_the_base_does_not_slip_sideways() -> None:
    rig = Rig(room_scene(()), yaw_rad=0.8)
    action = rig.robot.last_action
    action[0] = 0.4
    for _ in range(100):
        rig.robot.send(Command(values=action))
        rig.step()
    state = rig.robot.read()
    heading = np.array([np.cos(0.8), np.sin(0.8)])
    assert state.base_pos_world_m[:2] @ heading == pytest.approx(0.8, abs=0.03)
    across = state.base_pos_world_m[1] * heading[0] - state.base_pos_world_m[0] * heading[1]
    assert abs(across) < 0.005
