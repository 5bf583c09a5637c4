"""Policy to packages: graph, quantization, gate, parity vectors, one file per precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embodied.errors import require
from embodied.export.calibration import CalibrationSet, save_calibration
from embodied.export.errors import ExportError
from embodied.export.gate import OutputError, check_gate, measure_errors
from embodied.export.onnx import to_onnx
from embodied.export.options import ExportOptions
from embodied.export.session import Outputs, run_graph
from embodied.train.contract import ExportablePolicy, Feed
from embodied_deploy.package.contract import PRECISIONS, PolicyContract
from embodied_deploy.package.load import SUFFIX, Signer, write_package
from embodied_deploy.package.parity import Parity

if TYPE_CHECKING:
    import onnx

PARITY_VECTORS = 256
_PARITY_BYTES = 4_000_000
"""Images make vectors large; fewer are kept then, never under 16."""

_FLOOR = {"fp32": 1e-5, "fp16": 1e-2, "int8-dynamic": 1e-4, "int8-static": 1e-4, "w4a8": 4e-2}
"""Smallest tolerance of parity as a share of the largest output. Measured between x86 and aarch64: fp32 and int8 3e-7,
fp16 2e-3 to 4e-3 (real half arithmetic there), w4a8 7e-3 to 2e-2 (another kernel)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """One package that was written.

    Attributes:
      path: the file.
      contract: inside it.
      graph: its ONNX bytes.
      errors: against fp32 on the hold-out, one per output; of torch and graph for fp32 itself.
    """

    path: Path
    contract: PolicyContract
    graph: bytes
    errors: tuple[OutputError, ...]


def package_path(out: Path, contract: PolicyContract, precision: str) -> Path:
    """Return where the package of a precision goes: ``<name>-<precision>.policy``."""
    return out / f"{contract.name}-{precision}{SUFFIX}"


def export_policy(
    policy: ExportablePolicy,
    inputs: CalibrationSet | Feed,
    out: Path,
    *,
    precisions: Sequence[str] = ("fp32",),
    options: ExportOptions | None = None,
    signer: Signer | None = None,
    is_forced: bool = False,
) -> list[Exported]:
    """Write a package for each precision.

    Args:
      policy: module with its contract.
      inputs: calibration set, or real inputs by name (batch, …), which are then kept as ``<name>-calibration.npz``.
      out: folder.
      precisions: of :data:`embodied_deploy.package.contract.PRECISIONS`.
      options: exclusions and limits of the gate.
      signer: signs the packages.
      is_forced: keep a precision that the hold-out gate refuses; its figures are in the result.

    Returns:
      The packages in the order of ``precisions``.

    Raises:
      ExportError: what :func:`embodied.export.onnx.to_onnx` and :func:`embodied.export.quantize.quantize` raise, and
        ``gate`` when a precision is too far from fp32.
    """
    chosen, contract = options or ExportOptions(), policy.contract
    unknown = [p for p in precisions if p not in PRECISIONS]
    if unknown:
        raise ExportError("contract", f"no precision {', '.join(unknown)}; there are {', '.join(PRECISIONS)}.")
    calibration = inputs if isinstance(inputs, CalibrationSet) else _kept(inputs, contract, out)
    model = to_onnx(policy, calibration.feed)
    vectors = _vectors(calibration, contract)
    reference = _torch_outputs(policy, vectors)
    written = []
    for precision in precisions:
        graph, errors = _at_precision(model, precision, calibration, contract, chosen, is_forced=is_forced)
        outputs, atol = answers(graph, vectors, precision)
        final = replace(
            contract,
            precision=precision,
            parity_atol=atol,
            calibration_sha256=calibration.sha256 if precision == "int8-static" else "",
        )
        path = package_path(out, contract, precision)
        out.mkdir(parents=True, exist_ok=True)
        parity = Parity(inputs=vectors, reference=reference, outputs=outputs)
        write_package(path, final, graph, parity, signer=signer)
        written.append(Exported(path=path, contract=final, graph=graph, errors=errors))
    return written


def answers(graph: bytes, vectors: Feed, precision: str) -> tuple[Outputs, float]:
    """Return the answers of a graph to parity vectors, one row at a time, and the tolerance that they need.

    The tolerance is measured: the same rows through unfused kernels and in a batch, times a margin.
    """
    outputs = run_graph(graph, vectors, batch=1)
    others = [run_graph(graph, vectors, batch=1, optimize=False)]
    if precision != "int8-dynamic":  # its scale is taken over the batch
        others.append(run_graph(graph, vectors))
    spread = max(float(np.abs(o[n].astype(np.float64) - v).max()) for o in others for n, v in outputs.items())
    scale = max(1.0, *(float(np.abs(v).max()) for v in outputs.values()))
    margin = 10.0 if precision == "fp32" else 2.0  # int8: a rounding that falls to the other side moves a whole step
    return outputs, float(f"{max(_FLOOR[precision] * scale, margin * spread):.2g}")


def _at_precision(
    model: onnx.ModelProto,
    precision: str,
    calibration: CalibrationSet,
    contract: PolicyContract,
    options: ExportOptions,
    *,
    is_forced: bool,
) -> tuple[bytes, tuple[OutputError, ...]]:
    holdout, graph = calibration.holdout, model.SerializeToString()
    reference = run_graph(graph, holdout)
    if precision == "fp32":
        return graph, measure_errors(reference, reference, contract)
    from embodied.export.quantize import quantize

    graph = quantize(model, precision, calibration, contract, options).SerializeToString()
    # One at a time: dynamic quantization scales by the largest value of a call.
    got = run_graph(graph, holdout, batch=1 if precision == "int8-dynamic" else None)
    errors = measure_errors(reference, got, contract)
    if not is_forced:
        check_gate(errors, options.limits, precision)
    return graph, errors


def _kept(feed: Feed, contract: PolicyContract, out: Path) -> CalibrationSet:
    return save_calibration(feed, contract, out / f"{contract.name}-calibration.npz")


def _vectors(calibration: CalibrationSet, contract: PolicyContract) -> Feed:
    """Take samples evenly over the whole set."""
    row = sum(calibration.feed[t.name][:1].nbytes for t in contract.inputs)
    count = min(PARITY_VECTORS, calibration.samples, max(16, _PARITY_BYTES // row))
    picks = np.linspace(0, calibration.samples - 1, count).astype(np.int64)
    return {t.name: calibration.feed[t.name][picks] for t in contract.inputs}


def _torch_outputs(policy: ExportablePolicy, vectors: Feed) -> Outputs:
    torch = require("torch", "export")
    contract = policy.contract
    with torch.no_grad():
        found: Any = policy(*(torch.from_numpy(np.ascontiguousarray(vectors[t.name])) for t in contract.inputs))
    return {t.name: tensor.numpy() for t, tensor in zip(contract.outputs, found, strict=True)}
