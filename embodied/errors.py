"""The errors a user can meet. Each message says what happened, what was got, what was expected and how to mend it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class EmbodiedError(Exception):
    """Base of every error raised on purpose by this project."""


class UnknownNameError(EmbodiedError):
    """A name was looked up that its registry does not hold."""


class DuplicateNameError(EmbodiedError):
    """A name was registered twice."""


class MissingExtraError(EmbodiedError):
    """An optional dependency is not installed."""


class SceneError(EmbodiedError):
    """A scene description is invalid or cannot be built."""


class TaskError(EmbodiedError):
    """A task is invalid, unsolvable where it must be solvable, or does not fit its scene."""


class WorldError(EmbodiedError):
    """A world was used in a way its state does not allow, or its physics failed."""


class RobotError(EmbodiedError):
    """A robot refused a command or is unknown to the world."""


class SkillError(EmbodiedError):
    """A skill call names an unknown skill or carries wrong arguments."""


class PlannerError(EmbodiedError):
    """A planner could not answer; counted as an outcome of its own."""


class PrivilegedReadError(EmbodiedError):
    """A planner that may not see the truth read it."""


class LogError(EmbodiedError):
    """An episode log is missing, torn or of another version."""


def nearest_hint(name: str, known: Iterable[str]) -> str:
    """Say which known names come closest to ``name``.

    Args:
      name: what was asked for.
      known: the names that exist.

    Returns:
      A sentence for the end of an error message.
    """
    import difflib

    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if close:
        return f"Did you mean {' or '.join(repr(c) for c in close)}?"
    shown = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
    return f"Known: {shown}." if names else "None is registered."


def require(module: str, extra: str) -> Any:  # noqa: ANN401 -- a module
    """Import an optional module, or say how to install it.

    Args:
      module: dotted module name.
      extra: the extra of ``embodied-stack`` that brings it.

    Returns:
      The imported module.

    Raises:
      MissingExtraError: the module is not installed.
    """
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{module} is needed here and is not installed ({error}). "
            f"Install it with: pip install 'embodied-stack[{extra}]'"
        ) from error
