"""A training run on disk: recipe, seed, curves and checkpoints, resumable after any interruption."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from embodied.errors import EmbodiedError, require
from embodied.train.commit import training_commit

CHECKPOINT_FORMAT = 1
_VERSIONS = ("embodied-stack", "torch", "numpy", "mujoco", "onnx", "onnxruntime", "rsl-rl-lib")


class TrainError(EmbodiedError):
    """A run cannot start, go on or be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainRun:
    """One run in a folder: ``curves.jsonl``, ``checkpoint.pt``, ``run.json``.

    Attributes:
      folder: where the run lives; made when absent.
      recipe: recipe id.
      recipe_version: its version; a checkpoint of another version is not resumed.
      seed: root seed of everything random.
      steps: optimiser or environment steps, as the recipe counts them.
      workers: processes for collecting data.
      on_log: called with each line of the curves, for a display.
    """

    folder: Path
    recipe: str
    recipe_version: str
    seed: int
    steps: int
    workers: int = 1
    on_log: Callable[[int, Mapping[str, float]], None] | None = None

    @property
    def checkpoint_path(self) -> Path:
        """Where the newest checkpoint is."""
        return self.folder / "checkpoint.pt"

    def log(self, step: int, **values: float) -> None:
        """Append one line to the curves."""
        self.folder.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"step": step, **{k: float(v) for k, v in values.items()}})
        with (self.folder / "curves.jsonl").open("a") as stream:
            stream.write(line + "\n")
        if self.on_log is not None:
            self.on_log(step, values)

    def begin(self) -> None:
        """Write ``run.json``: what this run is, and with which versions and source it was started.

        Raises:
          TrainError: the folder holds a run of another recipe, recipe version or seed.
        """
        identity = {"recipe": self.recipe, "recipe_version": self.recipe_version, "seed": self.seed}
        target = self.folder / "run.json"
        if target.exists():
            try:
                found = json.loads(target.read_text())
            except ValueError as error:
                raise TrainError(
                    f"{target} is no JSON ({error}). Choose another folder, or delete this one."
                ) from error
            for key, wanted in identity.items():
                if found.get(key) != wanted:
                    raise TrainError(
                        f"{self.folder} holds a run with {key} {found.get(key)!r}, this one has {wanted!r}. "
                        "Choose another folder, or delete the old run."
                    )
        self.folder.mkdir(parents=True, exist_ok=True)
        record = {**identity, "steps": self.steps, "commit": training_commit(), "versions": versions()}
        torn = target.with_suffix(".torn")
        torn.write_text(json.dumps(record, indent=1) + "\n")
        os.replace(torn, target)

    def rewind(self, step: int) -> None:
        """Drop the curves after ``step``: those steps are run again. A last line that was cut off goes too."""
        target = self.folder / "curves.jsonl"
        if not target.exists():
            return
        kept: list[str] = []
        for line in target.read_text().splitlines():
            try:
                if json.loads(line)["step"] <= step:
                    kept.append(line + "\n")
            except (ValueError, KeyError, TypeError):
                continue
        torn = target.with_suffix(".torn")
        torn.write_text("".join(kept))
        os.replace(torn, target)

    def save(self, step: int, state: Mapping[str, Any]) -> None:
        """Write the checkpoint in one move, so that an interruption leaves the old one whole.

        Args:
          step: how far training is.
          state: tensors, numbers, strings, lists and dicts only: it is read back with ``weights_only=True``.
        """
        torch = require("torch", "train")
        self.folder.mkdir(parents=True, exist_ok=True)
        document = {
            "format": CHECKPOINT_FORMAT,
            "recipe": self.recipe,
            "recipe_version": self.recipe_version,
            "seed": self.seed,
            "step": step,
            "commit": training_commit(),
            "versions": versions(),
            **state,
        }
        torn = self.checkpoint_path.with_suffix(".torn")
        torch.save(document, torn)
        os.replace(torn, self.checkpoint_path)

    def resume(self) -> dict[str, Any] | None:
        """Return the checkpoint of this run, None when there is none.

        Raises:
          TrainError: it belongs to another recipe, recipe version or seed.
        """
        if not self.checkpoint_path.exists():
            return None
        found = load_checkpoint(self.checkpoint_path)
        for key, wanted in (("recipe", self.recipe), ("recipe_version", self.recipe_version), ("seed", self.seed)):
            if found[key] != wanted:
                raise TrainError(
                    f"{self.checkpoint_path} has {key} {found[key]!r}, this run {wanted!r}. "
                    "Choose another folder, or delete the old run."
                )
        return found


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint on the CPU; nothing in it is executed.

    Raises:
      TrainError: no such file, torn, or of another format.
    """
    torch = require("torch", "train")
    if not path.exists():
        raise TrainError(f"No checkpoint at {path}. Train first: embodied train RECIPE --out FOLDER.")
    try:
        document = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise TrainError(f"{path} cannot be read as a checkpoint ({type(error).__name__}): is it torn?") from error
    if not isinstance(document, dict) or document.get("format") != CHECKPOINT_FORMAT:
        got = document.get("format") if isinstance(document, dict) else type(document).__name__
        raise TrainError(f"{path} has checkpoint format {got!r}, expected {CHECKPOINT_FORMAT}. Train again.")
    return document


def versions() -> dict[str, str]:
    """Return the versions that shaped a run."""
    found = {"python": platform.python_version()}
    for name in _VERSIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
