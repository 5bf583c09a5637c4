"""Small real packages for tests: graphs built node by node, answers asked of onnxruntime."""

import importlib.util

import numpy as np
import pytest

from embodied_deploy.package.contract import Chunk, PolicyContract, TensorSpec, Training
from embodied_deploy.package.load import write_package
from embodied_deploy.package.parity import Parity
from embodied_deploy.package.quantities import action_entry, observation_entry

if importlib.util.find_spec("onnx") is None or importlib.util.find_spec("onnxruntime") is None:
    pytest.skip("onnx and onnxruntime come with the extra 'export'", allow_module_level=True)

PATHS = (
    "base_pos_world_m.x",
    "base_pos_world_m.y",
    "base_pos_world_m.z",
    "base_vel_body_mps.x",
    "last_action.thrust_1_n",
)
ROTORS = tuple(f"thrust_{i}_n" for i in range(1, 5))
HIGH_N = 0.15


def contract(**changes):
    """A controller of the quadrotor: five observations, four thrusts."""
    fields = {
        "name": "tiny",
        "version": "1.0.0",
        "kind": "controller",
        "robot": "quadrotor",
        "rate_hz": 125.0,
        "inputs": (observation(PATHS),),
        "outputs": (action(ROTORS),),
        "safe_action": (0.0,) * 4,
        "latency_budget_s": 0.002,
        "max_observation_age_s": 0.02,
        "training": Training(recipe="tiny@1", seed=0, commit="0" * 40, versions={"numpy": "2"}),
    }
    return PolicyContract(**(fields | changes))


def observation(paths, name="obs"):
    """An observation input."""
    entries = tuple(observation_entry(p, -10.0, 10.0) for p in paths)
    return TensorSpec(name=name, role="observation", dtype="float32", shape=(len(entries),), entries=entries)


def action(names, horizon=0, low=0.0, high=HIGH_N):
    """An action output, a chunk of ``horizon`` when not 0."""
    entries = tuple(action_entry(n, low, high) for n in names)
    shape = (horizon, len(entries)) if horizon else (len(entries),)
    return TensorSpec(name="action", role="action", dtype="float32", shape=shape, entries=entries)


def model(nodes, inputs, outputs, weights=(), opset=20):
    """The bytes of a graph; inputs and outputs are (name, dtype, shape without the batch axis)."""
    from onnx import TensorProto, helper, numpy_helper

    kinds = {"float32": TensorProto.FLOAT, "uint8": TensorProto.UINT8, "int64": TensorProto.INT64}

    def info(name, dtype, shape):
        return helper.make_tensor_value_info(name, kinds[dtype], ["batch", *shape])

    graph = helper.make_graph(
        nodes,
        "tiny",
        [info(*i) for i in inputs],
        [info(*o) for o in outputs],
        [numpy_helper.from_array(v, n) for n, v in weights],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return made.SerializeToString()


def linear(seed=0, n_in=5, n_out=4, opset=20):
    """``action = obs W``, a graph without bias."""
    from onnx import helper

    weight = np.random.default_rng(seed).normal(size=(n_in, n_out)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["obs", "w"], ["action"])]
    sides = [("obs", "float32", (n_in,))], [("action", "float32", (n_out,))]
    return model(nodes, *sides, [("w", weight)], opset)


def parity_of(graph, c, count=16, seed=1):
    """Vectors with the answers of the graph itself, asked one at a time."""
    from embodied_deploy.policy.session import open_session

    rng = np.random.default_rng(seed)
    feed = {}
    for t in c.inputs:
        if t.dtype == "float32":
            feed[t.name] = rng.normal(size=(count, *t.shape)).astype(np.float32)
        else:
            feed[t.name] = rng.integers(0, 200, size=(count, *t.shape)).astype(t.dtype)
    session, names = open_session(graph), [t.name for t in c.outputs]
    rows = [session.run(names, {k: v[i : i + 1] for k, v in feed.items()}) for i in range(count)]
    outputs = {n: np.concatenate([r[k] for r in rows]) for k, n in enumerate(names)}
    return Parity(inputs=feed, reference=outputs, outputs=outputs)


def write(path, c=None, graph=None, **options):
    """Write a package of a contract and a graph, the linear one by default."""
    c = contract() if c is None else c
    graph = linear() if graph is None else graph
    return write_package(path, c, graph, parity_of(graph, c), **options)


def recurrent():
    """Contract and graph of a counter: the state grows by the observation's x, the thrust is the state."""
    from onnx import helper

    nodes = [
        helper.make_node("Add", ["obs", "memory"], ["memory_next"]),
        helper.make_node("Concat", ["memory_next"] * 4, ["action"], axis=1),
    ]
    state = TensorSpec(name="memory", role="state", dtype="float32", shape=(1,), source="memory_next")
    following = TensorSpec(name="memory_next", role="state", dtype="float32", shape=(1,))
    c = contract(inputs=(observation(PATHS[:1]), state), outputs=(action(ROTORS), following))
    one = ("float32", (1,))
    return c, model(nodes, [("obs", *one), ("memory", *one)], [("action", "float32", (4,)), ("memory_next", *one)])


def chunked(horizon=4, execute=2):
    """Contract and graph of chunks: action k of the chunk is (k + 1) x, for each rotor."""
    from onnx import helper

    steps = np.arange(1, horizon + 1, dtype=np.float32).reshape(1, horizon, 1) * np.ones((1, 1, 4), np.float32)
    nodes = [
        helper.make_node("Unsqueeze", ["obs", "axis"], ["wide"]),
        helper.make_node("Mul", ["wide", "steps"], ["action"]),
    ]
    c = contract(
        inputs=(observation(PATHS[:1]),),
        outputs=(action(ROTORS, horizon),),
        chunk=Chunk(horizon=horizon, execute=execute, max_age_s=0.1),
    )
    weights = [("axis", np.array([2])), ("steps", steps)]
    return c, model(nodes, [("obs", "float32", (1,))], [("action", "float32", (horizon, 4))], weights)
