"""Random networks in plain C against onnxruntime, and random text against the literals."""

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("onnx", reason="onnx comes with the extra 'export'")
from embodied.export.c_code.build import HOST, compile_c, flatten, run_filter
from embodied.export.c_code.literal import c_comment, c_string
from tests.c_policies import emitted, mlp

ACTIVATIONS = {
    "Relu": {},
    "Tanh": {},
    "Sigmoid": {},
    "Elu": {"alpha": 0.7},
    "LeakyRelu": {"alpha": 0.2},
    "Clip": {},
}


@pytest.mark.skipif(bool(HOST.missing()), reason=HOST.missing())
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32 - 1),
    n_in=st.integers(1, 40),
    hidden=st.lists(st.integers(1, 70), min_size=0, max_size=3),
    n_out=st.integers(1, 4),
    activation=st.sampled_from(sorted(ACTIVATIONS)),
    use_matmul=st.booleans(),
    level=st.sampled_from(["-O0", "-O2", "-O3", "-Os"]),  # each sees other bounds and warns of other things
)
def test_any_small_float_network_equals_onnxruntime(
    tmp_path_factory, seed, n_in, hidden, n_out, activation, use_matmul, level
):
    folder = tmp_path_factory.mktemp("policy")
    rng = np.random.default_rng(seed)
    data = mlp(rng, n_in, hidden, n_out, activation, use_matmul=use_matmul, attributes=ACTIVATIONS[activation])
    loaded, source = emitted(folder, data, n_in, n_out, count=16)
    program = compile_c(HOST, [source.source, source.filter], folder / "filter", [level])
    found = run_filter(HOST, program, flatten(loaded.contract, loaded.parity.inputs), n_out)
    expected = loaded.parity.outputs["action"]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


@given(st.text())
def test_no_text_ends_its_literal_or_comment(text):
    literal = c_string(text)
    inner = literal[1:-1]
    assert literal[0] == literal[-1] == '"'
    assert re.fullmatch(r"(?:[A-Za-z0-9 ._/+:=,()\[\]-]|\\[0-7]{3})*", inner)
    decoded = re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8)]), inner.encode())
    assert decoded == text.encode("utf-8")
    assert not set(c_comment(text)) & set('*/\\\n"')
