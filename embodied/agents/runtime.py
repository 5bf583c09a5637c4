"""One agent at work: ask the planner, check the answer, run the skill, remember, ask again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from embodied.agents.bodies import Body
from embodied.agents.messages import MessageBus
from embodied.agents.validator import check_call
from embodied.errors import PlannerError, SkillError
from embodied.graph.facts import Graph
from embodied.planners.contract import Budget, Planner, PlannerView, Step
from embodied.skills.contract import Outcome, Skill, SkillCall, Status, failed
from embodied.tasks.contract import Task

MAX_CONSECUTIVE_PLANNER_FAILURES = 5
_FINAL_SKILLS = ("done", "abstain")


class AgentRuntime:
    """Drives one agent through an episode.

    Args:
      agent: its name.
      body: carries out its calls.
      planner: chooses them.
      skills: what its robot can do, by name.
      task: for instruction and budgets.
      bus: messages between agents.
      log: records events, ``log(time_s, kind, payload)``.
      truth: the privileged channel, handed to privileged planners only.
    """

    def __init__(
        self,
        agent: str,
        body: Body,
        planner: Planner,
        skills: dict[str, Skill],
        task: Task,
        bus: MessageBus,
        log: Callable[[float, str, Mapping[str, Any]], None],
        truth: Callable[[], Graph],
    ) -> None:
        self.agent, self.body, self.planner, self.skills, self.task = agent, body, planner, skills, task
        self._bus, self._log, self._truth = bus, log, truth
        self.memory: list[Step] = []
        self.decisions = 0
        self.skill_steps = 0
        self.finished = ""
        self._queue: deque[SkillCall] = deque()
        self._running: tuple[Skill, SkillCall, float] | None = None
        self._planner_failures = 0

    @property
    def is_finished(self) -> bool:
        """Whether the agent said ``done``, abstained, used up its decisions or lost its planner."""
        return bool(self.finished)

    def tick(self, time_s: float) -> None:
        """Advance by one control period."""
        if self.finished:
            self.body.rest()
            return
        if self._running is None:
            if not self._queue and not self._decide(time_s):
                self.body.rest()
                return
            self._begin(self._queue.popleft(), time_s)
        if self._running is None:
            self.body.rest()
            return
        self._advance(time_s)

    def stop(self, time_s: float) -> None:
        """End the episode for this agent: cancel what runs and make the robot safe."""
        self.body.cancel(time_s)
        if self._running is not None:
            _, call, _ = self._running
            self._running = None
            self._end(call, Outcome(status=Status.PREEMPTED, code="episode_over"), time_s)

    def _decide(self, time_s: float) -> bool:
        """Ask the planner; return whether a call is waiting now."""
        if self.decisions >= self.task.budgets.decisions:
            self.finished = "decisions_used_up"
            return False
        self.decisions += 1
        belief = self.body.belief()
        view = PlannerView(
            agent=self.agent,
            instruction=self.task.instruction,
            time_s=time_s,
            graph=belief,
            skills=self.skills,
            memory=tuple(self.memory),
            inbox=self._bus.collect(self.agent),
            budget=Budget(
                sim_time_s=self.task.budgets.sim_time_s - time_s,
                decisions=self.task.budgets.decisions - self.decisions,
            ),
            images=self.body.images,
            _truth=(lambda: (self._truth(), self.task)) if self.planner.privileged else None,
        )
        try:
            plan = self.planner.act(view)
        except PlannerError as error:
            self._planner_failures += 1
            self._log(time_s, "planner_failure", {"agent": self.agent, "message": str(error)})
            if self._planner_failures >= MAX_CONSECUTIVE_PLANNER_FAILURES:
                self.finished = "planner_failure"
            return False
        self._planner_failures = 0
        payload = {"agent": self.agent, "calls": [_call_json(c) for c in plan.calls]}
        extras = {"message": plan.message, "confidence": plan.confidence, "expected": plan.expected}
        self._log(time_s, "decision", payload | {k: v for k, v in extras.items() if v not in ("", None)})
        if plan.message:
            self._bus.send(self.agent, "all", plan.message, time_s)
        self._queue.extend(plan.calls)
        return bool(self._queue)

    def _begin(self, call: SkillCall, time_s: float) -> None:
        graph = self.body.belief() if self._queue else self._current_graph()
        problem = check_call(call, self.skills, graph, self.agent)
        if problem is None:
            try:
                self.body.start(self.skills[call.skill], call, time_s)
            except SkillError as error:
                problem = failed("bad_argument", str(error))
        if problem is not None:
            self._log(time_s, "rejected", {"agent": self.agent, **_call_json(call), **_outcome_json(problem)})
            self.memory.append(Step(time_s=time_s, call=call, outcome=problem))
            self._queue.clear()
            return
        self.skill_steps += 1
        self._log(time_s, "skill_start", {"agent": self.agent, **_call_json(call)})
        self._running = (self.skills[call.skill], call, time_s)

    def _current_graph(self) -> Graph:
        return self.body.belief()

    def _advance(self, time_s: float) -> None:
        assert self._running is not None
        skill, call, began_s = self._running
        outcome = self.body.tick(time_s)
        if outcome is None and time_s - began_s > skill.timeout_s:
            self.body.cancel(time_s)
            outcome = failed("timeout", f"{call} was still running after its time-out of {skill.timeout_s:g} s.")
        if outcome is None:
            return
        self._running = None
        if outcome.status is Status.SUCCEEDED:
            self.body.succeeded(skill, call)
            if call.skill in _FINAL_SKILLS:
                self.finished = call.skill
        else:
            self._queue.clear()
        self._end(call, outcome, time_s)

    def _end(self, call: SkillCall, outcome: Outcome, time_s: float) -> None:
        self._log(time_s, "skill_end", {"agent": self.agent, **_call_json(call), **_outcome_json(outcome)})
        self.memory.append(Step(time_s=time_s, call=call, outcome=outcome))


def _call_json(call: SkillCall) -> dict[str, Any]:
    return {"skill": call.skill, "args": dict(call.args)}


def _outcome_json(outcome: Outcome) -> dict[str, Any]:
    found: dict[str, Any] = {"status": str(outcome.status)}
    if outcome.code:
        found["code"] = outcome.code
    if outcome.message:
        found["message"] = outcome.message
    if outcome.facts:
        found["facts"] = dict(outcome.facts)
    return found
