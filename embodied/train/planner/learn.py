"""The whole training: demonstrations, detector, decider. What a stage leaves on disk is not made twice."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from embodied.train.commit import training_commit
from embodied.train.planner.collect import collect
from embodied.train.planner.learn_decider import DeciderConfig, DeciderTrainer, Sequences, padded
from embodied.train.planner.learn_detector import (
    DetectorTrainer,
    Frames,
    frames_of,
    quality,
    read_files,
    visible_scores,
)
from embodied.train.planner.network import CompactPlanner, Decider, Detector
from embodied.train.planner.promise import planner_contract
from embodied.train.planner.words import INSTRUCTION_TOKENS, vocabulary
from embodied.train.run import TrainRun, versions
from embodied.train.supervised import one_thread, seeded_module
from embodied_deploy.package.contract import Training

TRAIN_SEED = 2_000_000
"""Training tasks have seeds from here on, evaluation ones lie below."""
GALLERY_SEED = 1_003_000_000
_EPISODES_PER_STEP, _GALLERIES_PER_STEP = 0.1, 0.05
_ROUND_STEPS = 30  # a round of the decider counts as so many steps
_HELD_OUT = 20  # episodes that judge the detector
State = dict[str, torch.Tensor]


def learn(run: TrainRun) -> None:
    """Train for ``run.steps`` detector steps, with demonstrations and decider rounds in proportion."""
    data = run.folder / "data"
    episodes = max(round(run.steps * _EPISODES_PER_STEP), 3)
    first = TRAIN_SEED + 1_000_000 * run.seed
    collect(data, range(first, first + episodes))
    galleries = max(round(run.steps * _GALLERIES_PER_STEP), 1)
    first = GALLERY_SEED + 1_000_000 * run.seed
    collect(run.folder / "gallery", range(first, first + galleries), 5, gallery=True)
    files = read_files(data)
    with one_thread():
        detector = _detector(run, frames_of(files), frames_of(read_files(run.folder / "gallery")))
        real = sequences_of(files, detector)
        decider = _decider(run, real)
    model = CompactPlanner(vocabulary())
    model.detector, model.decider = detector, decider
    digest = data_hash(data, run.folder / "gallery")
    run.save(run.steps, {"model": model.state_dict(), "dataset_sha256": digest, "commit": training_commit()})


def _detector(run: TrainRun, frames: Frames, galleries: Frames) -> Detector:
    words = vocabulary()
    detector = seeded_module(lambda: Detector(len(words.things) - 1), run.seed)
    assert isinstance(detector, Detector)
    target = run.folder / "detector.pt"
    if not target.exists():
        held_out = frames.episodes < max(1, min(_HELD_OUT, (int(frames.episodes.max()) + 1) // 5))
        kept = Frames(
            np.concatenate([frames.images[~held_out], galleries.images]),
            np.concatenate([frames.cells[~held_out], galleries.cells]),
            np.concatenate([frames.pixels[~held_out], galleries.pixels]),
            np.concatenate([frames.episodes[~held_out], galleries.episodes]),
        )
        steps = run.steps
        trainer = DetectorTrainer(detector, run.seed, steps)
        losses: list[float] = []
        for loss in trainer.run(kept, steps):
            losses.append(loss)
            if trainer.done % 100 == 0 or trainer.done == steps:
                run.log(trainer.done, detector_loss=float(np.mean(losses[-100:])))
        detector.load_state_dict(trainer.ema)
        scores = visible_scores(detector, frames.images[held_out])
        run.log(steps, **{f"detector_{k}": v for k, v in quality(scores, frames.pixels[held_out]).items()})
        _write(target, trainer.ema)
    detector.load_state_dict(torch.load(target, weights_only=True))
    detector.eval()
    return detector


def _decider(run: TrainRun, real: Sequences) -> Decider:
    decider = seeded_module(lambda: Decider(vocabulary()), run.seed)
    assert isinstance(decider, Decider)
    target = run.folder / "decider.pt"
    if not target.exists():
        rounds = max(run.steps // _ROUND_STEPS, 1)
        config = DeciderConfig() if rounds > 5 else DeciderConfig(episodes=16, batches=4, batch_size=16)
        trainer = DeciderTrainer(decider, run.seed, rounds, config, real=real)
        for number in range(rounds):
            curves = trainer.round(number)
            run.log(run.steps, round=number, **{f"decider_{k}": v for k, v in curves.items()})
        _write(target, trainer.ema)
    decider.load_state_dict(torch.load(target, weights_only=True))
    decider.eval()
    return decider


def sequences_of(files: list[dict[str, NDArray[Any]]], detector: Detector) -> Sequences:
    """Return the episodes of files with the scores of a detector on their images."""
    episodes = []
    for file in files:
        scores = visible_scores(detector, file["images"])
        start = 0
        for length, tokens in zip(file["lengths"], file["tokens"], strict=True):
            part = slice(start, start + int(length))
            start += int(length)
            episodes.append(
                {
                    "answers": file["answers"][part],
                    "lasts": file["lasts"][part],
                    "scores": scores[part],
                    "tokens": tokens[:INSTRUCTION_TOKENS],
                }
            )
    return padded(episodes)


def rebuild(checkpoint: Mapping[str, Any]) -> CompactPlanner:
    """Return the network of a checkpoint with its contract."""
    training = Training(
        recipe=f"{checkpoint['recipe']}@{checkpoint['recipe_version']}",
        seed=int(checkpoint["seed"]),
        commit=str(checkpoint.get("commit", "")),
        dataset_sha256=str(checkpoint.get("dataset_sha256", "")),
        versions=dict(checkpoint.get("versions", versions())),
    )
    model = CompactPlanner(vocabulary())
    model.contract = planner_contract(training, model.decider.num_memory)
    model.load_state_dict(checkpoint["model"])
    model.eval()
    return model


def data_hash(*folders: Path) -> str:
    """Return the SHA-256 over the names and contents of the files of data folders."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.glob("*.npz")):
            digest.update(path.name.encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _write(target: Path, state: State) -> None:
    torn = target.with_suffix(".torn")
    torch.save(state, torn)
    os.replace(torn, target)
