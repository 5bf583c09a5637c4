"""Two slots for packages and one pointer: an update is whole or did not happen, and a bad one goes back by itself.

``slots/A/policy.policy`` and ``slots/B/policy.policy`` hold packages, ``current`` is the pointer: a small JSON file
that is only ever replaced as a whole. It names the slot that runs, the one before, the hash of each, and whether the
present one is on trial. An update writes the slot that does not run, checks what lies there, and then replaces the
pointer; a crash or power cut between any two steps leaves the old pointer and the old package.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from embodied_deploy.errors import DeployError, PackageError
from embodied_deploy.package.archive import read_file, write_file
from embodied_deploy.package.load import Package

SLOTS = ("A", "B")
TRIAL_STARTS = 3
"""Starts that a package on trial gets to end otherwise than well: one that takes the device down with it must not be
started for ever."""
Loader = Callable[[Path], Package]
_NOTHING = "{}: nothing is installed. Run `embodied-edge install PACKAGE` first."


class SlotError(DeployError):
    """A slot operation is not possible now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """What ``current`` says.

    Attributes:
      slot: that runs.
      sha256: of its package.
      previous: slot to go back to, empty for none.
      previous_sha256: of that one's package.
      on_trial: whether the present one was not confirmed yet.
      starts: how often it was started on trial.
      last_rollback: why the last roll-back happened, empty for none.
    """

    slot: str
    sha256: str
    previous: str = ""
    previous_sha256: str = ""
    on_trial: bool = False
    starts: int = 0
    last_rollback: str = ""


class SlotStore:
    """The slots below one folder.

    Args:
      root: folder; installing makes it.
      load: loads and checks a package, by the caller's keys and robot; raises ``PackageError``.
    """

    def __init__(self, root: str | Path, load: Loader) -> None:
        self._root, self._load = Path(root), load

    def path(self, slot: str) -> Path:
        """Return where the package of a slot lies."""
        return self._root / "slots" / slot / "policy.policy"

    def load_unchecked(self, slot: str) -> Package | None:
        """Return the package in a slot whatever the pointer says, None for an empty one.

        Raises:
          PackageError: what lies there is refused.
        """
        return self._load(self.path(slot)) if self.path(slot).exists() else None

    def pointer(self) -> Pointer | None:
        """Return the pointer, None before the first package.

        Raises:
          SlotError: the file is not readable.
        """
        file = self._root / "current"
        try:
            value: Any = json.loads(file.read_text())
            pointer = Pointer(**value)
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, OSError) as error:
            raise SlotError(f"{file}: not readable ({error}). Install a package anew.") from None
        wrong = [f.name for f in fields(pointer) if type(getattr(pointer, f.name)).__name__ != f.type]
        if wrong:
            raise SlotError(f"{file}: {', '.join(wrong)} of another type. Install a package anew.")
        if pointer.slot not in SLOTS or pointer.previous not in ("", *SLOTS):
            raise SlotError(f"{file}: names no slot. Install a package anew.")
        return pointer

    def install(self, source: str | Path) -> Package:
        """Copy a package into the slot that does not run, check it there, and put it on trial.

        Raises:
          PackageError: it is refused; what runs stays.
          SlotError: a package is on trial: confirm it or roll it back first.
        """
        source = Path(source)
        self._load(source)
        for slot in SLOTS:
            (self._root / "slots" / slot).mkdir(parents=True, exist_ok=True)
        with self._locked():
            try:
                now = self.pointer()
            except SlotError:
                now = None
            if now is not None and now.on_trial:
                raise SlotError(f"slot {now.slot} is on trial. Run `confirm` or `rollback` first.")
            slot = "A" if now is None or now.slot == "B" else "B"
            write_file(self.path(slot), read_file(source))
            # Once more from where it will be run: a full or worn disk shows here, not in the robot.
            package = self._load(self.path(slot))
            self._point(
                Pointer(
                    slot=slot,
                    sha256=package.sha256,
                    previous=now.slot if now else "",
                    previous_sha256=now.sha256 if now else "",
                    on_trial=True,
                )
            )
        return package

    def confirm(self) -> Pointer:
        """End the trial: the present package stays.

        Raises:
          SlotError: nothing is on trial.
        """
        with self._locked():
            now = self._present()
            if not now.on_trial:
                raise SlotError(f"slot {now.slot} is not on trial; nothing to confirm.")
            confirmed = replace(now, on_trial=False, starts=0)
            self._point(confirmed)
        return confirmed

    def rollback(self, reason: str) -> Pointer:
        """Go back to the slot before.

        Raises:
          SlotError: there is none, or its package is not the one that ran.
        """
        with self._locked():
            return self._back(self._present(), reason)

    def start(self) -> tuple[Package, Pointer]:
        """Return the package to run now, counting starts on trial; go back when the present one may not or cannot run.

        Raises:
          SlotError: nothing is installed, or nothing can be run.
        """
        with self._locked():
            now = self._present()
            if now.on_trial and now.starts >= TRIAL_STARTS and now.previous:
                now = self._back(now, f"not confirmed within {TRIAL_STARTS} starts")
            elif now.on_trial:
                now = self._counted(now)
            try:
                return self._load_as(now.slot, now.sha256), now
            except PackageError as error:
                now = self._back(now, str(error))
                return self._load_as(now.slot, now.sha256), now

    def _counted(self, now: Pointer) -> Pointer:
        """Return the pointer with one start more; on a full disk the slot before, whose starts are not counted."""
        counted = replace(now, starts=now.starts + 1)
        try:
            self._point(counted)
        except OSError as error:
            if not now.previous:
                return counted
            reason = f"a start on trial cannot be counted ({error}); this run only"
            return Pointer(slot=now.previous, sha256=now.previous_sha256, last_rollback=reason)
        return counted

    def forgive(self) -> None:
        """Take back the count of the last start on trial: it ended well, or the robot was not there."""
        with self._locked():
            now = self._present()
            if now.on_trial and now.starts:
                self._point(replace(now, starts=now.starts - 1))

    def _back(self, now: Pointer, reason: str) -> Pointer:
        if not now.previous:
            raise SlotError(f"slot {now.slot} cannot go on ({reason}), and there is no other to go back to.")
        try:
            self._load_as(now.previous, now.previous_sha256)
        except PackageError as error:
            raise SlotError(f"slot {now.previous} cannot be gone back to: {error}") from None
        back = Pointer(slot=now.previous, sha256=now.previous_sha256, last_rollback=reason)
        self._point(back)
        return back

    def _load_as(self, slot: str, sha256: str) -> Package:
        package = self._load(self.path(slot))
        if package.sha256 != sha256:
            raise PackageError("hash", f"slot {slot}: sha256 {package.sha256[:16]}…, the pointer says {sha256[:16]}….")
        return package

    def _present(self) -> Pointer:
        now = self.pointer()
        if now is None:
            raise SlotError(_NOTHING.format(self._root))
        return now

    def _point(self, pointer: Pointer) -> None:
        write_file(self._root / "current", json.dumps(asdict(pointer), indent=1).encode() + b"\n")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        if not self._root.is_dir():
            raise SlotError(_NOTHING.format(self._root))
        handle = os.open(self._root / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)
