"""The z-buffer against closed forms and against the ray caster, on shapes drawn at random."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embodied.sensors.camera import rays
from embodied.sensors.camera.frame import View, look_at
from embodied.sensors.camera.table import geom_table

zbuffer = pytest.importorskip("embodied.sensors.camera.zbuffer", reason="numba is not installed: no z-buffer here")

SHAPES = {"box": 3, "sphere": 1, "cylinder": 2, "capsule": 2, "ellipsoid": 3}


def build(geoms: str, assets: str = ""):
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><compiler angle="radian"/><asset>{assets}</asset><worldbody>{geoms}</worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


def both(model, data, view):
    table = geom_table(model)
    caster = rays.RayCaster(model, table)
    caster.place(data.geom_xpos, data.geom_xmat, data.xpos, data.xquat)
    return zbuffer.render(view, table, data.geom_xpos, data.geom_xmat), rays.render(view, caster)


def camera(pos, target, size=(64, 48), fovy=60.0):
    pos = np.array(pos, dtype=float)
    return View(
        pos_world_m=pos, rot_world=look_at(pos, np.array(target)), fovy_deg=fovy, width_px=size[0], height_px=size[1]
    )


def agree(model, data, view, share=0.999):
    """Both routes give the same picture but for pixels on silhouettes."""
    fast, slow = both(model, data, view)
    same = fast.segmentation == slow.segmentation
    # Surfaces in the same place may be told apart either way.
    same |= np.abs(np.nan_to_num(fast.depth_m, posinf=-1.0) - np.nan_to_num(slow.depth_m, posinf=-1.0)) < 1e-4
    assert same.mean() >= share, f"segmentation agrees on {same.mean():.5f} of the pixels"
    hit = same & (fast.segmentation >= 0)
    np.testing.assert_allclose(fast.depth_m[hit], slow.depth_m[hit], rtol=2e-5, atol=1e-5)
    assert np.array_equal(np.isinf(fast.depth_m), fast.segmentation < 0)
    # A pixel at an edge of a shape may take the normal of either face.
    assert (np.abs(fast.rgb.astype(int) - slow.rgb) <= 2).all(axis=-1)[same].mean() > 0.985
    return fast, slow


@st.composite
def scenes(draw):
    number = st.floats(-1.5, 1.5)
    out = ['<geom type="plane" size="0 0 1" pos="0 0 -1.5"/>']
    for _ in range(draw(st.integers(1, 8))):
        shape = draw(st.sampled_from(sorted(SHAPES)))
        size = " ".join(f"{draw(st.floats(0.02, 0.6)):.4f}" for _ in range(SHAPES[shape]))
        pos = " ".join(f"{draw(number):.4f}" for _ in range(3))
        turn = " ".join(f"{draw(st.floats(-3.1, 3.1)):.4f}" for _ in range(3))
        out.append(f'<geom type="{shape}" size="{size}" pos="{pos}" euler="{turn}"/>')
    eye = (draw(st.floats(-4.0, 4.0)), draw(st.floats(-4.0, 4.0)), draw(st.floats(-1.0, 3.0)))
    return "".join(out), eye, draw(st.floats(25.0, 110.0))


@settings(max_examples=60, deadline=None)
@given(scene=scenes())
def test_the_z_buffer_sees_what_rays_see(scene):
    geoms, eye, fovy = scene
    model, data = build(geoms)
    target = (0.0, 0.0, 0.0) if np.linalg.norm(eye) > 0.1 else (1.0, 0.0, 0.0)
    agree(model, data, camera(eye, target, fovy=fovy))


def test_a_sphere_at_a_known_distance():
    model, data = build('<geom type="sphere" size="0.5" pos="4 0 1"/>')
    frame = zbuffer.render(
        camera((0, 0, 1), (1, 0, 1), (65, 65), 40.0), geom_table(model), data.geom_xpos, data.geom_xmat
    )
    assert frame.depth_m[32, 32] == pytest.approx(3.5, abs=1e-6)
    # The disc of a sphere of radius r at distance d has the tangent r / sqrt(d² - r²).
    scale = 2 * np.tan(np.radians(20.0)) / 65
    radius_px = 0.5 / np.sqrt(4.0**2 - 0.5**2) / scale
    assert (frame.segmentation == 0).sum() == pytest.approx(np.pi * radius_px**2, rel=0.02)


def test_depth_is_along_the_optical_axis_not_along_the_ray():
    model, data = build('<geom type="box" size="0.1 5 5" pos="3.1 0 0"/>')
    frame = zbuffer.render(
        camera((0, 0, 0), (1, 0, 0), (64, 64), 80.0), geom_table(model), data.geom_xpos, data.geom_xmat
    )
    np.testing.assert_allclose(frame.depth_m, 3.0, atol=1e-6)


def test_the_image_is_not_mirrored():
    """Looking along +x, y (left) is on the left and z on top."""
    red = '<geom type="sphere" size="0.2" pos="3 1 1" rgba="1 0 0 1"/>'
    blue = '<geom type="sphere" size="0.2" pos="3 -1 -1" rgba="0 0 1 1"/>'
    model, data = build(red + blue)
    view = camera((0, 0, 0), (1, 0, 0))
    frame, _ = both(model, data, view)
    for geom, channel in ((0, 0), (1, 2)):
        rows, columns = np.nonzero(frame.segmentation == geom)
        column, row, depth = view.project(data.geom_xpos[geom])
        assert columns.mean() + 0.5 == pytest.approx(column, abs=0.3)
        assert rows.mean() + 0.5 == pytest.approx(row, abs=0.3)
        assert depth == pytest.approx(3.0)
        assert frame.rgb[rows, columns].mean(axis=0).argmax() == channel
    assert np.nonzero(frame.segmentation == 0)[1].mean() < 32 < np.nonzero(frame.segmentation == 1)[1].mean()
    assert np.nonzero(frame.segmentation == 0)[0].mean() < 24 < np.nonzero(frame.segmentation == 1)[0].mean()


@pytest.mark.parametrize("shape", ["box", "sphere", "cylinder", "capsule", "ellipsoid"])
def test_a_camera_inside_a_shape_sees_through_it(shape):
    size = " ".join(["0.4"] * SHAPES[shape])
    model, data = build(f'<geom type="{shape}" size="{size}"/><geom type="box" size="0.1 1 1" pos="3 0 0"/>')
    fast, slow = agree(model, data, camera((0.1, 0.05, 0.0), (1, 0, 0)))
    assert set(np.unique(fast.segmentation)) == set(np.unique(slow.segmentation)) == {-1, 1}


def test_a_shape_across_the_image_plane_is_clipped_not_lost():
    model, data = build('<geom type="box" size="5 0.5 0.1" pos="0 0 -0.5"/>')
    fast, _ = agree(model, data, camera((0, 0, 0), (1, 0, 0)))
    assert (fast.segmentation[-1] == 0).sum() > 30


def test_planes_have_one_side_and_their_size():
    model, data = build('<geom type="plane" size="1 1 1"/>')
    above, _ = agree(model, data, camera((0, -4, 2), (0, 0, 0)))
    below, _ = agree(model, data, camera((0, -4, -2), (0, 0, 0)))
    assert 50 < (above.segmentation == 0).sum() < 1500
    assert (below.segmentation == -1).all()


def test_transparent_and_collision_geoms_are_not_drawn():
    clear = '<geom type="sphere" size="0.3" pos="2 0 0" rgba="1 1 1 0"/>'
    collision = '<geom type="sphere" size="0.3" pos="2 0 0" group="3"/>'
    model, data = build(clear + collision + '<geom type="box" size="0.1 1 1" pos="3 0 0"/>')
    fast, slow = both(model, data, camera((0, 0, 0), (1, 0, 0)))
    assert set(np.unique(fast.segmentation)) == set(np.unique(slow.segmentation)) == {-1, 2}


def test_material_colours_are_used():
    model, data = build(
        '<geom type="sphere" size="0.5" pos="2 0 0" material="red"/>', '<material name="red" rgba="1 0 0 1"/>'
    )
    frame, _ = both(model, data, camera((0, 0, 0), (1, 0, 0)))
    red, green, blue = frame.rgb[24, 32].astype(int)
    assert red > 100 > 10 > green + blue


def test_meshes_are_drawn_by_their_triangles():
    corners = [(x, y, z) for x in (-0.4, 0.4) for y in (-0.3, 0.3) for z in (-0.2, 0.2)]
    text = " ".join(f"{v}" for c in corners for v in c)
    model, data = build(
        '<geom type="mesh" mesh="m" pos="2 0 0" euler="0.3 0.2 0.5"/><geom type="plane" size="0 0 1" pos="0 0 -1"/>',
        f'<mesh name="m" vertex="{text}"/>',
    )
    fast, _ = agree(model, data, camera((0, 0, 1), (2, 0, 0)), share=0.998)
    assert (fast.segmentation == 0).sum() > 100


def test_rendering_twice_gives_the_same_bytes_and_new_arrays():
    model, data = build(
        '<geom type="capsule" size="0.2 0.4" pos="2 0 0" euler="1 0 0"/><geom type="plane" size="0 0 1" pos="0 0 -1"/>'
    )
    view, table = camera((0, 0, 0), (1, 0, 0)), geom_table(model)
    first = zbuffer.render(view, table, data.geom_xpos, data.geom_xmat)
    second = zbuffer.render(view, table, data.geom_xpos, data.geom_xmat)
    for name in ("rgb", "depth_m", "segmentation"):
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes()
        assert not np.shares_memory(getattr(first, name), getattr(second, name))


def test_faces_in_one_plane_do_not_fight():
    boxes = '<geom type="box" size="1 1 0.2" pos="0 0 0.3"/><geom type="box" size="1 1 0.1" pos="0 0 0.4"/>'
    model, data = build(boxes)
    for eye in ((1.3, -2.1, 2.7), (-3.1, 0.4, 1.9)):
        frame = zbuffer.render(camera(eye, (0, 0, 0.5), (200, 150)), geom_table(model), data.geom_xpos, data.geom_xmat)
        top = np.abs(frame.rgb.astype(int) - frame.rgb[75, 100]).max(axis=-1) == 0  # the shade of the common face
        assert len(np.unique(frame.segmentation[top])) == 1
