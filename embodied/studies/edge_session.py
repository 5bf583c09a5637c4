"""Studies of a policy on the device: what our session, channels and controller add to a bare run of the graph."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embodied.errors import require
from embodied.studies.figure import Figure

if TYPE_CHECKING:
    from embodied_deploy.package.contract import PolicyContract
    from embodied_deploy.policy.sample import Sample

_TARGET_US = "<= 5"
_TARGET_ACT_US = "<= 25"  # half a percent of the period at 200 Hz
_XYZ = ("x", "y", "z")
_HIDDEN = 256
_BLOCK = 400
PATHS = (
    *(f"to_goal_pos_world_m.{a}" for a in _XYZ),
    *(f"base_rot_world_body.{i}{k}" for i in range(3) for k in range(3)),
    *(f"base_vel_body_mps.{a}" for a in _XYZ),
    *(f"base_angvel_body_radps.{a}" for a in _XYZ),
    *(f"signal.acc_{a}_body_mps2" for a in _XYZ),
    *(f"last_action.thrust_{i}_n" for i in range(1, 5)),
)
"""Twenty-five observations of a quadrotor, from six sources."""


def overhead(quick: bool, out: Path) -> list[Figure]:
    """CPU time per call over a bare run of the same graph, both with bound tensors, in one process.

    An MLP 25-256-256-4 of the quadrotor. Rounds interleave blocks of 400 calls of each kind, so that a machine that
    changes its speed changes all of them; the figure is the median over rounds of the difference to the bare run, with
    its bootstrap interval. The ratio depends on how fast the graph is and stands in the note. ``act`` is the whole way
    from a robot's sample to its command: 25 observations assembled, state and chunk kept, limits applied.
    """
    from embodied.robots.quadrotor.spec import QUADROTOR
    from embodied_deploy.package.load import load_package
    from embodied_deploy.policy.channels import Assembler
    from embodied_deploy.policy.controller import PolicyController
    from embodied_deploy.policy.session import PolicySession

    out.mkdir(parents=True, exist_ok=True)
    package = load_package(_write(out / "overhead.policy"), robot=QUADROTOR)
    session = PolicySession(package)
    specs = QUADROTOR.action_spec, QUADROTOR.observation_spec
    controller = PolicyController(PolicySession(package), *specs)
    assembler = Assembler(package.contract, *specs)
    feed, sample = {k: v[:1] for k, v in package.parity.inputs.items()}, _sample()
    calls: dict[str, Callable[[], Any]] = {
        "bare": _bare(package.graph, package.contract),
        "infer": lambda: session.infer(feed),
        "fill": lambda: assembler.fill(sample, session.inputs),
        "act": lambda: controller.act(sample),
    }
    rounds = _interleaved(calls, 12 if quick else 60)
    return [
        _figure("PolicySession.infer over a bare run with bound tensors", rounds, "infer", "bare", _TARGET_US),
        _figure("Assembler.fill, 25 observations from six sources", rounds, "fill", "", _TARGET_US),
        _figure("PolicyController.act over a bare run with bound tensors", rounds, "act", "bare", _TARGET_ACT_US),
    ]


def _bare(graph: bytes, contract: PolicyContract) -> Callable[[], Any]:
    """Return the shortest call that runs the graph: nothing is copied, checked or kept."""
    import numpy as np

    from embodied_deploy.policy.session import open_session

    session = open_session(graph)
    binding = session.io_binding()
    kept = []
    sides = [(binding.bind_input, contract.inputs), (binding.bind_output, contract.outputs)]
    for bind, spec in [(bind, t) for bind, tensors in sides for t in tensors]:
        array = np.zeros((1, *spec.shape), spec.dtype)
        kept.append(array)
        bind(spec.name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
    run = session.run_with_iobinding

    def call(arrays: list[Any] = kept) -> None:
        run(binding)

    return call


def _interleaved(calls: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Return CPU microseconds per call and round of each, after one round that warms up."""
    spent: dict[str, list[float]] = {name: [] for name in calls}
    for n in range(rounds + 1):
        for name, call in calls.items():
            begin_s = time.thread_time()
            for _ in range(_BLOCK):
                call()
            if n:
                spent[name].append((time.thread_time() - begin_s) / _BLOCK * 1e6)
    return spent


def _figure(name: str, rounds: Mapping[str, list[float]], what: str, less: str, target: str) -> Figure:
    import numpy as np

    cost = np.array(rounds[what])
    samples = cost - np.array(rounds[less]) if less else cost
    rng = np.random.default_rng(0)
    medians = np.median(rng.choice(samples, (2000, len(samples))), axis=1)
    low, high = (float(q) for q in np.quantile(medians, (0.025, 0.975)))
    bare = float(np.median(rounds["bare"]))
    note = f"median of {len(samples)} rounds; bare run {bare:.1f} us, {np.median(cost) / bare:.2f} times that"
    return Figure(name, float(np.median(samples)), low, high, target, len(samples), "us", note=note)


def _write(path: Path) -> Path:
    import numpy as np

    from embodied_deploy.package.contract import PolicyContract, TensorSpec, Training
    from embodied_deploy.package.load import write_package
    from embodied_deploy.package.parity import Parity
    from embodied_deploy.package.quantities import action_entry, observation_entry
    from embodied_deploy.policy.session import open_session

    seen = tuple(observation_entry(p, -10.0, 10.0) for p in PATHS)
    driven = tuple(action_entry(f"thrust_{i}_n", 0.0, 0.15) for i in range(1, 5))
    contract = PolicyContract(
        name="overhead",
        version="1.0.0",
        kind="controller",
        robot="quadrotor",
        rate_hz=125.0,
        inputs=(TensorSpec(name="obs", role="observation", dtype="float32", shape=(len(seen),), entries=seen),),
        outputs=(TensorSpec(name="action", role="action", dtype="float32", shape=(4,), entries=driven),),
        safe_action=(0.0,) * 4,
        latency_budget_s=0.002,
        max_observation_age_s=0.02,
        training=Training(recipe="none", seed=0, commit="none"),
    )
    graph = _mlp((len(seen), _HIDDEN, _HIDDEN, 4))
    inputs = np.random.default_rng(1).normal(size=(16, len(seen))).astype(np.float32)
    session = open_session(graph)
    rows = np.concatenate([session.run(None, {"obs": inputs[i : i + 1]})[0] for i in range(len(inputs))])
    answers = {"action": rows}
    return write_package(path, contract, graph, Parity(inputs={"obs": inputs}, reference=answers, outputs=answers))


def _mlp(sizes: tuple[int, ...]) -> bytes:
    """Return an ONNX file of dense layers with tanh between them and random weights."""
    import numpy as np

    onnx = require("onnx", "export")
    helper, rng = onnx.helper, np.random.default_rng(0)
    nodes, weights, last = [], [], "obs"
    for i, (n_in, n_out) in enumerate(pairwise(sizes)):
        weight = (rng.normal(size=(n_in, n_out)) / np.sqrt(n_in)).astype(np.float32)
        weights += [
            onnx.numpy_helper.from_array(weight, f"w{i}"),
            onnx.numpy_helper.from_array(np.zeros(n_out, np.float32), f"b{i}"),
        ]
        nodes.append(helper.make_node("Gemm", [last, f"w{i}", f"b{i}"], [f"z{i}"]))
        last = f"a{i}" if i + 2 < len(sizes) else "action"
        nodes.append(helper.make_node("Tanh", [f"z{i}"], [last]))
    sides = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", size])
        for name, size in (("obs", sizes[0]), ("action", sizes[-1]))
    ]
    graph = helper.make_graph(nodes, "mlp", sides[:1], sides[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    return model.SerializeToString()


def _sample() -> Sample:
    import numpy as np

    from embodied_controllers.contract import RobotState
    from embodied_deploy.policy.sample import Sample

    signals = {f"acc_{a}_body_mps2": 0.1 for a in _XYZ} | {f"thrust_{i}_n": 0.07 for i in range(1, 5)}
    state = RobotState(
        time_s=1.0,
        joint_pos=np.zeros(0),
        joint_vel=np.zeros(0),
        base_pos_world_m=np.array([0.1, 0.2, 1.0]),
        base_quat_wxyz=np.array([0.96, 0.1, 0.2, 0.1]),
        signals=signals,
    )
    return Sample(state=state, last_action=np.full(4, 0.07), goal={"pos_world_m": np.array([1.0, 0.0, 1.0])})
