"""Press the button of a device with closed fingers; its state toggles when the button passes half its travel."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from embodied.graph.facts import Fact, Graph, fact
from embodied.skills.contract import Parameter, Skill, SkillCall, SkillContext, SkillRun, Unmet
from embodied.skills.household.contact import COMFORT_M, MARGIN_M, base_poses, find_contact
from embodied.skills.household.doors import PAD_TIP_M, ContactPath, keep_boxes
from embodied.skills.household.motion import ManipulationRun, Script, SkillFailureError, fail
from embodied.skills.household.obstacles import Boxes, scene_boxes
from embodied_controllers.rotation import exp_rotation, matrix_of_quat
from embodied_scenes.info import ButtonInfo

Array = NDArray[np.float64]

ATTEMPTS = 3
_PRESS, _MORE = 0.75, 0.25  # of the travel: the planned depth, and one further try
_HOVER_M = 0.08
_TRIES = 6


class PushButtonSkill(Skill):
    """Press a button and so switch its device on or off."""

    name = "push_button"
    summary = "press the button of a device, which switches it on or off"
    parameters = (Parameter(name="target", kind="entity", summary="a device with a button"),)
    robot_kinds = frozenset({"mobile_manipulator"})
    failure_codes = ("not_found", "no_button", "unreachable", "blocked", "missed", "timeout")
    timeout_s = 90.0
    labels = frozenset({"manipulation"})

    def groundings(self, graph: Graph, agent: str) -> Iterable[SkillCall]:
        """Every device with a button."""
        del agent
        for name in sorted(graph.nodes):
            if "toggleable" in graph.nodes[name].properties:
                yield SkillCall.of(self.name, target=name)

    def unmet(self, graph: Graph, agent: str, call: SkillCall) -> tuple[Unmet, ...]:
        """The agent is at the device, or at what it stands on, with free hands."""
        target = str(call.arg("target"))
        node = graph.nodes.get(target)
        if node is None or "toggleable" not in node.properties:
            return (Unmet(message=f"{target} has no button"),)
        found: list[Unmet] = []
        support = graph.support_of(target)
        places = [target] if support is None else [target, support.args[1]]
        if not any(graph.holds("at", agent, p) for p in places):
            found.append(Unmet(message=f"{agent} is not at {target}", missing=fact("at", agent, target)))
        held = graph.held_by(agent)
        if held is not None:
            found.append(Unmet(message=f"{agent} holds {held} and needs a free hand"))
        return tuple(found)

    def effects(self, graph: Graph, agent: str, call: SkillCall) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """``on(target)`` toggles."""
        del agent
        state = frozenset({fact("on", str(call.arg("target")))})
        return (frozenset(), state) if state <= graph.facts else (state, frozenset())

    def start(self, ctx: SkillContext, call: SkillCall) -> SkillRun:
        """Begin."""
        return _PushRun(ctx, str(call.arg("target")))

    def cost_s(self, graph: Graph, agent: str, call: SkillCall) -> float:
        """About twelve seconds."""
        del graph, agent, call
        return 12.0


class _Nothing:
    """What stays still while a button is pressed, in the place of a door."""

    def boxes(self, opening: float) -> Boxes:
        del opening
        return Boxes(
            center_world_m=np.zeros((0, 3)), rot_world=np.zeros((0, 3, 3)), half_size_m=np.zeros((0, 3)), owners=()
        )

    def floor_boxes(self, openings: Array) -> Array:
        del openings
        return np.zeros((0, 5))


class _PushRun(ManipulationRun):
    """One press in progress."""

    def __init__(self, ctx: SkillContext, target: str) -> None:
        self.target = target
        super().__init__(ctx)

    def script(self) -> Script:
        """Stand, reach, press, fold; again if the button did not move."""
        button = self._button()
        yield from self.tuck()
        problem: SkillFailureError | None = None
        bad: list[Array] = []
        for attempt in range(ATTEMPTS):
            try:
                yield from self._attempt(button, bad)
                return
            except SkillFailureError as error:
                problem = error
                if error.outcome.code == "unreachable" and not bad:
                    break
                self.ctx.log(
                    "retry",
                    {"skill": "push_button", "target": self.target, "attempt": attempt, "code": error.outcome.code},
                )
                yield from self.back_out(0.1)
                yield from self.tuck()
        assert problem is not None
        raise problem

    def _button(self) -> ButtonInfo:
        info = self.ctx.view.info.entities.get(self.target)
        if info is None or self.ctx.view.pose(self.target) is None:
            raise fail("not_found", f"It is not known where {self.target} is.", target=self.target)
        if not info.buttons:
            raise fail("no_button", f"{self.target} has no button.", target=self.target)
        return info.buttons[0]

    def _face(self, button: ButtonInfo) -> tuple[Array, Array]:
        """Return the middle of the button's face and its outward direction, in the world, not pressed."""
        pose = self.ctx.view.body_pose(button.body)
        if pose is None:
            raise fail("not_found", f"The button of {self.target} cannot be found.", target=self.target)
        rot = matrix_of_quat(pose.quat_wxyz)
        outward = rot @ button.outward_body / np.linalg.norm(button.outward_body)
        return pose.pos_world_m + rot @ button.pos_body_m + outward * button.travel_m, outward

    def _depth(self, button: ButtonInfo, rest: Array) -> float:
        """Return how far the button is pressed, as a fraction of its travel."""
        face, outward = self._face(button)
        return float((rest - face) @ outward) / button.travel_m

    def _attempt(self, button: ButtonInfo, bad: list[Array]) -> Script:
        rest, outward = self._face(button)
        paths = _press_paths(rest, outward, button.travel_m)
        fixed = self._fixed(button, rest)
        plan = None
        nothing = _Nothing()
        for margin in (COMFORT_M, MARGIN_M):
            bases, cost = base_poses(self.ctx.view, paths, self.base_xyyaw)
            for pose in bad:
                keep = np.hypot(*(bases[:, :2] - pose[:2]).T) > 0.1
                bases, cost = bases[keep], cost[keep]
            plan = find_contact(bases, cost, nothing, paths, fixed, self.posture, margin_m=margin)
            if plan is not None:
                break
        if plan is None:
            distance = float(np.hypot(*(rest[:2] - self.base_xyyaw[:2])))
            raise fail(
                "unreachable", f"No stand from which the arm reaches the button of {self.target}.", distance_m=distance
            )
        bad.append(plan.base_xyyaw)
        yield from self.drive(plan.base_xyyaw)
        rest, outward = self._face(button)
        paths = _press_paths(rest, outward, button.travel_m)
        here = find_contact(
            self.base_xyyaw[None],
            np.zeros(1),
            nothing,
            paths,
            self._fixed(button, rest),
            self.posture,
            max_checks=60,
            per_path=15,
        )
        if here is None:
            raise fail("unreachable", f"The button of {self.target} is out of reach from where the base came to stand.")
        path = here.path
        self.command[10:12] = 0.0, 30.0
        yield from self.follow(here.unfold[1:])
        yield from self.grip(0.0, 30.0)
        yield from self.follow(here.way[1 : path.first + 1], speed_ratio=0.35)
        yield from self.follow(here.way[path.first + 1 : path.last + 1], speed_ratio=0.15)
        step = _MORE * (here.way[path.last] - here.way[path.first]) / _PRESS
        pressed = self._depth(button, rest)
        for k in range(_TRIES):
            if pressed > 0.6:
                break
            yield from self.follow((here.way[path.last] + (k + 1) * step)[None], speed_ratio=0.15)
            pressed = self._depth(button, rest)
        yield from self.follow(here.way[path.last + 1 :], speed_ratio=0.35)
        yield from self.follow(here.fold[1:])
        if pressed <= 0.5:
            raise fail("missed", f"The button of {self.target} was not pressed.", pressed=pressed)

    def _fixed(self, button: ButtonInfo, rest: Array) -> Boxes:
        """Return the obstacles around, without the button itself."""
        boxes = scene_boxes(self.ctx.view)
        keep = (np.linalg.norm(boxes.center_world_m - rest, axis=1) > 0.025) | np.array(
            [o != self.target for o in boxes.owners], dtype=bool
        )
        keep |= boxes.half_size_m.max(axis=1) > 0.03
        del button
        return keep_boxes(boxes, keep).near(rest, 1.8)


def _press_paths(face: Array, outward: Array, travel_m: float) -> list[ContactPath]:
    """Return paths that put the finger tips on the face and press; the hand may be turned about its axis."""
    x = -outward
    up = np.array([0.0, 0.0, 1.0]) if abs(outward[2]) < 0.7 else np.array([1.0, 0.0, 0.0])
    y0 = np.cross(up, x) / np.linalg.norm(np.cross(up, x))
    touch = face + outward * PAD_TIP_M
    in_m = np.array([_HOVER_M, 0.05, 0.025, 0.006, -0.4 * travel_m, -_PRESS * travel_m, 0.01, 0.04, _HOVER_M])
    paths = []
    for roll in np.arange(8) * (np.pi / 4):
        y = exp_rotation(x * roll) @ y0
        rot = np.stack([x, y, np.cross(x, y)], axis=1)
        paths.append(
            ContactPath(
                pos_world_m=touch + in_m[:, None] * outward,
                rot_world=np.repeat(rot[None], len(in_m), axis=0),
                opening=np.zeros(len(in_m)),
                first=3,
                last=5,
                width_m=0.0,
                penalty_s=0.2 * float(roll % np.pi > 0.1),
            )
        )
    return paths


PUSH_BUTTON = PushButtonSkill()
