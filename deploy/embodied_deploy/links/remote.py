"""A robot that another process serves, as a robot."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from embodied_controllers.contract import ActionSpec, Command, ObservationSpec, RobotState
from embodied_deploy.errors import LinkError
from embodied_deploy.links.endpoint import dial, parse_endpoint
from embodied_deploy.links.hello import Welcome, decode_welcome
from embodied_deploy.links.payload import CommandMessage, StateMessage, decode_state, encode_command
from embodied_deploy.links.peer import Peer
from embodied_deploy.links.wire import Frame, Kind
from embodied_deploy.robots.sense import Senses

Array = NDArray[np.float64]
_RETRY_S = 0.2


class RemoteRobot:
    """Drives the robot behind an endpoint; the server says whether in lockstep or in real time.

    In lockstep, :meth:`send` returns when the robot's side has advanced, with what was applied. In real time, it
    returns at once with what the limits make of the command, and :meth:`read` returns the newest sample that has
    arrived; while the link is down both raise, and a new connection is tried in the background.

    Args:
      endpoint: ``tcp:HOST:PORT`` or ``unix:PATH``.
      rate_hz: how often commands will come; the robot's own rate by default.
      timeout_s: for the first connection, and for each answer in lockstep.

    Attributes:
      faults: frames that were not used, by kind.

    Raises:
      LinkError: nobody serves there, the robot is taken, or it speaks another protocol.
    """

    def __init__(self, endpoint: str, *, rate_hz: float | None = None, timeout_s: float = 5.0) -> None:
        self._endpoint, self._timeout_s = parse_endpoint(endpoint), timeout_s
        self.faults: Counter[str] = Counter()
        self._peer, self._welcome, self._message = self._connect()
        ratio = 1.0 if rate_hz is None else 1.0 / (rate_hz * self._welcome.dt_ctrl_s)
        self._periods = round(ratio)
        if self._periods < 1 or abs(ratio - self._periods) > 1e-6:
            self._peer.close()
            raise LinkError(
                f"{self.name}: commands at {rate_hz} Hz, its period of {self.dt_ctrl_s} s is no part of that."
            )
        self._seen = 0
        self._last = self._message.applied.copy()
        self._redial: threading.Thread | None = None
        self._redial_s = 0.0
        self._fresh: tuple[Peer, Welcome, StateMessage] | None = None

    @property
    def name(self) -> str:
        """Instance name."""
        return self._welcome.name

    @property
    def kind(self) -> str:
        """Robot kind."""
        return self._welcome.kind

    @property
    def action_spec(self) -> ActionSpec:
        """Order, units and limits of a command."""
        return self._welcome.action_spec

    @property
    def observation_spec(self) -> ObservationSpec:
        """Order, units and limits of a state."""
        return self._welcome.observation_spec

    @property
    def dt_ctrl_s(self) -> float:
        """Period at which commands are expected."""
        return self._welcome.dt_ctrl_s

    @property
    def is_lockstep(self) -> bool:
        """Whether the robot's time waits for commands."""
        return self._welcome.lockstep

    @property
    def watchdog_s(self) -> float:
        """Longest silence that the robot's side endures."""
        return self._welcome.watchdog_s

    @property
    def last_action(self) -> Array:
        """(n,) the command applied last, as far as it is known here."""
        return self._last.copy()

    def read(self) -> RobotState:
        """Return the newest sample.

        Raises:
          LinkError: the link is down.
        """
        if not self.is_lockstep:
            self._reconnect()
            frames = self._peer.receive()
            # Of several samples only the newest is worth reading: they may hold images.
            newest = max((f.seq for f in frames if f.kind == Kind.STATE), default=0)
            for frame in frames:
                if frame.kind != Kind.STATE or frame.seq == newest:
                    self._take(frame)
        self._require_open()
        return self._message.state

    def sense(self) -> Senses:
        """Return the readings that came with the newest sample."""
        return self._message.senses

    def send(self, command: Command) -> Command:
        """Command the robot; NaN holds what was applied last.

        Raises:
          LinkError: the link is down, or the vector has the wrong length.
        """
        values = np.asarray(command.values, dtype=np.float64)
        if values.shape != (self.action_spec.size,):
            raise LinkError(f"{self.name}: a command has {self.action_spec.size} entries, got shape {values.shape}.")
        clipped = self.action_spec.clip(values)
        return self._command(Kind.COMMAND, np.where(np.isnan(clipped), self._last, clipped))

    def stop(self) -> Command:
        """Bring the robot to its safe state by its own means.

        Raises:
          LinkError: the link is down; the robot's own watchdog stops it then.
        """
        return self._command(Kind.STOP, np.zeros(0))

    def close(self) -> None:
        """Say goodbye; the robot's side goes to its safe state."""
        if self._peer.is_open:
            self._peer.send(Kind.BYE)
        self._peer.close()

    def _command(self, kind: Kind, values: Array) -> Command:
        self._require_open()
        message = CommandMessage(answers=self._seen, periods=self._periods, values=values)
        seq = self._peer.send(kind, encode_command(message))
        self._require_open()
        if self.is_lockstep:
            self._await(seq)
            self._last = self._message.applied.copy()
        elif kind == Kind.STOP:
            safe = self.action_spec.safe
            self._last = np.where(np.isnan(safe), self._last, safe)
        else:
            self._last = values.copy()
        return Command(values=self._last.copy())

    def _await(self, seq: int) -> None:
        end_s = time.monotonic() + self._timeout_s
        while self._message.acknowledges != seq:
            left_s = end_s - time.monotonic()
            if left_s <= 0:
                self._peer.close()
                raise LinkError(f"{self.name}: no answer to command {seq} within {self._timeout_s:g} s.")
            for frame in self._peer.receive(left_s):
                self._take(frame)
            self._require_open()

    def _take(self, frame: Frame) -> None:
        if frame.session != self._peer.session:
            self.faults["foreign"] += 1
        elif frame.kind == Kind.BYE:
            self._peer.close()
        elif frame.kind != Kind.STATE:
            self.faults["unexpected"] += 1
        elif frame.seq <= self._seen:
            self.faults["old"] += 1
        else:
            try:
                self._message = decode_state(frame.payload, self.action_spec, self.observation_spec)
                self._seen = frame.seq
            except LinkError:
                self.faults["size"] += 1

    def _require_open(self) -> None:
        if not self._peer.is_open:
            raise LinkError(
                f"{self.name} at {self._endpoint}: the link is down: its side ended the session, by its watchdog or on "
                "purpose. It keeps itself safe; connect again."
            )

    def _connect(self) -> tuple[Peer, Welcome, StateMessage]:
        """Return an open link with its first sample."""
        peer = Peer(dial(self._endpoint, self._timeout_s))
        peer.send(Kind.HELLO, json.dumps({"pid": os.getpid()}).encode())
        end_s = time.monotonic() + self._timeout_s
        welcome: Welcome | None = None
        while (left_s := end_s - time.monotonic()) > 0 and peer.is_open:
            for frame in peer.receive(left_s):
                if frame.kind == Kind.REFUSE:
                    peer.close()
                    raise LinkError(f"{self._endpoint} refuses: {frame.payload.decode(errors='replace')}")
                if frame.kind == Kind.WELCOME:
                    welcome = decode_welcome(frame.payload)
                    peer.session = welcome.session
                elif frame.kind == Kind.STATE and welcome is not None:
                    message = decode_state(frame.payload, welcome.action_spec, welcome.observation_spec)
                    return peer, welcome, message
        faults = dict(peer.decoder.faults)
        peer.close()
        raise LinkError(
            f"{self._endpoint} does not answer as a robot within {self._timeout_s:g} s (faults: {faults}). "
            "Do both sides run the same version?"
        )

    def _reconnect(self) -> None:
        """Take over a link that came up again; look for one while there is none."""
        if self._peer.is_open:
            return
        if self._fresh is not None:
            (peer, welcome, message), self._fresh = self._fresh, None
            if welcome.action_spec.names != self.action_spec.names or welcome.kind != self.kind:
                peer.close()
                raise LinkError(f"{self._endpoint}: another robot answers now: {welcome.name}, a {welcome.kind}.")
            self.faults += self._peer.decoder.faults
            self._peer, self._message, self._seen = peer, message, 0
            self._last = message.applied.copy()
        elif (self._redial is None or not self._redial.is_alive()) and time.monotonic() > self._redial_s:
            # Dialling may take a time-out, which the loop cannot wait for.
            self._redial = threading.Thread(target=self._dial_again, name="redial", daemon=True)
            self._redial.start()

    def _dial_again(self) -> None:
        try:
            self._fresh = self._connect()
        except LinkError:
            self._redial_s = time.monotonic() + _RETRY_S
