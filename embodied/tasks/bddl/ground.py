"""From a goal expression with quantifiers to a goal over facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from embodied.errors import nearest_hint
from embodied.graph.facts import Fact
from embodied.tasks.bddl.problem import PREDICATES, Problem, check_predicate
from embodied.tasks.bddl.sexpr import Sexpr, syntax_error
from embodied.tasks.goal import AllOf, AtLeast, Goal, Holds, Not, any_of

_CONNECTIVES = ("and", "or", "not", "imply", "forall", "exists", "forn", "forpairs", "fornpairs")


def ground_goal(problem: Problem, names: Mapping[str, str] | None = None) -> Goal:
    """Ground the goal of a problem.

    Quantifiers run over the instances of exactly the named type. ``forn`` asks for exactly n; ``forpairs`` for as many
    left and as many right partners as the smaller type has instances; ``fornpairs`` for n of each (semantics of
    BEHAVIOR-1K's bddl 3.6.0).

    Args:
      problem: the parsed activity.
      names: instance to the entity of a scene it stands for; without it the facts keep the names of the file.

    Raises:
      TaskError: an unknown connective, predicate, object, variable or type; with line and column.
    """
    return _Grounder(problem, names or {}).expression(problem.goal, {})


class _Grounder:
    def __init__(self, problem: Problem, names: Mapping[str, str]) -> None:
        self._problem = problem
        self._names = names
        self._source = problem.source

    def expression(self, node: Sexpr, scope: Mapping[str, str]) -> Goal:
        head = node.head
        if head == "and":
            return AllOf(tuple(self.expression(n, scope) for n in node.items[1:]))
        if head == "or":
            return any_of(*(self.expression(n, scope) for n in node.items[1:]))
        if head == "not":
            return Not(self.expression(self._parts(node, 1)[0], scope))
        if head == "imply":
            condition, result = self._parts(node, 2)
            return any_of(Not(self.expression(condition, scope)), self.expression(result, scope))
        if head in ("forall", "exists"):
            variable, body = self._parts(node, 2)
            parts = tuple(g for _, g in self._each(variable, body, scope))
            return AllOf(parts) if head == "forall" else any_of(*parts)
        if head == "forn":
            count, variable, body = self._parts(node, 3)
            parts = tuple(g for _, g in self._each(variable, body, scope))
            return AtLeast(self._number(count), parts, exactly=True)
        if head == "forpairs":
            first, second, body = self._parts(node, 3)
            return self._pairs(first, second, body, scope, None)
        if head == "fornpairs":
            count, first, second, body = self._parts(node, 4)
            return self._pairs(first, second, body, scope, self._number(count))
        return self._atom(node, scope)

    def _atom(self, node: Sexpr, scope: Mapping[str, str]) -> Goal:
        if node.head not in PREDICATES:
            known = (*_CONNECTIVES, *PREDICATES)
            what = node.head or str(node)
            raise syntax_error(
                self._source, node, f"expected a connective or predicate, got {what!r}. {nearest_hint(what, known)}"
            )
        predicate = check_predicate(node, self._source)
        return Holds(Fact(predicate, tuple(self._name(a, predicate, i, scope) for i, a in enumerate(node.items[1:]))))

    def _name(self, node: Sexpr, predicate: str, index: int, scope: Mapping[str, str]) -> str:
        word = str(node).removeprefix("?")
        name = scope.get(word, word)
        if name in self._problem.objects:
            return self._names.get(name, name)
        if predicate == "inroom" and index == 1:
            return self._names.get(name, name)
        known = (*scope, *self._problem.objects)
        raise syntax_error(self._source, node, f"no variable or object {word!r}. {nearest_hint(word, known)}")

    def _each(self, variable: Sexpr, body: Sexpr, scope: Mapping[str, str]) -> list[tuple[str, Goal]]:
        name, type_name = self._typed(variable)
        return [(o, self.expression(body, {**scope, name: o})) for o in self._problem.of_type(type_name)]

    def _pairs(self, first: Sexpr, second: Sexpr, body: Sexpr, scope: Mapping[str, str], count: int | None) -> Goal:
        left_name, left_type = self._typed(first)
        right_name, right_type = self._typed(second)
        left, right = self._problem.of_type(left_type), self._problem.of_type(right_type)
        cell: Callable[[str, str], Goal] = lambda a, b: self.expression(  # noqa: E731
            body, {**scope, left_name: a, right_name: b}
        )
        wanted = min(len(left), len(right)) if count is None else count
        rows = tuple(any_of(*(cell(a, b) for b in right if a != b)) for a in left)
        columns = tuple(any_of(*(cell(a, b) for a in left if a != b)) for b in right)
        return AllOf((AtLeast(wanted, rows), AtLeast(wanted, columns)))

    def _typed(self, node: Sexpr) -> tuple[str, str]:
        words = [i.word for i in node.items]
        if len(words) != 3 or words[1] != "-" or words[0] is None or words[2] is None:
            raise syntax_error(self._source, node, f"expected (?NAME - TYPE), got {node}.")
        types = set(self._problem.objects.values())
        if words[2] not in types:
            raise syntax_error(self._source, node, f"no object has type {words[2]!r}. {nearest_hint(words[2], types)}")
        return words[0].removeprefix("?"), words[2]

    def _parts(self, node: Sexpr, count: int) -> tuple[Sexpr, ...]:
        parts = node.items[1:]
        if len(parts) != count:
            raise syntax_error(self._source, node, f"({node.head} …) takes {count} parts, got {len(parts)}.")
        return parts

    def _number(self, node: Sexpr) -> int:
        inner = node.items[0] if len(node.items) == 1 else node
        if inner.word is None or not inner.word.isascii() or not inner.word.isdigit():
            raise syntax_error(self._source, node, f"expected a count such as (2), got {node}.")
        return int(inner.word[:9])
