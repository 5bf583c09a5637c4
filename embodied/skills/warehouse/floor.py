"""The floor of a hall as skills see it: cells from the static map, carriers that stand, and the fleet's traffic."""

from __future__ import annotations

import numpy as np

from embodied.planners.mapf.traffic import Traffic
from embodied.skills.contract import SceneView, SkillContext
from embodied_scenes.info import SceneInfo
from embodied_scenes.warehouse.grid import CELL_M, Cell, CellKind, GridMap

SERVICE = "traffic"
UNDER_M = 0.08  # a robot this close to a carrier's middle is under it: legs leave 9 cm on each side


def is_liftable(info: SceneInfo, name: str) -> bool:
    """Whether a robot can drive under an entity and lift it."""
    return name in info.entities and "liftable" in info.entities[name].properties


def floor_grid(view: SceneView) -> GridMap:
    """Return the cells of the hall: blocked where the middle of a cell lies in a wall or a fixture."""
    room = view.info.rooms[0]
    x0, y0, x1, y1 = room.rect_m
    cols, rows = round((x1 - x0) / CELL_M), round((y1 - y0) / CELL_M)
    kinds = np.full((rows, cols), int(CellKind.FREE), np.uint8)
    ignored = [e.name for e in view.info.entities.values() if e.movable or "floor" in e.properties]
    x = (np.arange(cols) + 0.5) * CELL_M
    y = (rows - np.arange(rows) - 0.5) * CELL_M
    for cx, cy, half_x, half_y, yaw in view.footprints(ignore=[*ignored, *view.info.robots]):
        cos, sin = np.cos(yaw), np.sin(yaw)
        along = cos * (x[None] - cx) + sin * (y[:, None] - cy)
        across = cos * (y[:, None] - cy) - sin * (x[None] - cx)
        kinds[(np.abs(along) <= half_x) & (np.abs(across) <= half_y)] = int(CellKind.WALL)
    return GridMap(name=room.name, kinds=kinds)


class FleetFloor:
    """One floor for all robots of an episode: their traffic and the carriers that stand; filled at the first drive.

    It is the service ``traffic``. A robot alone uses one of its own.
    """

    def __init__(self) -> None:
        self._traffic: Traffic | None = None
        self._standing: dict[str, Cell] = {}

    def traffic(self, view: SceneView) -> Traffic:
        """Return the traffic of this floor, made from the static map and the robots' places at the first call."""
        if self._traffic is None:
            grid = floor_grid(view)
            self._traffic = Traffic(grid)
            for name in view.info.robots:
                pose = view.pose(name)
                cell = grid.cell_at(*pose.pos_world_m[:2]) if pose is not None else None
                if cell is not None:
                    self._traffic.enter(name, cell)
            lifted = {f.args[1] for f in view.graph.facts if f.predicate == "lifted"}
            for name in view.info.entities:
                pose = view.pose(name) if is_liftable(view.info, name) and name not in lifted else None
                cell = grid.cell_at(*pose.pos_world_m[:2]) if pose is not None else None
                if cell is not None:
                    self._standing[name] = cell
            self._traffic.set_obstacles(set(self._standing.values()))
        return self._traffic

    def lifted(self, view: SceneView, carrier: str) -> None:
        """Take note that a carrier left the floor."""
        traffic = self.traffic(view)
        self._standing.pop(carrier, None)
        traffic.set_obstacles(set(self._standing.values()))

    def lowered(self, view: SceneView, carrier: str, x_m: float, y_m: float) -> None:
        """Take note that a carrier stands where its robot put it down."""
        traffic = self.traffic(view)
        cell = traffic.grid.cell_at(x_m, y_m)
        if cell is not None:
            self._standing[carrier] = cell
        traffic.set_obstacles(set(self._standing.values()))

    def standing_in(self, cell: Cell) -> str:
        """Return the carrier that stands in a cell, empty if none does."""
        return next((n for n, c in sorted(self._standing.items()) if c == cell), "")


def floor_of(ctx: SkillContext) -> FleetFloor:
    """Return the floor service of an episode, or a new one for a robot on its own."""
    service = ctx.services.get(SERVICE)
    return service if isinstance(service, FleetFloor) else FleetFloor()


def lifted_by(ctx: SkillContext) -> str:
    """Return what the agent carries, empty for nothing."""
    return next((f.args[1] for f in ctx.view.graph.find("lifted", ctx.agent)), "")


def carrier_above(ctx: SkillContext) -> str:
    """Return the carrier whose middle is above the robot, empty if there is none."""
    own = ctx.robot.read().base_pos_world_m[:2]
    best = ("", UNDER_M)
    for name in ctx.view.info.entities:
        pose = ctx.view.pose(name) if is_liftable(ctx.view.info, name) else None
        if pose is not None:
            gap_m = float(np.linalg.norm(pose.pos_world_m[:2] - own))
            best = (name, gap_m) if gap_m < best[1] else best
    return best[0]
