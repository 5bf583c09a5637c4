"""Commands that look at things: ``list``, ``replay``, ``view``, ``doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embodied.cli.output import FAILURE, print_json, print_table

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def list_names(
    kind: Annotated[
        str | None,
        typer.Argument(help="scenes, robots, tasks, skills, planners, worlds, suites, studies, recipes, policies …"),
    ] = None,
    tag: Annotated[str | None, typer.Option(help="Only what carries this tag.")] = None,
    as_json: Json = False,
) -> None:
    """List what is registered; without KIND, the kinds."""
    from embodied.benchmark.suites import SUITES
    from embodied.catalog import REGISTRIES
    from embodied.errors import UnknownNameError, nearest_hint
    from embodied.policies.registry import POLICIES
    from embodied.studies.registry import STUDIES
    from embodied.train.registry import RECIPES

    more = (SUITES, STUDIES, RECIPES, POLICIES)
    registries = {**REGISTRIES, **{registry.kind: registry for registry in more}}
    if kind is None:
        kinds = {name: len(registry.names()) for name, registry in sorted(registries.items())}
        if as_json:
            print_json({"kinds": kinds})
        else:
            print_table("Kinds", ("kind", "registered"), [(k, str(n)) for k, n in kinds.items()])
        return
    if kind not in registries:
        raise UnknownNameError(f"There is no kind {kind!r}. {nearest_hint(kind, registries)}")
    entries = [e for e in registries[kind] if tag is None or tag in e.tags]
    if as_json:
        print_json({kind: [{"name": e.name, "tags": sorted(e.tags), "summary": e.summary} for e in entries]})
        return
    print_table(
        kind.capitalize(), ("name", "tags", ""), [(e.name, " ".join(sorted(e.tags)), e.summary) for e in entries]
    )


def replay(
    episode: Annotated[Path, typer.Argument(help="An episode log (.mcap).")],
    video: Annotated[Path | None, typer.Option(help="Write an H.264 video (.mp4) here.")] = None,
    size_px: Annotated[int, typer.Option(min=64, max=1920, help="Height of the video.")] = 360,
    as_json: Json = False,
) -> None:
    """Tell an episode from its log: what was planned, done and true; optionally as a video."""
    from embodied.benchmark.story import read_story, story_lines

    story = read_story(episode)
    if video is not None:
        from embodied.record.replay import ReplayConfig, replay_episode

        replay_episode(episode, video, ReplayConfig(width_px=round(size_px * 8 / 9) * 2, height_px=size_px))
    if as_json:
        print_json(story.as_dict() | {"video": str(video) if video else None})
        return
    for line in story_lines(story):
        print(line)
    if video is not None:
        print(video)


def view(
    scene: Annotated[str, typer.Argument(help="A scene id (`embodied list scenes`) or a scene file (.yaml).")],
    out: Annotated[Path | None, typer.Option(help="Write a picture (.png) or a turning video (.mp4) instead.")] = None,
    size_px: Annotated[int, typer.Option(min=64, max=1920, help="Height of the picture.")] = 480,
) -> None:
    """Show a scene: in a window where there is a display, else as a picture."""
    from embodied.record.viewing import view_scene

    written = view_scene(scene, out, width_px=round(size_px * 3 / 4) * 2, height_px=size_px)
    if written is not None:
        print(written)


def doctor(as_json: Json = False) -> None:
    """Check this installation: versions, extras, graphics routes, threads, plug-ins. Exit 1 if something is broken."""
    from embodied.cli.diagnosis import diagnose

    findings = diagnose()
    if as_json:
        print_json({"ok": all(f.level != "broken" for f in findings), "findings": [f.as_dict() for f in findings]})
    else:
        print_table("embodied doctor", ("", "what", "found", "to mend"), [f.row() for f in findings])
    if any(f.level == "broken" for f in findings):
        raise typer.Exit(FAILURE)
