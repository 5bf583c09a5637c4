"""The rules of teleporting skills: what a call does and how it ends, without geometry.

Two stages share them: the kinematic one, which has geometry and renders images, and the symbolic one, which draws what
would be seen. Preconditions and codes are those of the skills; failures of manipulation are drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embodied.skills.contract import SkillCall
from embodied.train.planner.teacher import OPENABLE, Move

_FAILS = {"open": 0.03, "close": 0.03, "pick": 0.04, "place": 0.03, "go_to": 0.01}
_CODES = {
    "open": ("unreachable", "slipped", "stuck"),
    "close": ("unreachable", "slipped", "stuck"),
    "pick": ("unreachable", "grasp_failed", "dropped"),
    "place": ("unreachable", "blocked", "dropped"),
    "go_to": ("unreachable", "blocked"),
}
_SKILLS = ("go_to", "look", "open", "close", "pick", "place")


class TidyRules:
    """Where everything is, in words.

    Args:
      moves: what is asked.
      places: thing to (relation, furniture), ``("on", "")`` for what lies elsewhere.
      rng: source of failures.
      with_failures: whether manipulation may fail.

    Attributes:
      at: furniture that it went to last, or empty; taking and putting end it, as in physics.
      near: furniture that it really stands at.
      looking: what it last turned to there, or empty.
      holding: thing in the hand, or empty.
      doors: furniture that stands open.
      known: things that the camera has shown.
    """

    def __init__(
        self,
        moves: Sequence[Move],
        places: dict[str, tuple[str, str]],
        rng: np.random.Generator,
        *,
        with_failures: bool = True,
    ) -> None:
        self.moves = list(moves)
        self.places = dict(places)
        self.rng = rng
        self.at, self.looking, self.holding = "", "", ""
        self.near = ""
        self.doors: set[str] = set()
        self.known: set[str] = set()
        self._with_failures = with_failures

    @property
    def wanted_known(self) -> list[str]:
        """Things to bring that the camera has shown: what the teacher may know."""
        return [m.thing for m in self.moves if m.thing in self.known]

    def succeeded(self) -> bool:
        """Whether all things are where they belong and the furniture that was asked for is closed."""
        if any(self.places.get(m.thing) != (m.relation, m.target) for m in self.moves):
            return False
        return not ({m.target for m in self.moves if m.relation == "in"} & self.doors)

    def apply(self, call: SkillCall) -> str:
        """Carry out a call at once; return its outcome code, empty for success."""
        if call.skill not in _SKILLS:
            return ""
        return str(getattr(self, f"_{call.skill}")(call))

    def moved(self, kind: str, target: str) -> str:
        """Follow up a call with geometry: ``go_to``, ``look``, ``door``, ``pick`` or ``place``; return a code."""
        del kind, target
        return ""

    def _fails(self, skill: str) -> str:
        if self._with_failures and self.rng.random() < _FAILS[skill]:
            return str(self.rng.choice(_CODES[skill]))
        return ""

    def _go_to(self, call: SkillCall) -> str:
        target = str(call.arg("target"))
        code = self._fails("go_to") or self.moved("go_to", target)
        if not code:
            self.at, self.near, self.looking = target, target, ""
        return code

    def _look(self, call: SkillCall) -> str:
        target = str(call.arg("target"))
        code = self.moved("look", target)
        if not code:
            self.looking = target
        return code

    def _open(self, call: SkillCall) -> str:
        return self._door(str(call.arg("target")), "open")

    def _close(self, call: SkillCall) -> str:
        return self._door(str(call.arg("target")), "close")

    def _door(self, target: str, skill: str) -> str:
        if target not in OPENABLE or self.at != target or self.holding:
            return "precondition"
        if (target in self.doors) == (skill == "open"):
            return "precondition"
        code = self._fails(skill)
        if code:
            return code
        (self.doors.add if skill == "open" else self.doors.discard)(target)
        self.looking = ""
        self.moved("door", target)
        return ""

    def _pick(self, call: SkillCall) -> str:
        thing = str(call.arg("thing"))
        relation, place = self.places.get(thing, ("on", ""))
        if self.holding or (thing in self.known and self._is_shut(relation, place)):
            return "precondition"
        if thing not in self.known:
            return "not_found"
        code = self._fails("pick")
        if code:
            return code
        self.moved("pick", place)
        self.at, self.looking, self.holding = "", "", thing  # only go_to says where one stands
        self.near = place
        self.places[thing] = ("held", "")
        return ""

    def _place(self, call: SkillCall) -> str:
        thing, target = str(call.arg("thing")), str(call.arg("target"))
        relation = str(call.arg("relation", "on"))
        if self.holding != thing or self._is_shut(relation, target):
            return "precondition"
        code = self._fails("place") or self.moved("place", f"{thing} {relation} {target}")
        if code:
            if code == "dropped":
                self.holding = ""
                self.known.discard(thing)
                self.places[thing] = ("on", target if relation == "on" else "counter")
            return code
        self.at, self.looking, self.holding = "", "", ""
        self.near = target
        self.places[thing] = (relation, target)
        return ""

    def _is_shut(self, relation: str, place: str) -> bool:
        return relation == "in" and place in OPENABLE and place not in self.doors
