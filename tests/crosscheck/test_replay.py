"""From a real episode's log to pictures: what is drawn is what happened; videos decode; bad logs are named."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest

from embodied.agents.episode import EpisodeRequest, run_episode
from embodied.errors import LogError, SceneError, WorldError
from embodied.record.contract import EpisodeLog
from embodied.record.log import McapLogWriter, read_log
from embodied.record.memory import MemoryLog
from embodied.record.replay import ReplayConfig, captions, pose, posed_world, replay_episode, replay_frames
from embodied.record.video import png_bytes, write_png, write_video
from embodied.record.viewing import picture, view_scene
from embodied.sensors.camera import visible_entities
from embodied.worlds.mujoco import MujocoWorld
from embodied_scenes.builders import compile_scene
from tests.small_scenes import small_scene

SMALL = ReplayConfig(width_px=160, height_px=120, fps=5.0, max_video_s=3.0)


@pytest.fixture(scope="module")
def episode(tmp_path_factory):
    path = tmp_path_factory.mktemp("replay") / "episode.mcap"
    request = EpisodeRequest(task_id="drones/inspect", seed=3, log_path=path)
    return path, run_episode(request)


def decode_png(data: bytes) -> np.ndarray:
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, body, size = 8, b"", (0, 0)
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", data, at + 8 + length)[0] == zlib.crc32(kind + content)
        if kind == b"IHDR":
            size = struct.unpack(">II", content[:8])
        body += content if kind == b"IDAT" else b""
        at += 12 + length
    rows = np.frombuffer(zlib.decompress(body), np.uint8).reshape(size[1], 1 + 3 * size[0])
    return rows[:, 1:].reshape(size[1], size[0], 3)


def test_png_round_trip(tmp_path):
    image = np.random.default_rng(0).integers(0, 256, (7, 5, 3), dtype=np.uint8)
    np.testing.assert_array_equal(decode_png(png_bytes(image)), image)
    assert write_png(tmp_path / "a" / "x.png", image).read_bytes() == png_bytes(image)
    with pytest.raises(LogError, match="must have the shape"):
        png_bytes(image[:, :, 0])


def test_poses_come_back_as_they_were(episode):
    log = read_log(episode[0])
    world = posed_world(log)
    for index in (0, len(log.time_s) // 2, len(log.time_s) - 1):
        pose(world, log, float(log.time_s[index]))
        np.testing.assert_allclose(world.qpos[0], log.qpos[index], atol=1e-12)
    half = float(log.time_s[4] + log.time_s[5]) / 2
    pose(world, log, half)
    np.testing.assert_allclose(world.qpos[0, :3], (log.qpos[4, :3] + log.qpos[5, :3]) / 2, atol=1e-9)


def test_the_follow_camera_keeps_the_robot_in_the_picture(episode):
    from embodied.record.follow import FollowCamera

    log = read_log(episode[0])
    world = posed_world(log)
    (robot,) = world.scene.info.robots
    follow = FollowCamera(world, robot, 320, 240)
    seen = []
    for time_s in np.linspace(0.0, log.time_s[-1], 60):
        pose(world, log, float(time_s))
        follow.update(0.1)
        frame = follow.camera.render()
        seen.append(visible_entities(frame, world.scene, 1).get(robot, 0))
        column, row, depth = follow.camera.view().project(np.array(world.qpos[0, :3]))
        assert depth > 0
        assert abs(column - 160) < 2
        assert abs(row - 120) < 2
    assert np.mean(np.array(seen) > 0) > 0.85


def test_a_video_plays_and_frames_repeat(episode, tmp_path):
    iio = pytest.importorskip("imageio.v3", reason="imageio is not installed: no video here")
    pytest.importorskip("imageio_ffmpeg", reason="ffmpeg for imageio is not installed: no video here")
    log = read_log(episode[0])
    first, second = list(replay_frames(log, SMALL)), list(replay_frames(log, SMALL))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert not np.array_equal(first[0], first[len(first) // 2])
    target = replay_episode(episode[0], tmp_path / "v.mp4", SMALL)
    frames = iio.imread(target, plugin="FFMPEG")
    assert len(frames) == len(first)
    assert frames.shape[2] == 160
    assert frames.shape[1] == first[0].shape[0] + first[0].shape[0] % 2
    rows = first[0].shape[0]
    assert np.abs(frames[0][:rows].astype(float) - first[0]).mean() < 12
    assert b"avc1" in target.read_bytes()
    assert [p.name for p in tmp_path.iterdir()] == ["v.mp4"]
    picture_path = replay_episode(episode[0], tmp_path / "end.png", SMALL)
    np.testing.assert_array_equal(decode_png(picture_path.read_bytes())[120:], first[-1][120:])  # the bar of text


def test_captions_say_what_is_going_on(episode):
    log = read_log(episode[0])
    lines = captions(log)
    start = next(e for e in log.events if e.kind == "skill_start")
    assert str(start.payload["skill"]) in lines.at(start.time_s)
    assert "x2.0" in lines.at(1.0, 2.0)
    assert "end" in lines.at(float(log.time_s[-1]))


def test_video_refuses_what_it_cannot_write(tmp_path):
    pytest.importorskip("imageio_ffmpeg", reason="ffmpeg for imageio is not installed: no video here")
    frame = np.zeros((33, 47, 3), np.uint8)
    with pytest.raises(LogError, match=r"ends in \.mp4"):
        write_video(tmp_path / "v.gif", [frame])
    with pytest.raises(LogError, match="No frame"):
        write_video(tmp_path / "v.mp4", [])
    with pytest.raises(LogError, match="one size"):
        write_video(tmp_path / "v.mp4", [frame, frame[:-2]])
    assert list(tmp_path.iterdir()) == []
    assert write_video(tmp_path / "odd.mp4", [frame] * 3) == 3


def test_logs_that_cannot_be_drawn_are_named(episode):
    sink = MemoryLog({"task_id": "t", "world": "symbolic"})
    sink.state(0.0, np.zeros(0), {})
    with pytest.raises(LogError, match=r"holds no physics \(world 'symbolic'\)"):
        posed_world(sink.log())
    log = read_log(episode[0])
    other = EpisodeLog(meta=log.meta, time_s=log.time_s, qpos=log.qpos[:, :-1], actions={}, changes=(), events=())
    with pytest.raises(LogError, match="changed since"):
        posed_world(other)
    with pytest.raises(WorldError, match="no camera 'nowhere'"):
        next(replay_frames(log, ReplayConfig(camera="nowhere")))


def test_a_view_shows_the_whole_scene(tmp_path):
    path = view_scene(small_scene(), tmp_path / "s.png", width_px=200, height_px=150)
    assert path == tmp_path / "s.png"
    assert decode_png(path.read_bytes()).shape == (150, 200, 3)
    world = MujocoWorld(compile_scene(small_scene()))
    world.reset(0)
    assert picture(world, "top", width_px=64, height_px=64).std() > 5
    from embodied.record.stage import overview_camera

    seen = visible_entities(overview_camera(world, width_px=320, height_px=240).render(), world.scene, 1)
    assert {"table", "cabinet", "box"} <= set(seen)
    with pytest.raises(SceneError, match=r"as \.png or \.mp4"):
        view_scene(small_scene(), tmp_path / "s.gif")


def test_a_view_without_display_writes_a_picture(tmp_path, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.chdir(tmp_path)
    path = view_scene(small_scene(), width_px=64, height_px=48)
    assert path is not None
    assert path.exists()
    assert path.name == "test_small@1.png"


def test_a_turn_around_a_scene_is_a_video(tmp_path):
    pytest.importorskip("imageio_ffmpeg", reason="ffmpeg for imageio is not installed: no video here")
    path = view_scene(small_scene(), tmp_path / "s.mp4", width_px=64, height_px=48)
    assert path is not None
    assert path.stat().st_size > 1000


def test_replay_of_a_torn_log_is_a_log_error(tmp_path):
    writer = McapLogWriter(tmp_path / "e.mcap", meta={})
    writer.close()
    with pytest.raises(LogError, match="holds no physics"):
        replay_episode(tmp_path / "e.mcap", tmp_path / "v.mp4")
