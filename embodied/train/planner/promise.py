"""The contract of the compact planner. Loads no torch."""

from __future__ import annotations

from embodied.robots.mobile_manipulator.spec import MOBILE_MANIPULATOR
from embodied.train.planner.words import INSTRUCTION_TOKENS, vocabulary
from embodied_deploy.package.contract import PolicyContract, TensorSpec, Training
from embodied_deploy.planner.images import IMAGE_HW

CAMERA = "head_cam"
LAST_TOKENS = 5


def planner_contract(training: Training, num_hidden: int) -> PolicyContract:
    """Return the contract.

    Args:
      training: where the weights come from.
      num_hidden: width of the memory.
    """
    words = vocabulary()
    scores = {name: len(getattr(words, name)) for name in ("skills", "things", "furniture", "relations")}
    return PolicyContract(
        name="compact-planner",
        version="1.0.0",
        kind="planner",
        robot=MOBILE_MANIPULATOR.kind,
        rate_hz=1.0,
        inputs=(
            TensorSpec(name="image", role="image", dtype="uint8", shape=(*IMAGE_HW, 3), source=CAMERA),
            TensorSpec(name="instruction", role="tokens", dtype="int64", shape=(INSTRUCTION_TOKENS,)),
            TensorSpec(name="last_call", role="tokens", dtype="int64", shape=(LAST_TOKENS,)),
            TensorSpec(name="memory", role="state", dtype="float32", shape=(num_hidden,), source="next_memory"),
        ),
        outputs=(
            *(TensorSpec(name=n, role="score", dtype="float32", shape=(size,)) for n, size in scores.items()),
            TensorSpec(name="visible", role="score", dtype="float32", shape=(len(words.things) - 1,)),
            TensorSpec(name="next_memory", role="state", dtype="float32", shape=(num_hidden,)),
        ),
        safe_action=(),
        latency_budget_s=0.5,
        max_observation_age_s=1.0,
        on_stale="hold",
        on_late="hold",
        parity_atol=1e-3,  # scores of tens
        vocabulary=words.lists(),
        training=training,
    )
