"""Drives as a LeRobot dataset, one for each stage, so that an interrupted run need not drive again."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from embodied.record.lerobot.layout import Feature
from embodied.record.lerobot.reader import LeRobotDataset
from embodied.record.lerobot.writer import LeRobotWriter
from embodied.robots.amr.spec import AMR
from embodied.train.navigation.drives import Drives
from embodied.train.navigation.promise import ACTIONS, ENTRIES, NUM_INPUTS
from embodied.train.navigation.task import RATE_HZ

TASK = "drive to the goal"
_ACTION_NAMES = tuple(entry.name for entry in ACTIONS)
FEATURES = {
    "observation.state": Feature(dtype="float32", shape=(NUM_INPUTS,), names=tuple(entry.name for entry in ENTRIES)),
    "action": Feature(dtype="float32", shape=(len(ACTIONS),), names=_ACTION_NAMES),
    # What the teacher would have done from here, whoever drove.
    "teacher.action": Feature(dtype="float32", shape=(len(ACTIONS),), names=_ACTION_NAMES),
    "episode.seed": Feature(dtype="int64", shape=(1,)),
    "episode.arrived": Feature(dtype="bool", shape=(1,)),
    "episode.touched": Feature(dtype="bool", shape=(1,)),
}


def save_drives(folder: Path, drives: Drives) -> None:
    """Write drives; the folder gets its name when it is complete."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with LeRobotWriter(folder, fps=RATE_HZ, features=FEATURES, robot_type=AMR.kind) as writer:
        for i, length in enumerate(drives.lengths.tolist()):
            columns = {
                "observation.state": drives.observations[i, :length],
                "action": drives.applied[i, :length],
                "teacher.action": drives.labels[i, :length],
                "episode.seed": np.full(length, drives.seeds[i]),
                "episode.arrived": np.full(length, drives.arrived[i]),
                "episode.touched": np.full(length, drives.touched[i]),
            }
            writer.add_episode(columns, task=TASK)


def load_drives(folder: Path) -> Drives | None:
    """Read drives, None where there are none.

    Raises:
      DatasetError: the dataset is torn or something else.
    """
    if not folder.exists():
        return None
    found = LeRobotDataset(folder)
    lengths = np.array([e.length for e in found.episodes], dtype=np.int64)
    first = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    row = np.repeat(np.arange(len(lengths)), lengths)
    step = np.arange(len(row)) - first[row]

    def padded(key: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        column = found.column(key)
        out = np.zeros((len(lengths), int(lengths.max()), column.shape[1]), np.float32)
        out[row, step] = column
        return out

    return Drives(
        seeds=found.column("episode.seed")[first, 0].astype(np.int64),
        observations=padded("observation.state"),
        labels=padded("teacher.action"),
        applied=padded("action"),
        lengths=lengths,
        arrived=found.column("episode.arrived")[first, 0].astype(bool),
        touched=found.column("episode.touched")[first, 0].astype(bool),
    )
