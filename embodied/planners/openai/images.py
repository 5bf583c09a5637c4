"""Camera frames for a request: PNG as a data URL, the present ones only, each encoded once."""

from __future__ import annotations

import base64
import hashlib
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embodied.errors import PlannerError

Rgb = NDArray[np.uint8]


def encode_png(image: Rgb) -> bytes:
    """Encode an (H, W, 3) uint8 rgb image as PNG (RFC 2083), the same bytes for the same pixels.

    Raises:
      PlannerError: wrong shape or dtype.
    """
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or 0 in image.shape:
        raise PlannerError(f"A camera image must be (H, W, 3) uint8; got {image.shape} {image.dtype}.")
    height, width = image.shape[:2]
    rows = np.zeros((height, 1 + width * 3), dtype=np.uint8)  # a zero before each row: no filter
    rows[:, 1:] = image.reshape(height, width * 3)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", header),
            _chunk(b"IDAT", zlib.compress(rows.tobytes(), 6)),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


class FrameSender:
    """Turns the present frames into message parts. Past frames are never sent again; a frame is encoded once."""

    def __init__(self) -> None:
        self._encoded: dict[str, tuple[str, str]] = {}

    def parts(self, images: Mapping[str, Rgb]) -> tuple[list[dict[str, Any]], int]:
        """Return message parts for the cameras, sorted by name, and how many frames had to be encoded."""
        parts: list[dict[str, Any]] = []
        fresh = 0
        for name in sorted(images):
            digest = hashlib.sha256(images[name].tobytes()).hexdigest()
            if self._encoded.get(name, ("", ""))[0] != digest:
                url = "data:image/png;base64," + base64.b64encode(encode_png(images[name])).decode()
                self._encoded[name] = (digest, url)
                fresh += 1
            parts.append({"type": "text", "text": f"Camera {name}:"})
            parts.append({"type": "image_url", "image_url": {"url": self._encoded[name][1]}})
        return parts, fresh
