"""Gymnasium face of a task with one robot, driven at the level of its action vector."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np
from numpy.typing import NDArray

from embodied.envs.task_core import TaskCore
from embodied.errors import TaskError


class TaskEnv(gymnasium.Env[NDArray[np.float32], NDArray[np.float32]]):
    """One robot in the world of a task.

    Action: the robot's action vector, each entry from its lower limit (-1) to its upper limit (+1); what was really
    applied is in ``info["action_applied"]``. Observation: the robot's state, named by ``observation_names``. The
    instruction is in the info of every reset. Reward: gain of the goal's held fraction, plus 1 when it is reached.

    Args:
      task_id: id of a task family.
      agent: which robot of the task; None takes the first, the others stand still.
      num_tasks: how many tasks of the family are drawn from.
      task_seed: root of their seeds.
      task_options: passed to the family.
      time_limit_s: truncation; None takes the task's budget.
      period_s: time of one step; None takes the robot's control period.
      camera: camera to render; None takes the first fixed camera.
      render_mode: None or ``rgb_array``.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 50}

    def __init__(
        self,
        task_id: str,
        agent: str | None = None,
        num_tasks: int = 1,
        task_seed: int = 0,
        task_options: dict[str, Any] | None = None,
        time_limit_s: float | None = None,
        period_s: float | None = None,
        camera: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.core = TaskCore(task_id, num_tasks, task_seed, task_options, time_limit_s, period_s)
        self.agent = agent if agent is not None else next(iter(self.core.specs))
        if self.agent not in self.core.specs:
            raise TaskError(f"Task {task_id} has no robot {agent!r}; it has {sorted(self.core.specs)}.")
        port = self.core.ports[self.agent]
        self.observation_names = port.observation_names
        self.observation_space = gymnasium.spaces.Box(port.low, port.high, dtype=np.float32)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (port.action_size,), dtype=np.float32)
        self.metadata = {**type(self).metadata, "render_fps": round(1 / self.core.period_s)}
        self.render_mode = render_mode
        self._camera_name, self._camera = camera, None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed, options=options)
        self.core.reset(self.np_random)
        info = {"instruction": self.core.task.instruction, "task_seed": self.core.task.seed}
        return self.core.observation(self.agent), info | self.core.info(self.agent)

    def step(self, action: NDArray[np.float32]) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Advance by one period."""
        core = self.core
        reward = core.step({self.agent: action})
        cut = core.is_over_time and not core.is_reached
        return core.observation(self.agent), reward, core.is_reached, cut, core.info(self.agent)

    def render(self) -> NDArray[np.uint8] | None:  # pyright: ignore[reportIncompatibleMethodOverride] -- one frame
        """Return the camera's view as (H, W, 3) rgb, None without ``rgb_array``."""
        if self.render_mode != "rgb_array":
            return None
        from embodied.sensors.camera import Camera

        world = self.core.world
        if self._camera is None or self._camera.world is not world:
            model = world.scene.model
            fixed = [model.camera(i).name for i in range(model.ncam)]
            self._camera = Camera(world, self._camera_name or fixed[0], 320, 240)
        return self._camera.render().rgb.copy()
