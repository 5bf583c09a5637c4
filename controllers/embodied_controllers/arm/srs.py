"""Closed-form inverse kinematics of arms whose shoulder and wrist axes meet in points, for whole batches of poses.

The elbow may turn about the line from shoulder to wrist; its angle on that circle is the redundancy and a parameter.

References:
  M. Shimizu et al., "Analytical inverse kinematic computation for 7-DOF redundant manipulators with joint limits",
  IEEE Transactions on Robotics 24(5) (2008): arm angle and the two solutions of shoulder and wrist.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from embodied_controllers.contract import Array
from embodied_controllers.rotation import rot_y, rot_z

_BRANCHES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class SrsGeometry:
    """Lengths of an arm with joints about z, y, z, y, z, y, z.

    Attributes:
      shoulder_m: (3,) shoulder in the arm's base frame.
      upper_m: shoulder to elbow.
      fore_m: elbow to wrist.
      tool_m: wrist to tool origin along the last axis.
      tool_rot: (3, 3) tool axes in the last joint's frame.
      low: (7,) lower joint limits, rad.
      high: (7,) upper joint limits, rad.
    """

    shoulder_m: Array
    upper_m: float
    fore_m: float
    tool_m: float
    tool_rot: Array
    low: Array
    high: Array

    def solve(self, tool_pos_m: Array, tool_rot: Array, swivel_rad: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Return all joint postures that reach poses with given elbow angles.

        Args:
          tool_pos_m: (..., 3) tool origins in the arm's base frame.
          tool_rot: (..., 3, 3) tool axes in the arm's base frame.
          swivel_rad: (...) elbow angle: 0 in the vertical plane with the elbow up, positive turns it about the line
            from shoulder to wrist.

        Returns:
          Postures (..., 8, 7) [rad] of the eight branches (shoulder, elbow and wrist flipped or not), and (..., 8)
          whether each exists within the joint limits. A branch changes continuously along a path without singularity.
        """
        rot = tool_rot @ self.tool_rot.T
        wrist = tool_pos_m - self.tool_m * rot[..., :, 2] - self.shoulder_m
        dist = np.linalg.norm(wrist, axis=-1)
        cosine = (dist**2 - self.upper_m**2 - self.fore_m**2) / (2 * self.upper_m * self.fore_m)
        reachable = (np.abs(cosine) <= 1.0) & (dist > 1e-6)
        bend = np.arccos(np.clip(cosine, -1.0, 1.0))
        frame = self._plane(wrist, dist, swivel_rad)
        lean = np.arctan2(self.fore_m * np.sin(bend), self.upper_m + self.fore_m * np.cos(bend))
        shape = np.broadcast_shapes(dist.shape, np.shape(swivel_rad))
        out = np.empty((*shape, _BRANCHES, 7))
        for elbow in (0, 1):
            # A negative elbow angle keeps the elbow where it is if the upper arm turns by pi about its own axis.
            upper = frame @ rot_y(-lean)
            q4 = bend if elbow == 0 else -bend
            if elbow == 1:
                upper = upper @ rot_z(np.pi)
            hand = np.swapaxes(upper @ rot_y(q4), -1, -2) @ rot
            for flip in (0, 1):
                first = _zyz(upper, flip)
                for turn in (0, 1):
                    branch = 4 * elbow + 2 * flip + turn
                    out[..., branch, :3] = np.stack(first, axis=-1)
                    out[..., branch, 3] = q4
                    out[..., branch, 4:] = np.stack(_zyz(hand, turn), axis=-1)
        valid = ((out >= self.low) & (out <= self.high)).all(axis=-1) & np.broadcast_to(reachable, shape)[..., None]
        return out, valid

    def _plane(self, wrist: Array, dist: Array, swivel_rad: Array) -> Array:
        """Return (..., 3, 3) frames: z to the wrist, x away from the elbow within the plane of the arm."""
        z = wrist / np.maximum(dist, 1e-9)[..., None]
        side = np.stack([-z[..., 1], z[..., 0], np.zeros_like(dist)], axis=-1)
        length = np.linalg.norm(side, axis=-1, keepdims=True)
        side = np.where(length > 1e-6, side / np.maximum(length, 1e-9), np.array([0.0, 1.0, 0.0]))
        frame = np.stack([np.cross(side, z), side, z], axis=-1)
        return frame @ rot_z(swivel_rad)


def _zyz(rot: Array, flip: int) -> tuple[Array, Array, Array]:
    """Return angles with rot = Rz(a) Ry(b) Rz(c), b >= 0 unless flipped."""
    sign = -1.0 if flip else 1.0
    sine = np.hypot(rot[..., 0, 2], rot[..., 1, 2])
    b = sign * np.arctan2(sine, rot[..., 2, 2])
    straight = sine < 1e-9
    a = np.where(straight, 0.0, np.arctan2(sign * rot[..., 1, 2], sign * rot[..., 0, 2]))
    c = np.where(
        straight,
        np.arctan2(rot[..., 1, 0], rot[..., 0, 0]),
        np.arctan2(sign * rot[..., 2, 1], -sign * rot[..., 2, 0]),
    )
    return a, b, c
