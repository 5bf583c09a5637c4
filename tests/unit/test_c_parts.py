"""The parts of the C emitter, and what it refuses."""

import ctypes
import subprocess
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx comes with the extra 'export'")
from onnx import helper

from embodied.export.c_code import SourceError, UnsupportedGraphError, emit_c
from embodied.export.c_code.build import HOST, difference
from embodied.export.c_code.helpers import HELPERS
from embodied.export.c_code.literal import c_comment, c_float, c_identifier, c_macro, c_string
from embodied.export.c_code.render import q31
from tests.c_policies import emitted, graph, mlp, package

needs_gcc = pytest.mark.skipif(bool(HOST.missing()), reason=HOST.missing())
RNG = np.random.default_rng


@pytest.fixture(scope="module")
def rounding(tmp_path_factory):
    """The two rounding helpers as a shared object."""
    folder = tmp_path_factory.mktemp("rounding")
    text = "#include <math.h>\n#include <stdint.h>\n" + HELPERS["round_24"] + HELPERS["scale_q31"] + HELPERS["quantize"]
    text = text.replace("static ", "")
    (folder / "rounding.c").write_text(text)
    command = ["gcc", "-O2", "-shared", "-fPIC", str(folder / "rounding.c"), "-o", str(folder / "rounding.so"), "-lm"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(folder / "rounding.so"))


def floats_as_onnxruntime(sums, scale):
    """Requantization in float32: convert, multiply, round halves to even."""
    return np.rint(sums.astype(np.float32) * np.float32(scale)).astype(np.int64)


@needs_gcc
@pytest.mark.parametrize("scale", [0.5, 0.25, 0.001953125, 0.0037, 0.1, 3.7e-5, 1.0, 1.7, 2.0**-20])
def test_fixed_point_equals_float32_in_every_bit(rounding, scale):
    reach = min(2**30, int(500 / scale))
    sums = np.unique(RNG(1).integers(-reach, reach, 4000).astype(np.int32))
    # Sums next to halves decide: there, one float rounding before the integer one shows.
    near = np.rint((np.arange(-400, 400) + 0.5) / scale)
    sums = np.concatenate([sums, near[np.abs(near) < 2**30].astype(np.int32)])
    multiplier, shift = q31(float(np.float32(scale)))
    found = np.array([rounding.scale_q31(int(s), multiplier, shift) for s in sums])
    assert (found == floats_as_onnxruntime(sums, scale)).all()


@needs_gcc
def test_quantize_rounds_halves_to_even_and_saturates(rounding):
    rounding.quantize.argtypes = [ctypes.c_float, ctypes.c_float, *[ctypes.c_int] * 3]
    values = [0.5, 1.5, 2.5, -0.5, -1.5, 300.0, -300.0, float("inf"), float("-inf"), float("nan")]
    found = [rounding.quantize(v, 1.0, 10, 0, 255) for v in values]
    assert found == [10, 12, 12, 10, 8, 255, 0, 255, 0, 0]


def test_q31_is_exact_and_refuses_what_does_not_fit():
    for scale in (np.float32(0.1), np.float32(1e-6), np.float32(3.3)):
        multiplier, shift = q31(float(scale))
        assert multiplier / 2**shift == float(scale)
        assert 2**30 <= multiplier < 2**31
    assert q31(0.0) == (0, 62)
    assert q31(2.0**-40) == (0, 62)
    for bad in (2.0**30, float("inf"), float("nan")):
        with pytest.raises(UnsupportedGraphError, match="requantization scale"):
            q31(bad)


@pytest.mark.parametrize("number", [0.0, 1.0, 0.1, 1e-38, 123456.789, -3.4e38, 1e-45])
def test_float_literals_read_back_as_the_same_bits(number):
    text = c_float(np.float32(number))
    assert text.endswith("f")
    assert np.float32(text[:-1]) == np.float32(number)


def test_text_of_a_file_cannot_leave_its_literal():
    assert c_string('a"; system("x"); //') == '"a\\042\\073 system(\\042x\\042)\\073 //"'
    assert c_string("??/\n\\é") == '"\\077\\077/\\012\\134\\303\\251"'
    assert "*/" not in c_comment("x */ int main")
    assert c_macro("base_pos_world_m.x") == "BASE_POS_WORLD_M_X"
    assert c_identifier("Quad-hover_2") == "quad_hover_2"
    for bad in ("", "2fast", "a b", "a;b", "ä", "x" * 64):
        with pytest.raises(UnsupportedGraphError, match="cannot prefix C names"):
            c_identifier(bad)


def node(*arguments, **attributes):
    return helper.make_node(*arguments, name=f"the_{arguments[0]}", **attributes)


W = np.ones((5, 4), np.float32)
REFUSED = {
    "unknown op": ([node("Sin", ["obs"], ["a"]), helper.make_node("MatMul", ["a", "w"], ["action"])], {"w": W}, "Sin"),
    "axis of softmax": ([node("MatMul", ["obs", "w"], ["a"]), node("Softmax", ["a"], ["action"])], {"w": W}, "Softmax"),
    "wrong weights": ([node("Gemm", ["obs", "w"], ["action"], alpha=0.5)], {"w": W}, "alpha"),
    "bounds that depend on input": (
        [
            helper.make_node("ReduceMax", ["obs"], ["m"], keepdims=0),
            node("Clip", ["obs", "m"], ["c"]),
            helper.make_node("MatMul", ["c", "w"], ["action"]),
        ],
        {"w": W},
        "ReduceMax",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusal_names_node_and_operator(case, tmp_path):
    nodes, weights, word = REFUSED[case]
    with pytest.raises(UnsupportedGraphError, match=r"Node '.*' \(\w+\) cannot be written as plain C") as caught:
        emitted(tmp_path, graph(nodes, weights, 5, 4), 5, 4)
    assert word in str(caught.value)


def test_weights_that_are_not_finite_are_refused(tmp_path):
    _, loaded = package(tmp_path, mlp(RNG(0), 5, [8], 4), 5, 4)
    bad = graph([node("MatMul", ["obs", "w"], ["action"])], {"w": W * np.nan}, 5, 4)
    with pytest.raises(UnsupportedGraphError, match=r"'the_MatMul'.*not finite"):
        emit_c(replace(loaded, graph=bad), tmp_path / "c")


def test_a_graph_that_breaks_its_contract_is_refused(tmp_path):
    _, loaded = package(tmp_path, mlp(RNG(0), 5, [8], 4), 5, 4)
    with pytest.raises(UnsupportedGraphError, match="promises"):
        emit_c(replace(loaded, graph=mlp(RNG(0), 6, [8], 4)), tmp_path / "c")
    with pytest.raises(UnsupportedGraphError, match="not a readable ONNX model"):
        emit_c(replace(loaded, graph=loaded.graph[: len(loaded.graph) // 2]), tmp_path / "c")


def test_dynamic_int8_is_refused_by_its_operator(tmp_path):
    from onnxruntime.quantization import quantize_dynamic

    (tmp_path / "float.onnx").write_bytes(mlp(RNG(0), 5, [8], 4))
    quantize_dynamic(tmp_path / "float.onnx", tmp_path / "int8.onnx")
    with pytest.raises(UnsupportedGraphError, match=r"DynamicQuantizeLinear.*int8-static"):
        emitted(tmp_path, (tmp_path / "int8.onnx").read_bytes(), 5, 4)


def test_policies_of_other_forms_are_refused(tmp_path):
    from tests.tiny_packages import chunked, write

    c, data = chunked()
    path = write(tmp_path / "chunked.policy", c, data)
    with pytest.raises(UnsupportedGraphError, match="chunk True"):
        emit_c(path, tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_a_refused_package_and_a_bad_folder_say_why(tmp_path):
    data = mlp(RNG(0), 5, [8], 4)
    path, loaded = package(tmp_path, data, 5, 4)
    torn = tmp_path / "torn.policy"
    torn.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(SourceError, match="torn"):
        emit_c(torn, tmp_path / "c")
    with pytest.raises(SourceError, match="torn"):
        emit_c(tmp_path / "absent.policy", tmp_path / "c")
    (tmp_path / "file").write_text("")
    with pytest.raises(SourceError, match="cannot be written"):
        emit_c(loaded, tmp_path / "file" / "below")


@needs_gcc
def test_pieces_and_joints_of_vectors(tmp_path):
    ints = {n: np.array([v], np.int64) for n, v in {"one": 1, "three": 3, "last": -2, "far": 2**40, "axis": 1}.items()}
    nodes = [
        helper.make_node("Slice", ["obs", "one", "three", "axis"], ["a"]),
        helper.make_node("Slice", ["obs", "last", "far", "axis"], ["b"]),
        helper.make_node("Split", ["obs"], ["c", "d"], axis=-1, num_outputs=2),  # 3 and 2
        helper.make_node("Add", ["a", "b"], ["ab"]),
        helper.make_node("Mul", ["ab", "d"], ["abd"]),
        helper.make_node("Concat", ["d", "abd"], ["joined"], axis=1),
        helper.make_node("Reshape", ["joined", "shape"], ["square"]),
        helper.make_node("Max", ["square", "floor"], ["cut"]),
        helper.make_node("Flatten", ["cut"], ["action"]),
    ]
    weights = ints | {"shape": np.array([-1, 2, 2]), "floor": np.array([[-0.5, 0.1]], np.float32)}
    loaded, source = emitted(tmp_path, graph(nodes, weights, 5, 4), 5, 4)
    inputs, expected = loaded.parity.inputs["obs"], loaded.parity.outputs["action"]
    assert difference(source, HOST, inputs, expected, tmp_path) == 0.0


@pytest.mark.parametrize(("start", "axis", "why"), [(5, 1, "is empty"), (0, 0, "axis after the batch")])
def test_pieces_that_make_no_sense_are_refused(tmp_path, start, axis, why):
    _, loaded = package(tmp_path, mlp(RNG(0), 5, [8], 4), 5, 4)
    weights = {n: np.array([v], np.int64) for n, v in {"from": start, "to": 9, "axis": axis}.items()}
    nodes = [node("Slice", ["obs", "from", "to", "axis"], ["a"]), helper.make_node("MatMul", ["a", "w"], ["action"])]
    with pytest.raises(UnsupportedGraphError, match=r"'the_Slice' .*" + why):
        emit_c(replace(loaded, graph=graph(nodes, weights | {"w": W}, 5, 4)), tmp_path / "c")


@pytest.mark.parametrize(
    ("zero", "scale", "options", "why"),
    [
        (np.uint16(7), np.float32(0.1), {}, "uint16"),
        (None, np.float32(0.1), {"output_dtype": 3}, "of a named type"),
        (np.uint8(7), np.float32(0.0), {}, "expected a positive number"),
        (np.uint8(7), np.float32(np.nan), {}, "expected a positive number"),
    ],
)
def test_quantizations_that_c_does_not_know_are_refused(tmp_path, zero, scale, options, why):
    _, loaded = package(tmp_path, mlp(RNG(0), 5, [8], 4), 5, 4)
    weights = {"s": scale, "w": W} | ({} if zero is None else {"z": zero})
    last = [] if zero is None else ["z"]
    nodes = [
        node("QuantizeLinear", ["obs", "s", *last], ["q"], **options),
        helper.make_node("DequantizeLinear", ["q", "s", *last], ["d"]),
        helper.make_node("MatMul", ["d", "w"], ["action"]),
    ]
    with pytest.raises(UnsupportedGraphError, match=r"'the_QuantizeLinear' .*" + why):
        emit_c(replace(loaded, graph=graph(nodes, weights, 5, 4, opset=21)), tmp_path / "c")


def test_header_carries_the_contract(tmp_path):
    path, loaded = package(tmp_path, mlp(RNG(0), 5, [8], 4), 5, 4, safe_action=(0.0, None, 0.5, 0.0))
    source = emit_c(path, tmp_path / "c")
    header, body = source.header.read_text(), source.source.read_text()
    assert f'TINY_PACKAGE_SHA256 "{loaded.sha256}"' in header
    assert "TINY_RATE_HZ 125.0f" in header
    assert "#define TINY_OBS_SIGNAL_S3 3 /* 1, none */" in header
    assert "#define TINY_ACT_THRUST_2_N 1 /* N, rotor */" in header
    assert '{"thrust_2_n", "N", "rotor", -5.0f, 5.0f}' in body
    assert "/* action[1] holds */" in body
    assert "action[2] = 0.5f;" in body
    assert emit_c(loaded, tmp_path / "again").source.read_text() == body
