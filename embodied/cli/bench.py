"""``embodied bench``: run a suite, compare two runs, write a report."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from embodied.cli.output import note, print_json, print_table

app = typer.Typer(help="Run and judge benchmarks.", no_args_is_help=True, rich_markup_mode=None)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.command("run")
def run(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="Name of a suite; `embodied list suites` shows them.")],
    planner: Annotated[
        str, typer.Option(help="Who plans: oracle, scripted, random, noop, openai:<model> …")
    ] = "oracle",
    episodes: Annotated[
        int | None, typer.Option(min=1, help="How many; the suite's own number by default.", show_default=False)
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 1,
    world: Annotated[str, typer.Option(help="mujoco, pybullet or symbolic.")] = "mujoco",
    out: Annotated[Path | None, typer.Option(help="Folder of the run; an existing one is continued.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Root seed of everything random.")] = 0,
    timeout_s: Annotated[float, typer.Option(min=0.1, help="Wall-clock limit of one episode, in seconds.")] = 600.0,
    ray: Annotated[bool, typer.Option("--ray", help="Hand the episodes to a Ray cluster.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
    as_json: Json = False,
) -> None:
    """Run the episodes of SUITE and print the success rate.

    A run that was interrupted continues when the same command is given again. Episodes that crash or run out of time
    count as not successful.
    """
    from embodied.benchmark.runner import RunConfig, run_suite
    from embodied.benchmark.summary import summary_rows

    config = RunConfig(
        suite=suite,
        planner=planner,
        episodes=episodes,
        workers=workers,
        world=world,
        out=out or Path("out") / re.sub(r"[^\w.]+", "-", f"{suite}-{planner}-{world}-{seed}"),
        seed=seed,
        timeout_s=timeout_s,
        use_ray=ray,
        quiet=quiet,
    )
    try:
        summary = run_suite(config)
    except KeyboardInterrupt:
        note(f"Interrupted. Finished episodes are kept in {config.out}; the same command continues.")
        raise typer.Exit(130) from None
    if as_json:
        print_json(summary)
        return
    print_table(
        f"{suite}, planner {planner}, {world}", ("task", "success", "95 % interval", "n"), summary_rows(summary)
    )
    print(f"{summary['out']}  ({summary['wall_s']:.1f} s)")


@app.command("compare")
def compare(
    a: Annotated[Path, typer.Argument(help="Folder of the first run.")],
    b: Annotated[Path, typer.Argument(help="Folder of the second run.")],
    common: Annotated[bool, typer.Option("--common", help="Compare what both hold when one lacks episodes.")] = False,
    as_json: Json = False,
) -> None:
    """Compare two runs episode by episode: difference with interval and McNemar's exact test."""
    from embodied.benchmark.compare import compare_runs, comparison_lines, comparison_rows

    result = compare_runs(a, b, common_only=common)
    if as_json:
        print_json(result.as_dict())
        return
    header = ("task", "A", "B", "A − B", "95 % interval", "only A", "only B", "p")
    print_table(f"A: {result.name_a}   B: {result.name_b}", header, comparison_rows(result))
    for line in comparison_lines(result):
        print(line)


@app.command("report")
def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a run.")],
    out: Annotated[Path | None, typer.Option(help="The HTML file; DIR/report.html by default.")] = None,
    videos: Annotated[int, typer.Option(min=0, help="At most so many videos.")] = 12,
    embed: Annotated[bool, typer.Option(help="Videos inside the file, or beside it.")] = True,
    as_json: Json = False,
) -> None:
    """Write one HTML file that opens without a network: success, failures first, video, plans, seeds, versions."""
    from embodied.benchmark.report import write_report

    page = write_report(folder, out=out, max_videos=videos, embed=embed)
    if as_json:
        print_json({"report": str(page), "bytes": page.stat().st_size})
    else:
        print(page)
