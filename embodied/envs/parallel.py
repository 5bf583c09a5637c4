"""PettingZoo face: all robots of a task act at the same time."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from embodied.envs.task_core import TaskCore

Vectors = dict[str, NDArray[np.float32]]


class TaskParallelEnv(ParallelEnv[str, NDArray[np.float32], NDArray[np.float32]]):
    """The robots of a task as agents; spaces and reward as in :class:`embodied.envs.single.TaskEnv`.

    The reward is shared. All agents end together.

    Args:
      task_id: id of a task family.
      num_tasks: how many tasks of the family are drawn from.
      task_seed: root of their seeds.
      task_options: passed to the family.
      time_limit_s: truncation; None takes the task's budget.
      render_mode: None or ``rgb_array``.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "embodied_task_v1",
        "render_modes": ["rgb_array"],
        "is_parallelizable": True,
    }

    def __init__(
        self,
        task_id: str = "warehouse/deliver@1",
        num_tasks: int = 1,
        task_seed: int = 0,
        task_options: dict[str, Any] | None = None,
        time_limit_s: float | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.core = TaskCore(task_id, num_tasks, task_seed, task_options, time_limit_s)
        self.possible_agents = list(self.core.specs)
        self.agents = []
        self.render_mode = render_mode
        self._spaces = {
            name: (
                gymnasium.spaces.Box(port.low, port.high, dtype=np.float32),
                gymnasium.spaces.Box(-1.0, 1.0, (port.action_size,), dtype=np.float32),
            )
            for name, port in self.core.ports.items()
        }
        self._rng = np.random.default_rng()
        self._camera: Any = None

    def observation_space(self, agent: str) -> gymnasium.spaces.Box:
        """Return the observation space of an agent, the same object each time."""
        return self._spaces[agent][0]

    def action_space(self, agent: str) -> gymnasium.spaces.Box:
        """Return the action space of an agent, the same object each time."""
        return self._spaces[agent][1]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Vectors, dict[str, dict[str, Any]]]:
        """Begin an episode."""
        del options
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self.core.reset(self._rng)
        self.agents = list(self.possible_agents)
        start = {"instruction": self.core.task.instruction, "task_seed": self.core.task.seed}
        return self._observe(), {a: start | self.core.info(a) for a in self.agents}

    def step(
        self, actions: Vectors
    ) -> tuple[Vectors, dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Advance by one period; an agent without an action keeps its last command."""
        reward = self.core.step({a: actions[a] for a in self.agents if a in actions})
        ended = self.core.is_reached
        cut = self.core.is_over_time and not ended
        agents = self.agents
        result = (
            self._observe(),
            dict.fromkeys(agents, reward),
            dict.fromkeys(agents, ended),
            dict.fromkeys(agents, cut),
            {a: self.core.info(a) for a in agents},
        )
        if ended or cut:
            self.agents = []
        return result

    def render(self) -> NDArray[np.uint8] | None:
        """Return the first fixed camera's view as (H, W, 3) rgb, None without ``rgb_array``."""
        if self.render_mode != "rgb_array":
            return None
        from embodied.sensors.camera import Camera

        if self._camera is None or self._camera.world is not self.core.world:
            self._camera = Camera(self.core.world, self.core.world.scene.model.camera(0).name, 320, 240)
        return self._camera.render().rgb.copy()

    def close(self) -> None:
        """Nothing is held open."""

    def _observe(self) -> Vectors:
        return {a: self.core.observation(a) for a in self.agents}
