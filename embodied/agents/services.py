"""Shared helpers that skills find in ``ctx.services``: made once per episode, for the kinds of robots in it."""

from __future__ import annotations

from collections.abc import Mapping

from embodied.agents.eyes import CameraService, Eyes
from embodied.agents.messages import MessageBus
from embodied.robots.base import RobotSpec


def make_services(specs: Mapping[str, RobotSpec], bus: MessageBus, eyes: Mapping[str, Eyes]) -> dict[str, object]:
    """Return the services of an episode.

    Args:
      specs: robot kinds by agent name.
      bus: the message bus.
      eyes: cameras by agent name; empty where facts are all there is.

    Returns:
      ``messages`` always, ``camera`` where there are bodies; others by the kinds of robots.
    """
    services: dict[str, object] = {"messages": bus}
    if eyes:
        services["camera"] = CameraService(eyes)
    if any(spec.kind == "amr" for spec in specs.values()):
        from embodied.skills.warehouse.floor import SERVICE, FleetFloor

        services[SERVICE] = FleetFloor()
    return services
