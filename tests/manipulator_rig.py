"""A mobile manipulator in a small scene, for tests of its skills: start a call, tick it to its end."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from embodied.agents.bodies import PhysicalBody
from embodied.agents.messages import MessageBus
from embodied.robots.base import make_robot, robot_start
from embodied.robots.mobile_manipulator.spec import MOBILE_MANIPULATOR
from embodied.skills.contract import Outcome, Skill, SkillCall, failed
from embodied.worlds.contract import Start
from embodied.worlds.mujoco import MujocoWorld
from embodied_scenes.builders import RobotMount, compile_scene
from embodied_scenes.spec import EntitySpec, PlaceSpec, RoomSpec, SceneSpec, WallSpec


def room_scene(entities: Sequence[EntitySpec], *, walls: Sequence[WallSpec] = ()) -> SceneSpec:
    """A room of 6 x 6 m with walls around it and a place in its middle."""
    corners = [(-3, -3), (3, -3), (3, 3), (-3, 3)]
    around = tuple(WallSpec(start_m=corners[i], end_m=corners[(i + 1) % 4]) for i in range(4))
    return SceneSpec(
        id="test/room@1",
        rooms=(RoomSpec(name="kitchen", category="kitchen", rect_m=(-3, -3, 3, 3)),),
        walls=(*around, *walls),
        entities=tuple(entities),
        places=(PlaceSpec(name="spot", category="place", pos_m=(0.0, 0.0, 0.0), yaw_rad=0.5),),
    )


class Rig:
    """One robot, the truth, no planner."""

    def __init__(
        self,
        scene: SceneSpec,
        *,
        xy_m: tuple[float, float] = (0.0, 0.0),
        yaw_rad: float = 0.0,
        joints: Mapping[str, float] | None = None,
        poses: Mapping[str, tuple[float, ...]] | None = None,
        seed: int = 0,
    ) -> None:
        spec = MOBILE_MANIPULATOR
        self.world = MujocoWorld(compile_scene(scene, [RobotMount(name="robot_0", kind=spec.kind, mjcf=spec.mjcf)]))
        base = (*xy_m, 0.0, math.cos(yaw_rad / 2), 0.0, 0.0, math.sin(yaw_rad / 2))
        start = Start(
            poses={"robot_0": base, **(poses or {})}, joints=joints or {}, joint_pos=robot_start("robot_0", spec)
        )
        self.world.reset(seed, start)
        self.robot = make_robot(self.world, "robot_0", spec)
        self.robot.reset()
        self.bus = MessageBus(("robot_0", "other"))
        self.events: list[tuple[str, Mapping[str, object]]] = []
        self.body = PhysicalBody(
            self.world,
            self.robot,
            np.random.default_rng(seed),
            {"messages": self.bus},
            lambda kind, payload: self.events.append((kind, payload)),
            is_privileged=True,
            prior=self.world.graph(),
        )
        self.steps_per_tick = round(self.robot.dt_ctrl_s / self.world.dt_sim_s)

    @property
    def view(self):
        """What skills see."""
        return self.body.view

    def step(self) -> None:
        """Advance the world by one control period."""
        self.world.step(self.steps_per_tick)

    def run(self, skill: Skill, call: SkillCall, *, watch=None) -> Outcome:
        """Check the preconditions, run a call to its end and return the outcome; ``watch(rig)`` is called each tick."""
        self.body.truth.new_moment()
        unmet = skill.unmet(self.body.belief(), "robot_0", call)
        if unmet:
            return failed("precondition", "; ".join(u.message for u in unmet))
        began_s = self.world.time_s()
        self.body.start(skill, call, began_s)
        while True:
            outcome = self.body.tick(self.world.time_s())
            if outcome is not None:
                self.body.truth.new_moment()
                return outcome
            if self.world.time_s() - began_s > skill.timeout_s:
                self.body.cancel(self.world.time_s())
                return failed("timeout", "ran out of time")
            self.step()
            if watch is not None:
                watch(self)

    def base_xy_yaw(self) -> tuple[float, float, float]:
        """Where the base is."""
        state = self.robot.read()
        w, _, _, z = state.base_quat_wxyz
        return float(state.base_pos_world_m[0]), float(state.base_pos_world_m[1]), 2.0 * math.atan2(z, w)
