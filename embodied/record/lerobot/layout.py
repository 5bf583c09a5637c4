"""Names and records of the LeRobotDataset v3.0 layout.

Facts: ``lerobot/datasets/{utils,feature_utils,dataset_metadata}.py`` of huggingface/lerobot (Apache-2.0), constants
``CODEBASE_VERSION = "v3.0"`` and the default paths.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embodied.errors import EmbodiedError

CODEBASE_VERSION = "v3.0"
INFO_PATH = "meta/info.json"
STATS_PATH = "meta/stats.json"
TASKS_PATH = "meta/tasks.parquet"
EPISODES_PATH = "meta/episodes/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
DATA_PATH = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
VIDEO_PATH = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
HASHES_PATH = "meta/sha256.json"
"""Ours: SHA-256 of every other file. Readers of the layout do not look at it."""

CHUNKS_SIZE = 1000
DATA_FILES_SIZE_MB = 100
VIDEO_FILES_SIZE_MB = 500
NUMERIC = ("float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool")
VISUAL = ("image", "video")


class DatasetError(EmbodiedError):
    """A dataset is missing, torn, of another version, or was given what does not fit it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """What one column holds.

    Attributes:
      dtype: a numeric type, ``string``, ``image`` (PNG inside the table, exact) or ``video`` (H.264, small).
      shape: of one frame: ``(n,)``, or (height, width, 3) for images and videos.
      names: of the last axis; for numbers with their unit, such as ``forward_mps``.
    """

    dtype: str
    shape: tuple[int, ...]
    names: tuple[str, ...] | None = None

    @property
    def is_visual(self) -> bool:
        """Whether a frame is a picture."""
        return self.dtype in VISUAL

    def as_json(self) -> dict[str, Any]:
        """Return the record of ``meta/info.json``."""
        names = ("height", "width", "channels") if self.is_visual else self.names
        return {"dtype": self.dtype, "shape": list(self.shape), "names": None if names is None else list(names)}


INDEX_FEATURES: Mapping[str, Feature] = {
    "timestamp": Feature(dtype="float32", shape=(1,)),
    "frame_index": Feature(dtype="int64", shape=(1,)),
    "episode_index": Feature(dtype="int64", shape=(1,)),
    "index": Feature(dtype="int64", shape=(1,)),
    "task_index": Feature(dtype="int64", shape=(1,)),
}
"""Columns that the writer fills by itself."""


def check_features(features: Mapping[str, Feature]) -> None:
    """Refuse features that the layout cannot hold.

    Raises:
      DatasetError: names which and why.
    """
    if not features:
        raise DatasetError("A dataset needs at least one feature, for instance 'observation.state' or 'action'.")
    for key, feature in features.items():
        if key in INDEX_FEATURES or key == "task":
            raise DatasetError(f"Feature {key!r} is filled by the writer; give yours another name.")
        if not key or "/" in key or Path(key).name != key or key.startswith("."):
            raise DatasetError(f"Feature name {key!r} must be a plain word without slashes; use dots to group.")
        if feature.dtype not in (*NUMERIC, *VISUAL, "string"):
            raise DatasetError(f"Feature {key!r} has dtype {feature.dtype!r}; use {NUMERIC}, 'string' or {VISUAL}.")
        if not 1 <= len(feature.shape) <= 5 or any(s < 1 for s in feature.shape):
            raise DatasetError(f"Feature {key!r} has shape {feature.shape}; use 1 to 5 axes, each at least 1.")
        if feature.dtype == "string" and feature.shape != (1,):
            raise DatasetError(f"Feature {key!r}: a string has the shape (1,), got {feature.shape}.")
        if feature.is_visual and (len(feature.shape) != 3 or feature.shape[2] != 3):
            raise DatasetError(f"Feature {key!r}: pictures have the shape (height, width, 3), got {feature.shape}.")
        if feature.dtype == "video" and (feature.shape[0] % 2 or feature.shape[1] % 2):
            raise DatasetError(f"Feature {key!r}: a video needs even sizes, got {feature.shape}; use dtype 'image'.")
        if feature.names is not None and not feature.is_visual and len(feature.names) != feature.shape[-1]:
            raise DatasetError(
                f"Feature {key!r} has {len(feature.names)} names for a last axis of {feature.shape[-1]}."
            )
