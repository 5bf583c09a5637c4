"""Read an episode log back; say plainly what is wrong with one that cannot be read."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import IO, Any

import numpy as np
from mcap.exceptions import McapError
from mcap.reader import SeekingReader
from numpy.typing import NDArray

from embodied.errors import LogError
from embodied.graph.facts import Fact
from embodied.record import wire
from embodied.record.contract import EpisodeLog, Event, FactChange

Array = NDArray[np.float64]

_MAGIC = b"\x89MCAP0\r\n"  # specification of the format, section "Magic"


def read_log(path: Path | str) -> EpisodeLog:
    """Read a finished log.

    Args:
      path: an ``.mcap`` file written by :class:`embodied.record.log.McapLogWriter`.

    Raises:
      LogError: the file is missing, unfinished, torn, damaged or of another version; the message names which.
    """
    path = Path(path)
    size = _check_ends(path)
    try:
        with path.open("rb") as stream:
            return _read(stream, path)
    except (McapError, struct.error, ValueError, KeyError, IndexError, OverflowError, OSError, EOFError) as error:
        raise LogError(
            f"The log {path.name} ({size} bytes) is damaged: {type(error).__name__}: {error}. Run the episode again."
        ) from error
    except Exception as error:
        # The decompressors raise types of their own, which are not part of mcap's interface.
        if type(error).__module__.split(".")[0] not in ("zstandard", "lz4", "zstd", "backports"):
            raise
        raise LogError(
            f"The log {path.name}: a compressed chunk is damaged ({error}). Run the episode again."
        ) from error


def _check_ends(path: Path) -> int:
    if not path.is_file():
        part = path.with_name(path.name + ".part")
        hint = f" Its run was cut off: {part.name} is unfinished. Run it again." if part.exists() else ""
        raise LogError(f"There is no log {path}.{hint}")
    size = path.stat().st_size
    with path.open("rb") as stream:
        head = stream.read(len(_MAGIC))
        if head != _MAGIC:
            raise LogError(f"{path.name} is no MCAP file: it begins with {head!r}, expected {_MAGIC!r}.")
        stream.seek(max(0, size - len(_MAGIC)))
        if size < 2 * len(_MAGIC) or stream.read() != _MAGIC:
            raise LogError(
                f"The log {path.name} is torn: its end is missing after {size} bytes. "
                "Copy it whole or run the episode again."
            )
    return size


def _read(stream: IO[bytes], path: Path) -> EpisodeLog:
    reader = SeekingReader(stream, validate_crcs=True)
    meta = _meta(reader, path)
    times: list[float] = []
    rows: list[Array] = []
    actions: dict[str, list[Array]] = {}
    changes: list[FactChange] = []
    events: list[Event] = []
    for _, channel, message in reader.iter_messages(log_time_order=False):
        if channel.topic == wire.STATE_TOPIC:
            time_s, values = wire.decode_vector(message.data)
            times.append(time_s)
            rows.append(values)
        elif channel.topic.startswith(wire.ACTION_TOPIC):
            agent = channel.topic[len(wire.ACTION_TOPIC) :]
            actions.setdefault(agent, []).append(wire.decode_vector(message.data)[1])
        elif channel.topic == wire.FACTS_TOPIC:
            data = json.loads(message.data)
            added, removed = _facts(data["added"]), _facts(data["removed"])
            changes.append(FactChange(time_s=float(data["time_s"]), added=added, removed=removed))
        elif channel.topic == wire.EVENT_TOPIC:
            data = json.loads(message.data)
            events.append(Event(time_s=float(data["time_s"]), kind=data["kind"], payload=data["payload"]))
    for agent, values in actions.items():
        if len(values) != len(times):
            raise LogError(
                f"The log {path.name} is damaged: {len(times)} states but {len(values)} actions of {agent!r}."
            )
    return EpisodeLog(
        meta=meta,
        time_s=np.array(times),
        qpos=np.array(rows) if rows else np.zeros((0, 0)),
        actions={name: np.array(values) for name, values in sorted(actions.items())},
        changes=tuple(changes),
        events=tuple(events),
    )


def _meta(reader: SeekingReader, path: Path) -> dict[str, Any]:
    for record in reader.iter_metadata():
        if record.name == wire.META_RECORD:
            version = record.metadata.get("format", "unknown")
            if version != wire.FORMAT:
                raise LogError(
                    f"The log {path.name} has the format {version!r}, this version reads {wire.FORMAT!r}. "
                    "Read it with the version of embodied-stack that wrote it."
                )
            text = record.metadata["json"]
            if wire.digest(text) != record.metadata["sha256"]:
                raise LogError(f"The log {path.name} is damaged: its metadata does not match its digest.")
            return json.loads(text)
    raise LogError(f"{path.name} is an MCAP file of another program: it has no {wire.META_RECORD!r} metadata.")


def _facts(rows: list[list[str]]) -> tuple[Fact, ...]:
    return tuple(Fact(row[0], tuple(row[1:])) for row in rows)
