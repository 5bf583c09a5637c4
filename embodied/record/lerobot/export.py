"""Episode logs to a dataset: the scene is posed by the recorded positions and filmed; nothing is simulated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from embodied.record.contract import EpisodeLog
from embodied.record.lerobot.layout import DatasetError, Feature
from embodied.record.lerobot.reader import LeRobotDataset
from embodied.record.lerobot.writer import LeRobotWriter
from embodied.record.log import read_log
from embodied.record.replay import pose, posed_world

if TYPE_CHECKING:
    from embodied.worlds.mujoco import MujocoWorld

_POSE = ("x_m", "y_m", "z_m", "qw", "qx", "qy", "qz")
_FREE, _BALL, _SLIDE = 0, 1, 2  # mjtJoint


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What every episode of a dataset must agree on."""

    robots: tuple[tuple[str, str], ...]
    state_names: tuple[str, ...]
    state_index: tuple[int, ...]
    action_names: tuple[str, ...]
    cameras: tuple[str, ...]


def export_logs(
    logs: Sequence[Path | str],
    out: Path | str,
    *,
    cameras: Sequence[str] | None = None,
    size_px: int = 128,
    fps: int | None = None,
) -> LeRobotDataset:
    """Write episode logs as one dataset.

    ``observation.state`` holds the positions of all robots, ``action`` what was applied last, both named
    ``<robot>/<entry>`` when there are several robots; ``next.done`` and ``next.success`` mark the end.

    Args:
      logs: ``.mcap`` files of episodes with the same robots.
      out: folder of the new dataset.
      cameras: names in the compiled scene, such as ``robot_0/head_cam``; the robots' own by default, none for ``()``.
      size_px: width and height of the pictures, even.
      fps: frames per second; the rate of the first log by default.

    Raises:
      DatasetError: there is no log, they differ in robots, or a camera is not there.
      LogError: a log cannot be read or holds no physics.
      MissingExtraError: pyarrow, or for pictures imageio with ffmpeg, is not installed.
    """
    if not logs:
        raise DatasetError("No episode log was given; name at least one .mcap file.")
    writer: LeRobotWriter | None = None
    plan: _Plan | None = None
    try:
        for path in logs:
            log = read_log(path)
            world = posed_world(log)
            found = _plan(world, log, cameras)
            if writer is None or plan is None:
                fps = fps or _rate(log)
                kinds = "+".join(dict.fromkeys(kind for _, kind in found.robots))
                writer = LeRobotWriter(out, fps=fps, features=_features(found, size_px), robot_type=kinds)
                plan = found
            if (found.robots, found.state_names, found.cameras) != (plan.robots, plan.state_names, plan.cameras):
                raise DatasetError(
                    f"{Path(path).name} has the robots {found.robots} with other joints or cameras than the first log, "
                    f"which has {plan.robots}. Export them to a dataset of their own."
                )
            assert fps is not None
            columns = _columns(world, log, found, fps, size_px)
            text = str(log.meta.get("instruction") or log.meta.get("task_id"))
            writer.add_episode(columns, task=text)
        assert writer is not None
        return writer.close()
    finally:
        if writer is not None:
            writer.abort()


def _plan(world: MujocoWorld, log: EpisodeLog, cameras: Sequence[str] | None) -> _Plan:
    from embodied.catalog import ROBOTS

    model, robots = world.scene.model, world.scene.info.robots
    kinds = {name: robots[name].kind for name in sorted(log.actions)}
    is_single = len(kinds) == 1
    state_names: list[str] = []
    index: list[int] = []
    action_names: list[str] = []
    for name in kinds:
        prefix, head = robots[name].prefix, "" if is_single else f"{name}/"
        for joint in range(model.njnt):
            full = str(model.joint(joint).name)
            if not full.startswith(prefix):
                continue
            start, word = int(model.jnt_qposadr[joint]), full.removeprefix(prefix)
            entries = _joint_entries(word, int(model.jnt_type[joint]))
            state_names += [head + e for e in entries]
            index += range(start, start + len(entries))
        action_names += [head + e for e in ROBOTS.get(kinds[name]).action_spec.names]
    own = [model.camera(i).name for i in range(model.ncam)]
    if cameras is None:
        cameras = [c for c in own if any(c.startswith(robots[name].prefix) for name in kinds)]
    missing = sorted(set(cameras) - set(own))
    if missing:
        raise DatasetError(f"The scene has no camera {missing}, only {own}.")
    return _Plan(
        robots=tuple(kinds.items()),
        state_names=tuple(state_names),
        state_index=tuple(index),
        action_names=tuple(action_names),
        cameras=tuple(cameras),
    )


def _joint_entries(name: str, kind: int) -> list[str]:
    if kind == _FREE:
        return [f"{name}_{axis}" for axis in _POSE]
    if kind == _BALL:
        return [f"{name}_{axis}" for axis in _POSE[3:]]
    return [f"{name}_m" if kind == _SLIDE else f"{name}_rad"]


def _features(plan: _Plan, size_px: int) -> dict[str, Feature]:
    pictures = {_key(c): Feature(dtype="video", shape=(size_px, size_px, 3)) for c in plan.cameras}
    return {
        "observation.state": Feature(dtype="float32", shape=(len(plan.state_names),), names=plan.state_names),
        "action": Feature(dtype="float32", shape=(len(plan.action_names),), names=plan.action_names),
        "next.done": Feature(dtype="bool", shape=(1,)),
        "next.success": Feature(dtype="bool", shape=(1,)),
        **pictures,
    }


def _columns(world: MujocoWorld, log: EpisodeLog, plan: _Plan, fps: int, size_px: int) -> dict[str, NDArray[Any]]:
    from embodied.sensors.camera import Camera

    cameras = {_key(c): Camera(world, c, size_px, size_px) for c in plan.cameras}
    count = int(np.floor(float(log.time_s[-1]) * fps + 1e-6)) + 1
    times = np.arange(count) / fps
    states = np.zeros((count, len(plan.state_names)), dtype=np.float32)
    images = {key: np.zeros((count, size_px, size_px, 3), dtype=np.uint8) for key in cameras}
    for row, time_s in enumerate(times):
        pose(world, log, float(time_s))
        states[row] = world.qpos[0][list(plan.state_index)]
        for key, camera in cameras.items():
            images[key][row] = camera.render().rgb
    at = np.clip(np.searchsorted(log.time_s, times + 1e-9, side="right") - 1, 0, None)
    actions = np.concatenate([log.actions[name][at] for name, _ in plan.robots], axis=1)
    last = np.arange(count) == count - 1
    return {
        "observation.state": states,
        # an entry that no command has set yet is NaN in the log; a dataset knows numbers only
        "action": np.nan_to_num(actions, nan=0.0).astype(np.float32),
        "next.done": last,
        "next.success": last & _is_success(log),
        **images,
    }


def _is_success(log: EpisodeLog) -> bool:
    from embodied.catalog import TASKS
    from embodied.tasks.evaluator import evaluate

    options = log.meta.get("options") or {}
    task = TASKS.get(str(log.meta["task_id"])).make(int(log.meta["seed"]), **options.get("task", {}))
    return bool(evaluate(task, log.changes, log.events).success)


def _rate(log: EpisodeLog) -> int:
    if len(log.time_s) < 2:
        raise DatasetError("A log with a single sample has no rate; give --fps.")
    return max(1, round(1.0 / float(np.median(np.diff(log.time_s)))))


def _key(camera: str) -> str:
    return "observation.images." + camera.replace("/", ".")
