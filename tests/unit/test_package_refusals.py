"""Contract, graph and robot must fit: each way not to has its own reason, also when every hash was made again."""

import dataclasses

import numpy as np
import pytest

from embodied.robots.amr.spec import AMR
from embodied.robots.mobile_manipulator.spec import MOBILE_MANIPULATOR
from embodied.robots.quadrotor.spec import QUADROTOR
from embodied_deploy.errors import PackageError
from embodied_deploy.package.check import check_contract, check_robot
from embodied_deploy.package.codec import encode_contract
from embodied_deploy.package.contract import Chunk, TensorSpec, Training
from embodied_deploy.package.graph import read_graph, stamp_graph
from embodied_deploy.package.load import load_package, write_package
from embodied_deploy.package.parity import Parity
from tests import tiny_packages as tiny
from tests.unit.test_package_files import change, reason_of

replace = dataclasses.replace


def with_entries(c, edit):
    """The contract with the entries of its first input edited."""
    first = c.inputs[0]
    return replace(c, inputs=(replace(first, entries=tuple(edit(list(first.entries)))), *c.inputs[1:]))


def swapped(entries):
    return [entries[1], entries[0], *entries[2:]]


def edited(**changes):
    return lambda entries: [replace(entries[0], **changes), *entries[1:]]


AFTER_EXPORT = {
    "order": lambda c: with_entries(c, swapped),
    "unit": lambda c: with_entries(c, edited(unit="deg")),
    "frame": lambda c: with_entries(c, edited(frame="body")),
    "range": lambda c: with_entries(c, edited(high=20.0)),
    "rate": lambda c: replace(c, rate_hz=50.0),
    "robot": lambda c: replace(c, robot="amr"),
    "opset": lambda c: replace(c, opset=19),
    "tensor": lambda c: replace(c, inputs=(replace(c.inputs[0], name="observation"),)),
}


@pytest.mark.parametrize("reason", AFTER_EXPORT)
def test_a_contract_changed_after_export_is_refused_though_every_hash_is_right(tmp_path, reason):
    path = tiny.write(tmp_path / "tiny.policy")
    changed = AFTER_EXPORT[reason](tiny.contract())
    change(path, lambda files: files.update({"contract.json": encode_contract(changed)}))
    assert reason_of(path) == reason


def test_permuted_actions_and_words_are_refused_too(tmp_path):
    path = tiny.write(tmp_path / "tiny.policy")
    c = tiny.contract()
    turned = replace(c.outputs[0], entries=tuple(reversed(c.outputs[0].entries)))
    for changed in (replace(c, outputs=(turned,)), replace(c, vocabulary={"skills": ("stop", "go")})):
        change(path, lambda files, changed=changed: files.update({"contract.json": encode_contract(changed)}))
        assert reason_of(path) == "order"


def test_the_refusal_shows_what_differs(tmp_path):
    path = tiny.write(tmp_path / "tiny.policy")
    changed = encode_contract(replace(tiny.contract(), rate_hz=50.0))
    change(path, lambda files: files.update({"contract.json": changed}))
    with pytest.raises(PackageError, match=r"graph says .*125\.0.* contract .*50\.0"):
        load_package(path)


def test_a_graph_without_stamps_is_refused(tmp_path):
    path = tiny.write(tmp_path / "tiny.policy")
    change(path, lambda files: files.update({"policy.onnx": tiny.linear()}))
    assert reason_of(path) == "format"


def test_a_graph_stamped_for_another_contract_is_not_written(tmp_path):
    stamped = stamp_graph(tiny.linear(), tiny.contract())
    with pytest.raises(PackageError) as error:
        tiny.write(tmp_path / "x.policy", with_entries(tiny.contract(), swapped), stamped)
    assert error.value.reason == "order"
    assert not list(tmp_path.iterdir())


def test_stamping_twice_keeps_the_last(tmp_path):
    c = tiny.contract()
    twice = stamp_graph(stamp_graph(tiny.linear(), replace(c, rate_hz=50.0)), c)
    assert twice == stamp_graph(tiny.linear(), c)
    assert read_graph(twice).opsets == {"": 20}


def test_weights_listed_as_inputs_are_no_inputs():
    from onnx import TensorProto, helper, load_from_string

    model = load_from_string(tiny.linear())
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [5, 4]))
    assert [t.name for t in read_graph(model.SerializeToString()).inputs] == ["obs"]


@pytest.mark.parametrize("data", [b"", b"\0", b"\x3a\xff", b"\xff" * 40, b"GGUF" * 9])
def test_bytes_that_are_no_graph_are_refused(data):
    with pytest.raises(PackageError) as error:
        read_graph(data)
    assert error.value.reason == "format"


@pytest.mark.parametrize("opset", [13, 16, 22])
def test_an_opset_that_was_not_tested_is_refused(tmp_path, opset):
    with pytest.raises(PackageError) as error:
        tiny.write(tmp_path / "x.policy", replace(tiny.contract(), opset=opset), tiny.linear(opset=opset))
    assert error.value.reason == "opset"


def graph_of(dims):
    """A graph whose input axes are as given; the output follows."""
    from onnx import TensorProto, helper

    sides = [helper.make_tensor_value_info(n, TensorProto.FLOAT, dims) for n in ("obs", "action")]
    graph = helper.make_graph([helper.make_node("Identity", ["obs"], ["action"])], "g", sides[:1], sides[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10).SerializeToString()


@pytest.mark.parametrize("dims", [[1, 4], ["batch", 5], ["batch", 4, 1], ["batch"]])
def test_a_graph_of_another_shape_is_refused(tmp_path, dims):
    four = tiny.contract(inputs=(tiny.observation(tiny.PATHS[:4]),))
    values = np.zeros((8, 4), np.float32)
    vectors = Parity(inputs={"obs": values}, reference={"action": values}, outputs={"action": values})
    with pytest.raises(PackageError) as error:
        write_package(tmp_path / "x.policy", four, graph_of(dims), vectors)
    assert error.value.reason == "tensor"
    write_package(tmp_path / "x.policy", four, graph_of(["batch", 4]), vectors)


def test_weights_in_another_file_are_refused(tmp_path):
    from onnx import external_data_helper, load_from_string

    model = load_from_string(tiny.linear())
    external_data_helper.set_external_data(model.graph.initializer[0], "weights.bin")
    model.graph.initializer[0].ClearField("raw_data")
    vectors = tiny.parity_of(tiny.linear(), C)
    with pytest.raises(PackageError, match="keeps w in another file") as error:
        write_package(tmp_path / "x.policy", C, model.SerializeToString(), vectors)
    assert error.value.reason == "missing_file"


IMAGE = TensorSpec(name="image", role="image", dtype="uint8", shape=(8, 8, 3), source="front_cam")
STATE = TensorSpec(name="memory", role="state", dtype="float32", shape=(1,), source="memory_next")
C = tiny.contract()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"name": "Tiny Policy"}, "format"),
        ({"version": "1"}, "format"),
        ({"precision": "int4"}, "format"),
        ({"rate_hz": 0.0}, "rate"),
        ({"rate_hz": float("nan")}, "format"),
        ({"latency_budget_s": 0.0}, "format"),
        ({"max_observation_age_s": -1.0}, "format"),
        ({"parity_atol": 0.0}, "format"),
        ({"on_late": "fallback"}, "format"),
        ({"inputs": ()}, "format"),
        ({"inputs": (C.inputs[0], C.inputs[0])}, "format"),
        ({"inputs": (replace(C.inputs[0], role="action"),)}, "format"),
        ({"inputs": (replace(C.inputs[0], dtype="uint8"),)}, "tensor"),
        ({"inputs": (replace(C.inputs[0], shape=(6,)),)}, "tensor"),
        ({"inputs": (replace(C.inputs[0], entries=()),)}, "tensor"),
        ({"inputs": (replace(IMAGE, source=""),)}, "tensor"),
        ({"inputs": (replace(IMAGE, shape=(3, 8, 8)),)}, "tensor"),
        ({"inputs": (replace(IMAGE, entries=C.inputs[0].entries),)}, "format"),
        ({"inputs": (C.inputs[0], STATE)}, "tensor"),
        ({"outputs": (C.outputs[0], replace(C.outputs[0], name="second"))}, "format"),
        ({"outputs": (replace(STATE, source=""),)}, "format"),
        ({"kind": "planner"}, "format"),
        ({"safe_action": (0.0,)}, "format"),
        ({"safe_action": (0.0, 0.0, 0.0, 1.0)}, "range"),
        ({"safe_action": (0.0, 0.0, 0.0, float("nan"))}, "format"),
        ({"chunk": Chunk(horizon=4, execute=2, max_age_s=0.1)}, "tensor"),
        ({"outputs": (tiny.action(tiny.ROTORS, 4),)}, "tensor"),
        ({"outputs": (tiny.action(tiny.ROTORS, 4),), "chunk": Chunk(horizon=4, execute=5, max_age_s=0.1)}, "tensor"),
        ({"outputs": (tiny.action(tiny.ROTORS, 4),), "chunk": Chunk(horizon=4, execute=2, max_age_s=0.0)}, "tensor"),
    ],
)
def test_a_contract_that_contradicts_itself_is_refused(changes, reason):
    check_contract(C)
    with pytest.raises(PackageError) as error:
        check_contract(replace(C, **changes))
    assert error.value.reason == reason


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (edited(name="base_pos_world_m.w"), "format"),
        (edited(name="altitude"), "format"),
        (edited(name="base_pos_world_m.y"), "order"),
        (edited(low=10.0), "range"),
        (edited(low=float("-inf")), "format"),
    ],
)
def test_an_entry_that_means_nothing_is_refused(edit, reason):
    with pytest.raises(PackageError) as error:
        check_contract(with_entries(C, edit))
    assert error.value.reason == reason


ARM = tiny.contract(
    robot="mobile_manipulator",
    rate_hz=25.0,
    inputs=(tiny.observation(("joint_pos.arm_0_rad", "joint_vel.arm_0_rad", "signal.gripper_force_n")), IMAGE),
    outputs=(tiny.action(("arm_0_rad", "forward_mps"), low=-0.5, high=0.5),),
    safe_action=(None, 0.0),
    training=Training(recipe="tiny@1", seed=0, commit="0" * 40),
)
ARM = replace(ARM, inputs=(ARM.inputs[0], replace(IMAGE, source="wrist_cam")))


def _check(c, robot):
    check_contract(c)
    check_robot(c, robot.action_spec, robot.observation_spec, robot.kind, robot.dt_ctrl_s)


def _lacking(**changes):
    return replace(MOBILE_MANIPULATOR, observation_spec=replace(MOBILE_MANIPULATOR.observation_spec, **changes))


@pytest.mark.parametrize(
    ("robot", "word"),
    [
        (AMR, "mobile_manipulator"),
        (_lacking(joint_names=("torso_m",)), "arm_0_rad"),
        (_lacking(signals=()), "gripper_force_n"),
        (_lacking(cameras=("head_cam",)), "wrist_cam"),
    ],
)
def test_a_robot_that_lacks_something_is_refused_by_its_name(robot, word):
    _check(ARM, MOBILE_MANIPULATOR)
    with pytest.raises(PackageError, match=word) as error:
        _check(ARM, robot)
    assert error.value.reason == "robot"


def test_actions_that_the_robot_does_not_have_or_take_are_refused():
    for names, high, reason in (
        (("arm_9_rad", "forward_mps"), 0.5, "robot"),
        (("arm_0_rad", "forward_mps"), 0.9, "range"),
    ):
        with pytest.raises(PackageError) as error:
            _check(replace(ARM, outputs=(tiny.action(names, low=-0.5, high=high),)), MOBILE_MANIPULATOR)
        assert error.value.reason == reason


@pytest.mark.parametrize("rate_hz", [30.0, 49.0, 100.0])
def test_a_rate_that_the_robot_cannot_keep_is_refused(rate_hz):
    with pytest.raises(PackageError) as error:
        _check(replace(ARM, rate_hz=rate_hz), MOBILE_MANIPULATOR)
    assert error.value.reason == "rate"


def test_loading_takes_a_robot_or_its_specs(tmp_path):
    path = tiny.write(tmp_path / "tiny.policy")
    load_package(path, robot=QUADROTOR)
    load_package(path, robot=(QUADROTOR.action_spec, QUADROTOR.observation_spec, "quadrotor"))
    assert reason_of(path, robot=AMR) == "robot"
    assert reason_of(path, robot=(QUADROTOR.action_spec, QUADROTOR.observation_spec, "amr")) == "robot"


def test_vectors_that_do_not_belong_to_the_contract_are_not_written(tmp_path):
    good = tiny.parity_of(tiny.linear(), C)
    short = {k: v[:4] for k, v in good.outputs.items()}
    bad = [
        replace(good, inputs={}),
        replace(good, outputs=short),
        replace(good, outputs={"action": good.outputs["action"].astype(np.float64)}),
        replace(good, outputs={"action": good.outputs["action"] * np.nan}),
        Parity(inputs={"obs": good.inputs["obs"][:4]}, reference=short, outputs=short),
    ]
    for vectors in bad:
        with pytest.raises(PackageError) as error:
            write_package(tmp_path / "x.policy", C, tiny.linear(), vectors)
        assert error.value.reason == "parity"


def test_a_graph_that_answers_otherwise_is_refused(tmp_path):
    vectors = tiny.parity_of(tiny.linear(seed=0), C)
    path = write_package(tmp_path / "x.policy", C, tiny.linear(seed=1), vectors)
    assert reason_of(path) == "parity"
    assert load_package(path, check_parity=False).parity_error is None


def test_a_graph_that_is_right_for_one_row_only_is_refused(tmp_path):
    """Batch size 1 is baked into a Reshape: the fault of exports with an example batch of 1."""
    from onnx import helper

    weights = [("shape", np.array([1, 5])), ("w", np.ones((5, 4), np.float32))]
    nodes = [
        helper.make_node("Reshape", ["obs", "shape"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w"], ["action"]),
    ]
    graph = tiny.model(nodes, [("obs", "float32", (5,))], [("action", "float32", (4,))], weights)
    path = tiny.write(tmp_path / "x.policy", graph=graph)
    with pytest.raises(PackageError, match="batch of 16") as error:
        load_package(path)
    assert error.value.reason == "parity"


def test_rows_of_a_batch_must_not_mix(tmp_path):
    """The mean over the batch is the row itself for a batch of one."""
    from onnx import helper

    nodes = [
        helper.make_node("ReduceMean", ["obs", "axis"], ["mean"], keepdims=1),
        helper.make_node("Expand", ["mean", "size"], ["wide"]),
        helper.make_node("Mul", ["wide", "one"], ["action"]),
    ]
    weights = [("axis", np.array([0])), ("size", np.array([1, 4])), ("one", np.ones((1, 4), np.float32))]
    c = tiny.contract(inputs=(tiny.observation(tiny.PATHS[:1]),))
    graph = tiny.model(nodes, [("obs", "float32", (1,))], [("action", "float32", (4,))], weights)
    path = tiny.write(tmp_path / "x.policy", c, graph)
    assert reason_of(path) == "parity"
