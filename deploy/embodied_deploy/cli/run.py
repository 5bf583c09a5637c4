"""``run``: drive a robot by a package, or by what the slots hold."""

from __future__ import annotations

import argparse
import importlib
import threading
from typing import TYPE_CHECKING, Any

from embodied_deploy.cli.goals import check_goal, read_goal
from embodied_deploy.cli.inspect import add_key
from embodied_deploy.cli.numbers import DURATION, PRIORITY, PROCESSOR, THREADS
from embodied_deploy.cli.say import complain, say
from embodied_deploy.errors import DeployError, LinkError

if TYPE_CHECKING:
    from embodied_deploy.package.contract import PolicyContract
    from embodied_deploy.package.load import Package
    from embodied_deploy.robot import Robot
    from embodied_deploy.runtime.health import Health
    from embodied_deploy.runtime.loop import EdgeLoop
    from embodied_deploy.runtime.realtime import RealtimeOptions
    from embodied_deploy.runtime.slots import Pointer, SlotStore


def add_commands(commands: Any) -> None:  # noqa: ANN401
    """Add the command to the parser."""
    run = commands.add_parser("run", help="drive a robot by a package")
    source = run.add_mutually_exclusive_group(required=True)
    source.add_argument("package", metavar="PACKAGE", nargs="?")
    source.add_argument("--slots", metavar="DIR", help="run what is installed there; a failing trial is rolled back")
    run.add_argument(
        "--robot",
        default="loopback",
        help="loopback, tcp:HOST:PORT, unix:PATH, or module:factory with factory(contract, clock) -> robot",
    )
    run.add_argument("--mode", choices=("realtime", "lockstep"), help="default: what the link says, else realtime")
    run.add_argument("--seconds", type=DURATION, help="end after this time of the robot; default: run until told")
    run.add_argument(
        "--goal",
        action="append",
        type=read_goal,
        default=[],
        metavar="KEY=V,V,V",
        help="set-point, such as pos_world_m=0,0,1",
    )
    run.add_argument("--log", metavar="FILE", help="JSON lines; 5 files of 4 MB at most")
    run.add_argument("--threads", type=THREADS, default=1, help="of the inference; 2 pays only for large models")
    run.add_argument("--trial", type=DURATION, default=30.0, metavar="SECONDS", help="length of a trial with --slots")
    add_key(run)
    add_realtime(run)
    run.set_defaults(run=_run)


def add_realtime(parser: argparse.ArgumentParser) -> None:
    """Add the options for a bounded latency."""
    parser.add_argument("--pin", type=PROCESSOR, metavar="CPU", help="processor for the loop and the inference")
    parser.add_argument("--fifo", nargs="?", type=PRIORITY, const=50, metavar="PRIORITY", help="SCHED_FIFO, default 50")
    parser.add_argument("--mlock", action="store_true", help="keep all pages in memory")


def realtime_options(args: argparse.Namespace) -> RealtimeOptions:
    """Return what :func:`add_realtime` parsed."""
    from embodied_deploy.runtime.realtime import RealtimeOptions

    return RealtimeOptions(cpu=args.pin, fifo=args.fifo, lock_memory=args.mlock)


def _run(args: argparse.Namespace) -> int:
    from embodied_deploy.cli.slots import open_store
    from embodied_deploy.package.load import load_package
    from embodied_deploy.runtime.log import JsonLog

    log = JsonLog(args.log) if args.log else _Warnings()
    try:
        if args.slots is None:
            return _drive(args, load_package(args.package, trusted_keys=args.key), log, None)
        store = open_store(args)
        package, pointer = store.start()
        log.event("slot", slot=pointer.slot, on_trial=pointer.on_trial, starts=pointer.starts)
        if pointer.last_rollback:
            log.event("rollback", slot=pointer.slot, reason=pointer.last_rollback)
        try:
            code = _drive(args, package, log, store if pointer.on_trial else None)
        except LinkError:
            # A robot that is off says nothing about the package.
            _forgive(store, pointer, log)
            raise
        if code == 0:
            _forgive(store, pointer, log)
        return code
    except BaseException as error:
        log.event("error", error=type(error).__name__, message=str(error))
        raise
    finally:
        log.close()


def _drive(args: argparse.Namespace, package: Package, log: Any, trial_of: SlotStore | None) -> int:  # noqa: ANN401
    import numpy as np

    from embodied_deploy.package.check import check_robot
    from embodied_deploy.runtime.host import HostConfig, drive
    from embodied_deploy.runtime.loop import LoopConfig
    from embodied_deploy.runtime.notify import Notifier
    from embodied_deploy.runtime.trial import Trial

    contract = package.contract
    check_goal(contract, args.goal)
    goal = {key: np.array(values) for key, values in args.goal}
    robot, realtime = _open_robot(args, contract)
    trial = Trial(round(args.trial * contract.rate_hz)) if trial_of is not None else None
    failed: list[str] = []

    def watch(health: Health) -> bool:
        nonlocal trial
        verdict = trial.judge(health) if trial is not None else "open"
        if verdict == "passed" and trial_of is not None:
            # The pointer is synced to disk, which the loop cannot wait for.
            threading.Thread(target=_confirm, args=(trial_of, log), name="confirm").start()
            trial = None
        elif verdict == "failed" and trial is not None:
            failed.append(trial.reason)
        return bool(failed)

    try:
        check_robot(contract, robot.action_spec, robot.observation_spec, robot.kind, robot.dt_ctrl_s)
        config = HostConfig(
            realtime=realtime,
            ticks=None if args.seconds is None else max(round(args.seconds * contract.rate_hz), 1),
            goal=goal,
            threads=args.threads,
            options=realtime_options(args),
            loop=LoopConfig(watcher=watch, step=None if realtime else getattr(robot, "step", None)),
        )
        notifier = Notifier()
        loop = drive(package, robot, config, log=log, notifier=notifier)
        notifier.close()
    finally:
        close = getattr(robot, "close", None)
        if close is not None:
            close()
    if failed and trial_of is not None:
        back = trial_of.rollback(failed[0])
        log.event("rollback", slot=back.slot, reason=failed[0])
        complain(f"trial failed, back to slot {back.slot}: {failed[0]}")
        return 7
    return _tell(loop)


def _forgive(store: SlotStore, pointer: Pointer, log: Any) -> None:  # noqa: ANN401
    if not pointer.on_trial:
        return
    try:
        store.forgive()
    except OSError as error:
        # A count too many; the run itself ended as it ended.
        log.event("warning", name="forgive_failed", message=str(error))


def _confirm(store: SlotStore, log: Any) -> None:  # noqa: ANN401
    try:
        log.event("confirmed", slot=store.confirm().slot)
    except (DeployError, OSError) as error:
        log.event("warning", name="confirm_failed", message=str(error))


def _tell(loop: EdgeLoop) -> int:
    h, t = loop.health, loop.timing
    modes = ", ".join(f"{n} {m}" for m, n in h.modes.most_common())
    reasons = ", ".join(f"{n} {r}" for r, n in h.reasons.most_common())
    say(f"{h.state}{': ' + h.reason if h.reason else ''}; periods: {modes or 'none'}; spoilt: {reasons or 'none'}")
    if t.compute.count:
        for name in ("compute", "wake", "response"):
            us = getattr(t, name).summary_us()
            say(f"{name:9} p50 {us['p50']:8.1f} us   p99 {us['p99']:8.1f} us   max {us['max']:8.1f} us")
        say(f"misses {t.misses} of {t.ticks}, skipped {t.skipped}")
    return 5 if h.state == "stopped" else 0


def _open_robot(args: argparse.Namespace, contract: PolicyContract) -> tuple[Robot, bool]:
    """Return the robot and whether it runs in real time."""
    from embodied_deploy.links.remote import RemoteRobot
    from embodied_deploy.robots.stand_in import loopback_for
    from embodied_deploy.runtime.clock import MonotonicClock

    name = args.robot
    if name.startswith(("tcp:", "unix:")):
        robot = RemoteRobot(name, rate_hz=contract.rate_hz)
        mode = "lockstep" if robot.is_lockstep else "realtime"
        if args.mode not in (None, mode):
            robot.close()
            raise LinkError(f"{name} is served in {mode}, asked for {args.mode}. Leave --mode away.")
        return robot, not robot.is_lockstep
    realtime = args.mode != "lockstep"
    clock = MonotonicClock() if realtime else None
    if name == "loopback":
        return loopback_for(contract, clock), realtime
    module, _, attribute = name.partition(":")
    try:
        factory = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise LinkError(
            f"--robot {name!r}: {error}. Expected loopback, tcp:HOST:PORT, unix:PATH or module:factory."
        ) from None
    try:
        robot = factory(contract, clock)
    except TypeError as error:
        raise LinkError(f"--robot {name!r}: {error}. It is called as factory(contract, clock).") from error
    lacking = [m for m in _MEMBERS if not hasattr(robot, m)]
    if lacking:
        raise LinkError(
            f"--robot {name!r} made a {type(robot).__name__} without {', '.join(lacking)}: expected the members of "
            "embodied_deploy.robot.Robot."
        )
    return robot, realtime


_MEMBERS = ("name", "kind", "dt_ctrl_s", "action_spec", "observation_spec", "read", "send", "stop")


class _Warnings:
    """The log of a run without one: what the kernel refused must not stay unsaid."""

    def event(self, kind: str, **fields: object) -> None:
        if kind == "warning":
            complain(f"warning: {fields.get('name')}: {fields.get('message')}")

    def close(self) -> None:
        pass
