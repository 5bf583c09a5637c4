"""Where the packages of a shipped policy lie. No weights are read here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from embodied.errors import UnknownNameError, nearest_hint

FOLDER = Path(__file__).parent
RELEASE_KEY = FOLDER / "release_key.pub"
"""Public key that signs every package of this folder; the private one is not in the repository."""
PRECISION = "fp32"


@dataclass(frozen=True, slots=True)
class ShippedPolicy:
    """One policy and version, in one file per precision: ``<name>@<version>.<precision>.policy``.

    Attributes:
      name: for instance ``quad-waypoint``.
      version: the major version of its contract.
    """

    name: str
    version: int

    @property
    def precisions(self) -> tuple[str, ...]:
        """Precisions that are there, fp32 first."""
        head, tail = f"{self.name}@{self.version}.", ".policy"
        found = [p.name[len(head) : -len(tail)] for p in FOLDER.glob(f"{head}*{tail}")]
        return tuple(sorted(found, key=lambda p: (p != PRECISION, p)))

    def path(self, precision: str = PRECISION) -> Path:
        """Return the file of a precision.

        Raises:
          UnknownNameError: there is none.
        """
        if precision not in self.precisions:
            raise UnknownNameError(
                f"{self.name}@{self.version}: not shipped as {precision!r}. {nearest_hint(precision, self.precisions)}"
            )
        return FOLDER / f"{self.name}@{self.version}.{precision}.policy"


QUAD_HOVER = ShippedPolicy("quad-hover", 1)
QUAD_WAYPOINT = ShippedPolicy("quad-waypoint", 1)
REACH_AND_GRASP = ShippedPolicy("reach-and-grasp", 1)
BASE_NAVIGATION = ShippedPolicy("base-navigation", 1)
COMPACT_PLANNER = ShippedPolicy("compact-planner", 1)
