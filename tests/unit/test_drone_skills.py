"""Flying skills: paths, sight lines, successes and typed failures in the yard."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import cos, sin

import numpy as np
import pytest

from embodied.agents.bodies import PhysicalBody
from embodied.agents.episode import compile_task, task_start
from embodied.agents.views import TruthView
from embodied.catalog import ROBOTS, SKILLS, TASKS
from embodied.errors import TaskError
from embodied.graph.facts import fact
from embodied.robots.base import make_robot
from embodied.skills.contract import SkillCall, Status
from embodied.skills.drones.airspace import CLEARANCE_M, Airspace
from embodied.skills.drones.inspect import front, sight
from embodied.worlds.contract import Edit
from embodied.worlds.mujoco import MujocoWorld
from embodied_controllers.quadrotor.dynamics import rotation

DRONE = "drone_0"


class Rig:
    """A task's world with one drone that runs calls."""

    def __init__(self, seed: int = 0, extra=(), **options) -> None:
        task = TASKS.get("drones/inspect@1").make(seed, **options)
        scene = task.scene.model_copy(update={"entities": task.scene.entities + extra})
        self.task = replace(task, scene=scene)
        specs = {DRONE: ROBOTS.get("quadrotor")}
        self.world = MujocoWorld(compile_task(self.task, specs))
        self.world.reset(seed, task_start(self.task, specs))
        self.robot = make_robot(self.world, DRONE, specs[DRONE])
        self.robot.reset()
        self.events: list[str] = []
        self.body = PhysicalBody(
            self.world,
            self.robot,
            np.random.default_rng(0),
            {},
            lambda kind, payload: self.events.append(kind),
            is_privileged=True,
            prior=self.world.graph(),
        )

    def run(self, call: SkillCall, each_tick=None):
        skill = SKILLS.get(call.skill)
        self.body.start(skill, call, self.world.time_s())
        for _ in range(round(skill.timeout_s / self.robot.dt_ctrl_s)):
            outcome = self.body.tick(self.world.time_s())
            if outcome is not None:
                return outcome
            if each_tick is not None:
                each_tick(self)
            self.world.step(2)
        return None

    @property
    def pos(self):
        return self.world.qpos[0, :3].copy()

    def holds(self, *words: str) -> bool:
        return fact(*words) in self.world.graph().facts

    def put(self, pos, yaw=0.0) -> None:
        pose = (*pos, cos(yaw / 2), 0.0, 0.0, sin(yaw / 2))
        self.world.edit([Edit(kind="set_pose", entity=DRONE, value=pose)])
        self.world.qvel[0] = 0.0


@pytest.fixture(scope="module")
def space():
    rig = Rig()
    return Airspace.from_view(TruthView(rig.world, DRONE), DRONE)


def test_flight_from_pad_to_pad(space):
    rig = Rig(3, wind_mps=2.0)
    assert rig.holds("at", DRONE, str(rig.task.start.states[(DRONE, "at")]))
    assert not rig.holds("flying", DRONE)
    assert rig.run(SkillCall.of("take_off", height_m=1.2)).status is Status.SUCCEEDED
    assert rig.holds("flying", DRONE)
    assert abs(rig.pos[2] - 1.2) < 0.12
    nearest = []
    check = lambda r: nearest.append(space.blocked(r.pos[None], 0.08)[0])  # noqa: E731
    assert rig.run(SkillCall.of("fly_to", target="pad_east"), check).status is Status.SUCCEEDED
    assert rig.holds("at", DRONE, "pad_east")
    assert not any(nearest), "rotor tips came within a centimetre of something"
    assert rig.run(SkillCall.of("land", pad="pad_east")).status is Status.SUCCEEDED
    assert not rig.holds("flying", DRONE)
    assert rig.holds("at", DRONE, "pad_east")
    assert np.linalg.norm(rig.pos[:2] - (4.4, -1.2)) < 0.1
    assert float(rig.robot.last_action.max()) == 0.0


def test_inspection_states_what_the_camera_saw():
    rig = Rig(1)
    rig.run(SkillCall.of("take_off", height_m=1.2))
    assert not rig.holds("inspected", "panel_blue")
    assert rig.run(SkillCall.of("inspect", target="panel_blue")).status is Status.SUCCEEDED
    assert rig.holds("inspected", "panel_blue")
    assert rig.events == ["inspected"]
    from embodied.sensors.camera import Camera, visible_entities

    frame = Camera(rig.world, f"{DRONE}/front_cam", 160, 120).render()
    assert "panel_blue" in visible_entities(frame, rig.world.scene, 300)


@pytest.mark.parametrize("target", ["panel_red", "panel_green", "panel_orange", "panel_pink"])
def test_sight_agrees_with_the_rendered_image(target):
    """A second formulation: what geometry calls seen fills pixels of the camera, what it calls hidden does not."""
    from embodied.sensors.camera import Camera, visible_entities

    rig = Rig()
    view = TruthView(rig.world, DRONE)
    camera = Camera(rig.world, f"{DRONE}/front_cam", 160, 120)
    _, middle, normal = front(view, target)
    seen_from = middle + 0.9 * normal
    yaw = float(np.arctan2(-normal[1], -normal[0]))
    for turn, is_seen in ((0.0, True), (np.pi, False), (1.3, False)):
        rig.put(seen_from, yaw + turn)
        rot = rotation(rig.world.qpos[:, 3:7])[0]
        found = sight(view, DRONE, target, seen_from + rot @ (0.034, 0.0, 0.0), rot)
        assert (found.code == "") == is_seen, found
        assert (target in visible_entities(camera.render(), rig.world.scene, 300)) == is_seen


def test_sight_names_what_is_wrong():
    rig = Rig()
    view = TruthView(rig.world, DRONE)
    _, middle, normal = front(view, "panel_red")
    west = np.eye(3)  # panel_red faces west, so a drone before it looks east
    side = np.array([0.0, 1.0, 0.0])
    assert sight(view, DRONE, "panel_red", middle + 3.0 * normal, west).code == "out_of_range"
    assert sight(view, DRONE, "panel_red", middle + 0.5 * normal + 0.9 * side, west).code == "too_oblique"
    assert sight(view, DRONE, "panel_red", middle + 0.9 * normal + 0.5 * side, west).code == "not_in_view"
    assert sight(view, DRONE, "panel_red", middle - 1.5 * normal, -west).code == "too_oblique", "from behind the tower"


def test_a_screen_before_the_panel_occludes_it_and_leaves_no_viewpoint():
    from embodied_scenes.spec import EntityModel, EntitySpec, GeomSpec, PartSpec

    plate = EntityModel(parts=(PartSpec(geoms=(GeomSpec(shape="box", size_m=(0.02, 0.9, 0.9)),)),))
    screen = EntitySpec(name="screen", category="board", custom=plate, pos_m=(0.5, 0.0, 2.3), room="yard")
    rig = Rig(0, extra=(screen,))
    view = TruthView(rig.world, DRONE)
    _, middle, normal = front(view, "panel_red")
    found = sight(view, DRONE, "panel_red", middle + 0.9 * normal, np.eye(3))
    assert found.code == "occluded"
    assert found.blocked_by == "screen"
    rig.run(SkillCall.of("take_off", height_m=1.2))
    outcome = rig.run(SkillCall.of("inspect", target="panel_red"))
    assert outcome.code == "no_viewpoint"
    assert not rig.holds("inspected", "panel_red")


def test_occlusion_is_noticed(space):
    assert space.blocker(np.array([-2.0, 0.0, 1.5]), np.array([4.0, 0.0, 1.5])) == "tower"
    assert space.blocker(np.array([-2.0, 0.0, 3.8]), np.array([4.0, 0.0, 3.9])) is None
    assert space.blocker(np.array([-2.0, 0.0, 1.5]), np.array([4.0, 0.0, 1.5]), ignore=("tower",)) != "tower"


def test_gates_are_passed_through_their_opening(space):
    through = (np.array([-3.4, 0.4, 1.4]), np.array([-1.4, 0.4, 1.4]))
    assert space.segment_free(*through)
    assert space.path(*through) == [*through] or len(space.path(*through)) == 2
    beside = np.array([0.0, 0.6, 0.0])
    assert not space.segment_free(through[0] + beside, through[1] + beside), "that is the post"


@pytest.mark.parametrize("seed", range(6))
def test_paths_keep_their_clearance(space, seed):
    rng = np.random.default_rng(seed)
    low, high = space.low_m, space.high_m
    ends = [p for p in rng.uniform(low, high, (30, 3)) if not space.blocked(p[None])[0]][:2]
    path = space.path(*ends)
    assert path is not None
    np.testing.assert_array_equal(path[0], ends[0])
    np.testing.assert_array_equal(path[-1], ends[1])
    for a, b in pairwise(path):
        points = a + np.linspace(0, 1, 200)[:, None] * (b - a)
        assert not space.blocked(points, CLEARANCE_M - 0.02).any()
    length = sum(np.linalg.norm(b - a) for a, b in pairwise(path))
    assert length >= np.linalg.norm(ends[1] - ends[0]) - 1e-9


def test_no_path_into_a_solid(space):
    assert space.path(np.array([-3.0, -3.0, 1.0]), np.array([1.5, 0.0, 1.0])) is None


@pytest.mark.parametrize("height", [0.1, 9.0, -1.0])
def test_bad_heights_are_refused_on_the_ground(height):
    rig = Rig()
    outcome = rig.run(SkillCall.of("take_off", height_m=height))
    assert outcome.code == "bad_height"
    assert not rig.holds("flying", DRONE)
    assert float(rig.robot.last_action.max()) == 0.0


def test_take_off_below_something_is_refused():
    rig = Rig()
    rig.put((-2.4, 0.4, 0.1))  # below the lower bar of the western gate
    outcome = rig.run(SkillCall.of("take_off", height_m=1.4))
    assert outcome.code == "no_way"
    assert outcome.facts["blocked_by"] == "gate_west_frame"


def test_landing_beside_the_pad_is_refused_and_the_drone_keeps_hovering():
    rig = Rig()
    rig.run(SkillCall.of("take_off", height_m=1.2))
    away = next(p for p in ("pad_east", "pad_south") if not rig.holds("at", DRONE, p))
    outcome = rig.run(SkillCall.of("land", pad=away))
    assert outcome.code == "not_above_pad"
    assert outcome.facts["distance_m"] > 0.6
    before = rig.pos
    for _ in range(250):
        rig.robot.stop()
        rig.world.step(2)
    assert np.linalg.norm(rig.pos - before) < 0.1


def test_a_drone_that_is_held_back_says_so():
    rig = Rig()
    rig.run(SkillCall.of("take_off", height_m=1.2))
    start = rig.pos

    def hold(r):
        r.put(start)

    outcome = rig.run(SkillCall.of("fly_to", target="gate_north"), hold)
    assert outcome.code == "blocked"
    assert outcome.facts["distance_m"] > 1.0
    assert outcome.facts["blocked_by"] in rig.world.scene.info.entities


def test_a_tumbled_drone_switches_off():
    rig = Rig()
    rig.run(SkillCall.of("take_off", height_m=1.2))
    rig.world.qpos[0, 3:7] = (0.0, 1.0, 0.0, 0.0)
    outcome = rig.run(SkillCall.of("fly_to", target="gate_north"))
    assert outcome.code == "crashed"
    assert float(rig.robot.last_action.max()) == 0.0
    assert not rig.holds("flying", DRONE)


def test_cancel_leaves_it_hovering():
    rig = Rig()
    rig.run(SkillCall.of("take_off", height_m=1.2))
    rig.body.start(SKILLS.get("fly_to"), SkillCall.of("fly_to", target="gate_west"), rig.world.time_s())
    for _ in range(300):
        rig.body.tick(rig.world.time_s())
        rig.world.step(2)
    rig.body.cancel(rig.world.time_s())
    for _ in range(750):
        rig.body.rest()
        rig.world.step(2)
    assert np.linalg.norm(rig.world.qvel[0, :3]) < 0.1
    assert rig.pos[2] > 0.8


def test_wind_and_wording_vary_with_the_seed():
    tasks = [TASKS.get("drones/inspect@1").make(s) for s in range(20)]
    assert len({t.start.states[("windsock", "wind_x_mps")] for t in tasks}) == 20
    assert {len(t.witness[DRONE]) - 3 for t in tasks} == {1, 2, 3, 4}
    assert len({t.instruction.split(" ")[0] for t in tasks}) > 2
    for task in tasks:
        assert len(task.paraphrases) == 3
        assert all(t.args[0][1] in task.instruction for t in task.witness[DRONE] if t.skill == "inspect")
    with pytest.raises(TaskError, match="num_targets"):
        TASKS.get("drones/inspect@1").make(0, num_targets=99)
    with pytest.raises(TaskError, match="wind_mps"):
        TASKS.get("drones/inspect@1").make(0, wind_mps=12.0)


def test_two_drones_have_pads_of_their_own():
    task = TASKS.get("drones/inspect@1").make(4, num_drones=2, num_targets=3)
    pads = [v for (_, k), v in task.start.states.items() if k == "at"]
    goals = [calls[-1].arg("pad") for calls in task.witness.values()]
    assert len({*pads, *goals}) == 4
    assert sorted(len(c) for c in task.witness.values()) == [4, 5]
    with pytest.raises(TaskError, match="num_drones"):
        TASKS.get("drones/inspect@1").make(4, num_drones=3)
