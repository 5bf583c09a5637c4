"""A planar laser scanner: rays around a body or site, with range noise and drop-outs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from embodied.errors import WorldError, nearest_hint
from embodied.sensors.camera.rays import RayCaster
from embodied.sensors.camera.table import geom_table

if TYPE_CHECKING:
    from embodied.worlds.contract import PhysicsWorld

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class LidarConfig:
    """A scanner.

    The defaults are of the size of small safety scanners: 270 degrees, half a degree apart, 25 m.

    Attributes:
      num_beams: rays per scan.
      start_rad: angle of the first beam from the sensor's x axis, counter-clockwise seen from above.
      stop_rad: angle of the last beam.
      min_range_m: what is closer gives no echo.
      max_range_m: what is farther gives no echo.
      noise_m: standard deviation of a range.
      dropout: probability that a beam that hits gives no echo.
    """

    num_beams: int = 541
    start_rad: float = float(-0.75 * np.pi)
    stop_rad: float = float(0.75 * np.pi)
    min_range_m: float = 0.05
    max_range_m: float = 25.0
    noise_m: float = 0.0
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.num_beams < 1 or not 0.0 <= self.min_range_m < self.max_range_m:
            raise WorldError(
                f"A lidar needs beams and 0 <= min_range_m < max_range_m, got {self.num_beams} beams and "
                f"{self.min_range_m} to {self.max_range_m} m."
            )
        if self.noise_m < 0.0 or not 0.0 <= self.dropout <= 1.0:
            raise WorldError(
                f"A lidar's noise_m must be >= 0 and its dropout in [0, 1], got {self.noise_m} and {self.dropout}."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """One scan.

    Attributes:
      range_m: (num_beams,) distance along each beam; inf where nothing came back.
      angle_rad: (num_beams,) beam angles in the sensor frame.
      geom_ids: (num_beams,) what was hit, -1 for nothing; truth, not for controllers.
    """

    range_m: Array
    angle_rad: Array
    geom_ids: NDArray[np.int32]

    def points_sensor_m(self) -> Array:
        """Return (n, 2) the echoes as points in the sensor's plane."""
        hit = np.isfinite(self.range_m)
        angle, distance = self.angle_rad[hit], self.range_m[hit]
        return np.column_stack([distance * np.cos(angle), distance * np.sin(angle)])


class Lidar:
    """A planar scanner on a site; rays run in the site's x-y plane.

    Args:
      world: any backend.
      site: name of the site that carries it.
      config: beams, ranges and errors.
      ignore_prefix: bodies whose names begin so are transparent, usually the robot's own prefix.

    Raises:
      WorldError: no such site.
    """

    def __init__(
        self, world: PhysicsWorld, site: str, config: LidarConfig | None = None, *, ignore_prefix: str = ""
    ) -> None:
        model = world.scene.model
        names = [model.site(i).name for i in range(model.nsite)]
        if site not in names:
            raise WorldError(f"Scene {world.scene.info.id!r} has no site {site!r}. {nearest_hint(site, names)}")
        self.config = config or LidarConfig()
        self._world = world
        self._site = names.index(site)
        own = [
            g
            for g in range(model.ngeom)
            if ignore_prefix and model.body(int(model.geom_bodyid[g])).name.startswith(ignore_prefix)
        ]
        self._caster = RayCaster(model, geom_table(model).without(own))
        self.angle_rad = np.linspace(self.config.start_rad, self.config.stop_rad, self.config.num_beams)
        self._beams_sensor = np.column_stack(
            [np.cos(self.angle_rad), np.sin(self.angle_rad), np.zeros(self.config.num_beams)]
        )

    def scan(self, rng: np.random.Generator | None = None, env_index: int = 0) -> Scan:
        """Return a scan of the world's present state.

        Args:
          rng: source of noise and drop-outs; None gives exact ranges.
          env_index: environment of the batch.
        """
        world, config = self._world, self.config
        self._caster.place(world.geom_pos_world_m[env_index], world.geom_rot_world[env_index],
                           world.body_pos_world_m[env_index], world.body_quat_wxyz[env_index])  # fmt: skip
        origin = np.array(world.site_pos_world_m[env_index, self._site])
        rot = np.array(world.site_rot_world[env_index, self._site]).reshape(3, 3)
        distance, geom, _ = self._caster.cast(origin, self._beams_sensor @ rot.T)
        if rng is not None:
            # Both draws are made for every beam, so that what one beam hits does not change the noise of another.
            distance = distance + config.noise_m * rng.standard_normal(config.num_beams)
            lost = rng.random(config.num_beams) < config.dropout
        else:
            lost = np.zeros(config.num_beams, dtype=bool)
        silent = lost | ~(distance >= config.min_range_m) | (distance > config.max_range_m)
        return Scan(
            range_m=np.where(silent, np.inf, distance),
            angle_rad=self.angle_rad.copy(),
            geom_ids=np.where(silent, -1, geom).astype(np.int32),
        )


def nearest_m(scan: Scan, sector_rad: Sequence[float]) -> float:
    """Return the nearest echo between two angles; inf where there is none."""
    inside = (scan.angle_rad >= sector_rad[0]) & (scan.angle_rad <= sector_rad[1])
    return float(scan.range_m[inside].min()) if inside.any() else float("inf")
