"""The reader of ONNX files against the onnx package, on graphs made node by node."""

import numpy as np
import pytest

from embodied_deploy.errors import PackageError
from embodied_deploy.package.graph import GraphTensor, read_graph, stamp_graph, stamps
from tests import tiny_packages as tiny

onnx = pytest.importorskip("onnx", reason="onnx comes with the extra 'export'")

KINDS = {1: "float32", 2: "uint8", 7: "int64", 10: "float16", 11: "float64", 6: "int32", 9: "bool", 3: "int8"}


def by_onnx(value):
    kind = value.type.tensor_type
    sizes = [d.dim_value if d.HasField("dim_value") else None for d in kind.shape.dim]
    return GraphTensor(
        name=value.name, dtype=KINDS[kind.elem_type], shape=tuple(sizes) if kind.HasField("shape") else None
    )


def random_model(seed):
    """A model with random sides, opsets and metadata; it need not run."""
    rng = np.random.default_rng(seed)
    helper = onnx.helper

    def side(name):
        dims = [
            int(rng.integers(0, 300)) if rng.random() < 0.7 else str(rng.choice(["batch", "n", ""]))
            for _ in range(rng.integers(0, 4))
        ]
        return helper.make_tensor_value_info(name, int(rng.choice(list(KINDS))), None if rng.random() < 0.1 else dims)

    weights = [onnx.numpy_helper.from_array(rng.normal(size=(3, 70)).astype(np.float32), f"w{i}") for i in range(3)]
    nodes = [helper.make_node("Add", ["in0", f"w{i}"], [f"out{i}"], name=f"ü{i}") for i in range(2)]
    then = helper.make_graph([helper.make_node("Constant", [], ["c"], value=weights[0])], "then", [], [])
    nodes.append(helper.make_node("If", ["in0"], ["out2"], then_branch=then, else_branch=then))
    graph = helper.make_graph(
        nodes, "g", [side(f"in{i}") for i in range(3)], [side(f"out{i}") for i in range(3)], weights
    )
    graph.input.append(helper.make_tensor_value_info("w1", 1, [3, 70]))
    opsets = [helper.make_opsetid("", int(rng.integers(1, 300))), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=int(rng.integers(3, 13)))
    helper.set_model_props(model, {f"key{i}": "wert ä" * int(rng.integers(0, 90)) for i in range(3)})
    return model


@pytest.mark.parametrize("seed", range(20))
def test_reads_what_onnx_reads(seed):
    model = random_model(seed)
    info = read_graph(model.SerializeToString())
    assert info.opsets == {o.domain: o.version for o in model.opset_import}
    assert info.metadata == {p.key: p.value for p in model.metadata_props}
    assert info.inputs == tuple(by_onnx(v) for v in model.graph.input if v.name != "w1")
    assert info.outputs == tuple(by_onnx(v) for v in model.graph.output)
    assert info.outside == ()


@pytest.mark.parametrize("seed", range(5))
def test_stamps_change_nothing_else(seed):
    model = random_model(seed)
    stamped = onnx.load_from_string(stamp_graph(model.SerializeToString(), tiny.contract()))
    written = {p.key: p.value for p in stamped.metadata_props}
    assert written == {p.key: p.value for p in model.metadata_props} | stamps(tiny.contract())
    del stamped.metadata_props[:]
    del model.metadata_props[:]
    assert stamped == model


def test_weights_outside_are_found_wherever_they_hang():
    for place in ("initializer", "constant", "branch"):
        model = random_model(0)
        found = {
            "initializer": model.graph.initializer[2],
            "constant": model.graph.node[2].attribute[0].g.node[0].attribute[0].t,
            "branch": model.graph.node[2].attribute[1].g.node[0].attribute[0].t,
        }[place]
        found.data_location = onnx.TensorProto.EXTERNAL
        assert read_graph(model.SerializeToString()).outside == (found.name,)


def test_cut_files_are_refused_or_have_no_other_head():
    """A cut between two fields leaves a shorter message that is valid; its sides cannot be others."""
    data = random_model(1).SerializeToString()
    whole = read_graph(data)
    refused = 0
    for length in range(0, len(data), 7):
        try:
            info = read_graph(data[:length])
        except PackageError:
            refused += 1
        else:
            assert info.inputs == whole.inputs
    assert refused > 50
