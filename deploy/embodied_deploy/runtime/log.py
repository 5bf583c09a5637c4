"""The log: one JSON object a line, in files of bounded size and number, written by a thread of its own."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

QUEUE = 4096
"""Lines that wait for the disk; more are dropped and counted."""


class Log(Protocol):
    """Takes events without ever blocking or raising."""

    def event(self, kind: str, **fields: object) -> None:
        """Note an event."""
        ...

    def close(self) -> None:
        """Write what waits."""
        ...


class _NoLog:
    def event(self, kind: str, **fields: object) -> None:
        del kind, fields

    def close(self) -> None:
        pass


NO_LOG: Log = _NoLog()


class JsonLog:
    """Writes to ``path``; full files become ``path.1`` … ``path.<keep>``, the oldest is removed.

    The loop only appends to a queue: a disk that hangs must not hang a robot. A disk that is full or gone costs lines,
    which the next line that can be written tells by ``dropped``.

    Args:
      path: the file; its folder must exist.
      max_bytes: size at which a file is full.
      keep: full files that are kept.
      wall_s: time of day for the ``utc_s`` of each line.
      period_s: how often the queue is written.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        max_bytes: int = 4 << 20,
        keep: int = 4,
        wall_s: Callable[[], float] = time.time,
        period_s: float = 0.2,
    ) -> None:
        self._path, self._max_bytes, self._keep, self._wall_s = Path(path), max_bytes, keep, wall_s
        self._queue: deque[dict[str, Any]] = deque()
        self._dropped = 0
        self._writing = threading.Lock()
        self._ending = threading.Event()
        # Opened once here, so that a path that cannot be written is refused at the start.
        with self._path.open("a", encoding="utf-8"):
            pass
        self._thread = threading.Thread(target=self._work, args=(period_s,), name="log", daemon=True)
        self._thread.start()

    def event(self, kind: str, **fields: object) -> None:
        """Queue one line."""
        if len(self._queue) >= QUEUE:
            self._dropped += 1
            return
        self._queue.append({"utc_s": round(self._wall_s(), 6), "event": kind, **fields})

    def flush(self) -> None:
        """Write what waits."""
        with self._writing:
            lines: list[str] = []
            while self._queue:
                lines.append(json.dumps(self._queue.popleft(), default=str, separators=(",", ":")))
            if not lines:
                return
            dropped = self._dropped
            if dropped:
                lines.append(json.dumps({"utc_s": round(self._wall_s(), 6), "event": "dropped", "dropped": dropped}))
            try:
                self._write(lines)
                self._dropped -= dropped
            except OSError:
                self._dropped += len(lines) - bool(dropped)

    def close(self) -> None:
        """Write what waits and end the thread."""
        self._ending.set()
        self._thread.join(timeout=2.0)
        self.flush()

    def _write(self, lines: list[str]) -> None:
        file = self._path.open("ab")
        try:
            size = file.tell()
            if size and not self._ends_whole():
                # The process before was killed within a line.
                size += file.write(b"\n")
            for line in lines:
                data = line.encode() + b"\n"
                if size and size + len(data) > self._max_bytes:
                    file.close()
                    self._rotate()
                    file = self._path.open("ab")
                    size = 0
                size += file.write(data)
        finally:
            file.close()

    def _ends_whole(self) -> bool:
        with self._path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"

    def _rotate(self) -> None:
        def numbered(i: int) -> Path:
            return self._path.with_name(f"{self._path.name}.{i}")

        numbered(self._keep).unlink(missing_ok=True)
        for i in range(self._keep - 1, 0, -1):
            if numbered(i).exists():
                os.replace(numbered(i), numbered(i + 1))
        if self._keep:
            os.replace(self._path, numbered(1))
        else:
            self._path.unlink()

    def _work(self, period_s: float) -> None:
        while not self._ending.wait(period_s):
            self.flush()
