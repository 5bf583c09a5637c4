"""What a graph has to do: multiply-adds, nodes left after the runtime's fusion, and what a call costs by itself."""

from __future__ import annotations

import math
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from embodied.errors import require
from embodied.export.session import open_session

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphCost:
    """Work of one inference at batch 1.

    Attributes:
      multiply_adds: of Gemm, MatMul and Conv with fp32 weights; 0 for graphs whose weights are quantized otherwise.
      operators: operator to how many nodes the runtime executes, after its own fusion.
    """

    multiply_adds: int
    operators: Mapping[str, int]

    @property
    def nodes(self) -> int:
        """How many nodes are executed."""
        return sum(self.operators.values())

    def extra(self, other: GraphCost) -> dict[str, int]:
        """Return the operators that this graph executes more often than another, most first."""
        return dict((Counter(self.operators) - Counter(other.operators)).most_common())


def graph_cost(graph: bytes) -> GraphCost:
    """Measure a graph.

    Args:
      graph: serialized model.
    """
    onnx = require("onnx", "export")
    return GraphCost(multiply_adds=_multiply_adds(onnx.load_from_string(graph)), operators=_executed(graph))


def call_overhead_us(runs: int = 2000) -> float:
    """Return the median time [µs] of a call that copies one number: the floor under every graph on this machine."""
    helper = require("onnx.helper", "export")
    number = [helper.make_tensor_value_info(name, 1, [1]) for name in ("x", "y")]
    body = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "identity", number[:1], number[1:])
    model = helper.make_model(body, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    session = open_session(model.SerializeToString())
    x, y = np.zeros(1, np.float32), np.zeros(1, np.float32)
    binding = session.io_binding()
    binding.bind_input("x", "cpu", 0, np.float32, x.shape, x.ctypes.data)
    binding.bind_output("y", "cpu", 0, np.float32, y.shape, y.ctypes.data)
    taken = np.empty(runs)
    for i in range(runs):
        start_s = time.perf_counter()
        session.run_with_iobinding(binding)
        taken[i] = time.perf_counter() - start_s
    return float(np.median(taken) * 1e6)


def _executed(graph: bytes) -> Mapping[str, int]:
    onnx, ort = require("onnx", "export"), require("onnxruntime", "export")
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    # Layout changes for this very processor make files that name it; everything below is fused as when it runs.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    with tempfile.TemporaryDirectory(prefix="embodied-export-") as folder:
        options.optimized_model_filepath = str(Path(folder) / "fused.onnx")
        ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        return dict(Counter(node.op_type for node in onnx.load(options.optimized_model_filepath).graph.node))


def _multiply_adds(model: onnx.ModelProto) -> int:
    onnx = require("onnx", "export")
    for value in model.graph.input:
        value.type.tensor_type.shape.dim[0].dim_value = 1
    for value in (*model.graph.output, *model.graph.value_info):
        if value.type.tensor_type.shape.dim:
            value.type.tensor_type.shape.dim[0].ClearField("dim_param")
    del model.graph.value_info[:]
    inferred = onnx.shape_inference.infer_shapes(model)
    shapes = {w.name: list(w.dims) for w in inferred.graph.initializer}
    for value in (*inferred.graph.input, *inferred.graph.value_info, *inferred.graph.output):
        shapes.setdefault(value.name, [max(1, d.dim_value) for d in value.type.tensor_type.shape.dim])
    total = 0
    for node in inferred.graph.node:
        if node.op_type in ("Gemm", "MatMul", "Conv") and node.input[1] in shapes:
            weight, out = shapes[node.input[1]], shapes.get(node.output[0], [])
            if node.op_type == "Conv":
                summed = math.prod(weight[1:])
            else:
                is_turned = any(a.name == "transB" and a.i for a in node.attribute)
                summed = weight[-1] if is_turned else weight[-2]
            total += math.prod(out) * summed
    return total
