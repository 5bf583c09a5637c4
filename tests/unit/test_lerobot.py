"""Datasets in LeRobot v3 layout: what is written comes back, and what is torn is named."""

import json
import shutil

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

from embodied.record.lerobot.layout import DatasetError, Feature  # noqa: E402
from embodied.record.lerobot.pictures import decode_png  # noqa: E402
from embodied.record.lerobot.reader import LeRobotDataset  # noqa: E402
from embodied.record.lerobot.writer import LeRobotWriter  # noqa: E402
from embodied.record.video import png_bytes  # noqa: E402

FEATURES = {
    "observation.state": Feature(dtype="float32", shape=(3,), names=("x_m", "y_m", "yaw_rad")),
    "action": Feature(dtype="float32", shape=(2,)),
    "next.done": Feature(dtype="bool", shape=(1,)),
    "observation.words": Feature(dtype="string", shape=(1,)),
    "observation.grid": Feature(dtype="int64", shape=(2, 3)),
    "observation.images.wrist": Feature(dtype="image", shape=(8, 6, 3)),
}
VIDEO = {"observation.images.front": Feature(dtype="video", shape=(32, 48, 3)), "action": FEATURES["action"]}


def _episode(length, seed):
    rng = np.random.default_rng(seed)
    return {
        "observation.state": rng.normal(size=(length, 3)).astype(np.float32),
        "action": rng.normal(size=(length, 2)).astype(np.float32),
        "next.done": np.arange(length) == length - 1,
        "observation.words": np.array([f"frame {i}" for i in range(length)]),
        "observation.grid": rng.integers(0, 9, (length, 2, 3)),
        "observation.images.wrist": rng.integers(0, 256, (length, 8, 6, 3), dtype=np.uint8),
    }


def _write(folder, lengths=(5, 3, 7), **options):
    with LeRobotWriter(folder, fps=20, features=FEATURES, robot_type="amr", **options) as writer:
        for i, n in enumerate(lengths):
            writer.add_episode(_episode(n, i), task="drive" if i % 2 else "park")
    return LeRobotDataset(folder)


def test_a_dataset_comes_back_as_written(tmp_path):
    data = _write(tmp_path / "set")
    assert (data.num_episodes, data.num_frames, data.fps, data.robot_type) == (3, 15, 20, "amr")
    assert data.tasks == ("park", "drive")
    for i, n in enumerate((5, 3, 7)):
        got, wanted = data.episode(i), _episode(n, i)
        for key, values in wanted.items():
            assert np.array_equal(got[key].reshape(values.shape), values), key
            assert got[key].dtype == values.dtype or key == "observation.words"
        assert np.array_equal(got["timestamp"][:, 0], (np.arange(n) / 20).astype(np.float32))
        assert np.array_equal(got["frame_index"][:, 0], np.arange(n))
        assert set(got["task_index"][:, 0]) == {i % 2}
    whole = data.column("observation.state")
    assert np.array_equal(whole, np.concatenate([_episode(n, i)["observation.state"] for i, n in enumerate((5, 3, 7))]))
    assert data.column("observation.images.wrist").shape == (15, 8, 6, 3)


def test_files_are_laid_out_as_version_3(tmp_path):
    _write(tmp_path / "set")
    names = {p.relative_to(tmp_path / "set").as_posix() for p in (tmp_path / "set").rglob("*") if p.is_file()}
    assert names == {
        "meta/info.json",
        "meta/stats.json",
        "meta/tasks.parquet",
        "meta/sha256.json",
        "meta/episodes/chunk-000/file-000.parquet",
        "data/chunk-000/file-000.parquet",
    }
    info = json.loads((tmp_path / "set/meta/info.json").read_text())
    assert info["codebase_version"] == "v3.0"
    assert info["splits"] == {"train": "0:3"}
    assert info["video_path"] is None
    assert info["features"]["observation.images.wrist"]["names"] == ["height", "width", "channels"]
    episodes = pq.read_table(tmp_path / "set/meta/episodes/chunk-000/file-000.parquet").to_pylist()
    assert [e["dataset_from_index"] for e in episodes] == [0, 5, 8]
    assert [e["dataset_to_index"] for e in episodes] == [5, 8, 15]
    assert episodes[2]["tasks"] == ["park"]
    assert episodes[1]["stats/action/count"] == [3]
    tasks = pq.read_table(tmp_path / "set/meta/tasks.parquet")
    assert json.loads(tasks.schema.metadata[b"pandas"])["index_columns"] == ["task"]
    data = pq.ParquetFile(tmp_path / "set/data/chunk-000/file-000.parquet")
    assert data.metadata.num_row_groups == 3  # one per episode
    assert data.schema_arrow.field("action").type == pa.list_(pa.float32(), 2)


def test_statistics_are_those_of_all_frames(tmp_path):
    data = _write(tmp_path / "set")
    state = data.column("observation.state").astype(float)
    stats = data.stats["observation.state"]
    for name, value in {
        "mean": state.mean(0),
        "std": state.std(0),
        "min": state.min(0),
        "max": state.max(0),
        "q50": np.median(state, axis=0),
    }.items():
        assert np.allclose(stats[name], value), name
    assert stats["count"] == [15]
    images = data.column("observation.images.wrist") / 255.0
    found = data.stats["observation.images.wrist"]
    assert np.allclose(np.array(found["mean"])[:, 0, 0], images.mean(axis=(0, 1, 2)))
    assert np.allclose(np.array(found["std"])[:, 0, 0], images.std(axis=(0, 1, 2)))
    assert found["count"] == [15]
    middle = np.array(found["q50"])[:, 0, 0]
    assert np.allclose(middle, np.median(images.reshape(-1, 3), axis=0), atol=1 / 255)


def test_equal_episodes_give_equal_sums_and_others_do_not(tmp_path):
    a, b, c = _write(tmp_path / "a"), _write(tmp_path / "b"), _write(tmp_path / "c", (5, 3, 6))
    assert a.sha256 == b.sha256 != c.sha256


def test_large_datasets_go_on_in_a_second_file(tmp_path):
    data = _write(tmp_path / "set", (4,) * 6, data_file_mb=0.002)
    assert len(data.data_files) > 1
    assert {e.record["data/file_index"] for e in data.episodes} == set(range(len(data.data_files)))
    assert np.array_equal(data.episode(5)["action"], _episode(4, 5)["action"])
    data.verify()


def test_a_video_keeps_every_frame(tmp_path):
    pytest.importorskip("imageio_ffmpeg")
    ramp = np.zeros((9, 32, 48, 3), dtype=np.uint8) + (np.arange(9, dtype=np.uint8) * 25)[:, None, None, None]
    with LeRobotWriter(tmp_path / "set", fps=10, features=VIDEO, video_file_frames=9) as writer:
        for part in (ramp[:4], ramp[4:], ramp[:3]):
            writer.add_episode({"observation.images.front": part, "action": np.zeros((len(part), 2))}, task="look")
    data = LeRobotDataset(tmp_path / "set")
    assert data.episode(1)["observation.images.front"].shape == (5, 32, 48, 3)
    levels = data.episode(1)["observation.images.front"].mean(axis=(1, 2, 3))
    assert np.allclose(levels, np.arange(4, 9) * 25, atol=3)  # compressed, yet the right frames
    assert [e.record["videos/observation.images.front/file_index"] for e in data.episodes] == [0, 0, 1]
    assert data.episodes[1].record["videos/observation.images.front/from_timestamp"] == pytest.approx(0.4)
    assert data.info["features"]["observation.images.front"]["info"]["video.codec"] == "h264"

    path = data.video_path(data.episodes[0], "observation.images.front")
    (tmp_path / "set/meta/sha256.json").unlink()  # as if another writer had made it
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DatasetError, match=r"file-000\.mp4"):
        LeRobotDataset(tmp_path / "set").verify()
    path.unlink()
    with pytest.raises(DatasetError, match="is missing"):
        LeRobotDataset(tmp_path / "set").episode(0)


def test_the_writer_gives_no_name_to_what_was_cut_off(tmp_path):
    class _StopError(Exception):
        pass

    def cut_off():
        with LeRobotWriter(tmp_path / "set", fps=20, features=FEATURES) as writer:
            writer.add_episode(_episode(3, 0), task="a")
            raise _StopError

    with pytest.raises(_StopError):
        cut_off()
    assert list(tmp_path.iterdir()) == []

    writer = LeRobotWriter(tmp_path / "set", fps=20, features=FEATURES)  # a killed run leaves its part
    writer.add_episode(_episode(3, 0), task="a")
    with pytest.raises(DatasetError, match="cut off"):
        LeRobotDataset(tmp_path / "set")
    writer.abort()


def test_an_old_dataset_is_never_touched(tmp_path):
    before = _write(tmp_path / "set").sha256
    with pytest.raises(DatasetError, match="exists"):
        LeRobotWriter(tmp_path / "set", fps=20, features=FEATURES)
    assert LeRobotDataset(tmp_path / "set").sha256 == before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"action": None}, "lacks the features"),
        ({"extra": np.zeros(3)}, "unknown"),
        ({"action": np.zeros((3, 5))}, "expected"),
        ({"action": np.zeros((2, 2))}, "different numbers"),
        ({"action": np.full((3, 2), np.nan)}, "NaN"),
        ({"observation.grid": np.zeros((3, 2, 3))}, "declared int64"),
        ({"observation.images.wrist": np.zeros((3, 8, 6, 3))}, "uint8"),
    ],
)
def test_an_episode_that_does_not_fit_is_refused(tmp_path, change, words):
    with LeRobotWriter(tmp_path / "set", fps=20, features=FEATURES) as writer:
        columns = {k: v for k, v in {**_episode(3, 0), **change}.items() if v is not None}
        with pytest.raises(DatasetError, match=words):
            writer.add_episode(columns, task="a")
        with pytest.raises(DatasetError, match="text"):
            writer.add_episode(_episode(3, 0), task=["a", "b"])
        writer.add_episode(_episode(3, 0), task="a")
    assert LeRobotDataset(tmp_path / "set").num_frames == 3


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ({}, "at least one"),
        ({"timestamp": Feature(dtype="float32", shape=(1,))}, "filled by the writer"),
        ({"a/b": Feature(dtype="float32", shape=(1,))}, "slashes"),
        ({"a": Feature(dtype="complex64", shape=(1,))}, "dtype"),
        ({"a": Feature(dtype="float32", shape=(0,))}, "at least 1"),
        ({"a": Feature(dtype="video", shape=(33, 48, 3))}, "even"),
        ({"a": Feature(dtype="image", shape=(8, 8))}, "height, width, 3"),
        ({"a": Feature(dtype="float32", shape=(2,), names=("x",))}, "names"),
    ],
)
def test_features_that_the_layout_cannot_hold_are_refused(tmp_path, features, words):
    with pytest.raises(DatasetError, match=words):
        LeRobotWriter(tmp_path / "set", fps=20, features=features)
    assert list(tmp_path.iterdir()) == []


def test_a_rate_or_an_empty_dataset_is_refused(tmp_path):
    with pytest.raises(DatasetError, match="whole number"):
        LeRobotWriter(tmp_path / "set", fps=12.5, features=FEATURES)
    writer = LeRobotWriter(tmp_path / "set", fps=20, features=FEATURES)
    with pytest.raises(DatasetError, match="at least one episode"):
        writer.close()
    writer.abort()
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lerobot") / "set"
    _write(folder)
    return folder


@pytest.mark.parametrize(
    "name",
    ["meta/info.json", "meta/stats.json", "meta/tasks.parquet", "meta/episodes/chunk-000/file-000.parquet",
     "data/chunk-000/file-000.parquet"],
)  # fmt: skip
@pytest.mark.parametrize("damage", ["missing", "half", "flipped"])
def test_a_torn_dataset_is_named(written, tmp_path, name, damage):
    folder = tmp_path / "set"
    shutil.copytree(written, folder)
    path = folder / name
    data = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "half":
        path.write_bytes(data[: len(data) // 2])
    else:
        at = len(data) // 2
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    with pytest.raises(DatasetError, match=r"set|info\.json"):
        LeRobotDataset(folder).verify()


def test_an_edited_dataset_is_named(written, tmp_path):
    folder = tmp_path / "set"
    shutil.copytree(written, folder)
    (folder / "data/chunk-000/file-001.parquet").write_bytes((folder / "data/chunk-000/file-000.parquet").read_bytes())
    with pytest.raises(DatasetError, match="added"):
        LeRobotDataset(folder).verify()
    (folder / "meta/sha256.json").unlink()
    with pytest.raises(DatasetError, match="says 15 frames"):
        LeRobotDataset(folder).verify()


def test_wrong_stamps_of_another_writer_are_named(written, tmp_path):
    folder = tmp_path / "set"
    shutil.copytree(written, folder)
    (folder / "meta/sha256.json").unlink()
    info = json.loads((folder / "meta/info.json").read_text())
    info["fps"] = 30
    (folder / "meta/info.json").write_text(json.dumps(info))
    with pytest.raises(DatasetError, match="row 1 has timestamp"):
        LeRobotDataset(folder).verify()
    info["codebase_version"] = "v2.1"
    (folder / "meta/info.json").write_text(json.dumps(info))
    with pytest.raises(DatasetError, match=r"v2\.1"):
        LeRobotDataset(folder)


def test_pictures_of_other_writers_are_decoded():
    image = np.random.default_rng(0).integers(0, 256, (9, 7, 3), dtype=np.uint8)
    assert np.array_equal(decode_png(png_bytes(image)), image)
    cv2 = pytest.importorskip("cv2")
    filtered = cv2.imencode(".png", np.tile(np.arange(64, dtype=np.uint8)[:, None, None], (1, 64, 3)))[1].tobytes()
    assert np.array_equal(decode_png(filtered)[:, 0, 0], np.arange(64))
    for torn in (b"", b"no picture", png_bytes(image)[:-20], png_bytes(image).replace(b"IDAT", b"JDAT")):
        with pytest.raises(DatasetError):
            decode_png(torn)
