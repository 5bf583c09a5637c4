"""What both sides tell each other first: JSON, because it is read once and by people."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embodied_controllers.contract import ActionSpec, ObservationSpec
from embodied_deploy.errors import LinkError

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """The server's side of the first exchange.

    Attributes:
      name: of the robot.
      kind: robot kind.
      dt_ctrl_s: control period.
      action_spec: order, units and limits of a command.
      observation_spec: order, units and limits of a state.
      lockstep: whether the robot's time waits for commands.
      watchdog_s: without a command for this long the robot stops itself.
      session: that the client must put into its frames.
    """

    name: str
    kind: str
    dt_ctrl_s: float
    action_spec: ActionSpec
    observation_spec: ObservationSpec
    lockstep: bool
    watchdog_s: float
    session: int


def encode_welcome(welcome: Welcome) -> bytes:
    """Return the payload of a WELCOME frame."""
    a, o = welcome.action_spec, welcome.observation_spec
    value = {
        "name": welcome.name,
        "kind": welcome.kind,
        "dt_ctrl_s": welcome.dt_ctrl_s,
        "lockstep": welcome.lockstep,
        "watchdog_s": _number(welcome.watchdog_s),
        "session": welcome.session,
        "action": {
            "names": list(a.names),
            **{k: [_number(v) for v in getattr(a, k)] for k in ("low", "high", "safe")},
            "groups": {k: [s.start, s.stop] for k, s in a.groups.items()},
        },
        "observation": {
            **{k: list(getattr(o, k)) for k in ("joint_names", "signals", "cameras")},
            **{k: [_number(v) for v in getattr(o, k)] for k in ("joint_low", "joint_high", "joint_vel_max")},
            "rate_hz": o.rate_hz,
        },
    }
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def decode_welcome(payload: bytes) -> Welcome:
    """Return what a WELCOME frame says.

    Raises:
      LinkError: it is not readable.
    """
    try:
        v: Any = json.loads(payload)
        a, o = v["action"], v["observation"]
        action_spec = ActionSpec(
            names=tuple(a["names"]),
            low=_array(a["low"]),
            high=_array(a["high"]),
            safe=_array(a["safe"]),
            groups={k: slice(*s) for k, s in a["groups"].items()},
        )
        observation_spec = ObservationSpec(
            joint_names=tuple(o["joint_names"]),
            joint_low=_array(o["joint_low"]),
            joint_high=_array(o["joint_high"]),
            joint_vel_max=_array(o["joint_vel_max"]),
            signals=tuple(o["signals"]),
            cameras=tuple(o["cameras"]),
            rate_hz=float(o["rate_hz"]),
        )
        sizes = {len(x) for x in (action_spec.low, action_spec.high, action_spec.safe)}
        joints = {len(getattr(observation_spec, n)) for n in ("joint_low", "joint_high", "joint_vel_max")}
        if sizes != {action_spec.size} or joints != {len(observation_spec.joint_names)} or not v["dt_ctrl_s"] > 0:
            raise ValueError("lengths of names and limits differ, or the period is not positive")
        return Welcome(
            name=str(v["name"]),
            kind=str(v["kind"]),
            dt_ctrl_s=float(v["dt_ctrl_s"]),
            action_spec=action_spec,
            observation_spec=observation_spec,
            lockstep=bool(v["lockstep"]),
            watchdog_s=_value(v["watchdog_s"]),
            session=int(v["session"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LinkError(f"the robot's hello is not readable ({error!r}). Do both sides run the same version?") from None


def _number(value: float) -> float | str:
    # JSON has neither NaN nor infinity; finite numbers are written so that they read back bit by bit.
    return float(value) if isfinite(value) else str(float(value))


def _value(value: float | str) -> float:
    return float(value)


def _array(values: list[float | str]) -> Array:
    return np.array([float(v) for v in values], dtype=np.float64)
