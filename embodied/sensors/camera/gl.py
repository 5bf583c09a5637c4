"""The camera by MuJoCo's renderer, for textures, shadows and height fields; needs a working GL library.

A broken GL can hang or abort a process, so it is tried in a child process first. With a software renderer shadows and
multisampling are off: they cost twenty times the image.
"""

from __future__ import annotations

import copy
import importlib
import os
import subprocess
import sys
import warnings
import weakref
from functools import lru_cache
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from embodied.errors import MissingExtraError, WorldError
from embodied.sensors.camera import osmesa_wheel
from embodied.sensors.camera.frame import NEAR_M, Frame, View
from embodied.sensors.camera.table import GeomTable

Array = NDArray[np.float64]

_WHEEL = "osmesa-wheel"
_BACKENDS = ("egl", "osmesa", _WHEEL, "glfw")
_PROBE_TIMEOUT_S = 60.0
_PROBE = """
import sys
from embodied.sensors.camera.gl import load_backend
load_backend(sys.argv[1])
import mujoco
model = mujoco.MjModel.from_xml_string("<mujoco><worldbody><geom size='1'/></worldbody></mujoco>")
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
with mujoco.Renderer(model, 8, 8) as renderer:
    renderer.update_scene(data)
    assert renderer.render().max() > 0
from OpenGL import GL
with mujoco.Renderer(model, 8, 8) as renderer:
    print("renderer=" + GL.glGetString(GL.GL_RENDERER).decode())
"""


@lru_cache(maxsize=8)
def probe(backend: str) -> str | None:
    """Return the name of the renderer that a GL backend gives, or None if it does not work here.

    Args:
      backend: ``egl``, ``osmesa`` (of the system), ``osmesa-wheel`` (extra ``osmesa``) or ``glfw``.
    """
    environment = {k: v for k, v in os.environ.items() if k not in ("MUJOCO_GL", "PYOPENGL_PLATFORM")}
    has_display = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    if backend == "glfw" and sys.platform.startswith("linux") and not has_display:
        return None
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE, backend],
            env=environment,
            capture_output=True,
            text=True,
            timeout=_PROBE_TIMEOUT_S,
        )
    except (subprocess.TimeoutExpired, OSError):
        return None
    for line in done.stdout.splitlines():
        if line.startswith("renderer="):
            return line.removeprefix("renderer=")
    return None


@lru_cache(maxsize=1)
def choose_backend() -> tuple[str, str]:
    """Return the GL backend that works here and its renderer's name; ``MUJOCO_GL`` in the environment decides first.

    Raises:
      MissingExtraError: none works.
    """
    wanted = os.environ.get("MUJOCO_GL", "").lower()
    for backend in (wanted,) if wanted in _BACKENDS else _BACKENDS:
        name = probe(backend)
        if name is not None:
            return backend, name
    raise MissingExtraError(
        f"No GL library works here (tried {wanted or ', '.join(_BACKENDS)} in a child process). "
        "Install one (Debian, Ubuntu: apt install libegl1 libgl1-mesa-dri; or pip install "
        "'embodied-stack[osmesa]'), or use the camera route 'zbuffer' or "
        "'rays', which need none."
    )


def load_backend(backend: str) -> None:
    """Make MuJoCo use a backend although it chose one when it was imported."""
    if backend == _WHEEL:
        backend = "osmesa"
        os.environ["PYOPENGL_PLATFORM"] = backend
        if "OpenGL.osmesa" not in sys.modules:
            osmesa_wheel.load()
    elif os.environ.get("MUJOCO_GL") == backend:
        return
    os.environ["MUJOCO_GL"] = backend
    if backend in ("egl", "osmesa"):
        os.environ["PYOPENGL_PLATFORM"] = backend
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the backend that was chosen first complains of the missing display
        from mujoco.rendering.classic import gl_context

        importlib.reload(gl_context)


class GlRenderer:
    """Draws one model; one per process and thread.

    Args:
      model: compiled MuJoCo model.
      table: which geoms are shown.

    Raises:
      MissingExtraError: GL does not work here.
    """

    def __init__(self, model: mujoco.MjModel, table: GeomTable) -> None:
        backend, name = choose_backend()
        load_backend(backend)
        self.is_software = any(word in name.lower() for word in ("llvmpipe", "softpipe", "swrast"))
        self.table = table
        self._model = copy.copy(model)  # colours, near plane and quality are changed below
        self._rgba = np.array(model.geom_rgba)
        self._data = mujoco.MjData(self._model)
        self._renderer: Any = None
        self._size = (0, 0)
        self._model.vis.map.znear = NEAR_M / float(model.stat.extent)
        if self.is_software:
            self._model.vis.quality.shadowsize = 0
            self._model.vis.quality.offsamples = 0

    def render(self, view: View, qpos: Array) -> Frame:
        """Draw the model at (nq,) positions ``qpos``; mocap bodies stand where the model puts them."""
        renderer = self._renderer_of(view)
        self._data.qpos[:] = qpos
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_camlight(self._model, self._data)
        self._model.geom_rgba[:] = self._rgba
        self._model.geom_rgba[~self.table.drawn & (self.table.kind != 1), 3] = 0.0
        renderer.disable_depth_rendering()
        renderer.disable_segmentation_rendering()
        rgb = np.array(self._pass(renderer, view))
        renderer.enable_depth_rendering()
        depth = np.array(self._pass(renderer, view), dtype=np.float32)
        renderer.disable_depth_rendering()
        renderer.enable_segmentation_rendering()
        pairs = np.array(self._pass(renderer, view))
        is_geom = pairs[..., 1] == int(mujoco.mjtObj.mjOBJ_GEOM)
        seg = np.where(is_geom, pairs[..., 0], -1).astype(np.int32)
        depth[seg < 0] = np.inf
        return Frame(rgb=rgb, depth_m=depth, segmentation=seg)

    def close(self) -> None:
        """Free the GL context."""
        if self._renderer is not None:
            self._closer()
            self._renderer = None

    def _renderer_of(self, view: View) -> Any:  # noqa: ANN401
        size = (view.height_px, view.width_px)
        if self._renderer is None or size != self._size:
            self.close()
            self._model.vis.global_.offwidth = max(view.width_px, int(self._model.vis.global_.offwidth))
            self._model.vis.global_.offheight = max(view.height_px, int(self._model.vis.global_.offheight))
            try:
                self._renderer = mujoco.Renderer(self._model, *size)
            except Exception as error:
                raise WorldError(
                    f"MuJoCo's renderer failed although the probe passed ({type(error).__name__}: {error}). "
                    "Set MUJOCO_GL before starting Python, or use the camera route 'zbuffer' or 'rays'."
                ) from error
            # Also at exit, while the GL library can still be called.
            self._closer = weakref.finalize(self, self._renderer.close)
            self._size = size
            if self.is_software:
                self._renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
                self._renderer.scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = 0
        return self._renderer

    def _pass(self, renderer: Any, view: View) -> NDArray:  # noqa: ANN401
        renderer.update_scene(self._data)
        forward, up = -view.rot_world[:, 2], view.rot_world[:, 1]
        half = np.tan(np.radians(view.fovy_deg) / 2)
        for eye in renderer.scene.camera:
            eye.pos[:], eye.forward[:], eye.up[:] = view.pos_world_m, forward, up
            near = eye.frustum_near
            eye.frustum_bottom, eye.frustum_top = -near * half, near * half
            eye.frustum_center, eye.frustum_width = 0.0, near * half * view.width_px / view.height_px
        return renderer.render()
