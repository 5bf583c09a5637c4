"""Run policy packages on emulated aarch64 boards and compare every answer with this machine's.

    python deploy/arm/run_aarch64.py --cache DIR PACKAGE...
    python deploy/arm/run_aarch64.py --cache DIR --edge run PACKAGE --mode lockstep --seconds 2

The second form is ``embodied-edge`` on a board. Exit code 0: every package gives the same answers within its tolerance;
1: one does not; 3: no emulation here, for the reason given.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from sysroot import BOARDS, Sysroot, SysrootError, command, make_sysroot

HERE = Path(__file__).resolve().parent
PATHS = (HERE.parent, HERE.parent.parent / "controllers")
"""Where ``embodied_deploy`` and ``embodied_controllers`` lie in a checkout."""

CACHE = "EMBODIED_ARM_CACHE"
_TIMEOUT_S = 540.0


def main() -> int:
    """Parse arguments, make the board, run, report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("packages", nargs="*", type=Path, metavar="PACKAGE")
    parser.add_argument(
        "--cache", type=Path, default=os.environ.get(CACHE) or None, help=f"folder of the board; or ${CACHE}"
    )
    parser.add_argument("--board", action="append", choices=sorted(BOARDS), help="default: every one")
    parser.add_argument("--steps", type=int, default=200, help="control periods of the lockstep run")
    parser.add_argument("--sources", type=Path, help="apt sources that serve arm64 (on Ubuntu this machine's do not)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--edge", nargs=argparse.REMAINDER, help="the rest are arguments of embodied-edge on a board")
    args = parser.parse_args()
    if args.cache is None:
        parser.error(f"name a folder by --cache or ${CACHE}; about 270 MB, reused when it exists")
    try:
        sysroot = make_sysroot(Path(args.cache), sources=args.sources)
    except SysrootError as error:
        sys.stderr.write(f"no emulated board: {error}\n")
        return 3
    boards = args.board or list(BOARDS)
    if args.edge is not None:
        start = "import sys; from embodied_deploy.cli.main import main; sys.exit(main())"
        return subprocess.run(command(sysroot, boards[0], PATHS, ["-c", start, *args.edge]), check=False).returncode
    results = [compare(sysroot, board, path, args.steps) for path in args.packages for board in boards]
    if args.json:
        sys.stdout.write(json.dumps({"results": results}) + "\n")
    else:
        sys.stdout.write("".join(_line(r) + "\n" for r in results))
    return 0 if all(r["holds"] for r in results) else 1


def compare(sysroot: Sysroot, board: str, package: Path, steps: int) -> dict[str, Any]:
    """Run one package on a board and here.

    Returns:
      Versions, ``output_difference`` over the parity vectors and ``action_difference`` over the lockstep run, both
      largest absolute differences between board and this machine; ``holds``; on failure ``error`` as well.
    """
    arguments = [str(HERE / "guest.py"), str(package.resolve()), str(steps)]
    result: dict[str, Any] = {"package": package.name, "board": board, "steps": steps, "holds": False}
    try:
        there = _ask(command(sysroot, board, PATHS, arguments), {})
        here = _ask([sys.executable, *arguments], {"PYTHONPATH": os.pathsep.join(map(str, PATHS))})
    except SysrootError as error:
        return result | {"error": str(error)}
    result |= {k: there[k] for k in ("machine", "python", "numpy", "onnxruntime", "precision", "import_s")}
    result |= {k: there[k] for k in ("parity_error", "parity_atol", "foreign_modules", "bare_import_is_light", "modes")}
    result["onnxruntime_here"] = here["onnxruntime"]
    result["output_difference"] = max(
        (_difference(rows, here["outputs"][name]) for name, rows in there["outputs"].items()), default=0.0
    )
    result["action_difference"] = _difference(there["actions"], here["actions"])
    result["vectors"] = max(len(rows) for rows in there["outputs"].values())
    result["holds"] = (
        there["machine"] == "aarch64"
        and not there["foreign_modules"]
        and there["bare_import_is_light"]
        and there["modes"] == here["modes"]
        and (not there["modes"] or "policy" in there["modes"])
        and len(there["actions"]) == len(here["actions"])
        and max(result["output_difference"], result["action_difference"]) <= there["parity_atol"]
    )
    return result


def _ask(arguments: list[str], environment: dict[str, str]) -> dict[str, Any]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    try:
        done = subprocess.run(
            arguments, capture_output=True, text=True, timeout=_TIMEOUT_S, env=clean | environment, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SysrootError(f"{arguments[0]}: {error}") from error
    if done.returncode != 0:
        last = " | ".join(done.stderr.strip().splitlines()[-3:])
        raise SysrootError(f"{Path(arguments[0]).name} ended with {done.returncode}: {last}")
    return json.loads(done.stdout)


def _difference(a: list[list[float]], b: list[list[float]]) -> float:
    """Return the largest absolute difference; infinite where one is no number or a row is missing."""
    if [len(row) for row in a] != [len(row) for row in b]:
        return math.inf
    gaps = [abs(x - y) for row, other in zip(a, b, strict=True) for x, y in zip(row, other, strict=True)]
    return math.inf if any(math.isnan(g) for g in gaps) else max(gaps, default=0.0)


def _line(result: dict[str, Any]) -> str:
    start = f"{result['package']} on {result['board']}: "
    if "error" in result:
        return start + "FAILED, " + result["error"]
    verdict = "equal" if result["holds"] else "DIFFERS"
    return start + (
        f"{verdict}, outputs {result['output_difference']:.2g} over {result['vectors']} vectors, actions "
        f"{result['action_difference']:.2g} over {result['steps']} periods, allowed {result['parity_atol']:.2g}; "
        f"python {result['python']}, onnxruntime {result['onnxruntime']}"
    )


if __name__ == "__main__":
    sys.exit(main())
