"""The recipes: train, rebuild, calibrate and judge the navigation policies. Importing this module loads no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from embodied.train.contract import ExportablePolicy, Feed, Recipe, Score
from embodied.train.run import TrainRun

_CALIBRATION_SEED = 500_000_000  # neither trained nor evaluated on
_INPUTS_PER_ROOM = 24


class BaseNavigation(Recipe):
    """Drive a mobile robot to a goal through a furnished room by its scanner, with a memory."""

    id: ClassVar[str] = "base-navigation"
    version: ClassVar[str] = "1"
    summary: ClassVar[str] = "drive a mobile robot to a goal through a furnished room by its scanner (GRU)"
    default_steps: ClassVar[int] = 1200

    def train(self, run: TrainRun) -> None:
        """Imitate the planner that knows the map, then correct the learner on its own drives."""
        from embodied.train.navigation.learn import learn

        learn(run)

    def policy(self, checkpoint: Mapping[str, Any]) -> ExportablePolicy:
        """Rebuild the policy of a checkpoint."""
        from embodied.train.navigation.learn import rebuild

        return rebuild(checkpoint)

    def calibration(self, policy: ExportablePolicy, count: int, seed: int) -> Feed:
        """Return inputs, the memory included, from drives of the policy itself."""
        from embodied.train.navigation.drives import collect
        from embodied.train.navigation.learn import NetworkDriver
        from embodied.train.navigation.network import NavigationGru, NavigationMlp

        assert isinstance(policy, NavigationGru | NavigationMlp)
        driver = NetworkDriver(policy)
        hidden: list[NDArray[np.float32]] = []

        def act(observations: NDArray[np.float32]) -> NDArray[np.float64]:
            before = driver.hidden
            action = driver(observations)
            if driver.hidden is not None:
                hidden.append((before if before is not None else driver.hidden * 0.0).numpy())
            return action

        first = _CALIBRATION_SEED + 1_000_000 * seed
        drives = collect(range(first, first + max(6, count // _INPUTS_PER_ROOM)), act)
        room, step = np.nonzero(np.arange(drives.observations.shape[1]) < drives.lengths[:, None])
        picks = np.linspace(0, len(room) - 1, count).astype(np.int64)  # room by room: the last ones are the hold-out
        room, step = room[picks], step[picks]
        feed: dict[str, NDArray[Any]] = {"observation": drives.observations[room, step]}
        if hidden:
            feed["hidden"] = np.stack(hidden, axis=1)[room, step]
        return feed

    def evaluate(self, package: Path, seeds: Sequence[int], workers: int = 1) -> list[Score]:
        """Run the packaged policy in physics, one episode per seed."""
        from embodied.train.navigation.evaluate import evaluate_package

        return evaluate_package(package, seeds, workers)


class BaseNavigationMlp(BaseNavigation):
    """The same without a memory."""

    id: ClassVar[str] = "base-navigation-mlp"
    summary: ClassVar[str] = "drive a mobile robot to a goal through a furnished room by its scanner (MLP, no memory)"


BASE_NAVIGATION = BaseNavigation()
BASE_NAVIGATION_MLP = BaseNavigationMlp()
