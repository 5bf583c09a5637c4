"""What the kernel and the interpreter can do for a bounded latency, and a name for each thing that was refused."""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

SWITCH_S = 2e-4
"""How long a thread waits for the interpreter lock before it asks for it; Python's own 5 ms is a period at 200 Hz."""
_MCL_CURRENT, _MCL_FUTURE = 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RealtimeOptions:
    """What to ask the kernel for.

    Attributes:
      cpu: processor that both threads are pinned to, None for any. One processor is enough for both: while the worker
        computes, the loop sleeps or pre-empts it.
      fifo: priority of the loop in SCHED_FIFO, 2 to 99; the worker gets one less. None for an ordinary thread.
      lock_memory: keep all pages in memory.
    """

    cpu: int | None = None
    fifo: int | None = None
    lock_memory: bool = False

    @property
    def worker(self) -> RealtimeOptions:
        """The options of the inference thread, which the loop pre-empts."""
        return replace(self, fifo=None if self.fifo is None else max(self.fifo - 1, 1), lock_memory=False)


def apply_to_thread(options: RealtimeOptions) -> list[str]:
    """Set up the calling thread; return one line for each thing that was refused, beginning with its name.

    The names are ``pin_refused``, ``fifo_refused`` and ``mlock_refused``. The thread runs on without what was refused.
    """
    refused: list[str] = []
    if options.cpu is not None:
        try:
            os.sched_setaffinity(0, {options.cpu})
        except (OSError, ValueError) as error:
            allowed = sorted(os.sched_getaffinity(0))
            refused.append(f"pin_refused: processor {options.cpu}: {error}; this process may use {allowed}")
    if options.fifo is not None:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(options.fifo))
        except (OSError, ValueError) as error:
            refused.append(
                f"fifo_refused: priority {options.fifo}: {error}; run as root, or give CAP_SYS_NICE or LimitRTPRIO"
            )
    if options.lock_memory:
        problem = _lock_memory()
        if problem:
            refused.append(f"mlock_refused: {problem}")
    return refused


@contextmanager
def quiet_interpreter() -> Iterator[None]:
    """Keep the collector of cycles from running inside the loop, and let a waiting thread get the lock soon.

    What lives at the start is frozen: later collections, if any, do not look at it.
    """
    was_enabled, switch_s = gc.isenabled(), sys.getswitchinterval()
    gc.collect()
    gc.freeze()
    gc.disable()
    sys.setswitchinterval(SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(switch_s)
        gc.unfreeze()
        if was_enabled:
            gc.enable()


def _lock_memory() -> str:
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    # Locking what is to come under a limit would make a later allocation fail in the middle of the loop.
    if soft != resource.RLIM_INFINITY and os.geteuid() != 0:
        return f"the limit is {soft} bytes; set LimitMEMLOCK=infinity"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(_MCL_CURRENT | _MCL_FUTURE) != 0:
        return os.strerror(ctypes.get_errno())
    return ""


def unlock_memory() -> None:
    """Undo ``lock_memory`` for the whole process."""
    ctypes.CDLL(None).munlockall()


def cpu_model() -> str:
    """Return the processor's name as the kernel tells it."""
    known: dict[str, str] = {}
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                key, _, value = line.partition(":")
                known.setdefault(key.strip(), value.strip())
    except OSError:
        pass
    # ARM kernels give no name, only the numbers of maker and part.
    part = f"{known.get('CPU implementer', '')} {known.get('CPU part', '')}".strip()
    return known.get("model name") or known.get("Model") or part or os.uname().machine
