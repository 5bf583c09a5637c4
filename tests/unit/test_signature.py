"""Signatures: RFC 8032's own vectors, another implementation, and what a device answers to each kind of forgery."""

import numpy as np
import pytest

from embodied_deploy.errors import PackageError
from embodied_deploy.package.archive import unpack
from embodied_deploy.package.codec import canonical
from embodied_deploy.package.load import load_package, sign_package
from embodied_deploy.package.signature import _L, read_public_key, verify
from tests import tiny_packages as tiny
from tests.unit.test_package_files import change, reason_of

pytest.importorskip("cryptography", reason="cryptography comes with the extra 'export'")

from embodied.export.sign import KeyFileError, SigningKey

# RFC 8032, section 7.1, tests 1 to 3: public key, message, signature.
VECTORS = [
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
        "d25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c"
        "387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc659"
        "4a7c15e9716ed28dc027beceea1ec40a",
    ),
]


@pytest.mark.parametrize(("key", "message", "signature"), VECTORS)
def test_vectors_of_rfc_8032(key, message, signature):
    key, message, signature = bytes.fromhex(key), bytes.fromhex(message), bytes.fromhex(signature)
    assert verify(key, message, signature)
    assert not verify(key, message + b"!", signature)
    # RFC 8032, section 5.1.7: S must be below the order, or a signature could be written in two ways.
    s = int.from_bytes(signature[32:], "little") + _L
    assert not verify(key, message, signature[:32] + s.to_bytes(32, "little"))


def test_agrees_with_cryptography_on_valid_and_broken_signatures():
    rng = np.random.default_rng(0)
    for _ in range(6):
        key, message = SigningKey(rng.bytes(32)), rng.bytes(int(rng.integers(0, 200)))
        signature = key.sign(message)
        assert verify(key.public_key, message, signature)
        broken = bytearray(signature)
        broken[rng.integers(64)] ^= 1 << rng.integers(8)
        assert not verify(key.public_key, message, bytes(broken))
        assert not verify(SigningKey(rng.bytes(32)).public_key, message, signature)


@pytest.mark.parametrize(
    "key", [b"", b"\0" * 31, b"\xff" * 32, (2).to_bytes(32, "little"), b"\x01" + b"\0" * 30 + b"\x80"]
)
def test_what_is_no_point_verifies_nothing(key):
    assert not verify(key, b"", b"\0" * 64)
    assert not verify(bytes.fromhex(VECTORS[0][0]), b"", key + b"\0" * 32)


@pytest.fixture
def key():
    return SigningKey(bytes(range(32)))


@pytest.fixture
def path(tmp_path, key):
    return tiny.write(tmp_path / "tiny.policy", signer=key)


def test_a_signed_package_says_who_signed_it(path, key):
    trusted = load_package(path, trusted_keys=[b"\0" * 32, key.public_key])
    assert (trusted.signed, trusted.signer, trusted.trusted) == (True, key.public_key.hex(), True)
    anyone = load_package(path)
    assert (anyone.signed, anyone.signer, anyone.trusted) == (True, key.public_key.hex(), False)


def test_signing_twice_gives_the_same_bytes(path, key, tmp_path):
    before = path.read_bytes()
    sign_package(path, key)
    assert path.read_bytes() == before
    unsigned = tiny.write(tmp_path / "unsigned.policy")
    sign_package(unsigned, key)
    assert unsigned.read_bytes() == before


def test_keys_are_read_from_files(path, key, tmp_path):
    key.write(tmp_path / "mine.pem")
    (tmp_path / "hex.txt").write_text(key.public_key.hex() + "\n")
    assert load_package(path, trusted_keys=[tmp_path / "mine.pub"]).trusted
    assert load_package(path, trusted_keys=[str(tmp_path / "hex.txt")]).trusted
    assert SigningKey.read(tmp_path / "mine.pem").public_key == key.public_key
    assert (tmp_path / "mine.pem").stat().st_mode & 0o077 == 0


def test_unsigned_wrong_and_untrusted_are_refused(path, key, tmp_path):
    unsigned = tiny.write(tmp_path / "unsigned.policy")
    other = SigningKey.create().public_key
    assert reason_of(unsigned, trusted_keys=[key.public_key]) == "signature"
    assert reason_of(path, trusted_keys=[other]) == "signature"
    assert reason_of(path, trusted_keys=[]) == "signature"
    with pytest.raises(PackageError, match="unsigned"):
        load_package(unsigned, trusted_keys=[key.public_key])
    with pytest.raises(PackageError, match=key.public_key.hex()[:16]):
        load_package(path, trusted_keys=[other])


def test_a_signature_that_is_there_must_hold_also_when_none_is_demanded(path, tmp_path):
    signature = unpack(path.read_bytes(), "test")["signature.json"]
    other = tiny.write(tmp_path / "other.policy", graph=tiny.linear(seed=3))
    change(other, lambda files: files.update({"signature.json": signature}), hashes=False)
    assert reason_of(other) == "signature"


def test_a_manifest_made_again_breaks_the_signature(path, key):
    change(path, lambda files: files.update({"report.json": b"added"}))
    assert reason_of(path) == "signature"
    assert reason_of(path, trusted_keys=[key.public_key]) == "signature"


@pytest.mark.parametrize(
    "text", [b"", b"{}", b"[]", canonical({"algorithm": "rsa", "public_key": "", "signature": ""})]
)
def test_a_signature_that_cannot_be_read_is_refused(path, text):
    change(path, lambda files: files.update({"signature.json": text}), hashes=False)
    assert reason_of(path) == "signature"


def test_bad_key_files_are_named(tmp_path, key):
    for name, content in (
        ("a", b"hello"),
        ("b", b"00"),
        ("c", b"-----BEGIN PUBLIC KEY-----\nAAAA"),
        ("d", b"\xff\xfe"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(PackageError, match=f"trusted key .*{name}") as error:
            read_public_key(tmp_path / name)
        assert error.value.reason == "signature"
        with pytest.raises(KeyFileError, match=name):
            SigningKey.read(tmp_path / name)
    with pytest.raises(PackageError):
        read_public_key(tmp_path / "absent")
    with pytest.raises(PackageError):
        read_public_key(b"short")
    key.write(tmp_path / "mine.pem")
    with pytest.raises(PackageError, match="Expected a PEM file"):
        read_public_key(tmp_path / "mine.pem")
    with pytest.raises(KeyFileError, match="Choose another"):
        key.write(tmp_path / "mine.pem")
