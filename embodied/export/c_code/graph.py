"""Read an ONNX graph into plain records, with everything that does not depend on the input already computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from embodied.errors import EmbodiedError, require


class UnsupportedGraphError(EmbodiedError):
    """A graph, or the contract around it, cannot be written as plain C."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One operation.

    Attributes:
      label: how messages name it.
      op: operator type, with its domain in front if that is not ONNX's own.
      inputs: tensor names, empty where an optional input is left out.
      outputs: tensor names.
      attributes: by name, as Python values.
    """

    label: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]

    def refuse(self, why: str) -> UnsupportedGraphError:
        """Return the error that names this node."""
        return UnsupportedGraphError(f"Node {self.label} ({self.op}) cannot be written as plain C: {why}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """What a graph does, in order.

    Attributes:
      inputs: name and shape without the batch axis.
      outputs: names.
      nodes: in an order in which they can be run.
      constants: by tensor name.
    """

    inputs: tuple[tuple[str, tuple[int, ...]], ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    constants: Mapping[str, np.ndarray]

    def uses(self, tensor: str) -> int:
        """Count the readers of a tensor, the graph's own outputs among them."""
        return sum(n.inputs.count(tensor) for n in self.nodes) + self.outputs.count(tensor)


def read_graph(data: bytes) -> Graph:
    """Parse an ONNX model.

    Raises:
      UnsupportedGraphError: it cannot be parsed, or an input is not a float vector with one batch axis.
      MissingExtraError: onnx is not installed.
    """
    onnx = require("onnx", "export")
    try:
        model = onnx.load_model_from_string(data)
        onnx.checker.check_model(model)
    except Exception as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnsupportedGraphError(f"The graph is not a readable ONNX model: {first}") from error
    graph = model.graph
    constants = {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer}
    nodes: list[Node] = []
    for index, raw in enumerate(graph.node):
        node = Node(
            label=repr(raw.name or f"#{index}"),
            op=f"{raw.domain}.{raw.op_type}" if raw.domain not in ("", "ai.onnx") else raw.op_type,
            inputs=tuple(raw.input),
            outputs=tuple(raw.output),
            attributes={a.name: onnx.helper.get_attribute_value(a) for a in raw.attribute},
        )
        # Quantized weights stay as they are: their integers are what the C code stores.
        if node.op != "DequantizeLinear" and all(i in constants for i in node.inputs if i):
            constants.update(_fold(onnx, model, raw, node, constants))
        else:
            nodes.append(node)
    inputs = tuple((v.name, _sample_shape(onnx, v)) for v in graph.input if v.name not in constants)
    return Graph(inputs=inputs, outputs=tuple(v.name for v in graph.output), nodes=tuple(nodes), constants=constants)


def _sample_shape(onnx: Any, value: Any) -> tuple[int, ...]:  # noqa: ANN401 -- protobuf messages
    tensor = value.type.tensor_type
    dims = [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
    kind = onnx.TensorProto.DataType.Name(tensor.elem_type)
    if tensor.elem_type != onnx.TensorProto.FLOAT or len(dims) != 2 or not dims[1]:
        raise UnsupportedGraphError(
            f"Input {value.name!r} is {kind} of shape {dims}; plain C takes float32 vectors, shape [batch, n]. "
            f"Policies with images, tokens or chunks of history run under `embodied-edge`."
        )
    return (dims[1],)


def _fold(onnx: Any, model: Any, raw: Any, node: Node, known: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:  # noqa: ANN401
    """Compute a node of constants with ONNX's reference implementation."""
    from onnx.reference import ReferenceEvaluator

    helper = onnx.helper
    outputs = [helper.make_tensor_value_info(o, 0, None) for o in node.outputs if o]
    feeds = {i: known[i] for i in node.inputs if i}
    inputs = [
        helper.make_tensor_value_info(i, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for i, a in feeds.items()
    ]
    try:
        single = helper.make_model(
            helper.make_graph([raw], "fold", inputs, outputs), opset_imports=list(model.opset_import)
        )
        values: Sequence[Any] = ReferenceEvaluator(single).run(None, feeds)  # pyright: ignore[reportAssignmentType]
    except Exception as error:
        raise node.refuse(f"its constants cannot be computed: {error}") from error
    return {name: np.asarray(v) for name, v in zip([o for o in node.outputs if o], values, strict=True)}
