"""From the nodes of a graph to the steps of a C program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from embodied.export.c_code import dense
from embodied.export.c_code.graph import Graph, Node, UnsupportedGraphError
from embodied.export.c_code.literal import c_float
from embodied.export.c_code.steps import Buffer, Copy, Elementwise, Step, Table
from embodied.export.c_code.values import (
    INTEGERS,
    Curve,
    Quantized,
    Sums,
    Value,
    Vector,
    Weight,
    as_constant,
    scalar_scale,
)

UNARY: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "Relu": ("a > 0.0f ? a : 0.0f", lambda x: np.maximum(x, 0)),
    "Tanh": ("tanhf(a)", np.tanh),
    "Sigmoid": ("1.0f / (1.0f + expf(-a))", lambda x: 1 / (1 + np.exp(-x))),
    "Neg": ("-a", np.negative),
    "Abs": ("fabsf(a)", np.abs),
}
"""C text of a function of one number, and the function in float64 for tables."""

BINARY = {
    "Add": "a + b",
    "Sub": "a - b",
    "Mul": "a * b",
    "Div": "a / b",
    "Min": "a < b ? a : b",
    "Max": "a > b ? a : b",
}


class Lowering:
    """Walks a graph once and collects steps.

    Attributes:
      graph: what is walked.
      steps: what was collected.
      values: by tensor name.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.steps: list[Step] = []
        self.values: dict[str, Value] = dict(graph.constants)

    def run(self) -> list[Step]:
        """Lower every node and copy the graph's outputs to the caller's memory.

        Raises:
          UnsupportedGraphError: an operation has no C form; the message names node and operator.
        """
        for index, (name, shape) in enumerate(self.graph.inputs):
            self.values[name] = Vector(shape, Buffer("float", int(np.prod(shape)), outer=f"inputs[{index}]"))
        for node in self.graph.nodes:
            for name in node.inputs:
                if name and name not in self.values:
                    raise node.refuse(f"its input {name!r} was not computed before it")
            if node.op == "Split":
                self.values.update(self._split(node))
            else:
                self.values[node.outputs[0]] = self._node(node)
        for index, name in enumerate(self.graph.outputs):
            vector = self.floats(self.values[name], f"Output {name!r}")
            target = Buffer("float", vector.buffer.size, outer=f"outputs[{index}]")
            self.steps.append(Copy(vector.buffer, target, int(np.prod(vector.shape))))
        return self.steps

    def floats(self, value: Value, owner: str) -> Vector:
        """Return a value as floats in a buffer, computing it now if that was put off.

        Raises:
          UnsupportedGraphError: it is a constant or holds integers.
        """
        if isinstance(value, Curve):
            buffer = Buffer("float", value.of.buffer.size)
            count = int(np.prod(value.shape))
            if value.is_plain:  # one multiplication costs less memory than a table
                text = f"(float)((int)a - ({value.of.zero})) * p"
                operands = {"a": value.of.buffer, "p": np.full(1, value.of.scale, np.float32)}
                self.steps.append(Elementwise(buffer, text, operands, count))
            else:
                self.steps.append(Table(value.of.buffer, buffer, value.table, count))
            return Vector(value.shape, buffer)
        if isinstance(value, Sums):
            vector = dense.as_floats(self, value)
            return self._apply(vector, UNARY["Relu"][0]) if value.has_relu else vector
        if isinstance(value, Vector):
            return value
        raise UnsupportedGraphError(f"{owner} is {type(value).__name__.lower()}; expected floats that depend on input.")

    def _node(self, node: Node) -> Value:
        if node.op in UNARY:
            return self._unary(node, *UNARY[node.op])
        if node.op in BINARY:
            return self._binary(node)
        handler = {
            "Elu": self._elu,
            "LeakyRelu": self._leaky,
            "Clip": self._clip,
            "Identity": self._same,
            "Flatten": self._same,
            "Reshape": self._reshape,
            "Concat": self._concat,
            "Slice": self._slice,
            "QuantizeLinear": self._quantize,
            "DequantizeLinear": self._dequantize,
        }.get(node.op)
        if handler is not None:
            return handler(node)
        if node.op in ("Gemm", "MatMul"):
            return dense.lower(self, node)
        known = sorted(
            {*UNARY, *BINARY, "Elu", "LeakyRelu", "Clip", "Gemm", "MatMul", "Reshape", "Concat", "Split", "Slice"}
        )
        raise node.refuse(
            f"the emitter knows {', '.join(known)} and (De)QuantizeLinear. Use such layers, precision fp32 or "
            f"int8-static, or run the package under `embodied-edge`."
        )

    def _optional(self, node: Node, position: int) -> Value | None:
        return self.values[node.inputs[position]] if len(node.inputs) > position and node.inputs[position] else None

    def _unary(self, node: Node, text: str, function: Callable[[np.ndarray], np.ndarray]) -> Value:
        value = self.values[node.inputs[0]]
        if isinstance(value, Curve):
            with np.errstate(over="ignore"):  # exp(-x) may overflow to inf, and 1 / inf is the right answer
                return Curve(value.of, function(value.table.astype(np.float64)).astype(np.float32), is_plain=False)
        if isinstance(value, Sums) and node.op == "Relu":
            return replace(value, has_relu=True)
        return self._apply(self.floats(value, f"Input of node {node.label}"), text)

    def _apply(self, vector: Vector, text: str) -> Vector:
        buffer = Buffer("float", vector.buffer.size)
        self.steps.append(Elementwise(buffer, text, {"a": vector.buffer}, int(np.prod(vector.shape))))
        return Vector(vector.shape, buffer)

    def _elu(self, node: Node) -> Value:
        alpha = np.float32(node.attributes.get("alpha", 1.0))
        text = f"a > 0.0f ? a : {c_float(alpha)} * (expf(a) - 1.0f)"
        return self._unary(node, text, lambda x: np.where(x > 0, x, float(alpha) * np.expm1(np.minimum(x, 0))))

    def _leaky(self, node: Node) -> Value:
        slope = np.float32(node.attributes.get("alpha", 0.01))
        return self._unary(node, f"a > 0.0f ? a : {c_float(slope)} * a", lambda x: np.where(x > 0, x, x * float(slope)))

    def _clip(self, node: Node) -> Value:
        bounds: list[np.float32 | None] = []
        for position in (1, 2):
            limit = self._optional(node, position)
            bound = None if limit is None else as_constant(limit)
            if limit is not None and (bound is None or bound.size != 1 or np.isnan(bound).any()):
                raise node.refuse("its limits must be constants, one number each")
            bounds.append(None if bound is None else np.float32(bound.reshape(-1)[0]))
        low, high = bounds
        text = "a"
        if low is not None and low > -np.inf:
            text = f"a < {c_float(low)} ? {c_float(low)} : a"
        if high is not None and high < np.inf:
            inner = text if text == "a" else f"({text})"
            text = f"a > {c_float(high)} ? {c_float(high)} : {inner}"
        return self._unary(
            node, text, lambda x: np.clip(x, -np.inf if low is None else low, np.inf if high is None else high)
        )

    def _binary(self, node: Node) -> Value:
        if len(node.inputs) != 2:
            raise node.refuse(f"it has {len(node.inputs)} inputs; expected two")
        values = [self.values[i] for i in node.inputs]
        constants = [as_constant(v) for v in values]
        vectors = [
            None if c is not None else self.floats(v, f"Input of node {node.label}")
            for v, c in zip(values, constants, strict=True)
        ]
        # The reader folds nodes of constants alone; a weight left quantized may still meet another one.
        shapes = [v.shape for v in vectors if v is not None]
        if not shapes or any(s != shapes[0] for s in shapes):
            raise node.refuse(f"its operands have shapes {shapes}; expected one shape, or a constant beside it")
        operands: dict[str, Buffer | np.ndarray] = {}
        for letter, vector, constant in zip("ab", vectors, constants, strict=True):
            operands[letter] = vector.buffer if vector is not None else _fit(node, constant, shapes[0])
        count = int(np.prod(shapes[0]))
        buffer = Buffer("float", count)
        self.steps.append(Elementwise(buffer, BINARY[node.op], operands, count))
        return Vector(shapes[0], buffer)

    def _same(self, node: Node) -> Value:
        value = self.values[node.inputs[0]]
        if node.op == "Flatten" and node.attributes.get("axis", 1) != 1:
            raise node.refuse("axis must be 1, the one after the batch")
        if node.op == "Flatten" and isinstance(value, Vector):
            return Vector((int(np.prod(value.shape)),), value.buffer)
        return value

    def _reshape(self, node: Node) -> Value:
        value, target = self.values[node.inputs[0]], self.values[node.inputs[1]]
        vector = self.floats(value, f"Input of node {node.label}")
        count = int(np.prod(vector.shape))
        if not isinstance(target, np.ndarray) or len(target) < 2 or int(target[0]) not in (-1, 0):
            raise node.refuse("the new shape must be constant and begin with the batch axis, -1 or 0")
        rest = [int(d) for d in target[1:]]
        if -1 in rest:
            rest[rest.index(-1)] = count // max(1, -int(np.prod(rest)))
        if min(rest) < 1 or int(np.prod(rest)) != count:
            raise node.refuse(f"shape {rest} does not hold the {count} numbers of one sample")
        return Vector(tuple(rest), vector.buffer)

    def _concat(self, node: Node) -> Value:
        parts = [self.floats(self.values[i], f"Input of node {node.label}") for i in node.inputs]
        if node.attributes.get("axis") not in (1, -1) or any(len(p.shape) != 1 for p in parts):
            raise node.refuse("only vectors can be joined, on the axis after the batch")
        buffer = Buffer("float", sum(p.shape[0] for p in parts))
        at = 0
        for part in parts:
            self.steps.append(Copy(part.buffer, buffer, part.shape[0], target=at))
            at += part.shape[0]
        return Vector((at,), buffer)

    def _divisible(self, node: Node) -> Vector | Curve:
        """Return the vector that a node takes parts of; bytes stay bytes."""
        value = self.values[node.inputs[0]]
        if not isinstance(value, Curve):
            value = self.floats(value, f"Input of node {node.label}")
        if len(value.shape) != 1:
            raise node.refuse(f"a sample of shape {value.shape}; only vectors can be divided")
        return value

    def _part(self, value: Vector | Curve, at: int, count: int) -> Vector | Curve:
        whole = value.of.buffer if isinstance(value, Curve) else value.buffer
        part = Buffer(whole.ctype, count)
        self.steps.append(Copy(whole, part, count, source=at))
        if isinstance(value, Curve):
            return replace(value, of=replace(value.of, shape=(count,), buffer=part))
        return Vector((count,), part)

    def _split(self, node: Node) -> dict[str, Value]:
        value, sizes = self._divisible(node), self._optional(node, 1)
        parts, total = len(node.outputs), value.shape[0]
        if node.attributes.get("axis", 0) not in (1, -1):
            raise node.refuse("only vectors can be split, on the axis after the batch")
        step = -(-total // parts)  # without sizes the last part is the smaller one
        counts = [min(step, total - i * step) for i in range(parts)]
        if sizes is not None:
            counts = [int(n) for n in np.asarray(as_constant(sizes)).reshape(-1)]
        if len(counts) != parts or min(counts) < 1 or sum(counts) != total:
            raise node.refuse(f"parts of {counts} do not make up {total} numbers")
        starts = np.cumsum([0, *counts[:-1]])
        return {n: self._part(value, int(a), c) for n, a, c in zip(node.outputs, starts, counts, strict=True)}

    def _slice(self, node: Node) -> Value:
        value = self._divisible(node)
        limits = [self._optional(node, i) for i in range(1, 5)]
        if not all((isinstance(v, np.ndarray) and v.size == 1) or v is None for v in limits):
            raise node.refuse("start, end, axis and step must be constants, one number each")
        start, end, axis, step = (None if v is None else int(np.asarray(v).reshape(-1)[0]) for v in limits)
        if axis not in (1, -1) or step not in (None, 1):
            raise node.refuse("only whole pieces of a vector can be taken, on the axis after the batch")
        at, stop, _ = slice(start, end).indices(value.shape[0])
        if stop <= at:
            raise node.refuse(f"the piece from {start} to {end} of {value.shape[0]} numbers is empty")
        return self._part(value, at, stop - at)

    def _quantize(self, node: Node) -> Value:
        value = self.values[node.inputs[0]]
        scale, zero, dtype = scalar_scale(node, self.values[node.inputs[1]], self._optional(node, 2))
        ctype, low, high = INTEGERS[dtype]
        if isinstance(value, Sums) and not value.offset.size:
            return dense.requantized(self, value, scale, zero, dtype, relu=value.has_relu)
        if isinstance(value, Curve):
            if value.is_plain and (value.of.scale, value.of.zero, value.of.buffer.ctype) == (scale, zero, ctype):
                return value.of
            table = np.clip(np.rint(value.table / scale) + zero, low, high).astype(dtype)
            buffer = Buffer(ctype, value.of.buffer.size)
            self.steps.append(Table(value.of.buffer, buffer, table, int(np.prod(value.shape))))
            return Quantized(value.shape, buffer, scale, zero)
        vector = self.floats(value, f"Input of node {node.label}")
        buffer = Buffer(ctype, vector.buffer.size)
        text = f"quantize(a, p, {zero}, {low}, {high})"
        operands = {"a": vector.buffer, "p": np.full(1, scale, np.float32)}
        self.steps.append(Elementwise(buffer, f"({ctype}){text}", operands, int(np.prod(vector.shape))))
        return Quantized(vector.shape, buffer, scale, zero)

    def _dequantize(self, node: Node) -> Value:
        value = self.values[node.inputs[0]]
        scale = self.values[node.inputs[1]]
        zero = self._optional(node, 2)
        if isinstance(value, Quantized):
            unit, point, dtype = scalar_scale(node, scale, zero)
            if INTEGERS[dtype][0] != value.buffer.ctype or unit != value.scale or point != value.zero:
                raise node.refuse("it undoes another quantization than the one that made its input")
            return Curve(value, value.meaning(), is_plain=True)
        if not isinstance(value, np.ndarray) or not isinstance(scale, np.ndarray):
            raise node.refuse("it must read a constant, or what a QuantizeLinear made")
        if value.dtype not in (np.int8, np.uint8, np.int32) or node.attributes.get("block_size", 0):
            raise node.refuse(f"constants are {value.dtype}; expected int8, uint8 or int32 without blocks")
        points = np.zeros(1, np.int32) if zero is None else np.asarray(zero).reshape(-1)
        axis = int(node.attributes.get("axis", 1)) % max(value.ndim, 1)
        return Weight(value, scale.reshape(-1).astype(np.float32), points, axis)


def _fit(node: Node, constant: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray:
    """Spread a constant over a sample; one number stays one."""
    assert constant is not None
    array = np.asarray(constant, dtype=np.float32)
    if array.size == 1:
        return array.reshape(1)
    array = array[0] if array.ndim == len(shape) + 1 and array.shape[0] == 1 else array
    try:
        return np.ascontiguousarray(np.broadcast_to(array, shape)).reshape(-1)
    except ValueError as error:
        raise node.refuse(f"a constant of shape {array.shape} beside a sample of shape {shape}") from error
