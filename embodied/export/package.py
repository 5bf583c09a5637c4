"""Policy to packages: graph, quantization, gate, parity vectors, one file per precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

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

PARITY_VECTORS = 256
_PARITY_BYTES = 500_000
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
      errors: against fp32 on the hold-out, one per output.
    """

    path: Path
    contract: PolicyContract
    graph: bytes
    errors: tuple[OutputError, ...]


def check_precisions(precisions: Sequence[str]) -> None:
    """Refuse precisions that there are not.

    Raises:
      ExportError: names the first (reason ``contract``).
    """
    for precision in precisions:
        if precision not in PRECISIONS:
            raise ExportError("contract", f"no precision {precision!r}; there are {', '.join(PRECISIONS)}.")


def package_path(out: Path, contract: PolicyContract, precision: str) -> Path:
    """Return where the package of a precision goes: ``<name>@<major version>.<precision>.policy``."""
    return out / f"{contract.name}@{contract.version.split('.')[0]}.{precision}{SUFFIX}"


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
    """Write a package for each precision; the first one refused ends it.

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
    exporter = PolicyExporter(policy, inputs, out, options=options, signer=signer)
    return [exporter.write(precision, is_forced=is_forced) for precision in precisions]


class PolicyExporter:
    """Exports a policy once and writes it at several precisions.

    Args:
      policy: module with its contract.
      inputs: see :func:`export_policy`.
      out: folder.
      options: exclusions and limits of the gate.
      signer: signs the packages.

    Raises:
      ExportError: see :func:`embodied.export.onnx.to_onnx`.
    """

    def __init__(
        self,
        policy: ExportablePolicy,
        inputs: CalibrationSet | Feed,
        out: Path,
        *,
        options: ExportOptions | None = None,
        signer: Signer | None = None,
    ) -> None:
        self.contract = policy.contract
        self.calibration = inputs if isinstance(inputs, CalibrationSet) else _kept(inputs, policy.contract, out)
        self._out, self._signer = out, signer
        self._options = options or ExportOptions()
        self._model = to_onnx(policy, self.calibration.feed)
        self._vectors = _vectors(self.calibration, self.contract)
        self._reference = _torch_outputs(policy, self._vectors)

    def write(self, precision: str, *, is_forced: bool = False) -> Exported:
        """Write the package of a precision.

        Args:
          precision: of :data:`embodied_deploy.package.contract.PRECISIONS`.
          is_forced: keep it even when the hold-out gate refuses it.

        Raises:
          ExportError: see :func:`export_policy`; :class:`embodied.export.gate.GateError` carries the figures.
        """
        check_precisions([precision])
        graph, errors = self._at(precision, is_forced=is_forced)
        outputs, atol = answers(graph, self._vectors, precision)
        contract = replace(
            self.contract,
            precision=precision,
            parity_atol=atol,
            calibration_sha256=self.calibration.sha256 if precision == "int8-static" else "",
        )
        path = package_path(self._out, contract, precision)
        self._out.mkdir(parents=True, exist_ok=True)
        parity = Parity(inputs=self._vectors, reference=self._reference, outputs=outputs)
        write_package(path, contract, graph, parity, signer=self._signer)
        return Exported(path=path, contract=contract, graph=graph, errors=errors)

    def _at(self, precision: str, *, is_forced: bool) -> tuple[bytes, tuple[OutputError, ...]]:
        holdout, graph = self.calibration.holdout, self._model.SerializeToString()
        reference = run_graph(graph, holdout)
        if precision == "fp32":
            return graph, measure_errors(reference, reference, self.contract)
        from embodied.export.quantize import quantize

        made = quantize(self._model, precision, self.calibration, self.contract, self._options)
        graph = made.SerializeToString()
        # One at a time: dynamic quantization scales by the largest value of a call.
        got = run_graph(graph, holdout, batch=1 if precision == "int8-dynamic" else None)
        errors = measure_errors(reference, got, self.contract)
        if not is_forced:
            check_gate(errors, self._options.limits, precision)
        return graph, errors


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
