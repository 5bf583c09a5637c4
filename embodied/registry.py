"""One registry for every kind of thing: lazy, versioned, tagged, open to other distributions."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from embodied.errors import DuplicateNameError, UnknownNameError, nearest_hint

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry(Generic[T]):
    """One registered name.

    Attributes:
      name: the id, ``family/name@version`` or a single word for skills and planners.
      target: ``module:attribute`` imported on first use.
      tags: words to select by.
      summary: one line for listings; reading it imports nothing.
    """

    name: str
    target: str
    tags: frozenset[str]
    summary: str

    def load(self) -> T:
        """Import the target and return it."""
        module, _, attribute = self.target.partition(":")
        return cast("T", getattr(importlib.import_module(module), attribute))


class Registry(Generic[T]):
    """Names of one kind. Entries of other distributions come by the entry point group ``embodied.<kind>``.

    Args:
      kind: plural word, for instance ``"robots"``; also the end of the entry point group.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, Entry[T]] = {}
        self._plugins_read = False

    def add(self, name: str, target: str, *, summary: str, tags: tuple[str, ...] = ()) -> None:
        """Register ``target`` (``module:attribute``) under ``name``.

        Raises:
          DuplicateNameError: the name is taken.
        """
        if name in self._entries:
            raise DuplicateNameError(
                f"{self.kind}: {name!r} is registered twice (first {self._entries[name].target}, now {target}). "
                "Give the new one another name or version."
            )
        self._entries[name] = Entry(name=name, target=target, tags=frozenset(tags), summary=summary)

    def entry(self, name: str) -> Entry[T]:
        """Return the entry of ``name``; a name without ``@version`` means its newest version.

        Raises:
          UnknownNameError: no such name; the message holds the nearest ones.
        """
        self._read_plugins()
        if name in self._entries:
            return self._entries[name]
        versions = [n for n in self._entries if n.rpartition("@")[0] == name]
        if versions:
            return self._entries[max(versions, key=_version)]
        raise UnknownNameError(f"{self.kind}: no {name!r}. {nearest_hint(name, self._entries)}")

    def get(self, name: str) -> T:
        """Import and return what is registered under ``name``."""
        return self.entry(name).load()

    def names(self, *, tag: str | None = None) -> tuple[str, ...]:
        """Return the registered names, sorted, all or those that carry ``tag``."""
        self._read_plugins()
        return tuple(sorted(n for n, e in self._entries.items() if tag is None or tag in e.tags))

    def __iter__(self) -> Iterator[Entry[T]]:
        self._read_plugins()
        return iter(sorted(self._entries.values(), key=lambda e: e.name))

    def __contains__(self, name: object) -> bool:
        self._read_plugins()
        return name in self._entries

    def _read_plugins(self) -> None:
        if self._plugins_read:
            return
        self._plugins_read = True
        from importlib.metadata import entry_points

        for point in entry_points(group=f"embodied.{self.kind}"):
            self.add(point.name, point.value, summary=f"from {point.dist.name if point.dist else 'a plug-in'}")


def _version(name: str) -> tuple[int, str]:
    version = name.rpartition("@")[2]
    return (int(version), "") if version.isdigit() else (-1, version)
