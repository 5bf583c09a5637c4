"""One policy in onnxruntime, set up for a control loop: one thread, no spinning, everything bound and warm."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embodied_deploy.errors import MissingExtraError, ObservationError, PackageError
from embodied_deploy.package.contract import TensorSpec
from embodied_deploy.package.load import Package

Tensor = NDArray[Any]
WARM_UP_RUNS = 20
"""The first run of a graph takes 2 to 7 times as long as the twentieth (buffers, packed weights, caches)."""
_CPU = "CPUExecutionProvider"


def open_session(graph: bytes, *, threads: int = 1, config: Mapping[str, str] | None = None) -> Any:  # noqa: ANN401
    """Return an ``onnxruntime.InferenceSession`` with the settings of a control loop.

    One intra-op thread, sequential, no spinning threads (two spinning threads burn a whole core of a 100 Hz loop), the
    CPU provider by name (the wheel lists another first).

    Args:
      graph: bytes of the ONNX file.
      threads: 1; 2 pays only for models of several million weights.
      config: further session options by key, for instance ``{"mlas.disable_kleidiai": "1"}`` on ARM.

    Raises:
      MissingExtraError: onnxruntime is not installed.
      PackageError: ``format`` or ``opset``: onnxruntime refuses the graph.
    """
    try:
        ort = importlib.import_module("onnxruntime")
    except ImportError as error:
        raise MissingExtraError(
            f"onnxruntime runs the policy and is not installed ({error}). "
            "Install it with: pip install 'embodied-stack[edge]'"
        ) from error
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 3
    for key, value in {"session.intra_op.allow_spinning": "0", **(config or {})}.items():
        options.add_session_config_entry(key, value)
    try:
        return ort.InferenceSession(graph, options, providers=[_CPU])
    except Exception as error:  # onnxruntime's own classes, which differ between its versions
        reason = "opset" if "opset" in str(error).lower() else "format"
        raise PackageError(
            reason, f"onnxruntime {ort.__version__} does not load the graph ({error}). Update it or export again."
        ) from error


class PolicySession:
    """The graph of a package with inputs and outputs bound for batch size 1. For one thread.

    State is not carried from run to run: see :class:`embodied_deploy.policy.controller.PolicyController`.

    Args:
      package: a loaded package.
      threads: see :func:`open_session`.
      config: further session options by key.

    Attributes:
      contract: of the package.
      inputs: input name to the bound (1, …) array; fill in place, then :meth:`run`.
      outputs: output name to the bound (1, …) array; overwritten by each :meth:`run`.
    """

    def __init__(self, package: Package, threads: int = 1, config: Mapping[str, str] | None = None) -> None:
        self.contract = package.contract
        self._session = open_session(package.graph, threads=threads, config=config)
        self._names = [t.name for t in self.contract.outputs]
        self._specs = {t.name: t for t in self.contract.inputs}
        self.inputs: Mapping[str, Tensor] = {t.name: _buffer(t) for t in self.contract.inputs}
        self.outputs: Mapping[str, Tensor] = {t.name: _buffer(t) for t in self.contract.outputs}
        self._binding = self._session.io_binding()
        for name, array in self.inputs.items():
            self._binding.bind_input(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        for name, array in self.outputs.items():
            self._binding.bind_output(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        # The wrapper of the binding adds a Python call to each run; the object under it is what the wrapper calls.
        self._run = self._session.run_with_iobinding
        for _ in range(WARM_UP_RUNS):
            self.run()

    def run(self) -> None:
        """Turn the bound inputs into the bound outputs."""
        self._run(self._binding)

    def infer(self, feed: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the outputs for a batch, as arrays of their own.

        Args:
          feed: each input by name, (batch, …) in the dtype of the contract. Batch size 1 takes the bound path.

        Raises:
          ObservationError: an input is missing, unknown, of another shape or type, or holds NaN.
        """
        if len(feed) != len(self.inputs):
            self._check(feed)
        for name, array in self.inputs.items():
            value = feed.get(name)
            if value is None or value.shape != array.shape or value.dtype != array.dtype:
                return self._infer_batch(feed)
            np.copyto(array, value)
            if array.dtype.kind == "f" and not all_finite(array):
                self._check(feed)
        self.run()
        return {name: array.copy() for name, array in self.outputs.items()}

    def _infer_batch(self, feed: Mapping[str, Tensor]) -> dict[str, Tensor]:
        self._check(feed)
        return dict(zip(self._names, self._session.run(self._names, dict(feed)), strict=True))

    def _check(self, feed: Mapping[str, Tensor]) -> None:
        """Refuse a feed with the reason; says nothing about one that fits."""
        if feed.keys() != self._specs.keys():
            raise ObservationError(f"inputs {sorted(feed)}: expected exactly {sorted(self._specs)}.")
        batch = -1
        for name, spec in self._specs.items():
            value = feed[name]
            if value.dtype != spec.dtype or value.shape[1:] != spec.shape or value.ndim != len(spec.shape) + 1:
                raise ObservationError(
                    f"{name}: {value.dtype} {value.shape}, expected {spec.dtype} and (batch, {str(spec.shape)[1:-1]})."
                )
            if batch not in (-1, len(value)):
                raise ObservationError(f"{name}: batch of {len(value)}, the inputs before it have {batch}.")
            batch = len(value)
            if spec.dtype == "float32" and not all_finite(value):
                raise ObservationError(f"{name}: holds NaN or infinity.")


def all_finite(value: Tensor) -> bool:
    """Return whether a float array holds neither NaN nor infinity."""
    # Searching the bytes of the mask takes a third of the time of its method all(), and warns of nothing.
    return 0 not in np.isfinite(value).tobytes()


def _buffer(spec: TensorSpec) -> Tensor:
    return np.zeros((1, *spec.shape), dtype=spec.dtype)
