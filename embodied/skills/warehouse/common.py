"""What the warehouse skills share: runs that failed before they began, and commands of the deck."""

from __future__ import annotations

import numpy as np

from embodied.graph.facts import Graph
from embodied.skills.contract import Outcome, SkillContext
from embodied_controllers.contract import Command

KINDS = frozenset({"amr"})
LOW_BATTERY_RATIO = 0.05


class Ended:
    """A run that ends with a known outcome at its first tick."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome

    def tick(self, ctx: SkillContext) -> Outcome:
        """Stand still and end."""
        ctx.robot.stop()
        return self._outcome

    def cancel(self, ctx: SkillContext) -> None:
        """Stand still."""
        ctx.robot.stop()


def send_base(ctx: SkillContext, forward_mps: float, yaw_rate_radps: float) -> None:
    """Drive with the deck held where it is."""
    ctx.robot.send(Command(values=np.array([forward_mps, yaw_rate_radps, np.nan])))


def send_deck(ctx: SkillContext, deck_m: float) -> None:
    """Stand still and move the deck."""
    ctx.robot.send(Command(values=np.array([0.0, 0.0, deck_m])))


def places_of(graph: Graph, thing: str) -> frozenset[str]:
    """Return where a thing or agent is said to be."""
    return frozenset(f.args[1] for f in graph.find("at", thing))


def is_under(graph: Graph, agent: str, carrier: str) -> bool:
    """Whether the agent is said to be at a carrier, or at the place where the carrier is."""
    at = places_of(graph, agent)
    return carrier in at or bool(at & places_of(graph, carrier))


def liftables(graph: Graph) -> tuple[str, ...]:
    """Return the names of what can be lifted."""
    return tuple(n.name for n in graph.of_kind("object") if "liftable" in n.properties)


def load_of(graph: Graph, agent: str) -> str:
    """Return what an agent carries in a graph, empty for nothing."""
    return next((f.args[1] for f in graph.find("lifted", agent)), "")


def stack_on(graph: Graph, carrier: str) -> tuple[str, ...]:
    """Return a carrier and what lies on it."""
    return (carrier, *(f.args[0] for f in graph.find("ontop", None, carrier)))
