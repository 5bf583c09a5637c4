"""Symbolic expressions with their place in the file, so that every error can point at a line and column."""

from __future__ import annotations

import re
from dataclasses import dataclass

from embodied.errors import TaskError

_TOKEN = re.compile(r"(?P<space>\s+)|(?P<comment>;[^\n]*)|(?P<open>\()|(?P<close>\))|(?P<word>[^\s();]+)")
_MAX_DEPTH = 100  # published activities nest 8 deep; this keeps hostile input from exhausting the stack


@dataclass(frozen=True, slots=True)
class Sexpr:
    """A word (``word`` set) or a list (``items`` set), with the 1-based place where it begins."""

    word: str | None
    items: tuple[Sexpr, ...]
    line: int
    column: int

    @property
    def head(self) -> str | None:
        """The word that begins a list, in lower case; None for words and for lists that begin otherwise."""
        return self.items[0].word.lower() if self.items and self.items[0].word is not None else None

    def __str__(self) -> str:
        return self.word if self.word is not None else "(" + " ".join(str(i) for i in self.items) + ")"


@dataclass(slots=True)
class _Open:
    items: list[Sexpr]
    line: int
    column: int


def syntax_error(source: str, node: Sexpr, message: str) -> TaskError:
    """Build an error that points at a node."""
    return TaskError(f"{source}:{node.line}:{node.column}: {message}")


def parse_sexpr(text: str, source: str) -> Sexpr:
    """Read one expression.

    Args:
      text: the whole file; comments run from ``;`` to the end of the line.
      source: name for messages.

    Raises:
      TaskError: unbalanced parentheses, text outside them, nothing at all, or nesting beyond reason.
    """
    stack: list[_Open] = []
    done: Sexpr | None = None
    line, line_start = 1, 0
    for match in _TOKEN.finditer(text):
        kind, token, column = match.lastgroup, match.group(), match.start() - line_start + 1
        place = f"{source}:{line}:{column}"
        if kind == "space":
            breaks = token.count("\n")
            if breaks:
                line += breaks
                line_start = match.start() + token.rindex("\n") + 1
        elif kind == "comment":
            continue
        elif done is not None:
            raise TaskError(
                f"{place}: {token!r} stands after the end of the expression. Remove it, or a ')' before it."
            )
        elif kind == "open":
            if len(stack) >= _MAX_DEPTH:
                raise TaskError(f"{place}: more than {_MAX_DEPTH} open parentheses. Close some of them.")
            stack.append(_Open([], line, column))
        elif not stack:
            raise TaskError(f"{place}: expected '(', got {token[:40]!r}. A file holds one parenthesised expression.")
        elif kind == "word":
            stack[-1].items.append(Sexpr(token, (), line, column))
        else:
            top = stack.pop()
            node = Sexpr(None, tuple(top.items), top.line, top.column)
            if stack:
                stack[-1].items.append(node)
            else:
                done = node
    if stack:
        first = stack[-1]
        raise TaskError(
            f"{source}:{first.line}:{first.column}: this '(' is never closed. Add {len(stack)} ')' at the end."
        )
    if done is None:
        raise TaskError(f"{source}:1:1: the file is empty. It must hold (define (problem …) …).")
    return done
