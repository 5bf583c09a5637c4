"""Judging: the packaged planner in physics episodes, and the policy in the kinematic stage for calibration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embodied.agents.episode import EpisodeRequest, EpisodeResult, run_episode
from embodied.train.contract import ExportablePolicy, Feed, Score
from embodied.train.planner.kinematic import PLAIN, VARIED, KinematicStage
from embodied.train.planner.teacher import Done
from embodied.train.planner.words import outcome_word, to_call, to_skill_call, vocabulary
from embodied_deploy.planner.decoding import decode, not_again
from embodied_deploy.planner.images import shrink

TASK = "household/put_away@1"
CALIBRATION_SEED = 1_500_000


def evaluate_package(package: Path, seeds: Sequence[int], workers: int = 1) -> list[Score]:
    """Run one physics episode per seed."""
    job = partial(_episode, f"compact:{package}")
    if workers <= 1:
        results = [job(s) for s in seeds]
    else:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            results = list(pool.map(job, seeds))
    return [
        Score(seed=s, value=float(r.success), outcome=r.outcome, steps=r.decisions)
        for s, r in zip(seeds, results, strict=True)
    ]


def _episode(planner: str, seed: int) -> EpisodeResult:
    return run_episode(EpisodeRequest(task_id=TASK, seed=int(seed), planner=planner))


Infer = Callable[[dict[str, NDArray[Any]]], dict[str, NDArray[Any]]]


def kinematic_episode(
    infer: Infer, seed: int, num_hidden: int, length: int, *, varied: bool = False, blind: bool = False
) -> tuple[bool, list[dict[str, NDArray[Any]]], list[str]]:
    """Run one episode of the kinematic stage; return success, the inputs of each decision and the calls in words."""
    words = vocabulary()
    stage = KinematicStage(seed, VARIED if varied else PLAIN)
    tokens = words.instruction(stage.task.instruction, length)[None]
    memory = np.zeros((1, num_hidden), dtype=np.float32)
    last: Done | None = None
    feeds: list[dict[str, NDArray[Any]]] = []
    log: list[str] = []
    for _ in range(stage.task.budgets.decisions):
        image = shrink(stage.observe().rgb)[None]
        said = words.last_call(to_call(last.call), outcome_word(last.code)) if last else words.last_call(None, "")
        feed = {
            "image": np.zeros_like(image) if blind else image,
            "instruction": tokens,
            "last_call": said[None],
            "memory": memory,
        }
        feeds.append(feed)
        out = infer(feed)
        memory = out["next_memory"]
        refused = not_again(to_call(last.call), outcome_word(last.code)) if last else None
        scores = [out[n][0] for n in ("skills", "things", "furniture", "relations")]
        call = to_skill_call(decode(words, scores, refused=refused)[0])
        if call.skill == "done":
            log.append("done")
            break
        last = Done(call, stage.apply(call))
        log.append(f"{call} {last.code}")
    return stage.succeeded(), feeds, log


def calibration_feed(policy: ExportablePolicy, count: int, seed: int) -> Feed:
    """Return ``count`` inputs of episodes that the policy steers, half of them in varied flats."""
    import torch

    names = [t.name for t in policy.contract.outputs]
    shapes = {t.name: t.shape for t in policy.contract.inputs}

    @torch.no_grad()
    def infer(feed: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        values = policy(*(torch.from_numpy(feed[t.name]) for t in policy.contract.inputs))
        return {n: v.numpy() for n, v in zip(names, values, strict=True)}

    feeds: list[dict[str, NDArray[Any]]] = []
    index = 0
    while len(feeds) < count:
        task_seed = CALIBRATION_SEED + 10_000 * seed + index
        _, more, _ = kinematic_episode(
            infer, task_seed, shapes["memory"][0], shapes["instruction"][0], varied=index % 2 == 1
        )
        feeds += more
        index += 1
    return {n: np.concatenate([f[n] for f in feeds[:count]]) for n in feeds[0]}
