"""Studies of the edge runtime: equal actions, a robot that outlives its policy, the loop beside a busy core."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embodied.errors import require
from embodied.studies.figure import Figure

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from embodied.robots.served import ServedRobot
    from embodied.train.flight.mission import Flight

    Array = NDArray[np.float64]

_POLICY = "quad-hover"
_EDGE = (sys.executable, "-m", "embodied_deploy.cli.main")
_WATCHDOG_S = 0.25
_RATE_HZ = 200.0


def same_actions(quick: bool, out: Path) -> list[Figure]:
    """Share of runs whose actions equal, bit by bit, those of the policy called directly in the simulation.

    The shipped hover policy flies missions of held-out seeds in wind, four ways: asked directly; by the edge loop in
    lockstep on the robot; by the loop behind a link in one process; by `embodied-edge run` in a process of its own.
    """
    del out
    package_file = _package()
    ticks, seeds = (100, range(2)) if quick else (500, range(8))
    ways: dict[str, Callable[[int], Array]] = {
        "edge loop on the simulated robot": lambda s: _by_loop(package_file, s, ticks),
        "behind a link, one process": lambda s: _by_link(package_file, s, ticks, in_two=False),
        "behind a link, two processes": lambda s: _by_link(package_file, s, ticks, in_two=True),
    }
    direct = {s: _direct(package_file, s, ticks) for s in seeds}
    figures = []
    for name, run in ways.items():
        equal = sum(run(s).tobytes() == direct[s].tobytes() for s in seeds)
        note = f"{ticks} actions of 4 thrusts in each run"
        figures.append(
            Figure(f"bit-equal actions, {name}", equal / len(seeds), None, None, "= 1", len(seeds), note=note)
        )
    return figures


def kill(quick: bool, out: Path) -> list[Figure]:
    """How long a quadrotor in flight obeys a policy whose process was killed or frozen, over the watchdog's period.

    The simulation runs in real time, the policy is `embodied-edge run` in another process, the watchdog is 0.25 s.
    After 0.5 to 1.5 s of flight the process gets SIGKILL or SIGSTOP in turn; the vehicle is watched for 2 s then.
    """
    del out
    import numpy as np

    from embodied.seeding import stream_rng

    package_file = _package()
    n = 4 if quick else 20
    rng = stream_rng(0, "study", "edge-kill")
    ratios, drifts_m = [], []
    for k in range(n):
        number = signal.SIGKILL if k % 2 == 0 else signal.SIGSTOP
        safe_s, drift_m = _killed(package_file, k, number, float(rng.uniform(0.5, 1.5)))
        ratios.append(safe_s / _WATCHDOG_S)
        drifts_m.append(drift_m)
    killed, frozen = np.array(ratios[::2]), np.array(ratios[1::2])
    note = "from the signal to the robot's stop, largest of all"
    share = float(np.mean(np.array(ratios) <= 1.0))
    return [
        Figure("stopped within one watchdog period", share, None, None, "= 1", n, note="killed and frozen in turn"),
        Figure(
            "killed: time to safe over the watchdog", float(killed.max()), None, None, "<= 1", len(killed), note=note
        ),
        Figure(
            "frozen: time to safe over the watchdog", float(frozen.max()), None, None, "<= 1", len(frozen), note=note
        ),
        Figure(
            "farthest from where it was stopped, 2 s after", max(drifts_m), None, None, "<= 0.5", n, "m", note="in wind"
        ),
    ]


def loop(quick: bool, out: Path) -> list[Figure]:
    """Tail of the loop at 200 Hz with one core kept busy beside it: plain, pinned, pinned with SCHED_FIFO.

    From the start of a period to the command on its way, 99th percentile, over the same of a bare loop that only sleeps
    and runs the graph, in the same process and set-up. Medians over rounds that interleave the three.
    """
    del out
    import numpy as np

    package_file = _package()
    rounds, seconds = (1, 2.0) if quick else (3, 4.0)
    cpus = sorted(os.sched_getaffinity(0))
    pin = ("--pin", str(cpus[-1]))
    setups = {"plain": (), "pinned": pin, "pinned, FIFO": (*pin, "--fifo", "--mlock")}
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in setups}
    with _busy(cpus[0]):
        for _ in range(rounds):
            for name, options in setups.items():
                command = ["bench", str(package_file), "--rate", str(_RATE_HZ), "--seconds", str(seconds), "--json"]
                done = subprocess.run(
                    [*_EDGE, *command, *options], capture_output=True, text=True, check=True, timeout=120
                )
                found[name].append(json.loads(done.stdout))
    figures = []
    for name, results in found.items():
        ratios = np.array([r["response_us"]["p99"] / r["bare_us"]["p99"] for r in results])
        p99s, bares = ([r[key]["p99"] for r in results] for key in ("response_us", "bare_us"))
        misses, ticks = (sum(r[key] for r in results) for key in ("misses", "ticks"))
        warnings = sorted({w.partition(":")[0] for r in results for w in r["warnings"]})
        note = (
            f"p99 {np.median(p99s):.0f} us, bare {np.median(bares):.0f} us; misses {misses} of {ticks}"
            f"{'; ' + ', '.join(warnings) if warnings else ''}; {results[0]['cpu']}"
        )
        low, high = (float(ratios.min()), float(ratios.max())) if rounds > 1 else (None, None)
        figures.append(
            Figure(
                f"p99 at 200 Hz over a bare loop, {name}",
                float(np.median(ratios)),
                low,
                high,
                "<= 5",
                rounds,
                note=note,
            )
        )
    tails = {name: float(np.median([r["response_us"]["p99"] for r in results])) for name, results in found.items()}
    gain = tails["plain"] / tails["pinned, FIFO"]
    note = "p99 of the plain loop over that with pinning and FIFO, medians"
    figures.append(Figure("what pinning and FIFO gain", gain, None, None, ">= 1", rounds, note=note))
    return figures


def _package() -> Path:
    require("onnxruntime", "edge")
    from embodied.policies.registry import shipped

    return shipped(_POLICY)


def _flight(seed: int) -> Flight:
    from embodied.train.flight.mission import Flight, mission

    # Seeds above those of training and selection.
    return Flight(mission("hover", 700_000 + seed))


def _side(seed: int) -> ServedRobot:
    from embodied.robots.served import ServedRobot
    from embodied_deploy.robots.sense import Senses

    flight = _flight(seed)
    return ServedRobot(flight.robot, lambda: Senses(goal={"pos_world_m": flight.target_m.copy()}))


def _direct(package_file: Path, seed: int, ticks: int) -> Array:
    import numpy as np

    from embodied.train.flight.mission import open_package
    from embodied_deploy.policy.controller import PolicyController

    flight = _flight(seed)
    robot = flight.robot
    controller = PolicyController(open_package(package_file), robot.action_spec, robot.observation_spec)
    actions = []
    for _ in range(ticks):
        flight.step(controller.act(flight.observe()))
        actions.append(robot.last_action)
    return np.array(actions)


def _by_loop(package_file: Path, seed: int, ticks: int) -> Array:
    import numpy as np

    from embodied_deploy.package.load import load_package
    from embodied_deploy.runtime.host import HostConfig, drive
    from embodied_deploy.runtime.loop import LoopConfig

    side = _side(seed)
    package = load_package(package_file)
    periods = round(1.0 / (package.contract.rate_hz * side.dt_ctrl_s))

    def step() -> None:
        for _ in range(periods):
            side.step()

    drive(package, side, HostConfig(realtime=False, ticks=ticks, loop=LoopConfig(step=step)))
    return np.array(side.applied[:ticks])


def _by_link(package_file: Path, seed: int, ticks: int, *, in_two: bool) -> Array:
    import numpy as np

    from embodied_deploy.links.remote import RemoteRobot
    from embodied_deploy.links.server import RobotServer, serving
    from embodied_deploy.package.load import load_package
    from embodied_deploy.runtime.host import HostConfig, drive

    side = _side(seed)
    package = load_package(package_file)
    with tempfile.TemporaryDirectory() as folder:
        server = RobotServer(side, f"unix:{folder}/robot", 60.0, step=side.step)
        with serving(server):
            if in_two:
                seconds = str(ticks / package.contract.rate_hz)
                command = [*_EDGE, "run", str(package_file), "--robot", server.endpoint, "--seconds", seconds]
                subprocess.run(command, check=True, timeout=300, capture_output=True)
            else:
                remote = RemoteRobot(server.endpoint, rate_hz=package.contract.rate_hz)
                drive(package, remote, HostConfig(realtime=False, ticks=ticks))
                remote.close()
    return np.array(side.applied[:ticks])


def _killed(package_file: Path, seed: int, number: int, flown_s: float) -> tuple[float, float]:
    """Return the time from the signal to the robot's stop [s], and the largest distance in the 2 s after it [m]."""
    import numpy as np

    from embodied_deploy.links.server import RobotServer, serving

    side = _side(seed)
    safe_s: list[float] = []
    path: list[Array] = []
    ended = threading.Event()

    def hear(kind: str, facts: dict[str, object]) -> None:
        del facts
        if kind in ("lost", "watchdog"):
            safe_s.append(time.monotonic())
            ended.set()

    def step() -> None:
        # The vehicle hangs in its stand until it is commanded first.
        if side.applied:
            side.step()
            if ended.is_set():
                path.append(side.read().base_pos_world_m)

    with tempfile.TemporaryDirectory() as folder:
        server = RobotServer(side, f"unix:{folder}/robot", _WATCHDOG_S, step=step, lockstep=False, on_event=hear)
        with serving(server):
            process = subprocess.Popen([*_EDGE, "run", str(package_file), "--robot", server.endpoint])
            try:
                _wait(lambda: bool(side.applied), 60.0)
                time.sleep(flown_s)
                # On a busy machine the watchdog may have come before us; the process connects again then.
                _wait(lambda: not server.is_safe, 30.0)
                killed_s = time.monotonic()
                safe_s.clear()
                ended.clear()
                path.clear()
                os.kill(process.pid, number)
                _wait(ended.is_set, 30.0)
                _wait(lambda: len(path) * side.dt_ctrl_s >= 2.0, 30.0)
            finally:
                os.kill(process.pid, signal.SIGKILL)
                process.wait(30)
    where = np.array(path)
    return safe_s[0] - killed_s, float(np.linalg.norm(where - where[0], axis=1).max())


def _wait(condition: Callable[[], bool], limit_s: float) -> None:
    end_s = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end_s:
            raise RuntimeError(f"not within {limit_s} s")
        time.sleep(0.005)


@contextmanager
def _busy(cpu: int) -> Iterator[None]:
    """Keep one processor busy."""
    code = f"import os\nos.sched_setaffinity(0, {{{cpu}}})\nwhile True: pass"
    process = subprocess.Popen([sys.executable, "-c", code])
    try:
        yield
    finally:
        process.kill()
        process.wait(30)
