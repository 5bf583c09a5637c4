"""What the GL-free cameras need to know about a model once: kinds, sizes, colours and triangles of its geoms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import mujoco

Array = NDArray[np.float64]

# The numbers of MuJoCo's mjtGeom, so that geom_type can be used as it is.
PLANE, HFIELD, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH = range(8)
_DRAWN = (PLANE, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH)
_DEFAULT_RGBA = (0.5, 0.5, 0.5, 1.0)
_SHOWN_GROUPS = 3  # MuJoCo's own viewer shows groups 0 to 2; models put collision doubles into group 3


@dataclass(frozen=True, slots=True, kw_only=True)
class GeomTable:
    """Static arrays of the drawable geoms of one model.

    Attributes:
      kind: (n,) geom type by MuJoCo's numbers; -1 for what is not drawn (alpha 0, group >= 3, height field, SDF).
      size_m: (n, 3) MuJoCo half sizes.
      bound_center_m: (n, 3) middle of the bounding box in the geom frame.
      bound_half_m: (n, 3) half extents of the bounding box in the geom frame (not used for planes).
      colour: (n, 3) red, green, blue in [0, 255].
      triangles_m: (t, 3, 3) triangle corners of all meshes in the frame of their geom.
      first_triangle: (n,) index of the first triangle of a mesh geom.
      num_triangles: (n,) number of triangles of a mesh geom, 0 for others.
    """

    kind: NDArray[np.int32]
    size_m: Array
    bound_center_m: Array
    bound_half_m: Array
    colour: NDArray[np.float32]
    triangles_m: Array
    first_triangle: NDArray[np.int32]
    num_triangles: NDArray[np.int32]

    @property
    def drawn(self) -> NDArray[np.bool_]:
        """(n,) whether a geom can be seen."""
        return self.kind >= 0

    def without(self, geom_ids: NDArray[np.int32] | list[int]) -> GeomTable:
        """Return the same table with some geoms hidden."""
        kind = self.kind.copy()
        kind[np.asarray(geom_ids, dtype=np.int64)] = -1
        return GeomTable(
            kind=kind,
            size_m=self.size_m,
            bound_center_m=self.bound_center_m,
            bound_half_m=self.bound_half_m,
            colour=self.colour,
            triangles_m=self.triangles_m,
            first_triangle=self.first_triangle,
            num_triangles=self.num_triangles,
        )


def geom_rgba(model: mujoco.MjModel) -> Array:
    """Return (n, 4) colours as MuJoCo shows them: the material's where the geom keeps the default grey.

    Args:
      model: a compiled MuJoCo model.
    """
    rgba = np.array(model.geom_rgba, dtype=np.float64)
    material = np.asarray(model.geom_matid)
    grey = np.all(np.isclose(rgba, _DEFAULT_RGBA), axis=1) & (material >= 0)
    if grey.any():
        rgba[grey] = np.asarray(model.mat_rgba)[material[grey]]
    return rgba


def geom_table(model: mujoco.MjModel) -> GeomTable:
    """Read the static arrays of a compiled MuJoCo model."""
    kind = np.array(model.geom_type, dtype=np.int32)
    rgba = geom_rgba(model)
    hidden = (rgba[:, 3] <= 0.0) | (np.asarray(model.geom_group) >= _SHOWN_GROUPS) | ~np.isin(kind, _DRAWN)
    kind[hidden] = -1
    aabb = np.array(model.geom_aabb, dtype=np.float64).reshape(-1, 6)
    triangles: list[Array] = []
    first = np.zeros(len(kind), dtype=np.int32)
    count = np.zeros(len(kind), dtype=np.int32)
    seen: dict[int, tuple[int, int]] = {}
    total = 0
    for geom in np.flatnonzero(kind == MESH):
        mesh = int(model.geom_dataid[geom])
        if mesh not in seen:
            v0, nv = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
            f0, nf = int(model.mesh_faceadr[mesh]), int(model.mesh_facenum[mesh])
            corners = np.asarray(model.mesh_vert)[v0 : v0 + nv][np.asarray(model.mesh_face)[f0 : f0 + nf]]
            triangles.append(np.asarray(corners, dtype=np.float64))
            seen[mesh] = (total, nf)
            total += nf
        first[geom], count[geom] = seen[mesh]
    return GeomTable(
        kind=kind,
        size_m=np.array(model.geom_size, dtype=np.float64),
        bound_center_m=np.ascontiguousarray(aabb[:, :3]),
        bound_half_m=np.ascontiguousarray(aabb[:, 3:]),
        colour=np.ascontiguousarray(np.clip(rgba[:, :3], 0.0, 1.0) * 255.0, dtype=np.float32),
        triangles_m=np.concatenate(triangles) if triangles else np.zeros((0, 3, 3)),
        first_triangle=first,
        num_triangles=count,
    )
