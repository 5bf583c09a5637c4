"""What a model planner cost and how often it answered badly. Wall-clock figures live here and nowhere in the log."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, kw_only=True)
class PlannerStats:
    """Counts of one planner over one episode.

    Attributes:
      decisions: times the agent asked.
      calls: requests answered by a server or a cassette.
      replayed: how many of them came from a cassette.
      retries: requests repeated after a transport fault.
      transport: transport faults by kind (``http_429``, ``timeout``, ``connection`` …).
      malformed: answers that could not be used, by kind.
      repairs: answers that needed a repair rule, by rule.
      images: frames encoded.
      tokens_in, tokens_out: as the server counts them.
      model_ms: wall-clock time spent waiting for the server.
      setup_ms: wall-clock time of loading the client library, once a process.
      own_ms: wall-clock time of everything else in the planner.
    """

    decisions: int = 0
    calls: int = 0
    replayed: int = 0
    retries: int = 0
    transport: Counter[str] = field(default_factory=Counter)
    malformed: Counter[str] = field(default_factory=Counter)
    repairs: Counter[str] = field(default_factory=Counter)
    images: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    model_ms: float = 0.0
    setup_ms: float = 0.0
    own_ms: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "decisions": self.decisions,
            "calls": self.calls,
            "replayed": self.replayed,
            "retries": self.retries,
            "transport": dict(sorted(self.transport.items())),
            "malformed": dict(sorted(self.malformed.items())),
            "repairs": dict(sorted(self.repairs.items())),
            "images": self.images,
            "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out,
            "model_ms": round(self.model_ms, 3),
            "setup_ms": round(self.setup_ms, 3),
            "own_ms": round(self.own_ms, 3),
        }
