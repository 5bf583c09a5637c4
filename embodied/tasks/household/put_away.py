"""``household/put_away@1``: bring one to three misplaced things to where they belong.

Task: things lie at wrong places of the flat; each has to come to the furniture that the instruction names, on it or in
  it; cabinets, fridge and drawers that were closed have to be closed again.
Randomisation: number and choice of things, where they lie, the furniture they belong to, the robot's start, wording.
Success: every named thing stands on or in its furniture, all doors and drawers that were used are closed.
Failure: decisions or time used up.
Oracle: open what is in the way, carry thing by thing, close (the witness).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from embodied.errors import TaskError
from embodied.graph.facts import Fact, fact
from embodied.seeding import stream_rng
from embodied.tasks.contract import AgentSpec, Budgets, Task
from embodied.tasks.goal import AllOf, Goal, Holds, Not
from embodied.tasks.household.stage import AGENT, ROBOT, Stage, carry_plan, start_pose, taken_by
from embodied.worlds.contract import Start
from embodied_scenes.household import flat

ID = "household/put_away@1"
COUNT_SHARES = (0.6, 0.3, 0.1)  # of one, two, three things
HIDDEN_SHARE = 0.2  # of things that start behind a closed door

# Where things of a category belong: (relation, furniture).
HOMES: dict[str, tuple[tuple[str, str], ...]] = {
    "apple": (("in", "fridge"), ("on", "kitchen_table")),
    "orange": (("in", "fridge"), ("on", "kitchen_table")),
    "milk_carton": (("in", "fridge"),),
    "bottle": (("in", "fridge"), ("on", "counter")),
    "mug": (("in", "dish_cabinet"), ("in", "sink")),
    "cup": (("in", "dish_cabinet"), ("in", "sink")),
    "bowl": (("in", "dish_cabinet"), ("in", "sink")),
    "can": (("in", "pantry"),),
    "cereal_box": (("in", "pantry"),),
    "jar": (("in", "pantry"), ("in", "kitchen_cabinet")),
    "sponge": (("on", "sink"),),
    "soap": (("on", "sink"),),
    "book": (("in", "bookcase"), ("in", "bedroom_shelf")),
    "newspaper": (("on", "coffee_table"),),
    "remote": (("on", "tv_stand"),),
    "candle": (("in", "display_shelf"), ("on", "dresser")),
    "toy_block": (("in", "toy_basket"),),
    "ball": (("in", "toy_basket"),),
    "teddy_bear": (("in", "toy_basket"), ("on", "bed")),
    "phone": (("on", "nightstand"), ("on", "desk")),
    "pot_plant": (("on", "living_drawer"), ("on", "bedside_table")),
    "spoon": (("in", "kitchen_drawer"),),
}
# Where things get left: furniture that a robot reaches from a free front, 0.45 to 0.90 m high.
LEFT_ON = ("counter", "kitchen_table", "coffee_table", "tv_stand", "desk", "bedside_table", "nightstand", "dresser")
HIDDEN_IN = ("fridge", "pantry", "dish_cabinet", "kitchen_cabinet", "living_cabinet", "wardrobe")
_WORDINGS = (
    "Put {moves}. Close what you open.",
    "Please tidy up: {moves}. Leave all doors and drawers closed.",
    "Things are out of place. Bring {moves}, and shut every door afterwards.",
    "Take {moves}; close the furniture when you are done.",
)


@cache
def stage() -> Stage:
    """Return the flat, compiled once."""
    return Stage(flat())


class PutAwayFamily:
    """Generator of tidying tasks.

    Args:
      get_stage: gives the flat that the tasks play in; variants of it have the same names.
    """

    id = ID
    summary = "Bring one to three misplaced things to the furniture they belong to, closed furniture included."

    def __init__(self, get_stage: Callable[[], Stage] = stage) -> None:
        self._stage = get_stage

    def make(self, seed: int, *, num_things: int | None = None) -> Task:
        """Return the task of a seed.

        Args:
          seed: any integer.
          num_things: 1 to 3; None draws.

        Raises:
          TaskError: ``num_things`` out of range, or no free spot after many tries.
        """
        if num_things is not None and not 1 <= num_things <= 3:
            raise TaskError(f"{ID}: num_things must lie in [1, 3], got {num_things}.")
        rng = stream_rng(seed, "task", ID)
        count = num_things if num_things is not None else 1 + int(rng.choice(3, p=COUNT_SHARES))
        things = self._choose(count, rng)
        homes = {t: self._home(t, rng) for t in things}
        starts, poses = self._misplace(things, homes, rng)
        x_m, y_m, yaw = self._stage().agent_pose(rng)
        openable = frozenset(e.name for e in self._stage().info.entities.values() if e.openable)
        used = sorted({h for r, h in homes.values() if r == "in" and h in openable})
        goals: list[Goal] = [Holds(_wanted(t, *homes[t])) for t in things]
        goals += [Not(Holds(fact("open", f))) for f in used]
        moves = [(t, *homes[t]) for t in things]
        order = rng.permutation(len(_WORDINGS))
        said = wordings(moves)
        texts = [said[int(i)] for i in order]
        return Task(
            id=ID,
            seed=seed,
            scene=self._stage().scene,
            agents=(AgentSpec(name=AGENT, robot=ROBOT, pos_m=(x_m, y_m, 0.0), yaw_rad=yaw),),
            start=Start(poses=poses),
            instruction=texts[0],
            paraphrases=tuple(texts[1:]),
            goal=AllOf(tuple(goals)),
            budgets=Budgets(sim_time_s=240.0 + 180.0 * count, decisions=20 + 20 * count),
            witness={AGENT: carry_plan(moves, starts, openable, close=used)},
        )

    def _choose(self, count: int, rng: np.random.Generator) -> list[str]:
        info = self._stage().info
        known = [n for n in self._stage().movable if info.entities[n].category in HOMES]
        return [known[i] for i in rng.permutation(len(known))[:count]]

    def _home(self, thing: str, rng: np.random.Generator) -> tuple[str, str]:
        options = HOMES[self._stage().info.entities[thing].category]
        return options[int(rng.integers(len(options)))]

    def _misplace(
        self, things: list[str], homes: dict[str, tuple[str, str]], rng: np.random.Generator
    ) -> tuple[dict[str, Fact], dict[str, tuple[float, ...]]]:
        """Find a wrong place for every thing; returns where each stands, as a fact and as a pose."""
        info = self._stage().info
        taken = self._stage().boxes([n for n in self._stage().movable if n not in things])
        starts: dict[str, Fact] = {}
        poses: dict[str, tuple[float, ...]] = {}
        for thing in things:
            entity = info.entities[thing]
            for _ in range(40):
                hidden = rng.random() < HIDDEN_SHARE
                places = HIDDEN_IN if hidden else LEFT_ON
                place = places[int(rng.integers(len(places)))]
                relation = "in" if hidden else "on"
                if place == homes[thing][1]:
                    continue
                spot = self._stage().spot(entity, place, relation, taken, rng)
                if spot is not None:
                    taken = taken_by(taken, spot, entity)
                    starts[thing] = _wanted(thing, relation, place)
                    poses[thing] = start_pose(spot, entity)
                    break
            else:
                raise TaskError(f"{ID}: no free spot for {thing!r} after 40 tries. Clear some furniture of the scene.")
        return starts, poses


def wordings(moves: Sequence[tuple[str, str, str]]) -> tuple[str, ...]:
    """Return all ways to ask for moves (thing, relation, target)."""
    listing = _listing([_phrase(*m) for m in moves])
    return tuple(w.format(moves=listing) for w in _WORDINGS)


def _wanted(thing: str, relation: str, target: str) -> Fact:
    return fact("inside" if relation == "in" else "ontop", thing, target)


def _phrase(thing: str, relation: str, target: str) -> str:
    return f"{thing} {'into' if relation == 'in' else 'onto'} {target}"


def _listing(items: list[str]) -> str:
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]


PUT_AWAY = PutAwayFamily()
