"""Statistics of the columns of a dataset, as ``meta/stats.json`` and the episode table hold them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

QUANTILES = {"q01": 0.01, "q10": 0.10, "q50": 0.50, "q90": 0.90, "q99": 0.99}
Stats = dict[str, Any]
"""Name of a statistic to nested lists of the shape of one frame; ``count`` to a list of one number."""


def number_stats(values: NDArray[Any]) -> Stats:
    """Return the statistics of (N, …) numbers over the first axis, N at least 1."""
    numbers = np.asarray(values, dtype=np.float64)
    stats: Stats = {
        "min": numbers.min(axis=0).tolist(),
        "max": numbers.max(axis=0).tolist(),
        "mean": numbers.mean(axis=0).tolist(),
        "std": numbers.std(axis=0).tolist(),
        "count": [len(numbers)],
    }
    quantiles = np.quantile(numbers, list(QUANTILES.values()), axis=0)
    return stats | {name: row.tolist() for name, row in zip(QUANTILES, quantiles, strict=True)}


class ColourHistogram:
    """Counts of the 256 levels of each colour: exact statistics of any number of pictures in little memory."""

    def __init__(self) -> None:
        self.counts = np.zeros((3, 256), dtype=np.int64)
        self.num_images = 0

    def add(self, images: Iterable[NDArray[np.uint8]]) -> None:
        """Count (height, width, 3) pictures."""
        for image in images:
            for channel in range(3):
                self.counts[channel] += np.bincount(image[:, :, channel].ravel(), minlength=256)
            self.num_images += 1

    def merge(self, other: ColourHistogram) -> None:
        """Add the counts of another histogram."""
        self.counts += other.counts
        self.num_images += other.num_images

    def stats(self) -> Stats:
        """Return statistics per colour in [0, 1], shape (3, 1, 1); ``count`` is the number of pictures."""
        levels = np.arange(256) / 255.0
        total = self.counts.sum(axis=1)
        mean = self.counts @ levels / total
        std = np.sqrt(np.maximum(self.counts @ levels**2 / total - mean**2, 0.0))
        below = np.cumsum(self.counts, axis=1)
        quantiles = {
            name: [levels[int(np.searchsorted(below[c], q * total[c]))] for c in range(3)]
            for name, q in QUANTILES.items()
        }
        seen = [np.flatnonzero(self.counts[c]) for c in range(3)]
        rows = {
            "min": [levels[s[0]] for s in seen],
            "max": [levels[s[-1]] for s in seen],
            "mean": mean.tolist(),
            "std": std.tolist(),
            **quantiles,
        }
        return {name: [[[float(v)]] for v in row] for name, row in rows.items()} | {"count": [self.num_images]}
