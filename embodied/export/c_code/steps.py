"""The small program between graph and C text: buffers and the steps that fill them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

CType: TypeAlias = Literal["float", "uint8_t", "int8_t"]


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """Memory for one vector.

    Attributes:
      ctype: C type of an element.
      size: elements.
      outer: C expression of memory that the caller owns; empty for working memory.
    """

    ctype: CType
    size: int
    outer: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class DenseFloat:
    """``y = x W + b`` in float32.

    Attributes:
      x: input.
      y: output.
      weights: shape (inputs, outputs).
      bias: shape (outputs,).
    """

    x: Buffer
    y: Buffer
    weights: np.ndarray
    bias: np.ndarray

    @property
    def reads(self) -> tuple[Buffer, ...]:
        """Buffers that it reads."""
        return (self.x,)


@dataclass(frozen=True, slots=True, eq=False)
class DenseInt8:
    """``y = scale * (x W + b)`` with 32-bit sums; requantized if ``y`` holds integers.

    Attributes:
      x: quantized input.
      y: float or quantized output.
      weights: int8, shape (outputs, inputs).
      bias: int32, the zero point of the input already taken off, shape (outputs,).
      scale: float32, of one unit of the sum, in units of ``y``, shape (outputs,).
      offset: float32 added to a float ``y``, shape (outputs,) or empty.
      zero: zero point of a quantized ``y``.
      low: smallest integer put out.
      high: largest integer put out.
    """

    x: Buffer
    y: Buffer
    weights: np.ndarray
    bias: np.ndarray
    scale: np.ndarray
    offset: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))
    zero: int = 0
    low: int = 0
    high: int = 0

    @property
    def reads(self) -> tuple[Buffer, ...]:
        """Buffers that it reads."""
        return (self.x,)


@dataclass(frozen=True, slots=True, eq=False)
class Elementwise:
    """``y[i] = expression``, where the expression may name ``a``, ``b`` and, as constants, ``p`` and ``q``.

    Attributes:
      y: output.
      expression: C text over one element.
      operands: what each name stands for; constants have one element or one per output.
      count: elements computed.
    """

    y: Buffer
    expression: str
    operands: dict[str, Buffer | np.ndarray]
    count: int

    @property
    def reads(self) -> tuple[Buffer, ...]:
        """Buffers that it reads."""
        return tuple(o for o in self.operands.values() if isinstance(o, Buffer))


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """``y[i] = table[x[i]]``: any function of one quantized number.

    Attributes:
      x: quantized input.
      y: output, float or quantized.
      table: 256 values, by the input read as an unsigned byte.
      count: elements computed.
    """

    x: Buffer
    y: Buffer
    table: np.ndarray
    count: int

    @property
    def reads(self) -> tuple[Buffer, ...]:
        """Buffers that it reads."""
        return (self.x,)


@dataclass(frozen=True, slots=True, eq=False)
class Copy:
    """Copies ``count`` elements of ``x`` from ``source`` on to ``y`` from ``target`` on."""

    x: Buffer
    y: Buffer
    count: int
    source: int = 0
    target: int = 0

    @property
    def reads(self) -> tuple[Buffer, ...]:
        """Buffers that it reads."""
        return (self.x,)


Step: TypeAlias = DenseFloat | DenseInt8 | Elementwise | Table | Copy


def place(steps: list[Step]) -> tuple[dict[Buffer, str], list[tuple[CType, int]]]:
    """Share working memory: buffers whose lives do not overlap get the same slot.

    Args:
      steps: in the order in which they run.

    Returns:
      The C name of every buffer, and type and size of each slot ``m0``, ``m1`` …
    """
    last = {b: index for index, step in enumerate(steps) for b in (*step.reads, step.y)}
    names: dict[Buffer, str] = {}
    slots: list[tuple[CType, int]] = []
    busy: dict[int, Buffer] = {}
    for index, step in enumerate(steps):
        for buffer in (*step.reads, step.y):
            if buffer in names:
                continue
            if buffer.outer:
                names[buffer] = buffer.outer
                continue
            free = [s for s, (ctype, _) in enumerate(slots) if s not in busy and ctype == buffer.ctype]
            slot = max(free, key=lambda s: slots[s][1]) if free else len(slots)
            if not free:
                slots.append((buffer.ctype, 0))
            slots[slot] = (buffer.ctype, max(slots[slot][1], buffer.size))
            busy[slot] = buffer
            names[buffer] = f"m{slot}"
        busy = {s: b for s, b in busy.items() if last[b] > index}
    return names, slots
