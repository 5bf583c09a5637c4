"""No damage to a package goes unnoticed: flipped bits, cuts, growth, swapped stretches, anywhere in the file."""

import functools
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embodied_deploy.errors import REASONS, PackageError
from embodied_deploy.package.load import load_package
from tests import tiny_packages as tiny

pytest.importorskip("cryptography", reason="cryptography comes with the extra 'export'")

from embodied.export.sign import SigningKey

KEY = SigningKey(bytes(32))


@functools.cache
def whole(signed):
    with tempfile.TemporaryDirectory() as folder:
        path = tiny.write(Path(folder) / "tiny.policy", signer=KEY if signed else None)
        load_package(path)
        return path.read_bytes()


def refused(data, **options):
    """The reason; fails when the bytes load."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tiny.policy"
        path.write_bytes(data)
        with pytest.raises(PackageError) as error:
            load_package(path, check_parity=False, **options)
    assert error.value.reason in REASONS
    assert str(error.value)
    return error.value.reason


POSITION = st.floats(0, 1, exclude_max=True)


@given(place=POSITION, flip=st.integers(1, 255), signed=st.booleans())
@settings(max_examples=300, deadline=None)
def test_a_changed_byte_is_refused(place, flip, signed):
    data = bytearray(whole(signed))
    data[int(place * len(data))] ^= flip
    refused(bytes(data))


def test_every_stretch_of_the_file_is_guarded():
    """One flipped bit in every eleventh byte, so that each header, sum, name and file is met."""
    good = whole(False)
    reasons = set()
    for i in range(0, len(good), 11):
        data = bytearray(good)
        data[i] ^= 1 << i % 8
        reasons.add(refused(bytes(data)))
    assert {"torn", "hash", "missing_file"} <= reasons


@given(place=POSITION, signed=st.booleans())
@settings(max_examples=100, deadline=None)
def test_a_cut_file_is_torn(place, signed):
    good = whole(signed)
    assert refused(good[: int(place * len(good))]) == "torn"


def test_every_short_rest_and_each_last_byte_is_torn():
    good = whole(True)
    for length in [*range(80), *range(len(good) - 80, len(good))]:
        assert refused(good[:length]) == "torn"


@given(tail=st.binary(min_size=1, max_size=80), front=st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_grown_file_is_refused(tail, front):
    good = whole(False)
    refused(tail + good if front else good + tail)


@given(a=POSITION, b=POSITION, size=st.integers(1, 400))
@settings(max_examples=100, deadline=None)
def test_a_zeroed_or_copied_block_is_refused(a, b, size):
    """What a power cut leaves: blocks of zeros, or of another place."""
    good = whole(True)
    i, k = int(a * len(good)), int(b * len(good))
    for block in (bytes(len(good[i : i + size])), good[k : k + len(good[i : i + size])]):
        data = good[:i] + block + good[i + len(block) :]
        if data != good:
            refused(data)


@given(st.binary(max_size=400))
@settings(max_examples=100, deadline=None)
def test_any_other_bytes_are_refused(data):
    refused(data)
