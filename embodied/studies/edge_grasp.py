"""The shipped grasping policy: success from images alone, and what 8 bits change."""

from __future__ import annotations

from pathlib import Path

from embodied.studies.figure import Figure

EPISODES, QUICK_EPISODES = 200, 20
POLICY = "reach-and-grasp@1"
INT8 = "int8-static"


def grasp(quick: bool, out: Path) -> list[Figure]:
    """Teacher, fp32 and int8 on the same held-out scenes; sheets of images are left in ``out``."""
    from embodied.benchmark.metrics import wilson
    from embodied.export.scores import compare_scores
    from embodied.policies.registry import shipped
    from embodied.train.grasp.evaluate import evaluate_package, open_package, run_teacher
    from embodied.train.grasp.sheet import rollout_sheet, start_sheet

    seeds = range(QUICK_EPISODES if quick else EPISODES)
    start_sheet(range(20), out / "start.png")
    rollout_sheet(open_package(shipped(POLICY)), 3, out / "rollout.png")
    scores = {p: evaluate_package(shipped(POLICY, p), seeds) for p in ("fp32", INT8)}
    scores["teacher"] = [run_teacher(seed) for seed in seeds]
    figures = []
    for who, target in (("teacher", ">= 0.95"), ("fp32", ">= 0.85")):
        rate = wilson(sum(int(s.value) for s in scores[who]), len(seeds))
        figures.append(
            Figure(
                name=f"success, {who}",
                value=rate.value,
                low=rate.low,
                high=rate.high,
                target=target,
                n=len(seeds),
                note="knows all poses" if who == "teacher" else _losses([s.outcome for s in scores[who]]),
            )
        )
    paired = compare_scores(scores[INT8], scores["fp32"])
    figures.append(
        Figure(
            name=f"success, {INT8} less fp32",
            value=paired.difference,
            low=paired.low,
            high=paired.high,
            target=">= -0.02",
            n=paired.episodes,
            note=f"{INT8} {paired.score:.3f}; {paired.changed} pairs differ",
        )
    )
    return figures


def _losses(outcomes: list[str]) -> str:
    lost = sorted(o for o in outcomes if o != "lifted")
    return ", ".join(f"{lost.count(o)} {o}" for o in dict.fromkeys(lost)) or "none lost"
