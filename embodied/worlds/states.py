"""What state machines own in a world: values by (entity, key), changed by validated transactions only."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from embodied.errors import WorldError, nearest_hint
from embodied.graph.facts import Fact, fact
from embodied.worlds.contract import Edit, StateValue


class StateTable:
    """Values of one environment, with a version that grows by one with every transaction."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)
        self._values: dict[tuple[str, str], StateValue] = {}
        self.version = 0

    def reset(self, values: Mapping[tuple[str, str], StateValue]) -> None:
        """Start over with ``values``."""
        for entity, key in values:
            self._check(entity, key)
        self._values = dict(values)
        self.version = 0

    def get(self, entity: str, key: str, default: StateValue = False) -> StateValue:
        """Return a value, ``default`` where none was set."""
        return self._values.get((entity, key), default)

    def apply(self, edits: Sequence[Edit]) -> int:
        """Apply ``set_state`` edits, all or none; return the new version.

        Raises:
          WorldError: an unknown entity, an empty key or a value that is no bool, number or text.
        """
        for edit in edits:
            self._check(edit.entity, edit.key)
            if not isinstance(edit.value, bool | int | float | str):
                raise WorldError(f"{edit.entity}.{edit.key}: a state is a bool, number or text, got {edit.value!r}.")
        for edit in edits:
            self._values[(edit.entity, edit.key)] = edit.value  # pyright: ignore[reportArgumentType] -- checked above
        self.version += 1
        return self.version

    def facts(self) -> frozenset[Fact]:
        """Return the values as facts: True gives ``key(entity)``, a text ``key(entity, text)``; others give none."""
        found = set()
        for (entity, key), value in self._values.items():
            if value is True:
                found.add(fact(key, entity))
            elif isinstance(value, str) and value:
                found.add(fact(key, entity, value))
        return frozenset(found)

    def dump(self) -> str:
        """Return the content as canonical text."""
        return json.dumps([[*k, v] for k, v in sorted(self._values.items())])

    def load(self, text: str, version: int) -> None:
        """Take back what :meth:`dump` gave."""
        self._values = {(e, k): v for e, k, v in json.loads(text)}
        self.version = version

    def _check(self, entity: str, key: str) -> None:
        if entity not in self._names:
            raise WorldError(f"No entity or robot {entity!r} in this scene. {nearest_hint(entity, self._names)}")
        if not key:
            raise WorldError(f"A state of {entity!r} needs a key.")
