"""One end of a connection: a socket that never blocks, with a decoder before it and a buffer behind it."""

from __future__ import annotations

import select
import socket

from embodied_deploy.links.endpoint import no_delay
from embodied_deploy.links.wire import Decoder, Frame, Kind, encode

_CHUNK = 1 << 16


class Peer:
    """Sends and receives frames.

    Args:
      sock: connected.

    Attributes:
      session: that frames are sent under.
      is_open: false once the other side is gone.
      decoder: with the faults of what came in.
      sent: sequence number of the last frame sent.
    """

    def __init__(self, sock: socket.socket) -> None:
        no_delay(sock)
        sock.setblocking(False)
        self.socket = sock
        self.session = 0
        self.is_open = True
        self.decoder = Decoder()
        self.sent = 0
        self._out = bytearray()

    def fileno(self) -> int:
        """Return the descriptor, for ``select``."""
        return self.socket.fileno()

    @property
    def is_stuck(self) -> bool:
        """Whether a frame waits for the other side to read the ones before."""
        return bool(self._out)

    def send(self, kind: Kind, payload: bytes = b"") -> int:
        """Send a frame, or as much of it as fits now; return its sequence number."""
        self.sent += 1
        self._out += encode(kind, self.session, self.sent, payload)
        self.flush()
        return self.sent

    def flush(self) -> None:
        """Send on what waits."""
        try:
            while self._out and self.is_open:
                n = self.socket.send(self._out)
                del self._out[:n]
        except BlockingIOError:
            pass
        except OSError:
            self.is_open = False

    def receive(self, timeout_s: float = 0.0) -> list[Frame]:
        """Return the frames that are whole, after waiting for the first byte at most ``timeout_s``."""
        if not self.is_open:
            return []
        if timeout_s > 0.0 and not select.select([self.socket], [], [], timeout_s)[0]:
            return []
        frames: list[Frame] = []
        try:
            while data := self.socket.recv(_CHUNK):
                frames += self.decoder.feed(data)
                if len(data) < _CHUNK:
                    return frames
            self.is_open = False
        except BlockingIOError:
            pass
        except OSError:
            self.is_open = False
        return frames

    def close(self) -> None:
        """Close the socket."""
        self.is_open = False
        self.socket.close()
