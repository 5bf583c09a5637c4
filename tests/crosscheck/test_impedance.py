"""The impedance law gives the efforts of the engine's servos of the mobile manipulator."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embodied.catalog import ROBOTS
from embodied_controllers.arm.impedance import ImpedanceSetpoint, JointImpedanceController
from embodied_controllers.contract import RobotState

MODEL = mujoco.MjModel.from_xml_path(str(ROBOTS.get("mobile_manipulator").mjcf))
JOINTS = [f"arm_{i}" for i in range(7)]
QPOS = np.array([int(MODEL.joint(j).qposadr[0]) for j in JOINTS])
DOFS = np.array([int(MODEL.joint(j).dofadr[0]) for j in JOINTS])
ACTUATORS = np.array([MODEL.actuator(j).id for j in JOINTS])


def controller(**changes) -> JointImpedanceController:
    given = {
        "stiffness": MODEL.actuator_gainprm[ACTUATORS, 0].copy(),
        "damping": -MODEL.actuator_biasprm[ACTUATORS, 2].copy(),
        "effort_max": MODEL.actuator_forcerange[ACTUATORS, 1].copy(),
        "indices": np.arange(7),
    }
    return JointImpedanceController(**(given | changes))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31 - 1))
def test_efforts_equal_the_engines(seed):
    rng = np.random.default_rng(seed)
    data = mujoco.MjData(MODEL)
    low, high = MODEL.jnt_range[[MODEL.joint(j).id for j in JOINTS]].T
    data.qpos[QPOS] = rng.uniform(low, high)
    data.qvel[DOFS] = rng.normal(0, 0.3, 7)
    data.ctrl[ACTUATORS] = np.clip(data.qpos[QPOS] + rng.normal(0, 0.05, 7), low, high)
    mujoco.mj_forward(MODEL, data)
    state = RobotState(time_s=0.0, joint_pos=data.qpos[QPOS].copy(), joint_vel=data.qvel[DOFS].copy())
    law = controller()
    law.reset(state)
    effort = law.step(state, ImpedanceSetpoint(joint_pos=data.ctrl[ACTUATORS].copy()), 0.002)
    np.testing.assert_allclose(effort, data.actuator_force[ACTUATORS], rtol=1e-9, atol=1e-9)


def test_gravity_term_carries_the_arm():
    state = RobotState(time_s=0.0, joint_pos=np.full(7, 0.2), joint_vel=np.zeros(7))
    law = controller(gravity=lambda q: 3.0 * np.cos(q))
    law.reset(state)
    effort = law.step(state, ImpedanceSetpoint(joint_pos=state.joint_pos), 0.002)
    np.testing.assert_allclose(effort, 3.0 * np.cos(0.2))


@pytest.mark.parametrize("bad", [{"stiffness": np.ones(3)}, {"damping": -np.ones(7)}])
def test_bad_gains_are_refused(bad):
    with pytest.raises(ValueError, match="must"):
        controller(**bad)
