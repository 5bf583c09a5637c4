"""Arms: rotations, chains, closed-form and iterative inverse kinematics, trajectories."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embodied.robots.mobile_manipulator.kinematics import arm_chain, arm_geometry, torso_arm_chain
from embodied_controllers import rotation as r
from embodied_controllers.arm.ik import solve_ik, straight_line
from embodied_controllers.arm.trajectory import trapezoid_trajectory

ARM, CHAIN = arm_chain(), torso_arm_chain()
SEEDS = st.integers(0, 2**31 - 1)


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_rotations_agree_with_each_other(seed: int) -> None:
    rng = np.random.default_rng(seed)
    vector = rng.normal(size=3)
    vector *= rng.uniform(0.0, np.pi - 1e-3) / np.linalg.norm(vector)
    rot = r.exp_rotation(vector)
    np.testing.assert_allclose(rot @ rot.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(r.log_rotation(rot), vector, atol=1e-9)
    quat = r.quat_of_matrix(rot)
    np.testing.assert_allclose(r.matrix_of_quat(quat), rot, atol=1e-12)
    other = r.exp_rotation(rng.normal(size=3))
    product = r.quat_multiply(quat, r.quat_of_matrix(other))
    np.testing.assert_allclose(r.matrix_of_quat(product), rot @ other, atol=1e-12)
    turned = r.quat_of_axis_angle(np.array([0.0, 0.0, 2.0]), 0.7)
    np.testing.assert_allclose(r.matrix_of_quat(turned), r.rot_z(0.7), atol=1e-12)
    assert r.yaw_of_quat(turned) == pytest.approx(0.7)


def test_half_turns_and_empty_axes() -> None:
    for axis in np.eye(3):
        np.testing.assert_allclose(np.abs(r.log_rotation(r.exp_rotation(np.pi * axis))), np.pi * axis, atol=1e-7)
    with pytest.raises(ValueError, match="axis"):
        r.quat_of_axis_angle(np.zeros(3), 1.0)


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_jacobian_is_the_derivative_of_the_tool(seed: int) -> None:
    rng = np.random.default_rng(seed)
    q = rng.uniform(CHAIN.low, CHAIN.high)
    jac, eps = CHAIN.jacobian(q), 1e-6
    for i in range(CHAIN.size):
        step = eps * np.eye(CHAIN.size)[i]
        (p1, r1), (p0, r0) = CHAIN.tool(q + step), CHAIN.tool(q - step)
        np.testing.assert_allclose(jac[:3, i], (p1 - p0) / (2 * eps), atol=1e-7)
        np.testing.assert_allclose(jac[3:, i], r.log_rotation(r1 @ r0.T) / (2 * eps), atol=1e-6)


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_closed_form_reaches_what_it_calls_valid(seed: int) -> None:
    rng = np.random.default_rng(seed)
    q = rng.uniform(ARM.low, ARM.high, (20, 7))
    pos, rot = ARM.tool(q)
    found, valid = arm_geometry(0.0).solve(pos, rot, rng.uniform(-np.pi, np.pi, 20))
    good = found[valid]
    assert (good >= ARM.low).all()
    assert (good <= ARM.high).all()
    again_pos, again_rot = ARM.tool(good)
    rows = np.nonzero(valid)[0]
    np.testing.assert_allclose(again_pos, pos[rows], atol=1e-9)
    np.testing.assert_allclose(again_rot, rot[rows], atol=1e-9)
    _, none = arm_geometry().solve(pos + np.array([2.0, 0.0, 0.0]), rot, np.zeros(20))
    assert not none.any()


@settings(max_examples=8, deadline=None)
@given(SEEDS, st.sampled_from(["pose", "axis", "yaw_free", "position"]))
def test_iterative_ik_solves_within_limits(seed: int, task) -> None:
    rng = np.random.default_rng(seed)
    margin = 0.1 * (CHAIN.high - CHAIN.low)
    pos, rot = CHAIN.tool(rng.uniform(CHAIN.low + margin, CHAIN.high - margin))
    found = solve_ik(CHAIN, pos, rot, 0.5 * (CHAIN.low + CHAIN.high) + 0.2, task=task)
    assert found.is_solved, found
    assert (found.joint_pos >= CHAIN.low).all()
    assert (found.joint_pos <= CHAIN.high).all()
    again_pos, again_rot = CHAIN.tool(found.joint_pos)
    np.testing.assert_allclose(again_pos, pos, atol=2e-4)
    if task == "pose":
        np.testing.assert_allclose(again_rot, rot, atol=3e-3)
    if task == "axis":
        np.testing.assert_allclose(again_rot[:, 0], rot[:, 0], atol=3e-3)
    if task == "yaw_free":
        np.testing.assert_allclose(again_rot[2], rot[2], atol=3e-3)


def test_ik_says_when_it_cannot_and_refuses_nonsense() -> None:
    start = 0.5 * (CHAIN.low + CHAIN.high)
    far = solve_ik(CHAIN, np.array([3.0, 0.0, 0.5]), np.eye(3), start)
    assert not far.is_solved
    assert far.pos_error_m > 1.0
    assert far.starts >= 1
    assert np.isfinite(far.joint_pos).all()
    with pytest.raises(ValueError, match="finite"):
        solve_ik(CHAIN, np.array([np.nan, 0.0, 0.5]), np.eye(3), start)
    with pytest.raises(ValueError, match="shapes"):
        solve_ik(CHAIN, np.zeros(2), np.eye(3), start)


def test_straight_line_is_straight() -> None:
    start = np.array([0.2, 0.1, 0.5, 0.0, 1.2, 0.0, 0.6, 0.0])
    pos, rot = CHAIN.tool(start)
    line = straight_line(CHAIN, start, pos + np.array([0.1, 0.0, -0.1]), rot)
    assert line is not None
    points, turns = CHAIN.tool(line)
    along = (points - pos) @ np.array([1.0, 0.0, -1.0]) / np.sqrt(2)
    off = points - pos - along[:, None] * np.array([1.0, 0.0, -1.0]) / np.sqrt(2)
    assert np.abs(off).max() < 2e-4
    assert (np.diff(along) > 0).all()
    np.testing.assert_allclose(turns, np.broadcast_to(rot, turns.shape), atol=3e-3)
    assert straight_line(CHAIN, start, pos + np.array([3.0, 0.0, 0.0]), rot) is None


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(2, 6), st.floats(0.1, 0.5))
def test_trajectories_keep_their_limits(seed: int, corners: int, accel_time_s: float) -> None:
    rng = np.random.default_rng(seed)
    points, limit = rng.normal(size=(corners, 4)), rng.uniform(0.3, 2.0, 4)
    motion = trapezoid_trajectory(points, limit, accel_time_s=accel_time_s)
    np.testing.assert_allclose(motion.pos[0], points[0])
    np.testing.assert_allclose(motion.pos[-1], points[-1])
    assert (np.abs(np.diff(motion.pos, axis=0)) / motion.dt_s <= limit * 1.02 + 1e-9).all()
    accel = np.diff(motion.pos, 2, axis=0) / motion.dt_s**2
    width_s = max(round(accel_time_s / motion.dt_s), 1) * motion.dt_s
    assert (np.abs(accel) <= 2.1 * limit / width_s + 1e-6).all()
    low, high = points.min(axis=0), points.max(axis=0)
    assert (motion.pos >= low - 1e-9).all()
    assert (motion.pos <= high + 1e-9).all()
    pos, vel = motion.at(motion.duration_s + 1.0)
    np.testing.assert_allclose(pos, points[-1])
    np.testing.assert_allclose(vel, 0.0)


def test_trajectories_refuse_nonsense_and_stand_still() -> None:
    still = trapezoid_trajectory(np.zeros((3, 2)), np.ones(2))
    assert still.duration_s == 0.0
    for bad in (np.full((2, 2), np.nan), np.zeros(2), np.zeros((0, 2))):
        with pytest.raises(ValueError, match="waypoints"):
            trapezoid_trajectory(bad, np.ones(2))
    with pytest.raises(ValueError, match="speed_max"):
        trapezoid_trajectory(np.zeros((2, 2)), np.array([1.0, 0.0]))
