"""The teacher: tidies up knowing what is asked and only what the cameras have shown so far.

An all-knowing oracle cannot be imitated from images, because it walks straight to things that it cannot see. This one
opens the furniture that things go into, visits furniture in a fixed tour until a wanted thing is in view, takes it,
puts it where it belongs, and closes every door that it opened. It recovers from failed and refused calls. What it
answers is a function of its arguments alone, so it can be asked anywhere, also in the middle of a mess.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from embodied.skills.contract import SkillCall

SURFACES: dict[str, str] = {
    "counter": "coffee_machine",
    "kitchen_table": "kitchen_chair_2",
    "coffee_table": "tv_stand",
    "tv_stand": "lamp",
    "dresser": "dresser",
    "desk": "trash_can",
    "bedside_table": "bedside_table",
    "nightstand": "nightstand",
}
"""Furniture on which things get left, with what to look at there so that the arm hides another part of it."""
CLOSED = ("wardrobe", "living_cabinet", "kitchen_cabinet", "fridge", "dish_cabinet", "pantry")
TOUR: tuple[tuple[str, str], ...] = (
    *SURFACES.items(),
    *((name, name) for name in CLOSED),
    *((name, name) for name, target in SURFACES.items() if name != target),
)
"""(where to stand, what to look at), in order; the last ones are second looks."""
OPENABLE = frozenset({*CLOSED, "kitchen_drawer", "kitchen_drawer_low", "living_drawer", "dresser_low", "oven"})
_MAX_TRIES = 3
_ASIDE = ("counter", "kitchen_table", "coffee_table", "desk")  # where a thing waits while a door is opened


@dataclass(frozen=True, slots=True)
class Move:
    """One thing to bring: ``relation`` is ``in`` or ``on``."""

    thing: str
    relation: str
    target: str


@dataclass(frozen=True, slots=True)
class Done:
    """One call of the past and its outcome code, empty for success."""

    call: SkillCall
    code: str


@dataclass(kw_only=True)
class Progress:
    """What follows from the calls so far.

    Attributes:
      at: furniture the robot stands at, or empty.
      holding: thing in the hand, or empty.
      opened: doors it left open.
      placed: where it put things down, as (relation, furniture).
      looked: (where it stood, what it looked at); into furniture with a door only while that was open.
      failures: calls and how often they failed.
      lost: things whose pick found nothing, until something else was done.
      shut: things whose pick was refused because they are behind a door, until a door was opened.
    """

    at: str = ""
    holding: str = ""
    opened: set[str] = field(default_factory=set)
    placed: dict[str, tuple[str, str]] = field(default_factory=dict)
    looked: set[tuple[str, str]] = field(default_factory=set)
    failures: Counter[SkillCall] = field(default_factory=Counter)
    lost: set[str] = field(default_factory=set)
    shut: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, past: Iterable[Done]) -> Progress:
        """Replay the calls of the past."""
        progress = cls()
        for done in past:
            if done.code:
                progress._fail(done.call, done.code)
            else:
                progress._succeed(done.call)
        return progress

    def _succeed(self, call: SkillCall) -> None:
        target = str(call.arg("target", " "))
        thing = str(call.arg("thing", " "))
        self.lost.clear()
        if call.skill == "go_to":
            self.at = target
        elif call.skill == "look":
            if self.at not in CLOSED or self.at in self.opened:
                self.looked.add((self.at, target))
        elif call.skill == "open":
            self.opened.add(target)
            self.shut.clear()
        elif call.skill == "close":
            self.opened.discard(target)
        elif call.skill == "pick":
            self.holding, self.at = thing, ""
            self.placed.pop(thing, None)
        elif call.skill == "place":
            self.holding, self.at = "", ""  # only go_to says where one stands
            self.placed[thing] = (str(call.arg("relation", "on")), target)

    def _fail(self, call: SkillCall, code: str) -> None:
        target = str(call.arg("target", " "))
        thing = str(call.arg("thing", " "))
        if call.skill == "pick" and code in ("not_found", "precondition"):
            self._pick_refused(thing, code)
            return
        self.failures[call] += 1
        if call.skill == "open" and code == "already_open":
            self.opened.add(target)
        elif call.skill == "close" and code == "already_closed":
            self.opened.discard(target)
        elif call.skill == "pick":
            self.at = ""
        elif call.skill == "place":
            self.at = ""
            if code == "dropped":
                self.holding = ""
        elif call.skill in ("open", "close") and code == "precondition":
            self.at = ""

    def _pick_refused(self, thing: str, code: str) -> None:
        if code == "not_found":
            self.lost.add(thing)
        elif not self.holding:
            self.shut.add(thing)
            self.looked -= {(name, name) for name in CLOSED}  # it is in one of them after all


def next_call(moves: Sequence[Move], past: Sequence[Done], seen: Collection[str]) -> SkillCall:
    """Return what to do next.

    Args:
      moves: what is asked.
      past: all calls so far.
      seen: things that the cameras have shown at some decision.
    """
    progress = Progress.of(past)
    left = [m for m in moves if progress.placed.get(m.thing) != (m.relation, m.target)]
    if progress.holding:
        return _put(moves, progress)
    picks = [SkillCall.of("pick", thing=m.thing) for m in left if m.thing in seen]
    picks = [p for p in picks if p.arg("thing") not in progress.lost | progress.shut]
    picks = [p for p in picks if progress.failures[p] < _MAX_TRIES]
    search = _search(progress, {m.target for m in moves})
    if left and (picks or search):
        for move in left:
            opening = SkillCall.of("open", target=move.target)
            is_shut = move.relation == "in" and move.target in OPENABLE and move.target not in progress.opened
            if is_shut and progress.failures[opening] < _MAX_TRIES:
                return _work_at(progress, "open", move.target)
        return picks[0] if picks else search or SkillCall.of("done")
    for name in sorted(progress.opened, key=lambda n: (n not in {m.target for m in moves}, n)):
        if progress.failures[SkillCall.of("close", target=name)] < _MAX_TRIES:
            return _work_at(progress, "close", name)
    return SkillCall.of("done")


def _search(progress: Progress, needed: Collection[str]) -> SkillCall | None:
    """Return the next step of the tour, or None after its end; what stands open anyway is looked into first."""
    at = progress.at
    if at in CLOSED and at in progress.opened and at not in needed and (at, at) in progress.looked:
        close = SkillCall.of("close", target=at)
        if progress.failures[close] < _MAX_TRIES:
            return close
    for name, target in sorted(TOUR, key=lambda stop: stop[0] not in progress.opened):
        call = None if (name, target) in progress.looked else _step(progress, name, target)
        if call is not None:
            return call
    return None


def _put(moves: Sequence[Move], progress: Progress) -> SkillCall:
    """Return how to get rid of what is in the hand: where it belongs, or aside if that is shut or not asked for."""
    for move in moves:
        if move.thing != progress.holding:
            continue
        if move.relation == "in" and move.target in OPENABLE and move.target not in progress.opened:
            break
        place = SkillCall.of("place", thing=move.thing, target=move.target, relation=move.relation)
        if progress.failures[place] in (1, 3) and progress.at != move.target:
            return SkillCall.of("go_to", target=move.target)
        return place
    aside = [SkillCall.of("place", thing=progress.holding, target=name, relation="on") for name in _ASIDE]
    return min(aside, key=lambda call: progress.failures[call])


def _work_at(progress: Progress, skill: str, name: str) -> SkillCall:
    if progress.at != name:
        return SkillCall.of("go_to", target=name)
    return SkillCall.of(skill, target=name)


def _step(progress: Progress, name: str, target: str) -> SkillCall | None:
    """Return the next step of one stop of the tour, None when it has to be given up."""
    there = SkillCall.of("go_to", target=name)
    if progress.at != name:
        return there if progress.failures[there] < 2 else None
    if name in CLOSED and name not in progress.opened:
        call = SkillCall.of("open", target=name)
        return call if progress.failures[call] < 2 else None
    return SkillCall.of("look", target=target)
