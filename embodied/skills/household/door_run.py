"""What opening and closing share: checks, planning at the door, pulling by the handle, pushing the panel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from embodied.graph.facts import Fact, Graph, fact
from embodied.skills.contract import Parameter, Skill, SkillCall, SkillContext, Unmet
from embodied.skills.household.contact import COMFORT_M, MARGIN_M, ContactPlan, base_poses, find_contact
from embodied.skills.household.doors import GRASP_WIDTH_M, Articulation, ContactPath, static_boxes
from embodied.skills.household.motion import EMPTY_WIDTH_M, ManipulationRun, Script, SkillFailureError, fail
from embodied.skills.household.obstacles import Boxes, scene_boxes

Array = NDArray[np.float64]

ATTEMPTS = 4
OPEN_ENOUGH, CLOSED_ENOUGH = 0.8, 0.03  # fractions of the range
_BAR_MAX_M = 0.045  # wider than this between the fingers is no bar
_APPROACH_SPEED, _WORK_SPEED = 0.35, 0.3
_GRIP_N = 40.0
_STRAIN_RAD, _STRAIN_S = 0.12, 0.4


class DoorSkill(Skill):
    """Common to ``open`` and ``close``."""

    parameters = (Parameter(name="target", kind="fixture", summary="a piece of furniture with a door or drawer"),)
    robot_kinds = frozenset({"mobile_manipulator"})
    timeout_s = 120.0
    labels = frozenset({"manipulation"})
    opens: bool

    def groundings(self, graph: Graph, agent: str) -> Iterable[SkillCall]:
        """Everything with a door or drawer."""
        del agent
        for name in sorted(graph.nodes):
            if "openable" in graph.nodes[name].properties:
                yield SkillCall.of(self.name, target=name)

    def unmet(self, graph: Graph, agent: str, call: SkillCall) -> tuple[Unmet, ...]:
        """The agent is there with free hands, and the door is not yet as wanted."""
        target = str(call.arg("target"))
        node = graph.nodes.get(target)
        if node is None or "openable" not in node.properties:
            return (Unmet(message=f"{target} has no door or drawer"),)
        found: list[Unmet] = []
        if not graph.holds("at", agent, target):
            found.append(Unmet(message=f"{agent} is not at {target}", missing=fact("at", agent, target)))
        held = graph.held_by(agent)
        if held is not None:
            found.append(Unmet(message=f"{agent} holds {held} and needs a free hand"))
        if graph.holds("open", target) == self.opens:
            missing = None if self.opens else fact("open", target)
            found.append(Unmet(message=f"{target} is already {'open' if self.opens else 'closed'}", missing=missing))
        return tuple(found)

    def effects(self, graph: Graph, agent: str, call: SkillCall) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """``open(target)`` begins or ceases to hold."""
        del graph, agent
        changed = frozenset({fact("open", str(call.arg("target")))})
        return (changed, frozenset()) if self.opens else (frozenset(), changed)

    def cost_s(self, graph: Graph, agent: str, call: SkillCall) -> float:
        """About twenty seconds."""
        del graph, agent, call
        return 20.0


class DoorRun(ManipulationRun):
    """Moves one door or drawer to an opening; subclasses say how."""

    def __init__(self, ctx: SkillContext, target: str) -> None:
        self.target = target
        super().__init__(ctx)

    @property
    def opening(self) -> float:
        """Present opening as a fraction."""
        return self.ctx.view.opening(self.target)

    def articulation(self) -> Articulation:
        """Return the door as it stands now.

        Raises:
          SkillFailureError: it has none or cannot be found.
        """
        info = self.ctx.view.info.entities.get(self.target)
        if info is None or self.ctx.view.pose(self.target) is None:
            raise fail("not_found", f"It is not known where {self.target} is.", target=self.target)
        if not info.openable or not any(h.body == info.joint_part for h in info.handles):
            raise fail("not_openable", f"{self.target} has no door or drawer with a handle.", target=self.target)
        return Articulation(self.ctx.view, self.target)

    def plan(
        self, door: Articulation, options: Sequence[Sequence[ContactPath]], bad: list[Array], *, without: str = ""
    ) -> ContactPlan | None:
        """Return a plan for the first group of paths that has one, from the best base pose.

        Args:
          door: what to move.
          options: groups of paths, best first.
          bad: base poses not to use again.
          without: an entity to leave out of the obstacles, to see whether it is the one in the way.
        """
        fixed = self._fixed(door)
        if without:  # walls are owned by nobody, under the empty name
            fixed = fixed.without([without])
        # First with room for a base that stands a little off, then without.
        for margin in (COMFORT_M, MARGIN_M):
            for paths in options:
                bases, cost = base_poses(self.ctx.view, paths, self.base_xyyaw)
                for pose in bad:
                    keep = np.hypot(*(bases[:, :2] - pose[:2]).T) > 0.1
                    bases, cost = bases[keep], cost[keep]
                found = find_contact(bases, cost, door, paths, fixed, self.posture, margin_m=margin)
                if found is not None:
                    return found
        return None

    def arrive(self, plan: ContactPlan, options: Sequence[Sequence[ContactPath]]) -> Script:
        """Drive to the plan's base pose and leave in ``self.ready`` the plan from where the base really stands."""
        yield from self.drive(plan.base_xyyaw)
        door = self.articulation()
        here, fixed = self.base_xyyaw[None], self._fixed(door)
        group = next(g for g in options if any(p is plan.path for p in g))
        for paths in ([plan.path], group, *(g for g in options if g is not group)):
            self.ready = find_contact(here, np.zeros(1), door, paths, fixed, self.posture, max_checks=60, per_path=15)
            if self.ready is not None:
                return
        raise fail("unreachable", f"{self.target} cannot be handled from where the base came to stand.")

    def pull(self, plan: ContactPlan) -> Script:
        """Grasp the bar, move it along the path, let go, fold the arm."""
        path = plan.path
        self.command[10:12] = GRASP_WIDTH_M, 30.0
        yield from self.follow(plan.unfold[1:])
        yield from self.grip(GRASP_WIDTH_M, 30.0)
        yield from self.follow(plan.way[1 : path.first + 1], speed_ratio=_APPROACH_SPEED, watch=self._strain("blocked"))
        yield from self.grip(0.0, _GRIP_N)
        if not EMPTY_WIDTH_M < self.width_m < _BAR_MAX_M:
            raise fail("slipped", f"The fingers missed the handle of {self.target}.", width_m=self.width_m)
        yield from self.follow(
            plan.way[path.first + 1 : path.last + 1], speed_ratio=_WORK_SPEED, watch=self._strain("stuck")
        )
        lost = self.width_m <= EMPTY_WIDTH_M
        yield from self.release(GRASP_WIDTH_M)
        yield from self.leave(plan)
        if lost:
            raise fail("slipped", f"The fingers lost the handle of {self.target}.", opening=self.opening)

    def push(self, plan: ContactPlan) -> Script:
        """Push the panel along the path with closed fingers, then fold the arm."""
        path = plan.path
        self.command[10:12] = 0.0, 30.0
        yield from self.follow(plan.unfold[1:])
        yield from self.grip(0.0, 30.0)
        yield from self.follow(plan.way[1 : path.first + 1], speed_ratio=_APPROACH_SPEED, watch=self._strain("blocked"))
        yield from self.follow(
            plan.way[path.first + 1 : path.last + 1], speed_ratio=_WORK_SPEED, watch=self._strain("stuck")
        )
        yield from self.leave(plan)

    def leave(self, plan: ContactPlan) -> Script:
        """Take the hand off the door and fold the arm."""
        yield from self.follow(plan.way[plan.path.last + 1 :], speed_ratio=_APPROACH_SPEED)
        upper = self.ctx.view.info.entities[self.target].joint_upper
        if abs(self.opening * upper - float(plan.path.opening[-1])) < (0.08 if upper > 0.6 else 0.02):
            yield from self.follow(plan.fold[1:])
        else:
            yield from self.tuck()

    def release(self, width_m: float) -> Script:
        """Open the fingers to a width; the force they pressed with has to unwind before they move."""
        self.command[10:12] = width_m, 30.0
        for _ in range(round(2.0 / self.ctx.robot.dt_ctrl_s)):
            self.send()
            yield
            if self.width_m > width_m - 0.006:
                return

    def recover(self) -> Script:
        """Let go after a failure, back off and fold the arm."""
        yield from self.release(0.1)
        self.command[2:10] = self.ctx.robot.read().joint_pos[:8]  # give up the strain
        yield from self.wait(0.1)
        yield from self.back_out(0.12)
        yield from self.tuck()

    def _strain(self, code: str):  # noqa: ANN202 -- a watch function
        """Return a watch that ends the script when the arm stays far from where it is told to be."""
        count = 0
        limit = round(_STRAIN_S / self.ctx.robot.dt_ctrl_s)

        def watch() -> None:
            nonlocal count
            error = float(np.abs(self.ctx.robot.read().joint_pos[1:8] - self.command[3:10]).max())
            count = count + 1 if error > _STRAIN_RAD else 0
            if count >= limit:
                raise fail(code, f"Something holds the arm at {self.target}.", opening=self.opening, error_rad=error)

        return watch

    def _fixed(self, door: Articulation) -> Boxes:
        boxes = static_boxes(self.ctx.view, scene_boxes(self.ctx.view), self.target)
        return boxes.near(door.bar(door.now)[0], 1.9)

    def attempt(self, door: Articulation, options: Sequence[Sequence[ContactPath]], bad: list[Array]) -> Script:
        """Plan, drive, act once; failures raise."""
        plan = self.plan(door, options, bad)
        if plan is None:
            culprit = self._open_neighbour(door, options)
            if culprit:
                raise fail("blocked", f"The open {culprit} is in the arm's way to {self.target}.", blocked_by=culprit)
            bar = door.bar(door.now)[0]
            distance = float(np.hypot(*(bar[:2] - self.base_xyyaw[:2])))
            raise fail("unreachable", f"No stand from which the arm can move {self.target}.", distance_m=distance)
        try:
            yield from self.arrive(plan, options)
        except SkillFailureError:
            bad.append(plan.base_xyyaw)
            raise
        assert self.ready is not None
        yield from self.pull(self.ready) if self.ready.path.width_m > 0.0 else self.push(self.ready)

    def _open_neighbour(self, door: Articulation, options: Sequence[Sequence[ContactPath]]) -> str:
        """Return the open door or drawer nearby without which there would be a plan, or an empty text."""
        view, here = self.ctx.view, door.bar(door.now)[0]
        for entity in view.info.entities.values():
            pose = view.pose(entity.name)
            if entity.name == self.target or not entity.openable or pose is None:
                continue
            near = float(np.hypot(*(pose.pos_world_m - here)[:2])) < 1.2
            if near and view.opening(entity.name) > 0.1 and self.plan(door, options[:1], [], without=entity.name):
                return entity.name
        return ""
