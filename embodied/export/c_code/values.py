"""What a tensor of the graph is while the C program is built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from embodied.export.c_code.graph import Node
from embodied.export.c_code.steps import Buffer, CType

Shape: TypeAlias = tuple[int, ...]
INTEGERS: dict[str, tuple[CType, int, int]] = {"uint8": ("uint8_t", 0, 255), "int8": ("int8_t", -128, 127)}
"""C type, lowest and highest value of the integers that activations may have."""


@dataclass(frozen=True, slots=True, eq=False)
class Vector:
    """Floats in a buffer, of a shape without the batch axis."""

    shape: Shape
    buffer: Buffer


@dataclass(frozen=True, slots=True, eq=False)
class Quantized:
    """Integers in a buffer: the number meant is ``scale * (integer - zero)``."""

    shape: Shape
    buffer: Buffer
    scale: np.float32
    zero: int

    def meaning(self) -> np.ndarray:
        """Return the float32 behind each of the 256 bytes, by the byte read without sign."""
        integers = np.arange(256, dtype=np.uint8).view(np.uint8 if self.buffer.ctype == "uint8_t" else np.int8)
        return (integers.astype(np.int32) - self.zero).astype(np.float32) * self.scale


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A function of a quantized vector, not computed yet: 256 float32 values; a dequantized vector is the plainest."""

    of: Quantized
    table: np.ndarray
    is_plain: bool

    @property
    def shape(self) -> Shape:
        """Shape without the batch axis."""
        return self.of.shape


@dataclass(frozen=True, slots=True, eq=False)
class Weight:
    """A constant stored as integers, with one scale or one per index of ``axis``."""

    integers: np.ndarray
    scale: np.ndarray
    zero: np.ndarray
    axis: int

    def floats(self) -> np.ndarray:
        """Return the float32 values, as DequantizeLinear computes them."""
        shape = [1] * self.integers.ndim
        if self.scale.size > 1:
            shape[self.axis] = self.scale.size
        distance = self.integers.astype(np.int32) - self.zero.astype(np.int32).reshape(shape)
        return distance.astype(np.float32) * self.scale.reshape(shape)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Sums:
    """An integer matrix product that waits to learn whether its reader wants floats or bytes.

    Attributes:
      of: the quantized input.
      shape: of a sample.
      weights: int8, shape (outputs, inputs).
      bias: int32, shape (outputs,), the zero point of the input taken off.
      unit: float32 value of one unit of the sums, shape (outputs,).
      offset: float32 added after scaling, shape (outputs,) or empty.
      has_relu: negative sums count as zero.
    """

    of: Quantized
    shape: Shape
    weights: np.ndarray
    bias: np.ndarray
    unit: np.ndarray
    offset: np.ndarray
    has_relu: bool = False


Value: TypeAlias = Vector | Quantized | Curve | Weight | Sums | np.ndarray


def as_constant(value: Value) -> np.ndarray | None:
    """Return the float32 array behind a constant, or None for what depends on the input."""
    if isinstance(value, Weight):
        return value.floats()
    return value if isinstance(value, np.ndarray) else None


def scalar_scale(node: Node, scale: Value, zero: Value | None) -> tuple[np.float32, int, str]:
    """Return scale, zero point and integer type of a quantized activation.

    Raises:
      UnsupportedGraphError: not constant, not one number, not positive, or not 8 bits wide.
    """
    if not isinstance(scale, np.ndarray) or scale.size != 1 or not isinstance(zero, np.ndarray | None):
        raise node.refuse("scale and zero point must be one constant each")
    # Without a zero point the attribute of opset 21 may name another type than ONNX's default, uint8 (2).
    is_named = zero is None and node.attributes.get("output_dtype", 0) not in (0, 2)
    dtype = "of a named type" if is_named else "uint8" if zero is None else str(zero.dtype)
    if dtype not in INTEGERS or scale.dtype != np.float32:
        raise node.refuse(f"activations are {dtype} with a {scale.dtype} scale; expected 8 bits and float32")
    unit = np.float32(scale.reshape(-1)[0])
    if not (np.isfinite(unit) and unit > 0):
        raise node.refuse(f"scale {unit}; expected a positive number")
    return unit, 0 if zero is None else int(zero.reshape(-1)[0]), dtype
