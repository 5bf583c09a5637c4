"""From steps to C text: constants, helper functions that are needed, and the body of ``infer``."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from embodied.export.c_code.graph import UnsupportedGraphError
from embodied.export.c_code.helpers import HELPERS
from embodied.export.c_code.literal import c_float
from embodied.export.c_code.steps import Buffer, Copy, DenseFloat, DenseInt8, Elementwise, Step, Table, place


class Program:
    """The text of one policy's arithmetic.

    Args:
      steps: from :class:`~embodied.export.c_code.lower.Lowering`.

    Attributes:
      constants: C definitions of weights and tables.
      helpers: C functions that the body calls.
      memory: C definitions of the working memory.
      body: C statements.
      constant_bytes: size of weights and tables.
      memory_bytes: size of the working memory.
    """

    def __init__(self, steps: list[Step]) -> None:
        self._known: dict[tuple[str, bytes], str] = {}
        self._lines: list[str] = []
        self._used: set[str] = set()
        self.constant_bytes = 0
        self._names, slots = place(steps)
        body = [line for step in steps for line in self._step(step)]
        sizes = {"float": 4, "uint8_t": 1, "int8_t": 1}
        self.memory_bytes = sum(sizes[ctype] * size for ctype, size in slots)
        self.memory = "\n".join(f"static {ctype} m{i}[{size}];" for i, (ctype, size) in enumerate(slots))
        self.constants = "\n".join(self._lines)
        self.helpers = "\n".join(text for name, text in HELPERS.items() if name in self._used)
        self.body = "\n".join("    " + line for line in body)

    def _step(self, step: Step) -> list[str]:
        if isinstance(step, DenseFloat):
            return self._dense_float(step)
        if isinstance(step, DenseInt8):
            return [self._dense_int8(step)]
        if isinstance(step, Elementwise):
            return self._elementwise(step)
        if isinstance(step, Table):
            name = self._constant(step.table, "uint8_t" if step.table.dtype == np.uint8 else _ctype(step.table))
            x, y = self._names[step.x], self._names[step.y]
            return [_loop(step.count, f"{y}[i] = {name}[(uint8_t){x}[i]];")]
        return [self._copy(step)]

    def _copy(self, step: Copy) -> str:
        x, y = self._at(step.x, step.source), self._at(step.y, step.target)
        return f"memcpy({y}, {x}, {step.count} * sizeof({step.x.ctype}));"

    def _at(self, buffer: Buffer, index: int) -> str:
        return self._names[buffer] + (f" + {index}" if index else "")

    def _dense_float(self, step: DenseFloat) -> list[str]:
        # Weights lie by input. Four inputs at a time touch y once; every sum keeps its order, so vectors may hold
        # neighbouring outputs without -ffast-math. Written out per layer: compilers see each size and each bound.
        inputs, n = step.weights.shape
        w, b = self._constant(step.weights, "float"), self._constant(step.bias, "float")
        x, y = self._names[step.x], self._names[step.y]
        fours = inputs - inputs % 4
        lines = [_loop(n, f"{y}[i] = {b}[i];")]
        if fours:
            terms = "".join(f" + x{k} * w{k}[o]" for k in range(4))
            lines += [
                f"for (int i = 0; i < {fours}; i += 4) {{",
                f"    const float *w0 = {w} + i * {n}, *w1 = w0 + {n}, *w2 = w1 + {n}, *w3 = w2 + {n};",
                f"    const float x0 = {x}[i], x1 = {x}[i + 1], x2 = {x}[i + 2], x3 = {x}[i + 3];",
                f"    for (int o = 0; o < {n}; ++o) {y}[o] = {y}[o]{terms};",
                "}",
            ]
        lines += [
            f"{{ const float a = {x}[{i}]; {_loop(n, f'{y}[i] += a * {w}[{i * n} + i];')} }}"
            for i in range(fours, inputs)
        ]
        return lines

    def _dense_int8(self, step: DenseInt8) -> str:
        outputs, inputs = step.weights.shape
        kind = "u8" if step.x.ctype == "uint8_t" else "s8"
        w, b = self._constant(step.weights, "int8_t"), self._constant(step.bias, "int32_t")
        x, y = self._names[step.x], self._names[step.y]
        start = f"{x}, {inputs}, {w}, {b}, {outputs}"
        if step.y.ctype == "float":
            self._used |= {f"dot_{kind}", f"dense_{kind}_f32"}
            offset = self._constant(step.offset, "float") if step.offset.size else "NULL"
            return f"dense_{kind}_f32({start}, {self._constant(step.scale, 'float')}, {offset}, {y});"
        target = "u8" if step.y.ctype == "uint8_t" else "s8"
        pairs = [q31(float(s)) for s in step.scale]
        self._used |= {f"dot_{kind}", "round_24", "scale_q31", f"dense_{kind}_{target}"}
        m = self._constant(np.array([p[0] for p in pairs], np.int32), "int32_t")
        s = self._constant(np.array([p[1] for p in pairs], np.uint8), "uint8_t")
        return f"dense_{kind}_{target}({start}, {m}, {s}, {step.zero}, {step.low}, {step.high}, {y});"

    def _elementwise(self, step: Elementwise) -> list[str]:
        if "quantize(" in step.expression:
            self._used.add("quantize")
        lines = []
        for letter, operand in step.operands.items():
            if isinstance(operand, Buffer):
                lines.append(f"const {operand.ctype} {letter} = {self._names[operand]}[i];")
            elif operand.size == 1:
                lines.append(f"const float {letter} = {c_float(operand[0])};")
            else:
                lines.append(f"const float {letter} = {self._constant(operand, 'float')}[i];")
        inner = " ".join([*lines, f"{self._names[step.y]}[i] = {step.expression};"])
        return [_loop(step.count, inner)]

    def _constant(self, array: np.ndarray, ctype: str) -> str:
        data = np.ascontiguousarray(array).reshape(-1)
        key = (ctype, data.tobytes())
        if key not in self._known:
            name = f"k{len(self._known)}"
            self._known[key] = name
            self.constant_bytes += data.nbytes
            self._lines.append(f"static const {ctype} {name}[{data.size}] = {{\n{_rows(data)}\n}};")
        return self._known[key]


def q31(scale: float) -> tuple[int, int]:
    """Write a float32 scale as ``multiplier / 2**shift`` with a multiplier in Q31; exact.

    Returns:
      Multiplier, 0 or in [2**30, 2**31), and shift in [1, 62].

    Raises:
      UnsupportedGraphError: the scale is 2**30 or larger, or not finite.
    """
    if not math.isfinite(scale) or scale >= 2.0**30:
        raise UnsupportedGraphError(f"A requantization scale is {scale}; expected a number below 2**30.")
    mantissa, exponent = math.frexp(scale)
    if mantissa == 0 or 31 - exponent > 62:
        return 0, 62  # every 32-bit sum rounds to zero
    return int(mantissa * 2**31), 31 - exponent


def _ctype(array: np.ndarray) -> str:
    return {"float32": "float", "int8": "int8_t", "uint8": "uint8_t"}[str(array.dtype)]


def _loop(count: int, inner: str) -> str:
    return f"for (int i = 0; i < {count}; ++i) {{ {inner} }}"


def _rows(data: np.ndarray, columns: int = 12) -> str:
    texts: Iterable[str]
    texts = map(c_float, data) if data.dtype == np.float32 else (str(int(v)) for v in data)
    words = list(texts)
    return "\n".join("    " + ", ".join(words[i : i + columns]) + "," for i in range(0, len(words), columns))
