"""Studies of the warehouse: a fleet on a public map, without a touch."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from embodied.errors import EmbodiedError
from embodied.studies.figure import Figure

_MAP = "pogema/03-warehouse_maps.yaml"
_NAME = "wfi_warehouse"


def public_data() -> Path:
    """Return the folder of public inputs: ``$EMBODIED_DATA``, or ``../shared/data`` beside the checkout.

    Raises:
      EmbodiedError: it is in neither place.
    """
    import os

    named = os.environ.get("EMBODIED_DATA")
    for folder in (Path(named) if named else None, Path(__file__).parents[3] / "shared" / "data"):
        if folder is not None and folder.is_dir():
            return folder
    raise EmbodiedError(
        "The public inputs were not found. Set EMBODIED_DATA to the folder that holds pogema/03-warehouse_maps.yaml."
    )


def fleet(quick: bool, out: Path) -> list[Figure]:
    """Eight robots deliver for ten simulated minutes (one when quick) on POGEMA's ``wfi_warehouse``."""
    from embodied.agents.fleet import run_fleet

    seeds = (0,) if quick else (0, 1)
    sim_time_s = 60.0 if quick else 600.0
    path = public_data() / _MAP
    results = [run_fleet(path, _NAME, robots=8, sim_time_s=sim_time_s, seed=s) for s in seeds]
    out.mkdir(parents=True, exist_ok=True)
    (out / "fleet.json").write_text(json.dumps([asdict(r) for r in results], indent=1), encoding="utf-8")
    collisions = sum(len(r.collisions) for r in results)
    rates = sorted(r.deliveries_per_hour for r in results)
    failures = sum(sum(r.failures.values()) for r in results)
    note = f"8 robots, {sim_time_s:.0f} s, seeds {', '.join(map(str, seeds))}"
    return [
        Figure("collisions of the fleet", float(collisions), None, None, "= 0", len(seeds), note=note),
        Figure("skill failures of the fleet", float(failures), None, None, "= 0", len(seeds), note=note),
        Figure(
            "deliveries per hour", sum(rates) / len(rates), rates[0], rates[-1], "> 0", len(seeds), "1/h", note=note
        ),
    ]
