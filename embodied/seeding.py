"""One root seed, named streams: the same run comes out for any number of workers."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np

Stream = Literal["layout", "physics", "sensor", "planner", "policy", "task", "bootstrap"]


def stream_seed(root_seed: int, *names: str | int) -> int:
    """Derive a 63-bit seed from a root seed and a path of names, independent of call order.

    Args:
      root_seed: the seed the user gave.
      names: stream name and whatever tells users of it apart (episode index, agent name).

    Returns:
      A seed in [0, 2**63).
    """
    text = "/".join([str(int(root_seed)), *(str(n) for n in names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


def stream_rng(root_seed: int, *names: str | int) -> np.random.Generator:
    """Return a generator for one named stream of ``root_seed`` (see :func:`stream_seed`)."""
    import numpy as np

    return np.random.default_rng(stream_seed(root_seed, *names))
