"""A flight policy of any size with random weights, for measurements of speed and parity where only size counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from embodied.errors import require
from embodied.export.package import export_policy
from embodied.seeding import stream_rng
from embodied_deploy.package.contract import Training

SAMPLES = 512


def write_specimen(folder: Path, hidden: tuple[int, ...], seed: int = 0) -> dict[str, Path]:
    """Write an untrained MLP of the quadrotor, the same for the same arguments.

    Args:
      folder: for the packages.
      hidden: widths of the hidden layers.
      seed: of weights and of the observations that quantization and parity use.

    Returns:
      Package by precision, ``fp32`` and ``int8-static``.

    Raises:
      MissingExtraError: torch is not installed.
    """
    torch = require("torch", "export")
    from embodied.train.flight.policy import FlightPolicy, flight_contract

    name = "specimen-" + "-".join(map(str, hidden))
    training = Training(recipe="none, random weights", seed=seed, commit="none")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        policy = FlightPolicy(flight_contract(name, "1.0.0", training), hidden).eval()
    (spec,) = policy.contract.inputs
    drawn = stream_rng(seed, "specimen").normal(size=(SAMPLES, *spec.shape))
    low, high = (np.array([getattr(e, side) for e in spec.entries]) for side in ("low", "high"))
    feed = {spec.name: np.clip(drawn, low, high).astype(np.float32)}
    # The gate asks for the accuracy of a trained policy; here only size and arithmetic count.
    made = export_policy(policy, feed, folder, precisions=("fp32", "int8-static"), is_forced=True)
    return {one.contract.precision: one.path for one in made}
