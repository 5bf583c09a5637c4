"""Tiny policies of every form, with inputs of mixed scales (0.03 to 30): what export tests export."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

if any(importlib.util.find_spec(name) is None for name in ("torch", "onnx", "onnxscript", "onnxruntime")):
    pytest.skip("torch, onnx, onnxscript and onnxruntime come with the extra 'export'", allow_module_level=True)

import torch
from torch import nn

from embodied.export.calibration import CalibrationSet
from embodied.export.onnx import to_onnx
from embodied.seeding import stream_rng
from embodied_deploy.package.contract import Chunk, Entry, PolicyContract, TensorSpec, Training

SCALES = np.geomspace(0.03, 30.0, 12)
"""Spread of each observation entry: sensors in their own units differ that much."""


class Normalizer(nn.Module):
    def __init__(self, mean: np.ndarray, std: np.ndarray) -> None:
        super().__init__()
        self.register_buffer("mean", torch.as_tensor(mean, dtype=torch.float32))
        self.register_buffer("std", torch.as_tensor(std, dtype=torch.float32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.clamp((x - self.mean) / self.std, -5.0, 5.0)


class Limiter(nn.Module):
    def __init__(self, high: list[float]) -> None:
        super().__init__()
        self.register_buffer("high", torch.tensor(high))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x) * self.high


def teacher(z: torch.Tensor, outputs: int) -> torch.Tensor:
    """A smooth function of normalised inputs; random weights would hide the error of quantization."""
    columns = [torch.sin(z[:, i] + 0.5 * z[:, i + 1] - 0.3 * z[:, -1 - i]) for i in range(outputs)]
    return torch.stack(columns, dim=1)


def fit(policy: nn.Module, inputs: tuple[torch.Tensor, ...], wanted: torch.Tensor, steps: int = 400) -> None:
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = ((policy(*inputs)[0] - wanted) ** 2).mean()
        loss.backward()
        optimizer.step()


def entries(names: list[str], low: float, high: float, unit: str = "m", frame: str = "world") -> tuple[Entry, ...]:
    return tuple(Entry(name=n, unit=unit, frame=frame, low=low, high=high) for n in names)


def observation(low: float = -200.0, high: float = 200.0) -> TensorSpec:
    names = [f"signal.s{i}" for i in range(len(SCALES))]
    return TensorSpec(
        name="observation",
        role="observation",
        dtype="float32",
        shape=(len(SCALES),),
        entries=entries(names, low, high, "1", "none"),
    )


def action(n: int, high: float = 1.0, horizon: int = 0) -> TensorSpec:
    names = [f"joint_{i}_rad" for i in range(n)]
    return TensorSpec(
        name="action",
        role="action",
        dtype="float32",
        shape=(horizon, n) if horizon else (n,),
        entries=entries(names, -high, high, "rad", "joint"),
    )


def contract(
    name: str, inputs: tuple[TensorSpec, ...], outputs: tuple[TensorSpec, ...], **changes: Any
) -> PolicyContract:
    acts = [t for t in outputs if t.role == "action"]
    fields: dict[str, Any] = {
        "name": name,
        "version": "1.0.0",
        "kind": "controller" if acts else "planner",
        "robot": "loopback",
        "rate_hz": 100.0,
        "inputs": inputs,
        "outputs": outputs,
        "safe_action": (0.0,) * (len(acts[0].entries) if acts else 0),
        "latency_budget_s": 0.005,
        "max_observation_age_s": 0.05,
        "training": Training(recipe=name, seed=0, commit="0" * 40),
        "opset": 18,
    }
    return PolicyContract(**(fields | changes))


def observations(count: int, seed: int = 0) -> np.ndarray:
    return (stream_rng(seed, "observations").normal(size=(count, len(SCALES))) * SCALES).astype(np.float32)


class Mlp(nn.Module):
    """Observation to action: normaliser, two hidden layers, limiter."""

    def __init__(self, high: float = 2.0) -> None:
        super().__init__()
        self.contract = contract("mlp", (observation(),), (action(4, high),))
        self.normalizer = Normalizer(np.zeros(12), SCALES)
        self.body = nn.Sequential(nn.Linear(12, 64), nn.ELU(), nn.Linear(64, 64), nn.ELU())
        self.head = nn.Linear(64, 4)
        self.limiter = Limiter([high] * 4)

    def forward(self, observation: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (self.limiter(self.head(self.body(self.normalizer(observation)))),)


class MultiplyingNormalizer(nn.Module):
    """The usual form on a device, and the one that quantizers take hold of: they know Mul, but not Div."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(12))
        self.register_buffer("factor", torch.as_tensor(1.0 / SCALES, dtype=torch.float32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.clamp((x - self.mean) * self.factor, -5.0, 5.0)


class MultiplyingMlp(Mlp):
    """The same policy with the other form of normaliser."""

    def __init__(self) -> None:
        super().__init__()
        self.normalizer = MultiplyingNormalizer()


class FoldedMlp(Mlp):
    """The same function with the normaliser folded into the first layer: what the exporter must refuse."""

    def __init__(self, source: Mlp) -> None:
        super().__init__()
        self.load_state_dict(source.state_dict())
        first: Any = self.body[0]
        with torch.no_grad():
            first.bias -= first.weight @ (self.normalizer.mean / self.normalizer.std)
            first.weight /= self.normalizer.std
        self.normalizer = nn.Identity()


class Recurrent(nn.Module):
    """GRU cell with its state as input and output."""

    def __init__(self) -> None:
        super().__init__()
        state_in = TensorSpec(name="state_in", role="state", dtype="float32", shape=(24,), source="state_out")
        state_out = TensorSpec(name="state_out", role="state", dtype="float32", shape=(24,))
        self.contract = contract("recurrent", (observation(), state_in), (action(2), state_out))
        self.normalizer = Normalizer(np.zeros(12), SCALES)
        self.cell = nn.GRUCell(12, 24)
        self.head = nn.Linear(24, 2)
        self.limiter = Limiter([1.0, 1.0])

    def forward(self, observation: torch.Tensor, state_in: torch.Tensor) -> tuple[torch.Tensor, ...]:
        state = self.cell(self.normalizer(observation), state_in)
        return self.limiter(self.head(state)), state


class SequenceRecurrent(Recurrent):
    """The form that must be refused: ``nn.GRU`` over a sequence of one."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRU(12, 24, batch_first=True)

    def forward(self, observation: torch.Tensor, state_in: torch.Tensor) -> tuple[torch.Tensor, ...]:
        out, state = self.cell(self.normalizer(observation)[:, None], state_in[None])
        return self.limiter(self.head(out[:, 0])), state[0]


class History(nn.Module):
    """Two observations, the older one a state, normalised together; raw values reach a layer beside it."""

    def __init__(self) -> None:
        super().__init__()
        state_in = TensorSpec(name="past_in", role="state", dtype="float32", shape=(12,), source="past_out")
        state_out = TensorSpec(name="past_out", role="state", dtype="float32", shape=(12,))
        self.contract = contract("history", (observation(), state_in), (action(2), state_out))
        self.normalizer = Normalizer(np.zeros(24), np.tile(SCALES, 2))
        self.body = nn.Sequential(nn.Linear(24, 32), nn.Tanh(), nn.Linear(32, 2))
        self.direct = nn.Linear(24, 2)
        self.limiter = Limiter([1.0, 1.0])

    def forward(self, observation: torch.Tensor, past_in: torch.Tensor) -> tuple[torch.Tensor, ...]:
        both = torch.cat([observation, past_in], dim=1)
        out = self.body(self.normalizer(both)) + 0.001 * self.direct(both)
        return self.limiter(out), observation * 1.0


class Convolutional(nn.Module):
    """Image and proprioception to a chunk of actions; takes its inputs as ``*inputs``."""

    def __init__(self) -> None:
        super().__init__()
        image = TensorSpec(name="wrist", role="image", dtype="uint8", shape=(32, 32, 3), source="wrist")
        chunk = Chunk(horizon=4, execute=2, max_age_s=0.1)
        self.contract = contract("convolutional", (image, observation()), (action(3, horizon=4),), chunk=chunk)
        self.normalizer = Normalizer(np.zeros(12), SCALES)
        self.eye = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU(), nn.Flatten()
        )
        self.body = nn.Sequential(nn.Linear(16 * 8 * 8 + 12, 32), nn.ReLU(), nn.Linear(32, 12))
        self.limiter = Limiter([1.0] * 3)

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        image, observation = inputs
        seen = self.eye(image.permute(0, 3, 1, 2).float() / 255.0)
        out = self.body(torch.cat([seen, self.normalizer(observation)], dim=1))
        return (self.limiter(out.reshape(-1, 4, 3)),)


class Planner(nn.Module):
    """Image and tokens to two sets of logits."""

    def __init__(self) -> None:
        super().__init__()
        image = TensorSpec(name="camera", role="image", dtype="uint8", shape=(32, 32, 3), source="head")
        tokens = TensorSpec(name="instruction", role="tokens", dtype="int64", shape=(6,))
        skill = TensorSpec(name="skill", role="score", dtype="float32", shape=(5,))
        place = TensorSpec(name="place", role="score", dtype="float32", shape=(7,))
        words = {
            "instruction": tuple(f"word{i}" for i in range(20)),
            "skill": tuple(f"skill{i}" for i in range(5)),
            "place": tuple(f"place{i}" for i in range(7)),
        }
        self.contract = contract("planner", (image, tokens), (skill, place), vocabulary=words)
        self.eye = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten())
        self.words = nn.Embedding(20, 16)
        self.body = nn.Sequential(nn.Linear(128 + 16, 48), nn.ReLU())
        self.skill, self.place = nn.Linear(48, 5), nn.Linear(48, 7)

    def forward(self, camera: torch.Tensor, instruction: torch.Tensor) -> tuple[torch.Tensor, ...]:
        seen = self.eye(camera.permute(0, 3, 1, 2).float() / 255.0)
        out = self.body(torch.cat([seen, self.words(instruction).mean(dim=1)], dim=1))
        return self.skill(out), self.place(out)


def make(kind: type[nn.Module], seed: int = 0) -> Any:
    """Build a policy with weights of a seed; MLP and GRU cell are trained for a moment."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    policy: Any = kind()
    if isinstance(policy, (Mlp, Recurrent)) and not isinstance(policy, SequenceRecurrent):
        data = feed(policy, 512, seed=seed + 1)
        inputs = tuple(torch.from_numpy(data[t.name]) for t in policy.contract.inputs)
        n = policy.contract.action.shape[-1]
        high = policy.contract.action.entries[0].high
        fit(policy, inputs, 0.9 * high * teacher(policy.normalizer(inputs[0]), n))
    return policy.eval()


def feed(policy: Any, count: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Draw inputs of every role."""
    rng, found = stream_rng(seed, "feed"), {}
    for spec in policy.contract.inputs:
        shape = (count, *spec.shape)
        if spec.role == "observation":
            found[spec.name] = observations(count, seed)
        elif spec.role == "image":
            coarse = rng.integers(0, 256, (count, 4, 4, 3))
            found[spec.name] = np.kron(coarse, np.ones((1, 8, 8, 1))).astype(np.uint8)
        elif spec.role == "tokens":
            found[spec.name] = rng.integers(0, 20, shape).astype(np.int64)
        elif spec.name == "past_in":
            found[spec.name] = observations(count, seed + 100)
        else:
            found[spec.name] = np.tanh(rng.normal(size=shape)).astype(np.float32)
    return found


@cache
def exported(kind: type[nn.Module]) -> tuple[Any, CalibrationSet, Any]:
    """Return a policy, a calibration set that is not on disk, and its fp32 graph; made once, not to be changed."""
    policy = make(kind)
    data = feed(policy, 320, seed=7)
    calibration = CalibrationSet(feed=data, sha256="0" * 64, path=Path("calibration.npz"))
    return policy, calibration, to_onnx(policy, data)
