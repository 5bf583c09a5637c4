"""A recipe that is done in seconds: hold a point mass at the origin by an observation of mixed scales."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from embodied.export.options import ExportOptions, GateLimits
from embodied.seeding import stream_rng
from embodied.train.contract import Recipe, Score
from embodied_deploy.package.load import load_package
from embodied_deploy.policy.session import PolicySession
from tests.export_policies import SCALES, Mlp, fit, torch

STEPS = 40


def observe(state):
    """Twelve entries of 0.03 to 30 that follow from position and velocity, 4 axes each."""
    return (np.concatenate([state, state[:4]]) * SCALES).astype(np.float32)


def rollout(seed, act):
    """Run an episode; return its observations and the final distance."""
    state = stream_rng(seed, "start").uniform(-1.0, 1.0, 8)
    seen = []
    for _ in range(STEPS):
        seen.append(observe(state))
        action = act(seen[-1])
        state[:4] += 0.1 * state[4:]
        state[4:] += 0.1 * action
    return np.stack(seen), float(np.abs(state[:4]).max())


class HoldPoint(Recipe):
    """Learn a PD law."""

    id = "hold-point"
    version = "1"
    summary = "hold a point mass"
    default_steps = 400
    export_options = ExportOptions(exclude=("body.2",), limits=GateLimits(mean_of_std=0.5))

    def train(self, run):
        torch.manual_seed(run.seed)
        torch.set_num_threads(1)
        policy = Mlp()
        state = torch.rand(2048, 8) * 3 - 1.5
        inputs = torch.cat([state, state[:, :4]], dim=1) * torch.as_tensor(SCALES, dtype=torch.float32)
        fit(policy, (inputs,), torch.clamp(-2.0 * state[:, :4] - 2.0 * state[:, 4:], -1.9, 1.9), run.steps)
        run.save(run.steps, {"weights": policy.state_dict()})

    def policy(self, checkpoint):
        policy = Mlp()
        policy.load_state_dict(checkpoint["weights"])
        return policy

    def calibration(self, policy, count, seed):
        def act(seen):
            with torch.no_grad():
                return policy(torch.from_numpy(seen[None]))[0][0].numpy()

        episodes = [rollout(10_000 + seed * 1000 + i, act)[0] for i in range(-(-count // STEPS))]
        return {"observation": np.concatenate(episodes)[:count]}

    def evaluate(self, package, seeds, workers=1):
        session = PolicySession(load_package(Path(package)))

        def act(seen):
            return session.infer({"observation": seen[None]})["action"][0].astype(np.float64)

        ends = [rollout(seed, act)[1] for seed in seeds]
        return [Score(seed=s, value=float(end < 0.25), steps=STEPS) for s, end in zip(seeds, ends, strict=True)]


HOLD_POINT = HoldPoint()
