"""The recipe: train, rebuild, calibrate and judge the grasping policy. Importing this module loads no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from embodied.export.options import ExportOptions, GateLimits
from embodied.train.contract import ExportablePolicy, Feed, Recipe, Score
from embodied.train.run import TrainRun

_CALIBRATION_SEED = 500_000_000  # neither trained nor evaluated on
_KEEP = 3  # every third moment: neighbours look alike


class ReachAndGrasp(Recipe):
    """Take a thing from a table with the mobile manipulator's arm, by the camera in its hand."""

    id: ClassVar[str] = "reach-and-grasp"
    version: ClassVar[str] = "1"
    summary: ClassVar[str] = (
        "take a thing from a table by a 64x64 wrist camera and proprioception, in chunks of actions"
    )
    export_options: ClassVar[ExportOptions] = ExportOptions(
        exclude=("body", "head"), limits=GateLimits(max_of_range=0.25)
    )
    """Only the convolutions and what follows them are large; joint positions need more than 8 bits. Opening and force
    follow a decision: where it is about to fall, a small error moves them far, so the gate's 0.15 is too strict."""
    default_steps: ClassVar[int] = 3000

    def train(self, run: TrainRun) -> None:
        """Imitate the scripted teacher, then correct the learner on its own episodes."""
        from embodied.train.grasp.learn import learn

        learn(run)

    def policy(self, checkpoint: Mapping[str, Any]) -> ExportablePolicy:
        """Rebuild the policy of a checkpoint."""
        from embodied.train.grasp.learn import rebuild

        return rebuild(checkpoint)

    def calibration(self, policy: ExportablePolicy, count: int, seed: int) -> Feed:
        """Return inputs from episodes that the policy itself drives."""
        from embodied.train.grasp.demos import collect
        from embodied.train.grasp.learn import actor_of
        from embodied.train.grasp.network import GraspNetwork
        from embodied.train.grasp.promise import EXECUTE
        from embodied.train.supervised import one_thread

        assert isinstance(policy, GraspNetwork)
        actor = actor_of(policy)
        images: list[NDArray[Any]] = []
        proprio: list[NDArray[Any]] = []
        first = _CALIBRATION_SEED + 1_000_000 * seed
        for index in range(count):
            with one_thread():
                moments = collect([first + index], actor, execute=EXECUTE)
            images += list(moments.images[::_KEEP])
            proprio += list(moments.proprio[::_KEEP])
            if len(images) >= count:
                break
        return {"image": np.stack(images[:count]), "proprio": np.stack(proprio[:count]).astype(np.float32)}

    def evaluate(self, package: Path, seeds: Sequence[int], workers: int = 1) -> list[Score]:
        """Run the packaged policy, one episode per seed."""
        from embodied.train.grasp.evaluate import evaluate_package

        return evaluate_package(package, seeds, workers)


REACH_AND_GRASP = ReachAndGrasp()
