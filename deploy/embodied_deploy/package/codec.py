"""Contracts as canonical JSON: one text for one contract, and nothing unknown or missing gets in."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, Union

from embodied_deploy.errors import PackageError
from embodied_deploy.package.contract import FORMAT, PolicyContract


def canonical(value: Any) -> bytes:  # noqa: ANN401 -- anything JSON can hold
    """Return the one JSON text of a value: sorted keys, no spaces, ASCII, shortest floats that read back equal.

    Raises:
      PackageError: ``format``: it holds NaN or infinity, which JSON does not know.
    """
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")
    except ValueError:
        raise PackageError("format", "a number is NaN or infinite; contracts hold finite numbers only.") from None


def read_json(data: bytes, what: str) -> Any:  # noqa: ANN401 -- anything JSON can hold
    """Return the value of a canonical JSON text.

    Raises:
      PackageError: ``format``: not JSON, or not the canonical text of its value.
    """
    try:
        value = json.loads(data)
        same = canonical(value) == data
    except (ValueError, RecursionError, PackageError) as error:
        raise PackageError("format", f"{what}: not readable as JSON ({error}). Export the package again.") from None
    if not same:
        raise PackageError("format", f"{what}: not in canonical form. Write it with embodied_deploy, not by hand.")
    return value


def encode_contract(contract: PolicyContract) -> bytes:
    """Return the canonical JSON of a contract."""
    return canonical(_plain(contract))


def decode_contract(data: bytes) -> PolicyContract:
    """Return the contract of a canonical JSON text.

    Raises:
      PackageError: ``format``: another format version, an unknown or missing key, a value of another type.
    """
    value = read_json(data, "contract.json")
    found = value.get("format") if isinstance(value, dict) else None
    if found != FORMAT:
        raise PackageError("format", f"contract.json: format {found!r}, this loader reads {FORMAT}. Export it again.")
    return _record(value, PolicyContract, "contract")


def _plain(value: Any) -> Any:  # noqa: ANN401 -- record to JSON
    if is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return value


def _record(value: Any, kind: type[Any], where: str) -> Any:  # noqa: ANN401
    if not isinstance(value, dict):
        raise _wrong(value, "an object", where)
    known = {f.name: f for f in fields(kind)}
    unknown, missing = sorted(value.keys() - known.keys()), sorted(known.keys() - value.keys())
    if unknown or missing:
        raise PackageError("format", f"{where}: unknown keys {unknown}, missing keys {missing}. Export it again.")
    hints = typing.get_type_hints(kind)
    return kind(**{name: _value(value[name], hints[name], f"{where}.{name}") for name in known})


def _value(value: Any, hint: Any, where: str) -> Any:  # noqa: ANN401
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if is_dataclass(hint):
        return _record(value, typing.cast("type[Any]", hint), where)
    if origin is Literal:
        if value not in args or isinstance(value, bool):
            raise _wrong(value, f"one of {args}", where)
        return value
    if origin in (Union, types.UnionType):
        inner = [a for a in args if a is not type(None)]
        return None if value is None else _value(value, inner[0], where)
    if origin is tuple:
        if not isinstance(value, list):
            raise _wrong(value, "a list", where)
        return tuple(_value(v, args[0], f"{where}[{i}]") for i, v in enumerate(value))
    if origin is Mapping:
        if not isinstance(value, dict):
            raise _wrong(value, "an object", where)
        return {k: _value(v, args[1], f"{where}.{k}") for k, v in value.items()}
    # An int is no float here: 50 would be written back as 50.0, which is another text.
    if not isinstance(value, hint) or isinstance(value, bool):
        raise _wrong(value, hint.__name__, where)
    return value


def _wrong(value: object, expected: str, where: str) -> PackageError:
    return PackageError("format", f"{where}: got {value!r:.60}, expected {expected}. Export the package again.")
