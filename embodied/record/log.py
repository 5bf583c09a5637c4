"""The episode log on disk: an MCAP file in simulated time, so that equal runs give equal bytes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from mcap.writer import CompressionType, Writer
from numpy.typing import NDArray

from embodied.errors import LogError
from embodied.graph.facts import Fact
from embodied.record import reading, wire
from embodied.record.contract import EpisodeLog

Array = NDArray[np.float64]

_CHUNK_BYTES = 1 << 20  # fixed: the chunk borders are part of the bytes


class McapLogWriter:
    """Writes one episode. Until :meth:`close` the file is called ``<path>.part``, so a killed run leaves nothing whole.

    Args:
      path: where the finished log goes; parent folders are made.
      meta: what the episode was (JSON values only, nothing of the wall clock).

    Raises:
      LogError: ``meta`` holds what JSON does not know.
    """

    def __init__(self, path: Path | str, meta: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self._part = self.path.with_name(self.path.name + ".part")
        record = {**meta, "format": wire.FORMAT}
        encoded = wire.encode_json(record).decode()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._stream = self._part.open("wb")
        self._writer = Writer(self._stream, chunk_size=_CHUNK_BYTES, compression=CompressionType.ZSTD)
        self._writer.start(profile="", library=wire.FORMAT)
        self._writer.add_metadata(
            wire.META_RECORD, {"format": wire.FORMAT, "json": encoded, "sha256": wire.digest(encoded)}
        )
        self._vector = self._writer.register_schema(wire.VECTOR_SCHEMA, "protobuf", wire.vector_descriptor())
        facts = self._writer.register_schema(wire.FACTS_SCHEMA, "jsonschema", wire.encode_json(wire.FACTS_JSON_SCHEMA))
        event = self._writer.register_schema(wire.EVENT_SCHEMA, "jsonschema", wire.encode_json(wire.EVENT_JSON_SCHEMA))
        self._facts = self._writer.register_channel(wire.FACTS_TOPIC, "json", facts)
        self._event = self._writer.register_channel(wire.EVENT_TOPIC, "json", event)
        self._state = self._writer.register_channel(wire.STATE_TOPIC, "protobuf", self._vector)
        self._actions: dict[str, int] | None = None
        self._sizes: dict[str, int] = {}
        self._sequence = 0
        self._last_s = 0.0
        self._is_open = True

    def state(self, time_s: float, qpos: Array, actions: Mapping[str, Array]) -> None:
        """Append one state sample.

        Args:
          time_s: simulated time; never less than that of the sample before.
          qpos: (nq,) generalised positions, the same size in every sample.
          actions: agent to (n_actions,); the same agents in every sample.

        Raises:
          LogError: time runs backwards, a size or the set of agents changed, or the log is closed.
        """
        if time_s < self._last_s:
            raise LogError(
                f"A state sample at {time_s} s follows one at {self._last_s} s. Start a new log after a reset."
            )
        if self._actions is None:
            self._actions = {
                name: self._writer.register_channel(wire.ACTION_TOPIC + name, "protobuf", self._vector)
                for name in sorted(actions)
            }
        if set(actions) != set(self._actions):
            raise LogError(f"A state sample has the agents {sorted(actions)}, the first one had {list(self._actions)}.")
        self._check_size("qpos", qpos)
        for name in self._actions:
            self._check_size(name, actions[name])
        self._last_s = time_s
        self._put(self._state, time_s, wire.encode_vector(time_s, qpos))
        for name, channel in self._actions.items():
            self._put(channel, time_s, wire.encode_vector(time_s, actions[name]))

    def facts(self, time_s: float, added: Iterable[Fact], removed: Iterable[Fact]) -> None:
        """Append a change of facts."""
        record = {
            "time_s": time_s,
            "added": [[f.predicate, *f.args] for f in sorted(added)],
            "removed": [[f.predicate, *f.args] for f in sorted(removed)],
        }
        self._put(self._facts, time_s, wire.encode_json(record))

    def event(self, time_s: float, kind: str, payload: Mapping[str, Any]) -> None:
        """Append an event.

        Raises:
          LogError: the payload holds what JSON does not know, or the log is closed.
        """
        self._put(self._event, time_s, wire.encode_json({"time_s": time_s, "kind": kind, "payload": payload}))

    def close(self) -> None:
        """Finish the file and give it its name; a second call does nothing."""
        if not self._is_open:
            return
        self._is_open = False
        self._writer.finish()
        self._stream.close()
        os.replace(self._part, self.path)

    def abort(self) -> None:
        """Drop the unfinished file; nothing happens after :meth:`close`."""
        if self._is_open:
            self._is_open = False
            self._stream.close()
            self._part.unlink(missing_ok=True)

    def _check_size(self, name: str, values: Array) -> None:
        size = self._sizes.setdefault(name, len(values))
        if len(values) != size:
            raise LogError(f"A state sample has {len(values)} numbers of {name!r}, the first one had {size}.")

    def _put(self, channel: int, time_s: float, data: bytes) -> None:
        if not self._is_open:
            raise LogError(f"The log {self.path.name} is closed; open a new one for a new episode.")
        stamp = wire.stamp_ns(time_s)
        self._writer.add_message(channel, log_time=stamp, publish_time=stamp, data=data, sequence=self._sequence)
        self._sequence += 1


def read_log(path: Path | str) -> EpisodeLog:
    """Read a finished log; see :func:`embodied.record.reading.read_log`."""
    return reading.read_log(path)
