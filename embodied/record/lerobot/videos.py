"""The video files of one camera: many episodes in a file, found by their time stamps."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from embodied.record.lerobot import layout
from embodied.record.video import h264_writer

_QUALITY = 18
_KEYFRAME_EVERY = 2  # training reads single frames: each is at most one frame behind a key frame


class VideoShards:
    """Appends episodes to ``videos/<key>/…``.

    Args:
      folder: of the dataset.
      key: feature.
      fps: frames per second.
      frames_per_file: an episode begins a new file when the present one holds this many.
    """

    def __init__(self, folder: Path, key: str, fps: int, frames_per_file: int) -> None:
        self._folder, self._key, self._fps, self._limit = folder, key, fps, frames_per_file
        self._writer: Any = None
        self._file_index, self._num_frames = -1, 0

    def append(self, frames: Iterable[Any]) -> dict[str, float | int]:
        """Write the (height, width, 3) frames of an episode; return its columns of the episode table."""
        if self._writer is None or self._num_frames >= self._limit:
            self._begin()
        start, writer = self._num_frames, self._writer
        assert writer is not None
        for frame in frames:
            writer.append_data(frame)
            self._num_frames += 1
        chunk, file = divmod(self._file_index, layout.CHUNKS_SIZE)
        at = f"videos/{self._key}"
        return {
            f"{at}/chunk_index": chunk,
            f"{at}/file_index": file,
            f"{at}/from_timestamp": start / self._fps,
            f"{at}/to_timestamp": self._num_frames / self._fps,
        }

    def close(self) -> None:
        """End the present file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _begin(self) -> None:
        self.close()
        self._file_index += 1
        self._num_frames = 0
        chunk, file = divmod(self._file_index, layout.CHUNKS_SIZE)
        name = layout.VIDEO_PATH.format(video_key=self._key, chunk_index=chunk, file_index=file)
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        self._writer = h264_writer(path, self._fps, _QUALITY, _KEYFRAME_EVERY)
