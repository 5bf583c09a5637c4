"""From a sample to the inputs of a graph: paths are resolved once, each period is a few copies of slices.

Paths, units and frames: :mod:`embodied_deploy.package.quantities`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from embodied_controllers.contract import ActionSpec, ObservationSpec
from embodied_deploy.errors import ObservationError, PackageError
from embodied_deploy.package.contract import PolicyContract, TensorSpec
from embodied_deploy.package.quantities import Channel, parse
from embodied_deploy.policy import readers
from embodied_deploy.policy.sample import Sample
from embodied_deploy.policy.session import all_finite

_UNFIT = (KeyError, TypeError, ValueError, AttributeError, IndexError, RuntimeWarning)
"""What reading and copying raise for values of another form; a warning only where warnings are errors."""


class _Copy(NamedTuple):
    """``row[target] = read(sample, rotation)[source]``.

    ``shape`` is what the vector must have, () where it need only reach ``least``, None where it was computed.
    """

    read: readers.Read
    target: slice
    source: slice | NDArray[np.intp] | None
    shape: tuple[int, ...] | None
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
        entries = [e for t in contract.tensors("observation") for e in t.entries]
        self._rotates = any(parse(e.name).source in readers.ROTATED for e in entries)

    def fill(self, sample: Sample, inputs: Mapping[str, NDArray[Any]]) -> None:
        """Write a sample into the (1, …) arrays of ``inputs``; states are left alone.

        Raises:
          ObservationError: something is missing, has another shape or type, or is not finite. The arrays may then hold
            parts of the sample and must not be used.
        """
        rotation = self._rotation(sample) if self._rotates else ()
        for spec, copies in self._vectors:
            row = inputs[spec.name][0]
            for copy in copies:
                _apply(copy, sample, rotation, row)
            # What was too large for float32 has become infinity and is refused by name.
            if not all_finite(row):
                raise _not_finite(spec, row)
        for spec in self._images:
            _put(spec, sample.images.get(spec.source), inputs[spec.name][0], f"image of the camera {spec.source!r}")
        for spec in self._tokens:
            key = spec.source or spec.name
            _put(spec, sample.tokens.get(key), inputs[spec.name][0], f"tokens {key!r}")

    @staticmethod
    def _rotation(sample: Sample) -> readers.Rotation:
        try:
            return readers.rotation_world_body(sample.state.base_quat_wxyz)
        except _UNFIT as error:
            raise ObservationError(f"base_quat_wxyz: no vector of four numbers ({error!r}).") from None


def _apply(copy: _Copy, sample: Sample, rotation: readers.Rotation, row: NDArray[np.float32]) -> None:
    read, target, source, shape, least, what = copy
    try:
        values = read(sample, rotation)
        if shape is not None and values.shape != shape and (shape or values.ndim != 1 or len(values) < least):
            wanted = f"{shape[0]} values" if shape else f"at least {least} values"
            raise ObservationError(f"{what}: shape {values.shape}, expected {wanted}. Check the sensor's set-up.")
        row[target] = values if source is None else values[source]
    except _UNFIT as error:
        raise ObservationError(
            f"{what}: missing, or no vector of numbers ({error!r}). Fill it in the sample."
        ) from None


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
    target, what = slice(begin, begin + len(channels)), first.source
    if first.source == "signal":
        names = [c.key for c in channels]
        return _Copy(readers.signals(names), target, None, None, 0, f"signals {', '.join(names)}")
    if first.source in readers.COMPUTED:
        read, size = readers.COMPUTED[first.source]
        source = _source(index, size)
        if isinstance(source, np.ndarray):  # tuples take no list of indices
            return _Copy(lambda s, r: np.array(read(s, r)), target, source, None, 0, what)
        return _Copy(read, target, source, None, 0, what)
    read, size = readers.vector(first, used[_group(first)], actions, observations)
    if first.source in ("goal", "ranges"):
        what = f"{first.source}.{first.key}"
    return _Copy(read, target, _source(index, size), (size,) if size else (), max(index) + 1, what)


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


def _source(index: list[int], size: int) -> slice | NDArray[np.intp] | None:
    """Return the cheapest way to take ``index`` from a vector: the whole, a slice, a list."""
    if index == list(range(size)):
        return None
    if index == list(range(index[0], index[0] + len(index))):
        return slice(index[0], index[0] + len(index))
    return np.array(index, dtype=np.intp)


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
