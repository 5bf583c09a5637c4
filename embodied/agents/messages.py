"""Messages between agents: delivered at the next decision of the receiver."""

from __future__ import annotations

from embodied.planners.contract import Message


class MessageBus:
    """One per episode."""

    def __init__(self, agents: tuple[str, ...]) -> None:
        self._boxes: dict[str, list[Message]] = {a: [] for a in agents}
        self.sent: list[Message] = []

    def send(self, sender: str, receiver: str, text: str, time_s: float) -> int:
        """Send to one agent or, with ``receiver`` ``all``, to every other; return how many received it."""
        targets = [a for a in self._boxes if a != sender and receiver in (a, "all")]
        for target in targets:
            self._boxes[target].append(Message(time_s=time_s, sender=sender, receiver=target, text=text))
        self.sent.append(Message(time_s=time_s, sender=sender, receiver=receiver, text=text))
        return len(targets)

    def collect(self, agent: str) -> tuple[Message, ...]:
        """Take the messages that wait for an agent."""
        waiting = tuple(self._boxes[agent])
        self._boxes[agent].clear()
        return waiting
