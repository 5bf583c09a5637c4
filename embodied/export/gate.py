"""The hold-out gate: how far a quantized graph is from fp32, and whether that is near enough."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embodied.export.errors import ExportError
from embodied.export.options import GateLimits
from embodied.export.session import Outputs
from embodied_deploy.package.contract import PolicyContract, TensorSpec

_FLOOR_OF_RANGE = 0.01
"""An action that hardly moves on the hold-out is judged against this share of its range instead of its own spread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputError:
    """Difference of one output to fp32 on the hold-out.

    Attributes:
      name: output name.
      role: its role; states are reported and not judged.
      samples: size of the hold-out.
      mean_abs: mean absolute difference, in the output's units.
      max_abs: largest absolute difference.
      mean_of_std: mean difference as a share of the output's standard deviation, averaged over entries.
      max_of_range: largest difference as a share of its entry's range; None without ranges.
      agreement: share of samples with the same largest score, or of scores with the same sign where the contract has
        words for other outputs and none for this one; None for other roles.
    """

    name: str
    role: str
    samples: int
    mean_abs: float
    max_abs: float
    mean_of_std: float
    max_of_range: float | None = None
    agreement: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return asdict(self)


class GateError(ExportError):
    """A precision is too far from fp32.

    Args:
      precision: which.
      errors: what was measured.
      message: which limits it breaks.
    """

    def __init__(self, precision: str, errors: tuple[OutputError, ...], message: str) -> None:
        super().__init__("gate", message)
        self.precision = precision
        self.errors = errors


def measure_errors(reference: Outputs, got: Outputs, contract: PolicyContract) -> tuple[OutputError, ...]:
    """Compare outputs with those of fp32.

    Args:
      reference: output name to (samples, …) of the fp32 graph.
      got: the same of the quantized one.
      contract: gives roles and ranges.
    """
    # With words for some outputs, the others are not choices but independent scores, such as what is visible.
    yes_no = {t.name for t in contract.outputs if contract.vocabulary and t.name not in contract.vocabulary}
    return tuple(_measure(t, reference[t.name], got[t.name], is_choice=t.name not in yes_no) for t in contract.outputs)


def check_gate(errors: tuple[OutputError, ...], limits: GateLimits, precision: str) -> None:
    """Refuse a graph whose errors are above the limits.

    Raises:
      GateError: with the figures.
    """
    found = [line for error in errors for line in _violations(error, limits)]
    if found:
        raise GateError(
            precision,
            errors,
            f"{precision} is too far from fp32 on {errors[0].samples} held-out samples: {'; '.join(found)}. Exclude "
            "the layers that matter (--exclude), choose another precision, or keep it all the same with --force.",
        )


def _measure(spec: TensorSpec, reference: NDArray[Any], got: NDArray[Any], *, is_choice: bool) -> OutputError:
    wanted, found = reference.astype(np.float64), got.astype(np.float64)
    width = spec.shape[-1] if spec.shape else 1
    wanted, found = wanted.reshape(-1, width), found.reshape(-1, width)
    error = np.abs(found - wanted)
    spread = wanted.std(axis=0)
    ranges = np.array([e.high - e.low for e in spec.entries]) if spec.entries else None
    floor = 1e-6 + (_FLOOR_OF_RANGE * ranges if ranges is not None else 0.0)
    agreement = None
    if spec.role == "score" and width > 1:
        same = wanted.argmax(axis=1) == found.argmax(axis=1) if is_choice else (wanted > 0) == (found > 0)
        agreement = float(np.mean(same)) if np.isfinite(found).all() else 0.0
    return OutputError(
        name=spec.name,
        role=spec.role,
        samples=len(reference),
        mean_abs=float(error.mean()),
        max_abs=float(error.max()),
        mean_of_std=float(np.mean(error.mean(axis=0) / np.maximum(spread, floor))),
        max_of_range=None if ranges is None else float((error / ranges).max()),
        agreement=agreement,
    )


def _violations(error: OutputError, limits: GateLimits) -> list[str]:
    found: list[str] = []
    # Written so that NaN is a violation.
    if error.role == "score" and error.agreement is not None and not error.agreement >= limits.agreement:
        found.append(f"{error.name} agrees in {error.agreement:.1%} of its choices, {limits.agreement:.1%} needed")
    if (error.role == "action" or (error.role == "score" and error.agreement is None)) and not (
        error.mean_of_std <= limits.mean_of_std
    ):
        found.append(f"mean error of {error.name} {error.mean_of_std:.2%} of its std, {limits.mean_of_std:.2%} allowed")
    if error.role == "action" and error.max_of_range is not None and not error.max_of_range <= limits.max_of_range:
        found.append(
            f"largest error of {error.name} {error.max_of_range:.2%} of its range, {limits.max_of_range:.0%} allowed"
        )
    return found
