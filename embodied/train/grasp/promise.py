"""The contract of the grasping policy: names, units, limits, rates. Loads no torch."""

from __future__ import annotations

from embodied.robots.mobile_manipulator.spec import ACTION, MOBILE_MANIPULATOR, OBSERVATION
from embodied.train.grasp.task import CAMERA, DRIVEN, DT_S, IMAGE_PX, RATE_HZ
from embodied.train.grasp.teacher import HORIZON
from embodied_deploy.package.contract import Chunk, Entry, PolicyContract, TensorSpec, Training
from embodied_deploy.package.quantities import action_entry, observation_entry

EXECUTE = 4
"""Actions of a chunk that are used before the policy is asked again."""
_FORCE_MAX_N = 60.0


def grasp_contract(training: Training) -> PolicyContract:
    """Return the contract.

    Args:
      training: where the weights come from.
    """
    image = TensorSpec(name="image", role="image", dtype="uint8", shape=(IMAGE_PX, IMAGE_PX, 3), source=CAMERA)
    proprio = _proprio_entries()
    actions = tuple(action_entry(ACTION.names[i], float(ACTION.low[i]), float(ACTION.high[i])) for i in DRIVEN.tolist())
    return PolicyContract(
        name="reach-and-grasp",
        version="1.0.0",
        kind="controller",
        robot=MOBILE_MANIPULATOR.kind,
        rate_hz=RATE_HZ,
        inputs=(
            image,
            TensorSpec(name="proprio", role="observation", dtype="float32", shape=(len(proprio),), entries=proprio),
        ),
        outputs=(
            TensorSpec(name="actions", role="action", dtype="float32", shape=(HORIZON, len(actions)), entries=actions),
        ),
        safe_action=(None,) * len(actions),  # arm and grip hold: letting go of a held thing would be worse
        latency_budget_s=0.5 * DT_S,
        max_observation_age_s=DT_S,
        on_stale="hold",
        on_late="hold",
        chunk=Chunk(horizon=HORIZON, execute=EXECUTE, max_age_s=HORIZON * DT_S),
        parity_atol=1e-4,  # forces of tens of newtons in float32
        training=training,
    )


def _proprio_entries() -> tuple[Entry, ...]:
    low, high = OBSERVATION.joint_low, OBSERVATION.joint_high
    width_max = float(ACTION.high[ACTION.names.index("gripper_width_m")])
    return (
        *(observation_entry(f"joint_pos.{OBSERVATION.joint_names[i]}", low[i], high[i]) for i in range(8)),
        observation_entry("signal.gripper_width_m", -0.01, 1.1 * width_max),
        observation_entry("signal.gripper_force_n", -_FORCE_MAX_N, _FORCE_MAX_N),
    )
