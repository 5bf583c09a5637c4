"""From a log to a picture: the scene is compiled again and posed by the recorded positions; nothing is simulated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from embodied.errors import LogError
from embodied.record.contract import EpisodeLog
from embodied.record.log import read_log

if TYPE_CHECKING:
    from embodied.worlds.mujoco import MujocoWorld

Array = NDArray[np.float64]
Image = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayConfig:
    """How a replay looks.

    Attributes:
      camera: a camera of the scene, ``follow`` (the first robot), ``follow:<robot>``, ``overview``, or ``auto``: follow
        a single robot, overview of several.
      fps: frames per second of the video.
      max_video_s: longer episodes run faster than real time to fit; the bar shows the factor.
      inset: whether the robot's own camera is shown in the corner.
      overlay: whether a bar of text tells what is going on.
    """

    camera: str = "auto"
    width_px: int = 640
    height_px: int = 360
    fps: float = 15.0
    max_video_s: float = 20.0
    inset: bool = True
    overlay: bool = True


def replay_episode(path: Path | str, out: Path | str, config: ReplayConfig | None = None) -> Path:
    """Write the video of a recorded episode.

    Args:
      path: episode log.
      out: ``.mp4``, or ``.png`` for a picture of the end.
      config: size, camera, speed.

    Returns:
      Path of the file.

    Raises:
      LogError: the log cannot be read, holds no physics or its scene changed since.
      MissingExtraError: imageio with ffmpeg is not installed.
    """
    from embodied.record.video import write_png, write_video

    config = config or ReplayConfig()
    log = read_log(path)
    out = Path(out)
    if out.suffix == ".png":
        *_, last = replay_frames(log, config, only_last=True)
        return write_png(out, last)
    write_video(out, replay_frames(log, config), fps=config.fps)
    return out


def replay_frames(log: EpisodeLog, config: ReplayConfig | None = None, *, only_last: bool = False) -> Iterator[Image]:
    """Yield the frames of a replay, (height, width, 3) each; the bar of text adds to the height.

    Raises:
      LogError: the log holds no physics or does not fit its scene.
    """
    from embodied.record.overlay import inset, text_bar
    from embodied.record.stage import Stage

    config = config or ReplayConfig()
    world = posed_world(log)
    stage = Stage(world, config)
    end_s = float(log.time_s[-1])
    speed = max(1.0, end_s / config.max_video_s)
    dt_s = speed / config.fps
    times = np.arange(0.0, end_s + dt_s, dt_s)
    times = np.append(np.minimum(times, end_s), [end_s] * round(config.fps))  # the end stands for a second
    lines = captions(log)
    for time_s in times[-1:] if only_last else times:
        pose(world, log, float(time_s))
        image = stage.render(dt_s / speed)
        if config.inset and stage.inset_camera is not None:
            image = inset(image, stage.inset_camera.render().rgb)
        if config.overlay:
            image = text_bar(image, [str(log.meta.get("instruction", "")), lines.at(float(time_s), speed)])
        yield image


def posed_world(log: EpisodeLog) -> MujocoWorld:
    """Compile the scene of a log's task and return a world that can be posed.

    Raises:
      LogError: the log has no positions, names no task or its task compiles to another layout now.
    """
    if not len(log.time_s) or not log.qpos.shape[1]:
        raise LogError(
            f"The log of {log.meta.get('task_id', 'an episode')} holds no physics (world {log.meta.get('world')!r}), "
            "so there is nothing to draw. Replay an episode of the mujoco or pybullet world."
        )
    if "task_id" not in log.meta:
        raise LogError("The log names no task, so its scene cannot be built. Write logs with the agents' recorder.")
    from embodied.agents.episode import compile_task
    from embodied.catalog import ROBOTS, TASKS
    from embodied.worlds.mujoco import MujocoWorld

    options: Mapping[str, Any] = log.meta.get("options") or {}
    task = TASKS.get(str(log.meta["task_id"])).make(int(log.meta["seed"]), **options.get("task", {}))
    world = MujocoWorld(compile_task(task, {a.name: ROBOTS.get(a.robot) for a in task.agents}))
    if world.qpos.shape[1] != log.qpos.shape[1]:
        raise LogError(
            f"The log has {log.qpos.shape[1]} positions, the scene of {task.id} now has {world.qpos.shape[1]}: "
            f"it changed since. Replay with the version that recorded it: {log.meta.get('versions')}."
        )
    return world


def pose(world: MujocoWorld, log: EpisodeLog, time_s: float) -> None:
    """Write the positions of a moment into a world, interpolated between samples."""
    after = int(np.clip(np.searchsorted(log.time_s, time_s), 1, max(1, len(log.time_s) - 1)))
    after = min(after, len(log.time_s) - 1)
    before = max(0, after - 1)
    span = float(log.time_s[after] - log.time_s[before])
    share = float(np.clip((time_s - log.time_s[before]) / span, 0.0, 1.0)) if span > 0 else 1.0
    first, second = log.qpos[before], log.qpos[after].copy()
    for start in _quaternions(world):
        if first[start : start + 4] @ second[start : start + 4] < 0.0:  # the same rotation by the nearer sign
            second[start : start + 4] *= -1.0
    world.qpos[0] = first + share * (second - first)
    world.forward()


def _quaternions(world: MujocoWorld) -> list[int]:
    model = world.scene.model
    kinds = [(int(model.jnt_type[j]), int(model.jnt_qposadr[j])) for j in range(model.njnt)]
    return [adr + 3 if kind == 0 else adr for kind, adr in kinds if kind in (0, 1)]  # free and ball joints


class Captions:
    """What each agent was doing at any time, from the events."""

    def __init__(self, log: EpisodeLog) -> None:
        self._spans: list[tuple[float, str, str]] = []
        for event in log.events:
            agent = str(event.payload.get("agent", ""))
            if event.kind == "skill_start":
                self._spans.append((event.time_s, agent, _call_text(event.payload)))
            elif event.kind == "skill_end" and event.payload.get("status") not in (None, "succeeded"):
                words = f"{event.payload.get('skill')} failed: {event.payload.get('code', '')}"
                self._spans.append((event.time_s, agent, words))
            elif event.kind == "end":
                self._spans.append((event.time_s, "", f"end: {event.payload.get('outcome', '')}"))

    def at(self, time_s: float, speed_ratio: float = 1.0) -> str:
        """Return the line of text for a moment."""
        now: dict[str, str] = {}
        for start_s, agent, words in self._spans:
            if start_s <= time_s + 1e-9:
                now[agent] = words
        text = "   ".join(f"{agent}: {words}" if agent else words for agent, words in now.items())
        factor = f" x{speed_ratio:.1f}" if speed_ratio > 1.05 else ""
        return f"{time_s:6.1f} s{factor}   {text}"


def captions(log: EpisodeLog) -> Captions:
    """Return the captions of a log."""
    return Captions(log)


def _call_text(payload: Mapping[str, Any]) -> str:
    arguments = ", ".join(str(v) for v in dict(payload.get("args", {})).values())
    return f"{payload.get('skill', '')}({arguments})"
