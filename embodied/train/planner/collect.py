"""Demonstrations: the teacher's answer at every decision of episodes that the teacher, chance or a student steers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embodied.seeding import stream_rng
from embodied.skills.contract import SkillCall
from embodied.train.planner.kinematic import GALLERY, PLAIN, VARIED, KinematicStage
from embodied.train.planner.rules import TidyRules
from embodied.train.planner.teacher import CLOSED, OPENABLE, TOUR, Done, next_call
from embodied.train.planner.words import INSTRUCTION_TOKENS, outcome_word, to_call, vocabulary
from embodied_deploy.planner.images import IMAGE_HW, shrink

CELL_PX = 8
_CELL_MIN_PX = 2
Record = dict[str, NDArray[Any]]
Chooser = Callable[[SkillCall], SkillCall]
"""From the teacher's call to the one that is carried out."""


def target_of(call: SkillCall) -> NDArray[np.int64]:
    """Return (4,) indices of skill, thing, furniture and relation; 0 of the last three is 'none'."""
    words, c = vocabulary(), to_call(call)
    return np.array(
        [
            words.index("skills", c.skill),
            words.index("things", c.thing),
            words.index("furniture", c.furniture),
            words.index("relations", c.relation),
        ],
        dtype=np.int64,
    )


def random_call(stage: TidyRules, rng: np.random.Generator) -> SkillCall:
    """Return a call that a bad planner might make here."""
    words = vocabulary()
    move = stage.moves[int(rng.integers(len(stage.moves)))]
    place = str(rng.choice(words.furniture[1:]))
    kind = int(rng.integers(8))
    if kind <= 2:
        return SkillCall.of("go_to", target=place)
    if kind == 3:
        return SkillCall.of("look", target=place)
    if kind == 4:
        return SkillCall.of("pick", thing=move.thing)
    if kind == 5:
        return SkillCall.of("place", thing=move.thing, target=move.target, relation=move.relation)
    name = stage.at if stage.at in OPENABLE else place
    return SkillCall.of("open" if kind == 6 else "close", target=name)


def demonstrate(
    stage: TidyRules, observe: Callable[[], None], choose: Chooser, max_decisions: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Run an episode; return (T, 4) answers of the teacher and (T, 5) tokens of the call before each decision.

    Args:
      stage: where.
      observe: called before each decision.
      choose: what is carried out instead of the teacher's answer.
      max_decisions: when to stop.
    """
    words = vocabulary()
    past: list[Done] = []
    answers, lasts = [], []
    for _ in range(max_decisions):
        observe()
        answer = next_call(stage.moves, past, stage.wanted_known)
        answers.append(target_of(answer))
        last = past[-1] if past else None
        lasts.append(
            words.last_call(to_call(last.call), outcome_word(last.code)) if last else words.last_call(None, "")
        )
        call = choose(answer)
        if call.skill == "done":
            break
        past.append(Done(call, stage.apply(call)))
    return np.array(answers), np.array(lasts)


def collect_episode(seed: int, *, noise: float = 0.15, max_decisions: int = 48) -> Record:
    """Return one episode of the kinematic stage with images and dense labels.

    Returns:
      ``images`` (T, H, W, 3) uint8, ``cells`` (T, H/8, W/8) uint32 with a bit for each thing, ``pixels`` (T, things)
      uint16 of full images, ``answers`` (T, 4), ``lasts`` (T, 5), ``tokens`` (40,).
    """
    rng = stream_rng(seed, "policy", "collect")
    stage = KinematicStage(seed, VARIED if rng.random() < 0.6 else PLAIN)
    album = _Album(stage)

    def choose(answer: SkillCall) -> SkillCall:
        return random_call(stage, rng) if rng.random() < noise else answer

    answers, lasts = demonstrate(stage, album.observe, choose, max_decisions)
    tokens = vocabulary().instruction(stage.task.instruction, INSTRUCTION_TOKENS)
    return {**album.record(), "answers": answers, "lasts": lasts, "tokens": tokens}


def collect_gallery(seed: int) -> Record:
    """Return images of every stop of the tour with things of all kinds about: what the detector learns rare ones from.

    Returns:
      ``images``, ``cells`` and ``pixels`` as in :func:`collect_episode`.
    """
    stage = KinematicStage(seed, GALLERY, with_failures=False)
    album = _Album(stage)
    for name, target in TOUR:
        if stage.moved("go_to", name):
            continue
        if name in CLOSED:
            stage.doors = {name}
            stage.moved("door", name)
        album.observe()
        stage.moved("look", target)
        album.observe()
        stage.doors = set()
    return album.record()


class _Album:
    """Images of a stage with their labels."""

    def __init__(self, stage: KinematicStage) -> None:
        self._stage, self._words = stage, vocabulary()
        self._thing_of_geom = np.zeros(len(stage.owners) + 1, dtype=np.uint8)  # the last one is 'no geom', -1
        for geom, owner in enumerate(stage.owners):
            self._thing_of_geom[geom] = self._words.index("things", owner or "")
        self._images: list[NDArray[np.uint8]] = []
        self._cells: list[NDArray[np.uint32]] = []
        self._pixels: list[list[int]] = []

    def observe(self) -> None:
        frame = self._stage.observe()
        self._images.append(shrink(frame.rgb))
        self._cells.append(_cells(self._thing_of_geom[frame.segmentation[::2, ::2]]))
        self._pixels.append([self._stage.visible_px.get(n, 0) for n in self._words.things[1:]])

    def record(self) -> Record:
        pixels = np.array(self._pixels, dtype=np.uint16)
        return {"images": np.array(self._images), "cells": np.array(self._cells), "pixels": pixels}


def _cells(things: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Return (H/8, W/8) bit sets of the things that show at least two pixels in a cell."""
    rows, columns = IMAGE_HW[0] // CELL_PX, IMAGE_HW[1] // CELL_PX
    out = np.zeros((rows, columns), dtype=np.uint32)
    for thing in np.unique(things):
        if thing:
            count = (things == thing).reshape(rows, CELL_PX, columns, CELL_PX).sum(axis=(1, 3))
            out |= np.where(count >= _CELL_MIN_PX, np.uint32(1) << np.uint32(thing - 1), np.uint32(0))
    return out


def collect(folder: Path, seeds: range, per_file: int = 10, *, gallery: bool = False) -> None:
    """Write episodes, or galleries, as ``<first seed>.npz`` files; files that are there are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    for first in range(seeds.start, seeds.stop, per_file):
        target = folder / f"{first}.npz"
        if target.exists():
            continue
        part = range(first, min(first + per_file, seeds.stop))
        records = [collect_gallery(s) if gallery else collect_episode(s) for s in part]
        merged: Record = {k: np.concatenate([r[k] for r in records]) for k in records[0] if k != "tokens"}
        if not gallery:
            merged["tokens"] = np.array([r["tokens"] for r in records])
        merged["lengths"] = np.array([len(r["images"]) for r in records])
        torn = target.with_suffix(".torn")
        with torn.open("wb") as stream:
            np.savez(stream, **merged)  # type: ignore[arg-type]
        torn.rename(target)
