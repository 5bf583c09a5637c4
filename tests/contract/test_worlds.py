"""Every world keeps the contract: seeded resets, snapshots, forks, hashes, transactions, facts."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from embodied.catalog import WORLDS
from embodied.errors import WorldError
from embodied.worlds.contract import Edit, Start
from embodied_scenes.builders import compile_scene
from tests.small_scenes import small_scene

START = Start(poses={"box": (1.0, 0.1, 0.78, 1, 0, 0, 0)}, joints={"cabinet": 0.5}, states={("cabinet", "on"): True})


def make(name: str):
    if name == "pybullet" and importlib.util.find_spec("pybullet") is None:
        pytest.skip("pybullet is not installed (its wheels end at CPython 3.11)")
    return WORLDS.get(name)(compile_scene(small_scene()))


@pytest.fixture(params=WORLDS.names())
def world(request):
    world = make(request.param)
    world.reset(3, START)
    return world


def test_reset_gives_the_start_and_time_zero(world):
    assert world.time_s() == 0.0
    graph = world.graph()
    assert graph.holds("ontop", "box", "table")
    assert graph.holds("open", "cabinet")
    assert graph.holds("on", "cabinet")
    assert graph.holds("inroom", "box", "kitchen")
    assert graph.holds("at", "box", "spot")
    assert not graph.holds("inside", "box", "cabinet")


def test_same_seed_same_run(world):
    other = make(world.backend)
    other.reset(3, START)
    for w in (world, other):
        w.step(100)
    assert world.hash() == other.hash()
    world.reset(3, START)
    assert world.time_s() == 0.0
    assert world.hash() != other.hash()


def test_restore_continues_as_the_branch_before(world):
    world.step(20)
    snapshot = world.snapshot()
    world.restore(snapshot)
    world.step(80)
    first = world.hash()
    world.restore(snapshot)
    world.step(80)
    assert world.hash() == first


def test_fork_is_independent(world):
    world.step(10)
    fork = world.fork()
    before = world.hash()
    fork.step(30)
    fork.edit([Edit(kind="set_state", entity="table", key="marked", value=True)])
    assert world.hash() == before
    assert fork.time_s() > world.time_s()
    assert not world.graph().holds("marked", "table")
    assert fork.graph().holds("marked", "table")


def test_edits_are_all_or_none(world):
    good = Edit(kind="set_state", entity="table", key="wet", value=True)
    bad = Edit(kind="set_state", entity="no_such_thing", key="wet", value=True)
    before = world.hash()
    with pytest.raises(WorldError, match="no_such_thing"):
        world.edit([good, bad])
    assert world.hash() == before
    version = world.edit([good])
    assert world.edit([good]) == version + 1
    assert world.state("table", "wet") is True


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (Start(poses={"bix": (0, 0, 1, 1, 0, 0, 0)}), "Did you mean 'box'"),
        (Start(poses={"box": (0, 0, 1)}), "7 finite numbers"),
        (Start(poses={"box": (0, 0, float("nan"), 1, 0, 0, 0)}), "7 finite numbers"),
        (Start(joints={"cabinet": 1.5}), r"\[0, 1\]"),
        (Start(joints={"table": 0.5}), "cannot be opened"),
        (Start(joint_pos={"robot/none": 0.5}), "No joint"),
        (Start(states={("nobody", "x"): True}), "nobody"),
    ],
)
def test_bad_starts_name_the_mend(world, start, message):
    with pytest.raises(WorldError, match=message):
        world.reset(0, start)


def test_foreign_snapshot_is_refused(world):
    snapshot = world.snapshot()
    name = next(n for n in ("mujoco", "symbolic") if n != world.backend)
    with pytest.raises(WorldError, match="restored"):
        make(name).restore(snapshot)


def test_several_environments_are_refused_with_the_way_out(world):
    with pytest.raises(WorldError, match=r"one environment|num_envs"):
        WORLDS.get(world.backend)(world.scene, num_envs=2)


def test_random_walk_of_edits_keeps_facts_in_the_vocabulary(world):
    rng = np.random.default_rng(0)
    for _ in range(5):
        world.edit([Edit(kind="set_state", entity="box", key="mark", value=bool(rng.integers(2)))])
        world.step(5)
        nodes = world.graph().nodes
        assert all(f.args[0] in nodes for f in world.graph().facts)
