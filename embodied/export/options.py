"""What an export may be told: precisions, layers left alone, limits of the gate."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class GateLimits:
    """Largest errors against fp32 on the hold-out of the calibration set.

    Attributes:
      mean_of_std: mean absolute error of actions, as a share of the action's standard deviation.
      max_of_range: largest absolute error of an action, as a share of its range in the contract.
      agreement: smallest share of samples with the same best score, for every output of role ``score`` (of scores with
        the same sign, for outputs beside those that the vocabulary has words for).
    """

    mean_of_std: float = 0.02
    max_of_range: float = 0.15
    agreement: float = 0.98


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """How a policy is quantized. A recipe may carry its own as ``export_options``.

    Attributes:
      exclude: layers left in fp32: module paths such as ``head`` or ``body.0`` (everything below them too), or names of
        nodes. Submodules named ``normalizer`` and ``limiter`` are always left alone.
      per_channel: one scale per output channel of a weight; costs time in small MLPs, saves error elsewhere.
      static_ops: operators that ``int8-static`` quantizes; none means all that the quantizer knows.
      narrow_convolutions: quantize convolutions over few channels too, such as the first one over an image; smaller by
        a kilobyte, slower and less exact.
      limits: of the gate.
    """

    exclude: tuple[str, ...] = ()
    per_channel: bool = True
    static_ops: tuple[str, ...] = ()
    narrow_convolutions: bool = False
    limits: GateLimits = field(default_factory=GateLimits)
