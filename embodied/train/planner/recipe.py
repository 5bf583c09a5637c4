"""The recipe: train, rebuild, calibrate and judge the compact planner. Importing this module loads no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from embodied.export.options import ExportOptions, GateLimits
from embodied.train.contract import ExportablePolicy, Feed, Recipe, Score
from embodied.train.run import TrainRun


class CompactPlannerRecipe(Recipe):
    """Tidy a flat from images of the head camera: which skill next, and on what."""

    id: ClassVar[str] = "compact-planner"
    version: ClassVar[str] = "1"
    summary: ClassVar[str] = "head camera image and instruction to the next skill and its arguments, in a home"
    default_steps: ClassVar[int] = 4000
    export_options: ClassVar[ExportOptions] = ExportOptions(exclude=("decider",), limits=GateLimits(agreement=0.95))
    """The detector holds nine tenths of the arithmetic; the decider's memory goes around up to 80 times."""

    def train(self, run: TrainRun) -> None:
        """Collect demonstrations in the kinematic stage, learn to see, learn to decide."""
        from embodied.train.planner.learn import learn

        learn(run)

    def policy(self, checkpoint: Mapping[str, Any]) -> ExportablePolicy:
        """Rebuild the planner of a checkpoint."""
        from embodied.train.planner.learn import rebuild

        return rebuild(checkpoint)

    def calibration(self, policy: ExportablePolicy, count: int, seed: int) -> Feed:
        """Return inputs of kinematic episodes that the policy itself steers, memory included."""
        from embodied.train.planner.evaluate import calibration_feed

        return calibration_feed(policy, count, seed)

    def evaluate(self, package: Path, seeds: Sequence[int], workers: int = 1) -> list[Score]:
        """Run the packaged planner on held-out tasks in the physics world, one episode per seed."""
        from embodied.train.planner.evaluate import evaluate_package

        return evaluate_package(package, seeds, workers)


COMPACT_PLANNER = CompactPlannerRecipe()
