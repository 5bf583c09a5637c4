"""Building blocks of policies that export well: no fused recurrent cells, no data-dependent shapes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Squash = Literal["tanh", "clip"]
_ACTIVATIONS: dict[str, type[nn.Module]] = {"elu": nn.ELU, "relu": nn.ReLU, "tanh": nn.Tanh}
_STD_FLOOR = 1e-3  # an input that never changed in the data is passed on small instead of being blown up


class Normalizer(nn.Module):
    """``(x - mean) / std`` per channel, kept inside ``±limit`` so that a strange input cannot saturate everything.

    A policy holds it as the submodule ``normalizer``: the exporter never quantizes or folds a module of this name.

    Args:
      mean: (n,) in the units of the channels.
      std: (n,) spreads, at least 0; values below 1e-3 count as 1e-3.
      limit: largest magnitude that passes.

    Raises:
      ValueError: shapes differ or a value is not finite.
    """

    def __init__(self, mean: NDArray[np.floating], std: NDArray[np.floating], limit: float = 10.0) -> None:
        super().__init__()
        mean, std = np.asarray(mean, dtype=np.float32), np.asarray(std, dtype=np.float32)
        if mean.shape != std.shape or mean.ndim != 1:
            raise ValueError(f"Normalizer: mean {mean.shape} and std {std.shape} must be vectors of one size.")
        if not (np.isfinite(mean).all() and np.isfinite(std).all()):
            raise ValueError("Normalizer: mean and std must be finite; look for NaN in the data they come from.")
        self.limit = float(limit)
        self.register_buffer("mean", torch.from_numpy(mean.copy()))
        self.register_buffer("std", torch.from_numpy(np.maximum(std, _STD_FLOOR)))

    @classmethod
    def of(cls, values: NDArray[np.floating], limit: float = 10.0) -> Normalizer:
        """Measure the normaliser of (N, n) samples."""
        values = np.asarray(values, dtype=np.float64).reshape(-1, np.shape(values)[-1])
        return cls(values.mean(axis=0), values.std(axis=0), limit)

    def forward(self, x: Tensor) -> Tensor:
        """Return (…, n) normalised values."""
        return torch.clamp((x - cast("Tensor", self.mean)) / cast("Tensor", self.std), -self.limit, self.limit)


class Limiter(nn.Module):
    """From network outputs around [-1, 1] to an action range in physical units.

    ``middle + half * tanh(x)`` or ``clamp(middle + half * x, low, high)``. A policy holds it as the submodule
    ``limiter``.

    Args:
      low: (n,) lower limits in the units of the action.
      high: (n,) upper limits, above ``low`` and finite.
      squash: ``tanh`` or ``clip``.

    Raises:
      ValueError: a limit is not finite or the range is empty.
    """

    def __init__(self, low: NDArray[np.floating], high: NDArray[np.floating], squash: Squash = "tanh") -> None:
        super().__init__()
        low, high = np.asarray(low, dtype=np.float32), np.asarray(high, dtype=np.float32)
        if low.shape != high.shape or not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
            raise ValueError(f"Limiter: limits must be finite with low < high, got {low.tolist()} and {high.tolist()}.")
        self.squash = squash
        self.register_buffer("low", torch.from_numpy(low.copy()))
        self.register_buffer("high", torch.from_numpy(high.copy()))

    def forward(self, x: Tensor) -> Tensor:
        """Return (…, n) actions in physical units."""
        low, high = cast("Tensor", self.low), cast("Tensor", self.high)
        middle, half = (high + low) * 0.5, (high - low) * 0.5
        if self.squash == "tanh":
            return middle + half * torch.tanh(x)
        return torch.minimum(torch.maximum(middle + half * x, low), high)


class MlpTrunk(nn.Sequential):
    """Linear layers with an activation after each hidden one, none after the last.

    Args:
      sizes: widths from input to output, for instance ``(25, 64, 64, 4)``.
      activation: ``elu``, ``relu`` or ``tanh``.
      final_gain: gain of the last layer's orthogonal start; small values begin near zero.
    """

    def __init__(self, sizes: Sequence[int], activation: str = "elu", final_gain: float = 1.0) -> None:
        layers: list[nn.Module] = []
        for index, (a, b) in enumerate(itertools.pairwise(sizes)):
            linear = nn.Linear(a, b)
            is_last = index == len(sizes) - 2
            nn.init.orthogonal_(linear.weight, final_gain if is_last else 2**0.5)
            nn.init.zeros_(linear.bias)
            layers.append(linear)
            if not is_last:
                layers.append(_ACTIVATIONS[activation]())
        super().__init__(*layers)


class GruCell(nn.Module):
    """A gated recurrent unit written out in linear layers, so that exporters quantize it like any other.

    ``r = σ(W_r x + U_r h)``, ``z = σ(W_z x + U_z h)``, ``n = tanh(W_n x + r ∘ (U_n h))``, ``h' = (1 - z) n + z h``
    (Cho et al. 2014, in the form with the reset gate after the product, as in ``torch.nn.GRUCell``).

    Args:
      num_inputs: width of x.
      num_hidden: width of h.
    """

    def __init__(self, num_inputs: int, num_hidden: int) -> None:
        super().__init__()
        self.num_hidden = num_hidden
        self.from_input = nn.Linear(num_inputs, 3 * num_hidden)
        self.from_hidden = nn.Linear(num_hidden, 3 * num_hidden)
        for linear in (self.from_input, self.from_hidden):
            nn.init.uniform_(linear.weight, -(num_hidden**-0.5), num_hidden**-0.5)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor, hidden: Tensor) -> Tensor:
        """Return the (B, num_hidden) next state of (B, num_inputs) inputs and (B, num_hidden) states."""
        n = self.num_hidden
        a, b = self.from_input(x), self.from_hidden(hidden)
        reset = torch.sigmoid(a[:, :n] + b[:, :n])
        keep = torch.sigmoid(a[:, n : 2 * n] + b[:, n : 2 * n])
        fresh = torch.tanh(a[:, 2 * n :] + reset * b[:, 2 * n :])
        return (1.0 - keep) * fresh + keep * hidden


class CnnTrunk(nn.Module):
    """Strided 3x3 convolutions over uint8 images, scaled to [0, 1] inside the graph.

    Args:
      height_px: rows of the image.
      width_px: columns of the image.
      channels: of the layers; each halves the image.
      num_features: width of the output.
    """

    def __init__(
        self, height_px: int, width_px: int, channels: Sequence[int] = (16, 32, 32, 32), num_features: int = 64
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        rows, columns, depth = height_px, width_px, 3
        for width in channels:
            layers += [nn.Conv2d(depth, width, 3, stride=2, padding=1), nn.ReLU()]
            rows, columns, depth = (rows + 1) // 2, (columns + 1) // 2, width
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(depth * rows * columns, num_features)

    def forward(self, image: Tensor) -> Tensor:
        """Return (B, num_features) of (B, H, W, 3) uint8 images."""
        x = image.permute(0, 3, 1, 2).to(torch.float32) * (1.0 / 255.0)
        return torch.relu(self.head(self.layers(x).flatten(1)))


class ChunkHead(nn.Module):
    """A chunk of actions from features, before the limiter.

    Args:
      num_features: width of the input.
      horizon: actions in the chunk.
      num_actions: entries of an action.
    """

    def __init__(self, num_features: int, horizon: int, num_actions: int) -> None:
        super().__init__()
        self.horizon, self.num_actions = horizon, num_actions
        self.linear = nn.Linear(num_features, horizon * num_actions)

    def forward(self, features: Tensor) -> Tensor:
        """Return (B, horizon, num_actions) of (B, num_features)."""
        return self.linear(features).reshape(-1, self.horizon, self.num_actions)
