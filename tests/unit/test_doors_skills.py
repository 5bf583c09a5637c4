"""Open, close and push_button, by physics, on single pieces of furniture."""

from __future__ import annotations

import math

import numpy as np
import pytest

from embodied.skills.contract import Outcome, Skill, SkillCall
from embodied.skills.household.close import CLOSE
from embodied.skills.household.go_to import GO_TO
from embodied.skills.household.open import OPEN
from embodied.skills.household.push_button import PUSH_BUTTON
from embodied_scenes.spec import EntityModel, EntitySpec, GeomSpec, PartSpec, SceneSpec, WallSpec
from tests.manipulator_rig import Rig, room_scene


def door_scene(model: str, hinge_left: bool | None, *more: EntitySpec) -> SceneSpec:
    params = {} if hinge_left is None else {"hinge_left": hinge_left}
    piece = EntitySpec(name="piece", category=model, model=model, pos_m=(-2.6, 0.4, 0), params=params)
    return room_scene((piece, *more))


def call(skill: str, target: str = "piece") -> SkillCall:
    return SkillCall.of(skill, target=target)


def to_the_end(rig: Rig, skill: Skill, target: str = "piece") -> Outcome:
    """Run a call whatever its preconditions say."""
    rig.body.start(skill, call(skill.name, target), rig.world.time_s())
    while (outcome := rig.body.tick(rig.world.time_s())) is None:
        rig.step()
    return outcome


@pytest.mark.parametrize(
    ("model", "hinge_left", "seed"),
    [("fridge", True, 0), ("cabinet", False, 1), ("drawer", None, 2), ("oven", True, 3), ("wardrobe", False, 4)],
)
def test_opens_and_closes_from_anywhere(model: str, hinge_left: bool | None, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rig = Rig(
        door_scene(model, hinge_left),
        xy_m=(float(rng.uniform(-1, 2)), float(rng.uniform(-2, 2))),
        yaw_rad=float(rng.uniform(-3, 3)),
        seed=seed,
    )
    assert rig.run(GO_TO, call("go_to")).status == "succeeded"
    assert rig.world.graph().holds("at", "robot_0", "piece")
    outcome = rig.run(OPEN, call("open"))
    assert outcome.status == "succeeded", outcome
    assert rig.view.opening("piece") >= 0.8
    assert rig.world.graph().holds("open", "piece")
    # It stays open with the robot clear of it, so that things can be put in.
    for _ in range(50):
        rig.step()
    assert rig.view.opening("piece") >= 0.8
    assert rig.run(GO_TO, call("go_to")).status == "succeeded"
    outcome = rig.run(CLOSE, call("close"))
    assert outcome.status == "succeeded", outcome
    assert abs(rig.view.opening("piece")) <= 0.03
    assert not rig.world.graph().holds("open", "piece")


@pytest.mark.parametrize("opening", [0.25, 0.6, 1.0])
def test_closes_from_any_opening(opening: float) -> None:
    rig = Rig(door_scene("cabinet", True), xy_m=(0.0, 0.0), joints={"piece": opening})
    rig.run(GO_TO, call("go_to"))
    outcome = rig.run(CLOSE, call("close"))
    assert outcome.status == "succeeded", outcome
    assert abs(rig.view.opening("piece")) <= 0.03


def test_opens_further_from_ajar() -> None:
    """A door that a failed attempt left half open is pushed on from the inside or pulled on."""
    rig = Rig(door_scene("fridge", True), joints={"piece": 0.4})
    rig.run(GO_TO, call("go_to"))
    outcome = to_the_end(rig, OPEN)  # its precondition reads "open" from a tenth on
    assert outcome.status == "succeeded", outcome
    assert rig.view.opening("piece") >= 0.8


def test_closes_between_wall_and_chair() -> None:
    """No room beside the open door: the hand pinches its edge."""
    piece = EntitySpec(
        name="piece",
        category="cabinet",
        model="tall_cabinet",
        pos_m=(-2.72, -2.4, 0),
        params={"hinge_left": False},
    )
    chair = EntitySpec(name="chair", category="chair", model="chair", pos_m=(-1.34, -2.55, 0))
    rig = Rig(room_scene((piece, chair)), joints={"piece": 0.93}, xy_m=(0.5, 0.5))
    rig.run(GO_TO, call("go_to"))
    outcome = rig.run(CLOSE, call("close"))
    assert outcome.status == "succeeded", outcome
    assert abs(rig.view.opening("piece")) <= 0.03


def test_a_blocked_door_names_what_blocks_it() -> None:
    block = EntitySpec(name="crate", category="crate", model="block", pos_m=(-1.78, 0.2, 0), params={"height_m": 1.0})
    rig = Rig(door_scene("fridge", True, block), xy_m=(0.0, 1.0))
    outcome = to_the_end(rig, OPEN)
    assert outcome.code == "blocked"
    assert outcome.facts["blocked_by"] == "crate"


def test_preconditions_and_effects() -> None:
    rig = Rig(door_scene("fridge", True))
    graph = rig.world.graph()
    missing = OPEN.unmet(graph, "robot_0", call("open"))
    assert [str(u.missing) for u in missing] == ["at(robot_0, piece)"]
    assert CLOSE.unmet(graph, "robot_0", call("close"))
    assert "no door" in OPEN.unmet(graph, "robot_0", call("open", "spot"))[0].message
    added, removed = OPEN.effects(graph, "robot_0", call("open"))
    assert [str(f) for f in added] == ["open(piece)"]
    assert not removed
    assert list(OPEN.groundings(graph, "robot_0")) == [call("open")]


def test_what_cannot_be_opened_says_so() -> None:
    table = EntitySpec(name="table", category="table", model="table", pos_m=(1.0, 0.0, 0.0))
    bare = EntityModel(parts=(PartSpec(geoms=(GeomSpec(size_m=(0.2, 0.2, 0.3), pos_m=(0, 0, 0.3)),)),))
    rig = Rig(room_scene((table, EntitySpec(name="bare", category="box", custom=bare, pos_m=(2, 2, 0)))))
    for name, skill, code in (
        ("table", OPEN, "not_openable"),
        ("bare", CLOSE, "not_openable"),
        ("nothing", OPEN, "not_found"),
    ):
        run = skill.start(rig.body._ctx, call(skill.name, name))
        assert run.tick(rig.body._ctx).code == code
    run = PUSH_BUTTON.start(rig.body._ctx, call("push_button", "table"))
    assert run.tick(rig.body._ctx).code == "no_button"


def test_cancelling_stops_the_robot() -> None:
    rig = Rig(door_scene("fridge", True), xy_m=(-1.2, 0.4), yaw_rad=math.pi)
    run = OPEN.start(rig.body._ctx, call("open"))
    for _ in range(100):
        assert run.tick(rig.body._ctx) is None
        rig.step()
    run.cancel(rig.body._ctx)
    for _ in range(50):
        rig.robot.stop()
        rig.step()
    state = rig.robot.read()
    assert np.abs(state.joint_vel[:8]).max() < 0.05
    assert abs(state.base_vel_body_mps[0]) < 0.01


@pytest.mark.parametrize("model", ["lamp", "radio", "coffee_machine"])
def test_buttons_switch_on_and_off(model: str) -> None:
    table = EntitySpec(name="table", category="table", model="counter", pos_m=(2.6, 0.0, 0.0), yaw_rad=math.pi)
    height = 0.0 if model == "lamp" else 0.9
    at = (2.0, 0.0, 0.0) if model == "lamp" else (2.6, 0.1, height)
    device = EntitySpec(name="device", category=model, model=model, pos_m=at, yaw_rad=math.pi)
    rig = Rig(room_scene((device,) if model == "lamp" else (table, device)), xy_m=(-0.5, -0.5))
    rig.run(GO_TO, call("go_to", "device"))
    for expected in (True, False):
        outcome = rig.run(PUSH_BUTTON, call("push_button", "device"))
        assert outcome.status == "succeeded", outcome
        assert rig.world.graph().holds("on", "device") is expected


def test_a_button_behind_walls_is_out_of_reach() -> None:
    device = EntitySpec(name="device", category="lamp", model="lamp", pos_m=(2.0, 2.0, 0.0), yaw_rad=math.pi)
    walls = (
        WallSpec(start_m=(0.8, 0.8), end_m=(0.8, 3.0)),
        WallSpec(start_m=(0.8, 0.8), end_m=(3.0, 0.8)),
    )
    rig = Rig(room_scene((device,), walls=walls), xy_m=(-1.0, -1.0))
    outcome = rig.run(GO_TO, call("go_to", "device"))
    assert outcome.code == "unreachable"
    outcome = to_the_end(rig, PUSH_BUTTON, "device")
    assert outcome.code == "unreachable"
