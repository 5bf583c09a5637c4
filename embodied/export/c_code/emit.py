"""Write a policy package as plain C99: one header, one source, and small programs around them."""

from __future__ import annotations

import importlib.resources
import os
from dataclasses import dataclass
from pathlib import Path

from embodied.errors import EmbodiedError
from embodied.export.c_code.contract import Interface, channels, macros, read_interface, safe_lines, size
from embodied.export.c_code.graph import UnsupportedGraphError, read_graph
from embodied.export.c_code.literal import c_comment
from embodied.export.c_code.lower import Lowering
from embodied.export.c_code.render import Program
from embodied_deploy.errors import PackageError
from embodied_deploy.package.contract import PolicyContract
from embodied_deploy.package.load import Package, load_package

PROGRAMS = {"filter": "policy_filter.c", "bare": "bare_filter.c", "bench": "policy_bench.c", "device": "device_loop.c"}


class SourceError(EmbodiedError):
    """C code could not be written, compiled or run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CSource:
    """What was written.

    Attributes:
      prefix: of all C names.
      header: ``PREFIX.h``.
      source: ``PREFIX.c``; needs nothing but ``math.h``.
      filter: program that turns inputs on stdin into outputs on stdout.
      bare: the same for a microcontroller's compiler under Linux emulation.
      bench: a loop of inferences, for a shared object.
      device: firmware of a device under test, over UDP or a serial line.
      constant_bytes: flash for weights and tables.
      memory_bytes: working memory, all of it static.
      input_size: float32 numbers that ``filter`` reads per sample.
      output_size: float32 numbers that it writes.
    """

    prefix: str
    header: Path
    source: Path
    filter: Path
    bare: Path
    bench: Path
    device: Path
    constant_bytes: int
    memory_bytes: int
    input_size: int
    output_size: int


def emit_c(package: Package | str | os.PathLike[str], out_dir: str | os.PathLike[str]) -> CSource:
    """Write a package as plain C.

    float32 graphs and static int8 graphs (QDQ, bytes for activations, symmetric int8 weights with one scale per tensor
    or per output) of matrix products and elementwise functions. Integers and their rounding equal ONNX Runtime's.

    Args:
      package: a loaded package, or the path of one; a path is loaded and checked first, its parity vectors aside.
      out_dir: folder for the files; made if missing. Files of the same names are replaced.

    Raises:
      UnsupportedGraphError: something in the graph or the contract has no C form; the message names it.
      SourceError: the package was refused, or the folder cannot be written.
      MissingExtraError: onnx is not installed.
    """
    if not isinstance(package, Package):
        try:
            package = load_package(Path(package), check_parity=False)
        except (PackageError, OSError) as error:
            raise SourceError(f"{package}: {error}") from error
    contract = package.contract
    graph = read_graph(package.graph)
    interface = read_interface(contract, graph)
    program = Program(Lowering(graph).run())
    prefix = interface.prefix
    texts = {
        f"{prefix}.h": _header(contract, interface, package.sha256, program),
        f"{prefix}.c": _source(contract, interface, program),
    }
    firmware = importlib.resources.files("embodied.export.c_code") / "firmware"
    for role, template in PROGRAMS.items():
        text = (firmware / template).read_text(encoding="utf-8")
        text = text.replace("policy.h", f"{prefix}.h").replace("policy_", f"{prefix}_")
        texts[f"{prefix}_{role}.c"] = text.replace("POLICY_", f"{prefix.upper()}_")
    folder = Path(out_dir)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="ascii")
    except OSError as error:
        raise SourceError(f"{folder}: the C files cannot be written ({error}).") from error
    return CSource(
        prefix=prefix,
        header=folder / f"{prefix}.h",
        source=folder / f"{prefix}.c",
        **{role: folder / f"{prefix}_{role}.c" for role in PROGRAMS},
        constant_bytes=program.constant_bytes,
        memory_bytes=program.memory_bytes,
        input_size=sum(size(t) for t in contract.inputs),
        output_size=sum(size(t) for t in contract.outputs),
    )


def _header(contract: PolicyContract, interface: Interface, sha256: str, program: Program) -> str:
    prefix, upper = interface.prefix, interface.prefix.upper()
    training = contract.training
    memory, constants = program.memory_bytes, program.constant_bytes
    holds = contract.on_stale == "hold"
    degraded = "action is left as it was" if holds else "action is the safe action"
    origin = f"recipe {training.recipe}, seed {training.seed}, commit {training.commit or 'unknown'}"
    return f"""\
/* {c_comment(contract.name)} {c_comment(contract.version)}, {c_comment(contract.precision)}: a policy in plain C99.
   Generated from a policy package; write it again rather than editing it. {c_comment(origin)}.
   No heap. {memory} bytes of static working memory, so one caller at a time; {constants} bytes of constants. */
#ifndef {upper}_H
#define {upper}_H

{macros(contract, interface, sha256)}

/* One number of an observation or an action: channel, unit, frame, and the range it was trained for or keeps. */
typedef struct {{
    const char *name, *unit, *frame;
    float low, high;
}} {prefix}_channel;

extern const {prefix}_channel {prefix}_observation[{upper}_OBSERVATIONS];
extern const {prefix}_channel {prefix}_action[{upper}_ACTIONS];

/* Forget recurrent state. Call it before the first step and after a pause. */
void {prefix}_reset(void);

/* One control period, to be called {upper}_RATE_HZ times per second; actions are cut to their ranges. Returns 0, or 1
   where a number of the observation or of the answer is not finite: then {degraded},
   and recurrent state is forgotten. */
int {prefix}_step(const float *observation, float *action);

/* Write the safe action; entries that shall hold keep what the caller left in them. */
void {prefix}_safe(float *action);

/* The bare graph: a pointer per input and output, in its order. Carries nothing over. */
void {prefix}_infer(const float *const *inputs, float *const *outputs);

/* The same with all inputs one after the other, and all outputs. */
void {prefix}_infer_flat(const float *in, float *out);

#endif
"""


def _source(contract: PolicyContract, interface: Interface, program: Program) -> str:
    prefix, upper = interface.prefix, interface.prefix.upper()
    parts = [
        f'#include "{prefix}.h"\n\n#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>',
        '#ifdef __FAST_MATH__\n#error "-ffast-math changes answers and drops the checks for finite numbers"\n#endif',
        channels(prefix, "observation", interface.observation.entries),
        channels(prefix, "action", interface.action.entries),
        program.constants,
        program.helpers.strip(),
        program.memory,
        f"void {prefix}_infer(const float *const *inputs, float *const *outputs)\n{{\n{program.body}\n}}",
        _flat(contract, prefix),
        *_state(contract, interface),
        f"void {prefix}_safe(float *action)\n{{\n    (void)action;\n    " + "\n    ".join(safe_lines(contract)) + "\n}",
        _step(contract, interface, upper),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _flat(contract: PolicyContract, prefix: str) -> str:
    places = []
    for letter, tensors in (("in", contract.inputs), ("out", contract.outputs)):
        at, texts = 0, []
        for tensor in tensors:
            texts.append(f"{letter} + {at}" if at else letter)
            at += size(tensor)
        places.append(", ".join(texts))
    return (
        f"void {prefix}_infer_flat(const float *in, float *out)\n{{\n"
        f"    const float *const inputs[] = {{{places[0]}}};\n    float *const outputs[] = {{{places[1]}}};\n"
        f"    {prefix}_infer(inputs, outputs);\n}}"
    )


def _state(contract: PolicyContract, interface: Interface) -> list[str]:
    """Memory for every output that is no action, and for the states fed by them; and the function that clears it."""
    lines = [f"static float s{i}[{size(state)}];" for i, (state, _) in enumerate(interface.states)]
    lines += [f"static float o{i}[{size(t)}];" for i, t in enumerate(contract.outputs) if t is not interface.action]
    clear = "\n".join(f"    memset(s{i}, 0, sizeof s{i});" for i in range(len(interface.states)))
    body = f"{clear}\n" if clear else "    /* nothing is carried from one step to the next */\n"
    return ["\n".join(lines), f"void {interface.prefix}_reset(void)\n{{\n{body}}}"]


def _step(contract: PolicyContract, interface: Interface, upper: str) -> str:
    states = [state for state, _ in interface.states]
    inputs = ["observation" if t is interface.observation else f"s{states.index(t)}" for t in contract.inputs]
    outputs = ["action" if t is interface.action else f"o{i}" for i, t in enumerate(contract.outputs)]
    carry = "".join(
        f"    memcpy(s{i}, o{contract.outputs.index(fed_by)}, sizeof s{i});\n"
        for i, (_, fed_by) in enumerate(interface.states)
    )
    prefix = interface.prefix
    # A fallback controller is not part of the C code; the safe action is its part of the contract that always works.
    give_up = "(void)action;" if contract.on_stale == "hold" else f"{prefix}_safe(action);"
    return f"""\
static int is_finite(const float *numbers, int count)
{{
    for (int i = 0; i < count; ++i)
        if (!isfinite(numbers[i])) return 0;
    return 1;
}}

static int give_up(float *action)
{{
    {prefix}_reset();
    {give_up}
    return 1;
}}

int {prefix}_step(const float *observation, float *action)
{{
    float answer[{upper}_ACTIONS];
    const float *const inputs[] = {{{", ".join(inputs)}}};
    float *const outputs[] = {{{", ".join(o if o != "action" else "answer" for o in outputs)}}};
    if (!is_finite(observation, {upper}_OBSERVATIONS)) return give_up(action);
    {prefix}_infer(inputs, outputs);
    if (!is_finite(answer, {upper}_ACTIONS)) return give_up(action);
{carry}    for (int i = 0; i < {upper}_ACTIONS; ++i) {{
        const float low = {prefix}_action[i].low, high = {prefix}_action[i].high;
        action[i] = answer[i] < low ? low : answer[i] > high ? high : answer[i];
    }}
    return 0;
}}"""


__all__ = ["PROGRAMS", "CSource", "SourceError", "UnsupportedGraphError", "emit_c"]
