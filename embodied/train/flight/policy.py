"""The flight policy as a graph: normaliser, MLP, thrust limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor, nn

from embodied.robots.quadrotor.spec import QUADROTOR
from embodied.train.flight.channels import PATHS, RATE_HZ, action_spec, observation_spec
from embodied.train.modules import Limiter, MlpTrunk, Normalizer
from embodied.train.run import TrainError
from embodied_controllers.quadrotor.params import CRAZYFLIE_21
from embodied_deploy.package.contract import PolicyContract, Training

_NORMALIZER_EPS = 1e-2  # added to the spread by rsl-rl-lib's EmpiricalNormalization


class FlightPolicy(nn.Module):
    """(B, 22) channels to (B, 4) rotor thrusts [N].

    Args:
      contract: what it promises.
      hidden: widths of the hidden layers.
    """

    def __init__(self, contract: PolicyContract, hidden: tuple[int, ...]) -> None:
        super().__init__()
        self.contract = contract
        low, high = QUADROTOR.action_spec.low, QUADROTOR.action_spec.high
        self.normalizer = Normalizer(np.zeros(len(PATHS)), np.ones(len(PATHS)), limit=20.0)
        self.trunk = MlpTrunk((len(PATHS), *hidden, len(low)), activation="tanh")
        self.limiter = Limiter(low, high, "clip")

    def forward(self, observation: Tensor) -> tuple[Tensor]:
        """Return the thrusts of a batch of observations."""
        return (self.limiter(self.trunk(self.normalizer(observation))),)


def flight_policy(name: str, version: str, checkpoint: Mapping[str, Any]) -> FlightPolicy:
    """Rebuild the policy of a checkpoint.

    Raises:
      TrainError: the checkpoint is of another recipe or holds no actor that fits.
    """
    if not str(checkpoint.get("recipe", "")).startswith(name):
        raise TrainError(f"The checkpoint is of recipe {checkpoint.get('recipe')!r}, expected {name!r}.")
    training = Training(
        recipe=str(checkpoint["recipe"]),
        seed=int(checkpoint["seed"]),
        commit=str(checkpoint.get("commit", "unknown")),
        versions=dict(checkpoint.get("versions", {})),
    )
    policy = FlightPolicy(flight_contract(name, version, training), tuple(checkpoint["hidden"]))
    actor = checkpoint["actor_state_dict"]
    try:
        policy.trunk.load_state_dict({k.removeprefix("mlp."): v for k, v in actor.items() if k.startswith("mlp.")})
        mean, std = actor["obs_normalizer._mean"][0], actor["obs_normalizer._std"][0] + _NORMALIZER_EPS
        policy.normalizer = Normalizer(mean.numpy(), std.numpy(), limit=20.0)
    except (KeyError, RuntimeError, ValueError) as error:
        raise TrainError(f"The checkpoint holds another actor: {error}. Train again.") from error
    return policy.eval()


def flight_contract(name: str, version: str, training: Training) -> PolicyContract:
    """Return what the policy promises and demands."""
    return PolicyContract(
        name=name,
        version=version,
        kind="controller",
        robot=QUADROTOR.kind,
        rate_hz=RATE_HZ,
        inputs=(observation_spec(),),
        outputs=(action_spec(),),
        safe_action=(CRAZYFLIE_21.hover_thrust_n,) * 4,  # blind: "motors off" would be a fall
        latency_budget_s=0.25 / RATE_HZ,
        max_observation_age_s=2.0 / RATE_HZ,
        training=training,
        on_stale="fallback",
        on_late="fallback",
        fallback="quadrotor/position_hold@1",
        parity_atol=1e-6,
    )
