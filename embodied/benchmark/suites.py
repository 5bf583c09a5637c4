"""Suites: named lists of episodes, in a balanced order, with seeds derived from one root seed."""

from __future__ import annotations

from dataclasses import dataclass

from embodied.errors import EmbodiedError
from embodied.registry import Registry
from embodied.seeding import stream_seed

HOUSEHOLD = "household/put_away@1"
WAREHOUSE = "warehouse/deliver@1"
DRONES = "drones/inspect@1"
BEHAVIOR = "household/behavior@1"


class SuiteError(EmbodiedError):
    """A suite is malformed or was asked for something it does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One row of a suite: a task family and the seed to make its task from.

    Attributes:
      index: place in the suite, from 0; also names the files of the episode.
      task_id: ``family/name@version``.
      seed: 31-bit seed of the task family.
    """

    index: int
    task_id: str
    seed: int

    @property
    def key(self) -> str:
        """A file name for this episode: place, task and seed."""
        return f"{self.index:04d}-{self.task_id.replace('/', '-').replace('@', '-v')}-{self.seed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Task families to run in turn, ``episodes`` of them in all by default.

    Attributes:
      name: its name in the registry.
      tasks: task ids in the order of one round; every round takes each of them once.
      episodes: length when the user does not say how many.
      variants: for families that choose one of so many variants by ``seed % variants``: round k gets a seed that
        chooses variant ``k % variants``, so that no variant is left out.
    """

    name: str
    episodes: int
    tasks: tuple[str, ...]
    variants: int = 1


def episodes(suite: Suite, *, root_seed: int, count: int | None = None) -> tuple[Episode, ...]:
    """List the episodes of a suite.

    Round k takes every task once, with the seed of stream ``(root_seed, "task", task id, k)``: the first N of a longer
    list are the shorter list, and adding a task to a suite does not change the seeds of the others.

    Args:
      suite: what to run.
      root_seed: the seed the user gave.
      count: how many, None for the suite's own length; more than that adds rounds with further seeds.

    Raises:
      SuiteError: ``count`` is below one or the suite holds no task.
    """
    number = suite.episodes if count is None else count
    if number < 1:
        raise SuiteError(f"A run needs at least one episode; got {number}. Give --episodes 1 or more.")
    tasks = suite.tasks
    if not tasks:
        raise SuiteError(f"Suite {suite.name!r} lists no task. Give it at least one.")
    rows = []
    for index in range(number):
        round_index, place = divmod(index, len(tasks))
        task_id = tasks[place]
        seed = stream_seed(root_seed, "task", task_id, round_index) >> 32
        seed += round_index % suite.variants - seed % suite.variants
        rows.append(Episode(index=index, task_id=task_id, seed=seed))
    return tuple(rows)


QUICK = Suite(name="quick", episodes=30, tasks=(HOUSEHOLD, WAREHOUSE, DRONES))
HOUSEHOLD_TEN = Suite(name="household", episodes=10, tasks=(HOUSEHOLD,))
WAREHOUSE_TEN = Suite(name="warehouse", episodes=10, tasks=(WAREHOUSE,))
DRONES_TEN = Suite(name="drones", episodes=10, tasks=(DRONES,))
BEHAVIOR_TWENTY = Suite(name="behavior", episodes=20, tasks=(BEHAVIOR,), variants=20)

SUITES: Registry[Suite] = Registry("suites")
_HERE = "embodied.benchmark.suites"
SUITES.add("quick", f"{_HERE}:QUICK", summary="30 episodes, ten per world, in turn: the main job", tags=("core",))
SUITES.add("household", f"{_HERE}:HOUSEHOLD_TEN", summary="ten times putting a thing where it belongs")
SUITES.add("warehouse", f"{_HERE}:WAREHOUSE_TEN", summary="ten deliveries in the hall")
SUITES.add("drones", f"{_HERE}:DRONES_TEN", summary="ten inspection flights in the yard")
SUITES.add("behavior", f"{_HERE}:BEHAVIOR_TWENTY", summary="twenty household activities read from BDDL files")
