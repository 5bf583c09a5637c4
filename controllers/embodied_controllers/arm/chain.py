"""Serial chains as data: forward kinematics and Jacobian of joints that turn or slide along fixed axes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embodied_controllers.contract import Array
from embodied_controllers.rotation import skew


@dataclass(frozen=True, slots=True, kw_only=True)
class SerialChain:
    """A chain of n joints from a base frame to a tool frame.

    Attributes:
      names: (n,) joint names.
      offsets_m: (n, 3) origin of each joint's frame in the frame before it, at zero.
      axes: (n, 3) unit axes in the joint's own frame.
      is_slide: (n,) True for prismatic joints.
      low: (n,) lower position limits, rad or m.
      high: (n,) upper position limits.
      speed_max: (n,) speed limits, rad/s or m/s.
      tool_offset_m: (3,) tool origin in the last joint's frame.
      tool_rot: (3, 3) tool axes in the last joint's frame.
    """

    names: tuple[str, ...]
    offsets_m: Array
    axes: Array
    is_slide: tuple[bool, ...]
    low: Array
    high: Array
    speed_max: Array
    tool_offset_m: Array
    tool_rot: Array

    @property
    def size(self) -> int:
        """Number of joints."""
        return len(self.names)

    def frames(self, joint_pos: Array) -> tuple[Array, Array]:
        """Return origins (..., n + 1, 3) [m] and axes (..., n + 1, 3, 3) of all joints and the tool in the base frame.

        Args:
          joint_pos: (..., n) positions, rad or m.
        """
        q = np.asarray(joint_pos, dtype=np.float64)
        pos, rot = np.zeros((*q.shape[:-1], 3)), np.broadcast_to(np.eye(3), (*q.shape[:-1], 3, 3))
        origins, turns = [], []
        sine, versine = np.sin(q)[..., None, None], (1.0 - np.cos(q))[..., None, None]
        for i in range(self.size):
            pos = pos + rot @ self.offsets_m[i]
            if self.is_slide[i]:
                pos = pos + rot @ self.axes[i] * q[..., i, None]
            else:
                k = skew(self.axes[i])
                rot = rot @ (np.eye(3) + sine[..., i, :, :] * k + versine[..., i, :, :] * (k @ k))
            origins.append(pos)
            turns.append(rot)
        origins.append(pos + rot @ self.tool_offset_m)
        turns.append(rot @ self.tool_rot)
        return np.stack(origins, axis=-2), np.stack(turns, axis=-3)

    def tool(self, joint_pos: Array) -> tuple[Array, Array]:
        """Return the tool's origin (..., 3) [m] and axes (..., 3, 3) in the base frame."""
        origins, turns = self.frames(joint_pos)
        return origins[..., -1, :], turns[..., -1, :, :]

    def jacobian(self, joint_pos: Array) -> Array:
        """Return the (6, n) geometric Jacobian of the tool at one (n,) posture: linear, then angular, base frame."""
        origins, turns = self.frames(np.asarray(joint_pos, dtype=np.float64))
        axes = np.einsum("nij,nj->ni", turns[:-1], self.axes)
        out = np.zeros((6, self.size))
        slide = np.array(self.is_slide)
        out[:3] = np.where(slide[:, None], axes, np.cross(axes, origins[-1] - origins[:-1])).T
        out[3:] = np.where(slide[:, None], 0.0, axes).T
        return out

    def clip(self, joint_pos: Array) -> Array:
        """Return positions inside the limits."""
        return np.clip(joint_pos, self.low, self.high)
