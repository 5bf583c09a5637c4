"""The episode log: one append-only record, in simulated time only, from which everything else is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from embodied.graph.facts import Fact

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactChange:
    """Facts that became true and false at a moment; the first one of a log holds all facts of the start."""

    time_s: float
    added: tuple[Fact, ...]
    removed: tuple[Fact, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened, with a JSON payload.

    Kinds: ``decision``, ``skill_start``, ``skill_end``, ``message``, ``rejected``, ``collision``, ``planner_failure``,
    ``weld_assist``, ``end`` and others.
    """

    time_s: float
    kind: str
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeLog:
    """A log read back.

    Attributes:
      meta: task, agents, seed, scene, planner, versions.
      time_s: (n,) stamps of the state samples.
      qpos: (n, nq) generalised positions; (n, 0) for a symbolic world.
      actions: agent to (n, n_actions) last applied action at each sample.
    """

    meta: Mapping[str, Any]
    time_s: Array
    qpos: Array
    actions: Mapping[str, Array]
    changes: tuple[FactChange, ...]
    events: tuple[Event, ...]


class LogSink(Protocol):
    """Takes an episode while it runs."""

    def state(self, time_s: float, qpos: Array, actions: Mapping[str, Array]) -> None:
        """Append one state sample."""
        ...

    def facts(self, time_s: float, added: Iterable[Fact], removed: Iterable[Fact]) -> None:
        """Append a change of facts."""
        ...

    def event(self, time_s: float, kind: str, payload: Mapping[str, Any]) -> None:
        """Append an event."""
        ...

    def close(self) -> None:
        """Finish the record so that it can be read."""
        ...
