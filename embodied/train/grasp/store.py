"""Demonstrations on disk while a run goes on: one file a stage, so that an interrupted run need not drive again."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from embodied.train.grasp.demos import FIELDS, Demos
from embodied.train.run import TrainError


def save_demos(path: Path, demos: Demos) -> None:
    """Write demonstrations in one move."""
    path.parent.mkdir(parents=True, exist_ok=True)
    torn = path.with_suffix(".torn")
    with torn.open("wb") as stream:
        np.savez(stream, **{name: getattr(demos, name) for name in FIELDS})
    os.replace(torn, path)


def load_demos(path: Path) -> Demos | None:
    """Read demonstrations, None where there are none.

    Raises:
      TrainError: the file is torn or something else.
    """
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as file:
            return Demos(**{name: file[name] for name in FIELDS})
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise TrainError(
            f"{path} cannot be read as demonstrations ({error}). Delete it; it is driven again."
        ) from error
