"""The ``meta`` folder of a dataset and the sum over everything in it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from embodied.errors import require
from embodied.record.lerobot import layout, tables
from embodied.record.lerobot.layout import DatasetError, Feature
from embodied.record.lerobot.stats import ColourHistogram, number_stats


def write_meta(
    folder: Path,
    *,
    features: Mapping[str, Feature],
    fps: int,
    robot_type: str,
    tasks: Sequence[str],
    episodes: Sequence[Mapping[str, Any]],
    colours: Mapping[str, ColourHistogram],
) -> None:
    """Write info, tasks, episodes and statistics of a folder whose data files are whole."""
    pa, pq = require("pyarrow", "train"), require("pyarrow.parquet", "train")
    videos = [key for key, f in features.items() if f.dtype == "video"]
    info = {
        "codebase_version": layout.CODEBASE_VERSION,
        "robot_type": robot_type or None,
        "total_episodes": len(episodes),
        "total_frames": sum(e["length"] for e in episodes),
        "total_tasks": len(tasks),
        "chunks_size": layout.CHUNKS_SIZE,
        "data_files_size_in_mb": layout.DATA_FILES_SIZE_MB,
        "video_files_size_in_mb": layout.VIDEO_FILES_SIZE_MB,
        "fps": fps,
        "splits": {"train": f"0:{len(episodes)}"},
        "data_path": layout.DATA_PATH,
        "video_path": layout.VIDEO_PATH if videos else None,
        "features": {key: _feature_record(f, fps) for key, f in features.items()},
    }
    _write_json(folder / layout.INFO_PATH, info)
    pq.write_table(tables.tasks_table(tasks), folder / layout.TASKS_PATH)
    path = folder / layout.EPISODES_PATH.format(chunk_index=0, file_index=0)
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist([dict(e) for e in episodes]), path, compression="snappy")
    _write_json(folder / layout.STATS_PATH, _stats(folder, features, colours))


def write_hashes(folder: Path) -> None:
    """Write the SHA-256 of every file."""
    _write_json(folder / layout.HASHES_PATH, file_hashes(folder))


def file_hashes(folder: Path) -> dict[str, str]:
    """Return relative path to SHA-256 of every file but the list itself, sorted."""
    found = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = path.relative_to(folder).as_posix()
        if name != layout.HASHES_PATH:
            with path.open("rb") as stream:
                found[name] = hashlib.file_digest(stream, "sha256").hexdigest()
    return found


def combined_hash(hashes: Mapping[str, str]) -> str:
    """Return one SHA-256 for a whole dataset from those of its files."""
    text = "".join(f"{digest}  {name}\n" for name, digest in sorted(hashes.items()))
    return hashlib.sha256(text.encode()).hexdigest()


def recorded_hashes(folder: Path) -> dict[str, str]:
    """Return the recorded sums; empty for datasets written by others.

    Raises:
      DatasetError: the list is no JSON object.
    """
    path = folder / layout.HASHES_PATH
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text())
    except ValueError as error:
        raise DatasetError(f"{layout.HASHES_PATH} of {folder.name} is torn: {error}.") from error
    if not isinstance(found, dict):
        raise DatasetError(f"{layout.HASHES_PATH} of {folder.name} holds a {type(found).__name__}, not an object.")
    return found


def _stats(folder: Path, features: Mapping[str, Feature], colours: Mapping[str, ColourHistogram]) -> dict[str, Any]:
    pq = require("pyarrow.parquet", "train")
    files = sorted((folder / "data").glob("*/*.parquet"))
    stats: dict[str, Any] = {key: seen.stats() for key, seen in colours.items()}
    pa = require("pyarrow", "train")
    for key, feature in features.items():
        if feature.is_visual or feature.dtype == "string":
            continue
        column = pa.chunked_array([c for f in files for c in pq.read_table(f, columns=[key])[key].chunks])
        stats[key] = number_stats(tables.column_values(key, feature, column))
    return stats


def _feature_record(feature: Feature, fps: int) -> dict[str, Any]:
    record = feature.as_json()
    if feature.dtype == "video":
        height, width, depth = feature.shape
        record["info"] = {
            "video.height": height,
            "video.width": width,
            "video.codec": "h264",
            "video.pix_fmt": "yuv420p",
            "video.is_depth_map": False,
            "video.fps": fps,
            "video.channels": depth,
            "has_audio": False,
        }
    return record


def _write_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
