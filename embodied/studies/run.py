"""Run studies, print their tables and write them where the docs show them."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from embodied.studies.figure import Figure, StudyError
from embodied.studies.registry import STUDIES, TAGS


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyResult:
    """What one study gave.

    Attributes:
      name: its name in the registry.
      quick: whether n was shrunk.
      figures: what it measured; a study that fails gives one figure that does not hold and says why.
    """

    name: str
    quick: bool
    figures: tuple[Figure, ...]

    @property
    def command(self) -> str:
        """The command that makes these figures again."""
        return f"embodied study run {self.name}" + (" --quick" if self.quick else "")

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain JSON data; a value that could not be measured is null."""
        figures = [asdict(f) | {"value": None if math.isnan(f.value) else f.value} for f in self.figures]
        return {"name": self.name, "quick": self.quick, "command": self.command, "figures": figures}


def select(names: Sequence[str], tag: str | None) -> tuple[str, ...]:
    """Return the studies meant by names or by a tag.

    Raises:
      StudyError: neither or both are given, or no study carries the tag.
      UnknownNameError: a name is not registered.
    """
    if bool(names) == bool(tag):
        raise StudyError("Name the studies or give one --tag. `embodied study list` shows both.")
    if tag is None:
        return tuple(STUDIES.entry(n).name for n in names)
    found = STUDIES.names(tag=tag)
    if not found:
        raise StudyError(f"No study carries the tag {tag!r}. Tags: {', '.join(TAGS)}.")
    return found


def run_study(name: str, *, quick: bool, debug: bool = False) -> StudyResult:
    """Run one study in a temporary folder; an exception in it becomes a figure that does not hold.

    Args:
      name: name in the registry.
      quick: shrink n, not the targets.
      debug: let exceptions pass.
    """
    study = STUDIES.get(name)
    out = Path(tempfile.mkdtemp(prefix=f"study-{name}-"))
    try:
        figures = tuple(study(quick, out))
    except Exception as error:
        if debug:
            raise
        figures = (
            Figure(f"{name} runs", 0.0, None, None, ">= 1", 1, note=f"{type(error).__name__}: {error}".splitlines()[0]),
        )
    finally:
        shutil.rmtree(out, ignore_errors=True)
    if not figures:
        figures = (Figure(f"{name} measures something", 0.0, None, None, ">= 1", 0),)
    return StudyResult(name=name, quick=quick, figures=figures)


def number(value: float | None, unit: str = "") -> str:
    """Write a number with four significant digits and its unit; an absent one as a dash."""
    if value is None or math.isnan(value):
        return "–"
    text = f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
    return f"{text} {unit}".strip()


def rows(result: StudyResult) -> list[tuple[str, str, str, str, str, str]]:
    """Return the table of a study: figure, value, interval (95 % unless the note says else), target, n, holds."""
    lines = []
    for f in result.figures:
        interval = "exact" if f.low is None or f.high is None else f"{number(f.low)} … {number(f.high)}"
        name = f"{f.name} ({f.note})" if f.note else f.name
        lines.append((name, number(f.value, f.unit), interval, f.target, str(f.n), "yes" if f.holds else "NO"))
    return lines


def write(result: StudyResult, folder: Path) -> Path:
    """Write ``<name>.md`` and ``<name>.json`` into ``folder`` and return the first.

    A quick run does not replace the figures of a full one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    record, page = folder / f"{result.name}.json", folder / f"{result.name}.md"
    if result.quick and record.exists() and not json.loads(record.read_text())["quick"]:
        return page
    head = "| figure | value | interval | target | n | holds |\n|---|---|---|---|---|---|\n"
    table = "".join("| " + " | ".join(c.replace("|", "\\|") for c in line) + " |\n" for line in rows(result))
    entry = STUDIES.entry(result.name)
    page.write_text(f"# {result.name}\n{entry.summary}\n\n{head}{table}\nMade by `{result.command}`.\n")
    record.write_text(json.dumps(result.as_dict(), indent=1, ensure_ascii=False) + "\n")
    return page


def figures_folder() -> Path:
    """Return ``docs/figures`` of the checkout this package runs from, or ``figures`` here when it is installed."""
    import embodied

    root = Path(embodied.__file__).resolve().parents[1]
    return root / "docs" / "figures" if (root / "pyproject.toml").exists() else Path("figures")


def count(results: Sequence[StudyResult]) -> tuple[int, int]:
    """Return how many figures hold and how many there are."""
    figures = [f for r in results for f in r.figures]
    return sum(bool(f.holds) for f in figures), len(figures)
