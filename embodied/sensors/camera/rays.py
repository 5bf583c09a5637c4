"""The camera without GL and without numba: MuJoCo's ray caster and NumPy shading, the same arrays."""

from __future__ import annotations

import copy

import mujoco
import numpy as np
from numpy.typing import NDArray

from embodied.sensors.camera.frame import NEAR_M, Frame, View
from embodied.sensors.camera.shading import shade
from embodied.sensors.camera.table import CYLINDER, ELLIPSOID, PLANE, GeomTable

Array = NDArray[np.float64]
_FAR_M = 0.5e9
_SHOWN, _HIDDEN = 0, 5


class RayCaster:
    """Casts rays at one model placed by pose arrays. Not for several threads at once: it owns one engine state.

    Args:
      model: compiled MuJoCo model.
      table: its drawable geoms.
    """

    def __init__(self, model: mujoco.MjModel, table: GeomTable) -> None:
        self.table = table
        self._model = copy.copy(model)  # groups are changed below
        self._data = mujoco.MjData(self._model)
        self._offset_quat = np.array(model.body_iquat)
        self._offset_pos = np.array(model.body_ipos)

    def place(
        self, geom_pos_world_m: Array, geom_rot_world: Array, body_pos_world_m: Array, body_quat_wxyz: Array
    ) -> None:
        """Put all geoms and bodies where a world has them.

        Args:
          geom_pos_world_m: (ngeom, 3).
          geom_rot_world: (ngeom, 9).
          body_pos_world_m: (nbody, 3).
          body_quat_wxyz: (nbody, 4).
        """
        data, model = self._data, self._model
        data.geom_xpos[:] = geom_pos_world_m
        data.geom_xmat[:] = geom_rot_world
        data.xpos[:] = body_pos_world_m
        data.xquat[:] = body_quat_wxyz
        turned, quat = np.empty(3), np.empty(4)
        for body in range(model.nbody):  # the caster's bounding boxes live in the inertial frames
            mujoco.mju_rotVecQuat(turned, self._offset_pos[body], data.xquat[body])
            data.xipos[body] = data.xpos[body] + turned
            mujoco.mju_mulQuat(quat, data.xquat[body], self._offset_quat[body])
            mujoco.mju_quat2Mat(data.ximat[body], quat)

    def cast(
        self, origin_world_m: Array, directions_world: Array, ignore: NDArray[np.int32] | None = None
    ) -> tuple[Array, NDArray[np.int32], Array]:
        """Cast rays from one point.

        Args:
          origin_world_m: (3,) start.
          directions_world: (n, 3) unit directions.
          ignore: geom indices that these rays pass through.

        Returns:
          (n,) distances (inf where nothing is hit), (n,) geom indices (-1), (n, 3) unit normals.
        """
        count = len(directions_world)
        geom = np.full(count, -1, dtype=np.int32)
        distance = np.full(count, -1.0)
        normal = np.zeros((count, 3))
        groups = np.array([1, 0, 0, 0, 0, 0], dtype=np.uint8)
        solid = self.table.drawn & ~self._holds(np.asarray(origin_world_m, dtype=np.float64))
        if ignore is not None:
            solid[ignore] = False
        self._model.geom_group[:] = np.where(solid, _SHOWN, _HIDDEN)
        rays = np.ascontiguousarray(directions_world, dtype=np.float64).reshape(-1)
        origin = np.asarray(origin_world_m, dtype=np.float64)
        mujoco.mj_multiRay(self._model, self._data, origin, rays, groups, True, -1,
                           geom, distance, normal.reshape(-1), count, _FAR_M)  # fmt: skip
        missed = (geom < 0) | (distance < 0) | (distance >= _FAR_M)
        distance[missed] = np.inf
        geom[missed] = -1
        return distance, geom, normal

    def _holds(self, point: Array) -> NDArray[np.bool_]:
        """(ngeom,) whether the point lies inside a geom or nearer than the near plane: such geoms hide nothing."""
        rot = self._data.geom_xmat.reshape(-1, 3, 3)
        local = np.einsum("nij,ni->nj", rot, point - self._data.geom_xpos)
        size = self.table.size_m
        box = np.all(np.abs(local - self.table.bound_center_m) <= self.table.bound_half_m, axis=1)
        radial = np.hypot(local[:, 0], local[:, 1]) <= size[:, 0]
        scale = np.where(size > 0, size, 1.0)
        scale = np.where((self.table.kind == ELLIPSOID)[:, None], scale, size[:, :1] + 1e-12)
        ball = np.linalg.norm(local / scale, axis=1) <= 1.0
        kind = self.table.kind
        inside = box & (kind != PLANE)
        inside &= np.where(kind == CYLINDER, radial, True)
        inside &= np.where(np.isin(kind, (2, ELLIPSOID)), ball, True)
        axis_m = local.copy()
        axis_m[:, 2] -= np.clip(local[:, 2], -size[:, 1], size[:, 1])
        return inside & np.where(kind == 3, np.linalg.norm(axis_m, axis=1) <= size[:, 0], True)


def render(view: View, caster: RayCaster) -> Frame:
    """Draw one image of what :meth:`RayCaster.place` put in place."""
    rays = view.rays_cam() @ view.rot_world.T
    length = np.linalg.norm(rays, axis=-1)
    shape = (view.height_px, view.width_px)
    units = (rays / length[..., None]).reshape(-1, 3)
    distance, geom, normal = caster.cast(view.pos_world_m, units)
    near = NEAR_M * length.reshape(-1)
    cut: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
    for _ in range(8):  # what reaches nearer than the near plane is cut open, as in the z-buffer
        again = np.flatnonzero(distance < near)
        if not again.size:
            break
        cut = np.union1d(cut, geom[again]).astype(np.int32)
        distance[again], geom[again], normal[again] = caster.cast(view.pos_world_m, units[again], cut)
    depth = distance.reshape(shape) / length
    seg = geom.reshape(shape)
    lost = ~(depth >= NEAR_M) | (depth >= _FAR_M)
    depth[lost], seg[lost] = np.inf, -1
    hit_m = view.pos_world_m + np.where(seg >= 0, depth, 0.0)[..., None] * rays
    index = np.maximum(seg, 0)
    rot = caster._data.geom_xmat.reshape(-1, 3, 3)[index]
    local = np.einsum("hwij,hwi->hwj", rot, hit_m - caster._data.geom_xpos[index])
    table = caster.table
    is_plane = (table.kind[index] == PLANE) & (seg >= 0)
    depth32, seg32 = depth.astype(np.float32), seg.astype(np.int32)
    rgb = shade(view, depth32, seg32, normal.reshape(*shape, 3), local[..., :2], is_plane, table.colour)
    return Frame(rgb=rgb, depth_m=depth32, segmentation=seg32)
