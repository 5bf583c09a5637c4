"""Small scenes that tests share: one table, one cabinet with a door and a button, one box."""

from __future__ import annotations

from embodied_scenes.spec import (
    ButtonSpec,
    CameraSpec,
    EntityModel,
    EntitySpec,
    GeomSpec,
    HandleSpec,
    JointSpec,
    PartSpec,
    PlaceSpec,
    RegionSpec,
    RoomSpec,
    SceneSpec,
    WallSpec,
)

BOX = EntityModel(parts=(PartSpec(geoms=(GeomSpec(size_m=(0.03, 0.03, 0.04), mass_kg=0.2),)),))
TABLE = EntityModel(
    parts=(PartSpec(geoms=(GeomSpec(size_m=(0.4, 0.3, 0.02), pos_m=(0, 0, 0.7)),)),),
    regions=(RegionSpec(name="top", kind="surface", center_m=(0, 0, 0.72), half_size_m=(0.4, 0.3, 0)),),
)
CABINET = EntityModel(
    parts=(
        PartSpec(
            geoms=(
                GeomSpec(size_m=(0.02, 0.3, 0.3), pos_m=(-0.2, 0, 0.5)),
                GeomSpec(size_m=(0.2, 0.3, 0.01), pos_m=(0, 0, 0.2)),
                GeomSpec(size_m=(0.2, 0.3, 0.01), pos_m=(0, 0, 0.8)),
            )
        ),
        PartSpec(
            name="door",
            pos_m=(0.2, -0.3, 0.5),
            geoms=(GeomSpec(size_m=(0.01, 0.3, 0.28), pos_m=(0.02, 0.3, 0)),),
            joint=JointSpec(kind="hinge", axis=(0, 0, -1), upper=1.6),
        ),
    ),
    regions=(
        RegionSpec(
            name="inside", kind="interior", center_m=(0, 0, 0.4), half_size_m=(0.15, 0.25, 0.18), approach=(1, 0, 0)
        ),
    ),
    handles=(HandleSpec(part="door", pos_m=(0.06, 0.55, 0)),),
    buttons=(ButtonSpec(part="body", pos_m=(0.0, 0.0, 0.83), outward=(0, 0, 1)),),
)


def small_scene(**changes: object) -> SceneSpec:
    """A kitchen of 6 x 6 m with a table, a cabinet and a box on the table."""
    scene = SceneSpec(
        id="test/small@1",
        rooms=(RoomSpec(name="kitchen", category="kitchen", rect_m=(-3, -3, 3, 3)),),
        walls=(WallSpec(start_m=(-3, -3), end_m=(3, -3)),),
        entities=(
            EntitySpec(name="table", category="table", custom=TABLE, pos_m=(1, 0, 0), room="kitchen"),
            EntitySpec(
                name="cabinet", category="cabinet", custom=CABINET, pos_m=(-1, 0, 0), yaw_rad=0.5, room="kitchen"
            ),
            EntitySpec(name="box", category="box", custom=BOX, movable=True, pos_m=(1, 0, 0.76)),
        ),
        places=(PlaceSpec(name="spot", category="pad", pos_m=(1.0, 0.1, 0.0)),),
        cameras=(CameraSpec(name="top", pos_m=(0, -0.1, 5), target_m=(0, 0, 0)),),
    )
    return scene.model_copy(update=changes)
