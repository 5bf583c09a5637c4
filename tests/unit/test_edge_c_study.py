"""The studies of plain C and ARM on the smallest case: their figures exist, and their arithmetic is right."""

import numpy as np
import pytest

from embodied.studies import edge_c


def test_ratio_is_taken_round_by_round():
    rounds = {"session.run": [10.0, 20.0, 40.0], "C": [5.0, 10.0, 60.0]}
    figure = edge_c._ratio("name", rounds, "C", "< 1")
    assert figure.value == 0.5
    assert figure.low == 0.5
    assert figure.high == 1.5
    assert figure.holds


def test_what_cannot_be_measured_does_not_hold():
    figure = edge_c._absent("parity", "no emulator", "<= 1e-5")
    assert not figure.holds
    assert figure.note == "no emulator"


@pytest.mark.slow
def test_a_specimen_goes_through_c_and_back(tmp_path):
    pytest.importorskip("torch", reason="torch comes with the extra 'export'")
    from embodied.export.c_code.build import HOST
    from embodied.export.specimen import write_specimen

    made = write_specimen(tmp_path, (8,))
    again = write_specimen(tmp_path / "again", (8,))
    assert {p: f.read_bytes() for p, f in made.items()} == {p: f.read_bytes() for p, f in again.items()}
    if HOST.missing():
        pytest.skip(HOST.missing())
    package, source = edge_c._emitted(made["int8-static"], tmp_path)
    assert edge_c._c_parity("host", package, source, HOST, "<= 2e-6", tmp_path).holds
    rounds = edge_c._interleaved(edge_c._calls(package, source, tmp_path, {"-O2": HOST}), 2)
    assert {len(r) for r in rounds.values()} == {2}
    assert np.min(list(rounds.values())) > 0
