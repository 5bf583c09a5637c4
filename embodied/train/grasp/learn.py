"""Learning in stages: first from the disturbed teacher, then also from the learner's own episodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from embodied.train.commit import training_commit
from embodied.train.grasp.demos import Actor, Demos, collect, join
from embodied.train.grasp.network import GraspNetwork
from embodied.train.grasp.promise import EXECUTE, grasp_contract
from embodied.train.grasp.store import digest, load_demos, save_demos
from embodied.train.grasp.teacher import OPEN_M
from embodied.train.run import TrainRun, versions
from embodied.train.supervised import ArraySamples, Batch, SupervisedConfig, one_thread, seeded_module, train_supervised
from embodied_deploy.package.contract import Training

Array = NDArray[np.floating]

STAGES = 2
EPISODES_PER_STEP = (2 / 15, 0.2)
_PILOT_SHARE = 3  # a third of the steps makes a learner good enough to find its own mistakes
LEARNER_SHARE = 0.8
CONFIG = SupervisedConfig()
_AGE_DISCOUNT = 0.85  # later actions of a chunk matter less: the next chunk replaces them
_WHERE_WEIGHT, _GRIP_WEIGHT = 0.5, 0.3


def contract_training(run: TrainRun, dataset_sha256: str) -> Training:
    """Return where the weights of a run come from."""
    return Training(
        recipe=f"{run.recipe}@{run.recipe_version}",
        seed=run.seed,
        commit=training_commit(),
        dataset_sha256=dataset_sha256,
        versions=versions(),
    )


def samples_of(demos: Demos) -> ArraySamples:
    """Return demonstrations as samples; whole episodes are held out together."""
    return ArraySamples(
        {
            "image": demos.images,
            "proprio": demos.proprio,
            "offsets": demos.chunks[:, :, :7] - demos.proprio[:, None, 1:8],
            "closed": (demos.chunks[:, :, 7] < OPEN_M / 2).astype(np.float32),
            "where": demos.things * np.array([10.0, 10.0, 10.0, 1.0, 1.0], dtype=np.float32),
        },
        groups=demos.episodes,
    )


def statistics(demos: Demos) -> dict[str, Array]:
    """Return mean and deviation of proprioception and the spread of the joint offsets, for the network."""
    offsets = demos.chunks[:, :, :7] - demos.proprio[:, None, 1:8]
    # The spread of a joint is one number with a floor: joints that hardly move must not count as much as the others.
    scale = np.maximum(np.abs(offsets).std(axis=0) + np.abs(offsets).mean(axis=0), 0.02)
    return {"mean": demos.proprio.mean(axis=0), "std": demos.proprio.std(axis=0), "scale": scale}


def build(training: Training, stats: dict[str, Array], seed: int) -> GraspNetwork:
    """Return a network with fresh weights."""
    module = seeded_module(lambda: GraspNetwork(grasp_contract(training), **stats), seed)
    assert isinstance(module, GraspNetwork)
    return module


def loss(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """Absolute error of the scaled offsets, cross-entropy of the gripper, and where the thing is."""
    assert isinstance(model, GraspNetwork)
    features = model.features(batch["image"], batch["proprio"])
    offsets, logits = model.raw(features)
    weight = _AGE_DISCOUNT ** torch.arange(model.horizon, dtype=torch.float32)
    weight = weight / weight.sum()
    error = (offsets - batch["offsets"] / model.limiter.scale).abs().mean(dim=2)
    grip = nn.functional.binary_cross_entropy_with_logits(logits, batch["closed"], reduction="none")
    arm, gripper = (error * weight).sum(dim=1).mean(), (grip * weight).sum(dim=1).mean()
    where = nn.functional.smooth_l1_loss(model.locate(features), batch["where"], beta=0.1, reduction="none")
    where = torch.cat([where[:, :3], where[:, 3:] * batch["where"][:, 3:].norm(dim=1, keepdim=True)], dim=1).mean()
    return {"loss": arm + _GRIP_WEIGHT * gripper + _WHERE_WEIGHT * where, "arm": arm, "grip": gripper, "where": where}


def actor_of(model: GraspNetwork) -> Actor:
    """Return the network as something that drives episodes."""
    model.eval()

    def act(image: NDArray[np.uint8], proprio: NDArray[np.float64]) -> NDArray[np.float64]:
        with torch.no_grad():
            (chunk,) = model(torch.from_numpy(image)[None], torch.from_numpy(proprio.astype(np.float32))[None])
        return chunk[0].numpy().astype(np.float64)

    return act


def gather(run: TrainRun, stage: int, count: int, actor: Actor | None) -> Demos:
    """Return the demonstrations of a stage, from the run's folder where they are there already."""
    path = demos_folder(run, stage)
    found = load_demos(path)
    if found is None:
        first = training_seed(run.seed, stage)
        with one_thread():
            found = collect(range(first, first + count), actor, execute=EXECUTE, share=LEARNER_SHARE)
        save_demos(path, found)
    return found


def demos_folder(run: TrainRun, stage: int) -> Path:
    """Return the dataset of a stage."""
    return run.folder / "demos" / f"stage_{stage}"


def training_seed(run_seed: int, stage: int) -> int:
    """Return the first scene seed of a stage; evaluation uses seeds below a million."""
    return 1_000_000 * (run_seed + 1) + 100_000 * stage


def learn(run: TrainRun) -> None:
    """Train in stages; each stage and each step of it is resumed where it was interrupted."""
    pilot_steps, parts = max(1, run.steps // _PILOT_SHARE), []
    actor: Actor | None = None
    stats: dict[str, Array] = {}
    for stage in range(STAGES):
        parts.append(gather(run, stage, episodes_in(stage, run.steps), actor))
        demos = join(parts)
        if not stage:
            stats = statistics(demos)
        sha256 = digest([demos_folder(run, k) for k in range(stage + 1)])
        is_last = stage == STAGES - 1
        step_run = run if is_last else replace(run, folder=run.folder / f"pilot_{stage}", steps=pilot_steps)
        model = build(contract_training(run, sha256), stats, run.seed)
        origin = {"commit": model.contract.training.commit}
        extra = {name: torch.as_tensor(value, dtype=torch.float32) for name, value in stats.items()}
        train_supervised(
            step_run, model, samples_of(demos), loss, CONFIG, {**extra, **origin, "dataset_sha256": sha256}
        )
        actor = actor_of(model)


def episodes_in(stage: int, steps: int) -> int:
    """Return how many episodes a stage adds in a run of ``steps`` steps."""
    return max(6, round(EPISODES_PER_STEP[stage] * steps))


def rebuild(checkpoint: Mapping[str, Any]) -> GraspNetwork:
    """Return the network of a checkpoint with its averaged weights, on the CPU."""
    stats = {name: checkpoint[name].numpy() for name in ("mean", "std", "scale")}
    training = Training(
        recipe=f"{checkpoint['recipe']}@{checkpoint['recipe_version']}",
        seed=int(checkpoint["seed"]),
        commit=str(checkpoint["commit"]),
        dataset_sha256=str(checkpoint["dataset_sha256"]),
        versions=checkpoint["versions"],
    )
    model = build(training, stats, int(checkpoint["seed"]))
    model.load_state_dict(checkpoint["ema"])
    model.eval()
    return model
