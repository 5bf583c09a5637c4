"""fp32 graph to fp16, int8 or 4-bit weights with onnxruntime's own quantizer; normaliser and limiter stay fp32."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from embodied.errors import require
from embodied.export.calibration import CalibrationSet
from embodied.export.errors import ExportError
from embodied.export.onnx import check_signature
from embodied.export.options import ExportOptions
from embodied.export.scopes import Flow, check_protected, nodes_below, protected_nodes, spare_raw_inputs
from embodied.train.contract import Feed
from embodied_deploy.package.contract import PolicyContract

if TYPE_CHECKING:
    import onnx

NARROW = 8
"""Channels under which int8 convolutions lose: 3 to 16 channels at 80x60 took 274 µs in int8 and 105 µs in fp32, those
over 16 and more channels less than half of fp32 (x86 with VNNI)."""

_BATCH = 32
_PREPARED = ("onnx.quant.pre_process", "onnxruntime.quant")
"""Tells the quantizer that shapes are inferred already (the exporter writes them all)."""

_MARKS = {"int8-dynamic": ("MatMulInteger",), "int8-static": ("DequantizeLinear",), "w4a8": ("MatMulNBits",)}


def quantize(
    model: onnx.ModelProto,
    precision: str,
    calibration: CalibrationSet,
    contract: PolicyContract,
    options: ExportOptions | None = None,
) -> onnx.ModelProto:
    """Return the graph at a precision; the given one is left as it is.

    Args:
      model: fp32 graph of :func:`embodied.export.onnx.to_onnx`.
      precision: ``fp16``, ``int8-dynamic``, ``int8-static`` or ``w4a8``.
      calibration: ranges of ``int8-static`` come from its fitting part.
      contract: what the result must still be.
      options: exclusions and more.

    Raises:
      ExportError: an unknown layer (``exclude``), nothing to quantize (``nothing_quantized``), or normaliser or limiter
        harmed (``normalizer``).
    """
    chosen = options or ExportOptions()
    guarded = protected_nodes(model)
    names = [n.name for n in guarded]
    spared = [*names, *Flow(model).raw_ancestors(names)]
    excluded = [*spared, *nodes_below(model, chosen.exclude)]
    if precision == "fp16":
        made = _fp16(model, excluded)
    elif precision == "w4a8":
        made = _w4a8(model, excluded)
    elif precision == "int8-dynamic":
        made = _dynamic(model, excluded, chosen)
    elif precision == "int8-static":
        slow = [] if chosen.narrow_convolutions else narrow_convolutions(model)
        made = _static(model, [*excluded, *Flow(model).raw_nodes(), *slow], calibration.fitting, chosen)
        spare_raw_inputs(made, spared)
    else:
        raise ExportError("contract", f"{precision!r} is no precision to quantize to.")
    _tidy(made)
    if not _is_quantized(made, precision):
        raise ExportError(
            "nothing_quantized",
            f"{precision} found nothing to do in {contract.name}: its weights are in operators that it does not know, "
            "or every layer is excluded.",
        )
    check_signature(made, contract)
    check_protected(made, guarded)
    return made


def narrow_convolutions(model: onnx.ModelProto) -> list[str]:
    """Return the convolutions over fewer than :data:`NARROW` channels, such as the first one over an image."""
    channels = {w.name: w.dims[1] for w in model.graph.initializer if len(w.dims) > 2}
    return [n.name for n in model.graph.node if n.op_type == "Conv" and channels.get(n.input[1], NARROW) < NARROW]


def _fp16(model: onnx.ModelProto, excluded: list[str]) -> onnx.ModelProto:
    float16 = require("onnxruntime.transformers.float16", "export")
    with warnings.catch_warnings():
        # Weights below the smallest half become it: an error of 6e-8, which the hold-out gate sees if it matters.
        warnings.filterwarnings("ignore", "the float32 number")
        made = float16.convert_float_to_float16(_copy(model), keep_io_types=True, node_block_list=excluded)
    _drop_round_trips(made)
    return made


def _drop_round_trips(model: onnx.ModelProto) -> None:
    """Connect fp32 to fp32 where the converter goes through fp16 and back.

    It casts every input of the graph first and every result between two nodes that were to stay in fp32, so a
    normaliser would read its raw inputs with 11 bits, and infinity above 65504.
    """
    from onnx import TensorProto

    floats = {w.name for w in model.graph.initializer if w.data_type == TensorProto.FLOAT}
    # By name: casts of the policy itself, such as that of an image, have another source type.
    own = [
        n
        for n in model.graph.node
        if n.op_type == "Cast" and ("_cast_to_fp16" in n.name or "graph_input_cast" in n.name)
    ]
    halves = {n.output[0]: n.input[0] for n in own if any(a.i == TensorProto.FLOAT16 for a in n.attribute)}
    outputs, alias, gone = {o.name for o in model.graph.output}, {}, []
    for node in model.graph.node:
        if node.op_type != "Cast" or not any(a.name == "to" and a.i == TensorProto.FLOAT for a in node.attribute):
            continue
        source = node.input[0] if node.input[0] in floats else halves.get(node.input[0])
        if source is None:
            continue
        if node.output[0] in outputs:
            alias[source] = node.output[0]  # the value itself takes the name of the output
        else:
            alias[node.output[0]] = source
        gone.append(node)
    for node in gone:
        model.graph.node.remove(node)
    for node in model.graph.node:
        for names in (node.input, node.output):
            for i, name in enumerate(names):
                while name in alias:
                    name = alias[name]
                names[i] = name


def _dynamic(model: onnx.ModelProto, excluded: list[str], options: ExportOptions) -> onnx.ModelProto:
    ort = require("onnxruntime.quantization", "export")

    def run(source: Path, target: Path) -> None:
        ort.quantize_dynamic(
            source,
            target,
            op_types_to_quantize=["MatMul", "Gemm"],  # a dynamic Conv is 5 to 9 times slower than fp32
            per_channel=options.per_channel,
            weight_type=ort.QuantType.QInt8,
            nodes_to_exclude=_also_as_matmul(excluded),
        )

    return _through_files(model, run)


def _static(model: onnx.ModelProto, excluded: list[str], feed: Feed, options: ExportOptions) -> onnx.ModelProto:
    ort = require("onnxruntime.quantization", "export")

    class Reader(ort.CalibrationDataReader):
        def __init__(self) -> None:
            self._batches = _batches(feed)

        def get_next(self) -> dict[str, NDArray[Any]] | None:
            return next(self._batches, None)

    def run(source: Path, target: Path) -> None:
        ort.quantize_static(
            source,
            target,
            Reader(),
            quant_format=ort.QuantFormat.QDQ,
            # Signed activations stay unfused around Add and Sigmoid on x86: a GRU cell takes 2.5 times as long.
            activation_type=ort.QuantType.QUInt8,
            weight_type=ort.QuantType.QInt8,
            per_channel=options.per_channel,
            op_types_to_quantize=list(options.static_ops) or None,
            nodes_to_exclude=excluded,
        )

    return _through_files(model, run)


def _w4a8(model: onnx.ModelProto, excluded: list[str]) -> onnx.ModelProto:
    onnx_model = require("onnxruntime.quantization.onnx_model", "export")
    nbits = require("onnxruntime.quantization.matmul_nbits_quantizer", "export")
    wrapped = onnx_model.ONNXModel(_copy(model))
    wrapped.replace_gemm_with_matmul()  # only MatMul is quantized, and nothing says so when there is none
    quantizer = nbits.MatMulNBitsQuantizer(
        wrapped.model,
        bits=4,
        block_size=32,
        is_symmetric=False,
        accuracy_level=4,  # activations in int8
        op_types_to_quantize=("MatMul",),
        nodes_to_exclude=_also_as_matmul(excluded),
    )
    quantizer.process()
    return quantizer.model.model


def _also_as_matmul(names: list[str]) -> list[str]:
    """Add the names that nodes get when Gemm becomes MatMul and Add."""
    return [*names, *(f"{n}_MatMul" for n in names)]


def _batches(feed: Feed) -> Iterator[dict[str, NDArray[Any]]]:
    total = len(next(iter(feed.values())))
    for start in range(0, total, _BATCH):
        yield {k: np.ascontiguousarray(v[start : start + _BATCH]) for k, v in feed.items()}


def _through_files(model: onnx.ModelProto, run: Any) -> onnx.ModelProto:  # noqa: ANN401 -- (source, target) -> None
    """Quantize by way of files: given a model in memory, the quantizer moves its weights out of it."""
    import onnx

    with tempfile.TemporaryDirectory(prefix="embodied-export-") as folder:
        source, target = Path(folder) / "fp32.onnx", Path(folder) / "quantized.onnx"
        prepared = _copy(model)
        prepared.metadata_props.add(key=_PREPARED[0], value=_PREPARED[1])
        onnx.save(prepared, source)
        run(source, target)
        return onnx.load(target)


def _copy(model: onnx.ModelProto) -> onnx.ModelProto:
    import onnx

    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    return copied


def _tidy(model: onnx.ModelProto) -> None:
    """Drop what nothing reads: old weights, bypassed nodes, notes of the quantizer."""
    del model.metadata_props[:]
    outputs = {o.name for o in model.graph.output}
    while True:
        read = outputs | {name for node in model.graph.node for name in node.input}
        dead = [node for node in model.graph.node if not read & set(node.output)]
        if not dead:
            break
        for node in dead:
            model.graph.node.remove(node)
    for weight in [w for w in model.graph.initializer if w.name not in read]:
        model.graph.initializer.remove(weight)
    made = {name for node in model.graph.node for name in node.output}
    for value in [v for v in model.graph.value_info if v.name not in made]:
        model.graph.value_info.remove(value)


def _is_quantized(model: onnx.ModelProto, precision: str) -> bool:
    if precision == "fp16":
        from onnx import TensorProto

        return any(w.data_type == TensorProto.FLOAT16 for w in model.graph.initializer)
    return any(node.op_type in _MARKS[precision] for node in model.graph.node)
