"""One grasping scene per seed: a table, a thing on it, perhaps a second one beside it, and a robot before it.

Everything that varies comes from the seed: kind, size, colour, weight and pose of the thing, height and colour of the
table, floor, stand and posture of the robot, and brightness and tint of the camera's images.
"""

from __future__ import annotations

import colorsys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from embodied.robots.mobile_manipulator.kinematics import MOUNT_M, arm_geometry
from embodied.robots.mobile_manipulator.spec import MOBILE_MANIPULATOR
from embodied.seeding import stream_rng
from embodied_controllers.rotation import rot_y, rot_z
from embodied_scenes.builders import CompiledScene, RobotMount, compile_scene
from embodied_scenes.extents import model_box
from embodied_scenes.resolve import resolve_model
from embodied_scenes.spec import EntitySpec, RoomSpec, SceneSpec

Array = NDArray[np.float64]

ROBOT, THING = "robot", "thing"
PATCH_HALF_M = (0.10, 0.125)
"""Half extents of the patch on the table that holds the thing, along the robot's x and y."""
PATCH_CENTER_X_M = 0.62
TABLE_FRONT_M, TABLE_SIZE_M = 0.38, (0.56, 1.00)
HOVER_M = 0.235
"""Middle height of the tool above the table at the start."""
TORSO_BELOW_TABLE_M = 0.59
"""Table height less torso lift: the stand brings the arm to the height of its table."""
START_WIDTH_M = 0.10

_DOWN = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
"""Columns are the tool axes of a hand that points straight down with the camera between hand and robot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraspScene:
    """What a seed stands for.

    Attributes:
      spec: the scene.
      base_xyyaw: stand of the robot in the world.
      torso_m: torso lift.
      arm_rad: (7,) posture at the start.
      thing_half_m: (3,) half extents of the thing in its own frame.
      is_round: whether its heading does not matter to a gripper.
      table_m: height of the table.
      gain_rgb: (3,) factor on the camera's colours.
    """

    seed: int
    spec: SceneSpec
    base_xyyaw: Array
    torso_m: float
    arm_rad: Array
    thing_half_m: Array
    is_round: bool
    table_m: float
    gain_rgb: Array

    def compile(self) -> CompiledScene:
        """Compile with the robot."""
        mount = RobotMount(name=ROBOT, kind=MOBILE_MANIPULATOR.kind, mjcf=MOBILE_MANIPULATOR.mjcf)
        return compile_scene(self.spec, (mount,))


def hand_down(yaw_rad: Array | float) -> Array:
    """Return tool axes (..., 3, 3) of a hand that points down, turned by ``yaw_rad`` about the vertical."""
    return rot_z(np.asarray(yaw_rad, dtype=np.float64)) @ _DOWN


def grasp_scene(seed: int) -> GraspScene:
    """Return the scene of a seed."""
    rng = stream_rng(seed, "layout", "grasp")
    table_m = float(rng.uniform(0.62, 0.86))
    table_rgb = _colour(rng, value=(0.35, 0.95), saturation=(0.05, 0.55))
    floor_rgb = _colour(rng, value=(0.3, 0.8), saturation=(0.0, 0.3))
    model, params, half, is_round = _thing(rng, table_rgb)
    offset = rng.uniform(-1.0, 1.0, 2) * PATCH_HALF_M
    # Things with corners are turned by less than 45 degrees, so that one way to grasp is always the nearest.
    yaw = float(rng.uniform(-0.65, 0.65))
    table = EntitySpec(
        name="table",
        category="table",
        model="table",
        params={"depth_m": TABLE_SIZE_M[0], "width_m": TABLE_SIZE_M[1], "height_m": table_m, "color": table_rgb},
        pos_m=(TABLE_FRONT_M + TABLE_SIZE_M[0] / 2, 0.0, 0.0),
    )
    thing = EntitySpec(
        name=THING,
        category=model,
        model=model,
        params=params,
        movable=True,
        pos_m=(PATCH_CENTER_X_M + float(offset[0]), float(offset[1]), table_m + float(half[2])),
        yaw_rad=yaw,
    )
    others = _bystander(rng, table_m) if rng.random() < 0.5 else ()
    spec = SceneSpec(
        id=f"grasp/{seed}",
        rooms=(RoomSpec(name="room", category="room", rect_m=(-2.0, -2.0, 2.0, 2.0), floor_rgba=(*floor_rgb, 1.0)),),
        entities=(table, thing, *others),
    )
    base = np.array([*rng.uniform(-0.02, 0.02, 2), rng.uniform(-0.05, 0.05)])
    torso = table_m - TORSO_BELOW_TABLE_M + float(rng.uniform(-0.01, 0.01))
    gain = rng.uniform(0.75, 1.2) * rng.uniform(0.93, 1.07, 3)
    return GraspScene(
        seed=seed,
        spec=spec,
        base_xyyaw=base,
        torso_m=torso,
        arm_rad=_start_posture(rng, base, torso, table_m),
        thing_half_m=half,
        is_round=is_round,
        table_m=table_m,
        gain_rgb=gain,
    )


def _thing(
    rng: np.random.Generator, table_rgb: tuple[float, float, float]
) -> tuple[str, dict[str, float | int | str | bool | tuple[float, ...]], Array, bool]:
    kind = str(rng.choice(["round_thing", "block_thing", "can", "cup", "candle"]))
    rgb = _colour(rng, value=(0.25, 1.0), saturation=(0.3, 1.0))
    while float(np.abs(np.subtract(rgb, table_rgb)).max()) < 0.25:  # a person could not tell it from the table either
        rgb = _colour(rng, value=(0.25, 1.0), saturation=(0.3, 1.0))
    width = float(rng.uniform(0.046, 0.068))
    height = float(rng.uniform(0.055, 0.11))
    params: dict[str, float | int | str | bool | tuple[float, ...]] = {"color": rgb, "height_m": height}
    if kind == "candle":
        return kind, params, np.array([0.028, 0.028, height / 2]), True
    params |= {"width_m": width, "mass_kg": float(rng.uniform(0.08, 0.3))}
    if kind == "block_thing":
        length = width * float(rng.uniform(1.2, 1.8))
        if rng.random() < 0.5:
            params["stripe"] = _colour(rng, value=(0.3, 1.0), saturation=(0.3, 1.0))
        return kind, params | {"length_m": length}, np.array([length / 2, width / 2, height / 2]), False
    if kind == "round_thing":
        params["stalk"] = False
    return kind, params, np.array([width / 2, width / 2, height / 2]), True


def _bystander(rng: np.random.Generator, table_m: float) -> tuple[EntitySpec, ...]:
    """Return another thing beside the patch, of a kind that is never asked for."""
    kind = str(rng.choice(["sponge", "remote", "phone", "plate"]))
    side = float(rng.choice([-1.0, 1.0]))
    rgb = _colour(rng, value=(0.2, 1.0), saturation=(0.2, 1.0))
    entity = EntitySpec(
        name="bystander",
        category=kind,
        model=kind,
        params={"color": rgb},
        movable=True,
        pos_m=(PATCH_CENTER_X_M + float(rng.uniform(-0.1, 0.2)), side * float(rng.uniform(0.26, 0.36)), 0.0),
        yaw_rad=float(rng.uniform(-np.pi, np.pi)),
    )
    low, _ = model_box(resolve_model(entity))
    x, y, _ = entity.pos_m
    return (entity.model_copy(update={"pos_m": (x, y, table_m - low[2])}),)


def _colour(
    rng: np.random.Generator, *, value: tuple[float, float], saturation: tuple[float, float]
) -> tuple[float, float, float]:
    red, green, blue = colorsys.hsv_to_rgb(rng.random(), rng.uniform(*saturation), rng.uniform(*value))
    return (float(red), float(green), float(blue))


def _start_posture(rng: np.random.Generator, base_xyyaw: Array, torso_m: float, table_m: float) -> Array:
    """Return an arm posture that holds the open hand above the patch, roughly upright."""
    geometry = arm_geometry()
    while True:
        spread = rng.uniform(-1.0, 1.0, 3)
        pos = np.array([PATCH_CENTER_X_M, 0.0, table_m + HOVER_M]) + spread * (0.05, 0.05, 0.025)
        rot = hand_down(rng.uniform(-0.25, 0.25)) @ rot_y(rng.uniform(-0.06, 0.06)) @ rot_z(rng.uniform(-0.06, 0.06))
        pos_arm, rot_arm = to_arm(pos, rot, base_xyyaw, torso_m)
        postures, valid = geometry.solve(pos_arm, rot_arm, np.array(rng.uniform(-0.03, 0.03)))
        if valid[BRANCH]:
            return np.asarray(postures[BRANCH], dtype=np.float64)


BRANCH = 0
"""Shoulder, elbow and wrist solution used throughout: elbow up, no joint flipped."""


def to_arm(pos_world_m: Array, rot_world: Array, base_xyyaw: Array, torso_m: float) -> tuple[Array, Array]:
    """Return tool positions (..., 3) and axes (..., 3, 3) in the frame of the arm's base."""
    turn = rot_z(-base_xyyaw[2])
    mount = MOUNT_M + np.array([0.0, 0.0, torso_m])
    return (pos_world_m - np.array([base_xyyaw[0], base_xyyaw[1], 0.0])) @ turn.T - mount, turn @ rot_world
