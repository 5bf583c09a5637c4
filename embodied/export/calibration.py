"""Calibration sets: real inputs of a policy in one ``.npz`` with its hash, checked against the contract."""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embodied.export.errors import ExportError
from embodied.train.contract import ExportablePolicy, Feed, Recipe
from embodied_deploy.package.contract import PolicyContract, TensorSpec

CALIBRATION_SAMPLES = 1024
"""Samples a recipe is asked for; ranges settle with a few hundred, the rest is hold-out and parity vectors."""

MIN_SAMPLES = 64
_BLOCKS, _HOLDOUT_EVERY = 16, 4
"""Every fourth of sixteen blocks is held out: neighbours in time look alike, whole stretches of rollouts do not."""

OUTSIDE_SHARE = 0.01
"""Share of an entry's samples that may lie outside its range: rollouts touch their borders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationSet:
    """Inputs of a policy on disk.

    Attributes:
      feed: input name to (samples, …), in the contract's order.
      sha256: of the file, in hexadecimal; it goes into the contract.
      path: the file.
    """

    feed: Feed
    sha256: str
    path: Path

    @property
    def samples(self) -> int:
        """How many samples there are."""
        return len(next(iter(self.feed.values())))

    @property
    def fitting(self) -> Feed:
        """Samples that ranges are taken from."""
        return {k: v[~self._is_held_out] for k, v in self.feed.items()}

    @property
    def holdout(self) -> Feed:
        """Samples that errors are measured on: stretches of rollouts that calibration never saw."""
        return {k: v[self._is_held_out] for k, v in self.feed.items()}

    @property
    def _is_held_out(self) -> NDArray[np.bool_]:
        block = np.arange(self.samples) * _BLOCKS // self.samples
        return block % _HOLDOUT_EVERY == _HOLDOUT_EVERY - 1


def record_calibration(
    recipe: Recipe, policy: ExportablePolicy, path: Path, *, count: int = CALIBRATION_SAMPLES, seed: int = 0
) -> CalibrationSet:
    """Ask a recipe for rollouts of its own policy and keep the inputs.

    Args:
      recipe: knows the task.
      policy: acts in the rollouts, recurrent state included.
      path: file to write, ending in ``.npz``.
      count: samples.
      seed: of the episodes; use one that neither training nor evaluation uses.
    """
    return save_calibration(recipe.calibration(policy, count, seed), policy.contract, path)


def save_calibration(feed: Feed, contract: PolicyContract, path: Path) -> CalibrationSet:
    """Check inputs and write them; equal inputs give equal bytes, so equal hashes.

    Raises:
      ExportError: they do not fit the contract (reason ``calibration``).
    """
    if path.suffix != ".npz":
        raise ExportError("calibration", f"the file must end in .npz, got {path.name}.")
    check_calibration(feed, contract)
    ordered: dict[str, Any] = {t.name: np.ascontiguousarray(feed[t.name]) for t in contract.inputs}
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **ordered)  # zip entries carry a fixed date
    return CalibrationSet(feed=ordered, sha256=_sha256(path), path=path)


def load_calibration(path: Path, contract: PolicyContract, *, sha256: str = "") -> CalibrationSet:
    """Read a calibration set and check it against a contract.

    Args:
      path: the ``.npz``.
      contract: of the policy to calibrate.
      sha256: what the file's hash must be; empty accepts any.

    Raises:
      ExportError: unreadable, another hash, or it does not fit (reason ``calibration``).
    """
    try:
        loaded: Any = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            raise ValueError("a single array, .npy by its content")
        with loaded as archive:
            feed: dict[str, NDArray[Any]] = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise ExportError("calibration", f"{path} cannot be read as .npz ({error}). Record it again.") from error
    found = _sha256(path)
    if sha256 and found != sha256:
        raise ExportError("calibration", f"{path} has sha256 {found[:12]}…, {sha256[:12]}… expected: another set.")
    check_calibration(feed, contract)
    return CalibrationSet(feed={t.name: feed[t.name] for t in contract.inputs}, sha256=found, path=path)


def check_calibration(feed: Feed, contract: PolicyContract) -> None:
    """Refuse inputs that are not those of the contract.

    Raises:
      ExportError: other names, types or shapes, too few samples, unequal counts, values that are not finite, outside
        the contract's range or the vocabulary (reason ``calibration``).
    """
    wanted = [t.name for t in contract.inputs]
    if sorted(feed) != sorted(wanted):
        raise ExportError("calibration", f"it holds {sorted(feed)}, {contract.name} takes {sorted(wanted)}.")
    counts = {name: len(values) if values.ndim else 0 for name, values in feed.items()}
    if len(set(counts.values())) != 1:
        raise ExportError("calibration", f"its inputs have unequal numbers of samples: {counts}.")
    if min(counts.values()) < MIN_SAMPLES:
        raise ExportError("calibration", f"{min(counts.values())} samples, at least {MIN_SAMPLES} are needed.")
    for spec in contract.inputs:
        _check_input(feed[spec.name], spec, contract)


def _check_input(values: NDArray[Any], spec: TensorSpec, contract: PolicyContract) -> None:
    if str(values.dtype) != spec.dtype:
        raise ExportError("calibration", f"{spec.name} is {values.dtype}, {spec.dtype} expected.")
    if values.shape[1:] != spec.shape:
        raise ExportError("calibration", f"{spec.name} has samples of shape {values.shape[1:]}, {spec.shape} expected.")
    if not np.isfinite(values).all():
        bad = int(np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))[0])
        raise ExportError("calibration", f"{spec.name} is not finite in sample {bad}.")
    words = contract.vocabulary.get(spec.name)
    if spec.role == "tokens" and words and (values.min() < 0 or values.max() >= len(words)):
        span = f"{values.min()}..{values.max()}"
        raise ExportError("calibration", f"{spec.name} holds tokens {span}, the vocabulary has {len(words)}.")
    for i, entry in enumerate(spec.entries):
        column = values[..., i]
        slack = 1e-5 * max(1.0, abs(entry.low), abs(entry.high))
        share = float(np.mean((column < entry.low - slack) | (column > entry.high + slack)))
        if share > OUTSIDE_SHARE:
            raise ExportError(
                "calibration",
                f"{entry.name} spans {column.min():.4g}..{column.max():.4g} {entry.unit}, {share:.0%} of it outside of "
                f"the contract's {entry.low:g}..{entry.high:g}: other units, another robot, or a range too narrow.",
            )


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
