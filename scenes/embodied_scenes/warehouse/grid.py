"""Cells and metres: a grid of cells laid on the floor, row 0 at the far end (largest y), column 0 at x = 0."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

Cell = tuple[int, int]
CELL_M = 1.2  # a loaded robot turns within it (see carrier.py), and passes a carrier in the next one


class CellKind(IntEnum):
    """What stands in a cell. Everything from ``FREE`` on can be driven over."""

    WALL = 0
    RACK = 1
    FREE = 2
    SLOT = 3
    """Beside a rack: goal cells of POGEMA (``$``), endpoints and service points of the Robot Runners (``E``, ``S``)."""
    STATION = 4
    """Where robots start and goods leave: start cells of POGEMA (``@``)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GridMap:
    """A named map of square cells.

    Attributes:
      kinds: (rows, cols) :class:`CellKind` values.
      cell_m: edge of a cell.
    """

    name: str
    kinds: NDArray[np.uint8]
    cell_m: float = CELL_M

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.kinds.shape[0])

    @property
    def cols(self) -> int:
        """Number of columns."""
        return int(self.kinds.shape[1])

    @property
    def size_m(self) -> tuple[float, float]:
        """Extent along x and y."""
        return self.cols * self.cell_m, self.rows * self.cell_m

    @property
    def free(self) -> NDArray[np.bool_]:
        """(rows, cols) True where a robot may drive."""
        return self.kinds >= int(CellKind.FREE)

    def center_m(self, cell: Cell) -> tuple[float, float]:
        """World x, y of the middle of a cell."""
        row, col = cell
        return (col + 0.5) * self.cell_m, (self.rows - row - 0.5) * self.cell_m

    def cell_at(self, x_m: float, y_m: float) -> Cell | None:
        """Cell that holds a point of the world's floor, or None outside the map."""
        row = self.rows - 1 - int(np.floor(y_m / self.cell_m))
        col = int(np.floor(x_m / self.cell_m))
        return (row, col) if 0 <= row < self.rows and 0 <= col < self.cols else None

    def cells(self, kind: CellKind) -> list[Cell]:
        """All cells of one kind, row by row."""
        return [(int(r), int(c)) for r, c in np.argwhere(self.kinds == int(kind))]

    def is_free(self, cell: Cell) -> bool:
        """Whether a cell lies on the map and can be driven over."""
        row, col = cell
        return 0 <= row < self.rows and 0 <= col < self.cols and bool(self.kinds[row, col] >= int(CellKind.FREE))


def merge_rectangles(mask: NDArray[np.bool_]) -> list[tuple[int, int, int, int]]:
    """Cover the True cells of a mask with few rectangles.

    Args:
      mask: (rows, cols).

    Returns:
      Disjoint (row0, col0, row1, col1) with exclusive ends that cover exactly the True cells: each starts at the first
      uncovered cell and grows along its row, then down.
    """
    left = mask.copy()
    found: list[tuple[int, int, int, int]] = []
    rows, cols = left.shape
    for r in range(rows):
        for c in range(cols):
            if not left[r, c]:
                continue
            c1 = c + 1
            while c1 < cols and left[r, c1]:
                c1 += 1
            r1 = r + 1
            while r1 < rows and left[r1, c:c1].all():
                r1 += 1
            left[r:r1, c:c1] = False
            found.append((r, c, r1, c1))
    return found
