"""Pick and place by physics: tables, compartments, drawers, bins, next to and under things; and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from embodied.errors import SkillError
from embodied.graph.facts import Graph, Node, fact
from embodied.skills.contract import Outcome, Skill, SkillCall
from embodied.skills.household.pick import PICK
from embodied.skills.household.place import PLACE
from embodied_controllers.contract import Command
from embodied_scenes.spec import EntityModel, EntitySpec, GeomSpec, PartSpec
from tests.manipulator_rig import Rig, room_scene

HEIGHT_M = {"round_thing": 0.07, "can": 0.115, "bottle": 0.22, "block_thing": 0.06, "mug": 0.09, "book": 0.18}
TABLE = EntitySpec(name="table", category="table", model="table", pos_m=(-1.6, 0, 0))


def thing(model: str, x: float, y: float, support_m: float, yaw: float = 0.0, name: str = "thing") -> EntitySpec:
    z = support_m + HEIGHT_M[model] / 2 + 0.002
    return EntitySpec(name=name, category=model, model=model, movable=True, pos_m=(x, y, z), yaw_rad=yaw)


def furniture(model: str) -> EntitySpec:
    return EntitySpec(name="piece", category=model, model=model, pos_m=(1.7, 0, 0), yaw_rad=np.pi)


def take(name: str = "thing") -> SkillCall:
    return SkillCall.of("pick", thing=name)


def put(relation: str, target: str = "piece") -> SkillCall:
    return SkillCall.of("place", thing="thing", target=target, relation=relation)


def to_the_end(rig: Rig, skill: Skill, call: SkillCall) -> Outcome:
    """Run a call whatever its preconditions say."""
    rig.body.start(skill, call, rig.world.time_s())
    while (outcome := rig.body.tick(rig.world.time_s())) is None:
        rig.step()
    return outcome


@pytest.mark.parametrize(
    ("model", "relation", "kind", "seed"),
    [
        ("table", "on", "bottle", 0),
        ("counter", "on", "mug", 1),
        ("fridge", "in", "can", 2),
        ("bookcase", "in", "round_thing", 3),
        ("cabinet", "in", "book", 4),
        ("drawer", "in", "block_thing", 5),
        ("trash_can", "in", "can", 6),
        ("table", "under", "round_thing", 7),
    ],
)
def test_carries_a_thing_from_the_table(model: str, relation: str, kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    spot = (-1.4 + float(rng.uniform(-0.1, 0.05)), float(rng.uniform(-0.3, 0.3)))
    item = thing(kind, *spot, 0.74, float(rng.uniform(-3, 3)))
    opens = {"piece": 1.0} if model in ("fridge", "cabinet", "drawer") else {}
    rig = Rig(room_scene((TABLE, furniture(model), item)), yaw_rad=float(rng.uniform(-3, 3)), joints=opens, seed=seed)
    outcome = rig.run(PICK, take())
    assert outcome.status == "succeeded", outcome
    graph = rig.world.graph()
    assert graph.holds("holding", "robot_0", "thing")
    assert not graph.holds("ontop", "thing", "table")
    added, removed = PLACE.effects(graph, "robot_0", put(relation))
    outcome = rig.run(PLACE, put(relation))
    assert outcome.status == "succeeded", outcome
    for _ in range(25):
        rig.step()
    graph = rig.world.graph()
    predicate = {"on": "ontop", "in": "inside", "under": "under"}[relation]
    assert fact(predicate, "thing", "piece") in added
    assert fact("holding", "robot_0", "thing") in removed
    assert graph.holds(predicate, "thing", "piece")
    assert graph.held_by("robot_0") is None
    assert not [e for e in rig.events if e[0] == "weld_assist"]


def test_takes_from_a_shelf_and_puts_next_to_another() -> None:
    shelf = furniture("bookcase")
    rig = Rig(
        room_scene((TABLE, shelf, thing("can", 1.6, 0.1, 0.78), thing("mug", -1.45, 0.0, 0.74, name="other"))),
        yaw_rad=2.0,
    )
    assert rig.run(PICK, take()).status == "succeeded"
    outcome = rig.run(PLACE, put("nextto", "other"))
    assert outcome.status == "succeeded", outcome
    graph = rig.world.graph()
    assert graph.holds("nextto", "thing", "other")
    assert graph.holds("ontop", "thing", "table")


def test_takes_from_the_floor_past_a_neighbour() -> None:
    rig = Rig(room_scene((thing("block_thing", 1.2, 0.4, 0.0, 0.7), thing("can", 1.2, 0.55, 0.0, name="other"))))
    before = rig.world.body_pos_world_m[0, rig.world.scene.model.body("other").id].copy()
    assert rig.run(PICK, take()).status == "succeeded"
    after = rig.world.body_pos_world_m[0, rig.world.scene.model.body("other").id]
    assert np.linalg.norm(after - before) < 0.02


def test_equal_runs_are_equal() -> None:
    hashes = []
    for _ in range(2):
        rig = Rig(room_scene((TABLE, thing("can", -1.4, 0.1, 0.74))), seed=3)
        assert rig.run(PICK, take()).status == "succeeded"
        hashes.append(rig.world.hash())
    assert hashes[0] == hashes[1]


def test_unknown_things_and_relations_are_refused() -> None:
    rig = Rig(room_scene((TABLE, thing("can", -1.4, 0.1, 0.74))))
    with pytest.raises(SkillError, match="unicorn"):
        rig.body.start(PICK, take("unicorn"), 0.0)
    with pytest.raises(SkillError, match="unicorn"):
        rig.body.start(PLACE, put("on", "unicorn"), 0.0)
    with pytest.raises(SkillError, match="relation"):
        rig.body.start(PLACE, put("above", "table"), 0.0)


def test_furniture_and_wide_things_are_not_graspable() -> None:
    crate = EntityModel(parts=(PartSpec(geoms=(GeomSpec(size_m=(0.1, 0.1, 0.05), mass_kg=0.3),)),))
    wide = EntitySpec(name="crate", category="crate", custom=crate, movable=True, pos_m=(-1.4, 0, 0.8))
    rig = Rig(room_scene((TABLE, wide)))
    assert to_the_end(rig, PICK, take("table")).code == "not_graspable"
    outcome = to_the_end(rig, PICK, take("crate"))
    assert outcome.code == "not_graspable"
    assert outcome.facts["width_m"] == pytest.approx(0.2)


def test_closed_containers_say_so() -> None:
    rig = Rig(room_scene((TABLE, furniture("fridge"), thing("can", 1.6, 0.0, 0.50))))
    unmet = PICK.unmet(rig.world.graph(), "robot_0", take())
    assert [u.missing for u in unmet] == [fact("open", "piece")]
    outcome = to_the_end(rig, PICK, take())
    assert outcome.code == "closed"
    assert outcome.facts["container"] == "piece"


def test_a_thing_out_of_reach_is_unreachable() -> None:
    post = EntityModel(parts=(PartSpec(geoms=(GeomSpec(size_m=(0.3, 0.3, 1.0), pos_m=(0, 0, 1.0)),)),))
    high = EntitySpec(name="post", category="post", custom=post, pos_m=(1.7, 0, 0))
    rig = Rig(room_scene((high, thing("can", 1.7, 0.0, 2.0))))
    outcome = rig.run(PICK, take())
    assert outcome.code == "unreachable"
    assert outcome.facts["distance_m"] == pytest.approx(1.7, abs=0.05)


def test_a_full_board_is_occupied_and_a_lost_thing_is_dropped() -> None:
    stool = EntitySpec(name="piece", category="stool", model="stool", params={"size": 0.24}, pos_m=(1.7, 0, 0))
    rig = Rig(room_scene((TABLE, stool, thing("book", 1.7, 0, 0.5, name="other"), thing("can", -1.4, 0.1, 0.74))))
    assert rig.run(PICK, take()).status == "succeeded"
    outcome = rig.run(PLACE, put("on"))
    assert outcome.code == "occupied", outcome
    assert rig.world.graph().holds("holding", "robot_0", "thing")
    action = rig.robot.last_action
    action[10] = 0.1
    for _ in range(40):
        rig.robot.send(Command(values=action))
        rig.step()
    assert to_the_end(rig, PLACE, put("on", "table")).code == "dropped"


def test_cancelling_leaves_the_robot_at_rest_with_what_it_holds() -> None:
    rig = Rig(room_scene((TABLE, thing("can", -1.4, 0.1, 0.74))))
    assert rig.run(PICK, take()).status == "succeeded"
    rig.body.start(PLACE, put("on", "table"), rig.world.time_s())
    for _ in range(80):
        rig.body.tick(rig.world.time_s())
        rig.step()
    rig.body.cancel(rig.world.time_s())
    for _ in range(50):
        rig.body.rest()
        rig.step()
    assert np.abs(rig.robot.read().base_vel_body_mps).max() < 1e-3
    assert rig.world.graph().holds("holding", "robot_0", "thing")


def test_symbols_ask_for_a_free_hand_and_an_open_door() -> None:
    nodes = {
        "robot_0": Node(name="robot_0", kind="agent", category="mobile_manipulator"),
        "cup": Node(name="cup", kind="object", category="cup", properties=frozenset({"graspable"})),
        "pen": Node(name="pen", kind="object", category="pen", properties=frozenset({"graspable"})),
        "box": Node(name="box", kind="fixture", category="box", properties=frozenset({"container", "openable"})),
    }
    graph = Graph(nodes, frozenset({fact("inside", "cup", "box"), fact("holding", "robot_0", "pen")}))
    reasons = PICK.unmet(graph, "robot_0", take("cup"))
    assert len(reasons) == 2
    assert fact("open", "box") in {u.missing for u in reasons}
    call = SkillCall.of("place", thing="pen", target="box", relation="in")
    assert [u.missing for u in PLACE.unmet(graph, "robot_0", call)] == [fact("open", "box")]
    opened = graph.changed(add=[fact("open", "box")])
    assert PLACE.unmet(opened, "robot_0", call) == ()
    add, remove = PLACE.effects(opened, "robot_0", call)
    after = opened.changed(add, remove)
    assert after.holds("inside", "pen", "box")
    assert after.held_by("robot_0") is None
    assert PICK.unmet(after, "robot_0", take("cup")) == ()
    add, remove = PICK.effects(after, "robot_0", take("cup"))
    after = after.changed(add, remove)
    assert after.held_by("robot_0") == "cup"
    assert not after.holds("inside", "cup", "box")
    assert {str(c) for c in PLACE.groundings(after, "robot_0")} >= {"place(cup, box, in)", "place(cup, pen, nextto)"}
