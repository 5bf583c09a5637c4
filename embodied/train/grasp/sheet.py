"""Contact sheets: what the hand saw and did, for people to look at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from embodied.record.video import write_png
from embodied.sensors.camera.camera import free_camera
from embodied.train.grasp.scene import PATCH_CENTER_X_M, grasp_scene
from embodied.train.grasp.task import GraspEpisode
from embodied_deploy.policy.controller import PolicyController
from embodied_deploy.policy.session import PolicySession

_EVERY, _TILE_PX = 3, 128


def rollout_sheet(session: PolicySession, seed: int, path: Path) -> str:
    """Draw one episode and return its outcome: wrist images above, the same moments from outside below.

    Args:
      session: of the policy that drives.
      seed: of the scene.
      path: PNG to write.
    """
    episode = GraspEpisode(grasp_scene(seed))
    controller = PolicyController(session, episode.robot.action_spec, episode.robot.observation_spec)
    table = np.array([PATCH_CENTER_X_M, 0.0, episode.scene.table_m])
    outside = free_camera(
        episode.world,
        table + np.array([0.75, -0.75, 0.55]),
        table + np.array([0.0, 0.0, 0.12]),
        width_px=_TILE_PX,
        height_px=_TILE_PX,
    )
    wrist: list[NDArray[np.uint8]] = []
    views: list[NDArray[np.uint8]] = []
    while True:
        if episode.steps % _EVERY == 0 or episode.is_over:
            wrist.append(_enlarged(episode.image()))
            views.append(outside.render().rgb)
        if episode.is_over:
            break
        episode.step(controller.act(episode.observe()))
    write_png(path, np.vstack([np.hstack(wrist), np.hstack(views)]))
    return episode.outcome


def start_sheet(seeds: Sequence[int], path: Path, columns: int = 10) -> None:
    """Draw what the wrist camera sees at the start of some scenes, the last row filled up with black."""
    tiles = [_enlarged(GraspEpisode(grasp_scene(seed)).image()) for seed in seeds]
    tiles += [np.zeros_like(tiles[0])] * (-len(tiles) % columns)
    write_png(path, np.vstack([np.hstack(tiles[i : i + columns]) for i in range(0, len(tiles), columns)]))


def _enlarged(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    factor = _TILE_PX // len(image)
    return image.repeat(factor, axis=0).repeat(factor, axis=1)
