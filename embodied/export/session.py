"""Run a graph on this machine's CPU, one thread, the way the device does."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from embodied.errors import require
from embodied.train.contract import Feed

Outputs = dict[str, NDArray[Any]]


def open_session(graph: bytes, *, optimize: bool = True) -> Any:  # noqa: ANN401 -- onnxruntime.InferenceSession
    """Open a session with one thread that does not spin.

    Args:
      graph: serialized model.
      optimize: let the runtime fuse nodes, as it does on a device.
    """
    ort = require("onnxruntime", "export")
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if not optimize:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def run_graph(graph: bytes, feed: Feed, *, batch: int | None = None, optimize: bool = True) -> Outputs:
    """Return output name to (samples, …) for all samples of ``feed``.

    Args:
      graph: serialized model.
      feed: input name to (samples, …).
      batch: samples per call; all at once by default. Dynamic quantization scales by the largest value of a call, so
        only batch 1 shows what a device will see.
      optimize: let the runtime fuse nodes.
    """
    session = open_session(graph, optimize=optimize)
    names = [o.name for o in session.get_outputs()]
    total = len(next(iter(feed.values())))
    step = batch or total
    parts = [
        session.run(None, {k: np.ascontiguousarray(v[i : i + step]) for k, v in feed.items()})
        for i in range(0, total, step)
    ]
    return {name: np.concatenate([p[i] for p in parts]) for i, name in enumerate(names)}
