"""``info`` and ``verify``: what is in a package, and may it run here?"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from embodied_deploy.cli.say import say


def add_commands(commands: Any) -> None:  # noqa: ANN401  argparse has no public name for it
    """Add the commands to the parser."""
    info = commands.add_parser("info", help="say what a package is, needs and promises")
    info.add_argument("package", metavar="PACKAGE")
    info.add_argument("--json", action="store_true", help="the whole contract as JSON")
    info.set_defaults(run=_info)
    verify = commands.add_parser("verify", help="check hashes, signature, contract, graph and parity on this machine")
    verify.add_argument("package", metavar="PACKAGE")
    add_key(verify)
    verify.set_defaults(run=_verify)


def add_key(parser: argparse.ArgumentParser) -> None:
    """Add the option that names trusted keys."""
    parser.add_argument(
        "--key",
        action="append",
        metavar="FILE",
        help="public key that the package must be signed with; may be given several times",
    )


def _info(args: argparse.Namespace) -> int:
    from embodied_deploy.package.load import load_package

    package = load_package(args.package, check_parity=False)
    c = package.contract
    if args.json:
        say(json.dumps(asdict(c), indent=1))
        return 0
    rows = [
        ("package", f"{c.name} {c.version}, {c.kind}, {c.precision}, opset {c.opset}"),
        ("sha256", package.sha256),
        ("signed by", package.signer or "nobody"),
        ("robot", c.robot),
        ("rate", f"{c.rate_hz:g} Hz, answer within {c.latency_budget_s * 1e3:g} ms"),
        ("observation", f"not older than {c.max_observation_age_s * 1e3:g} ms, else {c.on_stale}"),
        ("late answer", c.on_late + (f" ({c.fallback})" if c.fallback else "")),
        ("trained by", f"{c.training.recipe}, seed {c.training.seed}, commit {c.training.commit[:12]}"),
    ]
    if c.chunk:
        rows.append(("chunk", f"{c.chunk.horizon} actions, {c.chunk.execute} used, {c.chunk.max_age_s:g} s at most"))
    for side, tensors in (("input", c.inputs), ("output", c.outputs)):
        for t in tensors:
            names = ", ".join(e.name for e in t.entries[:6]) + (" …" if len(t.entries) > 6 else "")
            shape = " x ".join(str(n) for n in t.shape)
            rows.append((side, f"{t.name}: {t.role} {t.dtype} {shape} {t.source or names}".rstrip()))
    for name, value in rows:
        say(f"{name:12} {value}")
    return 0


def _verify(args: argparse.Namespace) -> int:
    from embodied_deploy.package.load import load_package

    package = load_package(args.package, trusted_keys=args.key)
    by = f"signed by {package.signer[:16]}…" if package.signed else "unsigned"
    trust = ", trusted" if package.trusted else ""
    say(f"ok: {package.contract.name} {package.contract.version}, {by}{trust}, parity {package.parity_error:.2e}")
    return 0
