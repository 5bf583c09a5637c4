"""PPO on training flights by rsl-rl-lib's algorithm, in rounds that each begin anew, so that resumption is exact.

Its runner is left aside: it prints, wants a tracker and calls git; the algorithm alone is quiet.

References:
  J. Schulman et al., "Proximal Policy Optimization Algorithms", arXiv:1707.06347 (2017).
  N. Rudin et al., "Learning to Walk in Minutes Using Massively Parallel Deep Reinforcement Learning", CoRL (2022): the
  adaptive learning rate and the bootstrapping of time-outs as in rsl-rl-lib.
"""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from embodied.errors import require
from embodied.seeding import stream_rng, stream_seed
from embodied.train.flight.batch import FlightTask, TrainingFlights
from embodied.train.run import TrainError, TrainRun
from embodied.train.supervised import one_thread

ROUND_ITERATIONS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PpoConfig:
    """Sizes and rates.

    Attributes:
      num_envs: flights side by side.
      num_steps: steps of each between two updates.
      hidden: widths of the policy.
      critic_hidden: widths of the value function, which stays at home.
      learning_rate: at the start; adapted to the divergence of the updates.
      std: spread of the exploration at the start, in [-1, 1] of the action.
      entropy: weight of the entropy.
    """

    num_envs: int = 1024
    num_steps: int = 32
    hidden: tuple[int, ...] = (64, 64)
    critic_hidden: tuple[int, ...] = (128, 128)
    learning_rate: float = 1e-3
    std: float = 0.35
    entropy: float = 0.0005

    @property
    def iteration_steps(self) -> int:
        """Environment steps of one update."""
        return self.num_envs * self.num_steps


def train_ppo(run: TrainRun, task: FlightTask, config: PpoConfig) -> None:
    """Train for at least ``run.steps`` environment steps, in whole rounds.

    Every round resets flights and generators by (seed, round): a run resumed from the checkpoint of a round goes on in
    the same bits. The checkpoint holds ``actor``, ``critic``, ``optimizer``, ``hidden``, ``task``.

    Raises:
      TrainError: the checkpoint has other widths or another number of flights.
      MissingExtraError: rsl-rl-lib is not installed.
    """
    shape = {"hidden": list(config.hidden), "num_envs": config.num_envs, "num_steps": config.num_steps}
    rounds = -(-run.steps // (config.iteration_steps * ROUND_ITERATIONS))
    with one_thread():
        torch.manual_seed(stream_seed(run.seed, "policy", "weights"))
        flights = TrainingFlights(config.num_envs, task)
        flights.reset(stream_rng(run.seed, "physics", "shape"))
        algorithm = _algorithm(flights, config)
        start = _restore(run, algorithm, shape)
        run.rewind(start * config.iteration_steps * ROUND_ITERATIONS)
        for number in range(start, rounds):
            torch.manual_seed(stream_seed(run.seed, "policy", "round", number))
            rng = stream_rng(run.seed, "physics", "round", number)
            curves = _round(flights, algorithm, rng, config)
            step = (number + 1) * config.iteration_steps * ROUND_ITERATIONS
            run.log(step, **curves)
            saved = {**algorithm.save(), **shape, "task": task, "round": number + 1}
            run.save(step, saved)


def _round(flights: TrainingFlights, algorithm: Any, rng: np.random.Generator, config: PpoConfig) -> dict[str, float]:  # noqa: ANN401
    flights.reset(rng)
    flights.desynchronise(rng)
    observed = _observe(flights)
    sums = dict.fromkeys(("reward", "ended", "cut", "near", "error_m"), 0.0)
    losses: dict[str, float] = {}
    algorithm.train_mode()
    for _ in range(ROUND_ITERATIONS):
        with torch.inference_mode():
            for _ in range(config.num_steps):
                actions = algorithm.act(observed)
                reward, ended, cut = flights.step(actions.numpy().astype(np.float64))
                done = ended | cut
                gap = flights.target_error_m
                for name, value in zip(sums, (reward, ended, cut, gap < 0.15, gap), strict=True):
                    sums[name] += float(np.mean(value))
                if done.any():
                    flights.reset(rng, np.flatnonzero(done))
                observed = _observe(flights)
                extras = {"time_outs": torch.from_numpy(cut.astype(np.float32))}
                algorithm.process_env_step(
                    observed,
                    torch.from_numpy(reward.astype(np.float32)),
                    torch.from_numpy(done.astype(np.uint8)),
                    extras,
                )
            algorithm.compute_returns(observed)
        losses = algorithm.update()
    count = ROUND_ITERATIONS * config.num_steps
    std = float(algorithm.get_policy().output_std.detach().mean())
    curves = {name: value / count for name, value in sums.items()}
    curves |= {"value_loss": losses["value"], "std": std, "learning_rate": algorithm.learning_rate}
    if not all(np.isfinite(v) for v in curves.values()):
        raise TrainError(f"PPO diverged: {curves}. Lower the learning rate.")
    return curves


def _observe(flights: TrainingFlights) -> Any:  # noqa: ANN401 -- tensordict comes with rsl-rl-lib
    tensordict = require("tensordict", "train")
    groups = {"policy": torch.from_numpy(flights.observe()), "privileged": torch.from_numpy(flights.privileged())}
    return tensordict.TensorDict(groups, batch_size=[flights.num_envs])


@dataclass
class _Shape:
    """What the algorithm asks of an environment when it is built."""

    num_envs: int
    num_actions: int


def _algorithm(flights: TrainingFlights, config: PpoConfig) -> Any:  # noqa: ANN401
    module = require("rsl_rl.algorithms", "train")
    gaussian = {"class_name": "GaussianDistribution", "init_std": config.std, "std_type": "log"}
    settings = {
        "num_steps_per_env": config.num_steps,
        "multi_gpu": None,
        "obs_groups": {"actor": ["policy"], "critic": ["policy", "privileged"]},
        "actor": {
            "class_name": "MLPModel",
            "hidden_dims": list(config.hidden),
            "activation": "tanh",
            "obs_normalization": True,
            "distribution_cfg": gaussian,
        },
        "critic": {
            "class_name": "MLPModel",
            "hidden_dims": list(config.critic_hidden),
            "activation": "relu",
            "obs_normalization": True,
        },
        "algorithm": {
            "class_name": "PPO",
            "num_learning_epochs": 3,
            "num_mini_batches": 8,
            "learning_rate": config.learning_rate,
            "entropy_coef": config.entropy,
            "gamma": 0.99,
            "lam": 0.95,
            "desired_kl": 0.01,
        },
    }
    with contextlib.redirect_stdout(io.StringIO()):  # it prints its models
        return module.PPO.construct_algorithm(_observe(flights), _Shape(flights.num_envs, 4), settings, "cpu")


def _restore(run: TrainRun, algorithm: Any, shape: dict[str, Any]) -> int:  # noqa: ANN401
    found = run.resume()
    if found is None:
        return 0
    for key, wanted in shape.items():
        if found.get(key) != wanted:
            raise TrainError(
                f"{run.checkpoint_path} has {key} {found.get(key)!r}, this run {wanted!r}. Choose another folder."
            )
    algorithm.load(found, None, True)
    return int(found["round"])
