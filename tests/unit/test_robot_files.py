"""Robots from files: MJCF, URDF, and a collection that cannot be reached from here."""

from __future__ import annotations

import numpy as np
import pytest

from embodied.errors import EmbodiedError, RobotError
from embodied.robots.base import make_robot
from embodied.robots.load import from_menagerie, from_mjcf, from_urdf
from embodied.worlds.mujoco import MujocoWorld
from embodied_controllers.contract import Command
from embodied_deploy.robot import Robot
from embodied_scenes.builders import RobotMount, compile_scene
from tests.small_scenes import small_scene

ARM = """<mujoco><worldbody><body name="base"><geom type="cylinder" size="0.05 0.1" mass="2"/>
<body name="link" pos="0 0 0.1"><joint name="shoulder" type="hinge" axis="0 1 0" range="-90 90" limited="true"/>
<geom type="capsule" size="0.02" fromto="0 0 0 0.3 0 0" mass="0.5"/><camera name="eye"/></body></body></worldbody>
<actuator><position name="shoulder" joint="shoulder" kp="50" kv="5" ctrlrange="-1.5 1.5" ctrllimited="true"/></actuator>
</mujoco>"""
URDF = """<robot name="two"><link name="base"/><link name="arm"><inertial><mass value="0.4"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><box size="0.3 0.05 0.05"/></geometry></collision></link>
<joint name="hinge" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1" effort="10" velocity="2"/></joint></robot>"""


def run(spec, action: float) -> tuple[Robot, float]:
    mount = RobotMount(name="bot", kind=spec.kind, mjcf=spec.mjcf, pos_m=(0.0, 1.0, 0.5))
    world = MujocoWorld(compile_scene(small_scene(), [mount]))
    world.reset(0)
    robot = make_robot(world, "bot", spec)
    robot.reset()
    robot.send(Command(values=np.array([action])))
    for _ in range(200):
        world.step(10)
    return robot, float(robot.read().joint_pos[0])


def test_mjcf_robot_follows_its_command(tmp_path):
    path = tmp_path / "arm.xml"
    path.write_text(ARM)
    spec = from_mjcf(path)
    assert spec.root == "fixed"
    assert spec.kind == "arm"
    assert spec.observation_spec.cameras == ("eye",)
    robot, angle_rad = run(spec, -0.5)
    assert isinstance(robot, Robot)
    assert angle_rad == pytest.approx(-0.5, abs=0.1)
    np.testing.assert_allclose(robot.read().base_pos_world_m, [0.0, 1.0, 0.5])


def test_commands_are_clipped_held_and_refused(tmp_path):
    path = tmp_path / "arm.xml"
    path.write_text(ARM)
    robot, _ = run(from_mjcf(path), 0.3)
    assert robot.send(Command(values=np.array([9.0]))).values[0] == 1.5
    assert robot.send(Command(values=np.array([np.nan]))).values[0] == 1.5
    assert robot.clipped_entries == 1
    assert robot.held_entries == 1
    with pytest.raises(RobotError, match="1 entries"):
        robot.send(Command(values=np.zeros(3)))
    assert robot.stop().values[0] == 1.5


def test_urdf_robot_gets_servos(tmp_path):
    path = tmp_path / "two.urdf"
    path.write_text(URDF)
    spec = from_urdf(path)
    assert spec.action_spec.names == ("hinge",)
    _, angle_rad = run(spec, 0.4)
    assert angle_rad == pytest.approx(0.4, abs=0.02)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<mujoco><worldbody/></mujoco>", "one root body"),
        ("<mujoco><worldbody><body name='a'><geom size='1'/></body></worldbody></mujoco>", "no actuators"),
        ("<mujoco><oops", "does not parse"),
    ],
)
def test_bad_files_say_what_is_wrong(tmp_path, text, message):
    path = tmp_path / "bad.xml"
    path.write_text(text)
    with pytest.raises(RobotError, match=message):
        from_mjcf(path)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(RobotError, match=r"nowhere\.xml"):
        from_mjcf(tmp_path / "nowhere.xml")


def test_menagerie_offline_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.delenv("MENAGERIE_ROOT", raising=False)
    with pytest.raises(EmbodiedError, match=r"MENAGERIE_ROOT|pip install"):
        from_menagerie("franka_emika_panda")
    folder = tmp_path / "arm"
    folder.mkdir()
    (folder / "arm.xml").write_text(ARM)
    monkeypatch.setenv("MENAGERIE_ROOT", str(tmp_path))
    assert from_menagerie("arm").action_spec.names == ("shoulder",)
