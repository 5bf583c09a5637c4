"""The robot's side of a link, with the watchdog that does not depend on the policy's process."""

from __future__ import annotations

import secrets
import select
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from embodied_controllers.contract import Command
from embodied_deploy.errors import LinkError
from embodied_deploy.links.endpoint import listen, parse_endpoint
from embodied_deploy.links.hello import Welcome, encode_welcome
from embodied_deploy.links.payload import StateMessage, decode_command, encode_state
from embodied_deploy.links.peer import Peer
from embodied_deploy.links.wire import Frame, Kind
from embodied_deploy.robot import Robot
from embodied_deploy.robots.sense import first_action, senses_of
from embodied_deploy.runtime.clock import Clock, MonotonicClock

_HELLO_S = 1.0
_LAG_S = 1.0
_POLL_S = 0.05
_MARGIN_RATIO = 0.1
"""The watchdog acts this share of its time early: a busy machine wakes us late, and safe is to mean within the time."""
Event = Callable[[str, "dict[str, object]"], None]


class RobotServer:
    """Serves one robot to one client at a time.

    A session begins with a client's hello. From its first command on, a valid command must come every ``watchdog_s``;
    else the session ends, the robot is stopped, and it stays stopped until another session commands it. A closed
    connection ends a session at once. In real time the robot is stopped anew each period, for some robots need that to
    stay safe (a quadrotor holds its position); in lockstep its time waits instead.

    Frames that are not obeyed are counted in ``faults`` by kind: those of :class:`embodied_deploy.links.wire.Decoder`,
    ``foreign`` (another session, or a second client), ``duplicate``, ``old``, ``size``, ``nan``, ``unexpected``.

    Args:
      robot: used by the thread that calls :meth:`serve` only.
      endpoint: ``tcp:HOST:PORT`` or ``unix:PATH``.
      watchdog_s: longest silence in seconds of ``clock``; the robot is stopped when nine tenths of it have passed.
      step: advances the robot's world by one control period; None where it moves by itself (real time) or with each
        command (lockstep).
      lockstep: the robot's time waits for commands.
      clock: measures silence and, in real time, the periods.
      on_event: called with ``session``, ``watchdog``, ``lost``, ``bye``, ``refused`` and a few facts.

    Raises:
      LinkError: the address cannot be served.
    """

    def __init__(
        self,
        robot: Robot,
        endpoint: str,
        watchdog_s: float,
        *,
        step: Callable[[], object] | None = None,
        lockstep: bool = True,
        clock: Clock | None = None,
        on_event: Event | None = None,
    ) -> None:
        if not watchdog_s > 0:
            raise LinkError(f"watchdog_s {watchdog_s!r}: expected a positive number of seconds.")
        self._robot, self._step, self._lockstep = robot, step, lockstep
        self._watchdog_s, self._clock = watchdog_s, clock or MonotonicClock()
        self._silence_s = watchdog_s * (1.0 - _MARGIN_RATIO)
        self._on_event = on_event
        self._listener, self._endpoint = listen(parse_endpoint(endpoint))
        self._listener.setblocking(False)
        self._client: Peer | None = None
        self._waiting: list[tuple[Peer, float]] = []
        self._commanded_s = float("nan")
        self._seen = self._acknowledged = 0
        self._faults: Counter[str] = Counter()
        self._applied = first_action(robot)
        self._ending = False
        self.sessions = 0

    @property
    def endpoint(self) -> str:
        """Where it listens, with the port that the system chose."""
        return str(self._endpoint)

    @property
    def is_safe(self) -> bool:
        """Whether nobody commands the robot."""
        return self._client is None or not self._is_armed

    @property
    def faults(self) -> Counter[str]:
        """Frames that were not obeyed, by kind."""
        open_ones = [p for p, _ in self._waiting] + ([self._client] if self._client else [])
        return sum((p.decoder.faults for p in open_ones), self._faults.copy())

    @property
    def _is_armed(self) -> bool:
        return self._commanded_s == self._commanded_s

    def end(self) -> None:
        """End :meth:`serve` soon; may be called by another thread."""
        self._ending = True

    def serve(self, sessions: int | None = None) -> None:
        """Serve until :meth:`end`, or until ``sessions`` sessions are over. The robot is stopped in the end."""
        try:
            self._stop()
            due_s = self._clock.now_s() + self._robot.dt_ctrl_s
            while not self._ending and not (sessions is not None and self.sessions >= sessions and not self._client):
                self._wait(self._patience_s(due_s))
                now_s = self._clock.now_s()
                self._check_watchdog(now_s)
                if not self._lockstep and now_s >= due_s:
                    self._period()
                    # Late periods are made up for, so that the robot's clock keeps pace; long stalls are not.
                    due_s = due_s + self._robot.dt_ctrl_s if now_s - due_s < _LAG_S else now_s
        finally:
            if self._client is not None:
                self._client.send(Kind.BYE)
            self._end_session("end")
            self._listener.close()
            for peer, _ in self._waiting:
                peer.close()

    def _patience_s(self, due_s: float) -> float:
        """Return how long nothing is to be done unless something arrives."""
        now_s = self._clock.now_s()
        wait_s = _POLL_S if self._lockstep else min(due_s - now_s, _POLL_S)
        return min(wait_s, self._commanded_s + self._silence_s - now_s) if self._is_armed else wait_s

    def _wait(self, timeout_s: float) -> None:
        sockets = [self._listener, *([self._client] if self._client else []), *(p for p, _ in self._waiting)]
        ready, _, _ = select.select(sockets, [], [], max(timeout_s, 0.0))
        if self._listener in ready:
            self._accept()
        if self._client is not None and self._client in ready:
            for frame in self._client.receive():
                self._take(frame)
                if self._client is None:
                    break
            if self._client is not None and not self._client.is_open:
                self._end_session("lost")
        if self._waiting:
            self._greet()

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return
        self._waiting.append((Peer(sock), self._clock.now_s()))

    def _greet(self) -> None:
        """Hear those who have connected and not said who they are."""
        still: list[tuple[Peer, float]] = []
        for peer, since_s in self._waiting:
            frames = peer.receive()
            if frames and frames[0].kind == Kind.HELLO and frames[0].session == 0:
                self._welcome(peer, frames)
            elif frames or not peer.is_open or self._clock.now_s() - since_s > _HELLO_S:
                self._faults["unexpected" if frames else "foreign"] += 1
                self._drop(peer)
            else:
                still.append((peer, since_s))
        self._waiting = still

    def _welcome(self, peer: Peer, frames: list[Frame]) -> None:
        if self._client is not None and self._client.is_open:
            self._faults["foreign"] += 1
            peer.send(Kind.REFUSE, b"another client commands this robot. Stop it first.")
            self._drop(peer)
            self._tell("refused")
            return
        r = self._robot
        session = secrets.randbits(63) | 1
        peer.session = session
        welcome = Welcome(
            name=r.name,
            kind=r.kind,
            dt_ctrl_s=r.dt_ctrl_s,
            action_spec=r.action_spec,
            observation_spec=r.observation_spec,
            lockstep=self._lockstep,
            watchdog_s=self._watchdog_s,
            session=session,
        )
        self._client, self._seen, self._acknowledged = peer, frames[0].seq, 0
        self._commanded_s = float("nan")
        self.sessions += 1
        peer.send(Kind.WELCOME, encode_welcome(welcome))
        self._send_state()
        self._tell("session", number=self.sessions)
        for frame in frames[1:]:
            self._take(frame)

    def _take(self, frame: Frame) -> None:
        """Obey a frame of the client, or count why not."""
        assert self._client is not None
        if frame.session != self._client.session:
            self._faults["foreign"] += 1
        elif frame.seq <= self._seen:
            self._faults["duplicate" if frame.seq == self._seen else "old"] += 1
        elif frame.kind == Kind.COMMAND or frame.kind == Kind.STOP:
            self._command(frame)
        elif frame.kind == Kind.BYE:
            self._end_session("bye")
        else:
            self._faults["unexpected"] += 1

    def _command(self, frame: Frame) -> None:
        size = self._robot.action_spec.size if frame.kind == Kind.COMMAND else 0
        try:
            message = decode_command(frame.payload, size)
        except LinkError:
            self._faults["size"] += 1
            return
        if not np.isfinite(message.values).all():
            self._faults["nan"] += 1
            return
        self._seen = self._acknowledged = frame.seq
        self._commanded_s = self._clock.now_s()
        if frame.kind == Kind.STOP:
            self._stop()
        else:
            self._applied = self._robot.send(Command(values=message.values)).values
        if self._lockstep:
            for _ in range(message.periods if self._step is not None else 0):
                assert self._step is not None
                self._step()
            self._commanded_s = self._clock.now_s()
            self._send_state()

    def _check_watchdog(self, now_s: float) -> None:
        if self._client is not None and self._is_armed and now_s - self._commanded_s >= self._silence_s:
            self._client.send(Kind.BYE)
            self._end_session("watchdog")

    def _period(self) -> None:
        if self.is_safe:
            self._stop()
        if self._step is not None:
            self._step()
        if self._client is not None:
            self._client.flush()
            # A client that does not read gets no further samples: what it reads next must not be old.
            if not self._client.is_stuck:
                self._send_state()

    def _send_state(self) -> None:
        assert self._client is not None
        state = self._robot.read()
        message = StateMessage(
            acknowledges=self._acknowledged,
            is_safe=not self._is_armed,
            applied=self._applied,
            state=state,
            senses=senses_of(self._robot),
        )
        self._client.send(Kind.STATE, encode_state(message, self._robot.observation_spec))

    def _stop(self) -> None:
        self._applied = self._robot.stop().values

    def _end_session(self, why: str) -> None:
        silent_s = self._clock.now_s() - self._commanded_s
        self._stop()
        self._commanded_s = float("nan")
        if self._client is not None:
            self._drop(self._client)
            self._client = None
            self._tell(why, silent_s=silent_s)

    def _drop(self, peer: Peer) -> None:
        self._faults += peer.decoder.faults
        peer.close()

    def _tell(self, kind: str, **facts: object) -> None:
        if self._on_event is not None:
            self._on_event(kind, facts)


def serve_robot(
    robot: Robot,
    endpoint: str,
    watchdog_s: float,
    step: Callable[[], object] | None = None,
    *,
    lockstep: bool = True,
    sessions: int | None = None,
    on_event: Event | None = None,
) -> RobotServer:
    """Serve ``robot`` in this thread until its sessions are over; see :class:`RobotServer`."""
    server = RobotServer(robot, endpoint, watchdog_s, step=step, lockstep=lockstep, on_event=on_event)
    server.serve(sessions)
    return server


@contextmanager
def serving(server: RobotServer) -> Iterator[RobotServer]:
    """Run a server in a thread of its own, to its end."""
    thread = threading.Thread(target=server.serve, name="robot", daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.end()
        thread.join(timeout=5.0)
