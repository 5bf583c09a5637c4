"""Traffic of a fleet in continuous motion: cells are promised in an order that cannot deadlock.

A plan in discrete steps (:func:`pibt_step`) says in which order robots visit each cell. Robots carry it out in their
own time: a robot may enter a cell when all earlier visits of it are over (the cell was left). The order has no cycle,
because within a step no agents rotate, so somebody can always go on. Only a few cells ahead are promised; the rest of
the plan is thrown away and made anew when a goal changes.

References:
  W. Hönig et al., "Persistent and Robust Execution of MAPF Schedules in Warehouses", IEEE Robotics and Automation
  Letters 4(2) (2019): the dependency graph of visits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from embodied.planners.mapf.pibt import distances, pibt_step
from embodied_scenes.warehouse.grid import Cell, GridMap

_AHEAD = 4  # promised cells: 4.8 m, more than the braking distance of 1.2 m at 1.2 m/s
_LEFT_RATIO = 0.9  # a cell counts as left when its robot has come this part of the way to the next one
_MAX_PLANNED = 40


@dataclass(slots=True)
class _Agent:
    name: str
    cell: Cell
    rank: int
    goal: Cell | None = None
    is_loaded: bool = False
    plan: deque[tuple[Cell, int]] = field(default_factory=deque)
    promised: int = 0
    waited: int = 0

    @property
    def end(self) -> Cell:
        return self.plan[-1][0] if self.plan else self.cell


class Traffic:
    """Promises cells to robots.

    Args:
      grid: the floor.
    """

    def __init__(self, grid: GridMap) -> None:
        self.grid = grid
        self._agents: dict[str, _Agent] = {}
        self._visits: dict[Cell, deque[int]] = {}
        self._next_visit = 0
        self._obstacles: frozenset[Cell] = frozenset()
        self._fields: dict[tuple[Cell, frozenset[Cell]], dict[Cell, int]] = {}
        free = {(r, c) for r in range(grid.rows) for c in range(grid.cols) if grid.free[r, c]}
        self._neighbours: dict[Cell, list[Cell]] = {
            (r, c): [n for n in ((r, c + 1), (r - 1, c), (r, c - 1), (r + 1, c)) if n in free] for r, c in free
        }

    def __contains__(self, name: object) -> bool:
        return name in self._agents

    def enter(self, name: str, cell: Cell) -> None:
        """Put a robot on the floor, standing.

        Raises:
          ValueError: the cell is not free or another robot holds it.
        """
        if cell not in self._neighbours:
            raise ValueError(f"Robot {name!r} cannot stand in cell {cell}: it is outside the floor or blocked.")
        if self._visits.get(cell):
            raise ValueError(f"Robot {name!r} cannot stand in cell {cell}: it is promised to another robot.")
        agent = _Agent(name, cell, len(self._agents))
        self._agents[name] = agent
        self._add_visit(cell)

    def set_obstacles(self, cells: Collection[Cell]) -> None:
        """Say where carriers stand: loaded robots go around those cells, empty ones drive under."""
        if frozenset(cells) != self._obstacles:
            self._obstacles = frozenset(cells)
            self._forget()

    def reachable(self, name: str, goal: Cell, *, is_loaded: bool) -> bool:
        """Whether a way leads from the robot's cell to ``goal``, other robots ignored."""
        blocked = self._obstacles if is_loaded else frozenset()
        return (
            goal in self._neighbours and goal not in blocked and self._agents[name].cell in self._field(goal, blocked)
        )

    def set_goal(self, name: str, goal: Cell | None, *, is_loaded: bool = False) -> None:
        """Send a robot to a cell (None: let it stand where its promised cells end).

        Args:
          name: which robot.
          goal: where to.
          is_loaded: whether it carries something that does not fit above standing carriers.
        """
        agent = self._agents[name]
        agent.goal, agent.is_loaded, agent.waited = goal, is_loaded, 0
        self._forget()

    def advance(self, name: str, x_m: float, y_m: float) -> None:
        """Tell where a robot is; cells it has left are given to those who wait for them."""
        agent = self._agents[name]
        while agent.promised:
            (x0, y0), (x1, y1) = self.grid.center_m(agent.cell), self.grid.center_m(agent.plan[0][0])
            length = self.grid.cell_m
            done_m = ((x_m - x0) * (x1 - x0) + (y_m - y0) * (y1 - y0)) / length
            if done_m < _LEFT_RATIO * length:
                return
            self._leave(agent)

    def promised(self, name: str) -> list[tuple[Cell, int]]:
        """Return the cells that a robot may enter now, in order, with the numbers of the visits; plans on if needed."""
        agent = self._agents[name]
        if agent.goal is not None:
            steps = 0
            while len(agent.plan) < _AHEAD and agent.end != agent.goal and steps < 2 * _AHEAD:
                if max(len(a.plan) for a in self._agents.values()) >= _MAX_PLANNED:
                    break
                self._plan_step()
                steps += 1
        while agent.promised < min(len(agent.plan), _AHEAD):
            cell, visit = agent.plan[agent.promised]
            if self._visits[cell][0] != visit:
                break
            agent.promised += 1
        return [agent.plan[i] for i in range(agent.promised)]

    def cell_of(self, name: str) -> Cell:
        """Return the cell a robot is in."""
        return self._agents[name].cell

    def has_arrived(self, name: str) -> bool:
        """Whether a robot stands in its goal cell with nothing planned."""
        agent = self._agents[name]
        return agent.goal == agent.cell and not agent.plan

    def waits_for(self, name: str) -> str:
        """Return the robot that holds the next cell of a robot, empty if none does."""
        agent = self._agents[name]
        wanted = agent.plan[agent.promised][0] if len(agent.plan) > agent.promised else None
        for other in self._agents.values():
            held = [other.cell, *(other.plan[i][0] for i in range(other.promised))]
            if other is not agent and (wanted in held or (wanted is None and self._is_near_goal(agent, other))):
                return other.name
        return ""

    def holdings(self) -> Mapping[str, tuple[Cell, ...]]:
        """Return the cells that each robot holds: where it is and what is promised to it."""
        return {a.name: (a.cell, *(a.plan[i][0] for i in range(a.promised))) for a in self._agents.values()}

    def _is_near_goal(self, agent: _Agent, other: _Agent) -> bool:
        return other.cell in self._neighbours[agent.end]

    def _leave(self, agent: _Agent) -> None:
        left = agent.cell
        self._visits[left].popleft()
        agent.cell = agent.plan.popleft()[0]
        agent.promised -= 1

    def _forget(self) -> None:
        """Drop all that is planned and not promised."""
        for agent in self._agents.values():
            while len(agent.plan) > agent.promised:
                cell, visit = agent.plan.pop()
                self._visits[cell].remove(visit)

    def _plan_step(self) -> None:
        agents = list(self._agents.values())
        at = [a.end for a in agents]
        still = {i for i, a in enumerate(agents) if a.goal is None or a.goal == a.end}
        parked = {at[i] for i in still}
        moving = [i for i in range(len(agents)) if i not in still]
        order = sorted(moving, key=lambda i: (-agents[i].waited, agents[i].rank))
        occupied = set(at)
        target = pibt_step(at, order, lambda i: self._wishes(agents[i], parked, occupied), still)
        for i in moving:
            agents[i].waited += 1
        for agent, cell in zip(agents, target, strict=True):
            if cell != agent.end:
                agent.plan.append((cell, self._add_visit(cell)))

    def _wishes(self, agent: _Agent, parked: set[Cell], occupied: set[Cell]) -> list[Cell]:
        assert agent.goal is not None
        here = agent.end
        blocked = self._obstacles if agent.is_loaded else frozenset()
        way = self._field(agent.goal, blocked | (parked - {here}))
        if here not in way:
            way = self._field(agent.goal, blocked)
        before = agent.plan[-2][0] if len(agent.plan) > 1 else agent.cell
        ahead = (2 * here[0] - before[0], 2 * here[1] - before[1])
        cells = [c for c in self._neighbours[here] if c not in blocked]
        far = len(self._neighbours) + 1
        return sorted([*cells, here], key=lambda c: (way.get(c, far), c in occupied and c != here, c != ahead, c))

    def _field(self, goal: Cell, blocked: frozenset[Cell]) -> dict[Cell, int]:
        key = (goal, blocked)
        if key not in self._fields:
            if len(self._fields) > 256:
                self._fields.clear()
            self._fields[key] = distances(goal, self._neighbours, blocked)
        return self._fields[key]

    def _add_visit(self, cell: Cell) -> int:
        self._next_visit += 1
        self._visits.setdefault(cell, deque()).append(self._next_visit)
        return self._next_visit
