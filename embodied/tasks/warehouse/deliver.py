"""``warehouse/deliver@1``: bring the carrier with a given package to a given pick station."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from embodied.errors import TaskError
from embodied.graph.facts import fact
from embodied.seeding import stream_rng
from embodied.skills.contract import SkillCall
from embodied.tasks.contract import AgentSpec, Budgets, Task
from embodied.tasks.goal import AllOf, Goal, Holds, Not
from embodied.worlds.contract import Start
from embodied_scenes.spec import SceneSpec
from embodied_scenes.warehouse.grid import Cell
from embodied_scenes.warehouse.hall import HallLayout, build, hall_layout

if TYPE_CHECKING:
    import numpy as np

_SCAN_SHARE = 0.3
_MOST_AGENTS = 3


@lru_cache(maxsize=1)
def _hall() -> tuple[HallLayout, SceneSpec]:
    layout = hall_layout()
    return layout, build(layout, "warehouse/hall@1")


class DeliverFamily:
    """Generates deliveries in ``warehouse/hall@1``; about a third of the seeds ask for a scan of the code first."""

    id = "warehouse/deliver@1"
    summary = "bring a carrier to a pick station; some seeds ask to scan its code first"

    def make(self, seed: int, agents: int = 1) -> Task:
        """Return the task of a seed.

        Args:
          seed: same seed, same task.
          agents: robots, each with a carrier and a station of its own.

        Raises:
          TaskError: more robots were asked for than there are pick stations, or none.
        """
        layout, scene = _hall()
        if not 1 <= agents <= _MOST_AGENTS:
            raise TaskError(f"{self.id}: agents must lie in 1..{_MOST_AGENTS} (one pick station each), got {agents}.")
        rng = stream_rng(seed, "task", self.id, agents)
        carriers = [str(c) for c in rng.permutation(sorted(layout.carriers))[:agents]]
        stations = [str(s) for s in rng.permutation(sorted(layout.stations))[:agents]]
        starts = _start_cells(layout, rng, agents)
        is_scan = bool(rng.random() < _SCAN_SHARE)
        names = [f"amr_{i}" for i in range(agents)]
        goals: list[Goal] = []
        witness: dict[str, tuple[SkillCall, ...]] = {}
        for name, carrier, station in zip(names, carriers, stations, strict=True):
            goals += [Holds(fact("at", carrier, station)), Not(Holds(fact("lifted", name, carrier)))]
            goals += [Holds(fact("scanned", carrier))] if is_scan else []
            witness[name] = _plan(carrier, station, is_scan=is_scan)
        texts = _texts(carriers, stations, {c: _code(scene, c) for c in carriers}, is_scan=is_scan)
        return Task(
            id=self.id,
            seed=seed,
            scene=scene,
            agents=tuple(
                _agent(layout, name, cell, float(yaw))
                for name, cell, yaw in zip(names, starts, rng.integers(0, 4, agents), strict=True)
            ),
            start=Start(),
            instruction=texts[0],
            paraphrases=texts[1:],
            goal=AllOf(tuple(goals)),
            budgets=Budgets(sim_time_s=300.0, decisions=20),
            witness=witness,
            prior="inventory",
        )


def _agent(layout: HallLayout, name: str, cell: Cell, quarter_turns: float) -> AgentSpec:
    x_m, y_m = layout.grid.center_m(cell)
    return AgentSpec(name=name, robot="amr", pos_m=(x_m, y_m, 0.0), yaw_rad=quarter_turns * 1.5707963267948966)


def _start_cells(layout: HallLayout, rng: np.random.Generator, count: int) -> list[Cell]:
    """Chargers and homes: nobody starts under a carrier or at a pick station."""
    cells = sorted([*layout.homes, *layout.chargers.values()])
    return [cells[int(i)] for i in rng.choice(len(cells), count, replace=False)]


def _plan(carrier: str, station: str, *, is_scan: bool) -> tuple[SkillCall, ...]:
    scan = (SkillCall.of("scan_code", thing=carrier),) if is_scan else ()
    return (
        SkillCall.of("drive_to", target=carrier),
        *scan,
        SkillCall.of("lift", thing=carrier),
        SkillCall.of("drive_to", target=station),
        SkillCall.of("lower", thing=carrier),
        SkillCall.of("done"),
    )


def _code(scene: SceneSpec, carrier: str) -> str:
    entity = next(e for e in scene.entities if e.name == carrier)
    return (entity.custom.label if entity.custom else None) or ""


def _texts(carriers: list[str], stations: list[str], codes: dict[str, str], *, is_scan: bool) -> tuple[str, ...]:
    pairs = list(zip(carriers, stations, strict=True))
    scan = "".join(f"Scan the code of {c}. " for c in carriers) if is_scan else ""
    jobs = " ".join(f"Bring {c} (code {codes[c]}) to {s}. Lower it there." for c, s in pairs)
    orders = " ".join(f"At {s} the goods {codes[c]} are wanted; they are on {c}." for c, s in pairs)
    moves = " ".join(f"Please move {c} (code {codes[c]}) to {s} and put it down." for c, s in pairs)
    first = " Scan each carrier before it leaves its slot." if is_scan else ""
    return (
        scan + jobs,
        f"{orders} Deliver and set down.{first}",
        moves + first,
    )


DELIVER = DeliverFamily()
