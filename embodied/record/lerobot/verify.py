"""Count what a dataset holds against what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from embodied.record.lerobot import finish
from embodied.record.lerobot.layout import DatasetError
from embodied.record.lerobot.pictures import video_frames

if TYPE_CHECKING:
    from embodied.record.lerobot.reader import LeRobotDataset

_STAMP_TOLERANCE_S = 1e-4
"""Time stamps are float32: at an hour they are good to a quarter of a millisecond, so longer episodes get more."""


def verify_dataset(dataset: LeRobotDataset) -> None:
    """See :meth:`embodied.record.lerobot.reader.LeRobotDataset.verify`."""
    _check_sums(dataset)
    _check_episodes(dataset)
    _check_rows(dataset)
    for key, feature in dataset.features.items():
        if feature.dtype == "image":
            _check_images(dataset, key)
        elif feature.dtype == "video":
            _check_videos(dataset, key)


def _check_sums(dataset: LeRobotDataset) -> None:
    recorded = finish.recorded_hashes(dataset.folder)
    if not recorded:
        return  # written by others
    present = finish.file_hashes(dataset.folder)
    for name in sorted(set(recorded) | set(present)):
        if name not in present:
            raise DatasetError(f"The dataset {dataset.folder.name} is torn: {name} is missing.")
        if name not in recorded:
            raise DatasetError(f"The dataset {dataset.folder.name} was edited: {name} was added.")
        if recorded[name] != present[name]:
            raise DatasetError(f"The dataset {dataset.folder.name}: {name} is not what was written. Copy it again.")


def _check_episodes(dataset: LeRobotDataset) -> None:
    rows = dataset.episodes
    if [e.index for e in rows] != list(range(dataset.num_episodes)):
        raise DatasetError(f"{dataset.folder.name} says {dataset.num_episodes} episodes, its table holds {len(rows)}.")
    at = 0
    for row in rows:
        if row.start != at or row.length < 1:
            raise DatasetError(f"Episode {row.index} of {dataset.folder.name} starts at {row.start}, expected {at}.")
        at += row.length
    if at != dataset.num_frames:
        raise DatasetError(f"{dataset.folder.name} says {dataset.num_frames} frames, its episodes hold {at}.")


def _check_rows(dataset: LeRobotDataset) -> None:
    name = dataset.folder.name
    columns = {k: dataset.column(k)[:, 0] for k in ("index", "episode_index", "frame_index", "timestamp", "task_index")}
    count = len(columns["index"])
    if count != dataset.num_frames:
        raise DatasetError(f"{name} says {dataset.num_frames} frames, its data files hold {count}.")
    lengths = [e.length for e in dataset.episodes]
    frame = np.concatenate([np.arange(n) for n in lengths])
    expected = {
        "index": np.arange(count),
        "episode_index": np.repeat(np.arange(len(lengths)), lengths),
        "frame_index": frame,
    }
    for key, wanted in expected.items():
        wrong = np.flatnonzero(columns[key] != wanted)
        if wrong.size:
            row = int(wrong[0])
            raise DatasetError(f"{name}: row {row} has {key} {columns[key][row]}, expected {wanted[row]}.")
    stamps = frame / dataset.fps
    wrong = np.flatnonzero(np.abs(columns["timestamp"] - stamps) > np.maximum(_STAMP_TOLERANCE_S, 1e-6 * stamps))
    if wrong.size:
        row = int(wrong[0])
        raise DatasetError(f"{name}: row {row} has timestamp {columns['timestamp'][row]}, expected {stamps[row]}.")
    if columns["task_index"].min() < 0 or columns["task_index"].max() >= len(dataset.tasks):
        raise DatasetError(f"{name}: a task_index is outside the {len(dataset.tasks)} tasks.")


def _check_images(dataset: LeRobotDataset, key: str) -> None:
    for row in dataset.episodes:  # one by one: all pictures at once may not fit into memory
        dataset.episode(row.index, (key,))


def _check_videos(dataset: LeRobotDataset, key: str) -> None:
    expected: dict[str, int] = {}
    for row in dataset.episodes:
        path = dataset.video_path(row, key)
        expected[str(path)] = expected.get(str(path), 0) + row.length
    for row in dataset.episodes:
        path = dataset.video_path(row, key)
        wanted = expected.pop(str(path), None)
        if wanted is None:
            continue
        where = path.relative_to(dataset.folder)
        if not path.exists():
            raise DatasetError(f"The dataset {dataset.folder.name} is torn: {where} is missing.")
        count = 0
        for frame in video_frames(path):
            if frame.shape != dataset.features[key].shape:
                raise DatasetError(f"{where}: frame {count} is {frame.shape}, not {dataset.features[key].shape}.")
            count += 1
        if count != wanted:
            raise DatasetError(f"{where} holds {count} frames, its episodes need {wanted}.")
