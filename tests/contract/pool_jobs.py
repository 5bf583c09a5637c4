"""Jobs that the pool tests run in worker processes; a file of its own so that a spawned process can import it."""

import os
import signal
import time
from pathlib import Path


def act(payload):
    kind = payload["kind"]
    if kind == "double":
        return payload["x"] * 2
    if kind == "raise":
        raise ValueError("a reason")
    if kind == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "die_once":
        mark = Path(payload["mark"])
        if not mark.exists():
            mark.write_text("died")
            os.kill(os.getpid(), signal.SIGKILL)
        return "second try"
    if kind == "sleep":
        time.sleep(60)
    if kind == "env":
        return {k: os.environ.get(k) for k in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")}
    if kind == "print":
        os.write(1, b"noise of an engine\n")  # past Python, as C code does
        return "printed"
    raise AssertionError(kind)
