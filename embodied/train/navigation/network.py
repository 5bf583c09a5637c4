"""The networks: sectors and goal to speed and turning rate, with a memory (GRU) or without (MLP)."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from embodied.train.modules import GruCell, Limiter, MlpTrunk, Normalizer
from embodied.train.navigation.promise import NUM_HIDDEN, NUM_INPUTS
from embodied_deploy.package.contract import PolicyContract

Array = NDArray[np.floating]
_NUM_FEATURES = 96


class NavigationGru(nn.Module):
    """Observation (b, 52) and hidden state (b, 64) to action (b, 2) and the next hidden state.

    Args:
      contract: what the package promises; action limits are read from it.
      mean: (52,) of the observations.
      std: (52,) of the observations.
    """

    def __init__(self, contract: PolicyContract, mean: Array, std: Array) -> None:
        super().__init__()
        self.contract = contract
        self.normalizer = Normalizer(mean, std, limit=5.0)
        self.limiter = _limiter(contract)
        self.encoder = MlpTrunk((NUM_INPUTS, 128, _NUM_FEATURES), "relu", final_gain=2**0.5)
        self.memory = GruCell(_NUM_FEATURES, NUM_HIDDEN)
        self.head = MlpTrunk((_NUM_FEATURES + NUM_HIDDEN, 64, 2), "relu", final_gain=0.1)

    def forward(self, observation: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Return the action in physical units and the next hidden state."""
        features = torch.relu(self.encoder(self.normalizer(observation)))
        hidden = self.memory(features, hidden)
        return self.limiter(self.head(torch.cat([features, hidden], dim=1))), hidden

    def sequence(self, observations: Tensor) -> Tensor:
        """Return actions (b, t, 2) of observations (b, t, 52), the memory empty at the first."""
        features = torch.relu(self.encoder(self.normalizer(observations)))
        # The fused kernel computes what the cell does, step by step, in half the time; it is not in the graph.
        start, (x, h) = observations.new_zeros(1, len(observations), NUM_HIDDEN), self._memory_layers
        weights = [x.weight, h.weight, x.bias, h.bias]
        states, _ = torch.gru(features, start, weights, True, 1, 0.0, self.training, False, True)
        return self.limiter(self.head(torch.cat([features, states], dim=2)))

    @property
    def _memory_layers(self) -> tuple[nn.Linear, nn.Linear]:
        return self.memory.from_input, self.memory.from_hidden


class NavigationMlp(nn.Module):
    """Observation (b, 52) to action (b, 2): what can be done without a memory.

    Args:
      contract: what the package promises; action limits are read from it.
      mean: (52,) of the observations.
      std: (52,) of the observations.
    """

    def __init__(self, contract: PolicyContract, mean: Array, std: Array) -> None:
        super().__init__()
        self.contract = contract
        self.normalizer = Normalizer(mean, std, limit=5.0)
        self.limiter = _limiter(contract)
        self.trunk = MlpTrunk((NUM_INPUTS, 192, 128, 64, 2), "relu", final_gain=0.1)

    def forward(self, observation: Tensor) -> tuple[Tensor]:
        """Return the action in physical units."""
        return (self.sequence(observation),)

    def sequence(self, observations: Tensor) -> Tensor:
        """Return actions (..., 2) of observations (..., 52)."""
        return self.limiter(self.trunk(self.normalizer(observations)))


NavigationNetwork = NavigationGru | NavigationMlp


def _limiter(contract: PolicyContract) -> Limiter:
    entries = contract.outputs[0].entries
    return Limiter(np.array([e.low for e in entries]), np.array([e.high for e in entries]))
