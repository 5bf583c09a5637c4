"""The network: a small detector of things, and a recurrent decider that reads the instruction and what is visible.

Detector: image to one score for each thing in each cell of 8 x 8 pixels; a thing's score is that of its best cell.
Decider: instruction tokens, each with the visibility of the thing that it names, and the last call with its outcome;
attention over the tokens before and after a gated recurrent cell; a table of what was done with each name; four heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from embodied.train.modules import GruCell
from embodied_deploy.package.contract import PolicyContract
from embodied_deploy.planner.vocabulary import Vocabulary

NUM_HIDDEN = 192
_EMBED, _TOKEN, _LAST, _ROW = 32, 64, 64, 32
_BLOCKS = 3  # of the table: done, last success, last failure
_FADE_SUCCESS, _FADE_FAILURE = 0.9, 0.85
_UNDOES = (("open", "close"), ("pick", "place"))
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
    """From what is asked, visible and remembered to scores of the next call.

    Its memory has two parts: the state of a gated cell, and a table that needs no learning: for each name and skill,
    whether such a call succeeded and nothing undid it since, how long ago the last success was and how long ago the
    last failure (1, fading by the decision). The graph keeps both by itself out of the last call, a runtime only
    carries them.
    """

    def __init__(self, words: Vocabulary) -> None:
        super().__init__()
        self.sizes = (len(words.skills), len(words.things), len(words.furniture), len(words.relations))
        names = (*words.things[1:], *words.furniture[1:])
        self.num_things, self.num_names = len(words.things) - 1, len(names)
        self.num_columns = len(words.skills) - 1  # 'done' is the last skill and leaves no trace
        self.num_memory = NUM_HIDDEN + _BLOCKS * self.num_names * self.num_columns
        self.register_buffer("name_of_word", _matches(words.words, names))
        self.register_buffer("name_of_thing", _matches(words.things, names))
        self.register_buffer("name_of_furniture", _matches(words.furniture, names))
        self.register_buffer("column_of_skill", _matches(("", *words.skills), words.skills[:-1]))
        columns = words.skills[:-1]
        undone = torch.zeros(len(words.skills) + 1, self.num_columns)
        for a, b in (*_UNDOES, *(pair[::-1] for pair in _UNDOES)):
            undone[1 + columns.index(a), columns.index(b)] = 1.0
        self.register_buffer("undone_by_skill", undone)
        self.register_buffer("is_success", torch.tensor([1.0] + [0.0] * (len(words.outcomes) - 1)))
        self.token = nn.Embedding(len(words.words), _EMBED)
        self.near = nn.Conv1d(_EMBED, _TOKEN, 5, padding=2)
        self.near_2 = nn.Conv1d(_TOKEN, _TOKEN, 5, padding=2)
        self.key_value = nn.Linear(_TOKEN, 2 * _TOKEN)
        num_cells = _BLOCKS * self.num_columns
        self.now = nn.Sequential(nn.Linear(2 + num_cells, _ROW), nn.ReLU(), nn.Linear(_ROW, 2 * _TOKEN))
        self.place = nn.Parameter(torch.randn(self.sizes[2] - 1, _ROW) * 0.3)
        self.row = nn.Linear(1 + num_cells, _ROW)
        self.last = nn.ModuleList(
            nn.Embedding(n, _LAST) for n in (self.sizes[0] + 1, *self.sizes[1:], len(words.outcomes))
        )
        self.before = Attention(NUM_HIDDEN + _LAST, _TOKEN)
        self.scan = Attention(NUM_HIDDEN + _LAST, _ROW)
        self.cell = GruCell(_LAST + _TOKEN + _ROW, NUM_HIDDEN)
        self.after = Attention(NUM_HIDDEN, _TOKEN)
        self.mix = nn.Linear(NUM_HIDDEN + 2 * _TOKEN + 2 * _ROW, NUM_HIDDEN)
        self.heads = nn.Linear(NUM_HIDDEN, sum(self.sizes))
        self.wish = nn.Linear(NUM_HIDDEN, _ROW)
        self.choice = nn.Linear(_ROW, 1)

    def start(self, count: int) -> Tensor:
        """Return the (count, memory) memory of fresh episodes."""
        return torch.zeros(count, self.num_memory)

    def read(self, instruction: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return keys and values (B, L, 2 token), names (B, L, names) and padding (B, L) of (B, L) tokens."""
        is_pad = (instruction == 0).to(torch.float32)
        real = (1.0 - is_pad)[:, None, :]  # without padding in between, a text reads the same at any length
        x = torch.relu(self.near(self.token(instruction).transpose(1, 2) * real)) * real
        x = x + torch.relu(self.near_2(x))
        named = cast("Tensor", self.name_of_word)[instruction]
        return self.key_value(x.transpose(1, 2)), named, is_pad

    def forward(self, instruction: Tensor, visible: Tensor, last: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Return (B, scores) of all heads and the (B, memory) next memory.

        Args:
          instruction: (B, L) tokens.
          visible: (B, things) scores of the detector.
          last: (B, 5) tokens of the last call.
          memory: (B, memory).
        """
        return self.step(self.read(instruction), visible, last, memory)

    def step(
        self, text: tuple[Tensor, Tensor, Tensor], visible: Tensor, last: Tensor, memory: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Advance by one decision with an instruction that was read."""
        both, named, is_pad = text
        hidden, table = memory[:, :NUM_HIDDEN], self._noted(memory[:, NUM_HIDDEN:], last)
        seen = torch.clamp(visible, _ABSENT, _PRESENT) * (1.0 / _PRESENT)
        is_thing = named[..., : self.num_things]
        here = torch.stack([(is_thing * seen[:, None, :]).sum(-1), is_thing.sum(-1)], dim=-1)
        both = both + self.now(torch.cat([here, named @ table], dim=-1))
        keys, values = both[..., :_TOKEN], both[..., _TOKEN:]
        asked = named.sum(1)[:, self.num_things :, None]
        rows = torch.relu(self.row(torch.cat([asked, table[:, self.num_things :]], dim=-1)) + self.place)
        embedded = self.last[0](last[:, 0])
        for i in range(1, 5):
            embedded = embedded + self.last[i](last[:, i])
        query = torch.cat([hidden, embedded], dim=1)
        first = self.before(query, keys, values, is_pad)
        scan = self.scan(query, rows, rows, torch.zeros_like(rows[..., 0]))
        hidden = self.cell(torch.cat([embedded, first, scan], dim=1), hidden)
        second = self.after(hidden, keys, values, is_pad)
        mixed = torch.relu(self.mix(torch.cat([hidden, first, second, scan, rows.amax(dim=1)], dim=1)))
        skill, thing, furniture, relation = torch.split(self.heads(mixed), list(self.sizes), dim=1)
        liked = self.choice(torch.relu(rows + self.wish(mixed)[:, None, :])).squeeze(-1)
        furniture = torch.cat([furniture[:, :1], furniture[:, 1:] + liked], dim=1)
        scores = torch.cat([skill, thing, furniture, relation], dim=1)
        return scores, torch.cat([hidden, table.flatten(1)], dim=1)

    def _noted(self, flat: Tensor, last: Tensor) -> Tensor:
        """Return the (B, names, 3 columns) table with the last call in it."""
        width = self.num_columns
        table = flat.reshape(-1, self.num_names, _BLOCKS * width)
        done, success, failure = table[..., :width], table[..., width : 2 * width], table[..., 2 * width :]
        names = cast("Tensor", self.name_of_thing)[last[:, 1]] + cast("Tensor", self.name_of_furniture)[last[:, 2]]
        ok = cast("Tensor", self.is_success)[last[:, 4]][:, None, None]
        mark = names[:, :, None] * cast("Tensor", self.column_of_skill)[last[:, 0]][:, None, :]
        undone = names[:, :, None] * cast("Tensor", self.undone_by_skill)[last[:, 0]][:, None, :] * ok
        good, bad = mark * ok, mark * (1.0 - ok)
        done = done * (1.0 - good) * (1.0 - undone) + good
        success = success * (1.0 - good) * _FADE_SUCCESS + good
        failure = failure * (1.0 - bad) * _FADE_FAILURE + bad
        return torch.cat([done, success, failure], dim=-1)


def _matches(words: Sequence[str], names: Sequence[str]) -> Tensor:
    """Return (words, names) with 1 where a word is a name."""
    return torch.tensor([[float(word == name) for name in names] for word in words])


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
