"""Write a dataset episode by episode; it gets its name only after every frame was read back and counted."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embodied.errors import require
from embodied.record.lerobot import finish, layout, tables
from embodied.record.lerobot.layout import INDEX_FEATURES, DatasetError, Feature, check_features
from embodied.record.lerobot.reader import LeRobotDataset
from embodied.record.lerobot.stats import ColourHistogram, Stats, number_stats
from embodied.record.lerobot.videos import VideoShards
from embodied.record.video import png_bytes

Frames = NDArray[Any] | Iterable[Any]


class LeRobotWriter:
    """Writes one new dataset folder. Until :meth:`close` it is called ``<folder>.part``.

    Example::

        features = {"action": Feature(dtype="float32", shape=(2,), names=("forward_mps", "turn_radps"))}
        with LeRobotWriter(folder, fps=50, robot_type="amr", features=features) as writer:
            writer.add_episode({"action": actions}, task="drive to the dock")

    Args:
      folder: where the finished dataset goes; it must not exist: an old dataset is never edited.
      fps: frames per second, a whole number; time stamps are ``frame_index / fps``.
      features: name to :class:`Feature`; customary names are ``observation.state``, ``action`` and
        ``observation.images.<camera>``.
      robot_type: robot kind.
      data_file_mb: a data file that is larger than this is followed by another.
      video_file_frames: frames after which an episode begins a new video file.

    Raises:
      DatasetError: the folder exists, the rate is no whole number or a feature cannot be held.
      MissingExtraError: pyarrow is not installed.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        fps: float,
        features: Mapping[str, Feature],
        robot_type: str = "",
        data_file_mb: float = layout.DATA_FILES_SIZE_MB,
        video_file_frames: int = 20_000,
    ) -> None:
        require("pyarrow", "train")
        self._pq = require("pyarrow.parquet", "train")
        self.folder = Path(folder)
        if self.folder.exists():
            raise DatasetError(f"{self.folder} exists; a dataset is never edited in place. Choose a new folder.")
        if fps != int(fps) or fps < 1:
            raise DatasetError(f"fps must be a whole number of at least 1, got {fps}; resample the episodes.")
        check_features(features)
        self.fps, self.robot_type = int(fps), robot_type
        self.own_features = dict(features)
        self.features: dict[str, Feature] = {**features, **INDEX_FEATURES}
        self._part = self.folder.with_name(self.folder.name + ".part")
        if self._part.exists():
            shutil.rmtree(self._part)  # what a killed run left
        self._part.mkdir(parents=True)
        self._data_file_bytes = int(data_file_mb * 1024**2)
        self._table_writer: Any = None
        self._table_path = Path()
        self._file_index = -1
        self._videos = {
            key: VideoShards(self._part, key, self.fps, video_file_frames)
            for key, feature in features.items()
            if feature.dtype == "video"
        }
        self._colours = {key: ColourHistogram() for key, feature in features.items() if feature.is_visual}
        self._tasks: dict[str, int] = {}
        self._episodes: list[dict[str, Any]] = []
        self._num_frames = 0
        self._is_open = True

    def add_episode(self, columns: Mapping[str, Frames], task: str | Sequence[str]) -> int:
        """Append an episode.

        Args:
          columns: every feature to its (T, …) values; pictures are (T, height, width, 3) uint8 arrays or iterables of
            (height, width, 3).
          task: what was to be done, in words; one text for the episode or one per frame.

        Returns:
          The index of the episode.

        Raises:
          DatasetError: a feature is missing, unknown, of another shape or type, or not finite; or lengths differ.
            Nothing was appended then.
        """
        if not self._is_open:
            raise DatasetError(f"The dataset {self.folder.name} is closed; write a new one.")
        arrays = self._checked(columns)
        length = len(next(iter(arrays.values())))
        texts = [task] * length if isinstance(task, str) else list(task)
        if len(texts) != length or not all(isinstance(t, str) and t for t in texts):
            raise DatasetError(
                f"An episode of {length} frames needs a text per frame or one for all, got {task!r:.80}."
            )
        stats = {key: self._episode_stats(key, arrays[key]) for key in arrays if self.features[key].dtype != "string"}
        index = len(self._episodes)
        frame = np.arange(length, dtype=np.int64)
        rows: dict[str, Any] = {
            **arrays,
            "timestamp": (frame / self.fps).astype(np.float32),
            "frame_index": frame,
            "episode_index": np.full(length, index, dtype=np.int64),
            "index": self._num_frames + frame,
            "task_index": np.array([self._tasks.setdefault(t, len(self._tasks)) for t in texts], dtype=np.int64),
        }
        stats |= {key: number_stats(rows[key][:, None]) for key in INDEX_FEATURES}
        places: dict[str, Any] = self._write_rows(rows)
        for key, shards in self._videos.items():
            places |= shards.append(arrays[key])
        self._episodes.append(
            {
                "episode_index": index,
                "tasks": list(dict.fromkeys(texts)),
                "length": length,
                "dataset_from_index": self._num_frames,
                "dataset_to_index": self._num_frames + length,
                **places,
                **{f"stats/{key}/{name}": value for key, found in stats.items() for name, value in found.items()},
                "meta/episodes/chunk_index": 0,
                "meta/episodes/file_index": 0,
            }
        )
        self._num_frames += length
        return index

    def close(self) -> LeRobotDataset:
        """Write the meta data, read everything back, and give the folder its name.

        Returns:
          The finished dataset.

        Raises:
          DatasetError: no episode was added, or what was read back is not what was written.
        """
        if not self._is_open:
            raise DatasetError(f"The dataset {self.folder.name} is closed already.")
        if not self._episodes:
            raise DatasetError("A dataset needs at least one episode.")
        self._is_open = False
        self._end_table()
        for shards in self._videos.values():
            shards.close()
        finish.write_meta(
            self._part,
            features=self.features,
            fps=self.fps,
            robot_type=self.robot_type,
            tasks=list(self._tasks),
            episodes=self._episodes,
            colours=self._colours,
        )
        finish.write_hashes(self._part)
        LeRobotDataset(self._part).verify()
        os.replace(self._part, self.folder)
        return LeRobotDataset(self.folder)

    def abort(self) -> None:
        """Drop what was written; nothing happens after :meth:`close`."""
        if self._part.exists() and not self.folder.exists():
            self._is_open = False
            for shards in self._videos.values():
                shards.close()
            if self._table_writer is not None:
                self._table_writer.close()
                self._table_writer = None
            shutil.rmtree(self._part, ignore_errors=True)

    def __enter__(self) -> LeRobotWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and self._is_open:
                self.close()
        finally:
            self.abort()

    def _checked(self, columns: Mapping[str, Frames]) -> dict[str, NDArray[Any]]:
        if set(columns) != set(self.own_features):
            missing, unknown = set(self.own_features) - set(columns), set(columns) - set(self.own_features)
            raise DatasetError(f"An episode lacks the features {sorted(missing)} and has unknown {sorted(unknown)}.")
        arrays: dict[str, NDArray[Any]] = {}
        for key, feature in self.own_features.items():
            values = columns[key]
            array = values if isinstance(values, np.ndarray) else np.array(list(values))
            if feature.shape == (1,) and array.ndim == 1:
                array = array[:, None]
            if array.ndim < 1 or array.shape[1:] != feature.shape or not len(array):
                raise DatasetError(
                    f"Feature {key!r} has shape {array.shape}, expected (T, *{feature.shape}) with T > 0."
                )
            arrays[key] = _cast(key, feature, array)
        lengths = {key: len(a) for key, a in arrays.items()}
        if len(set(lengths.values())) != 1:
            raise DatasetError(f"The features of an episode have different numbers of frames: {lengths}.")
        return arrays

    def _episode_stats(self, key: str, array: NDArray[Any]) -> Stats:
        if not self.features[key].is_visual:
            return number_stats(array)
        seen = ColourHistogram()
        seen.add(array)
        self._colours[key].merge(seen)
        return seen.stats()

    def _write_rows(self, rows: Mapping[str, Any]) -> dict[str, int]:
        pa = require("pyarrow", "train")
        if self._table_writer is not None and self._table_path.stat().st_size >= self._data_file_bytes:
            self._end_table()
        schema = tables.data_schema(self.features)
        if self._table_writer is None:
            self._file_index += 1
            chunk, file = divmod(self._file_index, layout.CHUNKS_SIZE)
            self._table_path = self._part / layout.DATA_PATH.format(chunk_index=chunk, file_index=file)
            self._table_path.parent.mkdir(parents=True, exist_ok=True)
            self._table_writer = self._pq.ParquetWriter(self._table_path, schema, compression="snappy")
        arrays = []
        for key in schema.names:
            feature, values = self.features[key], rows[key]
            if feature.dtype == "image":
                values = [png_bytes(image) for image in values]
            elif feature.dtype == "string":
                values = values[:, 0]
            arrays.append(tables.column_array(feature, values))
        self._table_writer.write_table(pa.Table.from_arrays(arrays, schema=schema))  # one row group per episode
        chunk, file = divmod(self._file_index, layout.CHUNKS_SIZE)
        return {"data/chunk_index": chunk, "data/file_index": file}

    def _end_table(self) -> None:
        if self._table_writer is not None:
            self._table_writer.close()
            self._table_writer = None


def _cast(key: str, feature: Feature, array: NDArray[Any]) -> NDArray[Any]:
    if feature.dtype == "string":
        return array.astype(object)
    if feature.is_visual:
        if array.dtype != np.uint8:
            raise DatasetError(f"Feature {key!r}: pictures are uint8, got {array.dtype}.")
        return array
    if not np.can_cast(array.dtype, np.dtype(feature.dtype), "same_kind"):
        raise DatasetError(f"Feature {key!r} is declared {feature.dtype}, got {array.dtype}.")
    if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
        raise DatasetError(f"Feature {key!r} holds NaN or infinities; mend the recorder or leave the episode out.")
    return array.astype(feature.dtype)
