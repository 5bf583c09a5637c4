"""How numbers and events are laid out in an episode's MCAP file.

States and actions are Protocol Buffers messages of one kind, encoded here by hand because it takes two fields:
``message Vector { double time_s = 1; repeated double values = 2; }``. Viewers and the mcap tools read them by the
schema in the file; floats keep every bit. Facts and events are JSON with sorted keys.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embodied.errors import LogError

Array = NDArray[np.float64]

FORMAT = "embodied-log/1"
META_RECORD = "embodied"
VECTOR_SCHEMA = "embodied.Vector"
FACTS_SCHEMA = "embodied.FactChange"
EVENT_SCHEMA = "embodied.Event"
STATE_TOPIC, FACTS_TOPIC, EVENT_TOPIC, ACTION_TOPIC = "/state/qpos", "/facts", "/events", "/actions/"

_FACT = {"type": "array", "items": {"type": "string"}, "description": "predicate, then its arguments"}
FACTS_JSON_SCHEMA = {
    "type": "object",
    "properties": {
        "time_s": {"type": "number"},
        "added": {"type": "array", "items": _FACT},
        "removed": {"type": "array", "items": _FACT},
    },
}
EVENT_JSON_SCHEMA = {
    "type": "object",
    "properties": {"time_s": {"type": "number"}, "kind": {"type": "string"}, "payload": {"type": "object"}},
}


def stamp_ns(time_s: float) -> int:
    """Return the MCAP stamp of a simulated time.

    Raises:
      LogError: the time is negative or not finite.
    """
    if not (math.isfinite(time_s) and time_s >= 0.0):
        raise LogError(f"A record has the time {time_s!r}. Expected simulated seconds since reset, finite and >= 0.")
    return round(time_s * 1e9)


def encode_vector(time_s: float, values: Array) -> bytes:
    """Encode one Vector message from a time and (n,) numbers."""
    body = np.ascontiguousarray(values, dtype="<f8").tobytes()
    packed = b"\x12" + _varint(len(body)) + body if body else b""
    return b"\x09" + struct.pack("<d", time_s) + packed


def decode_vector(data: bytes) -> tuple[float, Array]:
    """Return time_s and (n,) values of a Vector message.

    Raises:
      LogError: the bytes are no such message.
    """
    if len(data) < 9 or data[0] != 0x09:
        raise LogError(f"A state record of {len(data)} bytes is no {VECTOR_SCHEMA} message; the file is damaged.")
    (time_s,) = struct.unpack_from("<d", data, 1)
    if len(data) == 9:
        return time_s, np.zeros(0)
    length, start = 0, 10
    for shift in range(0, 35, 7):
        byte = data[start] if start < len(data) else 0
        start += 1
        length |= (byte & 0x7F) << shift
        if not byte & 0x80:
            break
    if data[9] != 0x12 or start + length != len(data) or length % 8:
        raise LogError(f"A state record of {len(data)} bytes is no {VECTOR_SCHEMA} message; the file is damaged.")
    return time_s, np.frombuffer(data, dtype="<f8", offset=start).astype(np.float64)


def vector_descriptor() -> bytes:
    """Return the serialised FileDescriptorSet of ``embodied.Vector`` (descriptor.proto's field numbers)."""

    def text(number: int, value: str | bytes) -> bytes:
        raw = value.encode() if isinstance(value, str) else value
        return _varint(number << 3 | 2) + _varint(len(raw)) + raw

    def number(field: int, value: int) -> bytes:
        return _varint(field << 3) + _varint(value)

    optional, repeated, double = 1, 3, 1
    time_s = text(1, "time_s") + number(3, 1) + number(4, optional) + number(5, double)
    values = text(1, "values") + number(3, 2) + number(4, repeated) + number(5, double)
    message = text(1, "Vector") + text(2, time_s) + text(2, values)
    file = text(1, "embodied.proto") + text(2, "embodied") + text(4, message) + text(12, "proto3")
    return text(1, file)


def encode_json(value: Mapping[str, Any]) -> bytes:
    """Encode as JSON with sorted keys; equal values give equal bytes."""
    return json.dumps(plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def plain(value: Any) -> Any:  # noqa: ANN401
    """Return ``value`` made of what JSON knows: arrays and tuples become lists, NaN and infinities words.

    Raises:
      LogError: something in it is no data.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float | np.floating):
        number = float(value)
        return number if math.isfinite(number) else str(number)
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((plain(v) for v in value), key=repr)
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(v) for v in value]
    raise LogError(
        f"An event holds a {type(value).__name__}, which JSON does not know: {value!r}. "
        "Put numbers, strings, booleans, lists and mappings into payloads."
    )


def digest(text: str) -> str:
    """Return the SHA-256 of a text; MCAP checks the sums of its chunks, but not of its metadata."""
    return hashlib.sha256(text.encode()).hexdigest()


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
