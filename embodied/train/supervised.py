"""The shared loop of supervised training: AdamW, cosine schedule, averaged weights, held-out groups, exact resumption.

Nothing random is carried from step to step: order, augmentation and dropout of a step follow from (seed, step), so a
run that was interrupted and resumed ends in the same bits as one that was not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from embodied.seeding import stream_rng, stream_seed
from embodied.train.run import TrainError, TrainRun

Indices = NDArray[np.int64]
Batch = dict[str, Tensor]
Loss = Callable[[nn.Module, Batch], Mapping[str, Tensor]]
"""Scalars of a batch; the one named ``loss`` is minimised, the others are curves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisedConfig:
    """How a supervised run goes.

    Attributes:
      batch_size: samples per step; smaller data sets give smaller batches.
      learning_rate: peak, reached after the warm-up, falling to a hundredth of it on half a cosine.
      weight_decay: decoupled, on weight matrices only.
      warmup_ratio: share of the steps with a rising rate.
      ema_decay: of the averaged weights, which are the ones evaluated and exported.
      grad_norm_max: gradients above this norm are scaled down to it.
      holdout_ratio: share of the groups that is never trained on.
      evaluate_every: steps between two held-out losses.
      save_every: steps between two checkpoints.
    """

    batch_size: int = 256
    learning_rate: float = 1e-3
    weight_decay: float = 1e-4
    warmup_ratio: float = 0.05
    ema_decay: float = 0.995
    grad_norm_max: float = 1.0
    holdout_ratio: float = 0.1
    evaluate_every: int = 200
    save_every: int = 500


class Samples(Protocol):
    """What is learnt from.

    Attributes:
      groups: (N,) group of each sample; whole groups (episodes) are held out.
    """

    groups: Indices

    def batch(self, indices: Indices, rng: np.random.Generator | None) -> Batch:
        """Return the tensors of some samples; ``rng`` is given in training only, for augmentation."""
        ...


class ArraySamples:
    """Samples that lie in memory.

    Args:
      arrays: name to (N, …); float64 becomes float32, images stay uint8.
      groups: (N,) group of each sample; each sample is its own group by default.

    Raises:
      TrainError: there is none, sizes differ, or a number is not finite.
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]], groups: Indices | None = None) -> None:
        sizes = {name: len(a) for name, a in arrays.items()}
        count = next(iter(sizes.values()), 0)
        if count == 0 or set(sizes.values()) != {count}:
            raise TrainError(f"Samples must have one common number of rows above 0, got {sizes}.")
        for name, array in arrays.items():
            if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
                raise TrainError(f"Samples {name!r} hold NaN or infinities; drop those episodes or mend the recorder.")
        self.groups = np.arange(count) if groups is None else np.asarray(groups, dtype=np.int64)
        if self.groups.shape != (count,):
            raise TrainError(f"Samples: groups have shape {self.groups.shape}, expected ({count},).")
        self._tensors = {
            name: torch.from_numpy(np.ascontiguousarray(a, dtype=np.float32 if a.dtype == np.float64 else None))
            for name, a in arrays.items()
        }

    def batch(self, indices: Indices, rng: np.random.Generator | None) -> Batch:
        """Return some rows of every array."""
        del rng
        rows = torch.from_numpy(indices)
        return {name: tensor[rows] for name, tensor in self._tensors.items()}


def train_supervised(
    run: TrainRun,
    model: nn.Module,
    samples: Samples,
    loss: Loss,
    config: SupervisedConfig | None = None,
    extra: Mapping[str, Any] | None = None,
) -> None:
    """Train ``model`` for ``run.steps`` steps, from the checkpoint of the run when there is one.

    The checkpoint holds ``model``, ``ema`` (averaged weights, buffers included), ``optimizer``, ``total_steps`` and
    what is in ``extra``. ``model`` ends with the averaged weights.

    Args:
      run: folder, seed and number of steps.
      model: parameters drawn by the caller from ``run.seed`` (:func:`seeded_module`).
      samples: what is learnt from.
      loss: see :data:`Loss`.
      config: rates and sizes.
      extra: goes into the checkpoint as it is, for instance widths and the hash of the dataset.

    Raises:
      TrainError: the checkpoint was made for another number of steps or another model, or a loss is not finite.
    """
    config = config or SupervisedConfig()
    train, held_out = split_groups(samples.groups, config.holdout_ratio, run.seed)
    ema = {name: value.detach().clone() for name, value in model.state_dict().items()}
    optimizer = torch.optim.AdamW(_parameter_groups(model, config.weight_decay), lr=config.learning_rate)
    start = _restore(run, model, ema, optimizer)
    run.rewind(start)
    with one_thread():
        for step in range(start, run.steps):
            rate = learning_rate(step, run.steps, config)
            for group in optimizer.param_groups:
                group["lr"] = rate
            torch.manual_seed(stream_seed(run.seed, "policy", "dropout", step))
            indices = batch_indices(train, config.batch_size, step, run.seed)
            model.train()
            values = loss(model, samples.batch(indices, stream_rng(run.seed, "policy", "augment", step)))
            total = values["loss"]
            if not torch.isfinite(total):
                raise TrainError(f"{run.recipe}: the loss is {total.item()} in step {step}; lower the learning rate.")
            optimizer.zero_grad(set_to_none=True)
            total.backward()
            nn.utils.clip_grad_norm_(model.parameters(), config.grad_norm_max)
            optimizer.step()
            _average(ema, model, min(config.ema_decay, (1 + step) / (10 + step)))
            done = step + 1
            if done % config.evaluate_every == 0 or done == run.steps:
                curves = {f"train_{k}": v.item() for k, v in values.items()}
                curves |= {f"held_out_{k}": v for k, v in evaluate(model, ema, samples, held_out, loss, config).items()}
                run.log(done, learning_rate=rate, **curves)
            if done % config.save_every == 0 or done == run.steps:
                state = {"model": model.state_dict(), "ema": ema, "optimizer": optimizer.state_dict()}
                run.save(done, {**(extra or {}), **state, "total_steps": run.steps})
    model.load_state_dict(ema)
    model.eval()


def evaluate(
    model: nn.Module,
    weights: Mapping[str, Tensor],
    samples: Samples,
    indices: Indices,
    loss: Loss,
    config: SupervisedConfig,
) -> dict[str, float]:
    """Return the mean losses of some samples under other weights; empty when there are no samples."""
    if not len(indices):
        return {}
    own = {name: value.detach().clone() for name, value in model.state_dict().items()}
    model.load_state_dict(weights)
    model.eval()
    sums: dict[str, float] = {}
    with torch.no_grad():
        for at in range(0, len(indices), config.batch_size):
            part = indices[at : at + config.batch_size]
            for name, value in loss(model, samples.batch(part, None)).items():
                sums[name] = sums.get(name, 0.0) + value.item() * len(part)
    model.load_state_dict(own)
    return {name: value / len(indices) for name, value in sums.items()}


def split_groups(groups: Indices, holdout_ratio: float, seed: int) -> tuple[Indices, Indices]:
    """Return the indices to train on and those held out; a group is never on both sides.

    With two groups or more at least one is held out, if ``holdout_ratio`` is above 0.
    """
    names = np.unique(groups)
    count = 0 if holdout_ratio <= 0 or len(names) < 2 else max(1, round(holdout_ratio * len(names)))
    chosen = stream_rng(seed, "policy", "split").permutation(names)[: min(count, len(names) - 1)]
    is_held_out = np.isin(groups, chosen)
    return np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)


def batch_indices(train: Indices, batch_size: int, step: int, seed: int) -> Indices:
    """Return the samples of a step: each epoch is a new permutation, cut into batches of one size."""
    size = min(batch_size, len(train))
    per_epoch = len(train) // size
    epoch, at = divmod(step, per_epoch)
    order = _epoch_order(len(train), epoch, seed)
    return train[order[at * size : (at + 1) * size]]


def learning_rate(step: int, total_steps: int, config: SupervisedConfig) -> float:
    """Return the rate of a step: linear warm-up, then half a cosine down to a hundredth."""
    warmup = max(1, round(config.warmup_ratio * total_steps))
    if step < warmup:
        return config.learning_rate * (step + 1) / warmup
    share = (step - warmup) / max(1, total_steps - warmup)
    return config.learning_rate * (0.01 + 0.99 * 0.5 * (1.0 + math.cos(math.pi * share)))


def seeded_module(build: Callable[[], nn.Module], seed: int) -> nn.Module:
    """Build a module whose parameters follow from ``seed`` alone; the global generator stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream_seed(seed, "policy", "weights"))
        return build()


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread, so that sums have one order; the global generator is put back afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        torch.set_num_threads(before)


_ORDERS: dict[tuple[int, int, int], Indices] = {}


def _epoch_order(count: int, epoch: int, seed: int) -> Indices:
    key = (count, epoch, seed)
    if key not in _ORDERS:
        _ORDERS.clear()  # only the present epoch is of use
        _ORDERS[key] = stream_rng(seed, "policy", "epoch", epoch).permutation(count)
    return _ORDERS[key]


def _restore(run: TrainRun, model: nn.Module, ema: dict[str, Tensor], optimizer: torch.optim.Optimizer) -> int:
    found = run.resume()
    if found is None:
        return 0
    if found.get("total_steps") != run.steps:
        raise TrainError(
            f"{run.checkpoint_path} is of a run over {found.get('total_steps')} steps, this one has {run.steps}: the "
            "learning rates would not fit. Give the same --steps, or another folder."
        )
    try:
        model.load_state_dict(found["model"])
        optimizer.load_state_dict(found["optimizer"])
    except (KeyError, ValueError, RuntimeError) as error:
        raise TrainError(f"{run.checkpoint_path} holds another model: {error}. Choose another folder.") from error
    for name, value in found["ema"].items():
        ema[name].copy_(value)
    return int(found["step"])


def _average(ema: dict[str, Tensor], model: nn.Module, decay: float) -> None:
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if value.is_floating_point():
                ema[name].lerp_(value, 1.0 - decay)
            else:
                ema[name].copy_(value)


def _parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    matrices = [p for p in model.parameters() if p.requires_grad and p.ndim > 1]
    others = [p for p in model.parameters() if p.requires_grad and p.ndim <= 1]
    return [
        {"params": group, "weight_decay": decay} for group, decay in ((matrices, weight_decay), (others, 0.0)) if group
    ]
