"""Regions of furniture at their present pose in the world: boards, shelves, drawers, bins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from embodied.skills.contract import EntityPose, SceneView
from embodied_controllers.rotation import matrix_of_quat
from embodied_scenes.info import EntityInfo, RegionInfo

Array = NDArray[np.float64]

LIFT_M = 0.10
MIN_OPENING = 0.55  # of a door or drawer, to reach in


@dataclass(frozen=True, slots=True, kw_only=True)
class Compartment:
    """An interior region with its frame in the world.

    Attributes:
      outward_world: (2,) unit horizontal direction out of it, or None if it is open at the top.
    """

    owner: str
    region: RegionInfo
    center_world_m: Array
    rot_world: Array
    outward_world: Array | None

    def local(self, point_world_m: Array) -> Array:
        """Return a (3,) point in the region's frame."""
        return self.rot_world.T @ (point_world_m - self.center_world_m)

    def exit_m(self, point_world_m: Array, half_m: float, bottom_m: float) -> float:
        """Return how far a thing at a point must travel to be outside: outwards, or upwards if open at the top."""
        if self.outward_world is None:
            rim = self.center_world_m[2] + self.region.half_size_m[2]
            return float(max(rim - bottom_m + 0.03, LIFT_M))
        out = self.rot_world.T @ np.array([*self.outward_world, 0.0])
        front = float(np.abs(out) @ self.region.half_size_m)
        return front - float(out @ self.local(point_world_m)) + half_m + 0.05


def compartment_of(view_pose: EntityPose, root_pose: EntityPose, owner: str, region: RegionInfo) -> Compartment:
    """Return a region at the pose of its body; ``root_pose`` is that of the furniture."""
    rot = matrix_of_quat(view_pose.quat_wxyz)
    outward = None
    if region.approach_root is not None:
        out = (matrix_of_quat(root_pose.quat_wxyz) @ region.approach_root)[:2]
        outward = out / np.linalg.norm(out)
    return Compartment(
        owner=owner,
        region=region,
        center_world_m=view_pose.pos_world_m + rot @ region.center_body_m,
        rot_world=rot,
        outward_world=outward,
    )


def compartments_of(view: SceneView, entity: EntityInfo) -> list[Compartment]:
    """Return all regions of an entity whose pose is known, surfaces included."""
    root = view.pose(entity.name)
    if root is None:
        return []
    found = []
    for region in entity.regions:
        body = view.body_pose(region.body)
        if body is not None:
            found.append(compartment_of(body, root, entity.name, region))
    return found


def compartment_at(view: SceneView, point_world_m: Array) -> Compartment | None:
    """Return the interior of a piece of furniture that holds a point, or None."""
    for entity in view.info.entities.values():
        if entity.movable or not any(r.kind == "interior" for r in entity.regions):
            continue
        for found in compartments_of(view, entity):
            if (
                found.region.kind == "interior"
                and (np.abs(found.local(point_world_m)) <= found.region.half_size_m + 0.02).all()
            ):
                return found
    return None
