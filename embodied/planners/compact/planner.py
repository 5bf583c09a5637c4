"""The compact planner: a packaged network decides from the head camera, the instruction and its own calls alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embodied.errors import PlannerError
from embodied.planners.calls import abstain_call
from embodied.planners.contract import Plan, PlannerView, Step
from embodied.skills.contract import SkillCall
from embodied_deploy.errors import DeployError
from embodied_deploy.package.load import Package, load_package
from embodied_deploy.planner.planner import CompactPlanner, Decision
from embodied_deploy.planner.vocabulary import Call

NAME, PRECISION = "compact-planner@1", "int8-static"
_ARGUMENTS = {"thing": "thing", "target": "furniture", "relation": "relation"}


class CompactVisionPlanner:
    """Decides from images. It reads neither the belief nor which calls may start.

    The skills that it asks for go on using the belief of the agent, as for every planner: a call about a thing that was
    never perceived comes back as a failure, which the network sees at its next decision.

    Args:
      package: file of a planner package; the shipped int8 one by default.
      precision: of the shipped package.
      blind: whether the network gets black images: the control that shows whether it looks.

    Raises:
      PlannerError: the package is refused.
    """

    privileged = False

    def __init__(self, package: str = "", *, precision: str = PRECISION, blind: bool = False) -> None:
        self._brain = CompactPlanner(_load(package, precision))
        self._blind = blind
        self.last_decision: Decision | None = None

    def reset(self, agent: str, seed: int) -> None:
        """Begin an episode; nothing is random."""
        del seed
        self._agent = agent
        self._brain.reset()

    def act(self, view: PlannerView) -> Plan:
        """Answer with one call; abstain where the robot has other skills or no head camera.

        Raises:
          PlannerError: the camera's image has a size that the network cannot take.
        """
        missing = [s for s in self._brain.words.skills if s not in view.skills]
        if missing:
            return _give_up(view, f"I know the skills of a mobile manipulator in a home; here is no {missing[0]}.")
        image = self.image(view)
        if image is None:
            return _give_up(view, "I decide from images of a head camera, and this robot has none in this world.")
        try:
            decision = self.decide(image, view)
        except DeployError as error:
            raise PlannerError(f"The compact planner cannot decide: {error}") from error
        self.last_decision = decision
        return Plan(calls=(skill_call(decision.call),), confidence=decision.confidence)

    def decide(self, image: NDArray[np.uint8], view: PlannerView) -> Decision:
        """Ask the network."""
        last, outcome = last_of(view.memory[-1]) if view.memory else (None, "")
        return self._brain.decide(image, view.instruction, last, outcome)

    def image(self, view: PlannerView) -> NDArray[np.uint8] | None:
        """Return the image of the head camera, black for a blind planner; None if there is none."""
        image = view.images().get(f"{view.agent}/head_cam")
        return np.zeros_like(image) if self._blind and image is not None else image


def _give_up(view: PlannerView, why: str) -> Plan:
    return Plan(calls=(abstain_call(view.skills, why),), message=why, confidence=0.0)


def last_of(step: Step) -> tuple[Call, str]:
    """Return a remembered call as the device writes it, and the word of its outcome."""
    given: dict[str, Any] = {_ARGUMENTS[k]: str(v) for k, v in step.call.args if k in _ARGUMENTS}
    return Call(step.call.skill, **given), step.outcome.code or "success"


def skill_call(call: Call) -> SkillCall:
    """Return a device's call as skills take it."""
    given = (("thing", call.thing), ("target", call.furniture), ("relation", call.relation))
    return SkillCall(call.skill, tuple((k, v) for k, v in given if v))


def _load(package: str, precision: str) -> Package:
    from embodied.policies.registry import shipped
    from embodied.policies.shipped import RELEASE_KEY

    try:
        if package:
            return load_package(Path(package), check_parity=False)
        return load_package(shipped(NAME, precision), trusted_keys=(RELEASE_KEY,), check_parity=False)
    except DeployError as error:
        raise PlannerError(f"The package of the compact planner is refused: {error}") from error
