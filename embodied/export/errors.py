"""The error of the exporter; ``reason`` is a word for logs and tests."""

from __future__ import annotations

from embodied.errors import EmbodiedError

REASONS = (
    "contract",  # graph and contract disagree
    "recurrent",  # nn.GRU and its like, which no quantizer touches
    "parity",  # the graph does not compute what torch computes
    "normalizer",  # normaliser or limiter was quantized, folded or lost
    "calibration",  # the calibration set does not fit the contract
    "exclude",  # no such layer
    "nothing_quantized",  # the quantizer found nothing to do
    "gate",  # the hold-out error is above its limits
)


class ExportError(EmbodiedError):
    """A policy was not exported.

    Args:
      reason: why, one of :data:`REASONS`.
      message: what, got, expected, how to fix.
    """

    def __init__(self, reason: str, message: str) -> None:
        assert reason in REASONS, reason
        super().__init__(f"{reason}: {message}")
        self.reason = reason
