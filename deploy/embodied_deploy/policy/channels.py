"""From a sample to the inputs of a graph: paths are resolved once, each period is a few copies of slices.

Paths, units and frames: :mod:`embodied_deploy.package.quantities`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embodied_controllers.contract import ActionSpec, ObservationSpec
from embodied_deploy.errors import ObservationError, PackageError
from embodied_deploy.package.contract import PolicyContract, TensorSpec
from embodied_deploy.package.quantities import Channel, parse
from embodied_deploy.policy.sample import Sample
from embodied_deploy.policy.session import all_finite

Array = NDArray[np.float64]
Read = Callable[[Sample], Any]


@dataclass(frozen=True, slots=True)
class _Copy:
    """``row[target] = read(sample)[source]``; ``size`` is the length that the source must have, 0 for at least."""

    read: Read
    target: slice
    source: slice | NDArray[np.intp]
    size: int
    least: int
    what: str


class Assembler:
    """Fills the input arrays of a session from samples of one robot.

    Args:
      contract: of the policy.
      action_spec: of the robot, for ``last_action``.
      observation_spec: of the robot, for joints and signals.

    Raises:
      PackageError: ``robot``: a path names a joint, action, signal or camera that the robot lacks.
    """

    def __init__(self, contract: PolicyContract, action_spec: ActionSpec, observation_spec: ObservationSpec) -> None:
        self._vectors: list[tuple[TensorSpec, list[_Copy]]] = []
        self._images: list[TensorSpec] = []
        self._tokens: list[TensorSpec] = []
        for spec in contract.inputs:
            if spec.role == "observation":
                self._vectors.append((spec, _plan(contract.name, spec, action_spec, observation_spec)))
            elif spec.role == "image":
                _require(contract.name, "camera", spec.source, observation_spec.cameras)
                self._images.append(spec)
            elif spec.role == "tokens":
                self._tokens.append(spec)

    def fill(self, sample: Sample, inputs: Mapping[str, NDArray[Any]]) -> None:
        """Write a sample into the (1, …) arrays of ``inputs``; states are left alone.

        Raises:
          ObservationError: something is missing, has another shape or type, or is not finite. The arrays may then hold
            parts of the sample and must not be used.
        """
        for spec, copies in self._vectors:
            row = inputs[spec.name][0]
            for copy in copies:
                _apply(copy, sample, row)
            # What was too large for float32 has become infinity and is refused by name.
            if not all_finite(row):
                raise _not_finite(spec, row)
        for spec in self._images:
            _put(spec, sample.images.get(spec.source), inputs[spec.name][0], f"image of the camera {spec.source!r}")
        for spec in self._tokens:
            key = spec.source or spec.name
            _put(spec, sample.tokens.get(key), inputs[spec.name][0], f"tokens {key!r}")


def rotation_world_body(quat_wxyz: Array) -> tuple[float, ...]:
    """Return the nine entries, row by row, of the matrix that maps body to world coordinates.

    Args:
      quat_wxyz: (4,) unit quaternion; its length is divided out.
    """
    w, x, y, z = quat_wxyz.tolist()
    norm = w * w + x * x + y * y + z * z
    s = 2.0 / norm if norm > 0.0 else float("nan")
    return (
        1.0 - s * (y * y + z * z), s * (x * y - w * z), s * (x * z + w * y),
        s * (x * y + w * z), 1.0 - s * (x * x + z * z), s * (y * z - w * x),
        s * (x * z - w * y), s * (y * z + w * x), 1.0 - s * (x * x + y * y),
    )  # fmt: skip


def _apply(copy: _Copy, sample: Sample, row: NDArray[np.float32]) -> None:
    try:
        values = copy.read(sample)
        size = len(values)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ObservationError(f"{copy.what}: missing or not a vector ({error!r}). Fill it in the sample.") from None
    if getattr(values, "ndim", 1) != 1:
        raise ObservationError(f"{copy.what}: shape {values.shape}, expected one axis. Check the sensor's set-up.")
    if size != copy.size and (copy.size or size < copy.least):
        wanted = copy.size or f"at least {copy.least}"
        raise ObservationError(f"{copy.what}: {size} values, expected {wanted}. Check the sensor's set-up.")
    try:
        if copy.source.__class__ is not slice:
            values = np.asarray(values)  # computed ones are tuples, which take no index array
        row[copy.target] = values[copy.source]
    except (ValueError, TypeError, IndexError, RuntimeWarning) as error:
        raise ObservationError(f"{copy.what}: not a vector of finite numbers ({error}).") from None


def _plan(policy: str, spec: TensorSpec, actions: ActionSpec, observations: ObservationSpec) -> list[_Copy]:
    """Group consecutive entries of one source into copies of slices (or of picked values)."""
    channels = [_locate(policy, parse(e.name), actions, observations) for e in spec.entries]
    # A history or a stack of frames has the entries on its last axis only.
    if len(spec.shape) != 1:
        raise PackageError("tensor", f"{policy}: {spec.name} has the shape {spec.shape}; channels fill vectors only.")
    groups: list[list[int]] = []
    for i, channel in enumerate(channels):
        if groups and _group(channels[groups[-1][0]]) == _group(channel):
            groups[-1].append(i)
        else:
            groups.append([i])
    used: dict[tuple[str, str], set[int]] = {}
    for c in channels:
        used.setdefault(_group(c), set()).add(c.index)
    return [_copy([channels[i] for i in g], g[0], used, actions, observations) for g in groups]


def _copy(
    channels: list[Channel],
    begin: int,
    used: Mapping[tuple[str, str], set[int]],
    actions: ActionSpec,
    observations: ObservationSpec,
) -> _Copy:
    first, index = channels[0], [c.index for c in channels]
    if first.source == "signal":
        names = [c.key for c in channels]
        size, index = len(names), list(range(len(names)))
        read = _signals(names)
        what = f"signals {', '.join(names)}"
    else:
        read, size = _source(first, used[_group(first)], actions, observations)
        what = f"{first.source}.{first.key}" if first.source in ("goal", "ranges") else first.source
    steady = index == list(range(index[0], index[0] + len(index)))
    source = slice(index[0], index[0] + len(index)) if steady else np.array(index, dtype=np.intp)
    return _Copy(read, slice(begin, begin + len(channels)), source, size, max(index) + 1, what)


def _locate(policy: str, channel: Channel, actions: ActionSpec, observations: ObservationSpec) -> Channel:
    """Fill in the index that the robot's own order gives."""
    names = {
        "joint_pos": observations.joint_names,
        "joint_vel": observations.joint_names,
        "last_action": actions.names,
        "signal": observations.signals,
    }.get(channel.source)
    if names is None:
        return channel
    _require(policy, channel.source, channel.key, names)
    return Channel(channel.source, channel.key, names.index(channel.key), channel.unit, channel.frame)


def _group(channel: Channel) -> tuple[str, str]:
    return channel.source, channel.key if channel.source in ("goal", "ranges") else ""


def _source(channel: Channel, used: set[int], actions: ActionSpec, observations: ObservationSpec) -> tuple[Read, int]:
    """Return how to read the vector of a channel, and the length it must have (0: enough for the indices used)."""
    source, key = channel.source, channel.key
    # All of 0..n-1 used means that the vector is known whole: a longer one is another sensor.
    whole = len(used) if used == set(range(len(used))) else 0
    if source == "goal":
        size = 3 if key.endswith("_xyyaw") or key.startswith("pos_") else 4 if key.endswith("_wxyz") else whole
        return lambda s: s.goal[key], size
    if source == "ranges":
        return lambda s: s.ranges[key], whole
    if source == "last_action":
        return lambda s: s.last_action, actions.size
    joints = len(observations.joint_names)
    table: dict[str, tuple[Read, int]] = {
        "joint_pos": (lambda s: s.state.joint_pos, joints),
        "joint_vel": (lambda s: s.state.joint_vel, joints),
        "base_pos_world_m": (lambda s: s.state.base_pos_world_m, 3),
        "base_quat_wxyz": (lambda s: s.state.base_quat_wxyz, 4),
        "base_rot_world_body": (lambda s: rotation_world_body(s.state.base_quat_wxyz), 9),
        "base_vel_body_mps": (lambda s: s.state.base_vel_body_mps, 3),
        "base_angvel_body_radps": (lambda s: s.state.base_angvel_body_radps, 3),
        "base_vel_world_mps": (_vel_world, 3),
        "gravity_body": (_gravity_body, 3),
        "to_goal_pos_world_m": (lambda s: s.goal["pos_world_m"] - s.state.base_pos_world_m, 3),
        "to_goal_pos_body_m": (_to_goal_body, 3),
    }
    return table[source]


def _signals(names: list[str]) -> Read:
    def read(sample: Sample) -> list[float]:
        signals = sample.state.signals
        return [signals[n] for n in names]

    return read


def _vel_world(sample: Sample) -> tuple[float, ...]:
    r = rotation_world_body(sample.state.base_quat_wxyz)
    x, y, z = sample.state.base_vel_body_mps.tolist()
    return r[0] * x + r[1] * y + r[2] * z, r[3] * x + r[4] * y + r[5] * z, r[6] * x + r[7] * y + r[8] * z


def _gravity_body(sample: Sample) -> tuple[float, ...]:
    r = rotation_world_body(sample.state.base_quat_wxyz)
    return -r[6], -r[7], -r[8]


def _to_goal_body(sample: Sample) -> tuple[float, ...]:
    r = rotation_world_body(sample.state.base_quat_wxyz)
    x, y, z = (sample.goal["pos_world_m"] - sample.state.base_pos_world_m).tolist()
    return r[0] * x + r[3] * y + r[6] * z, r[1] * x + r[4] * y + r[7] * z, r[2] * x + r[5] * y + r[8] * z


def _put(spec: TensorSpec, value: NDArray[Any] | None, row: NDArray[Any], what: str) -> None:
    if value is None:
        raise ObservationError(f"{what}: missing; the policy cannot act without it.")
    if getattr(value, "shape", None) != spec.shape or value.dtype != row.dtype:
        got = f"{getattr(value, 'dtype', type(value).__name__)} {getattr(value, 'shape', '')}"
        raise ObservationError(f"{what}: {got}, expected {spec.dtype} {spec.shape}.")
    row[...] = value


def _not_finite(spec: TensorSpec, row: NDArray[np.float32]) -> ObservationError:
    names = [e.name for e, ok in zip(spec.entries, np.isfinite(row), strict=True) if not ok]
    return ObservationError(
        f"{', '.join(names[:8])}{' …' if len(names) > 8 else ''}: NaN or infinite. Check the sensor; a range reading "
        "without an echo is its greatest range, not infinity."
    )


def _require(policy: str, kind: str, name: str, names: tuple[str, ...]) -> None:
    if name not in names:
        known = ", ".join(names) or "none"
        raise PackageError("robot", f"{policy} needs the {kind} {name!r}; this robot has: {known}.")
