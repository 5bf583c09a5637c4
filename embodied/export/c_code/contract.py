"""The contract of a policy as C: macros, channel tables, and what the emitter demands of it."""

from __future__ import annotations

from dataclasses import dataclass

from embodied.export.c_code.graph import Graph, UnsupportedGraphError
from embodied.export.c_code.literal import c_comment, c_float, c_identifier, c_macro, c_string
from embodied_deploy.package.contract import Entry, PolicyContract, TensorSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """How the vectors of a policy meet its graph.

    Attributes:
      prefix: of all C names.
      observation: the one observation.
      action: the one action.
      states: input, output and size of each recurrent state.
    """

    prefix: str
    observation: TensorSpec
    action: TensorSpec
    states: tuple[tuple[TensorSpec, TensorSpec], ...]


def read_interface(contract: PolicyContract, graph: Graph) -> Interface:
    """Find observation, action and states, and hold the graph against the contract.

    Raises:
      UnsupportedGraphError: images, tokens, chunks, no action, or names or shapes that differ from the graph.
    """
    name = contract.name
    strange = [t.name for t in contract.inputs if t.role not in ("observation", "state") or t.dtype != "float32"]
    if strange:
        raise UnsupportedGraphError(f"Policy {name!r} reads {', '.join(strange)}; plain C takes float32 vectors alone.")
    observations, action = contract.tensors("observation"), contract.action
    if contract.kind != "controller" or action is None or len(observations) != 1 or contract.chunk is not None:
        raise UnsupportedGraphError(
            f"Policy {name!r} is not one observation to one action (kind {contract.kind}, {len(observations)} "
            f"observations, {'no' if action is None else 'an'} action, chunk {contract.chunk is not None}). "
            f"Run it under `embodied-edge`."
        )
    # The loader has held a file's graph against its contract; a Package may also be made by hand.
    promised = tuple((t.name, t.shape) for t in contract.inputs)
    if promised != graph.inputs or tuple(t.name for t in contract.outputs) != graph.outputs:
        raise UnsupportedGraphError(
            f"Contract of {name!r} promises {promised}, the graph has {graph.inputs}, outputs {graph.outputs}."
        )
    by_name = {t.name: t for t in contract.outputs}
    states = []
    for state in (t for t in contract.inputs if t.role == "state"):
        fed_by = by_name.get(state.source)
        if fed_by is None or fed_by.shape != state.shape:
            raise UnsupportedGraphError(f"State {state.name!r} is fed by {state.source!r}, no output of its shape.")
        states.append((state, fed_by))
    return Interface(prefix=c_identifier(name), observation=observations[0], action=action, states=tuple(states))


def size(tensor: TensorSpec) -> int:
    """Return the numbers in one sample of a tensor."""
    count = 1
    for dim in tensor.shape:
        count *= dim
    return count


def macros(contract: PolicyContract, interface: Interface, sha256: str) -> str:
    """Return the ``#define`` lines of the header."""
    upper = interface.prefix.upper()
    values = {
        "NAME": c_string(contract.name),
        "VERSION": c_string(contract.version),
        "ROBOT": c_string(contract.robot),
        "PRECISION": c_string(contract.precision),
        "PACKAGE_SHA256": c_string(sha256),
        "RATE_HZ": c_float(contract.rate_hz),
        "LATENCY_BUDGET_S": c_float(contract.latency_budget_s),
        "MAX_OBSERVATION_AGE_S": c_float(contract.max_observation_age_s),
        "OBSERVATIONS": str(size(interface.observation)),
        "ACTIONS": str(size(interface.action)),
        "INPUT_SIZE": str(sum(size(t) for t in contract.inputs)),
        "OUTPUT_SIZE": str(sum(size(t) for t in contract.outputs)),
    }
    lines = [f"#define {upper}_{name} {text}" for name, text in values.items()]
    return "\n".join(
        [*lines, *_indices(upper + "_OBS", interface.observation), *_indices(upper + "_ACT", interface.action)]
    )


def _indices(start: str, tensor: TensorSpec) -> list[str]:
    """Return an index macro per entry; names that would collide get none."""
    names = [f"{start}_{c_macro(e.name)}" for e in tensor.entries]
    return [
        f"#define {name} {i} /* {c_comment(entry.unit)}, {c_comment(entry.frame)} */"
        for i, (name, entry) in enumerate(zip(names, tensor.entries, strict=True))
        if names.count(name) == 1
    ]


def channels(prefix: str, what: str, entries: tuple[Entry, ...]) -> str:
    """Return the definition of a channel table."""
    rows = [
        f"    {{{c_string(e.name)}, {c_string(e.unit)}, {c_string(e.frame)}, {c_float(e.low)}, {c_float(e.high)}}},"
        for e in entries
    ]
    return f"const {prefix}_channel {prefix}_{what}[{len(entries)}] = {{\n" + "\n".join(rows) + "\n};"


def safe_lines(contract: PolicyContract) -> list[str]:
    """Return the statements of ``safe``: entries whose safe value is None keep what was applied last."""
    return [
        f"action[{i}] = {c_float(value)};" if value is not None else f"/* action[{i}] holds */"
        for i, value in enumerate(contract.safe_action)
    ]
