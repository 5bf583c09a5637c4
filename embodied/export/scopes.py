"""Which nodes belong to which layer, and the proof that normaliser and limiter came through untouched."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from embodied.errors import nearest_hint
from embodied.export.errors import ExportError

if TYPE_CHECKING:
    import onnx

SCOPES = "pkg.torch.onnx.name_scopes"
"""Metadata key under which the exporter writes the module path of a node."""

PROTECTED = ("normalizer", "limiter")
"""Names of submodules that are never quantized or folded. Quantizing the multiplication of a normaliser over inputs of
mixed scales makes a policy useless: one scale of 8 bits cannot hold 0.03 and 30 at once."""

LAYERS = frozenset(
    {"Gemm", "MatMul", "Conv", "ConvTranspose", "Gather", "GRU", "LSTM", "RNN", "Einsum", "Attention"}
    | {"MatMulInteger", "ConvInteger", "MatMulNBits"}
)
"""Operators whose result is a feature and no longer a raw input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectedNode:
    """A node that must be in the final graph as it was exported.

    Attributes:
      name: node name.
      op_type: operator.
      outputs: names of its outputs.
      constants: position of the input to the exact float bytes of its constant.
    """

    name: str
    op_type: str
    outputs: tuple[str, ...]
    constants: tuple[tuple[int, bytes], ...]


def node_scopes(model: onnx.ModelProto) -> dict[str, tuple[str, ...]]:
    """Return node name to the module paths around it, outermost first.

    Nodes that the exporter's own rewriting made carry no path; such a node belongs to a layer when everything that it
    reads and everything that reads it belongs there.
    """
    found: dict[str, tuple[str, ...]] = {}
    for node in model.graph.node:
        text = next((e.value for e in node.metadata_props if e.key == SCOPES), "[]")
        found[node.name] = tuple(str(s) for s in ast.literal_eval(text)[:-1] if s)  # the last one names the operation
    producer = {output: node for node in model.graph.node for output in node.output}
    for node in model.graph.node:
        if found[node.name]:
            continue
        around = [found[producer[i].name] for i in node.input if i in producer]
        around += [found[n.name] for n in model.graph.node if set(n.input) & set(node.output)]
        if around and all(a == around[0] for a in around):
            found[node.name] = around[0]
    return found


def nodes_below(model: onnx.ModelProto, layers: Iterable[str]) -> list[str]:
    """Return the nodes of layers, given as module paths or names of nodes.

    Raises:
      ExportError: a layer that the graph does not have (reason ``exclude``).
    """
    scopes, chosen = node_scopes(model), []
    paths = {p for scope in scopes.values() for p in scope}
    for layer in layers:
        below = [n for n, scope in scopes.items() if n == layer or layer in scope]
        if not below:
            raise ExportError("exclude", f"no layer or node {layer!r}. {nearest_hint(layer, {*paths, *scopes})}")
        chosen += below
    return list(dict.fromkeys(chosen))


def protected_nodes(model: onnx.ModelProto) -> list[ProtectedNode]:
    """Return the nodes of every submodule named as in :data:`PROTECTED`, with their constants."""
    scopes, constants = node_scopes(model), float_constants(model)
    return [
        ProtectedNode(
            name=node.name,
            op_type=node.op_type,
            outputs=tuple(node.output),
            constants=tuple((i, constants[name]) for i, name in enumerate(node.input) if name in constants),
        )
        for node in model.graph.node
        if any(part in PROTECTED for path in scopes[node.name] for part in path.split("."))
    ]


def float_constants(model: onnx.ModelProto) -> dict[str, bytes]:
    """Return the name of each float32 constant to its bytes."""
    from onnx import TensorProto, numpy_helper

    tensors = {t.name: t for t in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].HasField("t"):
            tensors[node.output[0]] = node.attribute[0].t
    return {
        name: np.ascontiguousarray(numpy_helper.to_array(t)).tobytes()
        for name, t in tensors.items()
        if t.data_type == TensorProto.FLOAT
    }


def check_protected(model: onnx.ModelProto, wanted: Sequence[ProtectedNode]) -> None:
    """Refuse a graph in which a protected node is gone, has other constants, or reads what was quantized.

    Args:
      model: the final graph.
      wanted: from the fp32 export, by :func:`protected_nodes`.

    Raises:
      ExportError: with the node and what happened to it (reason ``normalizer``).
    """
    by_name = {node.name: node for node in model.graph.node}
    constants, flow = float_constants(model), Flow(model)
    for want in wanted:
        node = by_name.get(want.name)
        if node is None or node.op_type != want.op_type:
            became = "gone (folded into its neighbour)" if node is None else f"a {node.op_type} now"
            raise _refusal(f"node {want.name} ({want.op_type}) is {became}")
        for position, value in want.constants:
            if constants.get(node.input[position]) != value:
                raise _refusal(f"constant {node.input[position]} of node {want.name} is not what was exported")
        for above in flow.raw_ancestors([want.name]):
            if is_lossy(by_name[above]):
                raise _refusal(f"the inputs of node {want.name} went through {by_name[above].op_type} {above}")


def check_normalizers_exist(model: onnx.ModelProto, modules: Iterable[tuple[str, bool]]) -> None:
    """Refuse an export that has folded a whole normaliser or limiter away.

    Args:
      model: fresh fp32 export.
      modules: path of every submodule, and whether it holds numbers of its own.

    Raises:
      ExportError: reason ``normalizer``.
    """
    scopes = {path for scope in node_scopes(model).values() for path in scope}
    for path, has_numbers in modules:
        if path.split(".")[-1] in PROTECTED and has_numbers and path not in scopes:
            raise _refusal(f"no node of {path} is in the graph")


def is_lossy(node: onnx.NodeProto) -> bool:
    """Tell whether a node rounds its input to fewer bits."""
    if node.op_type in ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"):
        return True
    from onnx import TensorProto

    halves = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
    return node.op_type == "Cast" and any(a.name == "to" and a.i in halves for a in node.attribute)


class Flow:
    """Which values of a graph are still raw: inputs, moved and scaled, before any layer with weights."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._nodes = {node.name: node for node in model.graph.node}
        self._producer = {output: node for node in model.graph.node for output in node.output}
        self._raw: dict[str, bool] = {}

    def raw_ancestors(self, names: Iterable[str]) -> list[str]:
        """Return the nodes that bring raw values to the named nodes, nearest first."""
        found: dict[str, None] = {}
        waiting = list(names)
        while waiting:
            for name in self._nodes[waiting.pop()].input:
                node = self._producer.get(name)
                if node is not None and self.is_raw(name) and node.name not in found:
                    found[node.name] = None
                    waiting.append(node.name)
        return list(found)

    def raw_nodes(self) -> list[str]:
        """Return the nodes whose results are raw: what scales, moves and joins inputs before any layer."""
        return [name for name, node in self._nodes.items() if all(self.is_raw(o) for o in node.output)]

    def source_of_pair(self, name: str) -> str | None:
        """Return what a pair of QuantizeLinear and DequantizeLinear that makes ``name`` reads, None for others."""
        back = self._producer.get(name)
        if back is None or back.op_type != "DequantizeLinear":
            return None
        forth = self._producer.get(back.input[0])
        return forth.input[0] if forth is not None and forth.op_type == "QuantizeLinear" else None

    def is_raw(self, name: str) -> bool:
        """Tell whether a value is raw."""
        node = self._producer.get(name)
        if node is None:
            return True
        if name not in self._raw:
            self._raw[name] = node.op_type not in LAYERS and all(self.is_raw(i) for i in node.input)
        return self._raw[name]


def spare_raw_inputs(model: onnx.ModelProto, names: Iterable[str]) -> None:
    """Let protected nodes and those above them read raw values before they are quantized for others.

    The quantizer puts its pair of nodes behind a value for all readers at once, excluded ones too: an input that a
    quantized layer shares with the normaliser would reach the normaliser with 8 bits.
    """
    flow, spared = Flow(model), set(names)
    for node in model.graph.node:
        if node.name in spared:
            for i, name in enumerate(node.input):
                source = flow.source_of_pair(name)
                if source is not None and flow.is_raw(source):
                    node.input[i] = source


def _refusal(what: str) -> ExportError:
    return ExportError(
        "normalizer",
        f"{what}. Normaliser and limiter must stay in fp32: keep raw inputs away from quantized layers, or exclude "
        "the layers that share them with --exclude.",
    )
