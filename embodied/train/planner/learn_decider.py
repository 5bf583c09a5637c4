"""Training of the decider: the student steers symbolic episodes, the teacher says what it should have done (DAgger).

Sequences of the kinematic stage, with scores of the trained detector on real images, are mixed in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from embodied.seeding import stream_rng, stream_seed
from embodied.skills.contract import SkillCall
from embodied.train.planner.collect import random_call, target_of
from embodied.train.planner.network import Decider
from embodied.train.planner.symbolic import SIGHT, Sight, SymbolicStage
from embodied.train.planner.teacher import Done, next_call
from embodied.train.planner.words import INSTRUCTION_TOKENS, outcome_word, to_call, to_skill_call, vocabulary
from embodied_deploy.planner.decoding import decode, not_again

_UNUSED = 0.1
_PICK = 2.0  # a pick too many costs a decision, one too few the thing
_THING, _FURNITURE, _RELATION = ("pick", "place"), ("go_to", "look", "open", "close", "place"), ("place",)


@dataclass(frozen=True, slots=True)
class Sequences:
    """Padded episodes: (N, T, 4) answers, (N, T, 5) last calls, (N, T, things) scores, (N, L) tokens, (N,) lengths."""

    answers: NDArray[np.int64]
    lasts: NDArray[np.int64]
    scores: NDArray[np.float32]
    tokens: NDArray[np.int64]
    lengths: NDArray[np.int64]

    def take(self, picks: NDArray[np.int64]) -> Sequences:
        """Return some of the episodes, cut to the longest of them."""
        longest = int(self.lengths[picks].max())
        cut = slice(None, longest)
        return Sequences(
            self.answers[picks][:, cut],
            self.lasts[picks][:, cut],
            self.scores[picks][:, cut],
            self.tokens[picks],
            self.lengths[picks],
        )


def padded(episodes: Sequence[dict[str, NDArray[Any]]]) -> Sequences:
    """Pad episodes with ``answers``, ``lasts``, ``scores`` and ``tokens`` to one length."""
    lengths = np.array([len(e["answers"]) for e in episodes], dtype=np.int64)
    longest = int(lengths.max())

    def pad(name: str, dtype: type) -> NDArray[Any]:
        out = np.zeros((len(episodes), longest, *episodes[0][name].shape[1:]), dtype=dtype)
        for i, e in enumerate(episodes):
            out[i, : lengths[i]] = e[name]
        return out

    tokens = np.array([e["tokens"] for e in episodes], dtype=np.int64)
    return Sequences(pad("answers", np.int64), pad("lasts", np.int64), pad("scores", np.float32), tokens, lengths)


def sequence_loss(decider: Decider, batch: Sequences) -> tuple[Tensor, dict[str, float]]:
    """Return the mean loss per decision and shares of right decisions of a batch of episodes."""
    words = vocabulary()
    answers, lasts = torch.from_numpy(batch.answers), torch.from_numpy(batch.lasts)
    scores = torch.from_numpy(batch.scores)
    longest = int((batch.tokens != 0).sum(axis=1).max())
    text = decider.read(torch.from_numpy(batch.tokens[:, :longest]))
    count, steps = batch.answers.shape[:2]
    memory, outs = decider.start(count), []
    for t in range(steps):
        out, memory = decider.step(text, scores[:, t], lasts[:, t], memory)
        outs.append(out)
    flat = torch.stack(outs, dim=1).reshape(count * steps, -1)
    is_live = (torch.arange(steps)[None] < torch.from_numpy(batch.lengths)[:, None]).reshape(-1)
    target = answers.reshape(-1, 4)
    skill = target[:, 0]
    worth = torch.where(skill == words.skills.index("pick"), _PICK, 1.0)
    total, right = torch.zeros(()), is_live.clone()
    for part, (logits, used) in enumerate(
        zip(
            torch.split(flat, list(decider.sizes), dim=1),
            (words.skills, _THING, _FURNITURE, _RELATION),
            strict=True,
        )
    ):
        ids = torch.tensor([words.skills.index(s) for s in used])
        is_used = torch.isin(skill, ids) & is_live
        loss = functional.cross_entropy(logits, target[:, part], reduction="none")
        weight = torch.where(is_used, 1.0, _UNUSED) * is_live * worth  # unused arguments learn to say 'none'
        total = total + (loss * weight).sum()
        right &= (logits.argmax(1) == target[:, part]) | ~is_used
    live = is_live.sum()
    return total / live, {"right": float(right.sum() / live)}


@torch.no_grad()
def rollouts(
    decider: Decider,
    stages: Sequence[SymbolicStage],
    rng: np.random.Generator,
    *,
    student: float,
    noise: float,
) -> tuple[list[dict[str, NDArray[Any]]], list[bool]]:
    """Run episodes side by side; return their records and whether they succeeded.

    Args:
      decider: the student.
      stages: fresh stages.
      rng: source of noise.
      student: share of the episodes that the student steers; the teacher steers the others.
      noise: share of the teacher's calls that chance replaces.
    """
    words = vocabulary()
    count = len(stages)
    tokens = np.array([words.instruction(s.instruction, INSTRUCTION_TOKENS) for s in stages])
    text = decider.read(torch.from_numpy(tokens))
    memory = decider.start(count)
    past: list[list[Done]] = [[] for _ in stages]
    records: list[dict[str, list[Any]]] = [{"answers": [], "lasts": [], "scores": []} for _ in stages]
    is_student, is_over = rng.random(count) < student, np.zeros(count, dtype=bool)
    last = np.zeros((count, 5), dtype=np.int64)
    budgets = np.array([20 + 20 * len(s.moves) for s in stages])  # as in the task
    for number in range(int(budgets.max())):
        is_over |= budgets <= number
        for i, stage in enumerate(stages):
            if not is_over[i]:
                stage.observe()
        scores = np.array([s.scores for s in stages])
        out, memory = decider.step(text, torch.from_numpy(scores), torch.from_numpy(last), memory)
        parts = [p.numpy() for p in torch.split(out, list(decider.sizes), dim=1)]
        for i, stage in enumerate(stages):
            if is_over[i]:
                continue
            answer = next_call(stage.moves, past[i], stage.wanted_known)
            records[i]["answers"].append(target_of(answer))
            records[i]["lasts"].append(last[i].copy())
            records[i]["scores"].append(scores[i])
            call = answer
            if is_student[i]:
                refused = past[i][-1] if past[i] else None
                call = _student_call([p[i] for p in parts], refused)
            elif rng.random() < noise:
                call = random_call(stage, rng)
            if call.skill == "done":
                is_over[i] = True
                continue
            code = stage.apply(call)
            past[i].append(Done(call, code))
            last[i] = words.last_call(to_call(call), outcome_word(code))
        if is_over.all():
            break
    found = [{k: np.array(v) for k, v in r.items()} | {"tokens": t} for r, t in zip(records, tokens, strict=True)]
    return found, [s.succeeded() for s in stages]


def _student_call(scores: list[NDArray[np.float32]], last: Done | None) -> SkillCall:
    refused = not_again(to_call(last.call), outcome_word(last.code)) if last is not None else None
    call, _ = decode(vocabulary(), scores, refused=refused)
    return to_skill_call(call)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeciderConfig:
    """How the decider is trained.

    Attributes:
      episodes: symbolic episodes per round.
      batches: gradient steps per round.
      batch_size: episodes per step.
      keep: rounds in the buffer.
      real: share of each batch that comes from the kinematic stage.
      learning_rate: peak of the cosine.
    """

    episodes: int = 192
    batches: int = 24
    batch_size: int = 64
    keep: int = 40
    real: float = 0.35
    learning_rate: float = 2e-3


class DeciderTrainer:
    """Rounds of rollouts and gradient steps; :meth:`round` may be called for as long as there is time.

    Args:
      decider: what learns.
      seed: of everything.
      rounds: how many there will be, for the learning rate.
      config: rates and sizes.
      sight: of the symbolic stage.
      real: episodes of the kinematic stage.
      warm: rounds that it has behind it already.
    """

    def __init__(
        self,
        decider: Decider,
        seed: int,
        rounds: int,
        config: DeciderConfig | None = None,
        sight: Sight = SIGHT,
        real: Sequences | None = None,
        warm: int = 0,
    ) -> None:
        self.decider, self.seed, self.rounds = decider, seed, rounds
        self.config = config or DeciderConfig()
        self.sight, self.real, self.warm = sight, real, warm
        self.ema = {k: v.detach().clone() for k, v in decider.state_dict().items()}
        self._optimizer = torch.optim.AdamW(decider.parameters(), lr=1e-3, weight_decay=1e-4)
        self._buffer: deque[list[dict[str, NDArray[Any]]]] = deque(maxlen=self.config.keep)

    def round(self, number: int) -> dict[str, float]:
        """Collect episodes and learn from the buffer; return curves."""
        config, rng = self.config, stream_rng(self.seed, "policy", "decider", number)
        stages = [
            SymbolicStage(stream_seed(self.seed, "task", "symbolic", number, i) % 2**31, self.sight)
            for i in range(config.episodes)
        ]
        student = min(0.8, 0.15 * (number + self.warm))
        self.decider.eval()
        records, successes = rollouts(self.decider, stages, rng, student=student, noise=0.12)
        self._buffer.append(records)
        self.decider.train()
        share = number / max(self.rounds, 1)
        rate = config.learning_rate * min(1.0, (number + 1) / 3) * (0.02 + 0.98 * 0.5 * (1 + np.cos(np.pi * share)))
        for group in self._optimizer.param_groups:
            group["lr"] = float(rate)
        episodes = sorted((e for part in self._buffer for e in part), key=lambda e: len(e["answers"]))
        losses, rights = [], []
        for _ in range(config.batches):
            batch = padded([episodes[int(i)] for i in _alike(len(episodes), config.batch_size, rng)])
            loss, curves = sequence_loss(self.decider, batch)
            if self.real is not None:
                size = max(int(config.real * config.batch_size), 1)
                picks = np.argsort(self.real.lengths, kind="stable")[_alike(len(self.real.lengths), size, rng)]
                more, _ = sequence_loss(self.decider, self.real.take(picks))
                loss = loss + config.real * more
            self._optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.decider.parameters(), 1.0)
            self._optimizer.step()
            with torch.no_grad():
                for k, v in self.decider.state_dict().items():
                    self.ema[k].lerp_(v, 0.02)
            losses.append(float(loss.detach()))
            rights.append(curves["right"])
        return {
            "loss": float(np.mean(losses)),
            "right": float(np.mean(rights)),
            "success": float(np.mean(successes)),
            "student": student,
        }


def _alike(count: int, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return indices out of one stretch of a sorted list: episodes of about one length, so that little is padding."""
    stretch = min(count, 4 * size)
    first = int(rng.integers(count - stretch + 1))
    return first + rng.integers(stretch, size=size)
