"""``embodied train`` and ``embodied policy``: train a recipe, list and judge packaged policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embodied.cli.output import note, print_json, print_table

if TYPE_CHECKING:
    from embodied.train.contract import Score

app = typer.Typer(help="List and judge packaged policies.", no_args_is_help=True, rich_markup_mode=None)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def train(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="Name of a recipe; `embodied list recipes`.")],
    out: Annotated[Path, typer.Option(help="Folder of the run: curves, checkpoint, run.json.")],
    seed: Annotated[int, typer.Option(min=0, help="Root seed of everything random.")] = 0,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Steps as the recipe counts them; its own number by default.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes for collecting data.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in this folder.")] = False,
    as_json: Json = False,
) -> None:
    """Train RECIPE and keep its curves and a checkpoint that can be resumed and exported."""
    from embodied.errors import require
    from embodied.train.registry import RECIPES
    from embodied.train.run import TrainError, TrainRun

    entry = RECIPES.entry(recipe)
    has_run = any((out / name).exists() for name in ("checkpoint.pt", "run.json"))
    if has_run and not resume:
        raise TrainError(f"{out} holds a run already. Continue it with --resume, or choose another folder.")
    if resume and not has_run:
        raise TrainError(f"There is no run in {out} to resume. Leave --resume away, or name the folder of the run.")
    require("torch", "train")
    chosen = entry.load()
    run = TrainRun(
        folder=out,
        recipe=entry.name,
        recipe_version=chosen.version,
        seed=seed,
        steps=steps or chosen.default_steps,
        workers=workers,
        on_log=None if as_json else _print_curves,
    )
    run.begin()
    try:
        chosen.train(run)
    except KeyboardInterrupt:
        note(f"Interrupted. The same command with --resume continues from the last checkpoint in {out}.")
        raise typer.Exit(130) from None
    if as_json:
        print_json({"recipe": entry.name, "seed": seed, "steps": run.steps, "checkpoint": str(run.checkpoint_path)})
    else:
        print(run.checkpoint_path)


@app.command("list")
def list_policies(as_json: Json = False) -> None:
    """List the policies that ship, with their precisions."""
    from embodied.policies.registry import POLICIES

    rows = [(e.name, e.load().precisions, e.summary) for e in POLICIES]
    if as_json:
        print_json({"policies": [{"name": n, "precisions": list(p), "summary": s} for n, p, s in rows]})
        return
    print_table("Policies", ("name", "precisions", ""), [(n, " ".join(p), s) for n, p, s in rows])


@app.command("eval")
def evaluate(
    package: Annotated[str, typer.Argument(metavar="PACKAGE", help="A package file, or the name of a shipped policy.")],
    episodes: Annotated[int, typer.Option(min=1, help="Episodes, one seed each.")] = 100,
    seed0: Annotated[int, typer.Option(min=0, help="Seed of the first episode.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 1,
    precision: Annotated[str, typer.Option(help="Of a shipped policy.")] = "fp32",
    as_json: Json = False,
) -> None:
    """Run a packaged policy in the task of its recipe and print the success rate with its interval."""
    from embodied.errors import require
    from embodied.train.registry import RECIPES
    from embodied_deploy.package.load import load_package

    path = _package_path(package, precision)
    contract = load_package(path, check_parity=False).contract
    require("mujoco", "sim")
    recipe = RECIPES.get(contract.training.recipe)
    scores = recipe.evaluate(path, list(range(seed0, seed0 + episodes)), workers)
    outcomes = _outcomes(scores)
    value, low, high = score_interval([s.value for s in scores])
    if as_json:
        record = {"package": str(path), "recipe": contract.training.recipe, "precision": contract.precision}
        rows = [{"seed": s.seed, "value": s.value, "outcome": s.outcome, "steps": s.steps} for s in scores]
        figures = {"score": value, "low": low, "high": high, "n": len(scores), "outcomes": outcomes}
        print_json({**record, **figures, "episodes": rows})
        return
    interval = f"{low:.3f} … {high:.3f}"
    words = ", ".join(f"{name} {count}" for name, count in outcomes.items())
    row = (contract.name, contract.precision, f"{value:.3f}", interval, str(len(scores)), words)
    print_table(path.name, ("policy", "precision", "score", "95 % interval", "n", "outcomes"), [row])


def score_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return (score, low, high): by Wilson for successes and failures, by the bootstrap for anything between."""
    from embodied.benchmark.metrics import bootstrap_mean, wilson

    if any(v not in (0.0, 1.0) for v in values):
        return bootstrap_mean(values)
    rate = wilson(sum(v == 1.0 for v in values), len(values))
    return rate.value, rate.low, rate.high


def _package_path(package: str, precision: str) -> Path:
    path = Path(package)
    if path.exists() or path.suffix == ".policy":
        return path
    from embodied.policies.registry import shipped

    return shipped(package, precision)


def _outcomes(scores: list[Score]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for score in scores:
        counts[score.outcome or "none"] = counts.get(score.outcome or "none", 0) + 1
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def _print_curves(step: int, values: Mapping[str, float]) -> None:
    print(f"step {step}  " + "  ".join(f"{name} {value:.4g}" for name, value in values.items()), flush=True)
