"""All registries in one place. Adding a thing is adding a line here, or an entry point of another distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embodied.policies.registry import POLICIES
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
PLANNERS.add(
    "openai", "embodied.planners.openai.planner:OpenAiPlanner", summary="openai:MODEL, any such server", tags=("model",)
)
PLANNERS.add(
    "compact",
    "embodied.planners.compact.planner:CompactVisionPlanner",
    summary="a small network on images, compact:FILE.policy",
    tags=("model",),
)
PLANNERS.add("random", "embodied.planners.simple:RandomPlanner", summary="any call that may start", tags=("floor",))
PLANNERS.add("noop", "embodied.planners.simple:NoopPlanner", summary="waits", tags=("floor",))

SCENES.add(
    "household/flat@1",
    "embodied_scenes.household:flat",
    summary="kitchen, living room and bedroom; fridge, oven, cabinets, drawers, 35 movable things",
    tags=("household",),
)

SCENES.add("drones/yard@1", "embodied_scenes.drones.yard:yard", summary="tower, gates, pads and wind", tags=("drones",))
ROBOTS.add("quadrotor", "embodied.robots.quadrotor.spec:QUADROTOR", summary="Crazyflie 2.1", tags=("drones",))
CONTROLLERS.add(
    "quadrotor",
    "embodied_controllers.quadrotor.controller:FlightController",
    summary="position, attitude, body rates, mixer with lag compensation",
    tags=("drones",),
)

SKILLS.add("take_off", "embodied.skills.drones.basic:TAKE_OFF", summary="climb to a height", tags=("drones",))
SKILLS.add("fly_to", "embodied.skills.drones.basic:FLY_TO", summary="fly to a place", tags=("drones",))
SKILLS.add("land", "embodied.skills.drones.basic:LAND", summary="land on the pad below", tags=("drones",))
SKILLS.add("inspect", "embodied.skills.drones.inspect:INSPECT", summary="look at a target", tags=("drones",))
TASKS.add(
    "drones/inspect@1",
    "embodied.tasks.drones.inspect:INSPECT",
    summary="inspect panels, then land",
    tags=("drones",),
)

SKILLS.add("message", "embodied.skills.common.talk:MESSAGE", summary="say something to another agent", tags=("any",))
SKILLS.add("ask", "embodied.skills.common.talk:ASK", summary="ask the user", tags=("any",))
SKILLS.add("wait", "embodied.skills.common.stay:WAIT", summary="keep still for some seconds", tags=("any",))
SKILLS.add("done", "embodied.skills.common.stay:DONE", summary="say that the goal is reached", tags=("any",))
SKILLS.add("abstain", "embodied.skills.common.stay:ABSTAIN", summary="say that it cannot be done", tags=("any",))
SKILLS.add("go_to", "embodied.skills.household.go_to:GO_TO", summary="drive to something", tags=("household",))
SKILLS.add("look", "embodied.skills.household.look:LOOK", summary="turn to something and look", tags=("household",))

SCENES.add(
    "warehouse/hall@1", "embodied_scenes.warehouse.hall:hall", summary="racks, carriers, stations", tags=("warehouse",)
)
ROBOTS.add(
    "mobile_manipulator",
    "embodied.robots.mobile_manipulator.spec:MOBILE_MANIPULATOR",
    summary="wheeled base, lift, 7-joint arm, gripper",
    tags=("household",),
)
ROBOTS.add("amr", "embodied.robots.amr.spec:AMR", summary="mobile robot with a lifting deck", tags=("warehouse",))
CONTROLLERS.add(
    "lane_following",
    "embodied_controllers.base.lane_following:LaneFollower",
    summary="straight lanes, turns on the spot, stops where the free lane ends",
    tags=("warehouse",),
)
SKILLS.add("drive_to", "embodied.skills.warehouse.all:drive_to", summary="drive to a place", tags=("warehouse",))
SKILLS.add("lift", "embodied.skills.warehouse.all:lift", summary="lift a carrier", tags=("warehouse",))
SKILLS.add("lower", "embodied.skills.warehouse.all:lower", summary="lower the carrier", tags=("warehouse",))
SKILLS.add("scan_code", "embodied.skills.warehouse.all:scan_code", summary="read a code", tags=("warehouse",))
SKILLS.add("charge", "embodied.skills.warehouse.all:charge", summary="charge the battery", tags=("warehouse",))
TASKS.add(
    "warehouse/deliver@1",
    "embodied.tasks.warehouse.deliver:DELIVER",
    summary="bring a carrier to a pick station",
    tags=("warehouse",),
)

TASKS.add(
    "household/put_away@1",
    "embodied.tasks.household.put_away:PUT_AWAY",
    summary="bring misplaced things to where they belong",
    tags=("household",),
)
SKILLS.add("pick", "embodied.skills.household.pick:PICK", summary="take a thing", tags=("household",))
SKILLS.add("place", "embodied.skills.household.place:PLACE", summary="put down what is held", tags=("household",))
SKILLS.add("open", "embodied.skills.household.open:OPEN", summary="open a door or drawer", tags=("household",))
SKILLS.add("push_button", "embodied.skills.household.push_button:PUSH_BUTTON", summary="press it", tags=("household",))
SKILLS.add("close", "embodied.skills.household.close:CLOSE", summary="close a door or drawer", tags=("household",))

SCENES.add(
    "household/flat_garden@1",
    "embodied_scenes.household:flat_garden",
    summary="the flat with garden, corridor, dining room, bathroom and child's room",
    tags=("household",),
)
TASKS.add(
    "household/behavior@1",
    "embodied.tasks.household.behavior:BEHAVIOR",
    summary="twenty published activities in BDDL",
    tags=("household", "public_data"),
)

CONTROLLERS.add(
    "path_following",
    "embodied_controllers.base.path_following:DifferentialPathFollower",
    summary="a differential base along a polyline to a pose",
    tags=("household",),
)
CONTROLLERS.add(
    "straight_move",
    "embodied_controllers.base.path_following:StraightMove",
    summary="a differential base straight ahead or back",
    tags=("household",),
)
CONTROLLERS.add(
    "joint_impedance",
    "embodied_controllers.arm.impedance:JointImpedanceController",
    summary="springs and dampers at the joints of an arm",
    tags=("household",),
)
CONTROLLERS.add(
    "gripper_force",
    "embodied_controllers.gripper.force:GripperForceController",
    summary="close a parallel gripper with a set force",
    tags=("household",),
)

REGISTRIES = {r.kind: r for r in (SCENES, ROBOTS, TASKS, SKILLS, PLANNERS, CONTROLLERS, WORLDS, POLICIES)}
