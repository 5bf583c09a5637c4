"""Read a dataset of the LeRobotDataset v3.0 layout, ours or another's, and say plainly what is wrong with one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embodied.errors import require
from embodied.record.lerobot import finish, layout, tables
from embodied.record.lerobot.layout import INDEX_FEATURES, DatasetError, Feature
from embodied.record.lerobot.pictures import video_frames


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeRow:
    """Where an episode lies.

    Attributes:
      index: of the episode.
      length: frames.
      start: index of its first frame in the dataset.
      tasks: what was to be done, in words.
      record: every column of the episode table but the statistics.
    """

    index: int
    length: int
    start: int
    tasks: tuple[str, ...]
    record: dict[str, Any]


class LeRobotDataset:
    """A dataset on disk; nothing is kept in memory but its tables of contents.

    Args:
      folder: with ``meta/info.json``.

    Raises:
      DatasetError: missing, unfinished, torn, or of another version; the message names which.
      MissingExtraError: pyarrow is not installed.
    """

    def __init__(self, folder: Path | str) -> None:
        require("pyarrow", "train")
        self._pq = require("pyarrow.parquet", "train")
        self.folder = Path(folder)
        self.info = self._read_info()
        self.fps = int(self.info["fps"])
        self.num_frames = int(self.info["total_frames"])
        self.num_episodes = int(self.info["total_episodes"])
        self.robot_type = str(self.info.get("robot_type") or "")
        self.features = {key: _feature(f) for key, f in self.info["features"].items()}
        self.data_files = sorted((self.folder / "data").glob("*/*.parquet"))
        if not self.data_files:
            raise DatasetError(f"The dataset {self.folder.name} is torn: it has no data file.")

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """Texts in the order of their index."""
        table = self._table(self.folder / layout.TASKS_PATH).to_pydict()
        name = "task" if "task" in table else "__index_level_0__"
        if name not in table or "task_index" not in table:
            raise DatasetError(f"{layout.TASKS_PATH} of {self.folder.name} has the columns {list(table)}.")
        return tuple(t for _, t in sorted(zip(table["task_index"], table[name], strict=True)))

    @cached_property
    def episodes(self) -> tuple[EpisodeRow, ...]:
        """The table of episodes."""
        rows: list[dict[str, Any]] = []
        for path in sorted((self.folder / "meta/episodes").glob("*/*.parquet")):
            table = self._table(path)
            rows += table.select([c for c in table.column_names if not c.startswith("stats/")]).to_pylist()
        try:
            found = [
                EpisodeRow(
                    index=r["episode_index"],
                    length=r["length"],
                    start=r["dataset_from_index"],
                    tasks=tuple(r["tasks"]),
                    record=r,
                )
                for r in rows
            ]
        except KeyError as error:
            raise DatasetError(f"The episode table of {self.folder.name} lacks the column {error}.") from error
        return tuple(sorted(found, key=lambda e: e.index))

    @cached_property
    def stats(self) -> dict[str, dict[str, Any]]:
        """Feature to statistics, as in ``meta/stats.json``."""
        return self._json(layout.STATS_PATH)

    @cached_property
    def sha256(self) -> str:
        """One sum over all files: the identity of the dataset. Taken from the recorded sums where there are some."""
        return finish.combined_hash(finish.recorded_hashes(self.folder) or finish.file_hashes(self.folder))

    def column(self, key: str) -> NDArray[Any]:
        """Return (num_frames, *shape) of a feature; pictures of the table are decoded, videos too.

        Raises:
          DatasetError: no such feature, or its files are torn.
        """
        feature = self._feature_of(key)
        if feature.dtype == "video":
            return np.concatenate([self._video(e, key) for e in self.episodes])
        pa = require("pyarrow", "train")
        parts = [c for f in self.data_files for c in self._table(f, [key])[key].chunks]
        return tables.column_values(key, feature, pa.chunked_array(parts))

    def episode(self, index: int, keys: tuple[str, ...] | None = None) -> dict[str, NDArray[Any]]:
        """Return feature to (length, *shape) of one episode, the index columns included; all features by default.

        Raises:
          DatasetError: no such episode or feature, or its files are torn.
        """
        if not 0 <= index < len(self.episodes):
            raise DatasetError(f"{self.folder.name} has the episodes 0 to {len(self.episodes) - 1}, not {index}.")
        row = self.episodes[index]
        wanted = {key: self._feature_of(key) for key in keys or self.features}
        stored = [key for key, f in wanted.items() if f.dtype != "video"]
        chunk, file = row.record["data/chunk_index"], row.record["data/file_index"]
        path = self.folder / str(self.info["data_path"]).format(chunk_index=chunk, file_index=file)
        table = self._table(
            path, list(dict.fromkeys([*stored, "episode_index"])), filters=[("episode_index", "=", index)]
        )
        if table.num_rows != row.length:
            raise DatasetError(f"Episode {index} of {self.folder.name} has {table.num_rows} rows, not {row.length}.")
        found = {key: tables.column_values(key, wanted[key], table[key]) for key in stored}
        return found | {key: self._video(row, key) for key, f in wanted.items() if f.dtype == "video"}

    def verify(self) -> None:
        """Read everything and count every frame.

        Raises:
          DatasetError: a sum, a count, an index or a time stamp is wrong; the message names the first such place.
        """
        from embodied.record.lerobot.verify import verify_dataset

        verify_dataset(self)

    def video_path(self, row: EpisodeRow, key: str) -> Path:
        """Return the video file that holds an episode."""
        at = f"videos/{key}"
        try:
            name = str(self.info["video_path"]).format(
                video_key=key, chunk_index=row.record[f"{at}/chunk_index"], file_index=row.record[f"{at}/file_index"]
            )
        except KeyError as error:
            raise DatasetError(f"The episode table of {self.folder.name} lacks the column {error}.") from error
        return self.folder / name

    def _video(self, row: EpisodeRow, key: str) -> NDArray[np.uint8]:
        path = self.video_path(row, key)
        if not path.exists():
            raise DatasetError(f"The dataset {self.folder.name} is torn: {path.relative_to(self.folder)} is missing.")
        first = round(row.record[f"videos/{key}/from_timestamp"] * self.fps)
        frames: list[NDArray[np.uint8]] = []
        for number, frame in enumerate(_closing(video_frames(path))):
            if number >= first + row.length:
                break
            if number >= first:
                frames.append(frame)
        if len(frames) != row.length:
            name = path.relative_to(self.folder)
            raise DatasetError(f"{name} holds {len(frames)} of the {row.length} frames of episode {row.index}.")
        return np.stack(frames)

    def _feature_of(self, key: str) -> Feature:
        if key not in self.features:
            raise DatasetError(f"{self.folder.name} has no feature {key!r}, only {sorted(self.features)}.")
        return self.features[key]

    def _table(self, path: Path, columns: list[str] | None = None, filters: Any = None) -> Any:  # noqa: ANN401
        pa = require("pyarrow", "train")
        name = path.relative_to(self.folder)
        try:
            return self._pq.read_table(path, columns=columns, filters=filters)
        except FileNotFoundError as error:
            raise DatasetError(f"The dataset {self.folder.name} is torn: {name} is missing.") from error
        except (pa.ArrowException, OSError) as error:
            reason = str(error).split("\n", 1)[0]
            raise DatasetError(f"The dataset {self.folder.name} is torn: {name} cannot be read ({reason}).") from error

    def _json(self, name: str) -> dict[str, Any]:
        path = self.folder / name
        try:
            found = json.loads(path.read_text())
        except FileNotFoundError as error:
            raise DatasetError(f"The dataset {self.folder.name} is torn: {name} is missing.") from error
        except (OSError, ValueError) as error:
            raise DatasetError(f"The dataset {self.folder.name} is torn: {name} is no JSON ({error}).") from error
        if not isinstance(found, dict):
            raise DatasetError(f"{name} of {self.folder.name} holds a {type(found).__name__}, not an object.")
        return found

    def _read_info(self) -> dict[str, Any]:
        if not (self.folder / layout.INFO_PATH).exists():
            part = self.folder.with_name(self.folder.name + ".part")
            hint = f" Its writing was cut off: {part.name} is unfinished. Write it again." if part.exists() else ""
            raise DatasetError(f"There is no dataset in {self.folder}: {layout.INFO_PATH} is missing.{hint}")
        info = self._json(layout.INFO_PATH)
        version = info.get("codebase_version")
        if version != layout.CODEBASE_VERSION:
            raise DatasetError(
                f"The dataset {self.folder.name} has version {version!r}, this reads {layout.CODEBASE_VERSION!r}. "
                "Convert it with LeRobot's own converter."
            )
        needed = {"fps", "total_frames", "total_episodes", "data_path", "features"} - set(info)
        if needed or not set(INDEX_FEATURES) <= set(info["features"]):
            raise DatasetError(f"{layout.INFO_PATH} of {self.folder.name} lacks {sorted(needed) or 'index columns'}.")
        return info


def _feature(record: dict[str, Any]) -> Feature:
    names = record.get("names")
    flat = tuple(str(n) for n in names) if isinstance(names, list) else None
    return Feature(dtype=str(record["dtype"]), shape=tuple(int(s) for s in record["shape"]), names=flat)


def _closing(frames: Iterator[NDArray[np.uint8]]) -> Iterator[NDArray[np.uint8]]:
    try:
        yield from frames
    finally:
        frames.close()  # pyright: ignore[reportAttributeAccessIssue] -- a generator: ends its ffmpeg process
