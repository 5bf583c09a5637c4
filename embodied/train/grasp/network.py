"""The policy's network: a small CNN on the camera's image, joined with proprioception, puts out a chunk of actions.

The idea of chunks is from T. Zhao et al., "Learning Fine-Grained Bimanual Manipulation with Low-Cost Hardware", RSS
(2023); there is no transformer here, a multi-layer perceptron decodes the chunk.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from embodied.train.grasp.teacher import CLOSE_N, OPEN_M, OPEN_N
from embodied.train.modules import Normalizer
from embodied_deploy.package.contract import PolicyContract

Array = NDArray[np.floating]

NUM_SEEN = 160
"""Numbers that the image becomes."""
_LOGIT_GAIN = 3.0  # sharpens the gripper's decision: between open and closed lies nothing useful


class ActionLimiter(nn.Module):
    """From the network's numbers to actions in physical units inside the robot's limits; never quantized.

    Joint targets are the present positions plus an offset in units of ``scale``; a logit of closing becomes opening
    and force.

    Args:
      low: (9,) smallest value of each action entry.
      high: (9,) largest.
      scale: (horizon, 7) spread of the offsets, rad.
    """

    def __init__(self, low: Tensor, high: Tensor, scale: Tensor) -> None:
        super().__init__()
        self.register_buffer("low", low.clone())
        self.register_buffer("high", high.clone())
        self.register_buffer("scale", scale.clone())

    def forward(self, joint_pos_rad: Tensor, offsets: Tensor, logits: Tensor) -> Tensor:
        """Return (b, horizon, 9) actions of (b, 7) positions, (b, horizon, 7) offsets and (b, horizon) logits."""
        low, high = cast("Tensor", self.low), cast("Tensor", self.high)
        arm = joint_pos_rad[:, None] + offsets * cast("Tensor", self.scale)
        closed = torch.sigmoid(_LOGIT_GAIN * logits)[..., None]
        width, force = OPEN_M * (1.0 - closed), OPEN_N + (CLOSE_N - OPEN_N) * closed
        return torch.maximum(torch.minimum(torch.cat([arm, width, force], dim=2), high), low)


class GraspNetwork(nn.Module):
    """Image (b, 64, 64, 3) uint8 and proprioception (b, 10) to a chunk (b, horizon, 9) in physical units.

    Args:
      contract: what the package promises; horizon, sizes and limits are read from it.
      mean: (10,) of proprioception.
      std: (10,) of proprioception.
      scale: (horizon, 7) spread of the joint offsets, rad.
    """

    def __init__(self, contract: PolicyContract, mean: Array, std: Array, scale: Array) -> None:
        super().__init__()
        self.contract = contract
        entries, (self.horizon, _) = contract.outputs[0].entries, contract.outputs[0].shape
        size = contract.inputs[1].shape[0]
        self.normalizer = Normalizer(mean, std, limit=5.0)
        limits = torch.tensor([[e.low for e in entries], [e.high for e in entries]])
        self.limiter = ActionLimiter(limits[0], limits[1], torch.as_tensor(scale, dtype=torch.float32))
        self.eye = nn.Sequential(
            nn.Conv2d(3, 16, 5, 2, 2), nn.ReLU(),
            nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
            nn.Conv2d(32, 48, 3, 2, 1), nn.ReLU(),
            nn.Conv2d(48, 48, 3, 1, 1), nn.ReLU(),
            nn.Flatten(), nn.Linear(48 * 8 * 8, NUM_SEEN), nn.ReLU(),
        )  # fmt: skip
        self.body = nn.Sequential(nn.Linear(NUM_SEEN + size, 256), nn.ReLU(), nn.Linear(256, 192), nn.ReLU())
        self.head = nn.Linear(192, self.horizon * 8)
        self.where = nn.Linear(NUM_SEEN + size, 5)

    def features(self, image: Tensor, proprio: Tensor) -> Tensor:
        """Return (b, NUM_SEEN + 10) what the network sees and feels."""
        pixels = image.permute(0, 3, 1, 2).to(torch.float32) * (1.0 / 255.0) - 0.5
        return torch.cat([self.eye(pixels), self.normalizer(proprio)], dim=1)

    def raw(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return scaled joint offsets (b, horizon, 7) and logits (b, horizon) of closing the gripper."""
        out = self.head(self.body(features)).reshape(-1, self.horizon, 8)
        return out[..., :7], out[..., 7]

    def locate(self, features: Tensor) -> Tensor:
        """Return (b, 5) where the thing is (dm, and turn); a second task that only training has."""
        return self.where(features)

    def forward(self, image: Tensor, proprio: Tensor) -> tuple[Tensor]:
        """Return the chunk of actions (b, horizon, 9)."""
        offsets, logits = self.raw(self.features(image, proprio))
        return (self.limiter(proprio[:, 1:8], offsets, logits),)
