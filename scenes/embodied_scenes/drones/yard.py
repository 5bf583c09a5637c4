"""The drone yard: 14 m by 12 m with a tower to inspect, gates to pass, trees and poles to avoid, pads to land on.

It is built to the scale of a palm-sized vehicle: the tower is 3 m high, a gate 1.1 m wide.
"""

from __future__ import annotations

from functools import cache
from math import pi

from embodied_scenes.drones.parts import gate, pad, panel, pole, shed, tower, tree, windsock
from embodied_scenes.spec import CameraSpec, EntitySpec, PlaceSpec, RoomSpec, SceneSpec, Vec4, WallSpec

ID = "drones/yard@1"
_RED: Vec4 = (0.86, 0.17, 0.14, 1.0)
_BLUE: Vec4 = (0.13, 0.35, 0.80, 1.0)
_GREEN: Vec4 = (0.12, 0.58, 0.27, 1.0)
_YELLOW: Vec4 = (0.95, 0.77, 0.12, 1.0)
_PURPLE: Vec4 = (0.50, 0.22, 0.62, 1.0)
_ORANGE: Vec4 = (0.95, 0.48, 0.10, 1.0)
_TEAL: Vec4 = (0.08, 0.58, 0.60, 1.0)
_PINK: Vec4 = (0.92, 0.42, 0.62, 1.0)
_CAGE: Vec4 = (0.55, 0.58, 0.52, 1.0)

_TOWER_HALF_M = 0.7
_FACE_M = _TOWER_HALF_M + 0.012


@cache
def yard() -> SceneSpec:
    """Return the yard with everything in it; the same object each time, for it cannot be changed."""
    entities: list[EntitySpec] = [
        tower("tower", (1.5, 0.0, 0.0), _TOWER_HALF_M, 3.0),
        panel("panel_red", (1.5 - _FACE_M, 0.0, 2.3), pi, _RED, "T-W2", 1),
        panel("panel_blue", (1.5, -_FACE_M, 1.5), -pi / 2, _BLUE, "T-S1", 2),
        panel("panel_green", (1.5 + _FACE_M, 0.0, 1.4), 0.0, _GREEN, "T-E1", 3),
        panel("panel_yellow", (1.5, _FACE_M, 2.2), pi / 2, _YELLOW, "T-N2", 4),
        panel("panel_purple", (1.5 + _FACE_M, 0.0, 2.45), 0.0, _PURPLE, "T-E2", 2),
        shed("container", (-4.2, 3.6, 0.0), (1.1, 0.6, 0.6), 0.3, (0.20, 0.42, 0.52, 1.0)),
        panel("panel_orange", (-4.0153, 3.0020, 0.72), 0.3 - pi / 2, _ORANGE, "C-1", 3),
        pole("lamp_south", (4.6, -3.6, 0.0), 2.6),
        panel("panel_teal", (4.6 - 0.065, -3.6, 1.6), pi, _TEAL, "L-S", 1),
        pole("lamp_north", (5.0, 3.8, 0.0), 2.6),
        panel("panel_pink", (5.0, 3.8 - 0.065, 1.3), -pi / 2, _PINK, "L-N", 4),
        tree("tree_west", (-4.8, -1.2, 0.0), 2.4, 0.75),
        tree("tree_north", (0.6, 4.4, 0.0), 2.8, 0.85),
        tree("tree_south", (-0.4, -4.3, 0.0), 2.2, 0.7),
        tree("tree_east", (5.6, 0.2, 0.0), 2.5, 0.8),
        windsock("windsock", (-2.2, 5.2, 0.0)),
    ]
    places: list[PlaceSpec] = []
    for made in (
        gate("gate_west", (-2.4, 0.4, 1.4), 0.0, _ORANGE),
        gate("gate_south", (2.2, -3.4, 1.3), pi / 2, _TEAL),
        gate("gate_north", (2.6, 3.2, 1.7), pi / 4, _PURPLE),
        pad("pad_home", (-5.6, 0.8), _YELLOW),
        pad("pad_south", (-2.6, -3.2), _BLUE),
        pad("pad_north", (-1.6, 2.6), _RED),
        pad("pad_east", (4.4, -1.2), _GREEN),
    ):
        entities.append(made[0])
        places.append(made[1])
    corners = [(-7.0, -6.0), (7.0, -6.0), (7.0, 6.0), (-7.0, 6.0)]
    return SceneSpec(
        id=ID,
        summary="A yard with a brick tower, eight panels to inspect, gates, trees, lamp poles, pads and wind.",
        preset="flight",
        rooms=(RoomSpec(name="yard", category="yard", rect_m=(-7, -6, 7, 6), floor_rgba=(0.40, 0.55, 0.33, 1.0)),),
        walls=tuple(
            WallSpec(start_m=a, end_m=b, thickness_m=0.06, height_m=0.5, rgba=_CAGE)
            for a, b in zip(corners, corners[1:] + corners[:1], strict=True)
        ),
        entities=tuple(entities),
        places=tuple(places),
        cameras=(
            CameraSpec(name="overview", pos_m=(-7.8, -7.2, 6.2), target_m=(0.4, 0.2, 0.8), fovy_deg=52),
            CameraSpec(name="tower_view", pos_m=(-2.6, -3.6, 2.8), target_m=(1.5, 0.0, 1.6), fovy_deg=50),
            CameraSpec(name="top", pos_m=(0.0, -0.01, 14.0), target_m=(0.0, 0.0, 0.0), fovy_deg=55),
        ),
    )
