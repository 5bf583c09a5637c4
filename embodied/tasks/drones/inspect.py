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

    def make(self, seed: int, *, num_targets: int | None = None, wind_mps: float | None = None) -> Task:
        """Return the task of a seed.

        Args:
          seed: any integer.
          num_targets: number of panels, 1 to 8; None draws 1 to 4.
          wind_mps: mean wind speed; None draws up to 2.5 m/s.

        Raises:
          TaskError: an option out of range.
        """
        scene = yard()
        panels = [e.name for e in scene.entities if "inspectable" in e.properties]
        pads = {p.name: p for p in scene.places if p.category == "pad"}
        rng = stream_rng(seed, "task", ID)
        count = num_targets if num_targets is not None else 1 + int(rng.choice(4, p=_COUNT_SHARES))
        if not 1 <= count <= len(panels):
            raise TaskError(f"{ID}: num_targets must lie in [1, {len(panels)}], got {num_targets}.")
        speed = float(rng.uniform(0.0, WIND_MAX_MPS)) if wind_mps is None else wind_mps
        if not 0.0 <= speed <= 4.0:
            raise TaskError(
                f"{ID}: wind_mps must lie in [0, 4], beyond which a 27 g drone cannot hold still; got {speed}."
            )
        direction = float(rng.uniform(-math.pi, math.pi))
        targets = [panels[i] for i in rng.permutation(len(panels))[:count]]
        start_pad, goal_pad = (sorted(pads)[i] for i in rng.permutation(len(pads))[:2])
        wording = [_WORDINGS[i] for i in rng.permutation(len(_WORDINGS))]
        texts = [w.format(targets=_listing(targets), pad=goal_pad) for w in wording]
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
            agents=(
                AgentSpec(
                    name=DRONE,
                    robot="quadrotor",
                    pos_m=pads[start_pad].pos_m,
                    yaw_rad=float(rng.uniform(-math.pi, math.pi)),
                ),
            ),
            start=Start(states={(DRONE, "at"): start_pad, **wind}),
            instruction=texts[0],
            paraphrases=tuple(texts[1:]),
            goal=AllOf(
                (
                    *(Latched(Holds(fact("inspected", t))) for t in targets),
                    Holds(fact("at", DRONE, goal_pad)),
                    Not(Holds(fact("flying", DRONE))),
                )
            ),
            budgets=Budgets(sim_time_s=60.0 + 30.0 * count, decisions=2 * count + 8),
            witness={DRONE: _witness(targets, goal_pad)},
        )


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
