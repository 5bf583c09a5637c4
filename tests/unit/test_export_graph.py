"""torch to ONNX: any batch, names of the contract, nothing of this machine inside, disagreements refused."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from embodied.export.errors import ExportError
from embodied.export.onnx import check_parity, check_signature, to_onnx
from embodied.export.scopes import check_normalizers_exist
from embodied_deploy.package.contract import OPSETS
from tests.export_policies import (
    Convolutional,
    History,
    Mlp,
    Planner,
    Recurrent,
    SequenceRecurrent,
    action,
    exported,
    feed,
    make,
    nn,
)

KINDS = [Mlp, Recurrent, History, Convolutional, Planner]


@pytest.mark.parametrize("kind", KINDS)
def test_graph_equals_torch_at_batches_that_are_not_the_examples(kind):
    policy, calibration, model = exported(kind)
    assert check_parity(policy, model, calibration.feed, batches=(1, 2, 3, 5, 7, 64)) < 1e-4


@pytest.mark.parametrize("kind", KINDS)
def test_inputs_and_outputs_are_those_of_the_contract(kind):
    policy, _, model = exported(kind)
    check_signature(model, policy.contract)
    assert [i.name for i in model.graph.input] == [t.name for t in policy.contract.inputs]
    assert {o.domain: o.version for o in model.opset_import}[""] == 18
    assert 18 in OPSETS
    assert all(i.type.tensor_type.shape.dim[0].dim_param == "batch" for i in model.graph.input)
    assert not any(w.external_data for w in model.graph.initializer)


def test_nothing_of_this_machine_is_in_the_graph():
    policy, calibration, model = exported(Mlp)
    text = model.SerializeToString()
    assert b"site-packages" not in text
    assert b".py" not in text
    assert to_onnx(policy, calibration.feed).SerializeToString() == text


def test_export_is_silent(capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        to_onnx(make(Mlp), feed(make(Mlp), 16))
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")


def test_sequence_cells_are_refused_with_what_to_write():
    with pytest.raises(ExportError, match=r"cell is nn\.GRU.*nn\.GRUCell") as caught:
        to_onnx(make(SequenceRecurrent), feed(make(SequenceRecurrent), 8))
    assert caught.value.reason == "recurrent"


def refused(policy, message):
    with pytest.raises(ExportError, match=message) as caught:
        to_onnx(policy, feed(policy, 8))
    assert caught.value.reason == "contract"


def test_forward_must_return_what_the_contract_says():
    policy = make(Mlp)
    right = policy.contract
    policy.contract = replace(right, outputs=(action(3),))
    refused(policy, r"action as \('float32', \(2, 4\)\), the contract wants \('float32', \(2, 3\)\)")
    policy.contract = replace(right, outputs=(action(4), replace(action(4), name="more")))
    refused(policy, "forward returns 1 outputs, the contract wants a tuple of 2")
    policy.contract = replace(right, outputs=(replace(action(4), dtype="int64"),))
    refused(policy, "int64")
    policy.contract = replace(right, opset=12)
    refused(policy, "opset 12")


def test_a_policy_that_does_not_take_the_inputs_is_refused():
    policy = make(Mlp)
    policy.body = nn.Linear(13, 64)
    refused(policy, r"fails on the contract's inputs \{'observation': \(2, 12\)\}: mat1 and mat2")


def test_a_tensor_instead_of_a_tuple_is_refused():
    policy = make(Mlp)
    inner = policy.forward
    policy.forward = lambda observation: inner(observation)[0]
    refused(policy, "forward returns Tensor")


class FixedBatch(Mlp):
    def forward(self, observation):
        return (super().forward(observation)[0].reshape(2, 4),)


def test_a_policy_for_one_batch_size_is_refused():
    policy = FixedBatch().eval()
    with pytest.raises(ExportError, match="static shape of 2") as caught:
        to_onnx(policy, feed(policy, 8))
    assert caught.value.reason == "contract"


class Interrupted(Mlp):
    def forward(self, observation):
        raise KeyboardInterrupt


def test_an_interrupt_within_the_tracer_is_no_fault_of_the_policy():
    policy = Interrupted().eval()
    with pytest.raises(KeyboardInterrupt):
        to_onnx(policy, feed(policy, 8))


class Branching(Mlp):
    def forward(self, observation):
        return super().forward(observation) if observation.sum() > 0 else (observation[:, :4],)


def test_a_policy_that_branches_on_values_is_refused():
    policy = Branching().eval()
    refused(policy, r"data-dependent.*torch\.where")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: replace(c, inputs=c.inputs[::-1]), r"inputs of the graph are \['observation', 'state_in'\]"),
        (lambda c: replace(c, outputs=(replace(c.outputs[0], name="act"), c.outputs[1])), "outputs of the graph"),
        (lambda c: replace(c, inputs=(replace(c.inputs[0], dtype="int64"), c.inputs[1])), "is float32 in the graph"),
        (lambda c: replace(c, inputs=(replace(c.inputs[0], shape=(13,)), c.inputs[1])), r"shape \[12\] in the graph"),
        (lambda c: replace(c, opset=20), "opset 18, the contract 20"),
    ],
)
def test_a_graph_of_another_contract_is_refused(change, message):
    policy, _, model = exported(Recurrent)
    with pytest.raises(ExportError, match=message) as caught:
        check_signature(model, change(policy.contract))
    assert caught.value.reason == "contract"


def test_other_weights_are_not_at_parity():
    policy, calibration, model = exported(Mlp)
    other = make(Mlp, seed=3)
    with pytest.raises(ExportError, match="differs from torch") as caught:
        check_parity(other, model, calibration.feed)
    assert caught.value.reason == "parity"
    nan = {k: np.full_like(v, np.nan) for k, v in calibration.feed.items()}
    with pytest.raises(ExportError, match="nan"):
        check_parity(policy, model, nan)


def test_a_normaliser_without_a_node_is_refused():
    _, _, model = exported(Mlp)
    check_normalizers_exist(
        model, [("normalizer", True), ("limiter", True), ("body", True), ("other.normalizer", False)]
    )
    with pytest.raises(ExportError, match=r"no node of actor\.normalizer is in the graph") as caught:
        check_normalizers_exist(model, [("actor.normalizer", True)])
    assert caught.value.reason == "normalizer"
