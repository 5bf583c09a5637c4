"""The world as facts: immutable, hashable, cheap to change; what planners search and goals are written in.

Predicates of the core, arguments in order:
  ontop(thing, support) · inside(thing, container) · under(thing, thing) · nextto(thing, thing) · inroom(thing, room)
  open(thing) · holding(agent, thing) · at(agent, place or entity) · on(thing) (switched on)
  scanned(thing) · lifted(agent, thing) · flying(agent) · inspected(target) · charged(agent) · visited(agent, place)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple


class Fact(NamedTuple):
    """One true statement, for instance ``Fact("ontop", ("apple_1", "table"))``."""

    predicate: str
    args: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.predicate}({', '.join(self.args)})"


def fact(predicate: str, *args: str) -> Fact:
    """Build a :class:`Fact` from loose arguments."""
    return Fact(predicate, args)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Something that facts speak of.

    Attributes:
      kind: ``object`` (movable), ``fixture``, ``place``, ``room`` or ``agent``.
      category: word of the taxonomy, for instance ``apple`` or ``fridge``.
      properties: affordances such as ``openable``, ``container``, ``surface``, ``graspable``.
    """

    name: str
    kind: str
    category: str
    properties: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes and the facts that hold between them.

    Attributes:
      nodes: name to node; static during an episode.
      facts: all that is true; whatever is absent is false (in a belief: not believed).
    """

    nodes: Mapping[str, Node]
    facts: frozenset[Fact]

    def holds(self, predicate: str, *args: str) -> bool:
        """Whether a fact is in the graph."""
        return Fact(predicate, args) in self.facts

    def find(self, predicate: str, *pattern: str | None) -> Iterator[Fact]:
        """Yield facts of ``predicate`` whose arguments match ``pattern`` (None matches any), in sorted order."""
        for f in sorted(self.facts):
            if f.predicate != predicate or len(f.args) < len(pattern):
                continue
            if all(p is None or p == a for p, a in zip(pattern, f.args, strict=False)):
                yield f

    def changed(self, add: Iterable[Fact] = (), remove: Iterable[Fact] = ()) -> Graph:
        """Return a graph without ``remove`` and with ``add``."""
        return Graph(self.nodes, (self.facts - frozenset(remove)) | frozenset(add))

    def of_kind(self, kind: str) -> tuple[Node, ...]:
        """Nodes of one kind, sorted by name."""
        return tuple(self.nodes[n] for n in sorted(self.nodes) if self.nodes[n].kind == kind)

    def held_by(self, agent: str) -> str | None:
        """What an agent holds, or None."""
        for f in self.facts:
            if f.predicate == "holding" and f.args[0] == agent:
                return f.args[1]
        return None

    def support_of(self, thing: str) -> Fact | None:
        """The ``ontop`` or ``inside`` fact of a thing, or None while it is held or lies on the floor of no support."""
        found = [f for f in self.facts if f.predicate in ("ontop", "inside") and f.args[0] == thing]
        return min(found) if found else None
