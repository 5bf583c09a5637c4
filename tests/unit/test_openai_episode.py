"""A model planner in the agent loop: a recorded episode replays to the same log, faults stay inside the episode."""

from __future__ import annotations

from pathlib import Path

import pytest

from embodied.agents.episode import EpisodeRequest, EpisodeResult, run_episode
from embodied.planners.openai.scripted_server import Reply, ScriptedServer, calls_reply
from embodied.skills.contract import SkillCall

pytest.importorskip("openai", reason="extra openai is not installed")

SCRIPT = [
    calls_reply(SkillCall.of("take_off", height_m=1.2)),
    Reply(content="Let me think about it."),
    calls_reply(SkillCall.of("wait", duration_s=1.0), SkillCall.of("wait", duration_s=2.0)),
    calls_reply(SkillCall.of("land", pad="no_such_pad")),
    calls_reply(SkillCall.of("wait", duration_s=1.0)),
    calls_reply(SkillCall("done")),
]


def episode(planner: str, log: Path) -> EpisodeResult:
    return run_episode(
        EpisodeRequest(task_id="drones/inspect", seed=3, planner=planner, world="symbolic", log_path=log)
    )


@pytest.fixture(autouse=True)
def _env(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-the-test")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")


def events(log: Path) -> list[object]:
    from embodied.record.log import read_log

    return [(e.time_s, e.kind, dict(e.payload)) for e in read_log(log).events]


def test_a_recorded_episode_replays_to_the_same_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cassette = tmp_path / "run.jsonl"
    spec = f"openai:scripted?images=0&cassette={cassette}"
    with ScriptedServer(SCRIPT) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        live = episode(spec, tmp_path / "live.mcap")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    replayed = episode(spec, tmp_path / "replayed.mcap")
    assert (tmp_path / "live.mcap").read_bytes() == (tmp_path / "replayed.mcap").read_bytes()
    (stats,) = live.planner_stats.values()
    assert stats["malformed"] == {"bad_argument": 1, "prose": 1}
    assert stats["calls"] == 6
    (again,) = replayed.planner_stats.values()
    assert again["replayed"] == 6
    assert live.decisions == replayed.decisions
    assert live.outcome == replayed.outcome != "planner_failure"
    for file in (cassette, tmp_path / "live.mcap"):
        assert b"sk-secret-of-the-test" not in file.read_bytes()


def test_a_model_that_only_talks_is_an_outcome_of_its_own(tmp_path: Path) -> None:
    with ScriptedServer([Reply(content="I am a poet.")]) as server:
        result = episode(f"openai:poet?images=0&reasks=0&base_url={server.base_url}", tmp_path / "log.mcap")
    assert result.outcome == "planner_failure"
    assert result.success is False
    assert result.planner_stats["drone_0"]["malformed"] == {"prose": 5}
    failures = [e for e in events(tmp_path / "log.mcap") if e[1] == "planner_failure"]  # type: ignore[index]
    assert len(failures) == 5


@pytest.mark.parametrize("planner", ["oracle", "scripted"])
def test_searching_planners_inspect_the_yard(tmp_path: Path, planner: str) -> None:
    result = episode(planner, tmp_path / "log.mcap")
    assert result.success, result.reason
    assert result.privileged == (planner == "oracle")


@pytest.mark.parametrize("planner", ["random", "noop"])
def test_the_floor_does_not(tmp_path: Path, planner: str) -> None:
    assert not episode(planner, tmp_path / "log.mcap").success
