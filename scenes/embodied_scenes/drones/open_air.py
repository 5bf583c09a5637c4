"""Open air: a floor and nothing else, for flight environments that step many drones."""

from __future__ import annotations

from embodied_scenes.spec import CameraSpec, RoomSpec, SceneSpec

ID = "drones/open_air@1"


def open_air() -> SceneSpec:
    """Return the empty field."""
    return SceneSpec(
        id=ID,
        summary="An empty field to fly over.",
        preset="flight",
        rooms=(RoomSpec(name="field", category="yard", rect_m=(-6, -6, 6, 6), floor_rgba=(0.40, 0.55, 0.33, 1.0)),),
        cameras=(CameraSpec(name="overview", pos_m=(-3.0, -3.0, 2.6), target_m=(0.0, 0.0, 1.2), fovy_deg=50),),
    )
