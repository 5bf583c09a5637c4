"""The camera front on worlds: routes agree, names are found, bad input is named; GL is compared where it works."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from embodied.errors import MissingExtraError, WorldError
from embodied.sensors.camera import Camera, camera, entity_mask, free_camera, look_at, visible_entities, warm_up
from embodied.worlds.contract import Start
from embodied.worlds.mujoco import MujocoBatchWorld, MujocoWorld
from embodied_scenes.builders import compile_scene
from tests.small_scenes import small_scene


@pytest.fixture
def world():
    world = MujocoWorld(compile_scene(small_scene()))
    world.reset(0)
    return world


def test_routes_give_the_same_arrays(world):
    fast = free_camera(world, (2.5, -2.5, 2.0), (0, 0, 0.5), width_px=160, height_px=120, route="zbuffer").render()
    slow = free_camera(world, (2.5, -2.5, 2.0), (0, 0, 0.5), width_px=160, height_px=120, route="rays").render()
    for frame in (fast, slow):
        assert frame.rgb.shape == (120, 160, 3)
        assert (frame.rgb.dtype, frame.depth_m.dtype, frame.segmentation.dtype) == (np.uint8, np.float32, np.int32)
    same = fast.segmentation == slow.segmentation
    assert same.mean() >= 0.999
    hit = same & (fast.segmentation >= 0)
    np.testing.assert_allclose(fast.depth_m[hit], slow.depth_m[hit], rtol=1e-5)
    assert len(np.unique(fast.segmentation)) > 5


def test_names_of_what_is_seen_follow_the_world(world):
    eye = free_camera(world, (1.0, -1.5, 1.5), (1.0, 0.0, 0.75), width_px=128, height_px=128)
    seen = visible_entities(eye.render(), world.scene)
    assert {"box", "table"} <= set(seen)
    assert list(seen.values()) == sorted(seen.values(), reverse=True)
    mask = entity_mask(eye.render(), world.scene, "box")
    assert mask.sum() == seen["box"]
    assert "box" not in visible_entities(eye.render(), world.scene, min_pixels=seen["box"] + 1)
    world.reset(0, Start(poses={"box": (1.0, 0.0, 0.6, 1.0, 0.0, 0.0, 0.0)}))  # below the table
    assert "box" not in visible_entities(eye.render(), world.scene)


def test_a_camera_of_the_scene_shows_each_environment_of_a_batch():
    batch = MujocoBatchWorld(compile_scene(small_scene()), 2)
    batch.reset(0)
    batch.reset(0, Start(poses={"box": (0.0, 0.5, 0.1, 1.0, 0.0, 0.0, 0.0)}), [1])
    top = Camera(batch, "top", 96, 96)
    first, second = top.render(0), top.render(1)
    assert not np.array_equal(first.segmentation, second.segmentation)
    rows = [np.nonzero(entity_mask(f, batch.scene, "box"))[0].mean() for f in (first, second)]
    assert rows[1] < rows[0] - 3  # y = 0.5 is higher up in a picture with north on top


def test_hidden_geoms_are_left_out(world):
    table = [
        g
        for g in range(world.scene.model.ngeom)
        if world.scene.model.geom(g).bodyid[0] == world.scene.model.body("table").id
    ]
    open_view = Camera(world, "top", 64, 64, hidden_geoms=table).render()
    assert "table" in visible_entities(Camera(world, "top", 64, 64).render(), world.scene)
    assert "table" not in visible_entities(open_view, world.scene)


def test_bad_input_is_named(world, monkeypatch):
    with pytest.raises(WorldError, match=r"no camera 'topp'.*'top'"):
        Camera(world, "topp")
    with pytest.raises(WorldError, match="0 x 64 px"):
        Camera(world, "top", 0, 64)
    with pytest.raises(WorldError, match=r"No camera route 'zbufer'.*'zbuffer'"):
        Camera(world, "top", route="zbufer")  # pyright: ignore[reportArgumentType]
    with pytest.raises(WorldError, match="its own position"):
        look_at(np.zeros(3), np.zeros(3))
    with pytest.raises(WorldError, match="opening angle"):
        free_camera(world, (0, 0, 1), (1, 0, 0), fovy_deg=180.0)
    monkeypatch.setattr(camera.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"embodied-stack\[fast\]"):
        Camera(world, "top", route="zbuffer")
    assert Camera(world, "top").route == "rays"
    warm_up()


def test_without_numba_the_camera_still_works():
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "import importlib.util; find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda n, *a: None if n == 'numba' else find(n, *a)\n"
        "from tests.small_scenes import small_scene\n"
        "from embodied.worlds.mujoco import MujocoWorld\n"
        "from embodied_scenes.builders import compile_scene\n"
        "from embodied.sensors.camera import Camera, visible_entities\n"
        "w = MujocoWorld(compile_scene(small_scene())); w.reset(0)\n"
        "c = Camera(w, 'top', 64, 64)\n"
        "assert c.route == 'rays' and 'table' in visible_entities(c.render(), w.scene)\n"
        "assert not [m for m, v in sys.modules.items() if v and m.split('.')[0] == 'numba']\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_gl_agrees_where_it_works():
    """In a process of its own, because a GL context stays in the process that made it."""
    code = (
        "import numpy as np\n"
        "from embodied.errors import MissingExtraError\n"
        "from tests.small_scenes import small_scene\n"
        "from embodied.worlds.mujoco import MujocoWorld\n"
        "from embodied_scenes.builders import compile_scene\n"
        "from embodied.sensors.camera import free_camera\n"
        "w = MujocoWorld(compile_scene(small_scene())); w.reset(0)\n"
        "view = dict(width_px=160, height_px=120)\n"
        "try:\n"
        "    gl = free_camera(w, (2.5, -2.5, 2.0), (0, 0, 0.5), route='gl', **view).render()\n"
        "except MissingExtraError as error:\n"
        "    print('no GL:', error); raise SystemExit(77)\n"
        "other = free_camera(w, (2.5, -2.5, 2.0), (0, 0, 0.5), **view).render()\n"
        "same = gl.segmentation == other.segmentation\n"
        "near = (other.segmentation >= 0) & (other.depth_m < 8)\n"  # the ground of GL ends before the horizon
        "assert same[near].mean() > 0.998, same[near].mean()\n"
        "hit = same & near\n"
        "error = np.abs(gl.depth_m - other.depth_m)[hit]\n"
        "assert np.percentile(error, 99) < 2e-3, np.percentile(error, 99)\n"
        "assert gl.rgb.std() > 5\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240)
    if done.returncode == 77:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stderr


def test_osmesa_from_a_wheel_says_how_to_get_it(monkeypatch):
    from embodied.sensors.camera import osmesa_wheel

    monkeypatch.setattr(osmesa_wheel.metadata, "files", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"embodied-stack\[osmesa\]"):
        osmesa_wheel.load()
