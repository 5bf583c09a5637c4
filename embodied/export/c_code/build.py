"""Compile generated C and run it: here, for an emulated target, or bare for a microcontroller."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from embodied.export.c_code.emit import CSource, SourceError
from embodied_deploy.package.contract import PolicyContract
from embodied_deploy.package.load import load_package

WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-Wdouble-promotion")
_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A machine to compile for.

    Attributes:
      name: in messages and figures.
      compiler: C compiler.
      flags: for the machine and the optimisation.
      link: flags at the end of a link.
      emulator: command that runs its programs here, empty where they run as they are.
      package: how to get compiler and emulator on Debian.
      is_bare: no operating system, hence another filter program.
    """

    name: str
    compiler: str
    flags: tuple[str, ...] = ("-O2",)
    link: tuple[str, ...] = ("-lm",)
    emulator: tuple[str, ...] = ()
    package: str = "gcc"
    is_bare: bool = False

    def missing(self) -> str:
        """Say what is not installed; empty where all is there."""
        lost = [t for t in (self.compiler, *self.emulator[:1]) if shutil.which(t) is None]
        return f"{', '.join(lost)} not installed (Debian: {self.package})" if lost else ""


HOST = Target(name="host", compiler="gcc")
HOST_FAST = Target(name="host, tuned", compiler="gcc", flags=("-O3", "-march=native", "-ffp-contract=fast"))
ARM32 = Target(
    name="arm32 Linux",
    compiler="arm-linux-gnueabihf-gcc",
    link=("-static", "-lm"),
    emulator=("qemu-arm-static",),
    package="gcc-arm-linux-gnueabihf libc6-dev-armhf-cross qemu-user-static",
)
CORTEX_M4 = Target(
    name="Cortex-M4F",
    compiler="arm-none-eabi-gcc",
    flags=("-O2", "-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"),
    link=("-nostartfiles", "-lm"),
    # Linux emulation knows no M profile; what the compiler makes for a Cortex-M4F is part of the A profile too.
    emulator=("qemu-arm-static", "-cpu", "cortex-a15"),
    is_bare=True,
    package="gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-user-static",
)


def compile_c(
    target: Target, sources: Sequence[Path], out: Path, extra: Sequence[str] = (), *, is_object: bool = False
) -> Path:
    """Compile sources to a program, or one source to an object; warnings are errors.

    Raises:
      SourceError: no compiler, or it refuses; the message carries its first lines.
    """
    if target.missing():
        raise SourceError(f"Cannot compile for {target.name}: {target.missing()}.")
    out.parent.mkdir(parents=True, exist_ok=True)
    end = ["-c"] if is_object else list(target.link)
    command = [target.compiler, *WARNINGS, *target.flags, *extra, *map(str, sources), "-o", str(out), *end]
    _run(command, b"", f"compile for {target.name}")
    return out


def run_filter(target: Target, program: Path, inputs: np.ndarray, outputs: int) -> np.ndarray:
    """Feed samples to a compiled filter program.

    Args:
      target: what it was compiled for.
      program: from :func:`compile_c`.
      inputs: float32, shape (n, numbers in).
      outputs: numbers out.

    Returns:
      float32, shape (n, outputs).

    Raises:
      SourceError: it fails, or answers another number of samples.
    """
    data = np.ascontiguousarray(inputs, dtype="<f4").tobytes()
    raw = _run([*target.emulator, str(program)], data, f"run on {target.name}")
    if len(raw) != len(inputs) * outputs * 4:
        raise SourceError(f"{program.name} on {target.name}: {len(raw)} bytes for {len(inputs)} samples of {outputs}.")
    return np.frombuffer(raw, "<f4").reshape(len(inputs), outputs)


def flatten(contract: PolicyContract, tensors: Mapping[str, np.ndarray], *, outputs: bool = False) -> np.ndarray:
    """Join the tensors of n samples in the order of the graph; float32, shape (n, numbers)."""
    specs = contract.outputs if outputs else contract.inputs
    parts = [np.asarray(tensors[t.name], np.float32) for t in specs]
    return np.concatenate([p.reshape(len(p), -1) for p in parts], axis=1)


def difference(source: CSource, target: Target, inputs: np.ndarray, expected: np.ndarray, folder: Path) -> float:
    """Compile a policy's filter, run samples through it and return the largest absolute difference; NaN counts as inf.

    Args:
      source: from :func:`~embodied.export.c_code.emit.emit_c`.
      target: machine.
      inputs: shape (n, numbers in).
      expected: shape (n, numbers out).
      folder: for the program.
    """
    main = source.bare if target.is_bare else source.filter
    program = compile_c(target, [source.source, main], folder / f"{source.prefix}_{target.compiler}")
    found = run_filter(target, program, inputs, source.output_size)
    gap = np.abs(found.astype(np.float64) - expected)
    return float(np.nan_to_num(gap, nan=np.inf).max())


def check_source(package: str | os.PathLike[str], source: CSource, target: Target = HOST) -> tuple[float, float]:
    """Run the parity vectors of a package through C code.

    Args:
      package: file from which ``source`` was written.
      source: the C code.
      target: machine.

    Returns:
      Largest absolute difference, and the largest that the contract allows.

    Raises:
      SourceError: it does not compile or run.
      PackageError: the package was refused.
    """
    loaded = load_package(Path(package), check_parity=False)
    inputs = flatten(loaded.contract, loaded.parity.inputs)
    expected = flatten(loaded.contract, loaded.parity.outputs, outputs=True)
    with tempfile.TemporaryDirectory(prefix="policy-c-") as folder:
        return difference(source, target, inputs, expected, Path(folder)), loaded.contract.parity_atol


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectSize:
    """What an object file of a policy takes on a target.

    Attributes:
      flash_bytes: code, weights and tables.
      ram_bytes: static memory.
      needs: symbols that it takes from elsewhere, sorted.
    """

    flash_bytes: int
    ram_bytes: int
    needs: tuple[str, ...]


def measure_object(source: CSource, target: Target, folder: Path) -> ObjectSize:
    """Compile the policy alone and read its size and what it needs from libraries.

    Raises:
      SourceError: a tool is missing or fails.
    """
    made = compile_c(target, [source.source], folder / f"{source.prefix}_{target.compiler}.o", is_object=True)
    tools = target.compiler.removesuffix("gcc")
    text, data, bss = _run([f"{tools}size", str(made)], b"", "read sizes").decode().splitlines()[1].split()[:3]
    undefined = _run([f"{tools}nm", "-u", str(made)], b"", "read symbols").decode().split()
    return ObjectSize(
        flash_bytes=int(text) + int(data),
        ram_bytes=int(data) + int(bss),
        needs=tuple(sorted(s for s in undefined if s != "U")),
    )


def _run(command: list[str], data: bytes, what: str) -> bytes:
    try:
        done = subprocess.run(
            command, input=data, capture_output=True, timeout=_TIMEOUT_S, env={**os.environ, "LC_ALL": "C"}, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SourceError(f"Cannot {what}: {error}.") from error
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()[:6]
        raise SourceError(f"Cannot {what} (exit code {done.returncode}): " + "\n".join(lines))
    return done.stdout
