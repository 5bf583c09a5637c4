"""Training of the detector: dense labels of the kinematic stage, colours and light varied per sample."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from embodied.seeding import stream_rng
from embodied.train.planner.kinematic import KNOWN_PX
from embodied.train.planner.network import Detector

_POSITIVE_WEIGHT = 3.0


@dataclass(frozen=True, slots=True)
class Frames:
    """(N, H, W, 3) uint8 images, (N, rows, columns) uint32 bit sets of things, (N, things) pixels, (N,) episodes."""

    images: NDArray[np.uint8]
    cells: NDArray[np.uint32]
    pixels: NDArray[np.uint16]
    episodes: NDArray[np.int64]


def read_files(folder: Path) -> list[dict[str, NDArray[Any]]]:
    """Read all finished files of a data folder, in order of their seeds."""
    paths = sorted(folder.glob("*.npz"), key=lambda p: int(p.stem))
    out = []
    for path in paths:
        with np.load(path) as file:
            out.append({k: file[k] for k in file.files})
    return out


def frames_of(files: list[dict[str, NDArray[Any]]]) -> Frames:
    """Join the frames of files."""
    lengths = np.concatenate([f["lengths"] for f in files])
    return Frames(
        np.concatenate([f["images"] for f in files]),
        np.concatenate([f["cells"] for f in files]),
        np.concatenate([f["pixels"] for f in files]),
        np.repeat(np.arange(len(lengths)), lengths),
    )


def dense_labels(cells: NDArray[np.uint32], num_things: int) -> Tensor:
    """Return (N, things, rows, columns) float labels of bit sets."""
    bits = (cells[:, None] >> np.arange(num_things, dtype=np.uint32)[None, :, None, None]) & np.uint32(1)
    return torch.from_numpy(bits.astype(np.float32))


def lit(images: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return images under another light: gain, tint, a gradient across the image, and pixel noise."""
    count, rows, columns = images.shape[:3]
    gain = rng.normal(1.0, 0.12, (count, 1, 1, 1)) * rng.normal(1.0, 0.04, (count, 1, 1, 3))
    slope = rng.normal(0.0, 0.1, (count, 2, 1, 1, 1))
    y, x = np.linspace(-1, 1, rows)[None, :, None, None], np.linspace(-1, 1, columns)[None, None, :, None]
    light = (gain * (1.0 + slope[:, 0] * y + slope[:, 1] * x)).astype(np.float32)
    noise = rng.normal(0.0, 4.0, (1, rows, columns, 3)).astype(np.float32)
    return np.clip(images * light + noise, 0.0, 255.0).astype(np.uint8)


def detector_loss(detector: Detector, images: NDArray[np.uint8], cells: NDArray[np.uint32],
                  pixels: NDArray[np.uint16]) -> Tensor:  # fmt: skip
    """Return the loss of cells and of whole images; things of a few pixels count as neither shown nor hidden."""
    scores = detector(torch.from_numpy(images))
    labels = dense_labels(cells, scores.shape[1])
    weight = 1.0 + (_POSITIVE_WEIGHT - 1.0) * labels
    per_cell = functional.binary_cross_entropy_with_logits(scores, labels, weight, reduction="sum")
    whole = scores.flatten(2).amax(dim=2)
    shown = torch.from_numpy((pixels >= KNOWN_PX).astype(np.float32))
    sure = torch.from_numpy(((pixels >= KNOWN_PX) | (pixels < KNOWN_PX // 4)).astype(np.float32))
    per_image = (functional.binary_cross_entropy_with_logits(whole, shown, reduction="none") * sure).sum()
    return (0.2 * per_cell + per_image) / len(images)


class DetectorTrainer:
    """Gradient steps over frames that may grow between calls.

    Args:
      detector: what learns.
      seed: of order and light.
      steps: how many there will be, for the learning rate.
      batch_size: images per step.
      learning_rate: peak of the cosine.
    """

    def __init__(
        self, detector: Detector, seed: int, steps: int, batch_size: int = 24, learning_rate: float = 4e-3
    ) -> None:
        self.detector, self.seed, self.steps = detector, seed, steps
        self.batch_size, self.learning_rate = batch_size, learning_rate
        self.ema = {k: v.detach().clone() for k, v in detector.state_dict().items()}
        self.done = 0
        self._optimizer = torch.optim.AdamW(detector.parameters(), lr=1e-3, weight_decay=1e-4)

    def run(self, frames: Frames, count: int) -> Iterator[float]:
        """Take some steps; yield the loss of each."""
        self.detector.train()
        for _ in range(count):
            rng = stream_rng(self.seed, "policy", "detector", self.done)
            share = self.done / max(self.steps, 1)
            rate = self.learning_rate * min(1.0, (self.done + 1) / 50) * (0.02 + 0.49 * (1 + np.cos(np.pi * share)))
            for group in self._optimizer.param_groups:
                group["lr"] = float(rate)
            picks = rng.integers(len(frames.images), size=self.batch_size)
            loss = detector_loss(
                self.detector, lit(frames.images[picks], rng), frames.cells[picks], frames.pixels[picks]
            )
            self._optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.detector.parameters(), 5.0)
            self._optimizer.step()
            self.done += 1
            decay = min(0.995, self.done / (self.done + 10))
            with torch.no_grad():
                for k, v in self.detector.state_dict().items():
                    if v.is_floating_point():
                        self.ema[k].lerp_(v, 1.0 - decay)
            yield float(loss.detach())


@torch.no_grad()
def visible_scores(detector: Detector, images: NDArray[np.uint8], batch_size: int = 64) -> NDArray[np.float32]:
    """Return (N, things) scores of whole images."""
    detector.eval()
    parts = [
        detector(torch.from_numpy(images[i : i + batch_size])).flatten(2).amax(dim=2).numpy()
        for i in range(0, len(images), batch_size)
    ]
    return np.concatenate(parts)


def quality(scores: NDArray[np.float32], pixels: NDArray[np.uint16]) -> dict[str, float]:
    """Return how well scores above 0 say what shows at least the pixels that make it known."""
    shown, said = pixels >= KNOWN_PX, scores > 0.0
    clear = shown | (pixels < KNOWN_PX // 4)
    found = float((said & shown).sum() / max(shown.sum(), 1))
    return {"recall": found, "precision": float((said & shown & clear).sum() / max((said & clear).sum(), 1))}
