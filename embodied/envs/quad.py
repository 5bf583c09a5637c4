"""Gymnasium faces of quadrotor flights: one flight, or many with a declared autoreset mode."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from embodied.envs.flight import OBSERVATION_HIGH, OBSERVATION_LOW, FlightBatch, FlightTask

Frames = NDArray[np.uint8]
_FPS = 50


def _observation_space() -> gymnasium.spaces.Box:
    return gymnasium.spaces.Box(OBSERVATION_LOW, OBSERVATION_HIGH, dtype=np.float32)


def _action_space() -> gymnasium.spaces.Box:
    return gymnasium.spaces.Box(-1.0, 1.0, (4,), dtype=np.float32)


class QuadEnv(gymnasium.Env[NDArray[np.float32], NDArray[np.float32]]):
    """One quadrotor; see :class:`embodied.envs.flight.FlightBatch` for action, observation, reward and end.

    Args:
      task: ``hover`` or ``waypoint``.
      wind_mps: steady wind (x, y, z).
      render_mode: None or ``rgb_array``.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": _FPS}

    def __init__(
        self,
        task: FlightTask = "hover",
        wind_mps: tuple[float, float, float] = (0.0, 0.0, 0.0),
        render_mode: str | None = None,
    ) -> None:
        self.render_mode = render_mode
        self.observation_space, self.action_space = _observation_space(), _action_space()
        self._flight = FlightBatch(1, task, num_threads=1, wind_mps=wind_mps)
        self._camera: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin a flight."""
        super().reset(seed=seed, options=options)
        self._flight.reset(self.np_random)
        return self._flight.observe()[0], self._info()

    def step(self, action: NDArray[np.float32]) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Advance by 20 ms."""
        reward, ended, cut = self._flight.step(np.asarray(action, dtype=np.float64)[None])
        return self._flight.observe()[0], float(reward[0]), bool(ended[0]), bool(cut[0]), self._info()

    def render(self) -> Frames | None:  # pyright: ignore[reportIncompatibleMethodOverride] -- one frame, no list
        """Return the view of the fixed camera as (H, W, 3) rgb, None without ``rgb_array``."""
        if self.render_mode != "rgb_array":
            return None
        if self._camera is None:
            from embodied.sensors.camera import Camera

            self._camera = Camera(self._flight.world, "overview", 320, 240)
        return self._camera.render().rgb.copy()

    def _info(self) -> dict[str, Any]:
        flight = self._flight
        return {
            "target_error_m": float(flight.target_error_m[0]),
            "targets_reached": int(flight.targets_reached[0]),
        }


class QuadVectorEnv(VectorEnv[NDArray[np.float32], NDArray[np.float32], NDArray[Any]]):
    """Many quadrotors in one native batch, stepped without a Python loop over environments.

    One generator serves all environments: a seed fixes the whole batch, not each row by itself.

    Args:
      num_envs: flights side by side.
      task: ``hover`` or ``waypoint``.
      num_threads: threads of the batch; 0 takes all cores. The result does not depend on it.
      wind_mps: steady wind (x, y, z).
      autoreset_mode: ``NEXT_STEP`` (the step after an end resets and ignores the action), ``SAME_STEP`` (the ending
        step returns the first observation of the next flight, the last one is in ``info["final_obs"]``) or
        ``DISABLED`` (reset with ``options={"reset_mask": …}``).
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(
        self,
        num_envs: int = 1,
        task: FlightTask = "hover",
        num_threads: int = 0,
        wind_mps: tuple[float, float, float] = (0.0, 0.0, 0.0),
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    ) -> None:
        self.num_envs = num_envs
        self._mode = AutoresetMode(autoreset_mode)
        self.metadata = {**type(self).metadata, "autoreset_mode": self._mode}
        self.single_observation_space, self.single_action_space = _observation_space(), _action_space()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._flight = FlightBatch(num_envs, task, num_threads, wind_mps)
        self._done = np.zeros(num_envs, dtype=bool)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin all flights, or those in ``options["reset_mask"]``.

        Raises:
          ValueError: the mask has not the shape (num_envs,) of booleans.
        """
        super().reset(seed=seed, options=options)
        mask = None if options is None else options.get("reset_mask")
        if mask is None:
            self._flight.reset(self.np_random)
            self._done[:] = False
        else:
            mask = np.asarray(mask)
            if mask.shape != (self.num_envs,) or mask.dtype != np.bool_:
                raise ValueError(
                    f"reset_mask must be a bool array of shape ({self.num_envs},), got {mask.dtype} {mask.shape}."
                )
            self._flight.reset(self.np_random, np.flatnonzero(mask))
            self._done &= ~mask
        return self._flight.observe(), self._info()

    def step(
        self, actions: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Advance all flights by 20 ms and reset by the declared mode.

        Raises:
          ValueError: the actions have not the shape (num_envs, 4).
          RuntimeError: mode ``DISABLED`` and a finished flight was not reset.
        """
        values = np.asarray(actions, dtype=np.float64)
        if values.shape != (self.num_envs, 4):
            raise ValueError(f"Actions must have shape ({self.num_envs}, 4), got {values.shape}.")
        if self._mode is AutoresetMode.DISABLED and self._done.any():
            ids = np.flatnonzero(self._done).tolist()
            raise RuntimeError(f"Environments {ids} have ended; reset them with options={{'reset_mask': mask}}.")
        before = self._done
        reward, ended, cut = self._flight.step(values)
        info: dict[str, Any] = {}
        if self._mode is AutoresetMode.NEXT_STEP and before.any():
            self._flight.reset(self.np_random, np.flatnonzero(before))
            reward, ended, cut = np.where(before, 0.0, reward), ended & ~before, cut & ~before
        self._done = ended | cut
        info = self._info()
        if self._mode is AutoresetMode.SAME_STEP and self._done.any():
            ids = np.flatnonzero(self._done)
            last = np.empty(self.num_envs, dtype=object)
            for i, row in zip(ids, self._flight.observe()[ids], strict=True):
                last[i] = row
            done = self._done.copy()
            info = {"final_obs": last, "_final_obs": done, "final_info": info, "_final_info": done}
            self._flight.reset(self.np_random, ids)
            info.update(self._info())
            self._done = np.zeros(self.num_envs, dtype=bool)
        return self._flight.observe(), reward, ended, cut, info

    def _info(self) -> dict[str, Any]:
        everywhere = np.ones(self.num_envs, dtype=bool)
        return {
            "target_error_m": self._flight.target_error_m,
            "_target_error_m": everywhere,
            "targets_reached": self._flight.targets_reached,
            "_targets_reached": everywhere.copy(),
        }
