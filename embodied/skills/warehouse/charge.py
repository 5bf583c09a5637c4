"""charge: fill the battery at a charger."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from embodied.graph.facts import Fact, Graph, fact
from embodied.skills.contract import SUCCESS, Outcome, Skill, SkillCall, SkillContext, SkillRun, Unmet, failed
from embodied.skills.warehouse.common import KINDS, Ended, places_of

FULL_RATIO = 0.95
CHARGE_1PS = 1.0 / 60.0  # sixty times as fast as the hour of a real charger, so that episodes stay short
_CONTACT_M = 0.10  # how far the contact plates below the robot reach


class Charge(Skill):
    """Stand at a charger until the battery is full."""

    name = "charge"
    summary = "Charge the battery; the robot must stand at a charger."
    robot_kinds = KINDS
    failure_codes = ("not_at_charger",)
    timeout_s = 90.0

    def groundings(self, graph: Graph, agent: str) -> Iterable[SkillCall]:
        """Yield the one call there is."""
        yield SkillCall.of(self.name)

    def unmet(self, graph: Graph, agent: str, call: SkillCall) -> tuple[Unmet, ...]:
        """The robot is at a charger."""
        at = [p for p in places_of(graph, agent) if p in graph.nodes and graph.nodes[p].category == "charger"]
        return () if at else (Unmet(message=f"{agent} is not at a charger; drive_to one first"),)

    def effects(self, graph: Graph, agent: str, call: SkillCall) -> tuple[frozenset[Fact], frozenset[Fact]]:
        """The battery is full."""
        return frozenset({fact("charged", agent)}), frozenset()

    def cost_s(self, graph: Graph, agent: str, call: SkillCall) -> float:
        """Half a charge."""
        return 30.0

    def start(self, ctx: SkillContext, call: SkillCall) -> SkillRun:
        """Check the contact, then fill."""
        own = ctx.robot.read().base_pos_world_m[:2]
        chargers = [p for p in ctx.view.info.places.values() if p.category == "charger"]
        gaps = [float(np.linalg.norm(p.pos_world_m[:2] - own)) for p in chargers]
        if not gaps or min(gaps) > _CONTACT_M:
            nearest = min(gaps) if gaps else float("inf")
            message = f"{ctx.agent} stands on no charger."
            return Ended(failed("not_at_charger", message, distance_m=nearest if np.isfinite(nearest) else -1.0))
        return _ChargeRun()


class _ChargeRun:
    def tick(self, ctx: SkillContext) -> Outcome | None:
        """Add charge."""
        ctx.robot.stop()
        ratio = ctx.robot.read().signals["battery_ratio"]
        if ratio >= FULL_RATIO:
            ctx.set_state(ctx.agent, "charged", True)
            return SUCCESS
        ctx.set_state(ctx.agent, "battery_ratio", min(ratio + CHARGE_1PS * ctx.robot.dt_ctrl_s, 1.0))
        return None

    def cancel(self, ctx: SkillContext) -> None:
        """Stand still."""
        ctx.robot.stop()
