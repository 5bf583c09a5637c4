"""Gemm and MatMul: floats, or bytes with 32-bit sums as ONNX Runtime's quantized kernels compute them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from embodied.export.c_code.graph import Node
from embodied.export.c_code.steps import Buffer, DenseFloat, DenseInt8
from embodied.export.c_code.values import INTEGERS, Curve, Quantized, Sums, Value, Vector, Weight, as_constant

if TYPE_CHECKING:
    from embodied.export.c_code.lower import Lowering


def lower(lowering: Lowering, node: Node) -> Value:
    """Lower a Gemm or MatMul with constant weights.

    Raises:
      UnsupportedGraphError: weights that depend on the input, transposed inputs, or a shape that does not fit.
    """
    attributes = node.attributes
    if attributes.get("transA", 0) or attributes.get("alpha", 1.0) != 1.0 or attributes.get("beta", 1.0) != 1.0:
        raise node.refuse("transA, alpha and beta must have their defaults")
    x, w = (lowering.values[i] for i in node.inputs[:2])
    bias = lowering.values[node.inputs[2]] if len(node.inputs) > 2 and node.inputs[2] else None
    floats = as_constant(w)
    if floats is None or floats.ndim != 2:
        raise node.refuse("its second input must be a constant matrix")
    is_transposed = bool(attributes.get("transB", 0))
    matrix = np.asarray(floats.T if is_transposed else floats, np.float32)
    shape = x.integers.shape if isinstance(x, Weight) else x.shape
    if len(shape) != 1 or shape[0] != matrix.shape[0]:
        raise node.refuse(f"a sample of shape {tuple(shape)} meets weights for {matrix.shape[0]} numbers")
    if not np.isfinite(matrix).all():
        raise node.refuse("weights are not finite")
    offset = _bias(node, bias, matrix.shape[1])
    if isinstance(x, Curve) and x.is_plain and isinstance(w, Weight):
        return _sums(node, x.of, w, bias, offset, is_transposed)
    vector = lowering.floats(x, f"Input of node {node.label}")
    buffer = Buffer("float", matrix.shape[1])
    lowering.steps.append(DenseFloat(vector.buffer, buffer, matrix, offset))
    return Vector((matrix.shape[1],), buffer)


def _bias(node: Node, bias: Value | None, outputs: int) -> np.ndarray:
    if bias is None:
        return np.zeros(outputs, np.float32)
    constant = as_constant(bias)
    if constant is None or constant.size not in (1, outputs) or not np.isfinite(constant).all():
        raise node.refuse(f"its bias must be a finite constant of {outputs} numbers")
    return np.ascontiguousarray(np.broadcast_to(constant.reshape(-1), (outputs,)), np.float32)


def _sums(node: Node, x: Quantized, w: Weight, bias: Value | None, offset: np.ndarray, is_transposed: bool) -> Sums:
    """Plan ``sum (x - zero) w + bias`` in integers."""
    if w.integers.dtype != np.int8 or w.zero.any():
        raise node.refuse("quantized weights must be int8 and symmetric (zero point 0)")
    if w.scale.size > 1 and w.axis != (0 if is_transposed else 1):
        raise node.refuse("weights have one scale per input; expected one, or one per output")
    weights = np.ascontiguousarray(w.integers if is_transposed else w.integers.T)
    unit = np.broadcast_to(x.scale * w.scale, (len(weights),)).astype(np.float32)
    whole = np.zeros(len(weights), np.int64)
    # An int32 bias is in units of the sums by convention; only then may it join them.
    if isinstance(bias, Weight) and np.allclose(np.broadcast_to(bias.scale, unit.shape), unit, rtol=1e-4, atol=0):
        whole += np.broadcast_to(bias.integers.reshape(-1), whole.shape).astype(np.int64)
        offset = np.zeros(0, np.float32)
    elif not offset.any():
        offset = np.zeros(0, np.float32)
    whole -= x.zero * weights.sum(axis=1, dtype=np.int64)
    if (np.abs(whole) + 255 * np.abs(weights.astype(np.int64)).sum(axis=1) >= 2**31).any():
        raise node.refuse("its sums do not fit into 32 bits")
    return Sums(of=x, shape=(len(weights),), weights=weights, bias=whole.astype(np.int32), unit=unit, offset=offset)


def as_floats(lowering: Lowering, sums: Sums) -> Vector:
    """Write sums out as floats."""
    buffer = Buffer("float", len(sums.weights))
    lowering.steps.append(DenseInt8(sums.of.buffer, buffer, sums.weights, sums.bias, sums.unit, sums.offset))
    return Vector(sums.shape, buffer)


def requantized(lowering: Lowering, sums: Sums, scale: np.float32, zero: int, dtype: str, *, relu: bool) -> Quantized:
    """Write sums out as bytes, never touching floats.

    Args:
      lowering: where the step goes.
      sums: without a float offset.
      scale: of the output.
      zero: of the output.
      dtype: of the output.
      relu: cut off below zero.
    """
    ctype, low, high = INTEGERS[dtype]
    buffer = Buffer(ctype, len(sums.weights))
    ratio = (sums.unit / scale).astype(np.float32)  # in this order and precision ONNX Runtime computes it
    step = DenseInt8(
        sums.of.buffer,
        buffer,
        sums.weights,
        sums.bias,
        ratio,
        zero=zero,
        low=max(low, zero) if relu else low,
        high=high,
    )
    lowering.steps.append(step)
    return Quantized(sums.shape, buffer, scale, zero)
