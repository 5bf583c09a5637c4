"""What ``embodied doctor`` looks at. Anything that can crash or hang is tried in a child process."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Literal

Level = Literal["ok", "note", "broken"]

# Extra to the module that shows it and what is lost without it.
_EXTRAS = {
    "sim": ("mujoco", "no physics: only the symbolic world runs"),
    "fast": ("numba", "cameras without GL take the slower path by rays"),
    "report": ("jinja2", "no HTML reports and videos"),
    "bullet": ("pybullet", "no second physics engine (wheels end at CPython 3.11)"),
    "openai": ("openai", "no model planners"),
    "vision": ("cv2", "codes on packages cannot be read from images"),
    "planner-local": ("xllamacpp", "no local model server"),
}
_GL_PROBE = (
    "import mujoco; c = mujoco.GLContext(32, 32); c.make_current(); "
    "m = mujoco.MjModel.from_xml_string('<mujoco><worldbody><geom size=\"1\"/></worldbody></mujoco>'); "
    "mujoco.MjrContext(m, 50); c.free()"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the diagnosis.

    Attributes:
      level: ``ok``, ``note`` (works with less) or ``broken``.
      what: what was looked at.
      found: what was found.
      mend: how to mend it, empty when there is nothing to do.
    """

    level: Level
    what: str
    found: str
    mend: str = ""

    def as_dict(self) -> dict[str, str]:
        """Return plain JSON data."""
        return asdict(self)

    def row(self) -> tuple[str, str, str, str]:
        """Return the line of a table."""
        return self.level, self.what, self.found, self.mend


def diagnose() -> list[Finding]:
    """Look at everything and return the findings."""
    return [
        _python(),
        *_import_name(),
        *_extras(),
        *_cameras(),
        *_gl_routes(),
        _threads(),
        *_double_opencv(),
        *_plugins(),
    ]


def _python() -> Finding:
    found = f"Python {platform.python_version()}, {platform.platform(terse=True)}, {platform.machine()}"
    return Finding(level="ok", what="python", found=found)


def _import_name() -> Iterator[Finding]:
    """Find out whether ``import embodied`` is ours: another distribution carries the same import name."""
    import embodied

    ours = metadata.packages_distributions().get("embodied", [])
    others = sorted({d for d in ours if d.lower().replace("_", "-") != "embodied-stack"})
    if others:
        yield Finding(
            level="broken",
            what="import name",
            found=f"{', '.join(others)} also installs a package called embodied",
            mend=f"pip uninstall {others[0]} && pip install --force-reinstall embodied-stack",
        )
    try:
        version = metadata.version("embodied-stack")
    except metadata.PackageNotFoundError:
        yield Finding(
            level="broken", what="embodied-stack", found="imported but not installed", mend="pip install embodied-stack"
        )
        return
    if version != embodied.__version__:
        found = f"installed {version}, imported {embodied.__version__} from {os.path.dirname(embodied.__file__)}"
        yield Finding(level="broken", what="embodied-stack", found=found, mend="pip install --force-reinstall -e .")
    elif not others:
        yield Finding(level="ok", what="embodied-stack", found=version)


def _extras() -> Iterator[Finding]:
    import importlib.util

    names = {"mujoco": "mujoco", "cv2": "opencv-python-headless"}
    for extra, (module, loss) in _EXTRAS.items():
        mend = f"pip install 'embodied-stack[{extra}]'"
        if importlib.util.find_spec(module) is None:
            yield Finding(level="note", what=f"extra {extra}", found=f"{module} is absent: {loss}", mend=mend)
            continue
        error = _try(f"import {module}", timeout_s=60)
        if error:
            yield Finding(level="broken", what=f"extra {extra}", found=f"import {module}: {error}", mend=mend)
            continue
        try:
            version = metadata.version(names.get(module, module))
        except metadata.PackageNotFoundError:
            version = "of unknown version"
        yield Finding(level="ok", what=f"extra {extra}", found=f"{module} {version}")


def _cameras() -> Iterator[Finding]:
    """Name the way images are made, which needs no GL."""
    import importlib.util

    if importlib.util.find_spec("mujoco") is None:
        return
    way = "z-buffer (numba)" if importlib.util.find_spec("numba") else "rays (slower; the extra 'fast' brings numba)"
    yield Finding(level="ok", what="cameras without GL", found=way)


def _gl_routes() -> Iterator[Finding]:
    import importlib.util

    if importlib.util.find_spec("mujoco") is None:
        return
    mends = {
        "egl": "apt-get install libegl1 libegl-mesa0",
        "osmesa": "apt-get install libosmesa6, or pip install 'embodied-stack[osmesa]'",
        "glfw": "needs a display",
    }
    for route, mend in mends.items():
        error = _try(_GL_PROBE, timeout_s=30, MUJOCO_GL=route)
        if error:
            yield Finding(level="note", what=f"GL by {route}", found=f"not here: {error}", mend=f"optional: {mend}")
        else:
            yield Finding(level="ok", what=f"GL by {route}", found="works")


def _threads() -> Finding:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    limits = ", ".join(f"{n}={os.environ[n]}" for n in names if n in os.environ) or "no limits set"
    return Finding(level="ok", what="threads", found=f"{usable} usable cores, {limits}; bench workers use one each")


def _double_opencv() -> Iterator[Finding]:
    both = {"opencv-python", "opencv-python-headless"} & {d.lower() for d in _distributions()}
    if len(both) == 2:
        yield Finding(
            level="broken",
            what="opencv",
            found="two distributions own cv2",
            mend="pip uninstall opencv-python opencv-python-headless && pip install opencv-python-headless",
        )


def _distributions() -> set[str]:
    return {str(d.metadata["Name"]) for d in metadata.distributions() if d.metadata["Name"]}


def _plugins() -> Iterator[Finding]:
    from embodied.catalog import REGISTRIES

    found = 0
    for kind in REGISTRIES:
        for point in metadata.entry_points(group=f"embodied.{kind}"):
            found += 1
            source = point.dist.name if point.dist else "an unknown distribution"
            module, _, attribute = point.value.partition(":")
            error = _try(f"import importlib; getattr(importlib.import_module({module!r}), {attribute!r})", timeout_s=60)
            if error:
                yield Finding(
                    level="broken",
                    what=f"plug-in {point.name}",
                    found=f"{kind} from {source}: {error}",
                    mend=f"update or uninstall {source}",
                )
            else:
                yield Finding(level="ok", what=f"plug-in {point.name}", found=f"{kind} from {source}")
    if not found:
        yield Finding(level="ok", what="plug-ins", found="none installed")


def _try(code: str, *, timeout_s: float, **environment: str) -> str:
    """Run code in a fresh interpreter and return the last line of its complaint, empty when it went well."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env={**os.environ, **environment},
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {timeout_s:g} s"
    if done.returncode == 0:
        return ""
    lines = [line for line in done.stderr.strip().splitlines() if line and not line.startswith("Exception ignored")]
    if done.returncode < 0:
        return f"killed by signal {-done.returncode}"
    errors = [line for line in lines if "Error" in line.split(":")[0]]
    return (errors or lines or ["it failed without a word"])[-1][:100]
