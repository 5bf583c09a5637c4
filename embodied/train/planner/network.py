"""The network: a small detector of things, and a recurrent decider that reads the instruction and what is visible.

Detector: image to one score for each thing in each cell of 8 x 8 pixels; a thing's score is that of its best cell.
Decider: instruction tokens, each with the visibility of the thing that it names, and the last call with its outcome;
attention over the tokens before and after a gated recurrent cell (the memory of the episode); four heads.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from embodied.train.modules import GruCell
from embodied_deploy.package.contract import PolicyContract
from embodied_deploy.planner.vocabulary import Vocabulary

NUM_HIDDEN = 192
_EMBED, _TOKEN, _LAST = 32, 64, 64
_CHANNELS = (16, 32, 48)
_ABSENT, _PRESENT = -6.0, 6.0  # range of visibility scores that the decider sees


class Detector(nn.Module):
    """Scores of things in the cells of an image.

    Args:
      num_things: things that it knows.
      channels: of the three halvings.
    """

    def __init__(self, num_things: int, channels: tuple[int, int, int] = _CHANNELS) -> None:
        super().__init__()
        a, b, c = channels
        self.layers = nn.Sequential(
            *_convolution(3, a, 5, stride=2),
            *_convolution(a, b, 3, stride=2),
            *_convolution(b, b, 3),
            *_convolution(b, c, 3, stride=2),
            *_convolution(c, c, 3, dilation=2),
        )
        self.cells = nn.Conv2d(c, num_things, 1)
        nn.init.constant_(cast("Tensor", self.cells.bias), -4.0)

    def forward(self, image: Tensor) -> Tensor:
        """Return (B, things, H/8, W/8) scores of (B, H, W, 3) uint8 images."""
        x = image.permute(0, 3, 1, 2).to(torch.float32) * (1.0 / 127.5) - 1.0
        return self.cells(self.layers(x))


def _convolution(a: int, b: int, size: int, *, stride: int = 1, dilation: int = 1) -> tuple[nn.Module, ...]:
    """Return a convolution that keeps its place, with batch statistics that exporting folds into it."""
    padding = dilation * (size // 2)
    layer = nn.Conv2d(a, b, size, stride=stride, padding=padding, dilation=dilation, bias=False)
    return layer, nn.BatchNorm2d(b), nn.ReLU()


class Attention(nn.Module):
    """Four-headed attention of one query over tokens that give keys and values."""

    def __init__(self, num_query: int, num_token: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(num_query, num_token)

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, is_pad: Tensor) -> Tensor:
        """Return (B, num_token) of (B, num_query), (B, L, num_token) keys and values, and (B, L) padding."""
        length, width = keys.shape[1], keys.shape[2]
        size = width // self.heads
        q = self.query(query).reshape(-1, 1, self.heads, size)
        weight = (q * keys.reshape(-1, length, self.heads, size)).sum(-1) * size**-0.5 - 1e4 * is_pad[:, :, None]
        weight = torch.softmax(weight, dim=1)
        return (weight[..., None] * values.reshape(-1, length, self.heads, size)).sum(1).reshape(-1, width)


class Decider(nn.Module):
    """From what is asked, visible and remembered to scores of the next call."""

    def __init__(self, words: Vocabulary) -> None:
        super().__init__()
        self.sizes = (len(words.skills), len(words.things), len(words.furniture), len(words.relations))
        self.token = nn.Embedding(len(words.words), _EMBED)
        thing_of_word = torch.zeros(len(words.words), len(words.things) - 1)
        for index, thing in enumerate(words.things[1:]):
            thing_of_word[words.index("words", thing), index] = 1.0
        self.register_buffer("thing_of_word", thing_of_word)
        self.near = nn.Conv1d(_EMBED, _TOKEN, 5, padding=2)
        self.near_2 = nn.Conv1d(_TOKEN, _TOKEN, 5, padding=2)
        self.key_value = nn.Linear(_TOKEN, 2 * _TOKEN)
        self.visible = nn.Linear(2, 2 * _TOKEN)
        self.last = nn.ModuleList(
            nn.Embedding(n, _LAST) for n in (self.sizes[0] + 1, *self.sizes[1:], len(words.outcomes))
        )
        self.before = Attention(NUM_HIDDEN + _LAST, _TOKEN)
        self.cell = GruCell(_LAST + _TOKEN, NUM_HIDDEN)
        self.after = Attention(NUM_HIDDEN, _TOKEN)
        self.mix = nn.Linear(NUM_HIDDEN + 2 * _TOKEN, NUM_HIDDEN)
        self.heads = nn.Linear(NUM_HIDDEN, sum(self.sizes))

    def read(self, instruction: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return keys and values (B, L, 2 token), things named (B, L, things) and padding (B, L) of (B, L) tokens."""
        is_pad = (instruction == 0).to(torch.float32)
        real = (1.0 - is_pad)[:, None, :]  # without padding in between, a text reads the same at any length
        x = torch.relu(self.near(self.token(instruction).transpose(1, 2) * real)) * real
        x = x + torch.relu(self.near_2(x))
        named = cast("Tensor", self.thing_of_word)[instruction]
        return self.key_value(x.transpose(1, 2)), named, is_pad

    def forward(self, instruction: Tensor, visible: Tensor, last: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Return (B, scores) of all heads and the (B, hidden) next memory.

        Args:
          instruction: (B, L) tokens.
          visible: (B, things) scores of the detector.
          last: (B, 5) tokens of the last call.
          memory: (B, hidden).
        """
        return self.step(self.read(instruction), visible, last, memory)

    def step(
        self, text: tuple[Tensor, Tensor, Tensor], visible: Tensor, last: Tensor, memory: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Advance by one decision with an instruction that was read."""
        both, named, is_pad = text
        seen = torch.clamp(visible, _ABSENT, _PRESENT) * (1.0 / _PRESENT)
        here = torch.stack([(named * seen[:, None, :]).sum(-1), named.sum(-1)], dim=-1)
        both = both + self.visible(here)
        keys, values = both[..., :_TOKEN], both[..., _TOKEN:]
        embedded = self.last[0](last[:, 0])
        for i in range(1, 5):
            embedded = embedded + self.last[i](last[:, i])
        first = self.before(torch.cat([memory, embedded], dim=1), keys, values, is_pad)
        memory = self.cell(torch.cat([embedded, first], dim=1), memory)
        second = self.after(memory, keys, values, is_pad)
        mixed = torch.relu(self.mix(torch.cat([memory, first, second], dim=1)))
        return self.heads(mixed), memory


class CompactPlanner(nn.Module):
    """Detector and decider in one graph.

    Args:
      words: its vocabulary.
      contract: names of inputs and outputs, see ``promise.py``; may be set later.
    """

    contract: PolicyContract

    def __init__(self, words: Vocabulary, contract: PolicyContract | None = None) -> None:
        super().__init__()
        self.detector = Detector(len(words.things) - 1)
        self.decider = Decider(words)
        if contract is not None:
            self.contract = contract

    def forward(self, image: Tensor, instruction: Tensor, last_call: Tensor, memory: Tensor) -> tuple[Tensor, ...]:
        """Return scores of skills, things, furniture and relations, visibility scores, and the next memory."""
        visible = self.detector(image).flatten(2).amax(dim=2)
        scores, after = self.decider(instruction, visible, last_call, memory)
        skill, thing, furniture, relation = torch.split(scores, list(self.decider.sizes), dim=1)
        return skill, thing, furniture, relation, visible, after
