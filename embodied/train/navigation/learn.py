"""Learning in stages: first from the disturbed teacher, then also from the learner's own drives (DAgger)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from embodied.train.commit import training_commit
from embodied.train.navigation.drives import HIGH, Drives, collect, windows
from embodied.train.navigation.network import NavigationGru, NavigationMlp, NavigationNetwork
from embodied.train.navigation.promise import NUM_HIDDEN, NUM_INPUTS, navigation_contract
from embodied.train.navigation.store import load_drives, save_drives
from embodied.train.run import TrainRun, versions
from embodied.train.supervised import ArraySamples, Batch, SupervisedConfig, seeded_module, train_supervised
from embodied_deploy.package.contract import Training

GRU_NAME = "base-navigation"
STAGES = 5
ROOMS_PER_STEP, ROOMS_MIN = 0.3, 8
"""Rooms that each stage adds: new rooms help more than more steps on the old ones."""
LEARNER_SHARE = 0.85
CONFIG = SupervisedConfig(batch_size=48, learning_rate=2e-3, evaluate_every=500, save_every=1000, ema_decay=0.998)


@dataclass
class NetworkDriver:
    """A network that drives a batch of robots.

    Attributes:
      model: the network; its memory begins empty.
    """

    model: NavigationNetwork

    def __post_init__(self) -> None:
        self.model.eval()
        self.hidden: Tensor | None = None

    def __call__(self, observations: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return (n, 2) actions of (n, 52) observations, always of the same n robots."""
        seen = torch.from_numpy(observations)
        with torch.no_grad():
            if isinstance(self.model, NavigationMlp):
                (action,) = self.model(seen)
            else:
                hidden = torch.zeros(len(seen), NUM_HIDDEN) if self.hidden is None else self.hidden
                action, self.hidden = self.model(seen, hidden)
        return action.numpy().astype(np.float64)


def learn(run: TrainRun) -> None:
    """Train in stages of ``run.steps`` steps; each stage and each step of it is resumed where it was interrupted.

    The drives lie as datasets below the run's folder; the digest of all of them is in the checkpoint.
    """
    parts: list[Drives] = []
    model: NavigationNetwork | None = None
    mean, std = np.zeros(NUM_INPUTS), np.ones(NUM_INPUTS)
    for stage in range(STAGES):
        parts.append(_gather(run, stage, model))
        if not stage:
            mean, std = statistics(parts[0])
        sha256 = digest(parts)
        is_last = stage == STAGES - 1
        folder = run.folder if is_last else run.folder / f"stage_{stage}"
        fresh = build(contract_training(run, sha256), mean, std, run.seed)
        if model is not None:
            fresh.load_state_dict(model.state_dict())
        model = fresh
        extra = {
            "mean": torch.as_tensor(mean, dtype=torch.float32),
            "std": torch.as_tensor(std, dtype=torch.float32),
            "commit": model.contract.training.commit,
            "dataset_sha256": sha256,
        }
        stage_run = replace(run, folder=folder)
        if stage_run.resume() is None:
            _log_drives(stage_run, parts[-1])
        train_supervised(stage_run, model, samples_of(parts), loss, CONFIG, extra)


def _gather(run: TrainRun, stage: int, model: NavigationNetwork | None) -> Drives:
    """Return the drives of a stage, from the run's folder where they are there already."""
    folder = run.folder / "drives" / f"stage_{stage}"
    found = load_drives(folder)
    if found is None:
        driver = None if model is None else NetworkDriver(model)
        found = collect(stage_seeds(run, stage), driver, share=LEARNER_SHARE)
        save_drives(folder, found)
    return found


def digest(parts: Sequence[Drives]) -> str:
    """Return one SHA-256 over the drives of all stages."""
    return hashlib.sha256("".join(part.sha256 for part in parts).encode()).hexdigest()


def samples_of(parts: Sequence[Drives]) -> ArraySamples:
    """Return drives as samples; whole rooms are held out together."""
    arrays: dict[str, Any] = windows(parts)
    groups = arrays.pop("groups")
    return ArraySamples(arrays, groups=groups)


def stage_seeds(run: TrainRun, stage: int) -> range:
    """Return the room seeds of a stage; evaluation uses seeds below a million."""
    first = 1_000_000 * (run.seed + 1) + 100_000 * stage
    return range(first, first + max(ROOMS_MIN, round(ROOMS_PER_STEP * run.steps)))


def loss(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """Absolute error of the scaled actions: its minimum is a median, which picks one way round an obstacle."""
    assert isinstance(model, NavigationGru | NavigationMlp)
    error = (model.sequence(batch["observations"]) - batch["labels"]) / torch.as_tensor(HIGH, dtype=torch.float32)
    weights = (batch["weights"] / batch["weights"].sum())[..., None]
    each = weights * nn.functional.smooth_l1_loss(error, torch.zeros_like(error), reduction="none", beta=0.05)
    forward, turn = each[..., 0].sum(), each[..., 1].sum()
    return {"loss": forward + turn, "forward": forward, "turn": turn}


def build(training: Training, mean: NDArray[np.floating], std: NDArray[np.floating], seed: int) -> NavigationNetwork:
    """Return a network with fresh weights; the recipe's name says which."""
    name = training.recipe.split("@")[0]
    is_recurrent = name == GRU_NAME
    contract = navigation_contract(name, training, is_recurrent=is_recurrent)
    kind = NavigationGru if is_recurrent else NavigationMlp
    module = seeded_module(lambda: kind(contract, mean, std), seed)
    assert isinstance(module, NavigationGru | NavigationMlp)
    return module


def rebuild(checkpoint: Mapping[str, Any]) -> NavigationNetwork:
    """Return the network of a checkpoint with its averaged weights, on the CPU."""
    training = Training(
        recipe=f"{checkpoint['recipe']}@{checkpoint['recipe_version']}",
        seed=int(checkpoint["seed"]),
        commit=str(checkpoint["commit"]),
        dataset_sha256=str(checkpoint["dataset_sha256"]),
        versions=checkpoint["versions"],
    )
    model = build(training, checkpoint["mean"].numpy(), checkpoint["std"].numpy(), int(checkpoint["seed"]))
    model.load_state_dict(checkpoint["ema"])
    model.eval()
    return model


def statistics(drives: Drives) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and deviation (52,) of the observations, for the normaliser."""
    live = np.arange(drives.observations.shape[1]) < drives.lengths[:, None]
    seen = drives.observations[live].astype(np.float64)
    return seen.mean(axis=0), seen.std(axis=0)


def _log_drives(run: TrainRun, drives: Drives) -> None:
    """Write how the drives ended that this stage adds: after the first one a measure of the stage before."""
    run.rewind(-1)
    run.log(0, arrived_ratio=float(drives.arrived.mean()), touched_ratio=float(drives.touched.mean()))


def contract_training(run: TrainRun, dataset_sha256: str) -> Training:
    """Return where the weights of a run come from."""
    return Training(
        recipe=f"{run.recipe}@{run.recipe_version}",
        seed=run.seed,
        commit=training_commit(),
        dataset_sha256=dataset_sha256,
        versions=versions(),
    )
