"""Physics episodes of the packaged planner, two precisions in one run.

Episodes are deterministic, so as long as two packages decide alike on the same images they are in the same episode. The
second package therefore rides along and is asked about every decision; only where it once decides otherwise is its own
episode run.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any

from embodied.agents.episode import Episode, EpisodeRequest
from embodied.agents.recorder import Recorder
from embodied.catalog import TASKS
from embodied.errors import WorldError
from embodied.planners.compact.planner import CompactVisionPlanner
from embodied.planners.contract import Planner, PlannerView
from embodied.planners.factory import make_planner, parse_spec
from embodied.tasks.evaluator import evaluate
from embodied.train.planner.evaluate import TASK
from embodied.train.planner.failures import failure_kind
from embodied.train.planner.kinematic import moves_of
from embodied.train.planner.teacher import Done
from embodied_deploy.planner.planner import Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """One episode.

    Attributes:
      planner: what decided.
      seed: of the task.
      things: how many had to be brought.
      success: verdict of the evaluator.
      kind: see :mod:`embodied.train.planner.failures`.
      decisions: how often it was asked.
      sim_time_s: simulated time.
      agreed: whether the package that rode along decided alike throughout.
      calls: what was done, in words.
    """

    planner: str
    seed: int
    things: int
    success: bool
    kind: str
    decisions: int
    sim_time_s: float
    agreed: bool
    calls: tuple[str, ...] = ()

    def row(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self) | {"calls": " ".join(self.calls)}


class _WithRider(CompactVisionPlanner):
    """The compact planner with another package that is asked the same."""

    def __init__(self, spec: str, rider: CompactVisionPlanner) -> None:
        _, package, options = parse_spec(spec)
        super().__init__(package, **dict(options))  # type: ignore[arg-type]
        self.rider = rider
        self.agreed = True

    def reset(self, agent: str, seed: int) -> None:
        super().reset(agent, seed)
        self.rider.reset(agent, seed)
        self.agreed = True

    def decide(self, image: Any, view: PlannerView) -> Decision:  # noqa: ANN401 -- an array
        decision = super().decide(image, view)
        if self.agreed:
            self.agreed = self.rider.decide(image, view).call == decision.call
        return decision


def play(spec: str, seed: int, rider: str = "") -> Played:
    """Run one physics episode of a planner, with another compact package riding along if one is named."""
    task = TASKS.get(TASK).make(seed)
    planner: Planner = make_planner(spec)
    if rider:
        other = make_planner(rider)
        assert isinstance(other, CompactVisionPlanner)
        planner = _WithRider(spec, other)
    recorder = Recorder(task, EpisodeRequest(task_id=TASK, seed=seed, planner=spec), planner.privileged, "study")
    try:
        episode = Episode(task, {a.name: planner for a in task.agents}, "mujoco", seed, recorder)
        try:
            outcome = episode.run()
        except WorldError:
            outcome = "crash"
    finally:
        recorder.close()
    score = evaluate(task, recorder.changes, recorder.events)
    success = score.success and outcome != "crash"
    agent = episode.agents[0]
    past = [Done(s.call, s.outcome.code) for s in agent.memory]
    moves = moves_of(task)
    over = outcome == "timeout" or agent.finished == "decisions_used_up"
    return Played(
        planner=spec,
        seed=seed,
        things=len(moves),
        success=success,
        kind=failure_kind(moves, past, success=success, out_of_budget=over),
        decisions=agent.decisions,
        sim_time_s=episode.world.time_s(),
        agreed=planner.agreed if isinstance(planner, _WithRider) else True,
        calls=tuple(f"{d.call}{'!' + d.code if d.code else ''}" for d in past),
    )


def play_all(spec: str, seeds: Sequence[int], rider: str = "", workers: int = 1) -> list[Played]:
    """Run one episode per seed."""
    job = partial(play, spec, rider=rider)
    if workers <= 1:
        return [job(int(s)) for s in seeds]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        return list(pool.map(job, [int(s) for s in seeds], chunksize=1))


def pairs(first: str, second: str, seeds: Sequence[int], workers: int = 1) -> tuple[list[Played], list[Played]]:
    """Run two packages on the same seeds; where they agree throughout, one run stands for both."""
    one = play_all(first, seeds, rider=second, workers=workers)
    again = [p.seed for p in one if not p.agreed]
    other = {p.seed: p for p in play_all(second, again, workers=workers)}
    return one, [other.get(p.seed, p) for p in one]
