"""A fleet at work: robots fetch carriers to pick stations and bring them back, in physics, collisions counted.

The dispatcher is plain (nearest free carrier, station that is free); driving, lifting and lowering are the skills that
planners use, through the same traffic, controllers and contacts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from embodied.agents.bodies import PhysicalBody
from embodied.errors import TaskError
from embodied.robots.amr.spec import AMR
from embodied.robots.base import make_robot
from embodied.seeding import stream_rng
from embodied.skills.contract import Skill, SkillCall, Status
from embodied.skills.warehouse.all import drive_to, lift, lower
from embodied.skills.warehouse.floor import SERVICE, FleetFloor
from embodied.worlds.contract import Start
from embodied_scenes.builders import RobotMount, compile_scene
from embodied_scenes.warehouse.grid import Cell, GridMap
from embodied_scenes.warehouse.hall import HallLayout, build, lay_out
from embodied_scenes.warehouse.maps import load_map

if TYPE_CHECKING:
    from embodied.worlds.contract import PhysicsWorld

_PICK_S = 5.0  # a picker takes the goods off a carrier
_RETRY_S = 2.0
_LOOK_STEPS = 2  # 10 ms: a touch of bodies this heavy lasts longer
_SKILLS: dict[str, Skill] = {s.name: s for s in (drive_to, lift, lower)}


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetResult:
    """What a fleet did.

    Attributes:
      deliveries: carriers put down at a pick station.
      collisions: (thing, thing) pairs that came to touch though they should not, one entry per touch.
      failures: skill failures by code; each was tried again.
      driven_m: distance driven by all robots together.
      longest_wait_s: longest time that a robot with a job did not move while driving.
    """

    robots: int
    sim_time_s: float
    deliveries: int
    deliveries_per_hour: float
    collisions: tuple[tuple[str, str], ...]
    failures: dict[str, int] = field(default_factory=dict)
    driven_m: float = 0.0
    longest_wait_s: float = 0.0


def run_fleet(
    grid: GridMap | Path | str,
    name: str | None = None,
    *,
    robots: int = 8,
    sim_time_s: float = 600.0,
    seed: int = 0,
    carriers: int = 24,
    stations: int = 6,
    world: str = "mujoco",
) -> FleetResult:
    """Let a fleet deliver for some simulated time.

    Args:
      grid: a map, or the path of a map file.
      name: which map of a file with several.
      robots: size of the fleet.
      sim_time_s: how long.
      seed: where robots start and in which order carriers are asked for.
      carriers: carriers in the hall.
      stations: pick stations.
      world: backend.

    Raises:
      TaskError: more robots than carriers, stations or start cells can take.
      MapError: the map is malformed or too small.
    """
    grid = grid if isinstance(grid, GridMap) else load_map(grid, name)
    layout = lay_out(grid, carriers=carriers, stations=stations, chargers=2)
    if not 1 <= robots <= min(carriers, len(layout.homes)):
        raise TaskError(
            f"A fleet of {robots} does not fit: {carriers} carriers, {len(layout.homes)} start cells. "
            "Ask for at least one robot and at most as many as the smaller of the two."
        )
    return Fleet(layout, robots=robots, seed=seed, world=world).run(sim_time_s)


class Fleet:
    """A hall with its robots, ready to run; see :func:`run_fleet`."""

    def __init__(self, layout: HallLayout, *, robots: int, seed: int, world: str = "mujoco") -> None:
        from embodied.catalog import WORLDS

        names = [f"amr_{i}" for i in range(robots)]
        scene = build(layout, f"warehouse/{layout.grid.name}")
        compiled = compile_scene(scene, [RobotMount(name=n, kind=AMR.kind, mjcf=AMR.mjcf) for n in names])
        self.layout = layout
        self.world = cast("PhysicsWorld", WORLDS.get(world)(compiled))
        rng = stream_rng(seed, "layout", "fleet")
        homes = [layout.homes[i] for i in rng.choice(len(layout.homes), robots, replace=False)]
        self.world.reset(seed, Start(poses={n: _pose(layout.grid, c) for n, c in zip(names, homes, strict=True)}))
        floor = FleetFloor()
        prior = self.world.graph()
        self.bodies: dict[str, PhysicalBody] = {}
        for n in names:
            robot = make_robot(self.world, n, AMR)
            robot.reset()
            self.bodies[n] = PhysicalBody(
                self.world,
                robot,
                stream_rng(seed, "policy", n),
                {SERVICE: floor},
                lambda kind, payload: None,
                is_privileged=True,
                prior=prior,
            )
        self.dispatcher = _Dispatcher(layout, rng)
        self.touches = TouchWatch(self.world)
        self._workers = {n: _Worker(n, body, self.dispatcher, layout.grid) for n, body in self.bodies.items()}

    def run(self, sim_time_s: float) -> FleetResult:
        """Run for ``sim_time_s`` and report."""
        steps = round(AMR.dt_ctrl_s / self.world.dt_sim_s)
        for _ in range(round(sim_time_s / AMR.dt_ctrl_s)):
            time_s = self.world.time_s()
            for worker in self._workers.values():
                worker.tick(time_s)
            for _ in range(steps // _LOOK_STEPS):
                self.world.step(_LOOK_STEPS)
                self.touches.look()
            self.world.step(steps % _LOOK_STEPS)
        failures: Counter[str] = Counter()
        for worker in self._workers.values():
            failures.update(worker.failures)
        deliveries = sum(w.deliveries for w in self._workers.values())
        return FleetResult(
            robots=len(self.bodies),
            sim_time_s=self.world.time_s(),
            deliveries=deliveries,
            deliveries_per_hour=3600.0 * deliveries / self.world.time_s(),
            collisions=tuple(self.touches.found),
            failures=dict(failures),
            driven_m=sum(w.driven_m for w in self._workers.values()),
            longest_wait_s=max(w.longest_wait_s for w in self._workers.values()),
        )


_MAY_TOUCH: tuple[set[str], ...] = ({"deck", "carrier"}, {"carrier", "package"})


class TouchWatch:
    """Counts contacts that should not be, once per touch.

    Allowed: anything with the ground, a deck with a carrier, a package with the tray below it. It sees the engine's
    contacts at the moments when :meth:`look` is called.
    """

    def __init__(self, world: PhysicsWorld) -> None:
        from embodied.worlds.layout import entity_of_body

        self._world = world
        model, info = world.scene.model, world.scene.info
        owners = entity_of_body(world.scene)
        self._owner: list[str] = []
        self._kind: list[str] = []  # by geom, as the owners
        for geom in range(model.ngeom):
            body = int(model.geom_bodyid[geom])
            name = owners.get(body, model.body(body).name)
            self._owner.append(name)
            if body == 0:
                self._kind.append("ground")
            elif "deck" in model.geom(geom).name:
                self._kind.append("deck")
            else:
                self._kind.append(info.entities[name].category if name in info.entities else "solid")
        kinds = sorted(set(self._kind))
        self._code = np.array([kinds.index(k) for k in self._kind])
        self._is_free = np.zeros((len(kinds), len(kinds)), dtype=bool)
        for i, a in enumerate(kinds):
            for j, b in enumerate(kinds):
                self._is_free[i, j] = "ground" in (a, b) or {a, b} in _MAY_TOUCH
        self._now: set[tuple[str, str]] = set()
        self.found: list[tuple[str, str]] = []

    def look(self) -> None:
        """Compare the present contacts with those of the last look."""
        now = set()
        pairs = self._world.contacts().geom_ids
        bad = ~self._is_free[self._code[pairs[:, 0]], self._code[pairs[:, 1]]]
        for a, b in pairs[bad].tolist():
            if self._owner[a] != self._owner[b]:
                now.add(tuple(sorted((self._owner[a], self._owner[b]))))
        self.found.extend(sorted(now - self._now))
        self._now = now


class _Dispatcher:
    """Hands out carriers and stations, each to one robot at a time; carriers go back to their own slots."""

    def __init__(self, layout: HallLayout, rng: np.random.Generator) -> None:
        self._free = dict(layout.stations)
        self._busy: dict[str, Cell] = {}
        self._cells = dict(layout.carriers)
        slot_in = {cell: slot for slot, cell in layout.slots.items()}
        self.slots = {carrier: slot_in[cell] for carrier, cell in layout.carriers.items()}
        self._wanted = [str(c) for c in rng.permutation(sorted(layout.carriers))]

    def take(self, cell: Cell) -> tuple[str, str] | None:
        """Return a (carrier, station) job for a robot in ``cell``, or None while no station or carrier is free."""
        if not self._wanted or not self._free:
            return None
        # the eight oldest requests are open; the nearest of them goes first
        carrier = min(self._wanted[:8], key=lambda c: (_gap(cell, self._cells[c]), c))
        self._wanted.remove(carrier)
        station = min(self._free, key=lambda s: (_gap(self._cells[carrier], self._free[s]), s))
        self._busy[station] = self._free.pop(station)
        return carrier, station

    def free_station(self, station: str) -> None:
        """Take a station back: its carrier is off the floor."""
        self._free[station] = self._busy.pop(station)

    def want_again(self, carrier: str) -> None:
        """Put a carrier at the end of the requests: it is back in its slot."""
        self._wanted.append(carrier)


class _Worker:
    """One robot and its errands."""

    def __init__(self, name: str, body: PhysicalBody, dispatcher: _Dispatcher, grid: GridMap) -> None:
        self.name, self._body, self._dispatcher, self._grid = name, body, dispatcher, grid
        self.deliveries = 0
        self.failures: Counter[str] = Counter()
        self.driven_m = 0.0
        self.longest_wait_s = 0.0
        self._errands: list[SkillCall] = []
        self._job: tuple[str, str] | None = None
        self._is_running = False
        self._rest_until_s = 0.0
        self._xy_m = body.robot.read().base_pos_world_m[:2]
        self._moved_s = 0.0

    def tick(self, time_s: float) -> None:
        """Advance by one control period."""
        self._measure(time_s)
        if not self._is_running and (time_s < self._rest_until_s or not self._next(time_s)):
            self._body.rest()
            return
        outcome = self._body.tick(time_s)
        if outcome is None:
            return
        self._is_running = False
        if outcome.status is Status.SUCCEEDED:
            self._done(self._errands.pop(0), time_s)
        else:
            self.failures[outcome.code] += 1
            self._rest_until_s = time_s + _RETRY_S

    def _next(self, time_s: float) -> bool:
        if not self._errands:
            self._job = self._dispatcher.take(self._grid.cell_at(*self._xy_m) or (0, 0))
            if self._job is None:
                self._rest_until_s = time_s + _RETRY_S
                return False
            carrier, station = self._job
            self._errands = [
                SkillCall.of("drive_to", target=carrier),
                SkillCall.of("lift", thing=carrier),
                SkillCall.of("drive_to", target=station),
                SkillCall.of("lower", thing=carrier),
                SkillCall.of("lift", thing=carrier),
                SkillCall.of("drive_to", target=self._dispatcher.slots[carrier]),
                SkillCall.of("lower", thing=carrier),
            ]
        call = self._errands[0]
        self._body.start(_SKILLS[call.skill], call, time_s)
        self._is_running = True
        return True

    def _done(self, call: SkillCall, time_s: float) -> None:
        assert self._job is not None
        carrier, station = self._job
        left = len(self._errands)
        if call.skill == "lower" and left:
            self.deliveries += 1
            self._rest_until_s = time_s + _PICK_S
        elif call.skill == "lift" and left == 2:
            self._dispatcher.free_station(station)
        elif not left:
            self._dispatcher.want_again(carrier)

    def _measure(self, time_s: float) -> None:
        xy_m = self._body.robot.read().base_pos_world_m[:2]
        moved_m = float(np.hypot(*(xy_m - self._xy_m)))
        self.driven_m += moved_m
        self._xy_m = xy_m
        is_driving = self._is_running and self._errands[0].skill == "drive_to"
        if moved_m > 1e-3 or not is_driving:
            self._moved_s = time_s
        self.longest_wait_s = max(self.longest_wait_s, time_s - self._moved_s)


def _gap(a: Cell, b: Cell) -> int:
    return abs(a[0] - b[0]) + abs(a[1] - b[1])


def _pose(grid: GridMap, cell: Cell) -> tuple[float, ...]:
    x_m, y_m = grid.center_m(cell)
    return (x_m, y_m, 0.0, 1.0, 0.0, 0.0, 0.0)
