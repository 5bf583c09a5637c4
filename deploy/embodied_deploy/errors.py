"""The errors of the device side. Each says what, got, expected and how to fix it; ``reason`` is a word for logs."""

from __future__ import annotations


class DeployError(Exception):
    """Base of every error raised on purpose on the device side."""


class UsageError(DeployError):
    """A command was given what its package or robot does not take."""


class PackageError(DeployError):
    """A policy package was refused.

    Args:
      reason: why, one of :data:`REASONS`, for logs and tests.
      message: what, got, expected, how to fix.
    """

    def __init__(self, reason: str, message: str) -> None:
        assert reason in REASONS, reason
        super().__init__(f"{reason}: {message}")
        self.reason = reason


REASONS = (
    "torn",  # not a whole package file
    "missing_file",
    "hash",
    "signature",
    "format",  # contract of another format version, or not readable
    "opset",
    "tensor",  # graph and contract disagree on names, shapes or types
    "order",  # entries or joints in another order than the graph or the robot has
    "unit",
    "frame",
    "range",
    "rate",
    "robot",  # another robot kind, or a joint, camera or signal that it lacks
    "parity",  # the graph does not reproduce its parity vectors here
    "calibration",
)


class ObservationError(DeployError):
    """An observation does not fit the contract: wrong shape, NaN, or a channel nobody filled."""


class PolicyOutputError(ObservationError):
    """A policy answered with NaN or infinity. Handled like an observation that does not fit: nothing of it is used."""


class MissingExtraError(DeployError, ImportError):
    """An optional library is needed and not installed; the message says how to install it."""


class LinkError(DeployError):
    """A peer is silent, gone, or speaks another protocol."""
