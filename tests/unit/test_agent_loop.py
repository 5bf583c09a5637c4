"""The agent loop under planners that answer badly: outcomes are counted, robots stay safe, nothing hangs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from embodied.agents.episode import Episode, EpisodeRequest, run_episode
from embodied.agents.messages import MessageBus
from embodied.agents.recorder import Recorder
from embodied.catalog import PLANNERS, TASKS
from embodied.errors import PlannerError, PrivilegedReadError, TaskError
from embodied.graph.facts import fact
from embodied.planners.contract import Plan
from embodied.record.contract import Event, FactChange
from embodied.skills.contract import SkillCall
from embodied.tasks.contract import Budgets
from embodied.tasks.evaluator import evaluate
from embodied.tasks.goal import Holds

TASK = "drones/inspect"


class Fixed:
    """Answers the same plan for ever, or raises."""

    def __init__(self, answer, *, privileged: bool = False) -> None:
        self.answer, self.privileged, self.asked = answer, privileged, 0

    def reset(self, agent: str, seed: int) -> None:
        self.asked = 0

    def act(self, view) -> Plan:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer(view) if callable(self.answer) else self.answer


def play(planner, world: str = "symbolic", decisions: int = 6):
    task = replace(TASKS.get(TASK).make(0), budgets=Budgets(sim_time_s=60.0, decisions=decisions))
    request = EpisodeRequest(task_id=task.id, seed=0, planner="test", world=world)
    recorder = Recorder(task, request, planner.privileged, "test")
    episode = Episode(task, {a.name: planner for a in task.agents}, world, 0, recorder)
    outcome = episode.run()
    return episode, outcome, recorder


@pytest.mark.parametrize("world", ["symbolic", "mujoco"])
@pytest.mark.parametrize(
    ("plan", "code"),
    [
        (Plan(calls=(SkillCall.of("fly_too", target="x"),)), "unknown_skill"),
        (Plan(calls=(SkillCall.of("fly_to", target="nowhere"),)), "unknown_name"),
        (Plan(calls=(SkillCall.of("take_off", height_m=float("nan")),)), "bad_argument"),
        (Plan(calls=(SkillCall.of("fly_to"),)), "bad_argument"),
        (Plan(calls=(SkillCall.of("fly_to", target=3.0),)), "bad_argument"),
        (Plan(calls=(SkillCall.of("fly_to", target="pad_home"), SkillCall.of("done"))), "precondition"),
    ],
)
def test_bad_calls_are_rejected_typed_and_cost_decisions(plan, code, world):
    episode, outcome, recorder = play(Fixed(plan), world)
    rejected = [e for e in recorder.events if e.kind == "rejected"]
    assert {e.payload["code"] for e in rejected} == {code}
    assert len(rejected) == 6
    assert outcome == "finished"
    assert episode.agents[0].finished == "decisions_used_up"
    assert episode.agents[0].memory[0].outcome.code == code


def test_empty_answers_use_up_decisions():
    episode, _, recorder = play(Fixed(Plan(calls=())))
    assert episode.agents[0].finished == "decisions_used_up"
    assert sum(e.kind == "decision" for e in recorder.events) == 6


def test_a_planner_that_always_fails_is_an_outcome_of_its_own():
    episode, outcome, recorder = play(Fixed(PlannerError("no answer within 1 s")), "mujoco", decisions=50)
    assert outcome == "planner_failure"
    assert sum(e.kind == "planner_failure" for e in recorder.events) == 5
    robot = next(iter(episode.robots.values()))
    assert np.all(np.isfinite(robot.last_action))


def test_truth_is_closed_to_planners_that_did_not_declare_it():
    with pytest.raises(PrivilegedReadError, match="privileged = True"):
        play(Fixed(lambda view: view.truth() and Plan(calls=())))
    seen = []
    play(Fixed(lambda view: seen.append(view.truth()[1].id) or Plan(calls=()), privileged=True))
    assert set(seen) == {TASKS.get(TASK).make(0).id}


def test_a_skill_that_outlives_its_time_out_is_failed_and_the_robot_stopped(monkeypatch):
    from embodied.catalog import SKILLS

    skill = SKILLS.get("take_off")
    monkeypatch.setattr(type(skill), "timeout_s", 0.2)
    plan = Plan(calls=(SkillCall("take_off", next(iter(_grounding(skill))).args),))
    _, _, recorder = play(Fixed(plan), "mujoco", decisions=2)
    assert any(e.kind == "skill_end" and e.payload.get("code") == "timeout" for e in recorder.events)


def _grounding(skill):
    task = TASKS.get(TASK).make(0)
    episode = Episode(task, {a.name: Fixed(Plan(calls=())) for a in task.agents}, "symbolic", 0, _recorder(task))
    return skill.groundings(episode.world.graph(), task.agents[0].name)


def _recorder(task):
    return Recorder(task, EpisodeRequest(task_id=task.id, seed=0), False, "test")


def test_infeasible_tasks_are_solved_by_abstaining_only():
    task = replace(TASKS.get(TASK).make(0), feasible=False)
    change = FactChange(time_s=0.0, added=(), removed=())
    end = Event(time_s=1.0, kind="end", payload={"outcome": "finished"})
    abstained = Event(time_s=0.5, kind="skill_end", payload={"skill": "abstain", "status": "succeeded"})
    assert evaluate(task, [change], [abstained, end]).success
    assert not evaluate(task, [change], [end]).success
    assert not evaluate(replace(task, feasible=True), [change], [abstained, end]).success


def test_a_goal_that_names_nothing_of_the_scene_is_refused():
    task = replace(TASKS.get(TASK).make(0), goal=Holds(fact("at", "drone_0", "pad_homme")))
    with pytest.raises(TaskError, match=r"at\(drone_0, pad_homme\) can never hold.*Did you mean 'pad_home'"):
        Episode(task, {a.name: Fixed(Plan(calls=())) for a in task.agents}, "symbolic", 0, _recorder(task))


@pytest.mark.parametrize("world", ["symbolic", "mujoco"])
def test_a_goal_out_of_reach_is_abstained_from(world):
    task = replace(TASKS.get(TASK).make(0), goal=Holds(fact("ontop", "tower", "pad_home")))
    recorder = _recorder(task)
    planner = PLANNERS.get("oracle")()
    episode = Episode(task, {a.name: planner for a in task.agents}, world, 0, recorder)
    episode.run()
    assert episode.agents[0].finished == "abstain"
    score = evaluate(task, recorder.changes, recorder.events)
    assert not score.success
    assert "ontop(tower, pad_home)" in score.reason


def test_messages_reach_the_others_once():
    bus = MessageBus(("a", "b", "c"))
    assert bus.send("a", "all", "hello", 1.0) == 2
    assert bus.send("a", "b", "psst", 2.0) == 1
    assert bus.send("a", "nobody", "lost", 3.0) == 0
    assert [m.text for m in bus.collect("b")] == ["hello", "psst"]
    assert bus.collect("b") == ()
    assert bus.collect("a") == ()
    assert len(bus.sent) == 3


@pytest.mark.parametrize("world", ["symbolic", "mujoco"])
def test_equal_requests_write_equal_logs(tmp_path, world):
    paths = [tmp_path / "a.mcap", tmp_path / "b.mcap"]
    for path in paths:
        result = run_episode(EpisodeRequest(task_id=TASK, seed=1, planner="oracle", world=world, log_path=path))
        assert result.success
    assert paths[0].read_bytes() == paths[1].read_bytes()
