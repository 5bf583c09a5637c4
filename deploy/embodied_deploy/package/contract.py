"""What a policy promises and demands: the record inside every package. NumPy and the standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

FORMAT = 1
"""Version of the contract's layout; a loader refuses any other."""

OPSETS = range(17, 22)
"""ONNX opsets the runtime was tested with."""

Role = Literal["observation", "image", "tokens", "state", "action", "score"]
Degraded = Literal["hold", "safe", "fallback"]
PRECISIONS = ("fp32", "fp16", "int8-dynamic", "int8-static", "w4a8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One scalar on the last axis of a vector tensor.

    Attributes:
      name: a channel path (see ``embodied_deploy.policy.channels``), such as ``joint_pos.arm_0_rad``, or for actions
        an entry of the robot's action spec, such as ``forward_mps``.
      unit: ``m``, ``rad``, ``m/s``, ``rad/s``, ``N``, ``1`` (a ratio, a matrix entry), ``px`` …
      frame: ``world``, ``body``, ``joint``, ``rotor``, ``none`` …
      low: smallest value the policy was trained for (observations) or may put out (actions).
      high: largest value.
    """

    name: str
    unit: str
    frame: str
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """One input or output of the graph, in the graph's order.

    Attributes:
      name: name in the graph.
      role: ``observation`` (float32 vector of channels), ``image`` (uint8, H x W x 3 rgb, scaled inside the graph),
        ``tokens`` (int64), ``state`` (recurrent state or history, carried by the runtime), ``action`` (physical units;
        (n,) or for chunks (horizon, n)), ``score`` (anything else, such as logits).
      dtype: ``float32``, ``uint8`` or ``int64``.
      shape: without the batch axis, which is the first one of the graph and dynamic.
      entries: names of the last axis for observations and actions, empty otherwise.
      source: camera name for images (without the robot's prefix), the name of the output that feeds it for states.
    """

    name: str
    role: Role
    dtype: str
    shape: tuple[int, ...]
    entries: tuple[Entry, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """How a chunk of actions is used.

    Attributes:
      horizon: actions in a chunk, one control period apart.
      execute: how many are used before the policy is asked again.
      max_age_s: a chunk older than this is not followed any more; the degraded mode ``on_late`` takes over.
    """

    horizon: int
    execute: int
    max_age_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """Where the weights come from."""

    recipe: str
    seed: int
    commit: str
    dataset_sha256: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyContract:
    """Everything a loader checks and a runtime needs.

    Attributes:
      name: policy name, for instance ``quad-waypoint``.
      version: of the policy, ``major.minor.patch``.
      kind: ``controller`` (observation to action at a rate) or ``planner`` (asked when a decision is due).
      robot: robot kind it was trained for.
      rate_hz: how often it acts; the loop must run at this rate.
      inputs: in the graph's order.
      outputs: in the graph's order.
      safe_action: one value per action entry, in its unit; None holds the value applied last.
      latency_budget_s: an answer later than this counts as a miss.
      max_observation_age_s: an older observation is stale.
      on_stale: what the robot gets while observations are stale, missing or not finite.
      on_late: what it gets when the answer is late or the chunk is used up.
      fallback: registered classical controller for ``fallback`` (see ``embodied_deploy.runtime.fallback``), or empty.
      chunk: for policies that put out chunks.
      precision: one of :data:`PRECISIONS`.
      opset: of the graph.
      parity_atol: largest absolute difference allowed to the parity vectors.
      calibration_sha256: of the calibration set of static quantization, empty otherwise.
      vocabulary: for planners, named lists of words (skills, arguments, tokens) in the order of the graph.
      training: where the weights come from.
    """

    name: str
    version: str
    kind: Literal["controller", "planner"]
    robot: str
    rate_hz: float
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    safe_action: tuple[float | None, ...]
    latency_budget_s: float
    max_observation_age_s: float
    training: Training
    on_stale: Degraded = "safe"
    on_late: Degraded = "hold"
    fallback: str = ""
    chunk: Chunk | None = None
    precision: str = "fp32"
    opset: int = 20
    parity_atol: float = 1e-5
    calibration_sha256: str = ""
    vocabulary: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    format: int = FORMAT

    def tensors(self, role: Role) -> tuple[TensorSpec, ...]:
        """Return the inputs and outputs of a role, inputs first."""
        return tuple(t for t in (*self.inputs, *self.outputs) if t.role == role)

    @property
    def cameras(self) -> tuple[str, ...]:
        """Cameras that must deliver images."""
        return tuple(t.source for t in self.inputs if t.role == "image")

    @property
    def action(self) -> TensorSpec | None:
        """The action output; planners have none."""
        found = [t for t in self.outputs if t.role == "action"]
        return found[0] if found else None
