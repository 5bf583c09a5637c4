"""``embodied-edge``: look at packages, run them, time them, install them.

Exit codes:
  0  done
  1  a fault of this program
  2  wrong usage
  3  the package was refused
  4  the robot cannot be reached, or speaks another protocol
  5  the run ended stopped: the policy could not drive for too long
  6  the slots do not allow it now
  7  the package on trial failed and was rolled back
  8  onnxruntime is not installed
  9  a file cannot be read or written
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from embodied_deploy.cli.say import complain
from embodied_deploy.errors import DeployError, LinkError, MissingExtraError, ObservationError, PackageError, UsageError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code. The entry point of the script."""
    args = build_parser().parse_args(arguments)
    try:
        return args.run(args)
    except MissingExtraError as error:
        return _fail(8, error)
    except UsageError as error:
        return _fail(2, error)
    except PackageError as error:
        return _fail(3, error)
    except LinkError as error:
        return _fail(4, error)
    except ObservationError as error:
        return _fail(5, error)
    except DeployError as error:
        return _fail(6, error)
    except OSError as error:
        return _fail(9, error)
    except KeyboardInterrupt:
        return 130


def build_parser() -> argparse.ArgumentParser:
    """Return the parser with all commands."""
    from embodied_deploy.cli import bench, inspect, run, slots

    parser = argparse.ArgumentParser(
        prog="embodied-edge",
        description="Run trained policies on a device: one package, one robot, one loop.",
        epilog=(__doc__ or "").partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in (inspect, run, bench, slots):
        module.add_commands(commands)
    return parser


def _fail(code: int, error: BaseException) -> int:
    complain(str(error))
    return code


if __name__ == "__main__":
    sys.exit(main())
