"""Free spots: inside their region, apart from everything, the same for the same seed."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from embodied.tasks.placement import Boxes, Pose, free_spots
from embodied_scenes.info import RegionInfo

angle = st.floats(-3.1, 3.1)
size = st.floats(0.02, 0.15)


def _corners(center, half, yaw):
    c, s = np.cos(yaw), np.sin(yaw)
    local = np.array([[1, 1], [1, -1], [-1, -1], [-1, 1]]) * half[:2]
    return center[:2] + local @ np.array([[c, s], [-s, c]])


def _grid(center, half, yaw):
    c, s = np.cos(yaw), np.sin(yaw)
    u = np.stack(np.meshgrid(np.linspace(-1, 1, 15), np.linspace(-1, 1, 15)), -1).reshape(-1, 2) * half[:2]
    return center[:2] + u @ np.array([[c, s], [-s, c]])


@settings(max_examples=60, deadline=None)
@given(size, size, angle, size, size, angle, st.floats(-0.4, 0.4), st.floats(-0.4, 0.4))
def test_hit_agrees_with_points_of_one_box_in_the_other(ax, ay, a_yaw, bx, by, b_yaw, dx, dy):
    a, b = np.array([ax, ay, 0.1]), np.array([bx, by, 0.1])
    origin, other = np.zeros(3), np.array([dx, dy, 0.0])
    boxes = Boxes.empty().plus(other, b, b_yaw)
    c, s = np.cos(b_yaw), np.sin(b_yaw)
    local = (_grid(origin, a, a_yaw) - other[:2]) @ np.array([[c, -s], [s, c]])
    if (np.abs(local) < b[:2]).all(axis=1).any():
        assert boxes.hit(origin, a, a_yaw, 0.0), "a common point and no hit"
    if np.hypot(dx, dy) > np.hypot(ax, ay) + np.hypot(bx, by):
        assert not boxes.hit(origin, a, a_yaw, 0.0), "farther apart than their circles and a hit"
    assert not boxes.hit(np.array([0.0, 0.0, 1.0]), a, a_yaw, 0.0), "boxes at other heights do not touch"


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), angle, size, size, st.sampled_from(["surface", "interior"]))
def test_spots_stay_in_their_region_and_apart(seed, yaw, x, y, kind):
    deep = 0.0 if kind == "surface" else 0.2
    region = RegionInfo(
        name="r",
        kind=kind,
        body="b",
        center_body_m=np.array([0.1, -0.2, 0.7]),
        half_size_m=np.array([0.3, 0.5, deep]),
        approach_root=None,
    )
    frame = Pose(np.array([2.0, 3.0, 0.0]), yaw)
    half = np.array([x, y, 0.1])
    taken = Boxes.empty()
    for _ in range(3):
        spots = list(free_spots(region, frame, half, taken, np.random.default_rng(seed), yaws_rad=(0.0, 1.57)))
        again = list(free_spots(region, frame, half, taken, np.random.default_rng(seed), yaws_rad=(0.0, 1.57)))
        assert [s.pos_world_m.tolist() for s in spots] == [s.pos_world_m.tolist() for s in again]
        if not spots:
            return
        spot = spots[0]
        c, s = np.cos(yaw), np.sin(yaw)
        local = (_corners(spot.pos_world_m, half, spot.yaw_rad) - [2.0, 3.0]) @ np.array([[c, -s], [s, c]])
        assert (np.abs(local - [0.1, -0.2]) <= np.array([0.3, 0.5]) + 1e-6).all()
        assert np.isclose(spot.pos_world_m[2], 0.7 - deep)
        center = spot.pos_world_m + np.array([0.0, 0.0, 0.1])
        assert not taken.hit(center, half, spot.yaw_rad, 0.05)
        taken = taken.plus(center, half, spot.yaw_rad)


def test_too_tall_a_thing_finds_no_spot_inside():
    region = RegionInfo(
        name="r", kind="interior", body="b", center_body_m=np.zeros(3), half_size_m=np.full(3, 0.2), approach_root=None
    )
    found = free_spots(
        region, Pose(np.zeros(3), 0.0), np.array([0.05, 0.05, 0.3]), Boxes.empty(), np.random.default_rng(0)
    )
    assert list(found) == []
