"""``install``, ``confirm``, ``rollback`` and ``status``: the two slots of a device."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embodied_deploy.cli.inspect import add_key
from embodied_deploy.cli.say import say
from embodied_deploy.errors import PackageError

if TYPE_CHECKING:
    from embodied_deploy.package.load import Package
    from embodied_deploy.runtime.slots import SlotStore

ROOT = "/var/lib/embodied-edge"


def add_commands(commands: Any) -> None:  # noqa: ANN401
    """Add the commands to the parser."""
    for name, text, run in (
        ("install", "put a package into the slot that does not run, on trial", _install),
        ("confirm", "keep the package that is on trial", _confirm),
        ("rollback", "go back to the package before", _rollback),
        ("status", "say what the slots hold", _status),
    ):
        parser = commands.add_parser(name, help=text)
        if name == "install":
            parser.add_argument("package", metavar="PACKAGE")
        parser.add_argument("--slots", metavar="DIR", default=ROOT, help=f"default: {ROOT}")
        add_key(parser)
        parser.set_defaults(run=run)


def open_store(args: argparse.Namespace) -> SlotStore:
    """Return the store that the options name; it checks packages by the given keys."""
    from embodied_deploy.package.load import load_package
    from embodied_deploy.runtime.slots import SlotStore

    def load(path: Path) -> Package:
        return load_package(path, trusted_keys=args.key)

    return SlotStore(args.slots, load)


def _install(args: argparse.Namespace) -> int:
    store = open_store(args)
    package = store.install(args.package)
    pointer = store.pointer()
    assert pointer is not None
    say(f"{package.contract.name} {package.contract.version} is in slot {pointer.slot}, on trial from the next start")
    return 0


def _confirm(args: argparse.Namespace) -> int:
    say(f"slot {open_store(args).confirm().slot} stays")
    return 0


def _rollback(args: argparse.Namespace) -> int:
    say(f"back to slot {open_store(args).rollback('by command').slot}")
    return 0


def _status(args: argparse.Namespace) -> int:
    from embodied_deploy.runtime.slots import SLOTS

    store = open_store(args)
    pointer = store.pointer()
    slots: dict[str, str] = {}
    for slot in SLOTS:
        try:
            package = store.load_unchecked(slot)
            slots[slot] = f"{package.contract.name} {package.contract.version} {package.sha256[:16]}" if package else ""
        except PackageError as error:
            slots[slot] = str(error)
    say(json.dumps({"current": asdict(pointer) if pointer else None, "slots": slots}, indent=1))
    return 0
