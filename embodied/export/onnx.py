"""torch to ONNX: one file, dynamic batch, names of the contract, refused when graph and contract disagree."""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from embodied.errors import require
from embodied.export.errors import ExportError
from embodied.export.scopes import SCOPES, check_normalizers_exist
from embodied.export.session import run_graph
from embodied.train.contract import ExportablePolicy, Feed
from embodied_deploy.package.contract import OPSETS, PolicyContract, TensorSpec

if TYPE_CHECKING:
    import onnx
    import torch

EXAMPLE_BATCH = 2
"""With an example batch of 1 the exporter claims a dynamic batch and bakes in 1 for recurrent cells."""

PARITY_BATCHES = (1, 2, 3, 7)
PARITY_RATIO = 1e-4
"""Largest difference of graph and torch as a share of the largest output; measured 1e-7 to 1e-6 for float32."""

_ELEM = {"float32": 1, "uint8": 2, "int64": 7}
"""Element types of ONNX (``onnx.TensorProto.DataType``) by the contract's names."""


def to_onnx(policy: ExportablePolicy, feed: Feed) -> onnx.ModelProto:
    """Export a policy to one ONNX graph and check it against the policy's contract and against torch.

    Args:
      policy: module with its contract.
      feed: real inputs, input name to (batch, …) with at least :data:`EXAMPLE_BATCH` samples.

    Raises:
      ExportError: ``recurrent`` layer, disagreement of graph and ``contract``, ``normalizer`` folded away, or another
        result than torch (``parity``).
    """
    contract = policy.contract
    torch = require("torch", "export")
    require("onnxscript", "export")
    policy.eval()
    _refuse_recurrent(policy)
    if contract.opset not in OPSETS:
        raise ExportError("contract", f"opset {contract.opset} is not in {OPSETS.start}..{OPSETS.stop - 1}.")
    example = tuple(torch.from_numpy(np.ascontiguousarray(feed[t.name][:EXAMPLE_BATCH])) for t in contract.inputs)
    _check_forward(policy, example)
    program = _export(policy, example, contract)
    model: onnx.ModelProto = program.model_proto
    _strip(model)
    check_signature(model, contract)
    check_normalizers_exist(model, _modules(policy))
    check_parity(policy, model, feed)
    return model


def _export(policy: ExportablePolicy, example: tuple[torch.Tensor, ...], contract: PolicyContract) -> Any:  # noqa: ANN401
    torch = require("torch", "export")
    try:
        with torch.no_grad(), _quiet():
            return torch.onnx.export(
                policy,
                example,
                dynamo=True,
                opset_version=contract.opset,
                dynamic_shapes=_dynamic_shapes(policy, len(example)),
                input_names=[t.name for t in contract.inputs],
                output_names=[t.name for t in contract.outputs],
                external_data=False,
                verbose=False,
            )
    except torch.onnx.OnnxExporterError as error:
        if _is_interrupted(error):
            raise KeyboardInterrupt from error
        why = " ".join(str(error.__cause__ or error).split())[:400]
        raise ExportError(
            "contract",
            f"torch cannot trace {contract.name} for every batch size ({why}). Write forward without branches on "
            "values and without fixed batch sizes: reshape(-1, …), torch.where.",
        ) from error


def _is_interrupted(error: BaseException | None) -> bool:
    """Return whether the user ended it: the tracer wraps even that."""
    if error is None or isinstance(error, KeyboardInterrupt):
        return error is not None
    return _is_interrupted(error.__cause__) or _is_interrupted(error.__context__)


def check_signature(model: onnx.ModelProto, contract: PolicyContract) -> None:
    """Refuse a graph whose inputs and outputs are not those of the contract.

    Raises:
      ExportError: other opset, name, order, element type or shape, or a batch axis that is not dynamic.
    """
    opset = {o.domain: o.version for o in model.opset_import}.get("")
    if opset != contract.opset:
        raise ExportError("contract", f"the graph has opset {opset}, the contract {contract.opset}.")
    for side, values, specs in (
        ("inputs", model.graph.input, contract.inputs),
        ("outputs", model.graph.output, contract.outputs),
    ):
        got, expected = [v.name for v in values], [t.name for t in specs]
        if got != expected:
            raise ExportError("contract", f"{side} of the graph are {got}, of the contract {expected}.")
        for value, spec in zip(values, specs, strict=True):
            _check_value(value, spec)


def _check_value(value: onnx.ValueInfoProto, spec: TensorSpec) -> None:
    tensor = value.type.tensor_type
    dims = [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
    if tensor.elem_type != _ELEM[spec.dtype]:
        names = {number: name for name, number in _ELEM.items()}
        got = names.get(tensor.elem_type, f"element type {tensor.elem_type}")
        raise ExportError("contract", f"{spec.name} is {got} in the graph and {spec.dtype} in the contract.")
    if dims[:1] != [None]:
        raise ExportError("contract", f"{spec.name} has a fixed batch ({dims}): the policy depends on the batch size.")
    if dims[1:] != list(spec.shape):
        raise ExportError("contract", f"{spec.name} has shape {dims[1:]} in the graph, {list(spec.shape)} expected.")


def check_parity(
    policy: ExportablePolicy, model: onnx.ModelProto, feed: Feed, batches: Sequence[int] = PARITY_BATCHES
) -> float:
    """Compare graph and torch on real inputs at several batch sizes; return the largest absolute difference.

    Args:
      policy: module with its contract.
      model: its graph.
      feed: inputs; samples are taken in turn.
      batches: sizes to try; sizes other than the example's show a batch that was baked in.

    Raises:
      ExportError: a result differs by more than :data:`PARITY_RATIO` of the largest output, or has another shape.
    """
    torch = require("torch", "export")
    graph, contract, worst, start = model.SerializeToString(), policy.contract, 0.0, 0
    total = len(feed[contract.inputs[0].name])
    for batch in batches:
        picks = np.arange(start, start + batch) % total
        start += batch
        part = {t.name: np.ascontiguousarray(feed[t.name][picks]) for t in contract.inputs}
        with torch.no_grad():
            expected = policy(*(torch.from_numpy(part[t.name]) for t in contract.inputs))
        try:
            got = run_graph(graph, part)
        except Exception as error:
            raise ExportError("parity", f"the graph fails at batch {batch}: {error}") from error
        for spec, tensor in zip(contract.outputs, expected, strict=True):
            worst = max(worst, _difference(spec.name, batch, got[spec.name], tensor))
    return worst


def _difference(name: str, batch: int, got: np.ndarray[Any, Any], tensor: torch.Tensor) -> float:
    wanted = tensor.numpy()
    if got.shape != wanted.shape:
        raise ExportError("parity", f"{name} has shape {got.shape} at batch {batch}, torch gives {wanted.shape}.")
    error = float(np.max(np.abs(got.astype(np.float64) - wanted), initial=0.0))
    limit = PARITY_RATIO * max(1.0, float(np.max(np.abs(wanted), initial=0.0)))
    if not error <= limit:  # also when it is NaN
        raise ExportError("parity", f"{name} differs from torch by {error:.3g} at batch {batch}, allowed {limit:.3g}.")
    return error


def _modules(policy: Any) -> list[tuple[str, bool]]:  # noqa: ANN401 -- a torch module
    """Return the path of each submodule and whether it holds numbers."""
    return [(path, bool(m.state_dict())) for path, m in policy.named_modules() if path]


def _refuse_recurrent(policy: Any) -> None:  # noqa: ANN401 -- a torch module
    torch = require("torch", "export")
    for path, module in policy.named_modules():
        if isinstance(module, torch.nn.RNNBase):
            kind = type(module).__name__
            raise ExportError(
                "recurrent",
                f"{path or 'the policy'} is nn.{kind}, which no quantizer touches. "
                f"Write one step with nn.{kind}Cell: its weights have the same names and shapes, without the _l0.",
            )


def _check_forward(policy: ExportablePolicy, example: tuple[torch.Tensor, ...]) -> None:
    """Compare the outputs of torch with the contract; the exporter itself would cut or mix up names silently."""
    torch, contract = require("torch", "export"), policy.contract
    try:
        with torch.no_grad():
            outputs = policy(*example)
    except (RuntimeError, IndexError, TypeError, ValueError) as error:
        shapes = {t.name: tuple(x.shape) for t, x in zip(contract.inputs, example, strict=True)}
        raise ExportError("contract", f"forward fails on the contract's inputs {shapes}: {error}") from error
    if not isinstance(outputs, tuple) or len(outputs) != len(contract.outputs):
        got = f"{len(outputs)} outputs" if isinstance(outputs, tuple) else type(outputs).__name__
        names = [t.name for t in contract.outputs]
        raise ExportError("contract", f"forward returns {got}, the contract wants a tuple of {len(names)}: {names}.")
    for spec, tensor in zip(contract.outputs, outputs, strict=True):
        got = (str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape))
        expected = (spec.dtype, (EXAMPLE_BATCH, *spec.shape))
        if got != expected:
            raise ExportError("contract", f"forward returns {spec.name} as {got}, the contract wants {expected}.")


def _dynamic_shapes(policy: Any, inputs: int) -> tuple[Any, ...]:  # noqa: ANN401 -- a torch module
    batch = tuple({0: "batch"} for _ in range(inputs))
    parameters = inspect.signature(policy.forward).parameters.values()
    return (batch,) if any(p.kind is p.VAR_POSITIONAL for p in parameters) else batch


def _strip(model: onnx.ModelProto) -> None:
    """Drop stack traces and other traces of this machine; keep the module path of each node."""
    from onnx import StringStringEntryProto

    for node in model.graph.node:
        scopes = [entry.value for entry in node.metadata_props if entry.key == SCOPES]
        del node.metadata_props[:]
        node.metadata_props.extend(StringStringEntryProto(key=SCOPES, value=value) for value in scopes)
        node.doc_string = ""
    for value in (*model.graph.input, *model.graph.output, *model.graph.value_info, *model.graph.initializer):
        del value.metadata_props[:]
    del model.graph.metadata_props[:]


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence what the exporter says on every run and nobody can act on."""

    def wanted(record: logging.LogRecord) -> bool:
        return "torchvision is not installed" not in record.getMessage()

    logger = logging.getLogger("torch.onnx._internal.exporter._registration")
    logger.addFilter(wanted)
    try:
        with warnings.catch_warnings():
            # A renamed check inside torch's own tree walk.
            warnings.filterwarnings("ignore", r"`isinstance\(treespec, LeafSpec\)`", FutureWarning)
            # "batch" is wanted on every input.
            warnings.filterwarnings("ignore", "# The axis name: batch will not be used", UserWarning)
            yield
    finally:
        logger.removeFilter(wanted)
