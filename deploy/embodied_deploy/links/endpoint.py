"""Addresses of a served robot: ``tcp:HOST:PORT`` or ``unix:PATH``."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

from embodied_deploy.errors import LinkError


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a robot is served.

    Attributes:
      scheme: ``tcp`` or ``unix``.
      host: of tcp; the path of unix.
      port: of tcp; 0 lets the system choose one.
    """

    scheme: str
    host: str
    port: int = 0

    def __str__(self) -> str:
        return f"tcp:{self.host}:{self.port}" if self.scheme == "tcp" else f"unix:{self.host}"


def parse_endpoint(text: str) -> Endpoint:
    """Return an endpoint from its text.

    Raises:
      LinkError: it is none.
    """
    scheme, _, rest = text.partition(":")
    if scheme == "unix" and rest:
        return Endpoint("unix", rest)
    host, _, port = rest.rpartition(":")
    if scheme == "tcp" and host and port.isdecimal() and int(port) < 65536:
        return Endpoint("tcp", host.strip("[]"), int(port))
    raise LinkError(f"endpoint {text!r}: expected tcp:HOST:PORT or unix:PATH.")


def listen(endpoint: Endpoint) -> tuple[socket.socket, Endpoint]:
    """Return a listening socket and where it really listens.

    Raises:
      LinkError: the address is taken or not ours.
    """
    try:
        if endpoint.scheme == "unix":
            _remove_dead(endpoint.host)
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.bind(endpoint.host)
            os.chmod(endpoint.host, 0o600)
            sock.listen(2)
            return sock, endpoint
        family = socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((endpoint.host, endpoint.port))
        sock.listen(2)
        return sock, Endpoint("tcp", endpoint.host, sock.getsockname()[1])
    except OSError as error:
        raise LinkError(f"cannot listen at {endpoint}: {error}. Is another server running there?") from None


def dial(endpoint: Endpoint, timeout_s: float) -> socket.socket:
    """Return a connected socket.

    Raises:
      LinkError: nobody listens there.
    """
    try:
        if endpoint.scheme == "unix":
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.settimeout(timeout_s)
            sock.connect(endpoint.host)
        else:
            sock = socket.create_connection((endpoint.host, endpoint.port), timeout=timeout_s)
    except OSError as error:
        raise LinkError(f"no robot at {endpoint}: {error}. Start its server, check address and firewall.") from None
    no_delay(sock)
    return sock


def no_delay(sock: socket.socket) -> None:
    """Let small frames leave at once."""
    if sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _remove_dead(path: str) -> None:
    """Remove the socket file of a server that is gone; one that answers keeps it."""
    if not os.path.exists(path):
        return
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        probe.settimeout(0.5)
        probe.connect(path)
    except ConnectionRefusedError:
        os.unlink(path)
    except OSError:
        pass
    finally:
        probe.close()
