"""Calibration sets: equal inputs give equal hashes, and what does not fit the contract is refused and named."""

from dataclasses import replace

import numpy as np
import pytest

from embodied.export.calibration import CalibrationSet, load_calibration, save_calibration
from embodied.export.errors import ExportError
from tests.export_policies import Planner, Recurrent, feed


@pytest.fixture(scope="module")
def recurrent():
    return Recurrent()


@pytest.fixture(scope="module")
def planner():
    return Planner()


def refuses(policy, data, message, path):
    with pytest.raises(ExportError, match=message) as caught:
        save_calibration(data, policy.contract, path / "set.npz")
    assert caught.value.reason == "calibration"
    assert not (path / "set.npz").exists()


def test_a_set_comes_back_with_its_hash(recurrent, tmp_path):
    data = feed(recurrent, 80)
    saved = save_calibration(dict(reversed(data.items())), recurrent.contract, tmp_path / "a.npz")
    again = save_calibration(data, recurrent.contract, tmp_path / "b.npz")
    loaded = load_calibration(saved.path, recurrent.contract, sha256=saved.sha256)
    assert saved.sha256 == again.sha256 == loaded.sha256
    assert list(loaded.feed) == ["observation", "state_in"]
    assert all(np.array_equal(loaded.feed[k], data[k]) for k in data)
    data["observation"][3, 2] += 1e-3
    assert save_calibration(data, recurrent.contract, tmp_path / "c.npz").sha256 != saved.sha256


def test_hold_out_is_not_fitted_on(recurrent, tmp_path):
    saved: CalibrationSet = save_calibration(feed(recurrent, 80), recurrent.contract, tmp_path / "a.npz")
    assert len(saved.fitting["observation"]) == 60
    assert len(saved.holdout["observation"]) == 20
    rows = [{row.tobytes() for row in part["observation"]} for part in (saved.fitting, saved.holdout)]
    assert not rows[0] & rows[1]
    assert np.array_equal(saved.holdout["observation"][:5], saved.feed["observation"][15:20])


def test_another_file_under_the_name_is_refused(recurrent, tmp_path):
    saved = save_calibration(feed(recurrent, 80), recurrent.contract, tmp_path / "a.npz")
    with pytest.raises(ExportError, match="another set"):
        load_calibration(saved.path, recurrent.contract, sha256="0" * 64)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 torn", b"words"])
def test_a_torn_file_is_refused(recurrent, tmp_path, content):
    path = tmp_path / "a.npz"
    path.write_bytes(content)
    with pytest.raises(ExportError, match=r"cannot be read as \.npz"):
        load_calibration(path, recurrent.contract)
    with pytest.raises(ExportError, match=r"cannot be read as \.npz"):
        load_calibration(tmp_path / "none.npz", recurrent.contract)


def test_a_single_array_is_refused(recurrent, tmp_path):
    with (tmp_path / "one.npz").open("wb") as file:
        np.save(file, np.zeros((64, 3), np.float32))
    with pytest.raises(ExportError, match="single array"):
        load_calibration(tmp_path / "one.npz", recurrent)


def test_a_file_cut_in_half_is_refused(recurrent, tmp_path):
    saved = save_calibration(feed(recurrent, 80), recurrent.contract, tmp_path / "a.npz")
    saved.path.write_bytes(saved.path.read_bytes()[:4000])
    with pytest.raises(ExportError, match=r"cannot be read as \.npz"):
        load_calibration(saved.path, recurrent.contract)


def test_a_flipped_byte_is_refused(recurrent, tmp_path):
    saved = save_calibration(feed(recurrent, 80), recurrent.contract, tmp_path / "a.npz")
    content = bytearray(saved.path.read_bytes())
    content[1000] ^= 0x40
    saved.path.write_bytes(content)
    with pytest.raises(ExportError, match=r"cannot be read as \.npz|another set"):
        load_calibration(saved.path, recurrent.contract, sha256=saved.sha256)


def test_pickled_objects_are_not_opened(recurrent, tmp_path):
    np.savez(tmp_path / "a.npz", observation=np.array([{"a": 1}] * 80, dtype=object), state_in=np.zeros((80, 24)))
    with pytest.raises(ExportError, match=r"cannot be read as \.npz"):
        load_calibration(tmp_path / "a.npz", recurrent.contract)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: {"observation": d["observation"]}, r"holds \['observation'\], recurrent takes"),
        (lambda d: d | {"reward": d["state_in"]}, "'reward'"),
        (lambda d: d | {"observation": d["observation"].astype(np.float64)}, "is float64, float32 expected"),
        (lambda d: d | {"observation": d["observation"][:, :11]}, r"shape \(11,\), \(12,\) expected"),
        (lambda d: d | {"state_in": d["state_in"][:70]}, "unequal numbers of samples"),
        (lambda d: {k: v[:20] for k, v in d.items()}, "20 samples, at least 64"),
        (lambda d: d | {"observation": np.float32(1.0) * np.ones(())}, "unequal numbers"),
    ],
)
def test_what_does_not_fit_is_refused(recurrent, tmp_path, change, message):
    refuses(recurrent, change(feed(recurrent, 80)), message, tmp_path)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_must_be_finite(recurrent, tmp_path, value):
    data = feed(recurrent, 80)
    data["state_in"][41, 3] = value
    refuses(recurrent, data, "state_in is not finite in sample 41", tmp_path)


def test_values_must_be_in_the_range_of_their_entry(recurrent, tmp_path):
    data = feed(recurrent, 200)
    data["observation"][:2, 5] = 201.0  # one in a hundred may touch the border
    save_calibration(data, recurrent.contract, tmp_path / "ok.npz")
    data["observation"][:, 5] *= 1000.0  # millimetres
    refuses(recurrent, data, r"signal\.s5 spans .* outside of the contract's -200\.\.200", tmp_path)


def test_tokens_must_be_words(planner, tmp_path):
    data = feed(planner, 80)
    save_calibration(data, planner.contract, tmp_path / "ok.npz")
    for wrong in (20, -1):
        data["instruction"][7, 2] = wrong
        refuses(planner, data, r"instruction holds tokens .*, the vocabulary has 20", tmp_path)


def test_images_must_be_bytes(planner, tmp_path):
    data = feed(planner, 80)
    data["camera"] = (data["camera"] / 255.0).astype(np.float32)
    refuses(planner, data, "camera is float32, uint8 expected", tmp_path)


def test_sets_of_another_policy_are_refused(recurrent, planner, tmp_path):
    saved = save_calibration(feed(planner, 80), planner.contract, tmp_path / "a.npz")
    with pytest.raises(ExportError, match="camera"):
        load_calibration(saved.path, recurrent.contract)
    renamed = replace(planner.contract, inputs=planner.contract.inputs[:1])
    with pytest.raises(ExportError, match="instruction"):
        load_calibration(saved.path, renamed)


def test_the_name_must_say_what_it_is(recurrent, tmp_path):
    with pytest.raises(ExportError, match=r"must end in \.npz"):
        save_calibration(feed(recurrent, 80), recurrent.contract, tmp_path / "a.npy")
