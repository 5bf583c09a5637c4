"""The folder of a run: manifest, one result per line, logs and wall-clock sidecars.

OUT/manifest.json          what was run: command, suite, episodes with seeds, planner, world, versions
OUT/results.jsonl          one JSON object per finished episode, in simulated time only
OUT/episodes/KEY.mcap      the episode log
OUT/episodes/KEY.wall.json wall-clock figures, which differ from run to run
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from embodied.benchmark.suites import Episode
from embodied.errors import EmbodiedError


class RunFolderError(EmbodiedError):
    """A run folder is missing, damaged or belongs to another run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a run is. Two manifests with equal :meth:`identity` may share a folder.

    Attributes:
      command: the shell command that makes this run again.
      suite: name of the suite.
      planner: name of the planner, ``openai:<model>`` for a model.
      world: ``mujoco``, ``pybullet`` or ``symbolic``.
      root_seed: the seed the user gave.
      episodes: the rows of the suite.
      options: what was set beyond the defaults.
      versions: project, Python and the libraries that decide a result.
      machine: where it ran; not part of the identity.
    """

    command: str
    suite: str
    planner: str
    world: str
    root_seed: int
    episodes: tuple[Episode, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    machine: Mapping[str, str] = field(default_factory=dict)

    def identity(self) -> dict[str, Any]:
        """Return all that results depend on, the number of episodes aside: a longer run continues a shorter one."""
        return {
            "suite": self.suite,
            "planner": self.planner,
            "world": self.world,
            "seed": self.root_seed,
            "options": dict(self.options),
            "versions": dict(self.versions),
        }


def versions() -> dict[str, str]:
    """Return the versions that decide a result."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for name in ("embodied-stack", "numpy", "mujoco", "pybullet", "numba"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, str]:
    """Describe the machine in a few words, for the report."""
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass  # other systems have no such file; the architecture says enough there
    return {"system": platform.platform(), "cpu": model, "cores": str(os.cpu_count())}


def write_atomic(path: Path, text: str) -> None:
    """Write a whole file or nothing: a reader never sees half of it."""
    part = path.with_name(path.name + ".part")
    with part.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def dump(data: object) -> str:
    """Write JSON the same way every time: one line, sorted keys."""
    return json.dumps(data, sort_keys=True, ensure_ascii=False, allow_nan=False)


class RunFolder:
    """One run on disk.

    Args:
      path: the folder; made by :meth:`open`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.episodes = path / "episodes"
        self._manifest = path / "manifest.json"
        self._results = path / "results.jsonl"

    def open(self, manifest: Manifest) -> dict[str, dict[str, Any]]:
        """Begin or continue a run and return the results that are already there, by episode key.

        Raises:
          RunFolderError: the folder holds something else.
        """
        if self._manifest.exists():
            self._check_same(manifest)
        elif self.path.exists() and any(self.path.iterdir()):
            raise RunFolderError(
                f"{self.path} is not empty and holds no manifest.json, so it is not the folder of a run. "
                "Give another --out."
            )
        self.episodes.mkdir(parents=True, exist_ok=True)
        write_atomic(self._manifest, json.dumps(asdict(manifest), indent=1, sort_keys=True, ensure_ascii=False) + "\n")
        done = self._read_lines()
        # What is left of a torn last line must not swallow the next one.
        self.rewrite(done.values())
        return done

    def _check_same(self, manifest: Manifest) -> None:
        old = self.manifest()
        mine, theirs = manifest.identity(), old.identity()
        differ = [f"{k}: there {theirs[k]!r}, now {mine[k]!r}" for k in mine if mine[k] != theirs[k]]
        if differ:
            raise RunFolderError(
                f"{self.path} holds another run ({'; '.join(differ)}). "
                "Give another --out, or the same arguments to continue it."
            )
        if len(manifest.episodes) < len(old.episodes):
            raise RunFolderError(
                f"{self.path} holds a run of {len(old.episodes)} episodes, now {len(manifest.episodes)} are asked for. "
                f"Give --episodes {len(old.episodes)} or more, or another --out."
            )
        if manifest.episodes[: len(old.episodes)] != old.episodes:
            raise RunFolderError(f"{self.path}: the suite lists other episodes than before. Give another --out.")

    def manifest(self) -> Manifest:
        """Read what was run.

        Raises:
          RunFolderError: there is no manifest, or it cannot be read.
        """
        try:
            data = json.loads(self._manifest.read_text(encoding="utf-8"))
            rows = tuple(Episode(**row) for row in data.pop("episodes"))
            return Manifest(episodes=rows, **data)
        except FileNotFoundError:
            raise RunFolderError(
                f"{self.path} holds no manifest.json. Expected the --out folder of `embodied bench run`."
            ) from None
        except (ValueError, TypeError, KeyError) as error:
            raise RunFolderError(f"{self._manifest} cannot be read ({error}). Run into a new folder.") from error

    def append(self, key: str, result: Mapping[str, Any]) -> None:
        """Add one result; it is on the disk when this returns."""
        with self._results.open("a", encoding="utf-8") as file:
            file.write(dump({"key": key, **result}) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def log_path(self, key: str) -> Path:
        """Return where the log of an episode is, or will be."""
        return self.episodes / f"{key}.mcap"

    def rewrite(self, results: Iterable[Mapping[str, Any]]) -> None:
        """Write all results in the order of the suite, whatever order they finished in."""
        rows = sorted(results, key=_place)
        write_atomic(self._results, "".join(dump(r) + "\n" for r in rows))

    def _read_lines(self) -> dict[str, dict[str, Any]]:
        if not self._results.exists():
            return {}
        lines = self._results.read_text(encoding="utf-8").splitlines()
        done: dict[str, dict[str, Any]] = {}
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
                done[row["key"]] = row
            except (ValueError, TypeError, KeyError) as error:
                if number == len(lines):
                    break  # cut off while it was written: that episode runs again
                raise RunFolderError(
                    f"{self._results}, line {number} cannot be read ({error}). Remove the line."
                ) from error
        return done

    def results(self) -> list[dict[str, Any]]:
        """Return all results in the order of the suite."""
        return sorted(self._read_lines().values(), key=_place)


def _place(result: Mapping[str, Any]) -> tuple[int, str]:
    """Return the place of a result in its suite, which its key begins with."""
    key = str(result["key"])
    return int(key.partition("-")[0]), key
