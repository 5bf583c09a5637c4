"""Cassettes: every request and response of a run in a JSONL file, to be replayed without a server.

One line holds one exchange: ``run`` (agent and episode seed), ``n`` (position in the run), ``key`` (SHA-256 of the
canonical request), ``request`` (images replaced by their hash) and ``response`` or ``error``. Keys and hosts are not
part of a request and never reach the file; neither do wall-clock times.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from embodied.errors import PlannerError

Mode = Literal["record", "replay", "auto"]
FORMAT = "embodied-cassette-1"


class CassetteError(PlannerError):
    """A cassette is missing, broken, or holds another run than the one that asks it."""


def canonical(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request as it stands in a cassette: plain values, data URLs replaced by their hash."""
    return json.loads(json.dumps(_without_images(request), sort_keys=True, allow_nan=False))


def request_key(canonical_request: Mapping[str, Any]) -> str:
    """Return the hash of a canonical request."""
    text = json.dumps(canonical_request, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _without_images(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, str) and value.startswith("data:"):
        return "sha256:" + hashlib.sha256(value.encode()).hexdigest()
    if isinstance(value, Mapping):
        return {k: _without_images(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_without_images(v) for v in value]
    return value


class Cassette:
    """A file of exchanges.

    Args:
      path: JSONL file.
      mode: ``replay`` only reads; ``record`` adds runs the file does not hold yet; ``auto`` replays what is there and
        records what is not.

    Raises:
      CassetteError: the file is missing in replay, or cannot be read.
    """

    def __init__(self, path: Path, mode: Mode) -> None:
        self.path, self.mode = path, mode
        self._entries: dict[tuple[str, int], dict[str, Any]] = {}
        self._run = ""
        self._next = 0
        if path.exists():
            self._read()
        elif mode == "replay":
            raise CassetteError(f"There is no cassette {path.name!r} to replay. Record it with mode=record first.")

    def begin(self, run: str) -> None:
        """Rewind for a run.

        Raises:
          CassetteError: recording a run that the file holds already.
        """
        self._run, self._next = run, 0
        if self.mode == "record" and (run, 0) in self._entries:
            raise CassetteError(
                f"Cassette {self.path.name!r} already holds run {run!r}. "
                "Delete the file to record anew, or use mode=auto."
            )

    def recall(self, request: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the stored exchange for the next call of this run, or None if it must be made.

        Raises:
          CassetteError: the call differs from the recorded one, or a replay has run out.
        """
        if self.mode == "record":
            return None
        entry = self._entries.get((self._run, self._next))
        where = f"Cassette {self.path.name!r}, run {self._run!r}, call {self._next}"
        if entry is None and self.mode == "auto":
            return None
        if entry is None:
            held = sorted({r for r, _ in self._entries})
            count = sum(r == self._run for r, _ in self._entries)
            raise CassetteError(
                f"{where} was not recorded: it holds {count} calls of this run (runs: {', '.join(held[:5])}). "
                "Replay with the task, seed, options and versions of the recording, or record anew."
            )
        asked = canonical(request)
        if entry["key"] != request_key(asked):
            raise CassetteError(
                f"{where} does not match what is asked now: {first_difference(entry['request'], asked)}. "
                "The prompt, skills, scene or options changed since; record anew."
            )
        self._next += 1
        return entry

    def keep(self, request: Mapping[str, Any], **result: Any) -> None:  # noqa: ANN401
        """Append an exchange: ``response={…}`` or ``error="…"``."""
        asked = canonical(request)
        entry = {
            "format": FORMAT,
            "run": self._run,
            "n": self._next,
            "key": request_key(asked),
            "request": asked,
            **result,
        }
        self._entries[self._run, self._next] = entry
        self._next += 1
        line = json.dumps(entry, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # One write on an append-only descriptor: lines of several workers do not mix.
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)

    def _read(self) -> None:
        for number, line in enumerate(self.path.read_text(encoding="utf-8").splitlines(), start=1):
            if not line.strip():
                continue
            try:
                entry = json.loads(line)
                if entry["format"] != FORMAT:
                    raise CassetteError(
                        f"{self.path.name}:{number}: format is {entry['format']!r}, this version reads {FORMAT!r}."
                    )
                self._entries[str(entry["run"]), int(entry["n"])] = entry
            except (ValueError, KeyError, TypeError) as error:
                raise CassetteError(
                    f"{self.path.name}:{number}: not a cassette line ({error}). Delete the line or record anew."
                ) from error


def first_difference(old: Any, new: Any, where: str = "request") -> str:  # noqa: ANN401
    """Say where two plain values first differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            if key not in old or key not in new:
                return f"{where}.{key} is only in the {'recording' if key in old else 'new request'}"
            if old[key] != new[key]:
                return first_difference(old[key], new[key], f"{where}.{key}")
    if isinstance(old, list) and isinstance(new, list):
        for index, (a, b) in enumerate(zip(old, new, strict=False)):
            if a != b:
                return first_difference(a, b, f"{where}[{index}]")
        return f"{where} has {len(new)} items instead of {len(old)}"
    if isinstance(old, str) and isinstance(new, str):
        at = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
        return f"{where}, character {at}: recorded {old[at : at + 40]!r}, now {new[at : at + 40]!r}"
    return f"{where}: recorded {old!r}, now {new!r}"
