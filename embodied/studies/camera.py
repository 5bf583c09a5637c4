"""Speed of the camera without GL."""

from __future__ import annotations

import time
from pathlib import Path

from embodied.studies.figure import Figure

_SIZE_PX = 128
_FRAMES = 40


def camera(quick: bool, out: Path) -> list[Figure]:
    """Frames per second and core of colours, depth and segmentation together at 128 x 128 in the flat.

    Process CPU time of rounds that go through the cameras of the three rooms; the median round and the interval of the
    median by order statistics.
    """
    del out
    import numpy as np

    from embodied.catalog import SCENES
    from embodied.sensors.camera import Camera, Route, warm_up
    from embodied.worlds.mujoco import MujocoWorld
    from embodied_scenes.builders import compile_scene

    warm_up()
    world = MujocoWorld(compile_scene(SCENES.get("household/flat")()))
    world.reset(0)
    names = [world.scene.model.camera(i).name for i in range(world.scene.model.ncam)]
    figures: list[Figure] = []
    rounds = 11 if quick else 41
    # Without numba 30 frames/s still keep a 10 Hz camera at three times real time.
    routes: tuple[tuple[Route, str], ...] = (("zbuffer", ">= 500"), ("rays", ">= 30"))
    for route, target in routes:
        cameras = [Camera(world, n, _SIZE_PX, _SIZE_PX, route=route) for n in names if n.endswith("_view")]
        frames = _FRAMES if route == "zbuffer" else 2
        for one in cameras:
            one.render()
        rates = []
        for _ in range(rounds):
            start_s = time.process_time()
            for _ in range(frames):
                for one in cameras:
                    one.render()
            rates.append(frames * len(cameras) / (time.process_time() - start_s))
        order = np.sort(rates)
        reach = round(0.98 * np.sqrt(rounds))
        figures.append(
            Figure(
                name=f"camera {route} {_SIZE_PX}x{_SIZE_PX}, rgb + depth + segmentation",
                value=float(np.median(order)),
                low=float(order[max(0, rounds // 2 - reach)]),
                high=float(order[min(rounds - 1, rounds // 2 + reach)]),
                target=target,
                n=rounds * frames * len(cameras),
                unit="frames/s/core",
                note=f"{world.scene.model.ngeom} geoms; CPU time",
            )
        )
    return figures
