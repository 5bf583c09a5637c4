"""The model planner against a scripted server: every way a model or a server can go wrong, and cassettes."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embodied.errors import PlannerError
from embodied.graph.facts import fact
from embodied.planners.contract import Plan, Step
from embodied.planners.factory import make_planner
from embodied.planners.openai.cassette import CassetteError
from embodied.planners.openai.images import encode_png
from embodied.planners.openai.planner import OpenAiPlanner
from embodied.planners.openai.scripted_server import Reply, ScriptedServer, calls_reply, tools_reply
from embodied.skills.contract import SkillCall, failed
from embodied.tasks.goal import Holds
from tests.planner_support import household, household_skills, task_of, view_of

pytest.importorskip("openai", reason="extra openai is not installed")

SKILLS = household_skills()
GO = SkillCall.of("go_to", target="table_9")
TASK = task_of(Holds(fact("at", "robot_0", "table_9")), instruction="Go to table 9.")
KEY = "sk-secret-0123456789"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def planner(server: ScriptedServer | None, pauses: list[float] | None = None, **options: Any) -> OpenAiPlanner:
    base_url = server.base_url if server else "http://127.0.0.1:9/v1"
    sleep = (pauses if pauses is not None else []).append
    made = OpenAiPlanner("scripted-1", **{"base_url": base_url, "sleep": sleep, "timeout_s": 5.0, **options})
    made.reset("robot_0", 7)
    return made


def ask(made: OpenAiPlanner, **view: Any) -> Plan:
    return made.act(view_of(household(3), SKILLS, task=TASK, **view))


def test_a_good_answer_becomes_a_plan() -> None:
    with ScriptedServer([calls_reply(GO, SkillCall("done"))]) as server:
        made = planner(server)
        plan = ask(made)
    assert plan.calls == (GO, SkillCall("done"))
    stats = made.stats()
    assert (stats["calls"], stats["retries"], stats["malformed"], stats["repairs"]) == (1, 0, {}, {})
    assert stats["tokens_in"] > 100
    assert stats["tokens_out"] > 0
    assert server.keys == [KEY]
    body = server.requests[0]
    assert body["response_format"]["json_schema"]["strict"] is True
    assert body["temperature"] == 0.0


def test_tool_calls_are_read() -> None:
    with ScriptedServer([tools_reply(GO)]) as server:
        made = planner(server, answer="tools")
        assert ask(made).calls == (GO,)
    body = server.requests[0]
    assert {t["function"]["name"] for t in body["tools"]} == set(SKILLS)
    assert body["tool_choice"] == "required"
    assert "response_format" not in body


MALFORMED = [
    ("prose", Reply(content="I would go to the table first.")),
    ("truncated", Reply(content='{"calls": [{"skill": "go_to", "args": {"tar', finish_reason="length")),
    ("unknown_skill", calls_reply(SkillCall.of("teleport", target="table_9"))),
    ("not_a_number", Reply(content='{"calls": [{"skill": "wait", "args": {"duration_s": NaN}}]}')),
    ("not_a_number", Reply(content='{"calls": [{"skill": "wait", "args": {"duration_s": 1e999}}]}')),
    ("not_a_number", Reply(content='{"calls": [{"skill": "wait", "args": {"duration_s": "inf"}}]}')),
    ("empty", Reply(content="")),
    ("empty", Reply(content='{"calls": []}')),
    ("schema", Reply(content='{"calls": "go_to"}')),
    ("schema", Reply(content='{"calls": [{"skill": "wait", "args": {"duration_s": true}}]}')),
    ("schema", Reply(content="[" * 100_000)),
    ("bad_argument", calls_reply(SkillCall.of("go_to", target="the moon"))),
    ("bad_argument", calls_reply(SkillCall.of("go_to", where="table_9"))),
    ("bad_argument", calls_reply(SkillCall("go_to"))),
]


@pytest.mark.parametrize(("kind", "reply"), MALFORMED, ids=[f"{k}_{i}" for i, (k, _) in enumerate(MALFORMED)])
def test_malformed_answers_are_counted_and_asked_again(kind: str, reply: Reply) -> None:
    with ScriptedServer([reply, calls_reply(GO)]) as server:
        made = planner(server)
        assert ask(made).calls == (GO,)
    assert made.stats()["malformed"] == {kind: 1}
    assert made.stats()["calls"] == 2
    last = server.requests[1]["messages"][-1]["content"]
    assert f"cannot be used ({kind})" in last


def test_a_model_that_never_learns_is_a_planner_error() -> None:
    with ScriptedServer([Reply(content="hello")]) as server:
        made = planner(server)
        with pytest.raises(PlannerError, match="not usable 3 times, the last time prose"):
            ask(made)
    assert made.stats()["malformed"] == {"prose": 3}
    assert made.stats()["decisions"] == 1


REPAIRS = [
    ("json_cut_out_of_text", 'Sure! ```json\n{"calls": [{"skill": "go_to", "args": {"target": "table_9"}}]}\n```'),
    ("bare_call", '{"skill": "go_to", "args": {"target": "table_9"}}'),
    ("bare_list", '[{"skill": "go_to", "args": {"target": "table_9"}}]'),
    ("flat_arguments", '{"calls": [{"skill": "go_to", "target": "table_9"}]}'),
    ("positional_arguments", '{"calls": [{"skill": "go_to", "args": ["table_9"]}]}'),
    ("skill_respelled", '{"calls": [{"skill": "Go-To", "args": {"target": "table_9"}}]}'),
    ("name_respelled", '{"calls": [{"skill": "go_to", "args": {"target": "Table 9"}}]}'),
]


@pytest.mark.parametrize(("rule", "content"), REPAIRS, ids=[r for r, _ in REPAIRS])
def test_repairs_are_few_and_counted(rule: str, content: str) -> None:
    with ScriptedServer([Reply(content=content)]) as server:
        made = planner(server)
        assert ask(made).calls == (GO,)
    assert made.stats()["repairs"][rule] == 1
    assert made.stats()["malformed"] == {}


def test_too_many_calls_are_cut() -> None:
    with ScriptedServer([calls_reply(*[GO] * 9)]) as server:
        made = planner(server, max_calls=3)
        assert len(ask(made).calls) == 3
    assert made.stats()["repairs"] == {"cut_to_max_calls": 1}


@pytest.mark.parametrize(
    ("kind", "reply"),
    [
        ("http_429", Reply(status=429, headers={"retry-after": "3"})),
        ("http_500", Reply(status=500)),
        ("http_503", Reply(status=503)),
        ("connection", Reply(drop=True)),
        ("not_the_protocol", Reply(raw='{"answer": 42}')),
        ("not_the_protocol", Reply(raw="<html>welcome</html>")),
    ],
)
def test_transport_faults_are_retried_without_waiting_in_tests(kind: str, reply: Reply) -> None:
    pauses: list[float] = []
    with ScriptedServer([reply, reply, calls_reply(GO)]) as server:
        made = planner(server, pauses)
        assert ask(made).calls == (GO,)
    assert pauses == ([3.0, 3.0] if kind == "http_429" else [0.5, 1.0])
    assert made.stats()["transport"] == {kind: 2}
    assert made.stats()["retries"] == 2
    assert made.stats()["calls"] == 1


def test_a_slow_server_times_out() -> None:
    with ScriptedServer([Reply(delay_s=1.0, content="late"), calls_reply(GO)]) as server:
        made = planner(server, timeout_s=0.2)
        assert ask(made).calls == (GO,)
    assert made.stats()["transport"] == {"timeout": 1}


def test_a_server_that_stays_away_is_a_planner_error() -> None:
    pauses: list[float] = []
    made = planner(None, pauses)
    with pytest.raises(PlannerError, match="failed 4 times, the last time with connection"):
        ask(made)
    assert pauses == [0.5, 1.0, 2.0]


def test_a_refused_request_is_not_retried_and_hides_the_key() -> None:
    with ScriptedServer([Reply(status=401, content=f"Incorrect API key provided: {KEY}")]) as server:
        made = planner(server)
        with pytest.raises(PlannerError, match="HTTP 401") as caught:
            ask(made)
    assert KEY not in str(caught.value)
    assert "OPENAI_API_KEY" in str(caught.value)
    assert caught.value.__cause__ is None
    assert made.stats()["retries"] == 0
    assert KEY not in repr(made) + repr(made.__dict__) + repr(made._client) + json.dumps(made.stats())


def test_no_key_and_no_server_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    made = planner(None, base_url="")
    with pytest.raises(PlannerError, match=r"OPENAI_API_KEY.*base_url"):
        ask(made)


def test_budgets_end_the_asking() -> None:
    with ScriptedServer([calls_reply(GO)]) as server:
        made = planner(server, max_requests=2)
        ask(made)
        ask(made)
        with pytest.raises(PlannerError, match="2 requests"):
            ask(made)
        made = planner(server, max_total_tokens=10)
        ask(made)
        with pytest.raises(PlannerError, match="10 tokens"):
            ask(made)
        ticks = iter(range(0, 10_000, 10))
        made = planner(server, max_model_s=5.0, clock=lambda: float(next(ticks)))
        ask(made)
        with pytest.raises(PlannerError, match="time of 5 s"):
            ask(made)


def test_images_are_real_and_encoded_once() -> None:
    frame = np.arange(12 * 8 * 3, dtype=np.uint8).reshape(8, 12, 3)
    with ScriptedServer([calls_reply(GO)]) as server:
        made = planner(server)
        ask(made, images={"head": frame})
        ask(made, images={"head": frame})
        ask(made, images={"head": frame + 1})
        blind = planner(server, images=False)
        ask(blind, images={"head": frame})
    content = server.requests[0]["messages"][-1]["content"]
    url = next(p["image_url"]["url"] for p in content if p["type"] == "image_url")
    image = pytest.importorskip("PIL.Image", reason="Pillow decodes the PNG here").open(
        io.BytesIO(base64.b64decode(url.partition(",")[2]))
    )
    np.testing.assert_array_equal(np.asarray(image), frame)
    assert made.stats()["images"] == 2
    assert isinstance(server.requests[3]["messages"][-1]["content"], str)


@pytest.mark.parametrize("bad", [np.zeros((4, 4), np.uint8), np.zeros((4, 4, 3)), np.zeros((0, 4, 3), np.uint8)])
def test_bad_frames_are_refused(bad: np.ndarray) -> None:
    with pytest.raises(PlannerError, match="uint8"):
        encode_png(bad)


def test_the_prefix_is_constant_and_the_moment_comes_last() -> None:
    failure = Step(time_s=3.0, call=GO, outcome=failed("blocked", "a chair is in the way"))
    with ScriptedServer([calls_reply(GO)]) as server:
        made = planner(server)
        ask(made)
        ask(made, memory=(failure,), time_s=3.0)
    first, second = (r["messages"] for r in server.requests)
    assert first[0] == second[0]
    assert "go_to(target: entity)" in first[0]["content"]
    a, b = first[1]["content"], second[1]["content"]
    same = next(i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y)
    assert "Believed now:" in a[:same]
    assert "blocked: a chair is in the way" in b[same:]


def run(made: OpenAiPlanner) -> list[object]:
    """Four decisions: good, malformed then good, server away, good."""
    out: list[object] = []
    for time_s in (0.0, 1.0, 2.0, 3.0):
        try:
            out.append(ask(made, time_s=time_s, decisions=50 - int(time_s)))
        except PlannerError as error:
            out.append(str(error))
    return out


SCRIPT = [
    calls_reply(GO),
    Reply(content="hm"),
    calls_reply(GO),
    *[Reply(status=500)] * 4,
    calls_reply(SkillCall("done")),
]


def test_a_cassette_replays_to_the_same_answers(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with ScriptedServer(SCRIPT) as server:
        made = planner(server, cassette=str(path), mode="record")
        recorded = run(made)
        host = server.base_url.split("/")[2]
    assert any(isinstance(x, str) and "http_500" in x for x in recorded)
    again = planner(None, cassette=str(path), mode="replay")
    assert run(again) == recorded
    assert again.stats()["replayed"] == 5
    assert again.stats()["model_ms"] == 0.0
    for name in ("decisions", "calls", "malformed", "repairs", "tokens_in", "tokens_out"):
        assert again.stats()[name] == made.stats()[name], name
    text = path.read_text()
    assert KEY not in text
    assert host not in text
    assert "127.0.0.1" not in text


def test_images_are_in_cassettes_by_hash_only(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    frame = np.full((16, 16, 3), 77, np.uint8)
    with ScriptedServer([calls_reply(GO)]) as server:
        ask(planner(server, cassette=path, mode="record"), images={"head": frame})
    assert "base64" not in path.read_text()
    assert "sha256:" in path.read_text()
    assert ask(planner(None, cassette=path, mode="replay"), images={"head": frame}).calls == (GO,)
    with pytest.raises(CassetteError, match=r"image_url\.url"):
        ask(planner(None, cassette=path, mode="replay"), images={"head": frame + 1})


def test_a_mismatch_names_the_call_and_the_place(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with ScriptedServer([calls_reply(GO)]) as server:
        made = planner(server, cassette=path, mode="record")
        ask(made)
        ask(made)
    other = planner(None, cassette=path, mode="replay")
    ask(other)
    with pytest.raises(CassetteError, match=r"call 1 does not match.*messages\[1\]\.content, character") as caught:
        ask(other, decisions=3)
    assert "recorded" in str(caught.value)
    done = planner(None, cassette=path, mode="replay")
    ask(done)
    ask(done)
    with pytest.raises(CassetteError, match="call 2 was not recorded: it holds 2 calls"):
        ask(done)


def test_auto_replays_what_is_there_and_records_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with ScriptedServer([calls_reply(GO)]) as server:
        ask(planner(server, cassette=path))
        ask(planner(server, cassette=path))
        other = planner(server, cassette=path)
        other.reset("robot_0", 8)
        ask(other)
    assert len(server.requests) == 2
    assert len(path.read_text().splitlines()) == 2
    with pytest.raises(CassetteError, match="already holds run"):
        planner(None, cassette=path, mode="record")


@pytest.mark.parametrize("text", ["not json", '{"format": "other-9", "run": "a", "n": 0}', '{"run": 1}'])
def test_broken_cassettes_name_the_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text("\n" + text + "\n")
    with pytest.raises(CassetteError, match=r"bad\.jsonl:2"):
        planner(None, cassette=path, mode="replay")


def test_missing_cassette_and_bad_options() -> None:
    with pytest.raises(CassetteError, match="record"):
        make_planner("openai:m?cassette=/nowhere/x.jsonl&mode=replay")
    with pytest.raises(PlannerError, match="record, replay or auto"):
        make_planner("openai:m?mode=play")
    with pytest.raises(PlannerError, match="json or tools"):
        make_planner("openai:m?answer=xml")
    with pytest.raises(PlannerError, match="cannot be built"):
        make_planner("openai:m?api_key=sk-1")
    with pytest.raises(PlannerError, match="cannot be built"):
        make_planner("openai")


def test_spec_options_arrive() -> None:
    made = make_planner("openai:org/model-x?images=0&max_calls=2&temperature=none")
    assert isinstance(made, OpenAiPlanner)
    assert (made.model, made.images, made.max_calls) == ("org/model-x", False, 2)
    assert made.privileged is False
