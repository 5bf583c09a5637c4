"""Writing and loading packages. A file either loads as the one that was written, or is refused with a reason.

A package is a zip with stored entries: ``contract.json``, ``policy.onnx``, ``parity.npz``, ``manifest.json`` (sha256 of
those and of any extra files), and ``signature.json`` when it is signed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from embodied_controllers.contract import ActionSpec, ObservationSpec
from embodied_deploy.errors import PackageError
from embodied_deploy.package.archive import pack, read_file, require_canonical, unpack, write_file
from embodied_deploy.package.check import RobotLike, check_contract, check_graph, check_robot
from embodied_deploy.package.codec import canonical, decode_contract, encode_contract, read_json
from embodied_deploy.package.contract import PolicyContract
from embodied_deploy.package.graph import PREFIX, read_graph, stamp_graph
from embodied_deploy.package.parity import Parity, check_parity, check_shapes, decode_parity, encode_parity
from embodied_deploy.package.signature import read_public_keys, verify

CONTRACT, GRAPH, PARITY = "contract.json", "policy.onnx", "parity.npz"
MANIFEST, SIGNATURE = "manifest.json", "signature.json"
SUFFIX = ".policy"
_REQUIRED = (CONTRACT, GRAPH, PARITY, MANIFEST)
_MANIFEST_FORMAT = 1
TrustedKeys = Iterable["str | Path | bytes"]
RobotSide = tuple[ActionSpec, ObservationSpec, str]


class Signer(Protocol):
    """Holds a private key; see ``embodied.export.sign``."""

    @property
    def public_key(self) -> bytes:
        """The 32 bytes of the Ed25519 public key."""
        ...

    def sign(self, message: bytes) -> bytes:
        """Return the 64 bytes of the signature over ``message``."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A package that was not refused.

    Attributes:
      contract: what the policy promises and demands.
      graph: bytes of the ONNX file.
      parity: its parity vectors.
      sha256: of the whole file; names the package in logs.
      signed: whether it carries a signature (which then holds).
      signer: public key of the signature as hexadecimal digits, empty when unsigned.
      trusted: whether the signer is one of the keys that the caller trusts.
      parity_error: largest difference to the parity vectors on this machine; None when it was not asked.
      extras: further files, such as the parity report.
    """

    contract: PolicyContract
    graph: bytes
    parity: Parity
    sha256: str
    signed: bool
    signer: str
    trusted: bool
    parity_error: float | None = None
    extras: Mapping[str, bytes] = field(default_factory=dict)


def write_package(
    path: str | Path,
    contract: PolicyContract,
    graph: bytes,
    parity: Parity,
    *,
    signer: Signer | None = None,
    extras: Mapping[str, bytes] | None = None,
) -> Path:
    """Write a package whole or not at all; the same arguments give the same bytes.

    The graph is stamped with the contract when it carries no stamp yet; one that carries another's is refused. Parity
    is not asked here: load the result with ``check_parity=True``.

    Args:
      path: file to write, ending ``.policy``; replaced when it exists.
      contract: what the policy promises and demands.
      graph: bytes of the ONNX file.
      parity: vectors with the answers of the fp32 policy and of this graph.
      signer: signs it; None leaves it unsigned.
      extras: further files by name.

    Raises:
      PackageError: contract, graph and vectors do not fit each other.
    """
    path = Path(path)
    if path.suffix != SUFFIX:
        raise PackageError("format", f"{path.name}: a package's name ends with {SUFFIX}.")
    check_contract(contract)
    if not any(key.startswith(PREFIX) for key in read_graph(graph).metadata):
        graph = stamp_graph(graph, contract)
    check_graph(contract, read_graph(graph))
    check_shapes(parity, contract)
    files = dict(extras or {})
    bad = [n for n in files if n in (*_REQUIRED, SIGNATURE) or not re.fullmatch(r"[a-z0-9_][a-z0-9_.-]*", n)]
    if bad:
        raise PackageError("format", f"extra files {bad}: use lower-case names that the package does not use itself.")
    files |= {CONTRACT: encode_contract(contract), GRAPH: graph, PARITY: encode_parity(parity)}
    files[MANIFEST] = canonical({"format": _MANIFEST_FORMAT, "sha256": {n: _sha256(d) for n, d in files.items()}})
    if signer is not None:
        files[SIGNATURE] = _signature(signer, files[MANIFEST])
    write_file(path, pack(files))
    return path


def sign_package(path: str | Path, signer: Signer) -> None:
    """Sign the package at ``path`` in place of any signature that it has.

    Raises:
      PackageError: it is not whole.
    """
    path = Path(path)
    files = _read(path, read_file(path))
    files[SIGNATURE] = _signature(signer, files[MANIFEST])
    write_file(path, pack(files))


def load_package(
    path: str | Path,
    *,
    robot: RobotLike | RobotSide | None = None,
    trusted_keys: TrustedKeys | None = None,
    check_parity: bool = True,
    config: Mapping[str, str] | None = None,
) -> Package:
    """Load a package, or say why not.

    Args:
      path: the file.
      robot: what it shall drive: a robot or its spec, or (action spec, observation spec, kind).
      trusted_keys: public keys (files or 32 bytes each) one of which must have signed it. None demands no signature;
        one that is there must hold all the same.
      check_parity: run the parity vectors here; needs onnxruntime.
      config: options of the session that runs them, see :func:`embodied_deploy.policy.session.open_session`.

    Raises:
      PackageError: refused; ``reason`` is one of :data:`embodied_deploy.errors.REASONS`.
      MissingExtraError: onnxruntime is not installed.
    """
    path = Path(path)
    keys = None if trusted_keys is None else read_public_keys(trusted_keys)
    data = read_file(path)
    files = _read(path, data)
    signer = _check_signature(path, files, keys)
    contract = decode_contract(files[CONTRACT])
    check_contract(contract)
    check_graph(contract, read_graph(files[GRAPH]))
    parity = decode_parity(files[PARITY])
    check_shapes(parity, contract)
    if robot is not None:
        _check_robot(contract, robot)
    return Package(
        contract=contract,
        graph=files[GRAPH],
        parity=parity,
        sha256=_sha256(data),
        signed=bool(signer),
        signer=signer.hex(),
        trusted=keys is not None,
        parity_error=_run_parity(files[GRAPH], contract, parity, config) if check_parity else None,
        extras={n: d for n, d in files.items() if n not in (*_REQUIRED, SIGNATURE)},
    )


def _read(path: Path, data: bytes) -> dict[str, bytes]:
    """Return the files of a package, each with the hash that its manifest says."""
    files = unpack(data, str(path))
    missing = [n for n in _REQUIRED if n not in files]
    if missing:
        raise PackageError("missing_file", f"{path}: lacks {', '.join(missing)}. Copy or export it again.")
    manifest = _manifest(path, files[MANIFEST])
    missing = sorted(manifest.keys() - files.keys())
    if missing:
        raise PackageError("missing_file", f"{path}: lacks {', '.join(missing)}. Copy or export it again.")
    unlisted = sorted(files.keys() - manifest.keys() - {MANIFEST, SIGNATURE})
    unlisted += [n for n in (CONTRACT, GRAPH, PARITY) if n not in manifest]
    if unlisted:
        raise PackageError("hash", f"{path}: {', '.join(unlisted)} not in its manifest. Copy or export it again.")
    for name, expected in manifest.items():
        if (found := _sha256(files[name])) != expected:
            raise PackageError(
                "hash", f"{path}: {name} has sha256 {found[:16]}…, its manifest says {expected[:16]}…: it was changed."
            )
    require_canonical(data, files, str(path))
    return files


def _manifest(path: Path, data: bytes) -> dict[str, str]:
    try:
        value = read_json(data, MANIFEST)
    except PackageError as error:
        raise PackageError("hash", f"{path}: its manifest is broken ({error}). Copy or export it again.") from None
    sums: Any = value.get("sha256") if isinstance(value, dict) else None
    if not isinstance(sums, dict) or set(value) != {"format", "sha256"} or MANIFEST in sums or SIGNATURE in sums:
        raise PackageError("hash", f"{path}: its manifest is none. Copy or export it again.")
    if value["format"] != _MANIFEST_FORMAT:
        found = value["format"]
        raise PackageError("format", f"{path}: package format {found!r}, this loader reads {_MANIFEST_FORMAT}.")
    return {str(k): str(v) for k, v in sums.items()}


def _signature(signer: Signer, manifest: bytes) -> bytes:
    made = {
        "algorithm": "ed25519",
        "public_key": signer.public_key.hex(),
        "signature": signer.sign(manifest).hex(),
    }
    return canonical(made)


def _check_signature(path: Path, files: Mapping[str, bytes], trusted: frozenset[bytes] | None) -> bytes:
    """Return the public key whose signature holds, empty when unsigned and none is demanded."""
    if SIGNATURE not in files:
        if trusted is None:
            return b""
        raise PackageError("signature", f"{path}: unsigned, and this device takes signed packages only. Sign it.")
    try:
        made = read_json(files[SIGNATURE], SIGNATURE)
        key, signature = bytes.fromhex(made["public_key"]), bytes.fromhex(made["signature"])
        known = made["algorithm"] == "ed25519" and len(made) == 3
    except (PackageError, KeyError, TypeError, ValueError):
        raise PackageError("signature", f"{path}: {SIGNATURE} is not readable. Sign the package again.") from None
    if not known or not verify(key, files[MANIFEST], signature):
        raise PackageError(
            "signature", f"{path}: the signature does not hold: the package or the signature was changed."
        )
    if trusted is not None and key not in trusted:
        raise PackageError(
            "signature",
            f"{path}: signed by {key.hex()[:16]}…, which is none of the {len(trusted)} trusted keys. Add that key to "
            "them if you trust it, or sign the package with yours.",
        )
    return key


def _check_robot(contract: PolicyContract, robot: RobotLike | RobotSide) -> None:
    if isinstance(robot, tuple):
        check_robot(contract, *robot)
    else:
        check_robot(contract, robot.action_spec, robot.observation_spec, robot.kind, robot.dt_ctrl_s)


def _run_parity(graph: bytes, contract: PolicyContract, parity: Parity, config: Mapping[str, str] | None) -> float:
    from embodied_deploy.policy.session import open_session

    session = open_session(graph, config=config)
    names = [t.name for t in contract.outputs]
    return check_parity(parity, contract, lambda feed: dict(zip(names, session.run(names, dict(feed)), strict=True)))


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
