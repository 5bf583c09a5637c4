"""How a call is carried out: on a robot in a physics world, or on facts alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np

from embodied.agents.eyes import Eyes
from embodied.agents.views import BeliefView, TruthView
from embodied.graph.facts import Graph
from embodied.robots.base import SimRobot
from embodied.skills.contract import SUCCESS, EntityPose, Outcome, Skill, SkillCall, SkillContext, SkillRun
from embodied.worlds.contract import Edit, StateValue

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from embodied.worlds.contract import PhysicsWorld
    from embodied.worlds.symbolic import SymbolicWorld

__all__ = ["Body", "EntityPose", "PhysicalBody", "SymbolicBody"]


class Body(Protocol):
    """Carries out calls of one agent and keeps its belief."""

    def belief(self) -> Graph:
        """Refresh the agent's belief from its sensors and return it."""
        ...

    def start(self, skill: Skill, call: SkillCall, time_s: float) -> None:
        """Begin a call."""
        ...

    def tick(self, time_s: float) -> Outcome | None:
        """Advance the running call; None while it runs."""
        ...

    def cancel(self, time_s: float) -> None:
        """Stop the running call and make the robot safe."""
        ...

    def rest(self) -> None:
        """Keep still for one period."""
        ...

    def images(self) -> dict[str, NDArray[np.uint8]]:
        """Render the robot's cameras: name to (H, W, 3) rgb; empty where there is nothing to see."""
        ...

    def succeeded(self, skill: Skill, call: SkillCall) -> None:
        """Take the effects of a successful call into the belief."""
        ...


class PhysicalBody:
    """Runs skills on a simulated robot, tick by tick.

    Args:
      world: where the robot is.
      robot: its driver.
      rng: generator of this agent's skills.
      services: shared helpers by name.
      log: records events, ``log(kind, payload)``.
      is_privileged: skills and planner see the truth instead of a belief.
      prior: belief at the start, without the movable things where the task says ``map``.
      eyes: its cameras, made here if not given.
    """

    def __init__(
        self,
        world: PhysicsWorld,
        robot: SimRobot,
        rng: np.random.Generator,
        services: Mapping[str, object],
        log: Callable[[str, Mapping[str, object]], None],
        *,
        is_privileged: bool,
        prior: Graph,
        eyes: Eyes | None = None,
    ) -> None:
        self.world, self.robot = world, robot
        self.truth = TruthView(world, robot.name)
        self.view = self.truth if is_privileged else BeliefView(self.truth, prior, robot.name)
        self._eyes = eyes or Eyes(world, robot)
        self._run: SkillRun | None = None
        self._ctx = SkillContext(
            agent=robot.name,
            robot=robot,
            view=self.view,
            time_s=0.0,
            rng=rng,
            set_state=self._set_state,
            services=services,
            log=log,
        )
        if isinstance(self.view, BeliefView):
            spoken_of = {a for f in prior.facts for a in f.args}
            self.view.perceive([n for n in self.view.info.entities if n in spoken_of])

    def _set_state(self, entity: str, key: str, value: StateValue) -> None:
        self.world.edit([Edit(kind="set_state", entity=entity, key=key, value=value)])
        self.truth.new_moment()

    def belief(self) -> Graph:
        """Look with the robot's cameras and return what is believed now."""
        if isinstance(self.view, BeliefView):
            self.view.perceive([self.robot.name, *self._eyes.visible()])
        return self.view.graph

    def start(self, skill: Skill, call: SkillCall, time_s: float) -> None:
        """Begin a call."""
        self._ctx.time_s = time_s
        self._run = skill.start(self._ctx, call)

    def tick(self, time_s: float) -> Outcome | None:
        """Advance the running call by one control period."""
        self.truth.new_moment()
        self._ctx.time_s = time_s
        assert self._run is not None
        outcome = self._run.tick(self._ctx)
        if outcome is not None:
            self._run = None
        return outcome

    def cancel(self, time_s: float) -> None:
        """Stop the running call and make the robot safe."""
        self.truth.new_moment()
        self._ctx.time_s = time_s
        if self._run is not None:
            self._run.cancel(self._ctx)
            self._run = None
        self.robot.stop()

    def rest(self) -> None:
        """Keep the last command's effect up for one period."""
        self.truth.new_moment()
        self.robot.stop()

    def images(self) -> dict[str, NDArray[np.uint8]]:
        """Render the robot's cameras."""
        return self._eyes.images()

    def succeeded(self, skill: Skill, call: SkillCall) -> None:
        """Take the effects of a call into a belief; the truth needs none."""
        if isinstance(self.view, BeliefView):
            add, remove = skill.effects(self.view.graph, self.robot.name, call)
            self.view.graph = self.view.graph.changed(add, remove)


class SymbolicBody:
    """Carries out calls on facts alone: waits for the estimated cost, then applies the effects."""

    def __init__(self, world: SymbolicWorld, agent: str) -> None:
        self._world, self._agent = world, agent
        self._call: tuple[Skill, SkillCall] | None = None
        self._ends_s = 0.0

    def belief(self) -> Graph:
        """Return the truth: the symbolic tier has no sensors."""
        return self._world.graph()

    def start(self, skill: Skill, call: SkillCall, time_s: float) -> None:
        """Begin a call."""
        self._call = (skill, call)
        self._ends_s = time_s + max(skill.cost_s(self._world.graph(), self._agent, call), self._world.dt_sim_s)

    def tick(self, time_s: float) -> Outcome | None:
        """Return success when the estimated cost has passed."""
        assert self._call is not None
        if time_s < self._ends_s - 1e-9:
            return None
        skill, call = self._call
        add, remove = skill.effects(self._world.graph(), self._agent, call)
        self._world.change_facts(add, remove)
        self._call = None
        return SUCCESS

    def cancel(self, time_s: float) -> None:
        """Drop the running call without effects."""
        del time_s
        self._call = None

    def rest(self) -> None:
        """Nothing to keep still."""

    def images(self) -> dict[str, NDArray[np.uint8]]:
        """There is nothing to see."""
        return {}

    def succeeded(self, skill: Skill, call: SkillCall) -> None:
        """Effects were applied to the facts themselves."""
        del skill, call
