"""Classical controllers that take over from a policy. A contract names one of :data:`FALLBACKS`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from difflib import get_close_matches
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from embodied_controllers.contract import ActionSpec, ObservationSpec, RobotState
from embodied_deploy.errors import PackageError

Array = NDArray[np.float64]


class Fallback(Protocol):
    """Keeps a robot from harm without a policy.

    Attributes:
      needs_state: whether it is blind without a fresh state; the runtime then takes the safe action instead.
    """

    needs_state: bool

    def reset(self, state: RobotState, last_action: Array) -> None:
        """Take over at ``state`` without a jump."""
        ...

    def act(self, state: RobotState) -> Array:
        """Return (n_actions,) for this period; NaN holds an entry."""
        ...


FALLBACKS: dict[str, str] = {
    "quadrotor/position_hold@1": "embodied_deploy.runtime.fallbacks:QuadrotorHold",
    "base/stop@1": "embodied_deploy.runtime.fallbacks:BaseStop",
}
"""Name to ``module:class``; the class takes (action spec, observation spec, period [s])."""


def make_fallback(name: str, action_spec: ActionSpec, observation_spec: ObservationSpec, dt_s: float) -> Fallback:
    """Build a fallback for a robot.

    Raises:
      PackageError: ``format``: no such fallback; ``robot``: it cannot drive this robot.
    """
    if name not in FALLBACKS:
        near = get_close_matches(name, FALLBACKS, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(FALLBACKS)}."
        raise PackageError("format", f"fallback {name!r} is not known to this runtime. {hint}")
    module, _, attribute = FALLBACKS[name].partition(":")
    build: Callable[..., Fallback] = getattr(importlib.import_module(module), attribute)
    return build(action_spec, observation_spec, dt_s)
