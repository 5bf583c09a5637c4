"""Sessions and controllers: bound runs equal plain ones, state and chunks move on only when an answer is used."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

from embodied.robots.mobile_manipulator.spec import MOBILE_MANIPULATOR
from embodied.robots.quadrotor.spec import QUADROTOR
from embodied_controllers.contract import RobotState
from embodied_deploy.errors import ObservationError, PackageError, PolicyOutputError
from embodied_deploy.package.load import load_package
from embodied_deploy.policy.controller import PolicyController
from embodied_deploy.policy.sample import Sample
from embodied_deploy.policy.session import PolicySession, all_finite, open_session
from tests import tiny_packages as tiny


def session_of(folder, c=None, graph=None):
    return PolicySession(load_package(tiny.write(folder / "tiny.policy", c, graph)))


def controller_of(folder, made):
    return PolicyController(session_of(folder, *made), QUADROTOR.action_spec, QUADROTOR.observation_spec)


def sample(x=0.01, time_s=1.0):
    state = RobotState(
        time_s=time_s, joint_pos=np.zeros(0), joint_vel=np.zeros(0), base_pos_world_m=np.array([x, 0.2, 0.3])
    )
    return Sample(state=state, last_action=np.zeros(4))


@pytest.mark.parametrize("batch", [1, 2, 3, 32])
def test_every_batch_size_answers_the_parity_vectors(tmp_path, batch):
    session = session_of(tmp_path)
    package = load_package(tmp_path / "tiny.policy")
    x = np.concatenate([package.parity.inputs["obs"]] * 2)[:batch]
    expected = np.concatenate([package.parity.outputs["action"]] * 2)[:batch]
    np.testing.assert_allclose(session.infer({"obs": x})["action"], expected, atol=1e-5)


def test_bound_answers_equal_plain_ones_to_the_last_bit_and_stay(tmp_path):
    session = session_of(tmp_path)
    plain = open_session(load_package(tmp_path / "tiny.policy").graph)
    rng = np.random.default_rng(0)
    kept = []
    for _ in range(20):
        x = rng.normal(size=(1, 5)).astype(np.float32)
        kept.append((session.infer({"obs": x})["action"], plain.run(None, {"obs": x})[0]))
    for bound, expected in kept:
        np.testing.assert_array_equal(bound, expected)


X = np.zeros((1, 5), np.float32)


@pytest.mark.parametrize(
    ("feed", "word"),
    [
        ({}, "expected exactly"),
        ({"obs": X, "more": X}, "more"),
        ({"obs": X.astype(np.float64)}, "float64"),
        ({"obs": X[0]}, r"\(5,\)"),
        ({"obs": np.zeros((1, 6), np.float32)}, r"\(1, 6\)"),
        ({"obs": X * np.nan}, "NaN"),
        ({"obs": np.full((3, 5), np.inf, np.float32)}, "infinity"),
    ],
)
def test_a_feed_that_does_not_fit_is_refused(tmp_path, feed, word):
    with pytest.raises(ObservationError, match=word):
        session_of(tmp_path).infer(feed)


def test_inputs_of_one_feed_have_one_batch_size(tmp_path):
    session = session_of(tmp_path, *tiny.recurrent())
    with pytest.raises(ObservationError, match="batch of 3"):
        session.infer({"obs": np.zeros((2, 1), np.float32), "memory": np.zeros((3, 1), np.float32)})


def test_a_feed_in_another_memory_order_is_read_right(tmp_path):
    session = session_of(tmp_path)
    wide = np.random.default_rng(0).normal(size=(4, 10)).astype(np.float32)[:, ::2]
    rows = np.concatenate([session.infer({"obs": wide[i : i + 1]})["action"] for i in range(4)])
    np.testing.assert_allclose(session.infer({"obs": wide})["action"], rows, atol=1e-5)


def test_all_finite_sees_each_place():
    for bad in (np.nan, np.inf, -np.inf):
        for i in range(7):
            x = np.ones(7, np.float32)
            x[i] = bad
            assert not all_finite(x)
    assert all_finite(np.full(7, 3e38, np.float32))
    assert all_finite(np.zeros((0,), np.float32))


def test_actions_are_clipped_and_placed_by_name(tmp_path):
    spec = QUADROTOR.action_spec
    turned = dataclasses.replace(spec, names=spec.names[::-1])
    forward = PolicyController(session_of(tmp_path), spec, QUADROTOR.observation_spec)
    backward = PolicyController(session_of(tmp_path), turned, QUADROTOR.observation_spec)
    action = forward.act(sample(x=5.0))
    assert action.dtype == np.float64
    assert action.min() >= 0.0
    assert action.max() <= tiny.HIGH_N
    raw = session_of(tmp_path).infer({"obs": np.array([[5.0, 0.2, 0.3, 0.0, 0.0]], np.float32)})["action"][0]
    np.testing.assert_array_equal(action, np.clip(raw.astype(np.float64), 0.0, tiny.HIGH_N))
    np.testing.assert_array_equal(backward.act(sample(x=5.0)), action[::-1])


def test_what_the_policy_does_not_drive_is_nan(tmp_path):
    c = tiny.contract(
        robot="mobile_manipulator",
        rate_hz=25.0,
        inputs=(tiny.observation(("base_pos_world_m.x",)),),
        outputs=(tiny.action(("yaw_rate_radps", "arm_0_rad"), low=-0.5, high=0.5),),
        safe_action=(0.0, None),
    )
    session = session_of(tmp_path, c, tiny.linear(n_in=1, n_out=2))
    spec = MOBILE_MANIPULATOR
    controller = PolicyController(session, spec.action_spec, spec.observation_spec)
    action = controller.act(sample())
    assert action.shape == (14,)
    assert np.flatnonzero(np.isfinite(action)).tolist() == [1, 3]


def test_state_is_carried_and_forgotten(tmp_path):
    controller = controller_of(tmp_path, tiny.recurrent())
    walked = [controller.act(sample())[0] for _ in range(5)]
    np.testing.assert_allclose(walked, [0.01, 0.02, 0.03, 0.04, 0.05], rtol=1e-5)
    controller.reset()
    assert controller.act(sample())[0] == walked[0]


def test_a_refused_observation_moves_nothing(tmp_path):
    controller = controller_of(tmp_path, tiny.recurrent())
    controller.act(sample())
    for _ in range(3):
        with pytest.raises(ObservationError, match=r"base_pos_world_m\.x"):
            controller.act(sample(x=float("nan")))
    assert controller.act(sample())[0] == pytest.approx(0.02)


def test_an_answer_that_is_not_finite_is_not_used_and_does_not_poison_the_state(tmp_path):
    controller = controller_of(tmp_path, tiny.recurrent())
    controller.act(sample(x=3e38))
    with pytest.raises(PolicyOutputError, match=r"memory_next|action"):
        controller.act(sample(x=3e38))
    controller.reset()
    assert controller.act(sample())[0] == pytest.approx(0.01)


def test_chunks_are_followed_then_asked_again(tmp_path):
    controller = controller_of(tmp_path, tiny.chunked(horizon=4, execute=2))
    assert controller.is_due
    assert controller.chunk_age_s(5.0) == float("inf")
    steps = [(sample(0.01, 1.0), 0.01), (sample(0.02, 1.1), 0.02), (sample(0.03, 1.2), 0.03), (sample(0.04, 1.3), 0.06)]
    for given, expected in steps:
        np.testing.assert_allclose(controller.act(given), np.full(4, expected), rtol=1e-6)
    assert controller.chunk_age_s(1.3) == pytest.approx(0.1)
    assert controller.is_due
    assert controller.actions_left == 2
    # Beyond `execute` only when the runtime says so, for an answer that is late; then it ends.
    assert [controller.follow()[0] for _ in range(2)] == pytest.approx([0.09, 0.12])
    with pytest.raises(PolicyOutputError, match="used up"):
        controller.follow()
    controller.reset()
    assert controller.actions_left == 0


def test_a_chunk_survives_an_observation_that_does_not_fit(tmp_path):
    controller = controller_of(tmp_path, tiny.chunked(horizon=4, execute=1))
    controller.act(sample(0.01))
    with pytest.raises(ObservationError):
        controller.act(sample(float("inf")))
    assert controller.follow()[0] == pytest.approx(0.02)


def test_a_planner_has_no_controller(tmp_path):
    c = tiny.contract(
        kind="planner",
        outputs=(dataclasses.replace(tiny.action(tiny.ROTORS), role="score", entries=()),),
        safe_action=(),
        vocabulary={"skills": ("go", "stop", "look", "wait")},
    )
    session = session_of(tmp_path, c)
    assert session.infer({"obs": X})["action"].shape == (1, 4)
    with pytest.raises(PackageError, match="planner"):
        PolicyController(session, QUADROTOR.action_spec, QUADROTOR.observation_spec)


def test_a_session_without_onnxruntime_says_what_to_install():
    code = (
        "import sys; sys.modules['onnxruntime'] = None\n"
        "from embodied_deploy.errors import MissingExtraError\n"
        "from embodied_deploy.policy.session import open_session\n"
        "try:\n    open_session(b'')\nexcept MissingExtraError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "pip install 'embodied-stack[edge]'" in done.stdout


@pytest.mark.parametrize("module", ["package.load", "policy.controller", "policy.session"])
def test_importing_loads_no_runtime(module):
    code = (
        f"import sys, embodied_deploy.{module}\n"
        "heavy = {'onnxruntime', 'onnx', 'torch', 'cryptography', 'scipy', 'embodied'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("graph", [b"", b"no graph", tiny.linear()[:-20]])
def test_a_graph_that_the_runtime_refuses_is_named(graph):
    with pytest.raises(PackageError, match="does not load") as error:
        open_session(graph)
    assert error.value.reason in ("format", "opset")
