"""Commands and samples as bytes. Numbers travel as float64, so that what arrives is bit by bit what was sent."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embodied_controllers.contract import ActionSpec, ObservationSpec, RobotState
from embodied_deploy.errors import LinkError
from embodied_deploy.robots.sense import Senses

Array = NDArray[np.float64]
_COMMAND = struct.Struct("<QI")
_STATE = struct.Struct("<QBH")
_BASE = 13
_GROUPS = ("ranges", "images", "goal", "tokens")
_DTYPES = ("<f8", "|u1", "<i8")
_ITEM = struct.Struct("<BBBB")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandMessage:
    """A command on its way.

    Attributes:
      answers: sequence number of the state that it answers.
      periods: control periods for which it shall act, in lockstep.
      values: (n,) in the order of the action spec; NaN holds.
    """

    answers: int
    periods: int
    values: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class StateMessage:
    """A sample on its way.

    Attributes:
      acknowledges: sequence number of the command applied last, 0 for none.
      is_safe: whether the robot's side has put it into its safe state.
      applied: (n,) action applied last.
      state: the sample. Signals beyond the spec stay behind; one that is missing arrives as NaN.
      senses: everything beyond the state.
    """

    acknowledges: int
    is_safe: bool
    applied: Array
    state: RobotState
    senses: Senses


def encode_command(message: CommandMessage) -> bytes:
    """Return the payload of a COMMAND frame; that of a STOP frame has no values."""
    head = _COMMAND.pack(message.answers, message.periods)
    return head + np.ascontiguousarray(message.values, dtype="<f8").tobytes()


def decode_command(payload: bytes, size: int) -> CommandMessage:
    """Return a command of ``size`` values.

    Raises:
      LinkError: another length.
    """
    if len(payload) != _COMMAND.size + 8 * size:
        raise LinkError(f"a command has {_COMMAND.size + 8 * size} bytes for {size} values, got {len(payload)}.")
    answers, periods = _COMMAND.unpack_from(payload)
    values = np.frombuffer(payload, dtype="<f8", offset=_COMMAND.size).astype(np.float64)
    return CommandMessage(answers=answers, periods=periods, values=values)


def encode_state(message: StateMessage, spec: ObservationSpec) -> bytes:
    """Return the payload of a STATE frame."""
    s, senses = message.state, message.senses
    items = [(g, k, v) for g, name in enumerate(_GROUPS) for k, v in getattr(senses, name).items()]
    base = (s.base_pos_world_m, s.base_quat_wxyz, s.base_vel_body_mps, s.base_angvel_body_radps)
    signals = [s.signals.get(name, np.nan) for name in spec.signals]
    numbers = np.concatenate([[s.time_s], message.applied, s.joint_pos, s.joint_vel, *base, signals])
    head = _STATE.pack(message.acknowledges, message.is_safe, len(items))
    return b"".join([head, numbers.astype("<f8").tobytes(), *(_encode_item(g, k, v) for g, k, v in items)])


def decode_state(payload: bytes, actions: ActionSpec, observations: ObservationSpec) -> StateMessage:
    """Return a sample of a robot with these specs.

    Raises:
      LinkError: it is cut short or of another robot.
    """
    joints, size = len(observations.joint_names), actions.size
    count = 1 + size + 2 * joints + _BASE + len(observations.signals)
    try:
        acknowledges, is_safe, n_items = _STATE.unpack_from(payload)
        numbers = np.frombuffer(payload, dtype="<f8", count=count, offset=_STATE.size).astype(np.float64)
        groups: dict[str, dict[str, Any]] = {name: {} for name in _GROUPS}
        offset = _STATE.size + 8 * count
        for _ in range(n_items):
            group, name, value, offset = _decode_item(payload, offset)
            groups[group][name] = value
        if offset != len(payload):
            raise ValueError(f"{len(payload) - offset} bytes too many")
    except (struct.error, ValueError, IndexError) as error:
        raise LinkError(f"a state of {len(payload)} bytes is not one of this robot ({error}).") from None
    applied, pos, vel, base, signals = np.split(numbers[1:], np.cumsum([size, joints, joints, _BASE]))
    state = RobotState(
        time_s=float(numbers[0]),
        joint_pos=pos,
        joint_vel=vel,
        base_pos_world_m=base[0:3],
        base_quat_wxyz=base[3:7],
        base_vel_body_mps=base[7:10],
        base_angvel_body_radps=base[10:13],
        signals=dict(zip(observations.signals, signals.tolist(), strict=True)),
    )
    return StateMessage(
        acknowledges=acknowledges, is_safe=bool(is_safe), applied=applied, state=state, senses=Senses(**groups)
    )


def _encode_item(group: int, name: str, value: NDArray[Any]) -> bytes:
    value = np.asarray(value)
    kind = 1 if value.dtype == np.uint8 else 2 if value.dtype.kind in "iu" else 0
    data = np.ascontiguousarray(value, dtype=_DTYPES[kind])
    key = name.encode()
    shape = struct.pack(f"<{data.ndim}I", *data.shape)
    return _ITEM.pack(group, kind, len(key), data.ndim) + key + shape + data.tobytes()


def _decode_item(payload: bytes, offset: int) -> tuple[str, str, NDArray[Any], int]:
    group, kind, length, ndim = _ITEM.unpack_from(payload, offset)
    offset += _ITEM.size
    name = payload[offset : offset + length].decode()
    offset += length
    shape: tuple[int, ...] = struct.unpack_from(f"<{ndim}I", payload, offset)
    offset += 4 * ndim
    dtype = np.dtype(_DTYPES[kind])
    count = 1
    for n in shape:
        count *= n
    value = np.frombuffer(payload, dtype=dtype, count=count, offset=offset) if count else np.zeros(0, dtype)
    value = value.reshape(shape)
    return _GROUPS[group], name, value.astype(dtype.newbyteorder("=")), offset + count * dtype.itemsize
