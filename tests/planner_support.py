"""A small household of skills and problems for the planners' tests: the skill contract without robots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from embodied.graph.facts import Fact, Graph, Node, fact
from embodied.planners.contract import Budget, Planner, PlannerView, Step
from embodied.skills.contract import SUCCESS, Parameter, Skill, SkillCall, SkillContext, SkillRun, Unmet
from embodied.tasks.contract import AgentSpec, Task
from embodied.tasks.goal import Goal
from embodied.worlds.contract import Start
from embodied_scenes.spec import SceneSpec


class SymbolicSkill(Skill):
    robot_kinds = frozenset({"any"})
    failure_codes = ("unreachable",)
    summary = "a skill of the tests"

    def groundings(self, graph: Graph, agent: str) -> Iterable[SkillCall]:
        return ()

    def unmet(self, graph: Graph, agent: str, call: SkillCall) -> tuple[Unmet, ...]:
        return ()

    def effects(self, graph: Graph, agent: str, call: SkillCall) -> tuple[frozenset[Fact], frozenset[Fact]]:
        return frozenset(), frozenset()

    def start(self, ctx: SkillContext, call: SkillCall) -> SkillRun:
        raise NotImplementedError("the planners' tests run on the symbolic model only")


def _need(graph: Graph, *facts: Fact) -> Iterator[Unmet]:
    for f in facts:
        if f not in graph.facts:
            yield Unmet(message=f"{f} does not hold", missing=f)


def _place_of(graph: Graph, thing: str) -> str:
    support = graph.support_of(thing)
    return support.args[1] if support else thing


class GoTo(SymbolicSkill):
    name = "go_to"
    summary = "drive to something"
    parameters = (Parameter(name="target", kind="entity", summary="where to"),)

    def groundings(self, graph: Graph, agent: str) -> Iterable[SkillCall]:
        for node in graph.nodes.values():
            if node.kind in ("fixture", "place"):
                yield SkillCall.of("go_to", target=node.name)

    def effects(self, graph: Graph, agent: str, call: SkillCall) -> tuple[frozenset[Fact], frozenset[Fact]]:
        return frozenset({fact("at", agent, str(call.arg("target")))}), frozenset(graph.find("at", agent))


class Pick(SymbolicSkill):
    name = "pick"
    summary = "take a thing"
    parameters = (Parameter(name="thing", kind="object", summary="what"),)

    def groundings(self, graph: Graph, agent: str) -> Iterable[SkillCall]:
        for node in graph.nodes.values():
            if node.kind == "object" and graph.support_of(node.name):
                yield SkillCall.of("pick", thing=node.name)

    def unmet(self, graph: Graph, agent: str, call: SkillCall) -> tuple[Unmet, ...]:
        thing = str(call.arg("thing"))
        support = graph.support_of(thing)
        if support is None:
            return (Unmet(message=f"nobody knows where {thing} is"),)
        found = list(_need(graph, fact("at", agent, support.args[1])))
        if support.predicate == "inside" and "openable" in graph.nodes[support.args[1]].properties:
            found += _need(graph, fact("open", support.args[1]))
        if graph.held_by(agent):
            found.append(Unmet(message="the hand is full"))
        return tuple(found)

    def effects(self, graph: Graph, agent: str, call: SkillCall) -> tuple[frozenset[Fact], frozenset[Fact]]:
        thing = str(call.arg("thing"))
        support = graph.support_of(thing)
        return frozenset({fact("holding", agent, thing)}), frozenset({support} if support else ())


class Place(SymbolicSkill):
    """Grounded only for what is held, so that planners must look ahead to find it."""

    name = "place"
    summary = "put the held thing down"
    parameters = (
        Parameter(name="thing", kind="object", summary="what"),
        Parameter(name="relation", kind="choice", summary="how", choices=("in", "on")),
        Parameter(name="target", kind="fixture", summary="where"),
    )

    def groundings(self, graph: Graph, agent: str) -> Iterable[SkillCall]:
        held = graph.held_by(agent)
        if held is None:
            return
        for node in graph.nodes.values():
            for relation, word in (("in", "container"), ("on", "surface")):
                if word in node.properties:
                    yield SkillCall.of("place", thing=held, relation=relation, target=node.name)

    def unmet(self, graph: Graph, agent: str, call: SkillCall) -> tuple[Unmet, ...]:
        target = str(call.arg("target"))
        found = list(_need(graph, fact("holding", agent, str(call.arg("thing"))), fact("at", agent, target)))
        if call.arg("relation") == "in" and "openable" in graph.nodes[target].properties:
            found += _need(graph, fact("open", target))
        return tuple(found)

    def effects(self, graph: Graph, agent: str, call: SkillCall) -> tuple[frozenset[Fact], frozenset[Fact]]:
        thing = str(call.arg("thing"))
        word = "inside" if call.arg("relation") == "in" else "ontop"
        return frozenset({fact(word, thing, str(call.arg("target")))}), frozenset({fact("holding", agent, thing)})


class Open(SymbolicSkill):
    name = "open"
    summary = "open a door or drawer"
    parameters = (Parameter(name="target", kind="fixture", summary="what"),)
    opens = True

    def groundings(self, graph: Graph, agent: str) -> Iterable[SkillCall]:
        for node in graph.nodes.values():
            if "openable" in node.properties:
                yield SkillCall.of(self.name, target=node.name)

    def unmet(self, graph: Graph, agent: str, call: SkillCall) -> tuple[Unmet, ...]:
        target = str(call.arg("target"))
        found = list(_need(graph, fact("at", agent, target)))
        if graph.held_by(agent):
            found.append(Unmet(message="the hand is full"))
        if graph.holds("open", target) == self.opens:
            found.append(Unmet(message="it is so already"))
        return tuple(found)

    def effects(self, graph: Graph, agent: str, call: SkillCall) -> tuple[frozenset[Fact], frozenset[Fact]]:
        changed = frozenset({fact("open", str(call.arg("target")))})
        return (changed, frozenset()) if self.opens else (frozenset(), changed)


class Close(Open):
    name = "close"
    summary = "close a door or drawer"
    opens = False


class Done(SymbolicSkill):
    name = "done"
    summary = "say that the goal holds"

    def groundings(self, graph: Graph, agent: str) -> Iterable[SkillCall]:
        yield SkillCall(self.name)


class Abstain(Done):
    name = "abstain"
    summary = "say that it cannot be done"
    parameters = (Parameter(name="reason", kind="text", summary="why", required=False),)


class Wait(SymbolicSkill):
    name = "wait"
    summary = "do nothing for a while"
    parameters = (Parameter(name="duration_s", kind="number", summary="how long"),)

    def groundings(self, graph: Graph, agent: str) -> Iterable[SkillCall]:
        yield SkillCall.of("wait", duration_s=5.0)


def household_skills() -> dict[str, Skill]:
    return {s.name: s for s in (GoTo(), Pick(), Place(), Open(), Close(), Done(), Abstain(), Wait())}


def household(things: int = 12, *, agents: tuple[str, ...] = ("robot_0",), seed: int = 0) -> Graph:
    """A house of 20 fixtures, 8 of them with doors, and ``things`` objects on or in them."""
    rng = np.random.default_rng(seed)
    nodes: dict[str, Node] = {}
    facts: list[Fact] = []
    fixtures = []
    for i in range(20):
        door = i < 8
        name = f"cabinet_{i}" if door else f"table_{i}"
        properties = frozenset({"container", "openable"} if door else {"surface"})
        nodes[name] = Node(name=name, kind="fixture", category="cabinet" if door else "table", properties=properties)
        fixtures.append(name)
    for i in range(things):
        name = f"thing_{i}"
        nodes[name] = Node(name=name, kind="object", category="thing", properties=frozenset({"graspable"}))
        where = fixtures[int(rng.integers(len(fixtures)))]
        facts.append(fact("inside" if where.startswith("cabinet") else "ontop", name, where))
    for agent in agents:
        nodes[agent] = Node(name=agent, kind="agent", category="robot")
    return Graph(nodes, frozenset(facts))


def task_of(
    goal: Goal, *, agents: tuple[str, ...] = ("robot_0",), instruction: str = "tidy up", **more: object
) -> Task:
    specs = tuple(AgentSpec(name=a, robot="test/robot@1", pos_m=(0.0, 0.0, 0.0)) for a in agents)
    return Task(
        id="test/task@1",
        seed=0,
        scene=SceneSpec.model_construct(id="test"),
        agents=specs,
        start=Start(),
        instruction=instruction,
        goal=goal,
        **more,  # pyright: ignore[reportArgumentType]
    )


def view_of(
    graph: Graph,
    skills: dict[str, Skill],
    *,
    task: Task | None = None,
    agent: str = "robot_0",
    memory: tuple[Step, ...] = (),
    truth: Graph | None = None,
    time_s: float = 0.0,
    images: dict[str, np.ndarray] | None = None,
    decisions: int = 50,
    sim_time_s: float = 300.0,
) -> PlannerView:
    return PlannerView(
        agent=agent,
        instruction=task.instruction if task else "",
        time_s=time_s,
        graph=graph,
        skills=skills,
        memory=memory,
        inbox=(),
        budget=Budget(sim_time_s=sim_time_s, decisions=decisions),
        images=lambda: images or {},
        _truth=(lambda: (truth, task)) if truth is not None and task is not None else None,
    )


def run_symbolically(
    planner: Planner, graph: Graph, skills: dict[str, Skill], task: Task, limit: int = 60
) -> tuple[Graph, list[SkillCall]]:
    """Let a planner act until it says done or abstains; every call must be allowed and succeeds."""
    memory: list[Step] = []
    ran: list[SkillCall] = []
    for _ in range(limit):
        truth = graph if planner.privileged else None
        plan = planner.act(view_of(graph, skills, task=task, truth=truth, memory=tuple(memory)))
        for call in plan.calls:
            assert not skills[call.skill].unmet(graph, "robot_0", call), call
            graph = graph.changed(*skills[call.skill].effects(graph, "robot_0", call))
            memory.append(Step(time_s=0.0, call=call, outcome=SUCCESS))
            ran.append(call)
            if call.skill in ("done", "abstain"):
                return graph, ran
    return graph, ran
