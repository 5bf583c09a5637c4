"""Demonstrations as a LeRobot dataset, one for each stage, so that an interrupted run need not drive again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from embodied.record.lerobot.layout import Feature
from embodied.record.lerobot.reader import LeRobotDataset
from embodied.record.lerobot.writer import LeRobotWriter
from embodied.robots.mobile_manipulator.spec import ACTION, MOBILE_MANIPULATOR, OBSERVATION
from embodied.train.grasp.demos import Demos
from embodied.train.grasp.task import CAMERA, DRIVEN, IMAGE_PX, RATE_HZ
from embodied.train.grasp.teacher import HORIZON

TASK = "pick up the thing on the table"
PROPRIO_NAMES = (*OBSERVATION.joint_names[:8], "gripper_width_m", "gripper_force_n")
ACTION_NAMES = tuple(ACTION.names[i] for i in DRIVEN.tolist())
_IMAGE = f"observation.images.{CAMERA}"
FEATURES = {
    _IMAGE: Feature(dtype="image", shape=(IMAGE_PX, IMAGE_PX, 3)),
    "observation.state": Feature(dtype="float32", shape=(len(PROPRIO_NAMES),), names=PROPRIO_NAMES),
    "action": Feature(dtype="float32", shape=(len(ACTION_NAMES),), names=ACTION_NAMES),
    # What the teacher would have done from here, action by action, whoever drove.
    "teacher.chunk": Feature(
        dtype="float32",
        shape=(HORIZON * len(ACTION_NAMES),),
        names=tuple(f"{name}.{k}" for k in range(HORIZON) for name in ACTION_NAMES),
    ),
    "privileged.thing_tool": Feature(
        dtype="float32", shape=(5,), names=("x_m", "y_m", "z_m", "cos_2turn", "sin_2turn")
    ),
    "episode.seed": Feature(dtype="int64", shape=(1,)),
    "episode.success": Feature(dtype="bool", shape=(1,)),
}


def save_demos(folder: Path, demos: Demos) -> None:
    """Write demonstrations; the folder gets its name when it is complete."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    starts = np.flatnonzero(np.diff(demos.episodes, prepend=demos.episodes[0] - 1))
    with LeRobotWriter(folder, fps=RATE_HZ, features=FEATURES, robot_type=MOBILE_MANIPULATOR.kind) as writer:
        for begin, end in zip(starts, [*starts[1:], demos.size], strict=True):
            part = slice(int(begin), int(end))
            writer.add_episode(
                {
                    _IMAGE: demos.images[part],
                    "observation.state": demos.proprio[part],
                    "action": demos.applied[part],
                    "teacher.chunk": demos.chunks[part].reshape(end - begin, -1),
                    "privileged.thing_tool": demos.things[part],
                    "episode.seed": demos.episodes[part],
                    "episode.success": demos.successes[part],
                },
                task=TASK,
            )


def load_demos(folder: Path) -> Demos | None:
    """Read demonstrations, None where there are none.

    Raises:
      DatasetError: the dataset is torn or something else.
    """
    if not folder.exists():
        return None
    found = LeRobotDataset(folder)
    return Demos(
        images=found.column(_IMAGE),
        proprio=found.column("observation.state"),
        chunks=found.column("teacher.chunk").reshape(found.num_frames, HORIZON, len(ACTION_NAMES)),
        applied=found.column("action"),
        things=found.column("privileged.thing_tool"),
        episodes=found.column("episode.seed")[:, 0],
        successes=found.column("episode.success")[:, 0],
    )


def digest(folders: Sequence[Path]) -> str:
    """Return one SHA-256 over the sums of datasets, in the order in which they were recorded."""
    return hashlib.sha256("".join(LeRobotDataset(folder).sha256 for folder in folders).encode()).hexdigest()
