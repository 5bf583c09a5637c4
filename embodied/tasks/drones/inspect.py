"""``drones/inspect@1``: inspect named panels in wind and land on a given pad.

Task: the drone stands on one of the pads with its motors off. It must inspect one to four panels, in any order, and
  then stand on the pad that the instruction names, motors off.
Randomisation: start pad, goal pad, number and choice of panels, mean wind up to 2.5 m/s from any direction, gusts up to
  0.8 m/s, wording.
Success: every named panel inspected (once seen, it counts), the drone on the goal pad and not flying.
Failure: decisions or time used up, a crash, or landing elsewhere.
Oracle: take off, inspect each panel, fly to the pad, land (the witness).
"""

from __future__ import annotations

import math

from embodied.errors import TaskError
from embodied.graph.facts import fact
from embodied.seeding import stream_rng
from embodied.skills.contract import SkillCall
from embodied.tasks.contract import AgentSpec, Budgets, Task
from embodied.tasks.goal import AllOf, Holds, Latched, Not
from embodied.worlds.contract import Start
from embodied_scenes.drones.yard import yard

ID = "drones/inspect@1"
DRONE = "drone_0"
WIND_MAX_MPS, GUST_MAX_MPS = 2.5, 0.8
_COUNT_SHARES = (0.1, 0.3, 0.35, 0.25)  # of one to four panels
_WORDINGS = (
    "Inspect {targets} and then land on {pad}.",
    "Take a look at {targets}; when you are done, put the drone down on {pad}.",
    "We need pictures of {targets}. Finish on {pad} with the motors off.",
    "Fly an inspection round: {targets}. Land at {pad} afterwards.",
)


class InspectFamily:
    """Generator of inspection tasks."""

    id = ID
    summary = "Inspect one to four named panels in wind and land on a given pad."

    def make(
        self, seed: int, *, num_targets: int | None = None, wind_mps: float | None = None, num_drones: int = 1
    ) -> Task:
        """Return the task of a seed.

        Args:
          seed: any integer.
          num_targets: number of panels, 1 to 8; None draws 1 to 4.
          wind_mps: mean wind speed; None draws up to 2.5 m/s.
          num_drones: 1 or 2; two share the panels and land on a pad each.

        Raises:
          TaskError: an option out of range.
        """
        scene = yard()
        panels = [e.name for e in scene.entities if "inspectable" in e.properties]
        pads = {p.name: p for p in scene.places if p.category == "pad"}
        rng = stream_rng(seed, "task", ID)
        count = num_targets if num_targets is not None else 1 + int(rng.choice(4, p=_COUNT_SHARES))
        speed = float(rng.uniform(0.0, WIND_MAX_MPS)) if wind_mps is None else wind_mps
        _check_options(count, len(panels), speed, num_drones)
        direction = float(rng.uniform(-math.pi, math.pi))
        targets = [panels[i] for i in rng.permutation(len(panels))[:count]]
        names = [f"drone_{i}" for i in range(num_drones)]
        chosen = [sorted(pads)[i] for i in rng.permutation(len(pads))]
        # starts and goals differ, so that nobody lands on a drone that waits
        starts, goals = dict(zip(names, chosen[0::2], strict=False)), dict(zip(names, chosen[1::2], strict=False))
        wording = [_WORDINGS[i] for i in rng.permutation(len(_WORDINGS))]
        texts = [w.format(targets=_listing(targets), pad=_listing(list(goals.values()))) for w in wording]
        wind = {
            ("windsock", "wind_x_mps"): speed * math.cos(direction),
            ("windsock", "wind_y_mps"): speed * math.sin(direction),
            ("windsock", "gust_mps"): float(rng.uniform(0.0, GUST_MAX_MPS)),
            ("windsock", "gust_seed"): int(rng.integers(2**31)),
        }
        return Task(
            id=ID,
            seed=seed,
            scene=scene,
            agents=tuple(
                AgentSpec(
                    name=name,
                    robot="quadrotor",
                    pos_m=pads[starts[name]].pos_m,
                    yaw_rad=float(rng.uniform(-math.pi, math.pi)),
                )
                for name in names
            ),
            start=Start(states={**{(n, "at"): p for n, p in starts.items()}, **wind}),
            instruction=texts[0],
            paraphrases=tuple(texts[1:]),
            goal=AllOf(
                (
                    *(Latched(Holds(fact("inspected", t))) for t in targets),
                    *(Holds(fact("at", n, p)) for n, p in goals.items()),
                    *(Not(Holds(fact("flying", n))) for n in names),
                )
            ),
            budgets=Budgets(sim_time_s=60.0 + 30.0 * count, decisions=2 * count + 8),
            witness={n: _witness(targets[i::num_drones], goals[n]) for i, n in enumerate(names)},
        )


def _check_options(count: int, num_panels: int, speed_mps: float, num_drones: int) -> None:
    if not 1 <= count <= num_panels:
        raise TaskError(f"{ID}: num_targets must lie in [1, {num_panels}], got {count}.")
    if not 0.0 <= speed_mps <= 4.0:
        raise TaskError(
            f"{ID}: wind_mps must lie in [0, 4], beyond which a 27 g drone cannot hold still; got {speed_mps}."
        )
    if num_drones not in (1, 2):
        raise TaskError(f"{ID}: num_drones must be 1 or 2 (four pads), got {num_drones}.")


def _witness(targets: list[str], pad: str) -> tuple[SkillCall, ...]:
    return (
        SkillCall.of("take_off", height_m=1.2),
        *(SkillCall.of("inspect", target=t) for t in targets),
        SkillCall.of("fly_to", target=pad),
        SkillCall.of("land", pad=pad),
    )


def _listing(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


INSPECT = InspectFamily()
