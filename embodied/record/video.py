"""Frames to files: H.264 video that browsers play, and PNG pictures without any library."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embodied.errors import LogError, require

Image = NDArray[np.uint8]


def write_video(path: Path | str, frames: Iterable[Image], fps: float = 20.0, quality: int = 24) -> int:
    """Write frames as H.264 in an MP4 file, pixel format yuv420p, playable while it loads.

    Args:
      path: target, ``.mp4``; it appears only when the video is whole.
      frames: (height, width, 3) images of one size; odd sizes get one repeated row or column.
      fps: frames per second.
      quality: x264's constant rate factor, 0 (large) to 51 (poor).

    Returns:
      Number of frames written.

    Raises:
      MissingExtraError: imageio with ffmpeg is not installed.
      LogError: there is no frame, sizes differ or the suffix is not ``.mp4``.
    """
    path = Path(path)
    if path.suffix != ".mp4":
        raise LogError(f"A video is written as .mp4, got {path.name!r}. Give a path that ends in .mp4.")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.stem}.part.mp4")
    writer, count, size = None, 0, None
    try:
        for frame in frames:
            if size is None:
                size = frame.shape
                writer = h264_writer(part, fps, quality)
            if frame.shape != size:
                raise LogError(f"Frame {count} is {frame.shape}, the first one was {size}. Give frames of one size.")
            assert writer is not None
            writer.append_data(_even(frame))
            count += 1
    except BaseException:
        if writer is not None:
            writer.close()
        part.unlink(missing_ok=True)
        raise
    if writer is None:
        raise LogError(f"No frame came for {path.name}; a video needs at least one.")
    writer.close()
    os.replace(part, path)
    return count


def h264_writer(path: Path, fps: float, quality: int = 24, keyframe_every: int | None = None) -> Any:  # noqa: ANN401
    """Open a video for writing: ``append_data`` takes (height, width, 3) frames of even size, ``close`` ends the file.

    Args:
      path: target, ``.mp4``.
      fps: frames per second.
      quality: x264's constant rate factor.
      keyframe_every: frames from one key frame to the next; x264 chooses by default.

    Raises:
      MissingExtraError: imageio with ffmpeg is not installed.
    """
    require("imageio_ffmpeg", "report")
    iio: Any = require("imageio.v2", "report")
    options = ["-crf", str(quality), "-preset", "veryfast", "-movflags", "+faststart", "-threads", "1"]
    if keyframe_every is not None:
        options += ["-g", str(keyframe_every)]
    return iio.get_writer(
        path, format="FFMPEG", mode="I", fps=fps, codec="libx264", pixelformat="yuv420p",
        macro_block_size=2, quality=None, ffmpeg_log_level="error", output_params=options,
    )  # fmt: skip


def png_bytes(image: Image) -> bytes:
    """Encode an (height, width, 3) image as PNG (ISO/IEC 15948: 8-bit truecolour, no filter)."""
    image = np.ascontiguousarray(image, dtype=np.uint8)
    if image.ndim != 3 or image.shape[2] != 3 or 0 in image.shape:
        raise LogError(f"A picture must have the shape (height, width, 3), got {image.shape}.")
    height, width, _ = image.shape
    rows = np.zeros((height, 1 + 3 * width), dtype=np.uint8)
    rows[:, 1:] = image.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 6)), (b"IEND", b""))
    body = b"".join(struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks)
    return b"\x89PNG\r\n\x1a\n" + body


def write_png(path: Path | str, image: Image) -> Path:
    """Write a picture and return its path."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_bytes(png_bytes(image))
    os.replace(part, path)
    return path


def _even(frame: Image) -> Image:
    rows, columns = frame.shape[0] % 2, frame.shape[1] % 2
    return np.pad(frame, ((0, rows), (0, columns), (0, 0)), mode="edge") if rows or columns else frame
