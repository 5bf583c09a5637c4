"""Every precision quantizes what it should, leaves normaliser and limiter alone, and is refused when it is far off."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from embodied.export.errors import ExportError
from embodied.export.gate import GateError, check_gate, measure_errors
from embodied.export.onnx import to_onnx
from embodied.export.options import ExportOptions, GateLimits
from embodied.export.quantize import _static, narrow_convolutions, quantize
from embodied.export.scopes import Flow, check_protected, float_constants, nodes_below, protected_nodes
from embodied.export.session import run_graph
from tests.export_policies import Convolutional, FoldedMlp, History, Mlp, MultiplyingMlp, Planner, Recurrent, exported

PRECISIONS = ("fp16", "int8-dynamic", "int8-static", "w4a8")
KINDS = [Mlp, Recurrent, History, Convolutional, Planner]
OPEN = GateLimits(mean_of_std=9.0, max_of_range=9.0, agreement=0.0)


def at(kind, precision, **options):
    policy, calibration, model = exported(kind)
    return quantize(model, precision, calibration, policy.contract, ExportOptions(**options))


def errors_of(kind, made, precision="int8-static"):
    policy, calibration, model = exported(kind)
    reference = run_graph(model.SerializeToString(), calibration.holdout)
    got = run_graph(made.SerializeToString(), calibration.holdout, batch=1 if precision == "int8-dynamic" else None)
    return measure_errors(reference, got, policy.contract)


def operators(model):
    return Counter(node.op_type for node in model.graph.node)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_form_at_every_precision(kind, precision):
    policy, calibration, model = exported(kind)
    before = model.SerializeToString()
    made = at(kind, precision)
    assert model.SerializeToString() == before
    assert made.SerializeToString() != before
    check_protected(made, protected_nodes(model))
    for batch in (1, 3, 7):
        part = {k: v[:batch] for k, v in calibration.holdout.items()}
        found = run_graph(made.SerializeToString(), part)
        assert all(found[t.name].shape == (batch, *t.shape) for t in policy.contract.outputs)
    limit = {"fp16": 0.002, "int8-dynamic": 0.02, "int8-static": 0.05, "w4a8": 0.25}[precision]
    assert all(0 < e.mean_of_std < limit for e in errors_of(kind, made, precision) if e.name != "past_out")


@pytest.mark.parametrize("kind", [Mlp, Recurrent])
def test_int8_passes_the_gate_on_inputs_of_mixed_scales(kind):
    for precision in ("int8-dynamic", "int8-static"):
        check_gate(errors_of(kind, at(kind, precision), precision), GateLimits(), precision)


def test_the_quantizer_says_nothing(capfd, caplog):
    for precision in PRECISIONS:
        at(Mlp, precision)
    assert capfd.readouterr() == ("", "")
    assert [r for r in caplog.records if r.levelname in ("WARNING", "ERROR")] == []


def test_weights_get_smaller_and_old_ones_are_gone():
    sizes = {p: at(Convolutional, p).ByteSize() for p in PRECISIONS}
    full = exported(Convolutional)[2].ByteSize()
    assert sizes["fp16"] < 0.6 * full
    assert sizes["int8-static"] < 0.4 * full
    assert sizes["int8-dynamic"] < 0.4 * full
    assert sizes["w4a8"] < 0.3 * full
    for precision in PRECISIONS:
        made = at(Mlp, precision)
        read = {name for node in made.graph.node for name in node.input}
        assert {w.name for w in made.graph.initializer} <= read


def test_four_bits_really_change_the_nodes():
    made = at(Mlp, "w4a8")
    found = [node for node in made.graph.node if node.op_type == "MatMulNBits"]
    assert len(found) == 3
    assert operators(made)["Gemm"] == operators(made)["MatMul"] == 0
    for node in found:
        attributes = {a.name: a.i for a in node.attribute}
        assert (attributes["bits"], attributes["block_size"], attributes["accuracy_level"]) == (4, 32, 4)


def test_cells_are_quantized():
    assert operators(at(Recurrent, "int8-dynamic"))["MatMulInteger"] == 3
    assert operators(at(Recurrent, "w4a8"))["MatMulNBits"] == 3


def test_dynamic_leaves_convolutions_alone():
    assert operators(at(Convolutional, "int8-dynamic"))["Conv"] == 2
    assert operators(at(Convolutional, "int8-dynamic"))["ConvInteger"] == 0


def test_convolutions_over_an_image_and_its_scaling_stay_in_fp32():
    _, _, model = exported(Convolutional)
    narrow = narrow_convolutions(model)
    assert len(narrow) == 1
    made = at(Convolutional, "int8-static")
    producer = {o: node.op_type for node in made.graph.node for o in node.output}
    first, second = (n for n in made.graph.node if n.op_type == "Conv")
    assert [first.name] == narrow
    assert "DequantizeLinear" not in {producer.get(i) for i in first.input}
    assert {producer.get(i) for i in second.input} == {"DequantizeLinear"}
    scaled = {producer.get(i) for n in made.graph.node if n.op_type == "Div" for i in n.input}
    assert "DequantizeLinear" not in scaled
    wanted = at(Convolutional, "int8-static", narrow_convolutions=True)
    assert operators(wanted)["DequantizeLinear"] > operators(made)["DequantizeLinear"]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_excluded_layers_stay(precision):
    made = at(Mlp, precision, exclude=("head",))
    model = exported(Mlp)[2]
    name = "head.weight_Transposed" if precision in ("int8-dynamic", "w4a8") else "head.weight"
    kept, weight = float_constants(made)[name], float_constants(model)["head.weight"]
    shape = (64, 4) if name.endswith("Transposed") else (4, 64)
    kept, weight = np.frombuffer(kept, np.float32).reshape(shape), np.frombuffer(weight, np.float32).reshape(4, 64)
    assert np.array_equal(kept.T if name.endswith("Transposed") else kept, weight)
    assert "body.0.weight" not in float_constants(made)


def test_excluding_the_last_layer_helps():
    plain = errors_of(Mlp, at(Mlp, "int8-static"))[0]
    spared = errors_of(Mlp, at(Mlp, "int8-static", exclude=("head",)))[0]
    assert spared.mean_abs < plain.mean_abs


def test_layers_are_found_by_path_and_by_node():
    model = exported(Mlp)[2]
    whole = nodes_below(model, ["body"])
    assert set(nodes_below(model, ["body.0"])) < set(whole)
    assert nodes_below(model, [whole[0]]) == [whole[0]]
    assert set(nodes_below(model, ["normalizer"])) == {n.name for n in protected_nodes(model)} - set(
        nodes_below(model, ["limiter"])
    )


def test_an_unknown_layer_is_refused_with_the_nearest():
    with pytest.raises(ExportError, match=r"no layer or node 'haed'.*head") as caught:
        at(Mlp, "int8-static", exclude=("haed",))
    assert caught.value.reason == "exclude"


@pytest.mark.parametrize("precision", PRECISIONS)
def test_excluding_everything_is_refused(precision):
    with pytest.raises(ExportError, match="nothing to do in mlp") as caught:
        at(Mlp, precision, exclude=("body", "head"))
    assert caught.value.reason == "nothing_quantized"


def test_an_unknown_precision_is_refused():
    with pytest.raises(ExportError, match="'int3'"):
        at(Mlp, "int3")


# --- normaliser and limiter ------------------------------------------------------------------------------------------


def harmed(made, message, kind=Mlp):
    with pytest.raises(ExportError, match=message) as caught:
        check_protected(made, protected_nodes(exported(kind)[2]))
    assert caught.value.reason == "normalizer"


def test_a_quantized_normaliser_is_refused_and_would_be_useless():
    _, calibration, model = exported(MultiplyingMlp)
    made = _static(model, [], calibration.fitting, ExportOptions())
    harmed(made, "Normaliser and limiter must stay in fp32", MultiplyingMlp)
    proper = errors_of(MultiplyingMlp, at(MultiplyingMlp, "int8-static"))[0]
    assert errors_of(MultiplyingMlp, made)[0].mean_abs > 10 * proper.mean_abs


def test_a_normaliser_folded_into_the_first_layer_is_refused():
    harmed(folded(exported(Mlp)[2]), r"node node_sub \(Sub\) is gone")


def folded(model):
    """Multiply the normaliser into the weights, as a graph optimizer would."""
    import onnx
    from onnx import numpy_helper

    made = onnx.ModelProto()
    made.CopyFrom(model)
    weights = {w.name: w for w in made.graph.initializer}
    mean, std, weight, bias = (
        numpy_helper.to_array(weights[n]) for n in ("normalizer.mean", "normalizer.std", "body.0.weight", "body.0.bias")
    )
    weights["body.0.bias"].CopyFrom(numpy_helper.from_array(bias - weight @ (mean / std), "body.0.bias"))
    weights["body.0.weight"].CopyFrom(numpy_helper.from_array(weight / std, "body.0.weight"))
    for name in nodes_below(model, ["normalizer"]):
        made.graph.node.remove(next(n for n in made.graph.node if n.name == name))
    next(n for n in made.graph.node if n.op_type == "Gemm").input[0] = "observation"
    return made


def test_a_policy_trained_without_normaliser_fails_at_the_gate():
    policy, calibration, _ = exported(Mlp)
    other = FoldedMlp(policy).eval()
    model = to_onnx(other, calibration.feed)
    reference = run_graph(model.SerializeToString(), calibration.holdout)
    for precision in ("int8-dynamic", "int8-static"):
        made = quantize(model, precision, calibration, other.contract)
        got = run_graph(made.SerializeToString(), calibration.holdout, batch=1)
        errors = measure_errors(reference, got, other.contract)
        assert errors[0].mean_of_std > 0.1
        with pytest.raises(GateError, match="mean error of action") as caught:
            check_gate(errors, GateLimits(), precision)
        assert caught.value.errors == errors
        assert caught.value.reason == "gate"


def test_another_constant_in_the_limiter_is_refused():
    made = at(Mlp, "int8-static")
    weight = next(w for w in made.graph.initializer if w.name == "limiter.high")
    weight.raw_data = np.full(4, 2.5, np.float32).tobytes()
    harmed(made, r"constant limiter\.high")


def test_raw_values_shared_with_a_quantized_layer_reach_the_normaliser_whole():
    _, calibration, model = exported(History)
    names = [n.name for n in protected_nodes(model)]
    careless = _static(model, names, calibration.fitting, ExportOptions())
    harmed(careless, "went through DequantizeLinear", History)
    made = at(History, "int8-static")
    check_protected(made, protected_nodes(model))
    node = next(n for n in made.graph.node if n.op_type == "Concat")
    assert node.name in Flow(model).raw_ancestors(names)
    assert list(node.input) == ["observation", "past_in"]
    assert errors_of(History, made)[0].mean_of_std < 0.5 * errors_of(History, careless)[0].mean_of_std


def test_half_precision_does_not_round_raw_inputs():
    made = at(Mlp, "fp16")
    first = next(n for n in made.graph.node if n.op_type == "Sub")
    assert list(first.input) == ["observation", "normalizer.mean"]
    last = next(n for n in made.graph.node if n.op_type == "Mul")
    assert list(last.output) == ["action"]
    huge = {"observation": np.full((1, 12), 1e5, np.float32)}  # infinite in half precision
    assert np.isfinite(run_graph(made.SerializeToString(), huge)["action"]).all()


# --- the gate --------------------------------------------------------------------------------------------------------


def test_the_gate_measures_what_it_says():
    policy = exported(Mlp)[0]
    rng = np.random.default_rng(0)
    reference = {"action": rng.normal(size=(400, 4))}
    got = {"action": reference["action"] + 0.01 * reference["action"].std(axis=0)}
    found = measure_errors(reference, got, policy.contract)[0]
    assert found.mean_of_std == pytest.approx(0.01)
    got["action"][7, 2] = reference["action"][7, 2] + 0.4  # range of the action: 4
    assert measure_errors(reference, got, policy.contract)[0].max_of_range == pytest.approx(0.1)


def test_limits_are_settings():
    policy = exported(Mlp)[0]
    reference = {"action": np.random.default_rng(0).normal(size=(400, 4))}
    errors = measure_errors(reference, {"action": reference["action"] * 1.05}, policy.contract)
    with pytest.raises(GateError, match=r"2\.00% allowed"):
        check_gate(errors, GateLimits(), "int8-static")
    check_gate(errors, GateLimits(mean_of_std=0.1), "int8-static")
    with pytest.raises(GateError, match="largest error"):
        check_gate(errors, GateLimits(mean_of_std=0.1, max_of_range=0.01), "int8-static")


def test_nan_never_passes():
    policy = exported(Mlp)[0]
    reference = {"action": np.random.default_rng(0).normal(size=(40, 4))}
    broken = {"action": np.where(np.arange(40)[:, None] == 3, np.nan, reference["action"])}
    with pytest.raises(GateError, match="nan"):
        check_gate(measure_errors(reference, broken, policy.contract), OPEN, "fp16")


def test_an_action_that_does_not_move_is_judged_by_its_range():
    policy = exported(Mlp)[0]
    reference = {"action": np.zeros((40, 4))}
    errors = measure_errors(reference, {"action": np.full((40, 4), 1e-4)}, policy.contract)
    assert errors[0].mean_of_std == pytest.approx(1e-4 / 0.04, rel=1e-3)


def test_scores_are_judged_by_their_choice():
    policy = exported(Planner)[0]
    rng = np.random.default_rng(0)
    reference = {"skill": rng.normal(size=(100, 5)), "place": rng.normal(size=(100, 7))}
    scaled = {k: 3.0 * v + 1.0 for k, v in reference.items()}
    check_gate(measure_errors(reference, scaled, policy.contract), GateLimits(), "int8-static")
    scaled["place"][:3] = np.roll(scaled["place"][:3], 1, axis=1)
    with pytest.raises(GateError, match=r"place agrees in 97\.0%"):
        check_gate(measure_errors(reference, scaled, policy.contract), GateLimits(), "int8-static")
    check_gate(measure_errors(reference, scaled, policy.contract), replace(GateLimits(), agreement=0.9), "int8-static")


def test_scores_without_words_are_judged_one_by_one():
    policy = exported(Planner)[0]
    words = {k: v for k, v in policy.contract.vocabulary.items() if k != "place"}
    contract = replace(policy.contract, vocabulary=words)
    rng = np.random.default_rng(0)
    reference = {"skill": rng.normal(size=(100, 5)), "place": rng.normal(size=(100, 7)) - 5.0}
    got = {"skill": reference["skill"], "place": reference["place"][:, ::-1]}  # another order of things out of sight
    check_gate(measure_errors(reference, got, contract), GateLimits(), "int8-static")
    got["place"] = np.where(np.arange(7) == 3, 1.0, reference["place"])  # one is seen that is not there
    with pytest.raises(GateError, match=r"place agrees in 85\.7%"):
        check_gate(measure_errors(reference, got, contract), GateLimits(), "int8-static")
    got["place"] = np.full((100, 7), np.nan)
    with pytest.raises(GateError, match=r"place agrees in 0\.0%"):
        check_gate(measure_errors(reference, got, contract), GateLimits(), "int8-static")
