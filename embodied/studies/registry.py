"""The registry of studies. Add yours at the end: one line, nothing is imported until it runs.

A study is a function ``(quick: bool, out: Path) -> list[Figure]``. ``quick`` may shrink n, never a target;
``out`` is an empty folder for what it writes. Every study is seeded: two runs give the same figures, times aside.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from embodied.registry import Registry
from embodied.studies.figure import Figure

Study: TypeAlias = Callable[[bool, Path], list[Figure]]

TAGS = ("core", "household", "drones", "warehouse", "edge", "ros2", "perf")

STUDIES: Registry[Study] = Registry("studies")

_BENCH = "embodied.studies.bench"
STUDIES.add(
    "core-quick-oracle",
    f"{_BENCH}:quick_oracle",
    tags=("core",),
    summary="Suite quick, planner oracle, MuJoCo: success >= 0.95.",
)
STUDIES.add(
    "core-quick-random",
    f"{_BENCH}:quick_random",
    tags=("core",),
    summary="The same episodes, planner random: success <= 0.1.",
)
STUDIES.add(
    "core-quick-noop",
    f"{_BENCH}:quick_noop",
    tags=("core",),
    summary="The same episodes, doing nothing: success = 0.",
)
STUDIES.add(
    "household-pybullet",
    f"{_BENCH}:household_pybullet",
    tags=("core", "household"),
    summary="The ten household episodes of quick on PyBullet, planner oracle: success >= 0.8.",
)
STUDIES.add(
    "household-put-away",
    f"{_BENCH}:household_put_away",
    tags=("household",),
    summary="Forty seeds of put_away, planner oracle, MuJoCo: success >= 0.95.",
)
STUDIES.add(
    "household-behavior",
    f"{_BENCH}:household_behavior",
    tags=("household",),
    summary="Twenty BEHAVIOR activities read from their files, planner oracle, MuJoCo: success >= 0.8.",
)
STUDIES.add(
    "drones-inspect",
    f"{_BENCH}:drones_inspect",
    tags=("drones",),
    summary="Forty seeds of inspect in wind, planner oracle: success >= 0.95; ten on PyBullet: >= 0.8.",
)
STUDIES.add(
    "core-determinism",
    f"{_BENCH}:determinism",
    tags=("core",),
    summary="Equal bytes in every episode log: one worker, two workers, second run.",
)
STUDIES.add(
    "core-no-gl",
    f"{_BENCH}:no_gl",
    tags=("core",),
    summary="An episode of each world, with camera images, while every GL library is hidden.",
)
_COST = "embodied.studies.cost"
STUDIES.add(
    "perf-cli",
    f"{_COST}:cli",
    tags=("perf",),
    summary="CPU of `embodied --help` and of the two bare imports.",
)
STUDIES.add(
    "perf-first-step",
    f"{_COST}:first_step",
    tags=("perf",),
    summary="CPU from a fresh process to the first environment step: < 1.5 s.",
)
STUDIES.add(
    "perf-install-size",
    f"{_COST}:install_size",
    tags=("perf",),
    summary="Disk of a fresh `pip install embodied-stack[sim]`: < 300 MB.",
)
STUDIES.add(
    "perf-main-job",
    f"{_COST}:main_job",
    tags=("perf",),
    summary="Wall time of the main job after set-up, two workers: < 3 minutes.",
)
STUDIES.add(
    "perf-planner-loop",
    "embodied.studies.planner_loop:planner_loop",
    tags=("perf",),
    summary="One decision without the model, household of put_away: < 1 ms.",
)
STUDIES.add(
    "perf-camera",
    "embodied.studies.camera:camera",
    tags=("perf",),
    summary="Colours, depth and segmentation at 128x128 without GL: >= 500 frames/s per core.",
)
_ENVS = "embodied.studies.envs"
STUDIES.add(
    "perf-vector-quadrotors",
    f"{_ENVS}:vector_quadrotors",
    tags=("perf",),
    summary="64 quadrotors through the vector environment: >= 0.8 of the raw batch.",
)
STUDIES.add(
    "perf-household-step",
    f"{_ENVS}:household_step",
    tags=("perf",),
    summary="Step of the household environment over the raw batch step of its model: <= 1.15.",
)
STUDIES.add(
    "perf-reset",
    f"{_ENVS}:reset",
    tags=("perf",),
    summary="Reset of each environment without recompiling: < 5 ms.",
)
STUDIES.add(
    "warehouse-fleet",
    "embodied.studies.warehouse:fleet",
    tags=("warehouse",),
    summary="Eight robots deliver for ten simulated minutes on POGEMA's wfi_warehouse: no collision.",
)
STUDIES.add(
    "perf-edge-overhead",
    "embodied.studies.edge_session:overhead",
    tags=("perf", "edge"),
    summary="Policy session over a bare run of the graph: <= 5 us per call; from a sample to a command: <= 25 us.",
)
STUDIES.add(
    "edge-grasp",
    "embodied.studies.edge_grasp:grasp",
    tags=("edge", "household"),
    summary="Grasping from a wrist camera on 200 held-out scenes: success >= 0.85, int8 within 2 points of fp32.",
)
_EXPORT = "embodied.studies.edge_export"
STUDIES.add(
    "edge-int8-score",
    f"{_EXPORT}:int8_score",
    tags=("edge",),
    summary="Each shipped policy in int8 on 200 episodes in pairs with fp32: within 2 points.",
)
STUDIES.add(
    "perf-edge-quantized",
    f"{_EXPORT}:quantized_latency",
    tags=("perf", "edge"),
    summary="Each shipped precision over fp32, rounds in turn, with the reason where it is slower; int8 planner: < 1.",
)
_EDGE_RUNTIME = "embodied.studies.edge_runtime"
STUDIES.add(
    "edge-same-actions",
    f"{_EDGE_RUNTIME}:same_actions",
    tags=("edge", "drones"),
    summary="Bit-equal actions: policy in the simulation, edge loop, behind a link in one process and in two.",
)
STUDIES.add(
    "edge-kill",
    f"{_EDGE_RUNTIME}:kill",
    tags=("edge", "drones"),
    summary="Policy process killed or frozen in mid-flight: the robot is safe within one watchdog period.",
)
STUDIES.add(
    "perf-edge-loop",
    f"{_EDGE_RUNTIME}:loop",
    tags=("perf", "edge"),
    summary="p99 of the loop at 200 Hz beside a busy core over a bare loop: plain, pinned, SCHED_FIFO.",
)
_EDGE_C = "embodied.studies.edge_c"
STUDIES.add(
    "perf-edge-c",
    f"{_EDGE_C}:speed",
    tags=("perf", "edge"),
    summary="A policy in plain C, fp32 and int8, over session.run of its package: < 1.",
)
STUDIES.add(
    "edge-arm-parity",
    f"{_EDGE_C}:arm_parity",
    tags=("edge",),
    summary="Policies on emulated aarch64, arm32 and Cortex-M4F: equal to this machine; sizes of the C build.",
)
STUDIES.add(
    "edge-planner",
    "embodied.studies.edge_planner:planner",
    tags=("edge", "household"),
    summary="Compact planner from images: success, failures by kind, int8 in pairs with fp32, blind control, size.",
)
STUDIES.add(
    "edge-policies",
    "embodied.studies.edge_policies:policies",
    tags=("edge",),
    summary="Task success of every shipped policy, beside the same graph with shuffled weights.",
)
