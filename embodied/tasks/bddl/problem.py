"""One activity: typed objects, initial facts and a goal expression, checked for names and arity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from embodied.errors import TaskError, nearest_hint
from embodied.graph.facts import Fact
from embodied.tasks.bddl.sexpr import Sexpr, parse_sexpr, syntax_error

# Predicates with their number of arguments (BEHAVIOR-1K, bddl 3.6.0, domain_omnigibson.bddl).
PREDICATES: Mapping[str, int] = {
    **dict.fromkeys(
        ("cooked", "frozen", "open", "folded", "unfolded", "toggled_on", "hot", "on_fire", "future", "real", "broken"),
        1,
    ),
    **dict.fromkeys(
        (
            *("saturated", "covered", "filled", "contains", "ontop", "nextto", "under", "touching", "inside"),
            *("overlaid", "attached", "draped", "insource", "inroom", "grasped"),
        ),
        2,
    ),
}
_SECTIONS = (":domain", ":objects", ":init", ":goal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A parsed activity.

    Attributes:
      objects: instance name to its type, in file order. A name that ends in ``_*`` stands for any further instance.
      init: initial facts and whether they hold (False under ``not``).
      goal: the goal expression as written; see :func:`~embodied.tasks.bddl.ground.ground_goal`.
    """

    name: str
    domain: str
    objects: Mapping[str, str]
    init: tuple[tuple[Fact, bool], ...]
    goal: Sexpr
    source: str

    def of_type(self, type_name: str) -> tuple[str, ...]:
        """Instances of a type, wildcards left out, in file order."""
        return tuple(n for n, t in self.objects.items() if t == type_name and not n.endswith("_*"))

    def predicates(self) -> frozenset[str]:
        """All predicates used in the initial facts and the goal."""
        return frozenset(f.predicate for f, _ in self.init) | frozenset(_goal_predicates(self.goal))


def parse_problem(text: str, source: str = "problem.bddl") -> Problem:
    """Read one BDDL problem.

    Args:
      text: content of the file.
      source: its name, for messages.

    Raises:
      TaskError: not an expression, a section missing, double or unknown, an object without type, an unknown object or
        predicate in the initial facts. The message names line, column and the mend.
    """
    root = parse_sexpr(text, source)
    if root.head != "define" or len(root.items) < 2 or root.items[1].head != "problem" or len(root.items[1].items) != 2:
        raise syntax_error(
            source, root, "expected (define (problem NAME) (:domain …) (:objects …) (:init …) (:goal …))."
        )
    sections: dict[str, Sexpr] = {}
    for node in root.items[2:]:
        if node.word is not None and not any(c.isalnum() for c in node.word):
            continue  # a lone sign between sections, as in one published activity
        head = node.head
        if head not in _SECTIONS:
            raise syntax_error(source, node, f"unknown section {head or node}. {nearest_hint(head or '', _SECTIONS)}")
        if head in sections:
            raise syntax_error(source, node, f"section {head} stands twice. Merge the two.")
        sections[head] = node
    for head in _SECTIONS:
        if head not in sections:
            raise syntax_error(source, root, f"section ({head} …) is missing. Add it to the definition.")
    domain = sections[":domain"]
    if len(domain.items) != 2 or domain.items[1].word is None:
        raise syntax_error(source, domain, "expected (:domain NAME).")
    objects = _objects(sections[":objects"], source)
    goal = sections[":goal"]
    if len(goal.items) < 2:
        raise syntax_error(source, goal, "expected a goal expression after :goal. Write (:goal (and …)).")
    return Problem(
        name=str(root.items[1].items[1]),
        domain=domain.items[1].word,
        objects=objects,
        init=tuple(_literal(n, objects, source) for n in sections[":init"].items[1:]),
        goal=goal.items[1] if len(goal.items) == 2 else _conjunction(goal),
        source=source,
    )


def _conjunction(section: Sexpr) -> Sexpr:
    """Several goal expressions side by side mean that all of them must hold, as one published activity has it."""
    first = section.items[0]
    return Sexpr(None, (Sexpr("and", (), first.line, first.column), *section.items[1:]), section.line, section.column)


def _objects(section: Sexpr, source: str) -> dict[str, str]:
    found: dict[str, str] = {}
    waiting: list[Sexpr] = []
    items = iter(section.items[1:])
    for node in items:
        if node.word is None:
            raise syntax_error(source, node, "expected an object name or '-', got a list.")
        if node.word != "-":
            waiting.append(node)
            continue
        type_node = next(items, None)
        if type_node is None or type_node.word in (None, "-"):
            raise syntax_error(source, node, "expected a type after '-'.")
        if not waiting:
            raise syntax_error(source, node, f"no object stands before '- {type_node}'.")
        for name in waiting:
            if found.get(str(name), str(type_node)) != str(type_node):
                raise syntax_error(source, name, f"object {name} stands twice, with different types. Rename one.")
            found[str(name)] = str(type_node)
        waiting = []
    if waiting:
        raise syntax_error(source, waiting[0], f"object {waiting[0]} has no type. Write: {waiting[0]} - TYPE.")
    return found


def _literal(node: Sexpr, objects: Mapping[str, str], source: str) -> tuple[Fact, bool]:
    if node.head == "not":
        if len(node.items) != 2:
            raise syntax_error(source, node, "(not …) takes one fact.")
        inner, holds = _literal(node.items[1], objects, source)
        return inner, not holds
    predicate = check_predicate(node, source)
    args = []
    for index, arg in enumerate(node.items[1:]):
        name = str(arg).removeprefix("?")
        if not (predicate == "inroom" and index == 1) and name not in objects:
            raise syntax_error(source, arg, f"no object {name!r}. {nearest_hint(name, objects)}")
        args.append(name)
    return Fact(predicate, tuple(args)), True


def check_predicate(node: Sexpr, source: str) -> str:
    """Return the predicate of an atom.

    Raises:
      TaskError: unknown predicate, wrong number of arguments, or an argument that is a list.
    """
    head = node.head
    if head is None or head not in PREDICATES:
        raise syntax_error(source, node, f"no predicate {head or str(node)!r}. {nearest_hint(head or '', PREDICATES)}")
    if len(node.items) - 1 != PREDICATES[head]:
        raise syntax_error(source, node, f"{head} takes {PREDICATES[head]} arguments, got {len(node.items) - 1}.")
    for arg in node.items[1:]:
        if arg.word is None:
            raise syntax_error(source, arg, f"an argument of {head} must be a name, got a list.")
    return head


def _goal_predicates(node: Sexpr) -> set[str]:
    found = {node.head} if node.head in PREDICATES else set()
    for item in node.items:
        if item.word is None:
            found |= _goal_predicates(item)
    return {str(f) for f in found}


def unsupported(problem: Problem, known: frozenset[str]) -> TaskError:
    """Build the error for an activity with predicates that no world here decides."""
    extra = sorted(problem.predicates() - known)
    return TaskError(
        f"{problem.source}: predicates {', '.join(extra)} are not decided by any world. "
        f"Choose an activity that uses only {', '.join(sorted(known))}."
    )
