"""Ed25519 (RFC 8032) verification and public keys, in plain Python: a device needs no cryptography package.

Only public values pass through here, so that constant time is of no concern; signing lives in ``embodied.export``.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from pathlib import Path

from embodied_deploy.errors import PackageError

# RFC 8032, section 5.1: the field, the order of the base point, the curve constant, the base point.
_P = 2**255 - 19
_L = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, _P - 2, _P) % _P
_SQRT_M1 = pow(2, (_P - 1) // 4, _P)
_BASE_Y = 4 * pow(5, _P - 2, _P) % _P

# SubjectPublicKeyInfo of an Ed25519 key (RFC 8410, section 4): this, then the 32 bytes.
_DER_HEAD = bytes.fromhex("302a300506032b6570032100")

Point = tuple[int, int, int, int]
"""Extended coordinates X, Y, Z, T with x = X/Z, y = Y/Z, xy = T/Z."""


def verify(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether ``signature`` (64 bytes) over ``message`` was made with the key of ``public_key`` (32 bytes)."""
    if len(public_key) != 32 or len(signature) != 64:
        return False
    a, r = _decompress(public_key), _decompress(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if a is None or r is None or s >= _L:
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + public_key + message).digest(), "little") % _L
    return _equal(_times(s, _BASE), _add(r, _times(h, a)))


def read_public_key(key: str | Path | bytes) -> bytes:
    """Return the 32 bytes of a public key.

    Args:
      key: the bytes themselves, or a file with a PEM public key or 64 hexadecimal digits.

    Raises:
      PackageError: ``signature``: the file cannot be read or holds no Ed25519 public key.
    """
    if isinstance(key, bytes):
        if len(key) != 32:
            raise PackageError("signature", f"a trusted key has {len(key)} bytes, expected 32.")
        return key
    try:
        text = Path(key).read_text(encoding="ascii")
        if "-----BEGIN" in text:
            body = text.split("-----BEGIN PUBLIC KEY-----")[1].split("-----END PUBLIC KEY-----")[0]
            raw = base64.b64decode("".join(body.split()), validate=True)
            raw = raw[len(_DER_HEAD) :] if raw.startswith(_DER_HEAD) else b""
        else:
            raw = bytes.fromhex(text.strip())
    except (OSError, ValueError, IndexError) as error:
        raise PackageError("signature", f"trusted key {key}: cannot be read ({error}). {_HOW}") from None
    if len(raw) != 32:
        raise PackageError("signature", f"trusted key {key}: holds no Ed25519 public key. {_HOW}")
    return raw


_HOW = "Expected a PEM file that begins with -----BEGIN PUBLIC KEY-----, or 64 hexadecimal digits."


def read_public_keys(keys: Iterable[str | Path | bytes]) -> frozenset[bytes]:
    """Return the bytes of several public keys; see :func:`read_public_key`."""
    return frozenset(read_public_key(k) for k in keys)


def _decompress(data: bytes) -> Point | None:
    """Return the point of 32 bytes (RFC 8032, section 5.1.3), None when there is none."""
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    if y >= _P:
        return None
    u, v = (y * y - 1) % _P, (_D * y * y + 1) % _P
    x = u * pow(v, 3, _P) * pow(u * pow(v, 7, _P), (_P - 5) // 8, _P) % _P
    if v * x * x % _P == -u % _P:
        x = x * _SQRT_M1 % _P
    if v * x * x % _P != u or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = _P - x
    return x, y, 1, x * y % _P


def _add(p: Point, q: Point) -> Point:
    """RFC 8032, section 5.1.4; complete, so it also doubles."""
    a = (p[1] - p[0]) * (q[1] - q[0]) % _P
    b = (p[1] + p[0]) * (q[1] + q[0]) % _P
    c = 2 * p[3] * q[3] * _D % _P
    d = 2 * p[2] * q[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _times(scalar: int, point: Point) -> Point:
    result = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            result = _add(result, point)
        point = _add(point, point)
        scalar >>= 1
    return result


def _equal(p: Point, q: Point) -> bool:
    return (p[0] * q[2] - q[0] * p[2]) % _P == 0 and (p[1] * q[2] - q[1] * p[2]) % _P == 0


def _base() -> Point:
    point = _decompress(_BASE_Y.to_bytes(32, "little"))
    assert point is not None
    return point


_BASE = _base()
