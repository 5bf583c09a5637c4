"""Studies of what the project costs: start-up CPU, disk, the wall time of the main job."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from embodied.studies.figure import Figure


def cpu_s(command: Sequence[str], *, cwd: Path | None = None) -> float:
    """Run a command and return the user and system CPU seconds of it and its children.

    CPU time, unlike wall time, hardly changes when other work runs on the machine.

    Raises:
      RuntimeError: the command failed.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)  # microseconds, where os.times counts in hundredths
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, cwd=cwd)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def _best_ms(command: Sequence[str], n: int) -> tuple[float, float, float]:
    """Return the median and the range of n runs in milliseconds, after one that writes the compiled files."""
    cpu_s(command)
    runs = sorted(cpu_s(command) * 1e3 for _ in range(n))
    return runs[n // 2], runs[0], runs[-1]


def cli(quick: bool, out: Path) -> list[Figure]:
    """CPU of the help text and of the bare imports (interpreter included)."""
    del out
    n = 5 if quick else 15
    commands = {
        "embodied --help": (
            ["-c", "import sys; sys.argv = ['embodied', '--help']; from embodied.cli.main import main; main()"],
            "< 150",
        ),
        "import embodied": (["-c", "import embodied"], "< 50"),
        "import embodied_deploy": (["-c", "import embodied_deploy"], "< 50"),
    }
    figures = []
    for name, (arguments, target) in commands.items():
        value, low, high = _best_ms([sys.executable, *arguments], n)
        figures.append(Figure(f"CPU of {name}", value, low, high, target, n, "ms", note="median, range of runs"))
    return figures


_FIRST_STEP = """
import gymnasium, embodied.envs
env = gymnasium.make({env_id!r})
env.reset(seed=0)
env.step(env.action_space.sample())
"""


def first_step(quick: bool, out: Path) -> list[Figure]:
    """CPU from a fresh process to the first step of an environment of each kind."""
    del out
    n = 3 if quick else 5
    figures = []
    for env_id in _environment_ids():
        value, low, high = _best_ms([sys.executable, "-c", _FIRST_STEP.format(env_id=env_id)], n)
        figures.append(
            Figure(f"first step of {env_id}", value / 1e3, low / 1e3, high / 1e3, "< 1.5", n, "s", note="median, range")
        )
    return figures


def _environment_ids() -> list[str]:
    import gymnasium

    import embodied.envs  # noqa: F401  registers the ids

    return sorted(i for i in gymnasium.registry if i.startswith("Embodied/"))


def install_size(quick: bool, out: Path) -> list[Figure]:
    """Disk of everything that ``pip install embodied-stack[sim]`` brings into a fresh environment."""
    del quick
    import embodied

    root = Path(embodied.__file__).resolve().parents[1]
    source = f"{root}[sim]" if (root / "pyproject.toml").exists() else f"embodied-stack[sim]=={embodied.__version__}"
    venv = out / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True, timeout=300)
    before = _bytes(venv)
    install = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", source]
    done = subprocess.run(install, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode != 0:
        raise RuntimeError(f"pip install failed: {done.stderr.strip()[-300:]}")
    megabytes = (_bytes(venv) - before) / 1e6
    return [Figure("embodied-stack[sim] on disk", megabytes, None, None, "< 300", 1, "MB")]


def _bytes(folder: Path) -> int:
    return sum(f.lstat().st_size for f in folder.rglob("*") if f.is_file() and not f.is_symlink())


def main_job(quick: bool, out: Path) -> list[Figure]:
    """Wall time of what ``make bench`` runs after set-up: suite quick with two workers, then its report."""
    del quick  # the target is about the whole job
    import time

    from embodied.benchmark.report import write_report
    from embodied.benchmark.runner import RunConfig, run_suite

    start_s = time.perf_counter()
    summary = run_suite(RunConfig(suite="quick", planner="oracle", episodes=30, workers=2, out=out / "run"))
    write_report(out / "run")
    minutes = (time.perf_counter() - start_s) / 60
    return [Figure("main job, run and report", minutes, None, None, "< 3", summary["episodes"], "min")]
