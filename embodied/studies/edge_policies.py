"""Task scores of the policies that ship, each beside a control that knows nothing."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from embodied.errors import EmbodiedError
from embodied.studies.figure import Figure

if TYPE_CHECKING:
    from embodied.train.contract import Score

SEED0 = 10_000  # no recipe trains or calibrates on these
TARGETS = {"quad-hover": 0.97, "quad-waypoint": 0.97, "compact-planner": 0.8}
"""Success asked of a policy; others 0.8."""
_CONTROL_MAX = 0.1
_EPISODES = {"compact-planner": 60, "reach-and-grasp": 100}
"""Where an episode takes seconds; others 200."""


def policies(quick: bool, out: Path) -> list[Figure]:
    """Success of each shipped fp32 policy over 200 episodes (10 when quick), and of its graph with shuffled weights."""
    from embodied.policies.registry import POLICIES
    from embodied.train.registry import RECIPES
    from embodied_deploy.package.load import load_package

    out.mkdir(parents=True, exist_ok=True)
    figures: list[Figure] = []
    episodes: dict[str, list[dict[str, object]]] = {}
    for entry in POLICIES:
        path = entry.load().path()
        contract = load_package(path, check_parity=False).contract
        recipe = RECIPES.get(contract.training.recipe)
        count = 10 if quick else _EPISODES.get(contract.name, 200)
        scores = recipe.evaluate(path, range(SEED0, SEED0 + count))
        control = recipe.evaluate(
            shuffled_package(path, out / f"{contract.name}-shuffled.policy"), range(SEED0, SEED0 + 10)
        )
        episodes[entry.name] = [asdict(s) for s in scores]
        note = f"recipe {contract.training.recipe}, seeds from {SEED0}"
        figures.append(_figure(f"success of {entry.name}", scores, f">= {TARGETS.get(contract.name, 0.8)}", note))
        figures.append(_figure(f"{entry.name}, weights shuffled", control, f"<= {_CONTROL_MAX}", "control"))
    (out / "edge-policies-episodes.json").write_text(json.dumps(episodes, indent=1), encoding="utf-8")
    return figures


def shuffled_package(path: Path, out: Path, seed: int = 0) -> Path:
    """Write a package with the same contract and graph, the entries of every weight matrix in another order.

    Args:
      path: package to start from.
      out: where the other goes.
      seed: of the order.

    Raises:
      EmbodiedError: the graph holds no weight matrix.
    """
    from embodied.errors import require
    from embodied.export.session import run_graph
    from embodied.seeding import stream_rng
    from embodied_deploy.package.load import load_package, write_package
    from embodied_deploy.package.parity import Parity

    onnx = require("onnx", "export")
    package = load_package(path, check_parity=False)
    model = onnx.load_from_string(package.graph)
    rng, count = stream_rng(seed, "policy", "shuffle"), 0
    for tensor in model.graph.initializer:
        values = onnx.numpy_helper.to_array(tensor)
        if values.ndim >= 2 and values.dtype.kind == "f" and values.size > 16:
            mixed = rng.permutation(values.ravel()).reshape(values.shape)
            tensor.CopyFrom(onnx.numpy_helper.from_array(mixed, tensor.name))
            count += 1
    if not count:
        raise EmbodiedError(f"The graph of {path.name} holds no weight matrix to shuffle.")
    graph = model.SerializeToString()
    inputs = package.parity.inputs
    answers = run_graph(graph, inputs, batch=1)
    return write_package(out, package.contract, graph, Parity(inputs=inputs, reference=answers, outputs=answers))


def _figure(name: str, scores: list[Score], target: str, note: str) -> Figure:
    from embodied.benchmark.metrics import wilson

    rate = wilson(sum(s.value >= 1.0 for s in scores), len(scores))
    return Figure(name, rate.value, rate.low, rate.high, target, len(scores), note=note)
