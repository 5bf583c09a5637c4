"""How long precisions take beside fp32: rounds in turn, because a shared machine changes its own speed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from embodied.benchmark.metrics import bootstrap_mean
from embodied.train.contract import Feed
from embodied_deploy.package.load import Package
from embodied_deploy.policy.session import PolicySession

ROUNDS, ROUND_S = 12, 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Time of one inference at batch 1, one thread, bound inputs and outputs.

    Attributes:
      precision: which.
      p50_us: median [µs].
      p99_us: 99th percentile [µs].
      ratio: over the first package of the same round, mean over rounds of the ratio of medians.
      low: lower end of its 95 % interval over rounds.
      high: upper end.
      runs: inferences timed.
    """

    precision: str
    p50_us: float
    p99_us: float
    ratio: float
    low: float
    high: float
    runs: int

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return asdict(self)


def measure_latency(
    packages: Sequence[Package], feed: Feed, *, rounds: int = ROUNDS, round_s: float = ROUND_S
) -> list[Latency]:
    """Time packages of the same policy in turn.

    Args:
      packages: the first one is what the others are compared with, fp32 as a rule.
      feed: real inputs, input name to (samples, …); taken in turn, for the time of some kernels depends on values.
      rounds: how often each package has its turn.
      round_s: how long a turn takes [s].
    """
    sessions = [PolicySession(package) for package in packages]
    counts = [max(5, int(round_s / max(_once_s(s, feed), 1e-7))) for s in sessions]
    times: list[list[np.ndarray[Any, Any]]] = [[] for _ in packages]
    for turn in range(rounds):
        for session, count, taken in zip(sessions, counts, times, strict=True):
            taken.append(_turn(session, feed, count, turn))
    medians = np.array([[np.median(turn) for turn in taken] for taken in times])
    found = []
    for package, taken, median in zip(packages, times, medians, strict=True):
        ratio, low, high = bootstrap_mean(list(median / medians[0]), seed=0)
        every = np.concatenate(taken) * 1e6
        p50, p99 = np.percentile(every, [50, 99])
        found.append(
            Latency(
                precision=package.contract.precision,
                p50_us=float(p50),
                p99_us=float(p99),
                ratio=ratio,
                low=low,
                high=high,
                runs=every.size,
            )
        )
    return found


def _once_s(session: PolicySession, feed: Feed) -> float:
    return float(np.median(_turn(session, feed, 10, 0)))


def _turn(session: PolicySession, feed: Feed, count: int, turn: int) -> np.ndarray[Any, Any]:
    total = len(next(iter(feed.values())))
    taken = np.empty(count)
    row: Mapping[str, Any] = {}
    for i in range(count):
        if i % 16 == 0:  # not for each one: copying an image is not what is timed, and would cool the caches
            row = {k: v[(turn * 31 + i) % total] for k, v in feed.items()}
            for name, value in row.items():
                session.inputs[name][0] = value
            session.run()
        start_s = time.perf_counter()
        session.run()
        taken[i] = time.perf_counter() - start_s
    return taken
