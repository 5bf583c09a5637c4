"""The warehouse skills on one robot in physics: what they do, and every typed failure."""

from __future__ import annotations

import numpy as np
import pytest

from embodied.agents.bodies import PhysicalBody
from embodied.graph.facts import fact
from embodied.robots.amr.spec import AMR
from embodied.robots.base import make_robot
from embodied.skills.contract import SkillCall, Status
from embodied.skills.warehouse.all import charge, drive_to, lift, lower, scan_code
from embodied.skills.warehouse.floor import SERVICE, FleetFloor
from embodied.worlds.contract import Edit, Start
from embodied.worlds.mujoco import MujocoWorld
from embodied_controllers.contract import Command
from embodied_scenes.builders import RobotMount, compile_scene
from embodied_scenes.warehouse.hall import build, hall_layout

SKILLS = {s.name: s for s in (charge, drive_to, lift, lower, scan_code)}
LAYOUT = hall_layout()


class Rig:
    """One AMR in the hall, started in a cell."""

    def __init__(self, cell, *, heavy=(), states=None, poses=None):
        scene = build(LAYOUT, "warehouse/test", heavy=heavy)
        self.world = MujocoWorld(compile_scene(scene, [RobotMount(name="amr_0", kind="amr", mjcf=AMR.mjcf)]))
        x, y = LAYOUT.grid.center_m(cell)
        start = {"amr_0": (x, y, 0.0, 1.0, 0.0, 0.0, 0.0), **(poses or {})}
        self.world.reset(0, Start(poses=start, states=states or {}))
        self.robot = make_robot(self.world, "amr_0", AMR)
        self.robot.reset()
        self.events = []
        self.body = PhysicalBody(
            self.world,
            self.robot,
            np.random.default_rng(0),
            {SERVICE: FleetFloor()},
            lambda kind, payload: self.events.append((kind, payload)),
            is_privileged=True,
            prior=self.world.graph(),
        )

    def do(self, call, limit_s=120.0):
        self.body.truth.new_moment()
        self.body.start(SKILLS[call.skill], call, self.world.time_s())
        for _ in range(int(limit_s / AMR.dt_ctrl_s)):
            outcome = self.body.tick(self.world.time_s())
            self.world.step(10)
            if outcome is not None:
                return outcome
        raise AssertionError(f"{call} did not end within {limit_s} s")

    def holds(self, *words):
        return fact(*words) in self.world.graph().facts

    def xy(self, name):
        return self.world.body_pos_world_m[0, self.world.scene.model.body(name).id][:2].copy()


def under(carrier):
    return LAYOUT.carriers[carrier]


HOME = LAYOUT.homes[0]


def test_a_delivery_moves_carrier_and_package_by_physics():
    rig = Rig(HOME)
    assert rig.do(SkillCall.of("drive_to", target="carrier_1")).status is Status.SUCCEEDED
    assert np.abs(rig.xy("amr_0/base") - rig.xy("carrier_1")).max() < 0.015
    assert rig.do(SkillCall.of("scan_code", thing="carrier_1")).status is Status.SUCCEEDED
    assert rig.events[-1] == ("code", {"agent": "amr_0", "thing": "carrier_1", "text": "PKG-1037"})
    assert rig.do(SkillCall.of("lift", thing="carrier_1")).status is Status.SUCCEEDED
    state = rig.robot.read()
    assert state.signals["deck_load_kg"] == pytest.approx(23.0, abs=0.5)  # carrier 15 kg + package 8 kg
    assert rig.world.body_pos_world_m[0, rig.world.scene.model.body("carrier_1").id][2] > 0.02
    assert rig.do(SkillCall.of("drive_to", target="station_0")).status is Status.SUCCEEDED
    assert rig.do(SkillCall.of("lower")).status is Status.SUCCEEDED
    assert rig.holds("at", "carrier_1", "station_0")
    assert rig.holds("at", "package_1", "station_0")
    assert rig.holds("scanned", "carrier_1")
    assert not rig.holds("lifted", "amr_0", "carrier_1")
    assert np.abs(rig.xy("package_1") - rig.xy("carrier_1")).max() < 0.02
    assert 0.99 < rig.robot.read().signals["battery_ratio"] < 1.0


def test_lift_fails_with_nothing_above_and_with_another_above():
    rig = Rig(HOME)
    assert rig.do(SkillCall.of("lift", thing="carrier_0")).code == "nothing_to_lift"
    rig = Rig(under("carrier_2"))
    outcome = rig.do(SkillCall.of("lift", thing="carrier_0"))
    assert (outcome.code, outcome.facts["above"]) == ("wrong_thing", "carrier_2")


def test_a_load_over_the_payload_stays_on_the_floor():
    rig = Rig(under("carrier_0"), heavy=["carrier_0"])
    outcome = rig.do(SkillCall.of("lift", thing="carrier_0"))
    assert outcome.code == "overloaded"
    assert outcome.facts["load_kg"] > 200
    assert abs(rig.world.body_pos_world_m[0, rig.world.scene.model.body("carrier_0").id][2]) < 0.01
    assert rig.robot.read().signals["deck_m"] < 0.005
    assert not rig.holds("lifted", "amr_0", "carrier_0")


def test_lower_without_a_load_is_a_typed_failure():
    assert Rig(HOME).do(SkillCall.of("lower")).code == "nothing_lifted"


def test_codes_are_read_only_when_the_camera_sees_them():
    rig = Rig(HOME)
    assert rig.robot.read_codes() == ()
    assert rig.do(SkillCall.of("scan_code", thing="carrier_0")).code == "code_unreadable"
    rig = Rig(under("carrier_2"))
    assert [r.text for r in rig.robot.read_codes()] == ["PKG-1074"]
    assert rig.do(SkillCall.of("scan_code", thing="carrier_0")).code == "wrong_code"
    assert not rig.holds("scanned", "carrier_0")
    # half a metre beside the middle the plate is out of the picture
    x, y = LAYOUT.grid.center_m(under("carrier_2"))
    rig.world.edit([Edit(kind="set_pose", entity="amr_0", value=(x + 0.5, y, 0.0, 1.0, 0.0, 0.0, 0.0))])
    assert rig.robot.read_codes() == ()


def test_low_battery_only_lets_the_robot_reach_a_charger():
    rig = Rig(HOME, states={("amr_0", "battery_ratio"): 0.04})
    outcome = rig.do(SkillCall.of("drive_to", target="station_0"))
    assert (outcome.code, round(float(outcome.facts["battery_ratio"]), 2)) == ("low_battery", 0.04)
    assert rig.do(SkillCall.of("charge")).code == "not_at_charger"
    assert rig.do(SkillCall.of("drive_to", target="charger_0")).status is Status.SUCCEEDED
    assert rig.do(SkillCall.of("charge")).status is Status.SUCCEEDED
    assert rig.robot.read().signals["battery_ratio"] >= 0.95
    assert rig.holds("charged", "amr_0")


def test_an_obstacle_that_is_on_no_map_stops_the_robot():
    x, y = LAYOUT.grid.center_m((4, 8))
    # a carrier turned by 45 degrees whose leg stands in the lane, where no map says so
    half = np.pi / 8
    turned = (x + 0.45, y + 0.45, 0.0, float(np.cos(half)), 0.0, 0.0, float(np.sin(half)))
    rig = Rig(
        (4, 4), heavy=["carrier_0"], poses={"carrier_0": turned, "package_0": (1.8, 0.6, 0.15, 1.0, 0.0, 0.0, 0.0)}
    )
    outcome = rig.do(SkillCall.of("drive_to", target="station_2"), limit_s=200.0)
    if outcome.status is Status.SUCCEEDED:
        pytest.fail("the robot drove through a leg")
    assert outcome.code == "blocked_by"
    assert abs(float(rig.robot.read().base_vel_body_mps[0])) < 0.05


def test_preconditions_speak_of_the_missing_fact():
    rig = Rig(HOME)
    graph = rig.world.graph()
    unmet = lift.unmet(graph, "amr_0", SkillCall.of("lift", thing="carrier_0"))
    assert [u.missing for u in unmet] == [fact("at", "amr_0", "carrier_0")]
    loaded = graph.changed([fact("lifted", "amr_0", "carrier_0")])
    assert drive_to.unmet(loaded, "amr_0", SkillCall.of("drive_to", target="carrier_1"))
    occupied = loaded.changed([fact("at", "carrier_1", "station_0")])
    found = drive_to.unmet(occupied, "amr_0", SkillCall.of("drive_to", target="station_0"))
    assert "carrier_1 stands at station_0" in found[0].message
    add, remove = drive_to.effects(loaded, "amr_0", SkillCall.of("drive_to", target="station_0"))
    assert fact("at", "package_0", "station_0") in add
    assert fact("at", "carrier_0", "slot_0") in remove


def test_commands_are_clipped_and_a_wrong_one_is_refused():
    rig = Rig(HOME)
    applied = rig.robot.send(Command(values=np.array([9.0, np.nan, -1.0])))
    assert applied.values.tolist() == [2.0, 0.0, 0.0]
    assert (rig.robot.clipped_entries, rig.robot.held_entries) == (2, 1)


def test_a_cancelled_drive_stops_and_can_be_taken_up_again():
    rig = Rig(HOME)
    rig.body.start(drive_to, SkillCall.of("drive_to", target="carrier_3"), 0.0)
    for _ in range(80):
        rig.body.tick(rig.world.time_s())
        rig.world.step(10)
    rig.body.cancel(rig.world.time_s())
    rig.world.step(200)
    assert np.abs(rig.robot.read().base_vel_body_mps).max() < 0.01
    assert rig.do(SkillCall.of("drive_to", target="carrier_3")).status is Status.SUCCEEDED


def test_the_scanner_sees_the_wall_ahead_and_not_itself():
    rig = Rig((0, 8))
    scan = rig.robot.scan()
    ahead = int(np.argmin(np.abs(scan.angle_rad)))
    x, _ = LAYOUT.grid.center_m((0, 8))
    assert scan.range_m[ahead] == pytest.approx(LAYOUT.grid.size_m[0] - x - 0.39, abs=1e-6)
    assert scan.range_m.min() > 0.05
