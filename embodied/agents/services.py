"""Shared helpers that skills find in ``ctx.services``: made once per episode, for the kinds of robots in it."""

from __future__ import annotations

from collections.abc import Mapping

from embodied.agents.messages import MessageBus
from embodied.robots.base import RobotSpec
from embodied_scenes.info import SceneInfo


def make_services(info: SceneInfo, specs: Mapping[str, RobotSpec], bus: MessageBus) -> dict[str, object]:
    """Return the services of an episode.

    Args:
      info: meaning of the scene.
      specs: robot kinds by agent name.
      bus: the message bus.

    Returns:
      ``messages`` always; others by the kinds of robots.
    """
    del info
    services: dict[str, object] = {"messages": bus}
    if any(spec.kind == "amr" for spec in specs.values()):
        from embodied.skills.warehouse.floor import SERVICE, FleetFloor

        services[SERVICE] = FleetFloor()
    return services
