"""What a compiled scene means: names, regions, handles and rooms, without an engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionInfo:
    """Where things can be put (see ``RegionSpec``), with vectors in the frame of ``body``."""

    name: str
    kind: str
    body: str
    center_body_m: Array
    half_size_m: Array
    approach_root: Array | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HandleInfo:
    """A bar to pull, with vectors in the frame of ``body``."""

    name: str
    body: str
    pos_body_m: Array
    axis_body: Array
    outward_body: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class ButtonInfo:
    """A push button: pressing its slide joint past half its travel toggles ``state`` of its entity."""

    name: str
    body: str
    joint: str
    pos_body_m: Array
    outward_body: Array
    travel_m: float
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SolidInfo:
    """The box around one colliding geom, in the frame of its body; what a robot must not reach through.

    Attributes:
      shape: ``box``, ``cylinder``, ``sphere``, ``capsule`` or ``ellipsoid``.
      rot_body: (3, 3) axes of the box, columns in the body frame.
    """

    body: str
    shape: str
    center_body_m: Array
    rot_body: Array
    half_size_m: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityInfo:
    """One entity of a compiled scene.

    Attributes:
      root: name of its root body in the engine's model; the entity's pose is this body's.
      bodies: all its bodies.
      joint: name of its one articulation joint, or None.
      joint_kind: ``hinge`` or ``slide``, empty without joint.
      joint_upper: fully open, rad or m (0 without joint).
      joint_axis_root: (3,) unit axis of the joint in the root frame; positive motion opens.
      joint_anchor_root_m: (3,) a point on the axis in the root frame.
      joint_part: name of the body that the joint moves.
      half_size_m: half extents of the axis-aligned box around its geoms in the root frame, at joint zero.
      box_center_m: middle of that box in the root frame.
      solids: boxes around its colliding geoms, one each.
    """

    name: str
    category: str
    movable: bool
    room: str | None
    root: str
    bodies: tuple[str, ...]
    joint: str | None
    joint_kind: str
    joint_upper: float
    joint_axis_root: Array
    joint_anchor_root_m: Array
    joint_part: str | None
    regions: tuple[RegionInfo, ...]
    handles: tuple[HandleInfo, ...]
    buttons: tuple[ButtonInfo, ...]
    half_size_m: Array
    box_center_m: Array
    mass_kg: float
    label: str | None
    properties: frozenset[str]
    solids: tuple[SolidInfo, ...] = ()

    @property
    def openable(self) -> bool:
        """Whether it has a door or drawer."""
        return self.joint is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomInfo:
    """A named floor rectangle (x0, y0, x1, y1), metres."""

    name: str
    category: str
    rect_m: tuple[float, float, float, float]

    def contains(self, x_m: float, y_m: float) -> bool:
        """Whether a point of the floor lies in the room."""
        x0, y0, x1, y1 = self.rect_m
        return x0 <= x_m <= x1 and y0 <= y_m <= y1


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceInfo:
    """A named pose in the world."""

    name: str
    category: str
    pos_world_m: Array
    yaw_rad: float
    room: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotInfo:
    """A robot in a compiled scene: its bodies, joints and actuators carry ``prefix``."""

    name: str
    kind: str
    prefix: str
    root: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneInfo:
    """Meaning of a compiled scene, by name."""

    id: str
    preset: str
    entities: Mapping[str, EntityInfo]
    rooms: tuple[RoomInfo, ...]
    places: Mapping[str, PlaceInfo]
    robots: Mapping[str, RobotInfo] = field(default_factory=dict)

    def room_at(self, x_m: float, y_m: float) -> str | None:
        """Return the name of the room that holds a floor point, or None."""
        for room in self.rooms:
            if room.contains(x_m, y_m):
                return room.name
        return None
