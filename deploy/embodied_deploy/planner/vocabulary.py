"""The closed word lists of a planner package, and the tokens made from them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Tokens = NDArray[np.int64]
PAD, UNKNOWN = 0, 1
NONE = "-"
OTHER = "other"
_WORD = re.compile(r"[a-z0-9_]+|[^\sa-z0-9_]")


def words_of(text: str) -> list[str]:
    """Split a text into lower-case words, entity names and single signs."""
    return _WORD.findall(text.lower())


@dataclass(frozen=True, slots=True)
class Call:
    """A skill with its arguments, on the device; empty arguments are not given."""

    skill: str
    thing: str = ""
    furniture: str = ""
    relation: str = ""

    def __str__(self) -> str:
        return f"{self.skill}({', '.join(a for a in (self.thing, self.furniture, self.relation) if a)})"


@dataclass(frozen=True)
class Vocabulary:
    """What a planner can read and say.

    Attributes:
      words: of instructions; the first two are padding and the unknown word.
      skills: in the order of the scores; so are the next three.
      things: movable things, the first is :data:`NONE`.
      furniture: what one can go to, look at, open and put things at, the first is :data:`NONE`.
      relations: ``on``, ``in``, the first is :data:`NONE`.
      outcomes: codes of ended calls, the first (empty) is success, the last one any other code.
    """

    words: tuple[str, ...]
    skills: tuple[str, ...]
    things: tuple[str, ...]
    furniture: tuple[str, ...]
    relations: tuple[str, ...]
    outcomes: tuple[str, ...]
    _ids: dict[str, dict[str, int]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ids = {name: {w: i for i, w in enumerate(getattr(self, name))} for name in self.names()}
        object.__setattr__(self, "_ids", ids)

    @staticmethod
    def names() -> tuple[str, ...]:
        """Return the names of the lists, as they stand in a contract."""
        return ("words", "skills", "things", "furniture", "relations", "outcomes")

    @classmethod
    def of(cls, lists: Mapping[str, Sequence[str]]) -> Vocabulary:
        """Read the lists of a contract.

        Raises:
          ValueError: a list is missing, empty or holds a word twice.
        """
        for name in cls.names():
            found = lists.get(name, ())
            if not found or len(set(found)) != len(found):
                raise ValueError(f"Vocabulary list {name!r} must hold words, each once; got {list(found)[:5]}.")
        return cls(**{name: tuple(lists[name]) for name in cls.names()})

    def lists(self) -> dict[str, tuple[str, ...]]:
        """Return the lists as a contract holds them."""
        return {name: getattr(self, name) for name in self.names()}

    def index(self, name: str, word: str) -> int:
        """Return the place of a word in a list; unknown words become UNKNOWN, NONE or the last outcome."""
        fallback = {"words": UNKNOWN, "outcomes": len(self.outcomes) - 1}.get(name, 0)
        return self._ids[name].get(word, fallback)

    def instruction(self, text: str, length: int) -> Tokens:
        """Return (length,) tokens of an instruction, padded at the end; what is too long is cut off."""
        tokens = np.full(length, PAD, dtype=np.int64)
        ids = [self.index("words", w) for w in words_of(text)][:length]
        tokens[: len(ids)] = ids
        return tokens

    def last_call(self, call: Call | None, outcome: str) -> Tokens:
        """Return (5,) tokens of the last call and how it ended; skills count from 1, 0 is 'no call yet'."""
        if call is None:
            return np.zeros(5, dtype=np.int64)
        skill = self._ids["skills"].get(call.skill, -1) + 1
        parts = [self.index("things", call.thing), self.index("furniture", call.furniture)]
        return np.array(
            [skill, *parts, self.index("relations", call.relation), self.index("outcomes", outcome)], dtype=np.int64
        )
