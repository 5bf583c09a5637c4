"""What 8 bits cost and give in the shipped policies: task score in pairs, latency in turn with fp32."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from embodied.studies.figure import Figure

if TYPE_CHECKING:
    from embodied.policies.shipped import ShippedPolicy
    from embodied_deploy.package.contract import PolicyContract
    from embodied_deploy.package.load import Package

EPISODES, QUICK_EPISODES = 200, 10
WORKERS = 2
ROUNDS, QUICK_ROUNDS = 20, 6


def int8_score(quick: bool, out: Path) -> list[Figure]:
    """Score of each shipped int8 package less that of fp32, on the same seeds."""
    del out
    from embodied.export.scores import compare_scores
    from embodied.train.registry import RECIPES

    seeds = range(QUICK_EPISODES if quick else EPISODES)
    figures = []
    for name, policy in _policies():
        if _contract(policy).kind == "planner":
            continue  # edge-planner runs both precisions in the same physics episodes, at half the cost
        kinds = [p for p in policy.precisions if p.startswith("int8")]
        if not kinds:
            figures.append(_missing(f"{name}: score of int8 less fp32", ">= -0.02", "no int8 package ships"))
            continue
        recipe = RECIPES.get(_contract(policy).training.recipe)
        reference = recipe.evaluate(policy.path("fp32"), seeds, WORKERS)
        for kind in kinds:
            paired = compare_scores(recipe.evaluate(policy.path(kind), seeds, WORKERS), reference)
            figures.append(
                Figure(
                    name=f"{name}: score of {kind} less fp32",
                    value=paired.difference,
                    low=paired.low,
                    high=paired.high,
                    target=">= -0.02",
                    n=paired.episodes,
                    note=f"fp32 {paired.reference:.3f}, {kind} {paired.score:.3f}, {paired.changed} pairs differ",
                )
            )
    return figures


def quantized_latency(quick: bool, out: Path) -> list[Figure]:
    """Time of each shipped precision over fp32; rounds in turn, one thread, bound inputs and outputs.

    The target is strict for planners in int8 only: small controllers are allowed to be slower, the note says why.
    """
    del out
    from embodied.export.latency import measure_latency
    from embodied_deploy.package.load import load_package

    figures = []
    for name, policy in _policies():
        packages = [load_package(policy.path(p), check_parity=False) for p in policy.precisions]
        found = measure_latency(packages, packages[0].parity.inputs, rounds=QUICK_ROUNDS if quick else ROUNDS)
        plain = found[0]
        for package, latency in zip(packages[1:], found[1:], strict=True):
            is_strict = package.contract.kind == "planner" and latency.precision.startswith("int8")
            sizes = f"{len(packages[0].graph) // 1000} to {len(package.graph) // 1000} kB"
            note = (
                f"p50 {plain.p50_us:.1f} to {latency.p50_us:.1f} µs, p99 {plain.p99_us:.0f} to {latency.p99_us:.0f} µs"
            )
            figures.append(
                Figure(
                    name=f"{name}: time of {latency.precision} over fp32",
                    value=latency.ratio,
                    low=latency.low,
                    high=latency.high,
                    target="< 1" if is_strict else "< 10",
                    n=latency.runs,
                    note=f"{note}, graph {sizes}"
                    + (f"; slower: {_reason(package, packages[0], plain.p50_us)}" if latency.ratio > 1 else ""),
                )
            )
        if len(packages) == 1:
            figures.append(_missing(f"{name}: time of int8 over fp32", "< 10", "only fp32 ships"))
    return figures


def _reason(package: Package, plain: Package, plain_us: float) -> str:
    """Say why a quantized graph is slower: how much work there was to save, and what was added to it."""
    from embodied.export.cost import call_overhead_us, graph_cost

    before, after = graph_cost(plain.graph), graph_cost(package.graph)
    extra = ", ".join(f"{count} {kind}" for kind, count in after.extra(before).items())
    return (
        f"of {plain_us:.1f} µs in fp32 the call itself is {call_overhead_us():.1f}, the rest is for "
        f"{before.multiply_adds // 1000} k multiply-adds; after fusion {after.nodes} nodes run instead of "
        f"{before.nodes} (more: {extra})"
    )


def _policies() -> list[tuple[str, ShippedPolicy]]:
    from embodied.policies.registry import POLICIES

    return [(entry.name, entry.load()) for entry in POLICIES]


def _contract(policy: ShippedPolicy) -> PolicyContract:
    from embodied_deploy.package.load import load_package

    return load_package(policy.path("fp32"), check_parity=False).contract


def _missing(name: str, target: str, note: str) -> Figure:
    return Figure(name=name, value=float("nan"), low=None, high=None, target=target, n=0, note=note)
