"""A graph with indexes that survive changes, so that a search asks it thousands of times a second."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from embodied.graph.facts import Fact, Graph, Node

_Key = str | tuple[str, str]
_NONE: frozenset[Fact] = frozenset()


class IndexedGraph(Graph):
    """A :class:`Graph` whose look-ups cost what they find, not the number of facts.

    Args:
      nodes: as in :class:`Graph`.
      facts: as in :class:`Graph`.
      index: facts by predicate and by (predicate, first argument); built from ``facts`` if not given.
    """

    __slots__ = ("_index",)

    _index: dict[_Key, frozenset[Fact]]

    def __init__(
        self, nodes: Mapping[str, Node], facts: frozenset[Fact], index: dict[_Key, frozenset[Fact]] | None = None
    ) -> None:
        super().__init__(nodes, facts)
        if index is None:
            groups: dict[_Key, set[Fact]] = {}
            for f in facts:
                for key in _keys(f):
                    groups.setdefault(key, set()).add(f)
            index = {key: frozenset(group) for key, group in groups.items()}
        object.__setattr__(self, "_index", index)

    @classmethod
    def of(cls, graph: Graph) -> IndexedGraph:
        """Index a graph; an indexed one is returned as it is."""
        return graph if isinstance(graph, IndexedGraph) else cls(graph.nodes, graph.facts)

    def find(self, predicate: str, *pattern: str | None) -> Iterator[Fact]:
        """Yield the matching facts in sorted order."""
        key: _Key = (predicate, pattern[0]) if pattern and pattern[0] is not None else predicate
        found = self._index.get(key, _NONE)
        matches = [
            f
            for f in found
            if len(f.args) >= len(pattern) and all(p is None or p == a for p, a in zip(pattern, f.args, strict=False))
        ]
        yield from sorted(matches)

    def changed(self, add: Iterable[Fact] = (), remove: Iterable[Fact] = ()) -> IndexedGraph:
        """Return a graph without ``remove`` and with ``add``; only the touched index entries are rebuilt."""
        added, removed = frozenset(add) - self.facts, (frozenset(remove) & self.facts) - frozenset(add)
        if not added and not removed:
            return self
        index = dict(self._index)
        for f in removed:
            for key in _keys(f):
                index[key] = index[key] - {f}
        for f in added:
            for key in _keys(f):
                index[key] = index.get(key, _NONE) | {f}
        return IndexedGraph(self.nodes, (self.facts - removed) | added, index)

    def held_by(self, agent: str) -> str | None:
        """What an agent holds, or None."""
        found = self._index.get(("holding", agent), _NONE)
        return min(found).args[1] if found else None

    def support_of(self, thing: str) -> Fact | None:
        """The ``ontop`` or ``inside`` fact of a thing, or None."""
        found = self._index.get(("ontop", thing), _NONE) | self._index.get(("inside", thing), _NONE)
        return min(found) if found else None


def _keys(f: Fact) -> tuple[_Key, ...]:
    return (f.predicate, (f.predicate, f.args[0])) if f.args else (f.predicate,)
