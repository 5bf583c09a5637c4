"""Channels: every path gives the value, unit and frame that its name says, and nothing unfit gets into a tensor."""

import dataclasses

import numpy as np
import pytest

from embodied.robots.mobile_manipulator.spec import MOBILE_MANIPULATOR as ROBOT
from embodied_controllers.contract import RobotState
from embodied_deploy.errors import ObservationError, PackageError
from embodied_deploy.package.contract import TensorSpec
from embodied_deploy.package.quantities import action_entry, observation_entry, parse
from embodied_deploy.policy.channels import Assembler
from embodied_deploy.policy.readers import rotation_world_body
from embodied_deploy.policy.sample import Sample
from tests import tiny_packages as tiny

YAW_RAD = 0.7
QUAT_WXYZ = np.array([np.cos(YAW_RAD / 2), 0.0, 0.0, np.sin(YAW_RAD / 2)])
ROTATION = np.array([[np.cos(YAW_RAD), -np.sin(YAW_RAD), 0], [np.sin(YAW_RAD), np.cos(YAW_RAD), 0], [0, 0, 1.0]])
STATE = RobotState(
    time_s=3.0,
    joint_pos=np.arange(12) + 0.5,
    joint_vel=-np.arange(12) - 0.25,
    base_pos_world_m=np.array([1.0, 2.0, 3.0]),
    base_quat_wxyz=QUAT_WXYZ,
    base_vel_body_mps=np.array([0.1, 0.2, 0.3]),
    base_angvel_body_radps=np.array([0.4, 0.5, 0.6]),
    signals={"gripper_force_n": 7.0, "gripper_width_m": 0.08},
)
SAMPLE = Sample(
    state=STATE,
    last_action=np.arange(14) * 0.1,
    goal={
        "pos_world_m": np.array([2.0, 4.0, 3.5]),
        "pose_world_xyyaw": np.array([5.0, 6.0, 0.5]),
        "quat_world_wxyz": QUAT_WXYZ,
        "height_m": np.array([1.5]),
    },
    ranges={"lidar": np.linspace(1.0, 2.0, 8)},
    images={"wrist_cam": np.arange(192, dtype=np.uint8).reshape(8, 8, 3)},
    tokens={"words": np.array([3, 1, 4])},
)
TO_GOAL = np.array([1.0, 2.0, 0.5])


def assemble(paths, sample=SAMPLE, extra=(), robot=ROBOT):
    c = tiny.contract(inputs=(tiny.observation(paths), *extra))
    inputs = {t.name: np.zeros((1, *t.shape), t.dtype) for t in c.inputs}
    Assembler(c, robot.action_spec, robot.observation_spec).fill(sample, inputs)
    return inputs


VALUES = [
    ("joint_pos.arm_0_rad", 1.5, "rad", "joint"),
    ("joint_pos.torso_m", 0.5, "m", "joint"),
    ("joint_vel.arm_0_rad", -1.25, "rad/s", "joint"),
    ("joint_vel.torso_m", -0.25, "m/s", "joint"),
    ("base_pos_world_m.y", 2.0, "m", "world"),
    ("base_quat_wxyz.z", QUAT_WXYZ[3], "1", "world"),
    ("base_rot_world_body.01", ROTATION[0, 1], "1", "world"),
    ("base_rot_world_body.10", ROTATION[1, 0], "1", "world"),
    ("base_rot_world_body.22", 1.0, "1", "world"),
    ("base_vel_body_mps.z", 0.3, "m/s", "body"),
    ("base_vel_world_mps.x", (ROTATION @ [0.1, 0.2, 0.3])[0], "m/s", "world"),
    ("base_vel_world_mps.y", (ROTATION @ [0.1, 0.2, 0.3])[1], "m/s", "world"),
    ("base_angvel_body_radps.x", 0.4, "rad/s", "body"),
    ("gravity_body.z", -1.0, "1", "body"),
    ("signal.gripper_force_n", 7.0, "N", "none"),
    ("signal.gripper_width_m", 0.08, "m", "none"),
    ("last_action.forward_mps", 0.0, "m/s", "body"),
    ("last_action.arm_0_rad", 0.3, "rad", "joint"),
    ("goal.pos_world_m.z", 3.5, "m", "world"),
    ("goal.pos_world_m.2", 3.5, "m", "world"),
    ("goal.pose_world_xyyaw.y", 6.0, "m", "world"),
    ("goal.pose_world_xyyaw.yaw", 0.5, "rad", "world"),
    ("goal.quat_world_wxyz.w", QUAT_WXYZ[0], "1", "world"),
    ("goal.height_m.0", 1.5, "m", "none"),
    ("to_goal_pos_world_m.y", 2.0, "m", "world"),
    ("to_goal_pos_body_m.x", (ROTATION.T @ TO_GOAL)[0], "m", "body"),
    ("to_goal_pos_body_m.y", (ROTATION.T @ TO_GOAL)[1], "m", "body"),
    ("ranges.lidar.5", 1.0 + 5 / 7, "m", "body"),
]


@pytest.mark.parametrize(("path", "value", "unit", "frame"), VALUES)
def test_each_path_alone(path, value, unit, frame):
    assert assemble([path])["obs"][0, 0] == pytest.approx(value, rel=1e-6)
    assert (parse(path).unit, parse(path).frame) == (unit, frame)


def test_all_paths_together_in_any_order():
    rng = np.random.default_rng(0)
    for _ in range(20):
        order = rng.permutation(len(VALUES))
        chosen = [VALUES[i] for i in order]
        row = assemble([c[0] for c in chosen])["obs"][0]
        np.testing.assert_allclose(row, [c[1] for c in chosen], rtol=1e-6)


def test_joints_are_found_by_name_in_a_robot_with_another_order():
    spec = ROBOT.observation_spec
    turned = dataclasses.replace(ROBOT, observation_spec=dataclasses.replace(spec, joint_names=spec.joint_names[::-1]))
    sample = dataclasses.replace(SAMPLE, state=dataclasses.replace(STATE, joint_pos=STATE.joint_pos[::-1]))
    paths = ["joint_pos.arm_3_rad", "joint_pos.arm_0_rad", "joint_pos.torso_m"]
    np.testing.assert_array_equal(assemble(paths, sample, robot=turned)["obs"], assemble(paths)["obs"])


def test_rotation_matches_the_definition_and_forgives_length():
    rng = np.random.default_rng(1)
    for _ in range(50):
        q = rng.normal(size=4)
        r = np.array(rotation_world_body(q)).reshape(3, 3)
        np.testing.assert_allclose(r @ r.T, np.eye(3), atol=1e-12)
        assert np.linalg.det(r) == pytest.approx(1.0)
        # Hamilton product q v q* of the unit quaternion.
        w, v = q[0] / np.linalg.norm(q), q[1:] / np.linalg.norm(q)
        for axis in np.eye(3):
            expected = axis + 2 * np.cross(v, np.cross(v, axis) + w * axis)
            np.testing.assert_allclose(r @ axis, expected, atol=1e-12)


def test_images_and_tokens_are_copied():
    image = TensorSpec(name="image", role="image", dtype="uint8", shape=(8, 8, 3), source="wrist_cam")
    words = TensorSpec(name="words", role="tokens", dtype="int64", shape=(3,))
    inputs = assemble(["base_pos_world_m.x"], extra=(image, words))
    np.testing.assert_array_equal(inputs["image"][0], SAMPLE.images["wrist_cam"])
    np.testing.assert_array_equal(inputs["words"][0], [3, 1, 4])
    assert not np.shares_memory(inputs["image"], SAMPLE.images["wrist_cam"])


def _sample(**changes):
    return dataclasses.replace(SAMPLE, **changes)


def _state(**changes):
    return _sample(state=dataclasses.replace(STATE, **changes))


NAN, INF = float("nan"), float("inf")


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize(
    ("path", "sample", "word"),
    [
        ("joint_pos.arm_0_rad", _state(joint_pos=np.full(12, NAN)), "joint_pos.arm_0_rad"),
        ("joint_pos.arm_0_rad", _state(joint_pos=np.zeros(11)), r"joint_pos: shape \(11,\), expected 12 values"),
        ("joint_pos.arm_0_rad", _state(joint_pos=np.zeros((12, 1))), "joint_pos"),
        ("joint_pos.arm_0_rad", _state(joint_pos=None), "joint_pos"),
        ("joint_pos.arm_0_rad", _state(joint_pos=np.array(1.0)), "joint_pos"),
        ("joint_pos.arm_0_rad", _state(joint_pos=np.full(12, 1e300)), "joint_pos.arm_0_rad"),
        ("base_pos_world_m.x", _state(base_pos_world_m=np.array([INF, 0, 0])), "base_pos_world_m.x"),
        ("base_pos_world_m.x", _state(base_pos_world_m=np.zeros(2)), "base_pos_world_m"),
        ("gravity_body.x", _state(base_quat_wxyz=np.zeros(4)), "gravity_body.x"),
        ("gravity_body.x", _state(base_quat_wxyz=np.zeros(3)), "base_quat_wxyz"),
        ("base_vel_world_mps.x", _state(base_vel_body_mps=np.zeros(4)), "base_vel_world_mps"),
        ("signal.gripper_force_n", _state(signals={}), "gripper_force_n"),
        ("signal.gripper_force_n", _state(signals={"gripper_force_n": NAN}), "gripper_force_n"),
        ("signal.gripper_force_n", _state(signals={"gripper_force_n": None}), "gripper_force_n"),
        ("last_action.forward_mps", _sample(last_action=np.zeros(3)), "last_action"),
        ("last_action.forward_mps", _sample(last_action=np.full(14, NAN)), "last_action.forward_mps"),
        ("goal.pos_world_m.x", _sample(goal={}), "goal.pos_world_m"),
        ("goal.pos_world_m.x", _sample(goal={"pos_world_m": np.zeros(2)}), "goal.pos_world_m"),
        ("goal.pose_world_xyyaw.x", _sample(goal={"pose_world_xyyaw": np.zeros(4)}), "goal.pose_world_xyyaw"),
        ("to_goal_pos_body_m.x", _sample(goal={}), "to_goal_pos_body_m"),
        ("to_goal_pos_world_m.x", _sample(goal={"pos_world_m": np.zeros(2)}), "to_goal_pos_world_m"),
        ("to_goal_pos_world_m.x", _sample(goal={"pos_world_m": np.zeros(1)}), "to_goal_pos_world_m"),
        ("to_goal_pos_body_m.x", _sample(goal={"pos_world_m": [0.0, 0.0, 0.0]}), "to_goal_pos_body_m"),
        ("ranges.lidar.3", _sample(ranges={}), "ranges.lidar"),
        ("ranges.lidar.3", _sample(ranges={"lidar": np.ones(3)}), "at least 4"),
        ("ranges.lidar.3", _sample(ranges={"lidar": np.full(8, INF)}), "greatest range, not infinity"),
    ],
)
def test_an_observation_that_does_not_fit_is_refused_by_name(path, sample, word):
    with pytest.raises(ObservationError, match=word):
        assemble([path], sample)


def test_a_lidar_with_more_beams_than_all_that_were_trained_is_another_lidar():
    beams = [f"ranges.lidar.{i}" for i in range(8)]
    np.testing.assert_allclose(assemble(beams)["obs"][0], SAMPLE.ranges["lidar"], rtol=1e-6)
    with pytest.raises(ObservationError, match=r"shape \(16,\), expected 8 values"):
        assemble(beams, _sample(ranges={"lidar": np.ones(16)}))


@pytest.mark.parametrize(
    ("images", "word"),
    [
        ({}, "missing"),
        ({"wrist_cam": np.zeros((8, 9, 3), np.uint8)}, r"\(8, 9, 3\)"),
        ({"wrist_cam": np.zeros((8, 8, 3), np.float32)}, "float32"),
        ({"wrist_cam": np.zeros((8, 8, 4), np.uint8)}, r"\(8, 8, 4\)"),
        ({"wrist_cam": None}, "missing"),
        ({"wrist_cam": [[1]]}, "list"),
    ],
)
def test_an_image_that_does_not_fit_is_refused(images, word):
    image = TensorSpec(name="image", role="image", dtype="uint8", shape=(8, 8, 3), source="wrist_cam")
    with pytest.raises(ObservationError, match=word):
        assemble(["base_pos_world_m.x"], _sample(images=images), extra=(image,))


def test_large_finite_values_are_no_error():
    huge = _state(base_pos_world_m=np.array([3e38, 0.0, 0.0]))
    assert assemble(["base_pos_world_m.x"], huge)["obs"][0, 0] == np.float32(3e38)


@pytest.mark.parametrize(
    "path",
    [
        *("", "joint_pos", "joint_pos.", "joint_pos.a.b", "base_pos_world_m.w", "base_pos_world_m"),
        "base_rot_world_body.33",
        "goal.pos_world_m",
        "goal.pos_world_m.yaw",
        "goal..x",
        "ranges.lidar",
        "ranges.lidar.x",
        "ranges.lidar.-1",
        "camera.x",
    ],
)
def test_a_path_that_leads_nowhere_says_what_may_stand_there(path):
    with pytest.raises(ValueError, match=r"expected one of|begins with one of"):
        parse(path)


@pytest.mark.parametrize("path", ["joint_pos.arm_9_rad", "signal.battery_ratio", "last_action.deck_m"])
def test_a_robot_without_it_is_refused_when_built(path):
    with pytest.raises(PackageError, match=path.partition(".")[2]) as error:
        assemble([path])
    assert error.value.reason == "robot"


def test_entries_carry_what_their_name_implies():
    assert observation_entry("joint_vel.arm_0_rad", -1, 1).unit == "rad/s"
    assert action_entry("thrust_1_n", 0, 1).frame == "rotor"
    assert action_entry("yaw_rate_radps", -1, 1).frame == "body"
    assert action_entry("gripper_force_n", 0, 1).frame == "none"
    assert action_entry("vel_world_mps", 0, 1).frame == "world"
    with pytest.raises(ValueError, match="altitude"):
        observation_entry("altitude", 0, 1)
