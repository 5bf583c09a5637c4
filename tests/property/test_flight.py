"""Properties of mixer, references and rotations over many inputs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embodied_controllers.quadrotor.dynamics import rotation
from embodied_controllers.quadrotor.mixer import mix
from embodied_controllers.quadrotor.params import CRAZYFLIE_21 as P
from embodied_controllers.quadrotor.trajectory import MinimumJerk, Polyline

torque = st.floats(-2e-2, 2e-2)
point = st.tuples(*[st.floats(-5, 5)] * 3)


def wrench(f):
    d, c = P.rotor_offset_m, P.torque_per_thrust_m
    return (
        sum(f),
        d * (-f[0] - f[1] + f[2] + f[3]),
        d * (-f[0] + f[1] + f[2] - f[3]),
        c * (-f[0] + f[1] - f[2] + f[3]),
    )


@settings(max_examples=100, deadline=None)
@given(st.floats(-0.5, 1.5), torque, torque, st.floats(-5e-3, 5e-3))
def test_mixer_stays_in_range_and_keeps_roll_and_pitch_longest(thrust, tx, ty, tz):
    f = mix(thrust, (tx, ty, tz), P)
    assert all(0.0 <= v <= P.thrust_max_n for v in f)
    _, got_x, got_y, got_z = wrench(f)
    # roll and pitch are scaled together, and only when they are wider than the whole range
    wide = (abs(tx) + abs(ty)) / (2 * P.rotor_offset_m)
    scale = min(1.0, P.thrust_max_n / wide) if wide > 0 else 1.0
    assert got_x == pytest.approx(tx * scale, abs=1e-9)
    assert got_y == pytest.approx(ty * scale, abs=1e-9)
    assert abs(got_z) <= abs(tz) + 1e-12
    assert got_z * tz >= -1e-15


@settings(max_examples=50, deadline=None)
@given(st.floats(0.2, 0.4), st.floats(-5e-4, 5e-4), st.floats(-5e-4, 5e-4), st.floats(-5e-5, 5e-5))
def test_mixer_inverts_what_fits(thrust, tx, ty, tz):
    np.testing.assert_allclose(wrench(mix(thrust, (tx, ty, tz), P)), (thrust, tx, ty, tz), atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.lists(point, min_size=2, max_size=6), st.floats(0.2, 3), st.floats(0.3, 4))
def test_polyline_visits_its_corners_within_limits(points, speed, acc):
    path = Polyline(points, speed, acc)
    times = np.linspace(-0.1, path.duration_s + 0.1, 200)
    samples = [path.sample(float(t)) for t in times]
    pos = np.array([s[0] for s in samples])
    vel = np.array([s[1] for s in samples])
    assert np.linalg.norm(vel, axis=1).max(initial=0) <= speed + 1e-9
    assert np.linalg.norm([s[2] for s in samples], axis=1).max(initial=0) <= acc + 1e-9
    steps = np.linalg.norm(np.diff(pos, axis=0), axis=1)
    assert steps.max() <= speed * (times[1] - times[0]) + 1e-6, "a jump in position"
    np.testing.assert_allclose(pos[0], points[0], atol=1e-9)
    np.testing.assert_allclose(pos[-1], points[-1], atol=1e-6)


@settings(max_examples=40, deadline=None)
@given(point, point, st.floats(0.2, 3), st.floats(0.3, 4))
def test_minimum_jerk_rests_at_both_ends_within_limits(start, end, speed, acc):
    move = MinimumJerk(start, end, speed, acc)
    for t, expected in ((0.0, start), (move.duration_s, end)):
        pos, vel, accel = move.sample(t)
        np.testing.assert_allclose(pos, expected, atol=1e-9)
        np.testing.assert_allclose(vel, 0, atol=1e-9)
        np.testing.assert_allclose(accel, 0, atol=1e-6)
    times = np.linspace(0, move.duration_s, 101)
    samples = [move.sample(float(t)) for t in times]
    assert max(np.linalg.norm(s[1]) for s in samples) <= speed * (1 + 1e-9)
    assert max(np.linalg.norm(s[2]) for s in samples) <= acc * (1 + 1e-9)
    # velocity is the derivative of position
    mid = move.duration_s * 0.3
    h = 1e-5 * move.duration_s
    slope = (np.array(move.sample(mid + h)[0]) - np.array(move.sample(mid - h)[0])) / (2 * h)
    np.testing.assert_allclose(slope, move.sample(mid)[1], atol=1e-5)


@pytest.mark.parametrize("bad", [[(0.0, 0.0, float("nan"))], []])
def test_paths_refuse_what_is_no_path(bad):
    with pytest.raises(ValueError, match="finite"):
        Polyline(bad, 1.0, 1.0)
    with pytest.raises(ValueError, match="limits"):
        Polyline([(0, 0, 0), (1, 0, 0)], 0.0, 1.0)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(*[st.floats(-1, 1)] * 4), min_size=1, max_size=8))
def test_rotations_are_orthonormal(quats):
    q = np.array(quats) + 1e-3
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    R = rotation(q)
    np.testing.assert_allclose(np.einsum("nij,nkj->nik", R, R), np.broadcast_to(np.eye(3), R.shape), atol=1e-12)
    np.testing.assert_allclose(np.linalg.det(R), 1.0)
