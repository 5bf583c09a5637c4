"""Frames on a byte stream: found again after garbage, checked by sums, bound to a session.

A frame is a header of 40 bytes and a payload, little-endian:

======  ====  ==========================================================================
offset  type  field
======  ====  ==========================================================================
0       4s    magic ``EMBL``
4       u8    protocol version
5       u8    kind, one of :class:`Kind`
6       u16   zero
8       u64   session, chosen by the server; 0 before there is one
16      u64   sequence number of the sender, growing
24      u32   length of the payload in bytes
28      u32   CRC-32 of the payload
32      u32   CRC-32 of the 32 bytes before
36      u32   zero
======  ====  ==========================================================================
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from dataclasses import dataclass
from enum import IntEnum

VERSION = 1
MAGIC = b"EMBL"
MAX_PAYLOAD = 1 << 25
_HEAD = struct.Struct("<4sBBHQQIIII")
_SUMMED = 32


class Kind(IntEnum):
    """What a frame carries."""

    HELLO = 1  # client: who I am
    WELCOME = 2  # server: specs and session
    REFUSE = 3  # server: why not
    COMMAND = 4  # client: action values
    STOP = 5  # client: go to the safe state
    STATE = 6  # server: the newest sample
    BYE = 7  # either: the end, on purpose


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame that arrived whole."""

    kind: Kind
    session: int
    seq: int
    payload: bytes


def encode(kind: Kind, session: int, seq: int, payload: bytes = b"") -> bytes:
    """Return the bytes of a frame."""
    fields = (MAGIC, VERSION, kind, 0, session, seq, len(payload), zlib.crc32(payload))
    head = _HEAD.pack(*fields, 0, 0)[:_SUMMED]
    return _HEAD.pack(*fields, zlib.crc32(head), 0) + payload


class Decoder:
    """Cuts a stream into frames.

    Bytes that are no frame are skipped up to the next that may begin one; ``faults`` counts them by kind: ``garbage``
    (runs of bytes that are no frame), ``header`` and ``payload`` (a sum that does not hold), ``version``, ``kind``,
    ``length``.

    Attributes:
      faults: count by kind.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self.faults: Counter[str] = Counter()

    def feed(self, data: bytes) -> list[Frame]:
        """Add bytes; return the frames that are whole now."""
        self._buffer += data
        frames: list[Frame] = []
        while True:
            self._find()
            if len(self._buffer) < _HEAD.size:
                return frames
            _, version, kind, _, session, seq, length, payload_sum, head_sum, _ = _HEAD.unpack_from(self._buffer)
            problem = self._problem(version, kind, length, head_sum)
            if problem:
                self.faults[problem] += 1
                del self._buffer[:1]
                continue
            end = _HEAD.size + length
            if len(self._buffer) < end:
                return frames
            payload = bytes(self._buffer[_HEAD.size : end])
            if zlib.crc32(payload) != payload_sum:
                # The header holds, so its length does: the next frame begins behind it.
                self.faults["payload"] += 1
            else:
                frames.append(Frame(Kind(kind), session, seq, payload))
            del self._buffer[:end]

    def _find(self) -> None:
        if self._buffer.startswith(MAGIC[: len(self._buffer)]):
            return
        begin = self._buffer.find(MAGIC)
        # Without a whole magic, the last bytes may be the first of one.
        if begin < 0:
            tails = (n for n in range(len(MAGIC) - 1, 0, -1) if self._buffer.endswith(MAGIC[:n]))
            begin = len(self._buffer) - next(tails, 0)
        self.faults["garbage"] += 1
        del self._buffer[:begin]

    def _problem(self, version: int, kind: int, length: int, head_sum: int) -> str:
        if zlib.crc32(bytes(self._buffer[:_SUMMED])) != head_sum:
            return "header"
        if version != VERSION:
            return "version"
        if kind not in _KINDS:
            return "kind"
        return "length" if length > MAX_PAYLOAD else ""


_KINDS = frozenset(int(k) for k in Kind)
