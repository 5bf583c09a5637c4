"""Plain C against onnxruntime: on this machine, on arm32 Linux, and the Cortex-M4F build under emulation."""

import ctypes
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx comes with the extra 'export'")
from embodied.export.c_code import emit_c
from embodied.export.c_code.build import (
    ARM32,
    CORTEX_M4,
    HOST,
    HOST_FAST,
    compile_c,
    difference,
    flatten,
    measure_object,
)
from tests import tiny_packages as tiny
from tests.c_policies import emitted, mlp, package, quantized, vector

pytestmark = pytest.mark.skipif(bool(HOST.missing()), reason=HOST.missing())
TARGETS = [
    pytest.param(t, marks=pytest.mark.skipif(bool(t.missing()), reason=t.missing()), id=t.name)
    for t in (HOST, HOST_FAST, ARM32, CORTEX_M4)
]
FORMS = ("fp32", "per tensor", "per channel", "last layer in floats", "matmul")
FP32_RTOL = 1e-5
INT8_ATOL = 2e-6


@pytest.fixture(scope="module", params=FORMS)
def policy(request, tmp_path_factory):
    """A package with 256 parity vectors, its C source and the largest difference allowed."""
    folder = tmp_path_factory.mktemp("policy")
    rng = np.random.default_rng(3)
    data = mlp(
        rng, 17, [64, 48], 4, "Elu" if request.param != "per tensor" else "Relu", use_matmul=request.param == "matmul"
    )
    if request.param != "fp32":
        samples = rng.normal(size=(256, 17)).astype(np.float32)
        exclude = ("Gemm_6",) if request.param == "last layer in floats" else ()
        data = quantized(data, folder, samples, per_channel=request.param == "per channel", exclude=exclude)
    loaded, source = emitted(
        folder, data, 17, 4, count=256, precision="fp32" if request.param == "fp32" else "int8-static"
    )
    return request.param, loaded, source


@pytest.mark.parametrize("target", TARGETS)
def test_c_equals_onnxruntime(policy, target, tmp_path):
    form, loaded, source = policy
    inputs = flatten(loaded.contract, loaded.parity.inputs)
    expected = flatten(loaded.contract, loaded.parity.outputs, outputs=True)
    assert np.ptp(expected, axis=0).min() > 0.1  # an answer that never moves would prove nothing
    allowed = FP32_RTOL * np.abs(expected).max() if form == "fp32" else INT8_ATOL
    assert difference(source, target, inputs, expected, tmp_path) <= allowed


def test_int8_source_holds_no_float_weights(policy):
    form, _, source = policy
    float_bytes = 4 * (17 * 64 + 64 * 48 + 48 * 4)
    if form == "fp32":
        assert source.constant_bytes >= float_bytes
    elif form in ("per tensor", "per channel"):
        assert source.constant_bytes < 0.45 * float_bytes


@pytest.mark.skipif(bool(CORTEX_M4.missing()), reason=CORTEX_M4.missing())
def test_cortex_m4_object_needs_no_heap_and_no_double(policy, tmp_path):
    _, _, source = policy
    made = measure_object(source, CORTEX_M4, tmp_path)
    allowed = {"expf", "tanhf", "fabsf", "rintf", "memcpy", "memset"}
    assert set(made.needs) <= allowed  # no malloc, free, sbrk, printf, and no __aeabi_d* of soft doubles
    assert made.flash_bytes < source.constant_bytes + 6000
    assert made.ram_bytes <= source.memory_bytes + 64


def test_the_library_of_a_board_is_found_missing(tmp_path):
    from embodied.export.c_code import SourceError

    lost = replace(HOST, name="nowhere", compiler="no-such-gcc")
    with pytest.raises(SourceError, match=r"no-such-gcc not installed \(Debian: gcc\)"):
        compile_c(lost, [tmp_path / "a.c"], tmp_path / "a")
    (tmp_path / "a.c").write_text("int main(void) { int unused; return 0; }\n")
    with pytest.raises(SourceError, match="unused"):
        compile_c(HOST, [tmp_path / "a.c"], tmp_path / "a")


class Stepper:
    """The C functions of a policy through a shared object."""

    def __init__(self, source, folder):
        flags = ("-shared", "-fPIC")
        self._library = ctypes.CDLL(str(compile_c(HOST, [source.source], folder / "policy.so", flags)))
        self._prefix = source.prefix

    def __getattr__(self, name):
        return getattr(self._library, f"{self._prefix}_{name}")

    def act(self, observation, action):
        pointer = ctypes.POINTER(ctypes.c_float)
        observation = np.ascontiguousarray(observation, np.float32)
        return self.step(observation.ctypes.data_as(pointer), action.ctypes.data_as(pointer))


def test_step_cuts_to_limits_and_gives_the_safe_action_for_nan(tmp_path):
    safe = (0.25, None, -0.5, 0.0)
    act = vector("action", "action", 4)
    narrow = replace(act, entries=tuple(replace(e, low=-0.5, high=0.5) for e in act.entries))
    loaded, source = emitted(
        tmp_path, mlp(np.random.default_rng(0), 5, [16], 4), 5, 4, safe_action=safe, outputs=(narrow,)
    )
    stepper, action = Stepper(source, tmp_path), np.zeros(4, np.float32)
    for observation, answer in zip(loaded.parity.inputs["obs"], loaded.parity.outputs["action"], strict=True):
        assert stepper.act(observation, action) == 0
        np.testing.assert_allclose(action, np.clip(answer, -0.5, 0.5), rtol=1e-5, atol=1e-6)
    action[:] = 0.125
    for bad in (np.nan, np.inf, -np.inf):
        assert stepper.act(np.array([0, 0, bad, 0, 0]), action) == 1
        np.testing.assert_array_equal(action, np.array([0.25, 0.125, -0.5, 0.0], np.float32))


def test_step_holds_where_the_contract_says_so(tmp_path):
    _, source = emitted(tmp_path, mlp(np.random.default_rng(0), 5, [16], 4), 5, 4, on_stale="hold")
    stepper, action = Stepper(source, tmp_path), np.full(4, 0.125, np.float32)
    assert stepper.act(np.full(5, np.nan), action) == 1
    assert (action == 0.125).all()


def test_step_carries_recurrent_state_until_reset(tmp_path):
    c, data = tiny.recurrent()
    source = emit_c(tiny.write(tmp_path / "counter.policy", c, data), tmp_path / "c")
    stepper, action = Stepper(source, tmp_path), np.zeros(4, np.float32)
    high = c.action.entries[0].high
    seen = []
    for step in range(4):
        assert stepper.act(np.array([0.25 * high]), action) == 0
        seen.append(float(action[0]) / high)
        if step == 2:
            stepper.reset()
    np.testing.assert_allclose(seen, [0.25, 0.5, 0.75, 0.25], rtol=1e-6)
    assert stepper.act(np.array([np.nan]), action) == 1  # forgets as well
    assert stepper.act(np.array([0.5 * high]), action) == 0
    np.testing.assert_allclose(action, 0.5 * high, rtol=1e-6)


def test_gru_cell_in_int8(tmp_path):
    pytest.importorskip("torch", reason="torch comes with the extra 'export'")
    from embodied.export.package import export_policy
    from embodied_deploy.package.load import load_package
    from tests.export_policies import Recurrent, feed, make

    made = make(Recurrent)
    for one in export_policy(
        made, feed(made, 256, seed=5), tmp_path, precisions=("fp32", "int8-static"), is_forced=True
    ):
        loaded = load_package(one.path)
        source = emit_c(loaded, tmp_path / loaded.contract.precision)
        inputs = flatten(loaded.contract, loaded.parity.inputs)
        expected = flatten(loaded.contract, loaded.parity.outputs, outputs=True)
        assert difference(source, HOST, inputs, expected, tmp_path) <= INT8_ATOL


def test_packages_written_twice_differ_in_their_hash_alone(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, _ = package(tmp_path / "a", mlp(np.random.default_rng(0), 5, [8], 4), 5, 4)
    second, _ = package(tmp_path / "b", mlp(np.random.default_rng(0), 5, [8], 4), 5, 4, version="1.0.1")
    one, two = emit_c(first, tmp_path / "c1"), emit_c(second, tmp_path / "c2")
    assert one.source.read_text() == two.source.read_text()
    assert one.header.read_text() != two.header.read_text()


def _shipped():
    from embodied.policies.registry import POLICIES

    return [
        pytest.param(POLICIES.get(name).path(precision), id=f"{name}-{precision}")
        for name in POLICIES.names()
        for precision in POLICIES.get(name).precisions
    ]


@pytest.mark.parametrize("path", _shipped())
def test_every_shipped_policy_is_written_right_or_refused(path, tmp_path):
    from embodied.export.c_code import UnsupportedGraphError
    from embodied_deploy.package.load import load_package

    loaded = load_package(path, check_parity=False)
    try:
        source = emit_c(loaded, tmp_path / "c")
    except UnsupportedGraphError:
        # The firmware of the quadrotor is what C is for; images and tokens are not.
        assert not loaded.contract.name.startswith("quad-") or loaded.contract.precision == "int8-dynamic"
        assert not (tmp_path / "c").exists()
        return
    inputs = flatten(loaded.contract, loaded.parity.inputs)
    expected = flatten(loaded.contract, loaded.parity.outputs, outputs=True)
    assert difference(source, HOST, inputs, expected, tmp_path) <= loaded.contract.parity_atol
