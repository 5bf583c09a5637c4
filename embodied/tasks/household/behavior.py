"""``household/behavior@1``: twenty published household activities (BEHAVIOR-1K, BDDL) in the flat with further rooms.

Task: read from ``<data>/behavior/activities/<name>.bddl``. Objects with ``inroom`` are furniture of the scene; bins,
  sacks, boxes and the like stand still where the activity puts them; everything else is a movable thing with a template
  from the taxonomy.
Randomisation: the seed picks activity ``seed mod 20``, the places of the things and the robot's start.
Success: the goal of the file, grounded.
Failure: decisions or time used up.
Oracle: the witness, read off the goal.

Which activities: of 1,016, those whose predicates are ontop, inside, inroom, nextto, under, open and whose rooms a home
has. Of these, left out are: those with more than five movable things (long, and their shares of a shelf do not fit);
those that carry a full container or a piece of furniture (needs two arms); those that ask to pick up from the floor or
put down in a fixed arrangement there (below the arm's working height); those whose doors or windows are part of the
building; stacks of things and things inside a thing that is itself carried.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from embodied.errors import TaskError, nearest_hint
from embodied.graph.facts import Fact
from embodied.seeding import stream_rng
from embodied.tasks.bddl.ground import ground_goal
from embodied.tasks.bddl.problem import Problem, parse_problem, unsupported
from embodied.tasks.contract import AgentSpec, Budgets, Task
from embodied.tasks.goal import AllOf, AtLeast, Goal, Holds, Not
from embodied.tasks.household.cast import Cast, cast_activity
from embodied.tasks.household.stage import AGENT, ROBOT, carry_plan, start_pose, taken_by
from embodied.tasks.household.taxonomy import data_folder
from embodied.worlds.contract import Start

ID = "household/behavior@1"
KNOWN = frozenset({"ontop", "inside", "inroom", "nextto", "under", "open"})
ACTIVITIES = (
    "bringing_in_mail",
    "bringing_water",
    "clearing_table_after_snacks",
    "collecting_dishes_from_around_house",
    "collecting_mail_from_the_letterbox",
    "composting_waste",
    "mailing_letters",
    "pack_a_pencil_case",
    "packing_documents_into_car",
    "rearranging_kitchen_furniture",
    "recycling_glass_bottles",
    "sending_packages",
    "setting_up_room_for_games",
    "setup_a_baby_crib",
    "store_batteries",
    "store_beer",
    "store_honey",
    "store_produce",
    "unloading_groceries",
    "unloading_shopping_from_car",
)


class BehaviorFamily:
    """Generator of published activities."""

    id = ID
    summary = "Twenty published household activities, read from their BDDL files."

    def make(self, seed: int, *, activity: str | None = None) -> Task:
        """Return the task of a seed.

        Args:
          seed: any integer; picks the activity unless that is given.
          activity: one of :data:`ACTIVITIES`.

        Raises:
          TaskError: the data folder is missing, the activity is not one of the twenty, or nothing fits.
        """
        if activity is not None and activity not in ACTIVITIES:
            raise TaskError(f"{ID}: {activity!r} is not one of the twenty. {nearest_hint(activity, ACTIVITIES)}")
        name = activity if activity is not None else ACTIVITIES[seed % len(ACTIVITIES)]
        problem, cast = _prepared(name)
        rng = stream_rng(seed, "task", ID, name)
        supports, poses = _place_things(cast, rng)
        goal = known_facts(ground_goal(problem, cast.names), cast.fixed_facts)
        x_m, y_m, yaw = cast.stage.agent_pose(rng, cast.agent_rooms)
        openable = frozenset(e.name for e in cast.stage.info.entities.values() if e.openable)
        opened = frozenset(f for f in cast.opened if f in openable)
        moves, close = read_goal(goal, name)
        moves = [m for m in moves if supports[m[0]] != Fact("inside" if m[1] == "in" else "ontop", (m[0], m[2]))]
        if not moves:
            raise TaskError(f"{ID}: activity {name!r} asks for no move; choose another.")
        text = name.replace("_", " ")
        said = _say(goal)
        return Task(
            id=ID,
            seed=seed,
            scene=cast.stage.scene,
            agents=(AgentSpec(name=AGENT, robot=ROBOT, pos_m=(x_m, y_m, 0.0), yaw_rad=yaw),),
            start=Start(poses=poses, joints=dict.fromkeys(sorted(opened), 1.0)),
            instruction=f"Activity: {text}. See to it that {said}.",
            paraphrases=(f"Please take care of {text}: {said}.", f"{text.capitalize()} – at the end {said}."),
            goal=goal,
            budgets=Budgets(sim_time_s=300.0 + 180.0 * len(moves), decisions=20 + 20 * len(moves)),
            witness={AGENT: carry_plan(moves, supports, openable, opened=opened, close=close)},
        )


@cache
def _prepared(activity: str) -> tuple[Problem, Cast]:
    path = data_folder() / "activities" / f"{activity}.bddl"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{ID}: {path} cannot be read ({error}). Take it from the package bddl 3.6.0.") from error
    problem = parse_problem(text, path.name)
    if not problem.predicates() <= KNOWN:
        raise unsupported(problem, KNOWN)
    return problem, cast_activity(problem, activity)


def _place_things(cast: Cast, rng: np.random.Generator) -> tuple[dict[str, Fact], dict[str, tuple[float, ...]]]:
    """Put every movable thing where the activity says, on a random free spot."""
    taken = cast.stage.boxes(())
    poses: dict[str, tuple[float, ...]] = {}
    for thing, where in cast.supports.items():
        entity = cast.stage.info.entities[thing]
        relation = "in" if where.predicate == "inside" else "on"
        spot = cast.stage.spot(entity, where.args[1], relation, taken, rng, is_crowding_allowed=True)
        if spot is None:
            raise TaskError(f"{ID}: {thing} finds no free spot for {where}. Clear the furniture or use a bigger one.")
        taken = taken_by(taken, spot, entity)
        poses[thing] = start_pose(spot, entity)
    return dict(cast.supports), poses


def known_facts(goal: Goal, true: frozenset[Fact]) -> Goal:
    """Return a goal without the parts that hold by construction, such as the place of a container that stands still."""
    if isinstance(goal, AllOf):
        parts = tuple(known_facts(p, true) for p in goal.parts)
        return AllOf(tuple(p for p in parts if not (isinstance(p, Holds) and p.fact in true)))
    if isinstance(goal, AtLeast):
        return AtLeast(goal.count, tuple(known_facts(p, true) for p in goal.parts), goal.exactly)
    return goal


def read_goal(goal: Goal, activity: str) -> tuple[list[tuple[str, str, str]], list[str]]:
    """Read moves (thing, relation, target) and what to close off a goal; takes the first way where there are several.

    Raises:
      TaskError: the goal has a part that carrying and closing cannot make true.
    """
    if isinstance(goal, Holds) and goal.fact.predicate in ("ontop", "inside"):
        thing, target = goal.fact.args
        return [(thing, "on" if goal.fact.predicate == "ontop" else "in", target)], []
    if isinstance(goal, Not) and isinstance(goal.part, Holds) and goal.part.fact.predicate == "open":
        return [], [goal.part.fact.args[0]]
    if isinstance(goal, AllOf):
        moves: list[tuple[str, str, str]] = []
        close: list[str] = []
        for part in goal.parts:
            some, shut = read_goal(part, activity)
            moves += [m for m in some if m not in moves]
            close += [c for c in shut if c not in close]
        return moves, close
    if isinstance(goal, AtLeast) and not goal.exactly:
        return read_goal(AllOf(goal.parts[: goal.count]), activity)
    raise TaskError(f"{ID}: the goal of {activity!r} needs more than carrying and closing: {goal}.")


def _say(goal: Goal) -> str:
    if isinstance(goal, Holds):
        first, *rest = goal.fact.args
        words = {"ontop": "is on", "inside": "is in", "nextto": "is next to", "open": "is open", "under": "is under"}
        return " ".join([first, words.get(goal.fact.predicate, goal.fact.predicate), *rest])
    if isinstance(goal, Not):
        if isinstance(goal.part, Holds) and goal.part.fact.predicate == "open":
            return f"{goal.part.fact.args[0]} is closed"
        return f"it is not so that {_say(goal.part)}"
    if isinstance(goal, AllOf):
        return " and ".join(_say(p) for p in goal.parts) or "nothing is left to do"
    if isinstance(goal, AtLeast):
        return "(" + " or ".join(_say(p) for p in goal.parts) + ")"
    return _say(goal.part)


BEHAVIOR = BehaviorFamily()
