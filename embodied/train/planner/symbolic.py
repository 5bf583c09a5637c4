"""The symbolic stage: put-away tasks without geometry, where chance says what the camera shows.

Thousands of decisions a second: what the decider learns the logic of the task on. Whether a thing shows from a stand is
drawn once per (stand, look), so looking again shows the same; scores are drawn as an imperfect detector gives them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from embodied.seeding import stream_rng
from embodied.tasks.household.put_away import HIDDEN_IN, HIDDEN_SHARE, HOMES, LEFT_ON, stage, wordings
from embodied.train.planner.rules import TidyRules
from embodied.train.planner.teacher import SURFACES, Move
from embodied.train.planner.words import vocabulary

_COUNT_SHARES = (0.35, 0.4, 0.25)  # more of several things than the task has: they are harder to keep apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """Probabilities of what shows, and scores (mean, spread) of a detector.

    Attributes:
      arrived: a thing on the furniture shows on arrival.
      looked: it shows after the right look there.
      elsewhere: a thing in the open shows from any other stand.
      opened: a thing in furniture shows when that was just opened, before the look.
      present: scores of what shows.
      absent: scores of what does not.
      false_alarm: share of what does not show and scores like what does.
      flicker: spread of a score from glance to glance.
      noticeable: score above which the teacher knows of what shows; it could not teach what nobody can tell.
    """

    arrived: float = 0.8
    looked: float = 0.9
    elsewhere: float = 0.06
    opened: float = 0.35
    present: tuple[float, float] = (4.8, 3.5)
    absent: tuple[float, float] = (-5.8, 2.1)
    false_alarm: float = 0.025
    flicker: float = 1.0
    noticeable: float = -1.5


SIGHT = Sight()


class SymbolicStage(TidyRules):
    """One drawn task.

    Args:
      seed: of everything.
      sight: how well it sees.
      with_failures: whether manipulation may fail.

    Attributes:
      instruction: what is asked, in words.
      scores: (things,) scores of the detector at this decision, after :meth:`observe`.
    """

    def __init__(self, seed: int, sight: Sight = SIGHT, *, with_failures: bool = True) -> None:
        rng = stream_rng(seed, "task", "symbolic")
        words, info = vocabulary(), stage().info
        count = 1 + int(rng.choice(3, p=_COUNT_SHARES))
        moves, places = [], {}
        for index in rng.permutation(len(words.things) - 1)[:count]:
            thing = words.things[1 + int(index)]
            homes = HOMES[info.entities[thing].category]
            relation, target = homes[int(rng.integers(len(homes)))]
            moves.append(Move(thing, relation, target))
            hidden = rng.random() < HIDDEN_SHARE
            options = [p for p in (HIDDEN_IN if hidden else LEFT_ON) if p != target]
            places[thing] = ("in" if hidden else "on", options[int(rng.integers(len(options)))])
        super().__init__(moves, places, rng, with_failures=with_failures)
        said = wordings([(m.thing, m.relation, m.target) for m in moves])
        self.instruction = said[int(rng.integers(len(said)))]
        self.scores: NDArray[np.float32] = np.zeros(len(words.things) - 1, dtype=np.float32)
        self._sight, self._noticed = sight, set[str]()
        self._drawn: dict[tuple[str, ...], bool] = {}
        self._scored: dict[tuple[str, ...], float] = {}
        self._index = {m.thing: words.index("things", m.thing) - 1 for m in moves}

    def observe(self) -> None:
        """Draw what shows now."""
        sight, rng = self._sight, self.rng
        self.scores = rng.normal(*sight.absent, len(self.scores)).astype(np.float32)
        for thing, index in self._index.items():
            shows = self._shows(thing)
            key = (thing, self.near, self.looking, str(shows))
            if key not in self._scored:  # what is taken for a thing, or missed, is so again at the next glance
                is_said = shows or rng.random() < sight.false_alarm
                self._scored[key] = float(rng.normal(*(sight.present if is_said else sight.absent)))
            self.scores[index] = self._scored[key] + rng.normal(0.0, sight.flicker)
            if shows:
                self.known.add(thing)
                if self.scores[index] > sight.noticeable:
                    self._noticed.add(thing)

    @property
    def wanted_known(self) -> list[str]:
        """Things to bring that have shown and that a good student may have noticed."""
        return [m.thing for m in self.moves if m.thing in self._noticed]

    def _shows(self, thing: str) -> bool:
        relation, place = self.places[thing]
        if relation == "held":
            return self.rng.random() < 0.5
        if self._is_shut(relation, place):
            return False
        is_right = self.looking in (SURFACES.get(self.near, self.near), self.near)
        if self.near != place:
            chance = self._sight.elsewhere if relation == "on" else 0.3 * self._sight.elsewhere
        elif self.looking:
            chance = self._sight.looked if is_right else 0.5
        else:
            chance = self._sight.arrived if relation == "on" else self._sight.opened
        key = (thing, place, self.near, self.looking)
        if key not in self._drawn:
            self._drawn[key] = bool(self.rng.random() < chance)
        return self._drawn[key]
