"""One figure of a study: a measured value, its interval, its target and whether it holds."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from embodied.errors import EmbodiedError

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
}
_TARGET = re.compile(r"^(<=|>=|<|>|=)\s*(-?\d+(?:\.\d+)?(?:e-?\d+)?)$")


class StudyError(EmbodiedError):
    """A study was declared or asked for wrongly."""


def holds(value: float, target: str) -> bool:
    """Tell whether ``value`` meets ``target``, for instance ``"<= 1.15"``. NaN meets no target.

    Raises:
      StudyError: the target is not a comparison sign and a number.
    """
    match = _TARGET.match(target.strip())
    if match is None:
        raise StudyError(f"Target {target!r} is not understood; expected a sign and a number, for instance '<= 1.15'.")
    return not math.isnan(value) and _COMPARE[match[1]](value, float(match[2]))


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that a study measured.

    Attributes:
      name: what was measured, in words.
      value: the measured value, in ``unit``; NaN when it could not be measured.
      low: lower end of the 95 % interval, or None for an exact figure.
      high: upper end.
      target: what ``value`` must be, a sign and a number: ``"<= 1.15"``.
      n: how many samples stand behind it.
      unit: short unit, empty for a ratio or a share.
      holds: follows from ``value`` and ``target``; a given value that contradicts them is an error.
      note: a few words on how, or why it could not be measured.
    """

    name: str
    value: float
    low: float | None
    high: float | None
    target: str
    n: int
    unit: str = ""
    holds: bool | None = None
    note: str = ""

    def __post_init__(self) -> None:
        """Compute ``holds``."""
        met = holds(self.value, self.target)
        if self.holds is not None and self.holds != met:
            raise StudyError(
                f"Figure {self.name!r}: {self.value} against {self.target!r} cannot be holds={self.holds}."
            )
        object.__setattr__(self, "holds", met)
