"""Studies of policies off the beaten processor: plain C against session.run, and ARM against this machine."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embodied.studies.figure import Figure

if TYPE_CHECKING:
    from embodied.export.c_code import CSource
    from embodied.export.c_code.build import Target
    from embodied_deploy.package.load import Package

_SCRIPT = Path(__file__).parents[2] / "deploy" / "arm" / "run_aarch64.py"
_PRECISIONS = ("fp32", "int8-static")
_SMALL, _LARGE = (64, 64), (256, 256)
_BLOCK = 400
_FLASH_BYTES, _RAM_BYTES = 262_144, 16_384
"""A small share of an STM32F405 (1 MB flash, 192 KB RAM: Crazyflie 2.1), and all of its smaller relatives' flash."""


def speed(quick: bool, out: Path) -> list[Figure]:
    """CPU time of a policy in C over ``session.run(None, feed)`` of the same package, in one process.

    All go through the parity vectors in turn. Two ways of calling the C code: a loop inside the shared object
    (``C loop``), and one ``ctypes`` call per inference (``C by ctypes``). Rounds interleave blocks of 400 calls of each
    kind; the figure is the median over rounds of the ratio, with its bootstrap interval. ``tuned`` is
    ``-O3 -march=native``; ``-O2`` uses no vectors of bytes.
    """
    from embodied.export.c_code.build import HOST, HOST_FAST

    if HOST.missing():
        return [_absent("plain C over session.run", HOST.missing(), "< 1")]
    figures = []
    for label, path in _controllers(out, (_SMALL, _LARGE)):
        package, source = _emitted(path, out)
        calls = _calls(package, source, out, {"tuned": HOST_FAST, "-O2": HOST})
        rounds = _interleaved(calls, 12 if quick else 60)
        # Scalar bytes of a large layer cost what onnxruntime's vectors and its overhead cost together.
        is_heavy = label.startswith("specimen-256") and package.contract.precision != "fp32"
        targets = {"C loop, tuned": "< 1", "C by ctypes, tuned": "< 1", "C loop, -O2": "< 1.5" if is_heavy else "< 1"}
        figures += [_ratio(f"{label}: {name} over session.run", rounds, name, t) for name, t in targets.items()]
    return figures


def arm_parity(quick: bool, out: Path) -> list[Figure]:
    """Shipped policies on emulated ARM against this machine: aarch64 by the edge runtime, arm32 and Cortex-M4F in C.

    aarch64: largest absolute difference over the parity vectors and over a lockstep run on the loopback robot, on two
    boards; target is the tolerance of the package. C: largest difference to the parity vectors over the largest output.
    """
    from embodied.export.c_code.build import ARM32, CORTEX_M4

    figures = []
    for label, path in _controllers(out, (_SMALL,)):
        package, source = _emitted(path, out)
        target = "<= 1e-5" if package.contract.precision == "fp32" else "<= 2e-6"
        for machine in (ARM32, CORTEX_M4):
            figures.append(_c_parity(f"{label}: plain C on {machine.name}", package, source, machine, target, out))
        figures += _sizes(label, source, out)
    return figures + _aarch64(quick, out)


def _controllers(out: Path, sizes: Sequence[tuple[int, ...]]) -> list[tuple[str, Path]]:
    """Return name and file of every package to measure: shipped ones that C can hold, and specimens of given sizes."""
    from embodied.export.c_code import UnsupportedGraphError, emit_c
    from embodied.export.specimen import write_specimen

    found = []
    for label, path in _shipped():
        try:
            emit_c(path, out / "probe")
        except UnsupportedGraphError:
            continue  # images, tokens and chunks need the runtime
        found.append((label, path))
    for hidden in sizes:
        made = write_specimen(out / "specimens", hidden)
        found += [(f"{path.stem}", path) for path in made.values()]
    return found


def _shipped() -> list[tuple[str, Path]]:
    from embodied.policies.registry import POLICIES

    return [
        (f"{entry.name} {precision}", policy.path(precision))
        for entry in POLICIES
        for policy in [POLICIES.get(entry.name)]
        for precision in policy.precisions
        if precision in _PRECISIONS
    ]


def _emitted(path: Path, out: Path) -> tuple[Package, CSource]:
    from embodied.export.c_code import emit_c
    from embodied_deploy.package.load import load_package

    package = load_package(path)
    return package, emit_c(package, out / "c" / path.stem)


def _calls(package: Package, source: CSource, out: Path, targets: Mapping[str, Target]) -> dict[str, Callable[[], Any]]:
    """Return what runs one block of each kind."""
    from embodied.export.c_code.build import compile_c, flatten
    from embodied_deploy.policy.session import open_session

    inputs = flatten(package.contract, package.parity.inputs)
    samples = range(len(inputs))
    feeds = [{k: v[i : i + 1] for k, v in package.parity.inputs.items()} for i in samples]
    run = open_session(package.graph).run
    pointer = ctypes.POINTER(ctypes.c_float)
    answer = (ctypes.c_float * source.output_size)()

    def by_session() -> None:
        for i in range(_BLOCK):
            run(None, feeds[i % len(feeds)])

    calls: dict[str, Callable[[], Any]] = {"session.run": by_session}
    for name, target in targets.items():
        files = [source.source, source.bench]
        built = out / "built" / f"{source.source.parent.name}-{name}.so"
        library = ctypes.CDLL(str(compile_c(target, files, built, ("-shared", "-fPIC"))))
        loop, once = (getattr(library, f"{source.prefix}_{f}") for f in ("bench", "infer_flat"))
        loop.argtypes, loop.restype = [pointer, ctypes.c_int, ctypes.c_int], ctypes.c_float
        once.argtypes, once.restype = [pointer, pointer], None
        rows = [inputs[i].ctypes.data_as(pointer) for i in samples]

        def by_loop(loop: Callable[..., Any] = loop) -> None:
            loop(inputs.ctypes.data_as(pointer), len(inputs), _BLOCK)

        def by_ctypes(once: Callable[..., Any] = once, rows: Sequence[Any] = rows) -> None:
            for i in range(_BLOCK):
                once(rows[i % len(rows)], answer)

        calls |= {f"C loop, {name}": by_loop, f"C by ctypes, {name}": by_ctypes}
    return calls


def _interleaved(calls: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Return CPU microseconds per inference, by kind and round, after one round that warms up."""
    spent: dict[str, list[float]] = {name: [] for name in calls}
    for n in range(rounds + 1):
        for name, call in calls.items():
            start_s = time.thread_time()
            call()
            if n:
                spent[name].append((time.thread_time() - start_s) / _BLOCK * 1e6)
    return spent


def _ratio(name: str, rounds: Mapping[str, list[float]], what: str, target: str) -> Figure:
    import numpy as np

    cost, bare = np.array(rounds[what]), np.array(rounds["session.run"])
    ratios = cost / bare
    medians = np.median(np.random.default_rng(0).choice(ratios, (2000, len(ratios))), axis=1)
    low, high = (float(q) for q in np.quantile(medians, (0.025, 0.975)))
    note = f"{np.median(cost):.2f} us, session.run {np.median(bare):.1f} us; median of {len(ratios)} rounds"
    return Figure(name, float(np.median(ratios)), low, high, target, len(ratios), note=note)


def _c_parity(name: str, package: Package, source: CSource, machine: Target, target: str, out: Path) -> Figure:
    import numpy as np

    from embodied.export.c_code.build import difference, flatten

    if machine.missing():
        return _absent(name, machine.missing(), target)
    inputs = flatten(package.contract, package.parity.inputs)
    expected = flatten(package.contract, package.parity.outputs, outputs=True)
    largest = float(np.abs(expected).max())
    value = difference(source, machine, inputs, expected, out / "arm" / source.source.parent.name) / largest
    note = f"largest difference over the largest output, {largest:.3g}; emulated"
    return Figure(name, value, None, None, target, len(inputs), note=note)


def _sizes(label: str, source: CSource, out: Path) -> list[Figure]:
    from embodied.export.c_code.build import CORTEX_M4, measure_object

    names = [f"{label}: {what} of a Cortex-M4F build" for what in ("flash", "RAM", "heap and double symbols")]
    targets = [f"<= {_FLASH_BYTES}", f"<= {_RAM_BYTES}", "= 0"]
    if CORTEX_M4.missing():
        return [_absent(n, CORTEX_M4.missing(), t) for n, t in zip(names, targets, strict=True)]
    made = measure_object(source, CORTEX_M4, out / "objects" / source.source.parent.name)
    bad = [s for s in made.needs if s.startswith(("__aeabi_d", "_sbrk")) or "alloc" in s or s == "free"]
    values = [(made.flash_bytes, "bytes"), (made.ram_bytes, "bytes"), (len(bad), "")]
    note = "-O2; needs " + (", ".join(made.needs) or "nothing")
    return [
        Figure(n, float(v), None, None, t, 1, unit, note=note)
        for n, t, (v, unit) in zip(names, targets, values, strict=True)
    ]


def _aarch64(quick: bool, out: Path) -> list[Figure]:
    """Run packages under the emulated boards by the script of ``deploy/arm``."""
    import os

    from embodied.export.specimen import write_specimen

    packages = {path: label for label, path in _shipped()} if not quick else {}
    packages |= {path: path.stem for path in write_specimen(out / "boards", _SMALL).values()}
    name = "aarch64 runtime against this machine"
    if not _SCRIPT.exists():
        return [_absent(name, "deploy/arm is part of a checkout, not of the wheel", "<= 1e-5")]
    cache = os.environ.get("EMBODIED_ARM_CACHE") or str(out / "board")
    command = [sys.executable, str(_SCRIPT), "--cache", cache, "--json", "--steps", "50" if quick else "200"]
    done = subprocess.run([*command, *map(str, packages)], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        return [_absent(name, (done.stderr.strip().splitlines() or ["no answer"])[-1], "<= 1e-5")]
    figures = []
    for path, result in zip((p for p in packages for _ in range(2)), json.loads(done.stdout)["results"], strict=True):
        start = f"{packages[path]} on {result['board']}"
        if "error" in result:
            figures.append(_absent(start, result["error"], "<= 1e-5"))
            continue
        note = f"onnxruntime {result['onnxruntime']}, python {result['python']}"
        target = f"<= {result['parity_atol']}"
        n = result["vectors"]
        figures.append(Figure(f"{start}: outputs", result["output_difference"], None, None, target, n, note=note))
        if result["modes"]:
            value, steps = result["action_difference"], result["steps"]
            figures.append(Figure(f"{start}: actions of the loop", value, None, None, target, steps, note=note))
    return figures


def _absent(name: str, why: str, target: str) -> Figure:
    return Figure(name, float("nan"), None, None, target, 0, note=why)
