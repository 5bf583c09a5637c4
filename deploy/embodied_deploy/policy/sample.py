"""What a policy is given each period, before it becomes tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from embodied_controllers.contract import RobotState

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One moment as the policy may know it; raw material of the channels.

    Attributes:
      state: the robot's own state; ``state.time_s`` is the stamp that staleness is judged by.
      last_action: (n_actions,) action applied last, in the order of the robot's action spec.
      goal: named set-points of the caller, such as ``pos_world_m`` (3,) or ``pose_world_xyyaw`` (3,).
      ranges: named range readings [m], such as ``lidar`` (n_beams,), counter-clockwise from the first beam.
      images: camera name (without the robot's prefix) to (H, W, 3) uint8 rgb.
      tokens: name to int64 tokens.
    """

    state: RobotState
    last_action: Array
    goal: Mapping[str, Array] = field(default_factory=dict)
    ranges: Mapping[str, Array] = field(default_factory=dict)
    images: Mapping[str, NDArray[np.uint8]] = field(default_factory=dict)
    tokens: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
