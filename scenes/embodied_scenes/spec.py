"""The scene description: what a YAML file may say, checked when it is read.

Lengths are metres, angles radians, masses kilograms; frames are right-handed with z up. A pose is that of the entity's
origin in the world; parts, regions and handles are given in the frame of their part.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Vec3 = tuple[float, float, float]
Vec4 = tuple[float, float, float, float]
Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.\-]*$", max_length=80)]
Shape = Literal["box", "cylinder", "sphere", "capsule", "ellipsoid"]


class Strict(BaseModel):
    """Base of all records: immutable, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class GeomSpec(Strict):
    """One primitive.

    ``size_m`` are half sizes: box (x, y, z), cylinder and capsule (radius, half length), sphere (radius), ellipsoid
    (three radii).
    """

    shape: Shape = "box"
    size_m: tuple[float, ...]
    pos_m: Vec3 = (0.0, 0.0, 0.0)
    quat_wxyz: Vec4 = (1.0, 0.0, 0.0, 0.0)
    rgba: Vec4 = (0.7, 0.7, 0.7, 1.0)
    mass_kg: float | None = Field(default=None, gt=0)
    collide: bool = True
    sliding_friction: float = Field(default=0.8, gt=0)


class JointSpec(Strict):
    """The one joint of an articulated entity; its zero is the closed state and its range is positive towards open."""

    kind: Literal["hinge", "slide"]
    axis: Vec3
    pos_m: Vec3 = (0.0, 0.0, 0.0)
    upper: float = Field(gt=0, description="fully open, rad or m")
    damping: float = Field(default=1.0, ge=0, description="N·s/m or N·m·s/rad")
    friction: float = Field(default=0.3, ge=0, description="dry friction, N or N·m; holds the door where it is left")


class PartSpec(Strict):
    """A rigid part. The first part of an entity is its root; a part with a joint moves against its parent."""

    name: Name = "body"
    parent: str | None = None
    pos_m: Vec3 = (0.0, 0.0, 0.0)
    quat_wxyz: Vec4 = (1.0, 0.0, 0.0, 0.0)
    geoms: tuple[GeomSpec, ...]
    joint: JointSpec | None = None


class RegionSpec(Strict):
    """Where things can be put: a ``surface`` (on its plane) or an ``interior`` (in its box of free space).

    Args:
      center_m: for a surface the middle of the plane; for an interior the middle of the box.
      half_size_m: half extents; z of a surface is 0.
      approach: horizontal direction in the root frame from which a robot reaches in (points away from the furniture);
        None for surfaces that can be reached from above.
    """

    name: Name
    kind: Literal["surface", "interior"]
    part: str = "body"
    center_m: Vec3
    half_size_m: Vec3
    approach: Vec3 | None = None


class HandleSpec(Strict):
    """A bar to pull. ``axis`` runs along the bar, ``outward`` points away from the door; both in the part's frame."""

    name: Name = "handle"
    part: str
    pos_m: Vec3
    axis: Vec3 = (0.0, 0.0, 1.0)
    outward: Vec3 = (1.0, 0.0, 0.0)


class ButtonSpec(Strict):
    """A push button on a slide joint of its own: pressed when its travel passes ``travel_m`` / 2; toggles ``state``."""

    name: Name = "button"
    part: str
    pos_m: Vec3
    outward: Vec3 = (1.0, 0.0, 0.0)
    travel_m: float = 0.01
    radius_m: float = 0.025
    state: str = "on"


class EntityModel(Strict):
    """Geometry and meaning of one entity, independent of where it stands."""

    parts: tuple[PartSpec, ...]
    regions: tuple[RegionSpec, ...] = ()
    handles: tuple[HandleSpec, ...] = ()
    buttons: tuple[ButtonSpec, ...] = ()
    label: str | None = Field(default=None, description="text of a printed code that cameras can read")


class EntitySpec(Strict):
    """One entity of a scene.

    Either ``model`` names a template of ``embodied_scenes.models`` with its ``params``, or ``custom`` holds the
    geometry itself.
    """

    name: Name
    category: str
    model: str | None = None
    params: dict[str, float | int | str | bool | tuple[float, ...]] = Field(default_factory=dict)
    custom: EntityModel | None = None
    pos_m: Vec3 = (0.0, 0.0, 0.0)
    yaw_rad: float = 0.0
    movable: bool = False
    room: str | None = None
    properties: tuple[str, ...] = ()


class RoomSpec(Strict):
    """A named floor rectangle (x0, y0, x1, y1) in metres."""

    name: Name
    category: str
    rect_m: tuple[float, float, float, float]
    floor_rgba: Vec4 = (0.62, 0.55, 0.47, 1.0)


class WallSpec(Strict):
    """A straight wall between two points, with its thickness and height."""

    start_m: tuple[float, float]
    end_m: tuple[float, float]
    thickness_m: float = 0.1
    height_m: float = 2.4
    rgba: Vec4 = (0.88, 0.87, 0.84, 1.0)


class CameraSpec(Strict):
    """A fixed camera that looks from ``pos_m`` at ``target_m``."""

    name: Name
    pos_m: Vec3
    target_m: Vec3
    fovy_deg: float = Field(default=55.0, gt=1, lt=170)


class PlaceSpec(Strict):
    """A named pose on the floor or in the air: a waypoint, a pad, a pick station, a charger."""

    name: Name
    category: str
    pos_m: Vec3
    yaw_rad: float = 0.0
    room: str | None = None


class SceneSpec(Strict):
    """One scene: compile it with :func:`embodied_scenes.builders.compile_scene`."""

    format: Literal["embodied-scene/1"] = "embodied-scene/1"
    id: str
    summary: str = ""
    preset: Literal["manipulation", "fleet", "flight"] = "manipulation"
    rooms: tuple[RoomSpec, ...] = ()
    walls: tuple[WallSpec, ...] = ()
    entities: tuple[EntitySpec, ...] = ()
    places: tuple[PlaceSpec, ...] = ()
    cameras: tuple[CameraSpec, ...] = ()
    wind_mps: Vec3 = (0.0, 0.0, 0.0)
    air_density_kgpm3: float = Field(default=0.0, ge=0, description="0: no air drag from the engine")
