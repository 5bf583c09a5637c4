"""A folder with Python, NumPy and onnxruntime for aarch64: the distribution's packages and public wheels, unpacked.

Nothing is installed on this machine: apt runs on lists, a status file and a cache of its own inside the folder.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

DEBS = ("python3-minimal", "libpython3-stdlib", "libstdc++6", "libgcc-s1")
WHEELS = ("numpy", "onnxruntime", "flatbuffers", "packaging", "protobuf")
"""What ``import onnxruntime`` loads; its other dependencies are for tools."""

_TAGS = ("manylinux2014_aarch64", "manylinux_2_27_aarch64", "manylinux_2_28_aarch64", "manylinux_2_31_aarch64")
_TIMEOUT_S = 540.0
_VERSION = 2

BOARDS = {
    # Raspberry Pi 5 and Pi 4. Features must be those of the CPU that qemu is told to be: with more, the kernels chosen
    # from this list die of an illegal instruction.
    "cortex-a76": (
        "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp",
        "0xd0b",
        4,
    ),
    "cortex-a72": ("fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid", "0xd08", 4),
}
"""Features line, CPU part and cores of a board, by the name that qemu knows its CPU by."""


class SysrootError(Exception):
    """The folder cannot be made; the message says what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sysroot:
    """An unpacked target.

    Attributes:
      root: its files; each board has a root of links to them, for qemu's ``-L``.
      site: its Python packages.
      python: its interpreter.
      version: of Python, ``3.11``.
    """

    root: Path
    site: Path
    python: Path
    version: str


def missing_tools() -> str:
    """Say which programs are not here that set-up or emulation need; empty when all are."""
    packages = {"apt-get": "apt", "dpkg-deb": "dpkg", "qemu-aarch64-static": "qemu-user-static"}
    lost = [f"{tool} (package {package})" for tool, package in packages.items() if shutil.which(tool) is None]
    return ", ".join(lost)


def make_sysroot(cache: Path, *, sources: Path | None = None) -> Sysroot:
    """Return the target in ``cache``, made now if it is not there; a second call changes nothing.

    Args:
      cache: folder of its own, about 270 MB; it can be kept between runs and machines.
      sources: apt sources that serve arm64 packages; this machine's own by default (right for Debian, not for Ubuntu,
        whose arm64 packages are served elsewhere).

    Raises:
      SysrootError: a tool is missing, or packages or wheels cannot be fetched.
    """
    cache = cache.resolve()
    stamp = cache / "done.json"
    if stamp.exists() and json.loads(stamp.read_text())["version"] == _VERSION:
        return _found(cache)
    lost = missing_tools()
    if lost:
        raise SysrootError(f"Not installed here: {lost}.")
    for part in ("root", "site", "wheels"):
        shutil.rmtree(cache / part, ignore_errors=True)
        (cache / part).mkdir(parents=True)
    for deb in _fetch_debs(cache / "apt", sources):
        _run(["dpkg-deb", "-x", str(deb), str(cache / "root")], "unpack " + deb.name)
    _link_merged_usr(cache / "root")
    for wheel in _fetch_wheels(cache / "wheels", _found(cache).version):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(cache / "site")
    for board in BOARDS:
        _make_board(cache, board)
    stamp.write_text(json.dumps({"version": _VERSION}))
    return _found(cache)


def command(sysroot: Sysroot, board: str, paths: Sequence[Path], arguments: Sequence[str]) -> list[str]:
    """Return the command line that runs the target's Python as a board.

    Args:
      sysroot: the target.
      board: one of :data:`BOARDS`.
      paths: folders to import from beside the target's own packages.
      arguments: of the interpreter.
    """
    path = os.pathsep.join(map(str, [sysroot.site, *paths]))
    inner = {
        "PYTHONPATH": path,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONHOME": str(sysroot.root / "usr"),
    }
    settings = [word for name, value in inner.items() for word in ("-E", f"{name}={value}")]
    qemu = ["qemu-aarch64-static", "-cpu", board, "-L", str(sysroot.root.parent / "boards" / board)]
    return [*qemu, *settings, str(sysroot.python), *arguments]


def _make_board(cache: Path, board: str) -> None:
    """Make the root of a board: links to the common one, and a ``/proc/cpuinfo`` of its own.

    onnxruntime picks its kernels from that file; emulated, it would read this machine's and die of a null pointer.
    Files below the root hide this machine's from what runs under qemu.
    """
    features, part, cores = BOARDS[board]
    core = (
        f"BogoMIPS\t: 108.00\nFeatures\t: {features}\nCPU implementer\t: 0x41\nCPU architecture: 8\n"
        f"CPU variant\t: 0x4\nCPU part\t: {part}\nCPU revision\t: 1\n"
    )
    folder = cache / "boards" / board
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "proc").mkdir(parents=True)
    (folder / "proc" / "cpuinfo").write_text("\n".join(f"processor\t: {i}\n{core}" for i in range(cores)))
    for entry in (cache / "root").iterdir():
        if entry.name != "proc":
            (folder / entry.name).symlink_to(entry)


def _found(cache: Path) -> Sysroot:
    found = sorted((cache / "root" / "usr" / "bin").glob("python3.[0-9]*"))
    names = [p for p in found if p.name.removeprefix("python3.").isdigit()]
    if not names:
        raise SysrootError(f"{cache}: no Python in it. Delete the folder and run this again.")
    python = names[-1]
    return Sysroot(root=cache / "root", site=cache / "site", python=python, version=python.name.removeprefix("python"))


def _fetch_debs(folder: Path, sources: Path | None) -> list[Path]:
    for part in ("lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    (folder / "status").write_text("")
    lines = [
        'APT::Architecture "arm64";',
        "#clear APT::Architectures;",
        'APT::Architectures { "arm64"; };',
        'APT::Sandbox::User "root";',
        'Debug::NoLocking "true";',
        'Acquire::Languages "none";',
        f'Dir::State::lists "{folder}/lists";',
        f'Dir::State::status "{folder}/status";',
        f'Dir::State::extended_states "{folder}/extended_states";',
        f'Dir::Cache "{folder}/cache";',
        'Dir::Cache::archives "archives/";',
        'Dir::Cache::pkgcache "";',
        'Dir::Cache::srcpkgcache "";',
        f'Dir::Log "{folder}";',
        'APT::Install-Recommends "false";',
        # Hooks of this machine (cleaning, proxies of a desktop) have no business in the folder.
        "#clear DPkg::Post-Invoke;",
        "#clear APT::Update::Post-Invoke;",
        "#clear APT::Update::Post-Invoke-Success;",
    ]
    if sources is not None:
        lines += [f'Dir::Etc::sourcelist "{sources.resolve()}";', 'Dir::Etc::sourceparts "-";']
    (folder / "arm.conf").write_text("\n".join(lines) + "\n")
    environment = {"APT_CONFIG": str(folder / "arm.conf"), "DEBIAN_FRONTEND": "noninteractive"}
    _run(["apt-get", "-qq", "update"], "read the distribution's list of arm64 packages", environment)
    _run(["apt-get", "-qq", "-y", "--download-only", "install", *DEBS], "fetch arm64 packages", environment)
    found = sorted((folder / "cache" / "archives").glob("*.deb"))
    if not found:
        raise SysrootError("apt-get fetched no arm64 package; its sources serve none. Pass --sources.")
    return found


def _fetch_wheels(folder: Path, version: str) -> list[Path]:
    base = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    base += ["--only-binary=:all:", "--python-version", version, "--implementation", "cp", "-d", str(folder)]
    base += [word for tag in _TAGS for word in ("--platform", tag)]
    # The same versions as here, so that a difference is the machine's; another Python may lack them.
    pinned = [f"{name}=={v}" if (v := _version_here(name)) else name for name in WHEELS]
    try:
        _run([*base, *pinned], "fetch aarch64 wheels")
    except SysrootError:
        _run([*base, *WHEELS], "fetch aarch64 wheels")
    return sorted(folder.glob("*.whl"))


def _version_here(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _link_merged_usr(root: Path) -> None:
    """Packages may put files below ``/lib`` that the loader looks up there, while others moved to ``/usr/lib``."""
    for name in ("lib", "bin", "sbin"):
        if not (root / name).exists() and (root / "usr" / name).exists():
            (root / name).symlink_to(Path("usr") / name)


def _run(arguments: Sequence[str], what: str, environment: dict[str, str] | None = None) -> None:
    try:
        done = subprocess.run(
            arguments,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            env={**os.environ, **(environment or {})},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SysrootError(f"Cannot {what}: {error}") from error
    if done.returncode != 0:
        raise SysrootError(f"Cannot {what}: " + " | ".join(done.stderr.strip().splitlines()[-3:]))
