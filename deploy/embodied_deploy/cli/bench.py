"""``bench``: how long a package takes here, in a tight loop and at its real rate, where caches are cold."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from embodied_deploy.cli.inspect import add_key
from embodied_deploy.cli.numbers import THREADS, number
from embodied_deploy.cli.run import add_realtime, realtime_options
from embodied_deploy.cli.say import say

if TYPE_CHECKING:
    from embodied_deploy.package.load import Package
    from embodied_deploy.runtime.histogram import Histogram


def add_commands(commands: Any) -> None:  # noqa: ANN401
    """Add the command to the parser."""
    bench = commands.add_parser("bench", help="time a package on this machine")
    bench.add_argument("package", metavar="PACKAGE")
    bench.add_argument("--rate", type=number(0.1, 10_000, "Hz"), metavar="HZ", help="default: the rate of the contract")
    bench.add_argument("--seconds", type=number(0.0, 3600.0, "s"), default=5.0, help="of each part, default 5")
    bench.add_argument("--threads", type=THREADS, default=1)
    bench.add_argument("--json", action="store_true")
    add_key(bench)
    add_realtime(bench)
    bench.set_defaults(run=_bench)


def _bench(args: argparse.Namespace) -> int:
    from embodied_deploy.package.load import load_package
    from embodied_deploy.runtime.realtime import cpu_model

    package = load_package(args.package, trusted_keys=args.key)
    if args.rate is not None:
        package = replace(package, contract=replace(package.contract, rate_hz=args.rate))
    result: dict[str, Any] = {
        "package": f"{package.contract.name} {package.contract.version} {package.contract.precision}",
        "cpu": cpu_model(),
        "rate_hz": package.contract.rate_hz,
        "threads": args.threads,
        "warnings": [],
    }
    result |= _tight(package, args)
    result |= _paced(package, args, result["warnings"])
    if args.json:
        say(json.dumps(result, indent=1))
        return 0
    say(f"{result['package']} on {result['cpu']}, {args.threads} thread(s)")
    for key, what in _PARTS.items():
        if key in result:
            us = result[key]
            say(f"{what:50} p50 {us['p50']:9.1f} us   p99 {us['p99']:9.1f} us   max {us['max']:9.1f} us")
    if "misses" in result:
        budget_ms = package.contract.latency_budget_s * 1e3
        say(f"misses {result['misses']} of {result['ticks']} (budget {budget_ms:g} ms), skipped {result['skipped']}")
    for line in result["warnings"]:
        say(f"warning: {line}")
    return 0


_PARTS = {
    "tight_run_us": "graph alone, tight loop",
    "tight_act_us": "sample to action, tight loop",
    "bare_us": "graph alone, at the rate, late wake-up included",
    "compute_us": "sample to action, at the rate",
    "response_us": "period start to command, at the rate",
    "wake_us": "wake-up after the deadline",
}


def _tight(package: Package, args: argparse.Namespace) -> dict[str, Any]:
    from embodied_deploy.policy.controller import PolicyController
    from embodied_deploy.policy.session import PolicySession
    from embodied_deploy.robots.sense import first_action, sample_of
    from embodied_deploy.robots.stand_in import loopback_for

    session = PolicySession(package, threads=args.threads)
    found = {"tight_run_us": _time(session.run, args.seconds / 2).summary_us()}
    if package.contract.action is not None:
        robot = loopback_for(package.contract)
        policy = PolicyController(session, robot.action_spec, robot.observation_spec)
        sample = sample_of(robot, robot.read(), first_action(robot), {})
        found["tight_act_us"] = _time(lambda: policy.act(sample), args.seconds / 2).summary_us()
    return found


def _time(call: Callable[[], object], seconds: float) -> Histogram:
    from embodied_deploy.runtime.histogram import Histogram

    times = Histogram()
    end_s = time.perf_counter() + seconds
    now_s = 0.0
    while now_s < end_s:
        begin_s = time.perf_counter()
        call()
        now_s = time.perf_counter()
        times.add(now_s - begin_s)
    return times


def _paced(package: Package, args: argparse.Namespace, warnings: list[str]) -> dict[str, Any]:
    """Time at the rate: the bare graph, as a measure of the machine, and for controllers the whole loop."""
    from embodied_deploy.policy.session import PolicySession
    from embodied_deploy.robots.stand_in import loopback_for
    from embodied_deploy.runtime.clock import MonotonicClock
    from embodied_deploy.runtime.host import HostConfig, drive
    from embodied_deploy.runtime.realtime import apply_to_thread, quiet_interpreter

    c, options = package.contract, realtime_options(args)
    warnings += apply_to_thread(options)
    with quiet_interpreter():
        bare = _bare(PolicySession(package, threads=args.threads).run, c.rate_hz, args.seconds)
    found = {"bare_us": bare.summary_us(), "ticks": bare.count}
    if c.action is not None:
        config = HostConfig(ticks=max(bare.count, 10), threads=args.threads, options=options)
        found |= drive(package, loopback_for(c, MonotonicClock()), config).timing.as_dict()
    return found


def _bare(run: Callable[[], None], rate_hz: float, seconds: float) -> Histogram:
    """Return times from the start of a period to the answer, in a loop that does nothing but sleep and ask."""
    from embodied_deploy.runtime.clock import MonotonicClock
    from embodied_deploy.runtime.histogram import Histogram

    clock, times = MonotonicClock(), Histogram()
    start_s = clock.now_s()
    for k in range(max(round(seconds * rate_hz), 3)):
        due_s = start_s + k / rate_hz
        if k >= 3 and clock.now_s() - start_s > seconds:
            break  # a rate that this machine cannot keep
        clock.sleep_until(due_s)
        run()
        times.add(clock.now_s() - due_s)
    return times
