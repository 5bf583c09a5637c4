"""Packages of small random networks, built node by node, and their quantized forms by onnxruntime's own quantizer."""

import itertools

import numpy as np
import onnx
from onnx import helper, numpy_helper

from embodied.export.c_code import emit_c
from embodied_deploy.package.contract import TensorSpec
from embodied_deploy.package.load import load_package, write_package
from embodied_deploy.package.quantities import action_entry, observation_entry
from tests.tiny_packages import contract, parity_of

ROTORS = tuple(f"thrust_{i}_n" for i in range(1, 5))


def vector(role, name, count):
    """A tensor of ``count`` free entries."""
    if role == "observation":
        entries = tuple(observation_entry(f"signal.s{i}", -50.0, 50.0) for i in range(count))
    else:
        entries = tuple(action_entry(n, -5.0, 5.0) for n in ROTORS[:count])
    return TensorSpec(name=name, role=role, dtype="float32", shape=(count,), entries=entries)


def graph(nodes, weights, n_in, n_out, opset=20):
    """ONNX bytes of ``obs`` (batch, n_in) to ``action`` (batch, n_out)."""
    info = helper.make_tensor_value_info
    made = helper.make_graph(
        nodes,
        "c",
        [info("obs", onnx.TensorProto.FLOAT, ["batch", n_in])],
        [info("action", onnx.TensorProto.FLOAT, ["batch", n_out])],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in weights.items()],
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return onnx.shape_inference.infer_shapes(model).SerializeToString()


def mlp(rng, n_in, hidden, n_out, activation="Tanh", *, use_matmul=False, attributes=None):
    """Normaliser, layers, limits; weights drawn so that no layer dies or saturates."""
    node = helper.make_node
    weights = {
        "mean": rng.normal(size=(1, n_in)).astype(np.float32),
        "std": rng.uniform(0.5, 2.0, size=n_in).astype(np.float32),
        "scale": rng.uniform(0.5, 2.0, size=n_out).astype(np.float32),
        "offset": np.float32(rng.normal()),
        "low": np.float32(-5.0),
        "high": np.float32(5.0),
    }
    nodes = [node("Sub", ["obs", "mean"], ["centred"]), node("Div", ["centred", "std"], ["x0"])]
    sizes = [n_in, *hidden, n_out]
    for i, (a, b) in enumerate(itertools.pairwise(sizes)):
        w = (rng.normal(size=(a, b)) / np.sqrt(a)).astype(np.float32)
        bias = (0.3 * rng.normal(size=b)).astype(np.float32)
        last = f"y{i}"
        if use_matmul:
            weights |= {f"w{i}": w, f"b{i}": bias}
            nodes += [node("MatMul", [f"x{i}", f"w{i}"], [f"p{i}"]), node("Add", [f"p{i}", f"b{i}"], [last])]
        else:
            weights |= {f"w{i}": np.ascontiguousarray(w.T), f"b{i}": bias}
            nodes.append(node("Gemm", [f"x{i}", f"w{i}", f"b{i}"], [last], transB=1))
        is_end = i == len(sizes) - 2
        function, options = ("Tanh", {}) if is_end else (activation, attributes or {})
        nodes.append(node(function, [last], [f"x{i + 1}"], **options))
    end = f"x{len(sizes) - 1}"
    nodes += [
        node("Mul", [end, "scale"], ["scaled"]),
        node("Add", ["scaled", "offset"], ["shifted"]),
        node("Clip", ["shifted", "low", "high"], ["action"]),
    ]
    return graph(nodes, weights, n_in, n_out)


def quantized(data, folder, samples, *, per_channel, exclude=()):
    """The static u8s8 QDQ form; the normaliser stays in floats, as the exporter leaves it."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.left = iter([{"obs": samples}])

        def get_next(self):
            return next(self.left, None)

    model = onnx.load_model_from_string(data)
    for index, one in enumerate(model.graph.node):
        one.name = f"{one.op_type}_{index}"
    spared = [n.name for n in model.graph.node if n.op_type in ("Sub", "Div", "Clip")]
    spared += [n.name for n in model.graph.node if {"scaled", "shifted"} & set(n.output)]
    source, target = folder / "float.onnx", folder / "int8.onnx"
    onnx.save(model, source)
    quantize_static(
        source,
        target,
        Reader(),
        quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        per_channel=per_channel,
        nodes_to_exclude=[*spared, *exclude],
    )
    return target.read_bytes()


def package(folder, data, n_in, n_out, count=64, name="tiny", **changes):
    """Write and load a package around a graph."""
    fields = {
        "name": name,
        "inputs": (vector("observation", "obs", n_in),),
        "outputs": (vector("action", "action", n_out),),
        "safe_action": (0.0,) * n_out,
    }
    c = contract(**(fields | changes))
    path = write_package(folder / f"{name}.policy", c, data, parity_of(data, c, count))
    return path, load_package(path, check_parity=False)


def emitted(tmp_path, data, n_in, n_out, **changes):
    """Return package and C source of a graph."""
    _, loaded = package(tmp_path, data, n_in, n_out, **changes)
    return loaded, emit_c(loaded, tmp_path / "c")
