"""An episode log in memory: for tests, data export on the fly and evaluation without a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embodied.graph.facts import Fact
from embodied.record import wire
from embodied.record.contract import EpisodeLog, Event, FactChange

Array = NDArray[np.float64]


class MemoryLog:
    """Takes an episode like :class:`embodied.record.log.McapLogWriter` and keeps it.

    Args:
      meta: what the episode was.
    """

    def __init__(self, meta: Mapping[str, Any] | None = None) -> None:
        self._meta = {**(meta or {}), "format": wire.FORMAT}
        self._time_s: list[float] = []
        self._qpos: list[Array] = []
        self._actions: dict[str, list[Array]] = {}
        self._changes: list[FactChange] = []
        self._events: list[Event] = []

    def state(self, time_s: float, qpos: Array, actions: Mapping[str, Array]) -> None:
        """Append one state sample."""
        self._time_s.append(time_s)
        self._qpos.append(np.array(qpos, dtype=np.float64))
        for name, values in actions.items():
            self._actions.setdefault(name, []).append(np.array(values, dtype=np.float64))

    def facts(self, time_s: float, added: Iterable[Fact], removed: Iterable[Fact]) -> None:
        """Append a change of facts."""
        change = FactChange(time_s=time_s, added=tuple(sorted(added)), removed=tuple(sorted(removed)))
        self._changes.append(change)

    def event(self, time_s: float, kind: str, payload: Mapping[str, Any]) -> None:
        """Append an event; its payload is kept as JSON would keep it."""
        self._events.append(Event(time_s=time_s, kind=kind, payload=wire.plain(payload)))

    def close(self) -> None:
        """Nothing to finish."""

    def log(self) -> EpisodeLog:
        """Return what came so far."""
        return EpisodeLog(
            meta=wire.plain(self._meta),
            time_s=np.array(self._time_s),
            qpos=np.array(self._qpos) if self._qpos else np.zeros((0, 0)),
            actions={name: np.array(rows) for name, rows in sorted(self._actions.items())},
            changes=tuple(self._changes),
            events=tuple(self._events),
        )
