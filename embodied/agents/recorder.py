"""Writes an episode down while it runs: facts when they change, states at the log's rate, events as they come."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from embodied.graph.facts import Fact
from embodied.record.contract import Event, FactChange, LogSink
from embodied.robots.base import SimRobot
from embodied.tasks import goal as goals
from embodied.tasks.contract import Task
from embodied.worlds.contract import PhysicsWorld, World

if TYPE_CHECKING:
    from embodied.agents.episode import EpisodeRequest


class Recorder:
    """Keeps changes and events for the evaluator and passes everything to the log on disk, if there is one."""

    def __init__(self, task: Task, request: EpisodeRequest, is_privileged: bool, version: str) -> None:
        self.changes: list[FactChange] = []
        self.events: list[Event] = []
        self._facts: frozenset[Fact] = frozenset()
        self._period_s = 1.0 / task.log_hz
        self._due_s = 0.0
        self._sink: LogSink | None = None
        if request.log_path is not None:
            from embodied.record.log import McapLogWriter

            self._sink = McapLogWriter(request.log_path, meta=_meta(task, request, is_privileged, version))

    def begin(self, world: World, robots: Mapping[str, SimRobot]) -> None:
        """Record the start."""
        self._sample(world, robots)
        self._due_s = self._period_s

    def observe(self, world: World, robots: Mapping[str, SimRobot]) -> None:
        """Record facts and states if a sample is due."""
        if world.time_s() >= self._due_s - 1e-9:
            self._sample(world, robots)
            self._due_s += self._period_s

    def end(self, world: World, robots: Mapping[str, SimRobot], outcome: str) -> None:
        """Record the end."""
        self._sample(world, robots)
        self.event(world.time_s(), "end", {"outcome": outcome})

    def event(self, time_s: float, kind: str, payload: Mapping[str, Any]) -> None:
        """Record an event."""
        self.events.append(Event(time_s=time_s, kind=kind, payload=dict(payload)))
        if self._sink is not None:
            self._sink.event(time_s, kind, payload)

    def close(self) -> None:
        """Finish the log on disk."""
        if self._sink is not None:
            self._sink.close()

    def _sample(self, world: World, robots: Mapping[str, SimRobot]) -> None:
        time_s = world.time_s()
        facts = world.graph().facts
        added, removed = tuple(sorted(facts - self._facts)), tuple(sorted(self._facts - facts))
        if added or removed or not self.changes:
            self.changes.append(FactChange(time_s=time_s, added=added, removed=removed))
            if self._sink is not None:
                self._sink.facts(time_s, added, removed)
        self._facts = facts
        if self._sink is not None:
            qpos = cast("PhysicsWorld", world).qpos[0].copy() if robots else np.zeros(0)
            self._sink.state(time_s, qpos, {name: robot.last_action for name, robot in robots.items()})


def _meta(task: Task, request: EpisodeRequest, is_privileged: bool, version: str) -> dict[str, Any]:
    return {
        "format": "embodied-log/1",
        "task_id": task.id,
        "seed": request.seed,
        "options": dict(request.options),
        "planner": request.planner,
        "privileged": is_privileged,
        "world": request.world,
        "scene": task.scene.id,
        "agents": [{"name": a.name, "robot": a.robot} for a in task.agents],
        "instruction": task.instruction,
        "goal": goals.to_json(task.goal),
        "versions": {"embodied-stack": version, "mujoco": metadata.version("mujoco"), "numpy": np.__version__},
    }
