"""What one decision costs without the model: belief, prompt, schema, reading the answer, checking, logging."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embodied.studies.figure import Figure

if TYPE_CHECKING:
    from embodied.planners.contract import Planner

_TASK = "household/put_away"
_TARGET = "< 1"
_WARM_UP = 5


def planner_loop(quick: bool, out: Path) -> list[Figure]:
    """CPU milliseconds of the loop per decision, for a planner that does nothing and for ``openai:``.

    The model planner talks to a scripted server on loopback; the time of the request itself is taken off, since a model
    would take it. The figures are medians with the order-statistics interval, of the thread's CPU time.
    """
    from embodied.planners.openai.planner import OpenAiPlanner
    from embodied.planners.openai.scripted_server import ScriptedServer, calls_reply
    from embodied.planners.simple import NoopPlanner
    from embodied.skills.contract import SkillCall

    decisions = 60 if quick else 300
    noop = _per_decision_ms(NoopPlanner(wait_s=0.5), decisions)
    key_env = "EMBODIED_STUDY_KEY"
    os.environ.setdefault(key_env, "none")
    with ScriptedServer([calls_reply(SkillCall.of("wait", duration_s=0.5))]) as server:
        planner = OpenAiPlanner(
            "scripted", base_url=server.base_url, key_env=key_env, images=False, clock=time.thread_time
        )
        model = _per_decision_ms(planner, decisions)
    return [
        _figure("planner loop, noop, per decision", noop),
        _figure("planner loop, openai without the model, per decision", model),
    ]


def _per_decision_ms(planner: Planner, decisions: int) -> list[float]:
    """Run a symbolic episode and time each decision; what the planner waited for its server is taken off."""
    from dataclasses import replace

    from embodied.agents.episode import Episode, EpisodeRequest
    from embodied.agents.recorder import Recorder
    from embodied.catalog import TASKS
    from embodied.tasks.contract import Budgets

    task = TASKS.get(_TASK).make(0)
    task = replace(task, budgets=Budgets(sim_time_s=decisions * 10.0, decisions=decisions + _WARM_UP))
    recorder = Recorder(task, EpisodeRequest(task_id=task.id, seed=0, world="symbolic"), False, "study")
    episode = Episode(task, {a.name: planner for a in task.agents}, "symbolic", 0, recorder)
    agent = episode.agents[0]
    spent_ms: list[float] = []
    decide = agent._decide

    def timed(time_s: float) -> bool:
        began_s, away_ms = time.thread_time(), _away_ms(planner)
        answer = decide(time_s)
        spent_ms.append((time.thread_time() - began_s) * 1e3 - (_away_ms(planner) - away_ms))
        return answer

    vars(agent)["_decide"] = timed
    episode.run()
    return spent_ms[_WARM_UP:]


def _away_ms(planner: Planner) -> float:
    stats: Any = getattr(planner, "stats", None)
    if stats is None:
        return 0.0
    counts = stats()
    return float(counts["model_ms"]) + float(counts["setup_ms"])


def _figure(name: str, values_ms: list[float]) -> Figure:
    ordered = sorted(values_ms)
    n = len(ordered)
    half = 0.98 * n**0.5  # 1.96 standard deviations of a binomial of p = 1/2
    low, high = max(int(n / 2 - half), 0), min(int(n / 2 + half) + 1, n - 1)
    return Figure(
        name=name,
        value=round(ordered[n // 2], 4),
        low=round(ordered[low], 4),
        high=round(ordered[high], 4),
        target=_TARGET,
        n=n,
        unit="ms",
        note="median CPU time of the thread",
    )
