"""Parity vectors: inputs and the answers they had at export, so that a target can prove that it computes the same."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from embodied_deploy.errors import PackageError
from embodied_deploy.package.archive import pack, unpack
from embodied_deploy.package.contract import PolicyContract, TensorSpec

Tensors = Mapping[str, NDArray[np.generic]]
MIN_COUNT = 8
"""Fewest vectors of a package; 256 are wanted where they are small, 16 or more for images."""
_CHUNK = 32
# The scale of dynamic quantization is taken over the whole batch: other rows change the answer to this one.
_BATCH_DEPENDENT = ("int8-dynamic",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parity:
    """Answers recorded at export, one row per vector.

    Attributes:
      inputs: input name to (n, …) in the dtype of the contract.
      reference: output name to (n, …): the fp32 policy in training code.
      outputs: output name to (n, …): this package's own graph, asked one row at a time.
    """

    inputs: Tensors
    reference: Tensors
    outputs: Tensors

    @property
    def count(self) -> int:
        """Number of vectors."""
        return next((len(v) for v in self.inputs.values()), 0)


def encode_parity(parity: Parity) -> bytes:
    """Return the ``.npz`` bytes: what ``numpy.load`` reads under the keys ``inputs/<name>`` and so on."""
    groups = {"inputs": parity.inputs, "reference": parity.reference, "outputs": parity.outputs}
    return pack({f"{g}/{name}.npy": _npy(v) for g, tensors in groups.items() for name, v in tensors.items()})


def decode_parity(data: bytes) -> Parity:
    """Return the vectors of :func:`encode_parity`.

    Raises:
      PackageError: ``torn`` or ``format``.
    """
    groups: dict[str, dict[str, NDArray[np.generic]]] = {"inputs": {}, "reference": {}, "outputs": {}}
    try:
        for key, raw in unpack(data, "parity.npz").items():
            group, _, name = key.removesuffix(".npy").partition("/")
            groups[group][name] = np.lib.format.read_array(io.BytesIO(raw), allow_pickle=False)
    except (ValueError, KeyError, EOFError, OSError) as error:
        raise PackageError("format", f"parity.npz: not readable ({error}). Export the package again.") from None
    return Parity(**groups)


def check_shapes(parity: Parity, contract: PolicyContract) -> None:
    """Refuse vectors that do not belong to a contract.

    Raises:
      PackageError: ``parity``.
    """
    groups = (
        ("inputs", parity.inputs, contract.inputs),
        ("reference", parity.reference, contract.outputs),
        ("outputs", parity.outputs, contract.outputs),
    )
    for group, tensors, specs in groups:
        if set(tensors) != {s.name for s in specs}:
            raise PackageError("parity", f"{group}: holds {sorted(tensors)}, expected {[s.name for s in specs]}.")
        for spec in specs:
            _check_tensor(group, tensors[spec.name], spec, parity.count)
    if parity.count < MIN_COUNT:
        raise PackageError("parity", f"{parity.count} vectors, expected at least {MIN_COUNT}. Export with more.")


def check_parity(parity: Parity, contract: PolicyContract, run: Callable[[Tensors], Tensors]) -> float:
    """Ask the graph the vectors one at a time and in batches, and compare.

    Args:
      parity: vectors that fit the contract.
      contract: names the outputs and the tolerance.
      run: feeds (batch, …) arrays to the graph and returns its outputs by name.

    Returns:
      The largest absolute difference.

    Raises:
      PackageError: ``parity``: an answer differs by more than ``parity_atol``, or a batch is not answered.
    """
    worst = 0.0
    rows = range(parity.count)
    batches = [[i] for i in rows]
    if contract.precision in _BATCH_DEPENDENT:
        batches += [[i, i, i] for i in rows[:_CHUNK]]
    else:
        batches += [list(rows[i : i + _CHUNK]) for i in rows[::_CHUNK]]
    for batch in batches:
        try:
            answers = run({name: v[batch] for name, v in parity.inputs.items()})
        except Exception as error:  # the runtime's own classes, which differ between its versions
            raise PackageError("parity", f"the graph cannot answer a batch of {len(batch)}: {error}") from error
        for name, expected in parity.outputs.items():
            worst = max(worst, _difference(answers[name], expected[batch], name, contract))
    return worst


def _difference(got: NDArray[np.generic], expected: NDArray[np.generic], name: str, contract: PolicyContract) -> float:
    if got.shape != expected.shape:
        raise PackageError("parity", f"{name}: answers have the shape {got.shape}, expected {expected.shape}.")
    error = float(np.max(np.abs(got.astype(np.float64) - expected.astype(np.float64)), initial=0.0))
    if not error <= contract.parity_atol:  # also true for NaN
        raise PackageError(
            "parity",
            f"{name}: differs by {error:.3g} from the parity vectors at batch size {len(got)}, allowed are "
            f"{contract.parity_atol:g}. This processor or onnxruntime computes {contract.precision} differently: "
            "export another precision or update it.",
        )
    return error


def _check_tensor(group: str, value: NDArray[np.generic], spec: TensorSpec, count: int) -> None:
    expected = (count, *spec.shape)
    if value.shape != expected or value.dtype != spec.dtype:
        raise PackageError(
            "parity", f"{group}/{spec.name}: {value.dtype} {value.shape}, expected {spec.dtype} {expected}."
        )
    if not np.isfinite(value).all():
        raise PackageError("parity", f"{group}/{spec.name}: holds NaN or infinity.")


def _npy(value: NDArray[np.generic]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(value), version=(1, 0), allow_pickle=False)
    return buffer.getvalue()
