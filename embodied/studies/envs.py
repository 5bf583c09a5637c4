"""What the environment faces cost beside the raw engine: ratios of CPU time in one run, rounds interleaved."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from embodied.studies.figure import Figure


def vector_quadrotors(quick: bool, out: Path) -> list[Figure]:
    """64 quadrotors through the Gymnasium vector interface against the raw batch from the same states."""
    del out
    import gymnasium
    from mujoco.batch import Batch

    import embodied.envs  # noqa: F401  registers the ids
    from embodied.envs.flight import SUBSTEPS

    num_envs, steps = 64, 10
    env = gymnasium.make_vec("Embodied/QuadHover-v1", num_envs=num_envs, vectorization_mode="vector_entry_point")
    env.reset(seed=0)
    flight = env.unwrapped._flight
    raw = Batch(flight.world.scene.model, num_envs)
    raw.reset()
    actions = np.full((num_envs, 4), -0.118, dtype=np.float32)  # hover thrust

    def step_env() -> None:
        for _ in range(steps):
            env.step(actions)

    def step_raw() -> None:
        for _ in range(steps):
            raw.step(nstep=SUBSTEPS)

    ratios = []
    for _ in range(7 if quick else 25):
        raw.state[:] = flight.world.batch.state
        raw_s = _cpu_s(step_raw)
        ratios.append(raw_s / _cpu_s(step_env))
    return [_figure("speed of 64 quadrotors over the raw batch", np.array(ratios), ">= 0.8")]


def household_step(quick: bool, out: Path) -> list[Figure]:
    """One step of the household environment against the raw batch step of its model from the same state."""
    del out
    import gymnasium
    from mujoco.batch import Batch

    import embodied.envs  # noqa: F401  registers the ids

    env = gymnasium.make("Embodied/Household-v1", disable_env_checker=True)
    env.reset(seed=0)
    core = env.unwrapped.core
    substeps = round(core.period_s / core.world.dt_sim_s)
    raw = Batch(core.world.scene.model, 1, 1, persistent=True)
    raw.reset()
    steps = 25
    action = core.ports[env.unwrapped.agent].action_of(core.robots[env.unwrapped.agent].last_action)
    action[:2] = (0.15, 0.3)  # an arc, so that the robot is awake

    def step_env() -> None:
        for _ in range(steps):
            env.step(action)

    def step_raw() -> None:
        for _ in range(steps):
            raw.step(nstep=substeps)

    _match(raw, core.world)
    step_env()
    step_raw()
    ratios = []
    for _ in range(7 if quick else 25):
        env.reset(seed=0)
        _match(raw, core.world)
        env.step(action)
        raw.bind("ctrl")[0] = core.world.ctrl[0]
        raw.step(nstep=substeps)
        raw_s = _cpu_s(step_raw)
        ratios.append(_cpu_s(step_env) / raw_s)
    return [_figure("household environment step over the raw batch step", np.array(ratios), "<= 1.15")]


def reset(quick: bool, out: Path) -> list[Figure]:
    """Reset of each environment after the first, which compiles."""
    del out
    import gymnasium

    import embodied.envs  # noqa: F401  registers the ids

    figures = []
    for env_id in sorted(i for i in gymnasium.registry if i.startswith("Embodied/")):
        env = gymnasium.make(env_id, disable_env_checker=True)
        env.reset(seed=0)
        times_ms = np.array([_reset_ms(env, k) for k in range(15 if quick else 60)])
        figures.append(_figure(f"reset of {env_id}", times_ms, "< 5", "ms"))
        env.close()
    return figures


def _reset_ms(env: object, seed: int) -> float:
    return 1e3 * _cpu_s(lambda: env.reset(seed=seed))  # pyright: ignore[reportAttributeAccessIssue]


def _match(raw: object, world: object) -> None:
    """Give the raw batch the state of a world; with sleep on, a reset comes first so that islands wake alike."""
    import mujoco

    model, data = world.scene.model, world.data  # pyright: ignore[reportAttributeAccessIssue]
    state = np.zeros(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_INTEGRATION))
    mujoco.mj_getState(model, data, state, mujoco.mjtState.mjSTATE_INTEGRATION)
    raw.reset()  # pyright: ignore[reportAttributeAccessIssue]
    raw.state[0] = state  # pyright: ignore[reportAttributeAccessIssue]


def _cpu_s(job: Callable[[], object]) -> float:
    start = time.process_time()
    job()
    return time.process_time() - start


def _figure(name: str, samples: np.ndarray, target: str, unit: str = "") -> Figure:
    """Return the median with its 95 % interval from order statistics (bootstrap of the median)."""
    rng = np.random.default_rng(0)
    medians = np.median(rng.choice(samples, (2000, len(samples))), axis=1)
    low, high = np.quantile(medians, (0.025, 0.975))
    return Figure(name, float(np.median(samples)), float(low), float(high), target, len(samples), unit, note="median")
