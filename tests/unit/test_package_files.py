"""Package files: same bytes for same content, whole or refused, and what each kind of damage is called."""

import dataclasses
import json
import os
import zipfile

import numpy as np
import pytest

from embodied_deploy.errors import PackageError
from embodied_deploy.package.archive import pack, unpack
from embodied_deploy.package.codec import canonical, decode_contract, encode_contract
from embodied_deploy.package.load import load_package, write_package
from tests import tiny_packages as tiny


@pytest.fixture
def path(tmp_path):
    return tiny.write(tmp_path / "tiny.policy", extras={"report.json": b"{}"})


def reason_of(path, **options):
    with pytest.raises(PackageError) as error:
        load_package(path, **options)
    return error.value.reason


def change(path, edit, hashes=True):
    """Rewrite a package with edited files; the manifest is made again unless told otherwise."""
    files = unpack(path.read_bytes(), "test")
    edit(files)
    if hashes:
        import hashlib

        manifest = json.loads(files["manifest.json"])
        listed = {n: d for n, d in files.items() if n not in ("manifest.json", "signature.json")}
        manifest["sha256"] = {n: hashlib.sha256(d).hexdigest() for n, d in listed.items()}
        files["manifest.json"] = canonical(manifest)
    path.write_bytes(pack(files))


def test_a_package_comes_back_as_it_was_written(path):
    package = load_package(path)
    assert package.contract == tiny.contract()
    assert package.extras == {"report.json": b"{}"}
    assert not package.signed
    assert package.signer == ""
    assert package.parity_error == 0.0
    assert package.parity.count == 16
    np.testing.assert_array_equal(package.parity.outputs["action"], package.parity.reference["action"])


def test_same_content_gives_the_same_bytes(tmp_path):
    first, second = tiny.write(tmp_path / "a.policy"), tiny.write(tmp_path / "b.policy")
    assert first.read_bytes() == second.read_bytes()
    # The graph that comes out is stamped; packing it again changes nothing.
    package = load_package(first)
    again = write_package(tmp_path / "c.policy", package.contract, package.graph, package.parity)
    assert again.read_bytes() == first.read_bytes()


def test_other_tools_can_read_it(path):
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert set(archive.namelist()) == {"contract.json", "manifest.json", "parity.npz", "policy.onnx", "report.json"}
        assert json.loads(archive.read("contract.json"))["rate_hz"] == 125.0
        archive.extract("parity.npz", path.parent)
    with np.load(path.parent / "parity.npz", allow_pickle=False) as vectors:
        assert vectors["inputs/obs"].shape == (16, 5)


def test_graph_is_the_same_to_onnx_with_its_stamps(path):
    import onnx

    model = onnx.load_from_string(load_package(path).graph)
    onnx.checker.check_model(model)
    stamps = {p.key: p.value for p in model.metadata_props}
    assert json.loads(stamps["embodied.rate"]) == [125.0, None]
    del model.metadata_props[:]
    assert model.SerializeToString() == tiny.linear()


def test_repacking_with_another_tool_is_refused(path):
    with zipfile.ZipFile(path) as archive:
        files = {n: archive.read(n) for n in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    assert reason_of(path) == "torn"


@pytest.mark.parametrize("name", ["contract.json", "policy.onnx", "parity.npz", "manifest.json", "report.json"])
def test_a_missing_file_is_named(path, name):
    change(path, lambda files: files.pop(name), hashes=False)
    with pytest.raises(PackageError, match=name) as error:
        load_package(path)
    assert error.value.reason == "missing_file"


@pytest.mark.parametrize("name", ["contract.json", "policy.onnx", "parity.npz", "report.json"])
def test_a_changed_file_is_named(path, name):
    change(path, lambda files: files.update({name: files[name] + b" "}), hashes=False)
    with pytest.raises(PackageError, match=name) as error:
        load_package(path)
    assert error.value.reason == "hash"


def test_a_file_that_the_manifest_does_not_list_is_refused(path):
    change(path, lambda files: files.update({"more.bin": b"1"}), hashes=False)
    assert reason_of(path) == "hash"


@pytest.mark.parametrize(
    "text", [b"[]", b"{}", b"", b"{" * 100_000, b'{"format":1,"sha256":{}}', b'{"format":1,"sha256":3}']
)
def test_a_manifest_that_is_none_is_refused(path, text):
    change(path, lambda files: files.update({"manifest.json": text}), hashes=False)
    assert reason_of(path) == "hash"


def test_a_package_of_another_format_is_refused(path):
    def edit(files):
        manifest = json.loads(files["manifest.json"])
        files["manifest.json"] = canonical(manifest | {"format": 2})

    change(path, edit, hashes=False)
    assert reason_of(path) == "format"


@pytest.mark.parametrize("content", [b"", b"PK", b"\0" * 100, b"PK\x05\x06" + b"\0" * 18, b"PK\x05\x06" + b"\xff" * 18])
def test_what_is_no_package_is_refused(tmp_path, content):
    path = tmp_path / "none.policy"
    path.write_bytes(content)
    assert reason_of(path) in ("torn", "missing_file")
    assert reason_of(tmp_path) == "torn"
    assert reason_of(tmp_path / "absent.policy") == "torn"


def _keys(contract, edit):
    value = json.loads(encode_contract(contract))
    edit(value)
    return canonical(value)


@pytest.mark.parametrize(
    ("edit", "word"),
    [
        (lambda c: c.pop("rate_hz"), "rate_hz"),
        (lambda c: c.update(speed=1), "speed"),
        (lambda c: c.update(format=2), "format 2"),
        (lambda c: c.update(rate_hz="fast"), "rate_hz"),
        (lambda c: c.update(rate_hz=True), "rate_hz"),
        (lambda c: c.update(rate_hz=125), "rate_hz"),
        (lambda c: c.update(rate_hz=10**400), "rate_hz"),
        (lambda c: c.update(opset=20.0), "opset"),
        (lambda c: c.update(kind="pilot"), "kind"),
        (lambda c: c.update(inputs={}), "inputs"),
        (lambda c: c["inputs"][0].pop("source"), r"inputs\[0\].*source"),
        (lambda c: c["inputs"][0]["entries"][2].update(unit=3), r"entries\[2\].unit"),
        (lambda c: c.update(training=[]), "training"),
        (lambda c: c["training"].update(versions=["a"]), "versions"),
        (lambda c: c.update(vocabulary={"skills": "go"}), "vocabulary.skills"),
        (lambda c: c.update(safe_action=[0.0, "x", 0.0, 0.0]), r"safe_action\[1\]"),
    ],
)
def test_a_contract_with_other_keys_or_types_is_refused_by_name(edit, word):
    with pytest.raises(PackageError, match=word) as error:
        decode_contract(_keys(tiny.contract(), edit))
    assert error.value.reason == "format"


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"format":1}', b'{"format":1,"format":1}'])
def test_a_contract_that_is_no_contract_is_refused(text):
    with pytest.raises(PackageError) as error:
        decode_contract(text)
    assert error.value.reason == "format"


def test_contract_round_trip_keeps_every_field():
    chunked, _ = tiny.chunked()
    full = dataclasses.replace(
        chunked,
        safe_action=(None, 0.0, 0.1, None),
        vocabulary={"skills": ("go", "stop"), "empty": ()},
        fallback="hover",
        on_late="fallback",
    )
    assert decode_contract(encode_contract(full)) == full
    assert encode_contract(full).isascii()


def test_a_contract_in_another_spelling_is_refused():
    spaced = json.dumps(json.loads(encode_contract(tiny.contract())), indent=1).encode()
    with pytest.raises(PackageError, match="canonical"):
        decode_contract(spaced)


def test_infinity_does_not_get_into_a_contract(tmp_path):
    c = dataclasses.replace(tiny.contract(), latency_budget_s=float("inf"))
    with pytest.raises(PackageError, match="finite"):
        tiny.write(tmp_path / "x.policy", c)


def test_a_failed_write_leaves_the_old_package_and_no_rest(path, monkeypatch):
    before = path.read_bytes()

    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space"):
        tiny.write(path, graph=tiny.linear(seed=5))
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("name", ["Report.json", "a/b", "policy.onnx", "signature.json", ""])
def test_extra_files_have_plain_names_of_their_own(tmp_path, name):
    with pytest.raises(PackageError, match="extra files"):
        tiny.write(tmp_path / "x.policy", extras={name: b""})


def test_the_ending_says_that_it_is_a_package(tmp_path):
    with pytest.raises(PackageError, match=r"\.policy"):
        tiny.write(tmp_path / "x.zip")
