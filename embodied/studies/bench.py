"""Studies of the benchmark itself: success of the reference planners, determinism, life without GL."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from embodied.studies.figure import Figure

SEED = 0
# A full run of these is the main job: thirty episodes, ten per world.
FULL, QUICK = 30, 6


def quick_oracle(quick: bool, out: Path) -> list[Figure]:
    """Suite quick, planner oracle, MuJoCo."""
    return _success("quick", "oracle", ">= 0.95", QUICK if quick else FULL, out)


def quick_random(quick: bool, out: Path) -> list[Figure]:
    """The same episodes for the planner that takes any call that may start."""
    return _success("quick", "random", "<= 0.1", QUICK if quick else FULL, out)


def quick_noop(quick: bool, out: Path) -> list[Figure]:
    """The same episodes for the planner that does nothing: no task is solved at the start."""
    return _success("quick", "noop", "= 0", QUICK if quick else FULL, out)


def household_pybullet(quick: bool, out: Path) -> list[Figure]:
    """The household episodes of quick on the second engine."""
    return _success("household", "oracle", ">= 0.8", 2 if quick else 10, out, world="pybullet")


def household_put_away(quick: bool, out: Path) -> list[Figure]:
    """Forty seeds of put_away, beyond the ten of the main job."""
    return _success("household", "oracle", ">= 0.95", 4 if quick else 40, out)


def household_behavior(quick: bool, out: Path) -> list[Figure]:
    """The twenty BEHAVIOR activities, each once, by physics."""
    return _success("behavior", "oracle", ">= 0.8", 4 if quick else 20, out)


def drones_inspect(quick: bool, out: Path) -> list[Figure]:
    """Forty seeds of inspect with wind, MuJoCo, and ten on the second engine."""
    figures = _success("drones", "oracle", ">= 0.95", 4 if quick else 40, out / "mujoco")
    return figures + _success("drones", "oracle", ">= 0.8", 2 if quick else 10, out / "pybullet", world="pybullet")


def _success(suite: str, planner: str, target: str, n: int, out: Path, world: str = "mujoco") -> list[Figure]:
    summary = _run(suite, planner, n, out / "run", world=world)
    crashes = summary["outcomes"].get("crash", 0)
    return [
        Figure(
            f"success of {planner} on {suite} ({world})",
            summary["success_rate"],
            summary["success_low"],
            summary["success_high"],
            target,
            summary["episodes"],
            note=", ".join(f"{n} {word}" for word, n in summary["outcomes"].items()),
        ),
        Figure(f"crashes of {planner} on {suite} ({world})", crashes, None, None, "= 0", summary["episodes"]),
    ]


def _run(suite: str, planner: str, n: int, out: Path, *, world: str = "mujoco", workers: int = 2) -> dict[str, Any]:
    from embodied.benchmark.runner import RunConfig, run_suite

    return run_suite(
        RunConfig(suite=suite, planner=planner, episodes=n, out=out, world=world, seed=SEED, workers=workers)
    )


def determinism(quick: bool, out: Path) -> list[Figure]:
    """Compare the bytes of all logs and results between one worker, two workers and a second run."""
    n = 3 if quick else 6
    figures = []
    for planner in ("oracle", "random"):
        runs = {"one worker": 1, "two workers": 2, "second run": 2}
        digests = {}
        for name, workers in runs.items():
            folder = out / f"{planner}-{name.replace(' ', '-')}"
            _run("quick", planner, n, folder, workers=workers)
            digests[name] = _digests(folder)
        first = digests["one worker"]
        for name in ("two workers", "second run"):
            # A log that is missing on one side differs as well.
            differ = sum(first.get(f) != digests[name].get(f) for f in first.keys() | digests[name].keys())
            figures.append(
                Figure(
                    f"files that differ, one worker against {name}, {planner}", differ, None, None, "= 0", len(first)
                )
            )
        figures.append(Figure(f"logs compared, {planner}", len(first) - 1, None, None, f"= {n}", n))
    return figures


def _digests(folder: Path) -> dict[str, str]:
    files = [*sorted((folder / "episodes").glob("*.mcap")), folder / "results.jsonl"]
    return {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in files}


# Runs in a process of its own, in which every attempt to load a GL library fails as if it were not installed.
_WITHOUT_GL = """
import ctypes, sys
from pathlib import Path
NAMES = ("libGL.", "libGLX", "libEGL", "libOpenGL", "libOSMesa", "libGLESv", "libGLdispatch")
real = ctypes.CDLL.__init__
def refuse(self, name, *args, **kwargs):
    if name and any(n in str(name) for n in NAMES):
        raise OSError(f"{name}: cannot open shared object file: hidden by this study")
    real(self, name, *args, **kwargs)
ctypes.CDLL.__init__ = refuse
from embodied.agents.episode import EpisodeRequest, run_episode
from embodied.benchmark.suites import SUITES, episodes
from embodied.record.replay import ReplayConfig, replay_episode
out = Path(sys.argv[1])
solved = filmed = 0
for row in episodes(SUITES.get("quick"), root_seed=int(sys.argv[2]), count=3):
    log = out / f"{row.key}.mcap"
    result = run_episode(EpisodeRequest(task_id=row.task_id, seed=row.seed, log_path=log))
    solved += result.success
    picture = replay_episode(log, out / f"{row.key}.png", ReplayConfig(width_px=320, height_px=180))
    filmed += picture.stat().st_size > 2000
loaded = {line.split("/")[-1].strip() for line in open("/proc/self/maps") if any(n in line for n in NAMES)}
print(solved, filmed, len(loaded))
"""


def no_gl(quick: bool, out: Path) -> list[Figure]:
    """Run an episode of each world and draw its last picture while no GL library can be loaded."""
    del quick
    environment = {k: v for k, v in os.environ.items() if k not in ("MUJOCO_GL", "PYOPENGL_PLATFORM", "DISPLAY")}
    solved, filmed, loaded = _numbers([sys.executable, "-c", _WITHOUT_GL, str(out), str(SEED)], environment)
    return [
        Figure("episodes solved without GL", solved, None, None, "= 3", 3),
        Figure("pictures drawn without GL", filmed, None, None, "= 3", 3),
        Figure("GL libraries in the process", loaded, None, None, "= 0", 1),
    ]


def _numbers(command: Sequence[str], environment: dict[str, str]) -> list[float]:
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=900)
    if done.returncode != 0:
        raise RuntimeError(f"the process left with {done.returncode}: {done.stderr.strip()[-400:]}")
    return [float(word) for word in done.stdout.split()[-3:]]
