"""A planner package at work: image, instruction and the last call in; the next call out. Needs onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embodied_deploy.errors import PackageError
from embodied_deploy.package.load import Package
from embodied_deploy.planner.decoding import GRAMMAR, decode, not_again
from embodied_deploy.planner.images import IMAGE_HW, shrink
from embodied_deploy.planner.vocabulary import Call, Vocabulary
from embodied_deploy.policy.session import PolicySession

_INPUTS = ("image", "instruction", "last_call", "memory")
_OUTPUTS = ("skills", "things", "furniture", "relations", "visible", "next_memory")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a planner says.

    Attributes:
      call: the next skill with its arguments.
      confidence: its probability, in [0, 1].
      visible: things that it believes to see.
    """

    call: Call
    confidence: float
    visible: tuple[str, ...]


class CompactPlanner:
    """Asks a planner package, decision by decision; carries its memory.

    Args:
      package: of kind ``planner``, with the inputs and outputs of this planner.
      threads: of onnxruntime.

    Raises:
      PackageError: ``tensor`` or ``format``: another kind of package, or its graph or vocabulary does not fit.
    """

    def __init__(self, package: Package, threads: int = 1) -> None:
        contract = package.contract
        inputs, outputs = tuple(t.name for t in contract.inputs), tuple(t.name for t in contract.outputs)
        if contract.kind != "planner" or inputs != _INPUTS or outputs != _OUTPUTS:
            raise PackageError(
                "tensor",
                f"{contract.name} is a {contract.kind} from {inputs} to {outputs}; a compact planner goes from "
                f"{_INPUTS} to {_OUTPUTS}. Choose another package.",
            )
        try:
            self.words = Vocabulary.of(contract.vocabulary)
        except ValueError as error:
            raise PackageError("format", f"{contract.name}: {error}") from error
        shapes = {t.name: t.shape for t in (*contract.inputs, *contract.outputs)}
        expected = {n: (len(getattr(self.words, n)),) for n in ("skills", "things", "furniture", "relations")}
        expected |= {"image": (*IMAGE_HW, 3), "last_call": (5,), "visible": (len(self.words.things) - 1,)}
        wrong = {n: shapes[n] for n, shape in expected.items() if shapes[n] != shape}
        unknown = sorted(set(self.words.skills) - set(GRAMMAR))
        if wrong or unknown:
            raise PackageError(
                "tensor", f"{contract.name}: shapes {wrong} do not fit its vocabulary, or skills {unknown} are new."
            )
        self._length = shapes["instruction"][0]
        self._session = PolicySession(package, threads)
        self._memory = np.zeros((1, *shapes["memory"]), dtype=np.float32)

    def reset(self) -> None:
        """Forget the episode."""
        self._memory[:] = 0.0

    def feed(
        self, image: NDArray[np.uint8], instruction: str, last: Call | None = None, outcome: str = ""
    ) -> dict[str, NDArray[Any]]:
        """Return the inputs of the graph, batch size 1; see :meth:`decide`."""
        return {
            "image": shrink(image)[None],
            "instruction": self.words.instruction(instruction, self._length)[None],
            "last_call": self.words.last_call(last, outcome)[None],
            "memory": self._memory.copy(),
        }

    def decide(
        self, image: NDArray[np.uint8], instruction: str, last: Call | None = None, outcome: str = ""
    ) -> Decision:
        """Answer with the next call and step the memory.

        Args:
          image: (H, W, 3) uint8 rgb of the camera in the contract, whole multiples of its size.
          instruction: what is asked, in words.
          last: the call before, None at the first decision.
          outcome: how that ended: ``success`` or a failure code.

        Raises:
          ObservationError: an image of another size or type.
        """
        return self.conclude(self._session.infer(self.feed(image, instruction, last, outcome)), last, outcome)

    def conclude(self, outputs: Mapping[str, NDArray[Any]], last: Call | None, outcome: str) -> Decision:
        """Turn outputs of the graph into a decision and step the memory."""
        scores = [outputs[n][0] for n in _OUTPUTS[:4]]
        call, confidence = decode(self.words, scores, refused=not_again(last, outcome))
        self._memory[:] = outputs["next_memory"]
        seen = tuple(t for t, s in zip(self.words.things[1:], outputs["visible"][0], strict=True) if s > 0.0)
        return Decision(call=call, confidence=confidence, visible=seen)
