"""Gymnasium and PettingZoo faces of the worlds. Importing this registers the ids; nothing is built before ``make``."""

from __future__ import annotations

from embodied.errors import require

_IDS: dict[str, dict[str, object]] = {
    "Embodied/QuadHover-v1": {
        "entry_point": "embodied.envs.quad:QuadEnv",
        "vector_entry_point": "embodied.envs.quad:QuadVectorEnv",
        "kwargs": {"task": "hover"},
    },
    "Embodied/QuadWaypoint-v1": {
        "entry_point": "embodied.envs.quad:QuadEnv",
        "vector_entry_point": "embodied.envs.quad:QuadVectorEnv",
        "kwargs": {"task": "waypoint"},
    },
    "Embodied/Household-v1": {
        "entry_point": "embodied.envs.single:TaskEnv",
        "kwargs": {"task_id": "household/put_away@1", "period_s": 0.1},  # 10 Hz, five control periods
    },
    "Embodied/Warehouse-v1": {
        "entry_point": "embodied.envs.single:TaskEnv",
        "kwargs": {"task_id": "warehouse/deliver@1"},
    },
}


def register() -> None:
    """Register all ids with Gymnasium; doing it twice changes nothing.

    Raises:
      MissingExtraError: Gymnasium is not installed.
    """
    require("gymnasium", "sim")
    import gymnasium

    for env_id, options in _IDS.items():
        if env_id not in gymnasium.registry:
            gymnasium.register(id=env_id, **options)  # pyright: ignore[reportArgumentType] -- keyword table


register()
