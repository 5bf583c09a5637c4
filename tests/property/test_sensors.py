"""Lidar, IMU, odometry, depth noise, rate and delay: exact without noise, of the stated size with it, seeded."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embodied.errors import WorldError
from embodied.seeding import stream_rng
from embodied.sensors.camera.frame import Frame
from embodied.sensors.inertial import Imu, ImuConfig
from embodied.sensors.lidar import Lidar, LidarConfig, nearest_m
from embodied.sensors.noise import Delayed, DepthNoiseConfig, noisy_depth
from embodied.sensors.odometry import Odometry, OdometryConfig
from embodied.worlds.mujoco import MujocoWorld
from embodied_scenes.builders import RobotMount, compile_scene
from tests.small_scenes import small_scene

SCANNER = """<mujoco><worldbody><body name="base">
<joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/><joint name="yaw" axis="0 0 1"/>
<geom type="cylinder" size="0.2 0.1" pos="0 0 0.15" mass="1"/>
<site name="eye" pos="0 0 0.3"/></body></worldbody></mujoco>"""


@pytest.fixture
def scanner(tmp_path):
    """A disc with a scanner, 1.5 m from the south wall (inner face at y = -2.95)."""
    path = tmp_path / "scanner.xml"
    path.write_text(SCANNER)
    world = MujocoWorld(compile_scene(small_scene(entities=()), [RobotMount(name="r", kind="scanner", mjcf=path)]))
    world.reset(0)
    world.qpos[0] = (0.0, -1.45, 0.0)
    world.forward()
    return world


def test_a_scan_of_a_wall_has_the_closed_form(scanner):
    config = LidarConfig(num_beams=181, start_rad=-np.pi, stop_rad=0.0)
    scan = Lidar(scanner, "r/eye", config).scan()
    expected = 1.5 / np.maximum(-np.sin(scan.angle_rad), 1e-9)
    along = expected * np.abs(np.cos(scan.angle_rad))
    hit = along < 3.0  # the wall ends 3 m to either side
    np.testing.assert_allclose(scan.range_m[hit], expected[hit], atol=1e-6)
    assert np.isinf(scan.range_m[along > 3.2]).all()
    assert nearest_m(scan, (-np.pi, 0.0)) == pytest.approx(1.5)
    np.testing.assert_allclose(scan.points_sensor_m()[:, 1], -1.5, atol=1e-6)


def test_scans_turn_with_the_robot_and_end_at_the_range(scanner):
    scanner.qpos[0, 2] = np.pi / 2
    scanner.forward()
    lidar = Lidar(scanner, "r/eye", LidarConfig(num_beams=3, start_rad=-np.pi, stop_rad=np.pi))
    assert lidar.scan().range_m[0] == lidar.scan().range_m[2] == pytest.approx(1.5)
    assert np.isinf(
        Lidar(scanner, "r/eye", LidarConfig(num_beams=1, start_rad=-np.pi, max_range_m=1.0)).scan().range_m
    ).all()


def test_lidar_noise_is_seeded_and_of_its_size(scanner):
    config = LidarConfig(num_beams=721, start_rad=-1.9, stop_rad=-1.2, noise_m=0.02, dropout=0.1)
    lidar = Lidar(scanner, "r/eye", config)
    exact = lidar.scan().range_m
    first, second = lidar.scan(stream_rng(1, "sensor")), lidar.scan(stream_rng(1, "sensor"))
    assert np.array_equal(first.range_m, second.range_m)
    assert not np.array_equal(first.range_m, lidar.scan(stream_rng(2, "sensor")).range_m)
    heard = np.isfinite(first.range_m)
    assert 0.85 < heard.mean() < 0.95
    assert (first.range_m - exact)[heard].std() == pytest.approx(0.02, rel=0.15)
    assert (first.geom_ids[~heard] == -1).all()


def test_lidar_bad_input(scanner):
    with pytest.raises(WorldError, match=r"no site 'r/ey'.*'r/eye'"):
        Lidar(scanner, "r/ey")
    with pytest.raises(WorldError, match="min_range_m < max_range_m"):
        LidarConfig(min_range_m=3.0, max_range_m=2.0)
    with pytest.raises(WorldError, match="dropout in"):
        LidarConfig(dropout=1.5)


def test_an_imu_without_errors_is_exact_and_saturates():
    quiet = ImuConfig(
        **{
            f: 0.0
            for f in ("gyro_noise", "accel_noise", "gyro_bias_radps", "accel_bias_mps2", "gyro_walk", "accel_walk")
        }
    )
    reading = Imu(quiet, np.random.default_rng(0), 0.01).measure(np.array([1.0, 2.0, 99.0]), np.array([0.0, 0.0, 9.81]))
    np.testing.assert_array_equal(reading.gyro_body_radps, [1.0, 2.0, quiet.gyro_range_radps])
    np.testing.assert_array_equal(reading.accel_body_mps2, [0.0, 0.0, 9.81])
    with pytest.raises(WorldError, match="dt_s > 0"):
        Imu(quiet, np.random.default_rng(0), 0.0)


def test_imu_noise_has_its_density_at_any_rate():
    for dt_s in (0.001, 0.01):
        imu = Imu(ImuConfig(gyro_bias_radps=0.0, gyro_walk=0.0), np.random.default_rng(5), dt_s)
        readings = np.array([imu.measure(np.zeros(3), np.zeros(3)).gyro_body_radps for _ in range(3000)])
        assert readings.std() * np.sqrt(dt_s) == pytest.approx(ImuConfig().gyro_noise, rel=0.05)


@settings(max_examples=30, deadline=None)
@given(steps=st.lists(st.tuples(st.floats(-0.2, 0.2), st.floats(-0.2, 0.2), st.floats(-0.5, 0.5)), max_size=30))
def test_odometry_without_errors_follows_exactly(steps):
    perfect = OdometryConfig(turn_per_turn=0, turn_per_m=0, drive_per_m=0, drive_per_turn=0, scale=0)
    pose = (1.0, -2.0, 3.0)
    odometry = Odometry(perfect, np.random.default_rng(0), pose)
    for dx, dy, turn in steps:
        pose = (pose[0] + dx, pose[1] + dy, (pose[2] + turn + np.pi) % (2 * np.pi) - np.pi)
        estimate = odometry.update(pose)
        np.testing.assert_allclose(estimate[:2], pose[:2], atol=1e-9)
        assert abs((estimate[2] - pose[2] + np.pi) % (2 * np.pi) - np.pi) < 1e-9


@pytest.mark.parametrize("steps", [20, 200])
def test_odometry_drift_does_not_depend_on_the_period(steps):
    config = OdometryConfig(turn_per_m=0.0, scale=0.0, drive_per_m=0.05)
    ends = []
    for seed in range(200):
        odometry = Odometry(config, stream_rng(seed, "sensor"), (0.0, 0.0, 0.0))
        for k in range(steps):
            odometry.update((4.0 * (k + 1) / steps, 0.0, 0.0))
        ends.append(odometry.pose[0])
    assert np.std(ends) == pytest.approx(0.05 * np.sqrt(4.0), rel=0.15)


def test_depth_noise_grows_with_the_square_of_the_depth():
    rgb, seg = np.zeros((100, 100, 3), np.uint8), np.zeros((100, 100), np.int32)
    config = DepthNoiseConfig(dropout=0.05)
    for depth_m in (1.0, 4.0):
        frame = Frame(rgb=rgb, depth_m=np.full((100, 100), depth_m, np.float32), segmentation=seg)
        noisy = noisy_depth(frame, config, stream_rng(0, "sensor"))
        there = np.isfinite(noisy.depth_m)
        assert 0.93 < there.mean() < 0.97
        assert noisy.depth_m[there].std() == pytest.approx(0.001 + 0.0014 * depth_m**2, rel=0.05)
        assert np.array_equal(noisy.depth_m, noisy_depth(frame, config, stream_rng(0, "sensor")).depth_m)
    nothing = Frame(rgb=rgb, depth_m=np.full((100, 100), np.inf, np.float32), segmentation=seg)
    assert np.isinf(noisy_depth(nothing, config, stream_rng(0, "sensor")).depth_m).all()


@settings(max_examples=50, deadline=None)
@given(
    rate_hz=st.sampled_from([3.0, 10.0, 30.0]), delay_s=st.floats(0.0, 0.3), dt_s=st.sampled_from([0.002, 0.01, 0.02])
)
def test_a_delayed_sensor_gives_the_newest_sample_that_can_have_arrived(rate_hz, delay_s, dt_s):
    sensor: Delayed[int] = Delayed(rate_hz, delay_s)
    taken = []
    for k in range(200):
        now_s = k * dt_s
        if sensor.is_due(now_s):
            taken.append(now_s)
        sensor.offer(now_s, k)
        read = sensor.read(now_s)
        arrived = [t for t in taken if t + delay_s <= now_s + 1e-9]
        assert (read.time_s if read else None) == (arrived[-1] if arrived else None)
        assert read is None or read.value == round(read.time_s / dt_s)
    assert abs(len(taken) - (199 * dt_s * rate_hz + 1)) <= 1


def test_a_delay_must_not_be_negative():
    with pytest.raises(WorldError, match="must be >= 0"):
        Delayed(10.0, -0.1)
