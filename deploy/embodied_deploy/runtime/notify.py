"""Tells systemd that the service is ready, alive and stopping, over the socket that it names.

References:
  sd_notify(3): one datagram of ``KEY=value`` lines to the socket in ``NOTIFY_SOCKET``; ``@`` stands for the abstract
  namespace. ``WATCHDOG_USEC`` holds the time within which ``WATCHDOG=1`` must come.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping


class Notifier:
    """Sends states to the service manager; does nothing where there is none.

    Args:
      environ: where the manager's variables are; the process's own by default.
    """

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        environ = os.environ if environ is None else environ
        name = environ.get("NOTIFY_SOCKET", "")
        self._address = "\0" + name[1:] if name.startswith("@") else name
        usec = environ.get("WATCHDOG_USEC", "")
        own = environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        self.period_s = int(usec) / 2e6 if own and usec.isdecimal() else float("inf")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) if self._address else None
        if self._socket is not None:
            # A manager that does not read must not stop the loop.
            self._socket.setblocking(False)

    def send(self, **values: str) -> bool:
        """Send ``KEY=value`` lines, for instance ``send(READY="1")``; return whether they were delivered."""
        if self._socket is None:
            return False
        text = "\n".join(f"{k}={v}" for k, v in values.items())
        try:
            self._socket.sendto(text.encode(), self._address)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
