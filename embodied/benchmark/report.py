"""One HTML file about a run that opens without a network and can be attached to an issue."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from embodied.benchmark.plots import Dot, interval_bar, strip_plot
from embodied.benchmark.store import Manifest, RunFolder
from embodied.benchmark.story import Story, read_story
from embodied.benchmark.summary import summarise
from embodied.errors import EmbodiedError, LogError, require
from embodied.record.wall import read_wall

TEMPLATE = "report.html.j2"


class ReportError(EmbodiedError):
    """A report cannot be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One episode of the report.

    Attributes:
      result: its line in results.jsonl.
      wall: its wall-clock figures.
      story: its trace, None when the log is missing or torn.
      trouble: why there is no trace or video.
      video: a data URI or a path relative to the page, empty for none.
    """

    result: Mapping[str, Any]
    wall: Mapping[str, Any]
    story: Story | None
    trouble: str = ""
    video: str = ""


def write_report(path: Path, *, out: Path | None = None, max_videos: int = 12, embed: bool = True) -> Path:
    """Write the report of a run.

    Args:
      path: folder of the run.
      out: the file to write; ``report.html`` in the folder by default.
      max_videos: at most so many videos: failures first, but one success of each task is always among them.
      embed: put videos into the page; else they lie beside it in ``videos/``.

    Returns:
      The file written.

    Raises:
      RunFolderError: the folder is not that of a run.
      ReportError: the run has no results yet.
      MissingExtraError: the extra ``report`` is not installed.
    """
    require("jinja2", "report")
    folder = RunFolder(path)
    manifest, results = folder.manifest(), folder.results()
    if not results:
        raise ReportError(f"{path} holds no results yet. Run its command first: {manifest.command}")
    page = out or path / "report.html"
    cards = [_card(folder, r) for r in results]
    failures = [c for c in cards if not c.result["success"]]
    examples = _one_per_task([c for c in cards if c.result["success"]])
    room = max(0, max_videos - len(examples))
    filmed = [*failures[:room], *examples[:max_videos]]
    films = {c.result["key"]: _film(folder, c, page, embed=embed) for c in filmed}
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(
        _render(
            folder=path,
            manifest=manifest,
            results=results,
            cards=cards,
            failures=[films.get(c.result["key"], c) for c in failures],
            examples=[films.get(c.result["key"], c) for c in examples],
        ),
        encoding="utf-8",
    )
    return page


def _card(folder: RunFolder, result: Mapping[str, Any]) -> Card:
    log = folder.log_path(result["key"])
    try:
        return Card(result=result, wall=read_wall(log), story=read_story(log))
    except LogError as error:
        return Card(result=result, wall=read_wall(log), story=None, trouble=str(error))


def _one_per_task(cards: Sequence[Card]) -> list[Card]:
    first: dict[str, Card] = {}
    for card in cards:
        first.setdefault(card.result["task_id"], card)
    return [first[t] for t in sorted(first)]


def _film(folder: RunFolder, card: Card, page: Path, *, embed: bool) -> Card:
    """Return the card with its video, or with the reason why there is none."""
    from embodied.record.replay import ReplayConfig, replay_episode

    key = card.result["key"]
    video = page.parent / "videos" / f"{key}.mp4"
    if card.story is None or card.story.meta.get("world") == "symbolic":
        return card  # a world of facts has nothing to film
    try:
        if not video.exists():
            video.parent.mkdir(parents=True, exist_ok=True)
            replay_episode(folder.log_path(key), video, ReplayConfig(width_px=480, height_px=270, fps=15.0))
    except EmbodiedError as error:
        return Card(result=card.result, wall=card.wall, story=card.story, trouble=f"No video: {error}")
    source = f"videos/{video.name}"
    if embed:
        source = "data:video/mp4;base64," + base64.b64encode(video.read_bytes()).decode()
    return Card(result=card.result, wall=card.wall, story=card.story, video=source)


def _render(
    *,
    folder: Path,
    manifest: Manifest,
    results: Sequence[Mapping[str, Any]],
    cards: Sequence[Card],
    failures: Sequence[Card],
    examples: Sequence[Card],
) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("embodied.benchmark"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["interval_bar"] = interval_bar
    summary = summarise(results)
    tasks = sorted(summary["by_task"])
    sim_s, wall_s = sum(r["sim_time_s"] for r in results), sum(float(c.wall.get("wall_s", 0.0)) for c in cards)
    return environment.get_template(TEMPLATE).render(
        folder=folder,
        manifest=manifest,
        summary=summary,
        results=results,
        cards=cards,
        failures=failures,
        examples=examples,
        is_privileged=any(r["privileged"] for r in results),
        medians={t: _medians([r for r in results if r["task_id"] == t]) for t in tasks},
        time_plot=strip_plot({t: _dots([r for r in results if r["task_id"] == t]) for t in tasks}, "simulated seconds"),
        skills=_skill_rows([c.story for c in cards if c.story]),
        sim_s=sim_s,
        wall_s=wall_s,
        missing=len(manifest.episodes) - len(results),
    )


def _medians(results: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    return {k: float(median(r[k] for r in results)) for k in ("sim_time_s", "decisions", "skill_steps")}


def _dots(results: Sequence[Mapping[str, Any]]) -> list[Dot]:
    return [
        Dot(
            value=r["sim_time_s"],
            is_good=bool(r["success"]),
            label=f"{r['key']}: {r['outcome']}, {r['sim_time_s']:.1f} s",
        )
        for r in results
    ]


def _skill_rows(stories: Sequence[Story]) -> list[dict[str, Any]]:
    """Count how the calls of every skill ended, the most failing first."""
    calls: dict[str, Counter[str]] = {}
    codes: dict[str, Counter[str]] = {}
    spent_s: dict[str, float] = {}
    for line in (x for s in stories for x in s.lines if x.status != "event"):
        skill = line.what.partition("(")[0]
        calls.setdefault(skill, Counter())[line.status] += 1
        spent_s[skill] = spent_s.get(skill, 0.0) + line.end_s - line.start_s
        if line.status in ("failed", "rejected"):
            codes.setdefault(skill, Counter())[line.detail.partition(":")[0] or line.status] += 1
    rows = [
        {
            "skill": skill,
            "calls": ended.total(),
            "succeeded": ended["succeeded"],
            "failed": ended["failed"],
            "rejected": ended["rejected"],
            "mean_s": spent_s[skill] / ended.total(),
            "codes": ", ".join(f"{code} ×{n}" for code, n in codes.get(skill, Counter()).most_common(3)),
        }
        for skill, ended in calls.items()
    ]
    return sorted(rows, key=lambda r: (-r["failed"] - r["rejected"], r["skill"]))
