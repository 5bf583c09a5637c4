"""Pictures of a dataset: PNG inside the table, or frames of an H.264 video."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embodied.errors import require
from embodied.record.lerobot.layout import DatasetError

Image = NDArray[np.uint8]
_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def decode_png(data: bytes) -> Image:
    """Return the (height, width, 3) picture in PNG bytes.

    Files as this project writes them (8-bit rgb, rows unfiltered) need NumPy only, others OpenCV.

    Raises:
      DatasetError: the bytes are no whole PNG file.
      MissingExtraError: OpenCV is needed and not installed.
    """
    if data[:8] != _SIGNATURE:
        raise DatasetError(f"A picture of {len(data)} bytes is no PNG: it begins with {data[:8]!r}.")
    try:
        plain = _decode_plain(data)
    except (struct.error, zlib.error, ValueError) as error:
        raise DatasetError(f"A picture of {len(data)} bytes is torn ({error}).") from error
    if plain is not None:
        return plain
    cv2 = require("cv2", "vision")
    image = cv2.imdecode(np.frombuffer(data, dtype=np.uint8), cv2.IMREAD_COLOR)
    if image is None:
        raise DatasetError(f"A picture of {len(data)} bytes cannot be decoded; the dataset is damaged.")
    return np.ascontiguousarray(image[:, :, ::-1])


def _decode_plain(data: bytes) -> Image | None:
    """Decode 8-bit truecolour without filters (ISO/IEC 15948, chapters 5 and 9); None for any other kind."""
    width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", data[16:29])
    if (depth, colour, interlace) != (8, 2, 0):
        return None
    at, packed = 8, b""
    while True:
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        if struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] != zlib.crc32(kind + body):
            raise ValueError("a check sum is wrong")
        if kind == b"IDAT":
            packed += body
        if kind == b"IEND":
            break
        at += 12 + length
    rows = np.frombuffer(zlib.decompress(packed), dtype=np.uint8).reshape(height, 1 + 3 * width)
    return None if rows[:, 0].any() else rows[:, 1:].reshape(height, width, 3).copy()


def video_frames(path: Path) -> Iterator[Image]:
    """Yield the decoded (height, width, 3) frames of a video.

    Raises:
      DatasetError: the file cannot be decoded.
    """
    require("imageio_ffmpeg", "report")
    iio: Any = require("imageio.v2", "report")
    try:
        reader = iio.get_reader(path, format="FFMPEG", mode="I")
    except (OSError, RuntimeError, ValueError, IndexError) as error:
        raise DatasetError(f"The video {path.name} cannot be opened: {error}".split("\n", 1)[0]) from error
    try:
        yield from (np.asarray(frame) for frame in reader.iter_data())
    except (OSError, RuntimeError) as error:
        raise DatasetError(f"The video {path.name} is torn: {error}".split("\n", 1)[0]) from error
    finally:
        reader.close()
