"""All registries in one place. Adding a thing is adding a line here, or an entry point of another distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embodied.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable

    from embodied.planners.contract import Planner
    from embodied.robots.base import RobotSpec
    from embodied.skills.contract import Skill
    from embodied.tasks.contract import TaskFamily
    from embodied.worlds.contract import World
    from embodied_scenes.spec import SceneSpec

SCENES: Registry[Callable[[], SceneSpec]] = Registry("scenes")
ROBOTS: Registry[RobotSpec] = Registry("robots")
TASKS: Registry[TaskFamily] = Registry("tasks")
SKILLS: Registry[Skill] = Registry("skills")
PLANNERS: Registry[Callable[..., Planner]] = Registry("planners")
CONTROLLERS: Registry[type] = Registry("controllers")
WORLDS: Registry[Callable[..., World]] = Registry("worlds")

WORLDS.add("mujoco", "embodied.worlds.mujoco:MujocoWorld", summary="MuJoCo physics, the reference", tags=("physics",))
WORLDS.add(
    "pybullet", "embodied.worlds.pybullet:PybulletWorld", summary="Bullet physics on the same model", tags=("physics",)
)
WORLDS.add("symbolic", "embodied.worlds.symbolic:SymbolicWorld", summary="facts alone, thousands of decisions a second")

PLANNERS.add(
    "oracle", "embodied.planners.search.oracle:OraclePlanner", summary="search on the truth", tags=("privileged",)
)
PLANNERS.add("scripted", "embodied.planners.rules.scripted:ScriptedPlanner", summary="rules on the belief, no model")
PLANNERS.add("random", "embodied.planners.simple:RandomPlanner", summary="any call that may start", tags=("floor",))
PLANNERS.add("noop", "embodied.planners.simple:NoopPlanner", summary="waits", tags=("floor",))

SCENES.add(
    "household/flat@1",
    "embodied_scenes.household:flat",
    summary="kitchen, living room and bedroom; fridge, oven, cabinets, drawers, 35 movable things",
    tags=("household",),
)

SCENES.add(
    "drones/yard@1", "embodied_scenes.drones.yard:yard", summary="tower, gates, pads and wind", tags=("drones",)
)
ROBOTS.add("quadrotor", "embodied.robots.quadrotor.spec:QUADROTOR", summary="Crazyflie 2.1", tags=("drones",))
CONTROLLERS.add(
    "quadrotor",
    "embodied_controllers.quadrotor.controller:FlightController",
    summary="position, attitude, body rates, mixer with lag compensation",
    tags=("drones",),
)

REGISTRIES = {r.kind: r for r in (SCENES, ROBOTS, TASKS, SKILLS, PLANNERS, CONTROLLERS, WORLDS)}
