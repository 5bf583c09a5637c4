"""Does a contract fit itself, its graph and a robot? Each refusal names the entry and the reason."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Protocol

from embodied_controllers.contract import ActionSpec, ObservationSpec
from embodied_deploy.errors import PackageError
from embodied_deploy.package.codec import encode_contract
from embodied_deploy.package.contract import OPSETS, PRECISIONS, Entry, PolicyContract, TensorSpec
from embodied_deploy.package.graph import PREFIX, GraphInfo, GraphTensor, stamps
from embodied_deploy.package.quantities import action_quantity, parse

_DTYPES = {"observation": "float32", "image": "uint8", "tokens": "int64", "action": "float32"}
_INPUT_ROLES = ("observation", "image", "tokens", "state")
_OUTPUT_ROLES = ("action", "score", "state")
_EXPORT_AGAIN = "Correct the recipe's contract and export the package again."


class RobotLike(Protocol):
    """What a package is checked against: a robot, or its entry in a registry."""

    @property
    def kind(self) -> str:
        """Robot kind."""
        ...

    @property
    def action_spec(self) -> ActionSpec:
        """Order, units and limits of a command."""
        ...

    @property
    def observation_spec(self) -> ObservationSpec:
        """Order, units and limits of a state."""
        ...

    @property
    def dt_ctrl_s(self) -> float:
        """Period at which commands are expected."""
        ...


def check_contract(contract: PolicyContract) -> None:
    """Refuse a contract that contradicts itself.

    Raises:
      PackageError: ``format``, ``opset``, ``order``, ``unit``, ``frame``, ``range`` or ``rate``.
    """
    c = contract
    encode_contract(c)
    _need(re.fullmatch(r"[a-z0-9][a-z0-9-]*", c.name), "format", f"name {c.name!r}: use lower-case words and dashes.")
    _need(re.fullmatch(r"\d+\.\d+\.\d+", c.version), "format", f"version {c.version!r}: expected major.minor.patch.")
    _need(c.precision in PRECISIONS, "format", f"precision {c.precision!r}: expected one of {', '.join(PRECISIONS)}.")
    _need(
        c.opset in OPSETS, "opset", f"opset {c.opset}: tested are {OPSETS[0]} to {OPSETS[-1]}. Export with one of them."
    )
    _need(c.rate_hz > 0, "rate", f"rate_hz {c.rate_hz}: expected a positive number.")
    for name in ("latency_budget_s", "max_observation_age_s", "parity_atol"):
        _need(getattr(c, name) > 0, "format", f"{name} {getattr(c, name)}: expected a positive number.")
    _need(
        "fallback" not in (c.on_stale, c.on_late) or c.fallback,
        "format",
        "a degraded mode needs `fallback`, none is set.",
    )
    _check_tensors(c)
    _check_action(c)


def check_graph(contract: PolicyContract, graph: GraphInfo) -> None:
    """Refuse a graph that is not the one the contract was written for.

    Raises:
      PackageError: ``missing_file``, ``opset``, ``tensor``, or the part that differs from the graph's stamp: ``order``,
        ``unit``, ``frame``, ``range``, ``rate``, ``robot``; ``format`` when it carries no stamp.
    """
    if graph.outside:
        names = ", ".join(graph.outside[:5])
        raise PackageError(
            "missing_file",
            f"{contract.name}: the graph keeps {names} in another file, which no package holds. Export it with its "
            "weights inside.",
        )
    opset = graph.opsets.get("", graph.opsets.get("ai.onnx", 0))
    if opset != contract.opset or opset not in OPSETS:
        raise PackageError(
            "opset",
            f"{contract.name}: the graph has opset {opset}, its contract says {contract.opset}, this runtime was "
            f"tested with {OPSETS[0]} to {OPSETS[-1]}. Export it with one of those.",
        )
    _match_tensors("inputs", contract.inputs, graph.inputs)
    _match_tensors("outputs", contract.outputs, graph.outputs)
    for key, expected in stamps(contract).items():
        found = graph.metadata.get(key)
        if found is None:
            raise PackageError(
                "format", f"{contract.name}: the graph carries no stamp {key!r}. Export the package again."
            )
        if found != expected:
            shorter = min(len(found), len(expected))
            where = next((i for i in range(shorter) if found[i] != expected[i]), shorter)
            begin = max(0, where - 40)
            raise PackageError(
                key[len(PREFIX) :],
                f"{contract.name}: the contract is not the one the graph was exported with. The graph says "
                f"…{found[begin : where + 40]}…, the contract …{expected[begin : where + 40]}…. Export it again.",
            )


def check_robot(
    contract: PolicyContract,
    action_spec: ActionSpec,
    observation_spec: ObservationSpec,
    kind: str,
    dt_ctrl_s: float | None = None,
) -> None:
    """Refuse a robot that the policy was not made for.

    Args:
      contract: of the policy.
      action_spec: of the robot.
      observation_spec: of the robot.
      kind: robot kind.
      dt_ctrl_s: period at which the robot expects commands, where known.

    Raises:
      PackageError: ``robot`` for another kind or something it lacks, ``range`` for actions beyond its limits, ``rate``
        when it cannot be asked at the policy's rate.
    """
    c = contract
    _need(c.robot == kind, "robot", f"{c.name} was trained for {c.robot!r}, this robot is {kind!r}.")
    names = {
        "joint_pos": observation_spec.joint_names,
        "joint_vel": observation_spec.joint_names,
        "signal": observation_spec.signals,
        "last_action": action_spec.names,
    }
    for entry in (e for t in c.tensors("observation") for e in t.entries):
        channel = parse(entry.name)
        if channel.source in names:
            _has(c, entry.name, channel.key, names[channel.source])
    for camera in c.cameras:
        _has(c, f"the camera {camera}", camera, observation_spec.cameras)
    for entry in c.action.entries if c.action else ():
        _has(c, f"the action {entry.name}", entry.name, action_spec.names)
        i = action_spec.names.index(entry.name)
        low, high = float(action_spec.low[i]), float(action_spec.high[i])
        slack = 1e-6 * max(1.0, abs(low), abs(high))
        _need(
            entry.low >= low - slack and entry.high <= high + slack,
            "range",
            f"{c.name}: {entry.name} may be {entry.low:g} to {entry.high:g} {entry.unit}, the robot takes {low:g} to "
            f"{high:g}. Train within its limits.",
        )
    periods = [("reads", 1.0 / observation_spec.rate_hz)] + ([("is commanded", dt_ctrl_s)] if dt_ctrl_s else [])
    for what, period_s in periods:
        ratio = 1.0 / (c.rate_hz * period_s)
        _need(
            round(ratio) >= 1 and abs(ratio - round(ratio)) < 1e-6 * ratio,
            "rate",
            f"{c.name} acts at {c.rate_hz:g} Hz, this robot {what} at {1.0 / period_s:g} Hz: expected the same or an "
            "integer multiple. Train it for a rate that divides the robot's.",
        )


def _check_tensors(c: PolicyContract) -> None:
    for side, tensors, roles in (("input", c.inputs, _INPUT_ROLES), ("output", c.outputs, _OUTPUT_ROLES)):
        names = [t.name for t in tensors]
        _need(names and len(set(names)) == len(names), "format", f"{side}s {names}: expected at least one, each once.")
        for t in tensors:
            _need(
                t.role in roles, "format", f"{side} {t.name}: role {t.role!r} is none of an {side}: {', '.join(roles)}."
            )
            dtype = _DTYPES.get(t.role, t.dtype)
            _need(t.dtype == dtype, "tensor", f"{t.name}: {t.dtype}, expected {dtype} for the role {t.role}.")
            _need(t.dtype in ("float32", "uint8", "int64"), "tensor", f"{t.name}: {t.dtype} is not supported.")
            _need(
                all(n > 0 for n in t.shape), "tensor", f"{t.name}: shape {t.shape} without the batch axis is not fixed."
            )
            _check_entries(t)
    for t in c.inputs:
        _need(t.role != "image" or (t.source and len(t.shape) == 3 and t.shape[2] == 3), "tensor", _image(t))
        if t.role == "state":
            fed = [o for o in c.outputs if o.name == t.source and o.role == "state"]
            _need(
                fed and (fed[0].shape, fed[0].dtype) == (t.shape, t.dtype),
                "tensor",
                f"{t.name}: its source {t.source!r} is no output with the role state, shape {t.shape} and {t.dtype}.",
            )


def _check_entries(t: TensorSpec) -> None:
    if t.role not in ("observation", "action"):
        _need(not t.entries, "format", f"{t.name}: entries belong to observations and actions, not to {t.role}.")
        return
    size = t.shape[-1] if t.shape else 0
    _need(len(t.entries) == size, "tensor", f"{t.name}: {len(t.entries)} entries for {size} values. {_EXPORT_AGAIN}")
    names = [e.name for e in t.entries]
    twice = sorted({n for n in names if names.count(n) > 1})
    _need(not twice, "order", f"{t.name}: {', '.join(twice)} named twice. {_EXPORT_AGAIN}")
    for e in t.entries:
        unit, frame = _implied(t, e)
        _need(e.unit == unit, "unit", f"{e.name}: in {e.unit!r}, expected {unit!r}. {_EXPORT_AGAIN}")
        _need(e.frame == frame, "frame", f"{e.name}: in frame {e.frame!r}, expected {frame!r}. {_EXPORT_AGAIN}")
        _need(e.low < e.high, "range", f"{e.name}: low {e.low:g} is not below high {e.high:g}. {_EXPORT_AGAIN}")


def _implied(t: TensorSpec, entry: Entry) -> tuple[str, str]:
    if t.role == "action":
        return action_quantity(entry.name)
    try:
        channel = parse(entry.name)
    except ValueError as error:
        raise PackageError("format", f"{t.name}: {error}.") from None
    return channel.unit, channel.frame


def _check_action(c: PolicyContract) -> None:
    actions = c.tensors("action")
    wanted = 1 if c.kind == "controller" else 0
    _need(len(actions) == wanted, "format", f"a {c.kind} has {len(actions)} action outputs, expected {wanted}.")
    entries = actions[0].entries if actions else ()
    _need(
        len(c.safe_action) == len(entries),
        "format",
        f"safe_action has {len(c.safe_action)} values for {len(entries)} actions. {_EXPORT_AGAIN}",
    )
    for e, value in zip(entries, c.safe_action, strict=True):
        ok = value is None or (math.isfinite(value) and e.low <= value <= e.high)
        _need(ok, "range", f"safe_action of {e.name} is {value}, outside {e.low:g} to {e.high:g} {e.unit}.")
    if c.chunk is not None and actions:
        k = c.chunk
        fits = 1 <= k.execute <= k.horizon and k.max_age_s > 0 and actions[0].shape == (k.horizon, len(entries))
        _need(fits, "tensor", f"chunk {k} does not fit the action shape {actions[0].shape}. {_EXPORT_AGAIN}")
    elif actions:
        _need(len(actions[0].shape) == 1, "tensor", f"action shape {actions[0].shape} without a chunk. {_EXPORT_AGAIN}")


def _match_tensors(side: str, specs: Sequence[TensorSpec], found: Sequence[GraphTensor]) -> None:
    expected, got = [s.name for s in specs], [g.name for g in found]
    if expected != got:
        reason = "order" if sorted(expected) == sorted(got) else "tensor"
        raise PackageError(reason, f"{side} of the graph are {got}, its contract says {expected}. Export it again.")
    for spec, tensor in zip(specs, found, strict=True):
        shape = tensor.shape
        same = shape is None or (
            len(shape) == len(spec.shape) + 1
            and all(g in (None, n) for g, n in zip(shape[1:], spec.shape, strict=True))
        )
        _need(
            same and tensor.dtype == spec.dtype,
            "tensor",
            f"{spec.name}: the graph has {tensor.dtype} {shape}, its contract {spec.dtype} (batch, {spec.shape}).",
        )
        _need(
            shape is None or shape[0] is None,
            "tensor",
            f"{spec.name}: the batch axis is fixed to {shape and shape[0]}. Export with an example batch of 2 and a "
            "dynamic first axis.",
        )


def _image(t: TensorSpec) -> str:
    return f"{t.name}: an image needs a camera as source and the shape (height, width, 3), got {t.source!r}, {t.shape}."


def _has(c: PolicyContract, what: str, name: str, names: Sequence[str]) -> None:
    known = ", ".join(names) or "none"
    _need(name in names, "robot", f"{c.name} needs {what}; this robot has: {known}.")


def _need(condition: object, reason: str, message: str) -> None:
    if not condition:
        raise PackageError(reason, message)
