"""go_to, look, and the skills of every robot."""

from __future__ import annotations

import math

import numpy as np
import pytest

from embodied.agents.eyes import Eyes
from embodied.errors import SkillError
from embodied.skills.common.stay import ABSTAIN, DONE, WAIT
from embodied.skills.common.talk import ASK, MESSAGE
from embodied.skills.contract import SkillCall
from embodied.skills.household.go_to import GO_TO
from embodied.skills.household.look import LOOK
from embodied_controllers.base.grid_path import box_clearance
from embodied_scenes.spec import EntitySpec, WallSpec
from tests.manipulator_rig import Rig, room_scene

FURNITURE = (
    EntitySpec(name="fridge", category="fridge", model="fridge", pos_m=(-2.6, -1.5, 0)),
    EntitySpec(name="table", category="table", model="table", pos_m=(1.2, 0.5, 0)),
    EntitySpec(name="cup", category="cup", model="cup", pos_m=(1.3, 0.9, 0.79), movable=True),
    EntitySpec(name="ball", category="ball", model="round_thing", pos_m=(-1.0, 2.0, 0.05), movable=True),
)


def go(target: str) -> SkillCall:
    return SkillCall.of("go_to", target=target)


@pytest.mark.parametrize("target", ["fridge", "table", "cup", "ball", "spot", "kitchen"])
def test_goes_and_faces(target: str) -> None:
    rig = Rig(room_scene(FURNITURE), xy_m=(-1.0, -0.5), yaw_rad=1.0)
    boxes = rig.view.footprints()
    closest = []
    outcome = rig.run(
        GO_TO, go(target), watch=lambda r: closest.append(box_clearance(np.array([r.base_xy_yaw()[:2]]), boxes)[0])
    )
    assert outcome.status == "succeeded", outcome
    assert min(closest) > 0.25
    assert rig.world.graph().holds("at", "robot_0", target)
    x, y, yaw = rig.base_xy_yaw()
    if target in ("fridge", "table", "cup", "ball"):
        point = rig.view.pose(target).pos_world_m
        bearing = math.atan2(point[1] - y, point[0] - x)
        assert abs(math.remainder(bearing - yaw, 2 * math.pi)) < 0.8
        assert math.hypot(point[0] - x, point[1] - y) < 1.3
    rig.run(GO_TO, go("spot"))
    at = [f for f in rig.world.graph().facts if f.predicate == "at" and f.args[0] == "robot_0"]
    assert [str(f) for f in at] == ["at(robot_0, spot)"]


def test_a_closed_off_target_is_unreachable() -> None:
    walls = (WallSpec(start_m=(0.0, -3.0), end_m=(0.0, 3.0)),)
    rig = Rig(room_scene(FURNITURE, walls=walls), xy_m=(-1.0, -0.5))
    outcome = rig.run(GO_TO, go("table"))
    assert outcome.code == "unreachable"
    assert not rig.world.graph().holds("at", "robot_0", "table")


def test_an_open_door_in_the_way_is_named() -> None:
    """A corridor that an open door closes off."""
    walls = (
        WallSpec(start_m=(-3.0, 0.5), end_m=(1.5, 0.5)),
        WallSpec(start_m=(2.5, 0.5), end_m=(3.0, 0.5)),
    )
    door = EntitySpec(
        name="cupboard", category="cabinet", model="cabinet", pos_m=(1.25, 0.0, 0), params={"depth_m": 0.3}
    )
    table = EntitySpec(name="table", category="table", model="stool", pos_m=(0.0, 2.0, 0))
    rig = Rig(room_scene((door, table), walls=walls), xy_m=(-1.0, -1.5), joints={"cupboard": 0.83})
    outcome = rig.run(GO_TO, go("table"))
    if outcome.status != "succeeded":
        assert outcome.code == "unreachable"
        assert outcome.facts.get("blocked_by") == "cupboard"
    else:
        pytest.fail("the corridor of this test must be narrow enough")


def test_waits_for_someone_in_the_way_and_then_fails_as_blocked() -> None:
    """A thing that appears in the only way while driving."""
    walls = (
        WallSpec(start_m=(0.0, -3.0), end_m=(0.0, -0.6)),
        WallSpec(start_m=(0.0, 0.6), end_m=(0.0, 3.0)),
    )
    table = EntitySpec(name="table", category="table", model="table", pos_m=(2.2, 0.0, 0))
    crate = EntitySpec(
        name="crate", category="crate", model="block", pos_m=(-2.0, 2.0, 0), movable=True, params={"height_m": 0.5}
    )
    rig = Rig(room_scene((table, crate), walls=walls), xy_m=(-2.2, 0.0))
    rig.body.start(GO_TO, go("table"), 0.0)
    outcome = None
    while outcome is None and rig.world.time_s() < 110.0:
        outcome = rig.body.tick(rig.world.time_s())
        rig.step()
        if abs(rig.world.time_s() - 1.0) < 1e-6:
            rig.world.layout.write_pose("crate", (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0), rig.world.qpos[0])
            rig.world.forward()
    assert outcome is not None
    assert outcome.code in ("blocked", "unreachable"), outcome
    x, _, _ = rig.base_xy_yaw()
    assert x < 0.0


def test_unknown_targets_are_refused_before_the_robot_moves() -> None:
    rig = Rig(room_scene(FURNITURE))
    assert "nothing is called" in GO_TO.unmet(rig.world.graph(), "robot_0", go("attic"))[0].message
    assert GO_TO.unmet(rig.world.graph(), "robot_0", go("robot_0"))
    run = GO_TO.start(rig.body._ctx, go("attic"))
    outcome = run.tick(rig.body._ctx)
    assert outcome is not None
    assert outcome.code == "not_found"


def test_effects_move_the_agent() -> None:
    graph = Rig(room_scene(FURNITURE)).world.graph()
    graph = graph.changed(*GO_TO.effects(graph, "robot_0", go("fridge")))
    graph = graph.changed(*GO_TO.effects(graph, "robot_0", go("table")))
    assert [str(f) for f in graph.find("at", "robot_0")] == ["at(robot_0, table)"]


def test_looks_at_what_is_behind() -> None:
    rig = Rig(room_scene(FURNITURE), yaw_rad=-2.5)
    rig.body._ctx.services = {"camera": _HeadCamera(rig)}
    outcome = rig.run(LOOK, SkillCall.of("look", target="cup"))
    assert outcome.status == "succeeded"
    seen = str(outcome.facts["visible"]).split(", ")
    assert {"cup", "table"} <= set(seen)
    assert "fridge" not in seen
    x, y, yaw = rig.base_xy_yaw()
    cup = rig.view.pose("cup").pos_world_m
    assert abs(math.remainder(math.atan2(cup[1] - y, cup[0] - x) - yaw, 2 * math.pi)) < 0.15
    tilt = rig.robot.read().joint_pos[rig.robot.observation_spec.joint_names.index("head_tilt_rad")]
    assert 0.1 < tilt < 0.9


class _HeadCamera:
    """The service ``camera`` over the robot's real cameras."""

    def __init__(self, rig: Rig) -> None:
        self._eyes = Eyes(rig.world, rig.robot)

    def visible(self, agent: str) -> list[str]:
        assert agent == "robot_0"
        return self._eyes.visible()


def test_waiting_takes_its_time() -> None:
    rig = Rig(room_scene(()))
    began = rig.world.time_s()
    assert rig.run(WAIT, SkillCall.of("wait", duration_s=1.5)).status == "succeeded"
    assert rig.world.time_s() - began == pytest.approx(1.5, abs=0.03)
    for bad in (math.nan, -1.0, 1e9, "soon", True):
        with pytest.raises(SkillError, match="duration_s"):
            WAIT.start(rig.body._ctx, SkillCall.of("wait", duration_s=bad))


def test_messages_arrive() -> None:
    rig = Rig(room_scene(()))
    rig.body.start(MESSAGE, SkillCall.of("message", receiver="other", text="hello"), 0.0)
    assert rig.body.tick(0.0).status == "succeeded"
    assert [m.text for m in rig.bus.collect("other")] == ["hello"]
    rig.body.start(MESSAGE, SkillCall.of("message", receiver="nobody", text="hello"), 0.0)
    assert rig.body.tick(0.0).code == "unknown_receiver"
    assert (
        "no other agent"
        in MESSAGE.unmet(rig.world.graph(), "robot_0", SkillCall.of("message", receiver="x", text="y"))[0].message
    )
    assert rig.run(ASK, SkillCall.of("ask", text="Which cup?")).status == "succeeded"
    assert rig.bus.sent[-1].receiver == "user"
    for skill in (MESSAGE, ASK):
        with pytest.raises(SkillError, match="text"):
            skill.start(rig.body._ctx, SkillCall.of(skill.name, receiver="other", text="  "))
    rig.body._ctx.services = {}
    rig.body.start(ASK, SkillCall.of("ask", text="?"), 0.0)
    assert rig.body.tick(0.0).code == "no_channel"


@pytest.mark.parametrize("skill", [DONE, ABSTAIN])
def test_ends_at_once_and_changes_nothing(skill) -> None:
    rig = Rig(room_scene(()))
    before = rig.world.graph().facts
    assert rig.run(skill, SkillCall(skill.name)).status == "succeeded"
    assert rig.world.graph().facts == before
    assert rig.world.time_s() == 0.0
