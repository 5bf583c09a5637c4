"""A small fleet in the hall of the package, and the watch for touches."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from embodied.agents.fleet import Fleet, TouchWatch, run_fleet
from embodied.errors import TaskError
from embodied.robots.base import make_robot
from embodied.worlds.contract import Edit
from embodied_controllers.contract import Command
from embodied_scenes.warehouse.hall import hall_layout, package_map

DATA = Path(os.environ.get("EMBODIED_DATA", Path(__file__).parents[3] / "shared" / "data"))


def test_three_robots_deliver_without_a_touch():
    result = run_fleet(package_map(), robots=3, carriers=6, stations=3, sim_time_s=120.0)
    assert result.collisions == ()
    assert result.failures == {}
    assert result.deliveries >= 3
    assert result.deliveries_per_hour == pytest.approx(30.0 * result.deliveries, rel=1e-6)


def test_same_seed_same_fleet():
    runs = [run_fleet(package_map(), robots=2, carriers=6, stations=3, sim_time_s=40.0, seed=s) for s in (5, 5, 6)]
    assert runs[0] == runs[1]
    assert runs[0].driven_m != runs[2].driven_m


def test_the_watch_sees_a_robot_that_drives_into_a_rack():
    fleet = Fleet(hall_layout(), robots=1, seed=0)
    watch = TouchWatch(fleet.world)
    x, y = hall_layout().grid.center_m((2, 1))
    fleet.world.edit([Edit(kind="set_pose", entity="amr_0", value=(x, y, 0.0, 1.0, 0.0, 0.0, 0.0))])
    robot = make_robot(fleet.world, "amr_0", fleet.bodies["amr_0"].robot.spec)
    robot.reset()
    for _ in range(100):
        robot.send(Command(values=np.array([0.5, 0.0, 0.0])))
        fleet.world.step(10)
        watch.look()
    assert len(watch.found) == 1
    assert watch.found[0][0] == "amr_0"
    assert watch.found[0][1].startswith("rack_")


def test_a_fleet_that_does_not_fit_is_refused():
    with pytest.raises(TaskError, match="does not fit"):
        run_fleet(package_map(), robots=7, carriers=6, stations=3)


@pytest.mark.public_data
@pytest.mark.slow
@pytest.mark.skipif(not (DATA / "pogema").is_dir(), reason="the public inputs are not beside the project")
def test_eight_robots_on_the_public_warehouse():
    path = DATA / "pogema" / "03-warehouse_maps.yaml"
    result = run_fleet(path, "wfi_warehouse", robots=8, sim_time_s=60.0)
    assert result.collisions == ()
    assert result.failures == {}
    assert result.deliveries > 0
