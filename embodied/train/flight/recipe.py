"""The two recipes: train, rebuild, calibrate and judge. Importing this module loads no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from embodied.export.options import ExportOptions
from embodied.train.contract import ExportablePolicy, Feed, Recipe, Score
from embodied.train.flight.channels import PATHS
from embodied.train.run import TrainRun

_CALIBRATION_SEED = 600_000_000  # neither trained nor evaluated on
_KEEP = 7  # every seventh moment: neighbours look alike


class _FlightRecipe(Recipe):
    """Common to both: they differ in the flights they are trained and judged on."""

    version: ClassVar[str] = "1"
    policy_version: ClassVar[str] = "1.0.0"
    name: ClassVar[str]
    task: ClassVar[Any]
    export_options: ClassVar[ExportOptions] = ExportOptions(exclude=("trunk.0",))
    """Eight bits hold the hidden layers; the inputs, metres beside thrusts of a few hundredths, need more."""

    def train(self, run: TrainRun) -> None:
        """Train by PPO; ``run.steps`` are periods of 20 ms of any flight, rounded up to whole rounds."""
        from embodied.train.flight.ppo import PpoConfig, train_ppo

        train_ppo(run, self.task, PpoConfig())

    def policy(self, checkpoint: Mapping[str, Any]) -> ExportablePolicy:
        """Rebuild the policy of a checkpoint."""
        from embodied.train.flight.policy import flight_policy

        return flight_policy(self.name, self.policy_version, checkpoint)

    def calibration(self, policy: ExportablePolicy, count: int, seed: int) -> Feed:
        """Return inputs from missions that the policy itself flies on the simulated robot."""
        import torch

        from embodied.robots.quadrotor.spec import QUADROTOR
        from embodied.train.flight.mission import Flight, mission
        from embodied_deploy.policy.channels import Assembler

        assembler = Assembler(policy.contract, QUADROTOR.action_spec, QUADROTOR.observation_spec)
        policy.eval()
        rows: list[NDArray[np.float32]] = []
        feed = {"observation": np.zeros((1, len(PATHS)), dtype=np.float32)}
        number = 0
        while len(rows) < count:
            flight = Flight(mission(self.task, _CALIBRATION_SEED + 1_000_000 * seed + number))
            while not flight.is_over and len(rows) < count:
                assembler.fill(flight.observe(), feed)
                if flight.steps % _KEEP == 0:
                    rows.append(feed["observation"][0].copy())
                with torch.no_grad():
                    (thrust,) = policy(torch.from_numpy(feed["observation"]))
                flight.step(thrust[0].numpy().astype(np.float64))
            number += 1
        return {"observation": np.stack(rows)}

    def evaluate(self, package: Path, seeds: Sequence[int], workers: int = 1) -> list[Score]:
        """Fly the packaged policy on the simulated robot in wind, one mission per seed."""
        from embodied.train.flight.mission import evaluate_package

        return evaluate_package(self.task, package, seeds, workers)


class QuadHover(_FlightRecipe):
    """Return to a point from up to a metre away, motors off at first, and hold it in wind."""

    id: ClassVar[str] = "quad-hover@1"
    name: ClassVar[str] = "quad-hover"
    task: ClassVar[Any] = "hover"
    summary: ClassVar[str] = "hold a point in wind: MLP from pose and velocities to four rotor thrusts, 50 Hz, by PPO"
    default_steps: ClassVar[int] = 12_000_000


class QuadWaypoint(_FlightRecipe):
    """Fly to a point that moves on when it was reached, in wind; hold the last one."""

    id: ClassVar[str] = "quad-waypoint@1"
    name: ClassVar[str] = "quad-waypoint"
    task: ClassVar[Any] = "waypoint"
    summary: ClassVar[str] = "visit points in order in wind: MLP to four rotor thrusts, 50 Hz, by PPO"
    default_steps: ClassVar[int] = 12_000_000


QUAD_HOVER = QuadHover()
QUAD_WAYPOINT = QuadWaypoint()
