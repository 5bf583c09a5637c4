"""What a training recipe is, and what a policy must offer to be exported. Importing this module loads no torch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from numpy.typing import NDArray

from embodied_deploy.package.contract import PolicyContract

if TYPE_CHECKING:
    import torch

    from embodied.train.run import TrainRun

Feed = Mapping[str, NDArray[Any]]
"""Input name of the graph to an array with a leading batch axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One evaluated episode; ``value`` is 0 or 1 for success tasks, else in [0, 1]."""

    seed: int
    value: float
    outcome: str = ""
    steps: int = 0


class ExportablePolicy(Protocol):
    """A ``torch.nn.Module`` ready to become a graph.

    ``forward`` takes the tensors of ``contract.inputs`` in order and returns a tuple in the order of
    ``contract.outputs``, all in physical units: normaliser, history, action scale and limits are inside. Its
    normaliser is a submodule named ``normalizer`` and its limiter one named ``limiter``: the exporter never quantizes
    or folds them. Recurrent cells are written out (``GRUCell`` form), never ``nn.GRU``.
    """

    contract: PolicyContract

    def __call__(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Run a batch."""
        ...

    def eval(self) -> Any:  # noqa: ANN401 -- the module itself
        """Switch to evaluation mode."""
        ...


class Recipe(ABC):
    """How one policy is trained, exported and judged. Instances carry no state.

    Everything random comes from ``run.seed``; :meth:`train` resumes from ``run.resume()`` when that is not None.
    """

    id: ClassVar[str]
    version: ClassVar[str]
    summary: ClassVar[str]
    default_steps: ClassVar[int]

    @abstractmethod
    def train(self, run: TrainRun) -> None:
        """Train for ``run.steps`` steps: log curves with ``run.log``, checkpoint with ``run.save``."""

    @abstractmethod
    def policy(self, checkpoint: Mapping[str, Any]) -> ExportablePolicy:
        """Rebuild the policy of a checkpoint on the CPU."""

    @abstractmethod
    def calibration(self, policy: ExportablePolicy, count: int, seed: int) -> Feed:
        """Return ``count`` inputs from rollouts of the policy itself (recurrent state included)."""

    @abstractmethod
    def evaluate(self, package: Path, seeds: Sequence[int], workers: int = 1) -> list[Score]:
        """Run the packaged policy in its task, one episode per seed; needs no torch."""
