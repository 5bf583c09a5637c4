"""Who plays what: furniture, containers and things of a scene for the objects of a BDDL activity."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from embodied.errors import TaskError
from embodied.graph.facts import Fact, fact
from embodied.seeding import stream_rng
from embodied.tasks.bddl.problem import Problem
from embodied.tasks.household.stage import Stage
from embodied.tasks.household.taxonomy import Shape, container_shape, lemma, thing_shape
from embodied.tasks.placement import free_spots
from embodied_scenes.extents import model_box
from embodied_scenes.household import flat_garden
from embodied_scenes.resolve import resolve_model
from embodied_scenes.spec import EntitySpec

# Categories of our furniture that can play a word, best first.
_FURNITURE: dict[str, tuple[str, ...]] = {
    "electric_refrigerator": ("fridge",),
    "countertop": ("countertop",),
    "cabinet": ("cabinet", "pantry"),
    "coffee_table": ("coffee_table",),
    "console_table": ("desk", "bedside_table", "table"),
    "breakfast_table": ("breakfast_table", "table"),
    "table": ("table", "breakfast_table", "coffee_table", "bedside_table", "desk"),
    "shelf": ("shelf", "bookcase"),
    "bookcase": ("bookcase", "shelf"),
    "sofa": ("sofa",),
    "sink": ("sink",),
    "bed": ("bed",),
    "desk": ("desk",),
    "car": ("car",),
}
_FLOORS = ("floor", "lawn", "driveway")
_PARKING_M = (-6.0, -6.0)  # where things wait in the description; every start moves them


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """An activity in a scene.

    Attributes:
      names: object of the file to entity of the scene; rooms stay as they are.
      supports: movable entity to the fact that says where it starts.
      fixed_facts: facts that hold by construction: the places of containers that stand still.
      opened: entities that stand open at the start.
      agent_rooms: rooms in which the robot may start.
    """

    stage: Stage
    names: Mapping[str, str]
    supports: Mapping[str, Fact]
    fixed_facts: frozenset[Fact]
    opened: tuple[str, ...]
    agent_rooms: tuple[str, ...]


def cast_activity(problem: Problem, activity: str) -> Cast:
    """Find or make an entity for every object of an activity.

    Raises:
      TaskError: a room or piece of furniture that the scene lacks, a container without a free place, or an object whose
        start the file does not say.
    """
    stage = Stage(flat_garden())
    true = [f for f, holds in problem.init if holds]
    rooms = {f.args[0]: f.args[1] for f in true if f.predicate == "inroom"}
    where = {f.args[0]: f for f in true if f.predicate in ("ontop", "inside")}
    names = _furniture(problem, rooms, stage)
    agent = next((n for n, t in problem.objects.items() if t.startswith("agent.")), "")
    others = [n for n in problem.objects if n not in names and n != agent and not n.endswith("_*")]
    boxes = [n for n in others if container_shape(problem.objects[n], on_floor=True) is not None]
    fixed: set[Fact] = set()
    extra: list[EntitySpec] = []
    rng = stream_rng(0, "layout", activity)
    for name in boxes:
        support = _support(name, where, names, problem)
        entity = _stand(name, problem.objects[name], support, stage, rng)
        stage = Stage(stage.scene.model_copy(update={"entities": (*stage.scene.entities, entity)}))
        names[name] = entity.name
        fixed.add(fact("ontop", entity.name, support))
    supports: dict[str, Fact] = {}
    for index, name in enumerate(n for n in others if n not in boxes):
        shape = thing_shape(problem.objects[name])
        short = _short(name)
        extra.append(_thing(short, lemma(problem.objects[name]), shape, index))
        names[name] = short
        supports[short] = fact(
            where[name].predicate if name in where else "", short, _support(name, where, names, problem)
        )
    scene = stage.scene.model_copy(update={"entities": (*stage.scene.entities, *extra)})
    agent_room = names.get(where[agent].args[1], "") if agent in where else ""
    return Cast(
        stage=Stage(scene.model_copy(update={"id": f"household/behavior-{activity}@1", "summary": activity})),
        names=names,
        supports=supports,
        fixed_facts=frozenset(fixed),
        opened=tuple(names[f.args[0]] for f in true if f.predicate == "open"),
        agent_rooms=(agent_room.removeprefix("floor_"),),
    )


def _short(name: str) -> str:
    """Entity name of an instance: ``jar__of__honey.n.01_1`` is ``jar_of_honey_1``."""
    return f"{lemma(name)}_{name.rpartition('_')[2]}".replace("-", "_")


def _furniture(problem: Problem, rooms: Mapping[str, str], stage: Stage) -> dict[str, str]:
    names: dict[str, str] = {}
    known = {r.name for r in stage.info.rooms}
    for name, room in rooms.items():
        if name.endswith("_*"):
            continue
        if room not in known:
            raise TaskError(f"{problem.source}: room {room!r} is none of {sorted(known)}. Add it to flat_garden.yaml.")
        word = lemma(problem.objects[name])
        if word in _FLOORS:
            names[name] = f"floor_{room}"
            continue
        used = set(names.values())
        options = [
            e.name
            for category in _FURNITURE.get(word, (word,))
            for e in stage.info.entities.values()
            if e.category == category and e.room == room and not e.movable and e.name not in used
        ]
        if not options:
            raise TaskError(f"{problem.source}: no free {word!r} in {room}. Add one to the scene's file.")
        names[name] = options[0]
    return names


def _support(name: str, where: Mapping[str, Fact], names: Mapping[str, str], problem: Problem) -> str:
    if name not in where:
        raise TaskError(f"{problem.source}: the file does not say where {name} is. Add (ontop {name} …) to :init.")
    support = where[name].args[1]
    if support not in names:
        raise TaskError(f"{problem.source}: {name} starts on or in {support}, which is a movable thing itself.")
    return names[support]


def _stand(name: str, synset: str, support: str, stage: Stage, rng: np.random.Generator) -> EntitySpec:
    """Put a container on the floor of a room or on furniture, where it leaves ways free."""
    host = stage.info.entities[support]
    on_floor = "floor" in host.properties
    shape = container_shape(synset, on_floor=on_floor)
    if shape is None:
        raise TaskError(f"{name}: {synset} is not a container that stands.")
    draft = EntitySpec(
        name=_short(name), category=lemma(synset), model=shape.model, params=shape.params, room=host.room
    )
    low, high = model_box(resolve_model(draft))
    half = np.array([(b - a) / 2 for a, b in zip(low, high, strict=True)])
    if on_floor:
        rect = next(r.rect_m for r in stage.info.rooms if r.name == host.room)
        reach = float(np.hypot(half[0], half[1]))
        for way_m in (0.95, 0.75, 0.6):
            point = stage.floor.free_point(rect, reach + way_m, rng)
            if point is not None:
                x0, y0, x1, y1 = rect
                yaw = math.atan2((y0 + y1) / 2 - point[1], (x0 + x1) / 2 - point[0])
                return draft.model_copy(update={"pos_m": (*point, 0.0), "yaw_rad": yaw})
    else:
        for region in stage.regions(support, "on"):
            frame = stage.poses[region.body]
            for spot in free_spots(region, frame, half, stage.boxes(()), rng, tries=200):
                if stage.floor.can_reach(spot.pos_world_m):
                    x, y, z = (float(v) for v in spot.pos_world_m)
                    return draft.model_copy(update={"pos_m": (x, y, z - low[2]), "yaw_rad": spot.yaw_rad})
    raise TaskError(f"{name}: no free place for a {lemma(synset)} on {support}. Move furniture of the scene.")


def _thing(name: str, category: str, shape: Shape, index: int) -> EntitySpec:
    draft = EntitySpec(name=name, category=category, model=shape.model, params=shape.params, movable=True)
    low, _ = model_box(resolve_model(draft))
    return draft.model_copy(update={"pos_m": (_PARKING_M[0] - 0.4 * index, _PARKING_M[1], -low[2])})
