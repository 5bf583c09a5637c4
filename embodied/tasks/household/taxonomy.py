"""From the words of the BEHAVIOR taxonomy to templates: known words, then words for packaging, then hypernyms."""

from __future__ import annotations

import csv
import hashlib
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from embodied.errors import TaskError

Params = dict[str, float | int | str | bool | tuple[float, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A template with its parameters."""

    model: str
    params: Params


def data_folder() -> Path:
    """Return the folder of the BEHAVIOR data.

    Raises:
      TaskError: it is nowhere; the message says where to put it.
    """
    beside = Path(__file__).resolve().parents[3].parent / "shared" / "data"
    root = Path(os.environ["EMBODIED_DATA"]) if os.environ.get("EMBODIED_DATA") else beside
    folder = root / "behavior"
    if not (folder / "activities").is_dir() or not (folder / "synsets.csv").is_file():
        raise TaskError(
            "The BEHAVIOR activities are not here: expected activities/*.bddl and synsets.csv (from the package "
            f"bddl 3.6.0) in {folder}. Put them there, or set EMBODIED_DATA to the folder that holds behavior/."
        )
    return folder


@cache
def _hypernyms(folder: Path) -> dict[str, tuple[str, ...]]:
    with (folder / "synsets.csv").open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        return {r["synset"]: tuple(h.strip() for h in (r["hypernyms"] or "").split(",") if h.strip()) for r in rows}


@cache
def closure(synset: str) -> frozenset[str]:
    """Return a synset and all that it is a kind of.

    Raises:
      TaskError: the data folder is missing.
    """
    table = _hypernyms(data_folder())
    found: set[str] = set()
    waiting = [synset]
    while waiting:
        word = waiting.pop()
        if word not in found:
            found.add(word)
            waiting.extend(table.get(word, ()))
    return frozenset(found)


def lemma(synset: str) -> str:
    """Word of a synset: ``jar__of__honey.n.01`` is ``jar_of_honey``."""
    return synset.split(".", maxsplit=1)[0].replace("__", "_")


# Colours that a person expects; every other word gets one from its digest.
_COLORS: dict[str, tuple[float, float, float]] = {
    "banana": (0.98, 0.85, 0.15),
    "apple": (0.85, 0.10, 0.12),
    "half_apple": (0.90, 0.75, 0.55),
    "mango": (0.98, 0.65, 0.20),
    "pomegranate": (0.70, 0.10, 0.25),
    "egg": (0.95, 0.90, 0.82),
    "beer_bottle": (0.35, 0.20, 0.08),
    "carboy": (0.45, 0.75, 0.80),
    "jar_of_honey": (0.90, 0.62, 0.10),
    "die": (0.95, 0.95, 0.95),
}
_WORDS: dict[str, tuple[str, Params]] = {
    "mug": ("mug", {}),
    "bowl": ("cup", {"height_m": 0.045}),
    "plate": ("plate", {}),
    "book": ("book", {}),
    "newspaper": ("newspaper", {}),
    "banana": ("block_thing", {"length_m": 0.16, "width_m": 0.045, "height_m": 0.045}),
    "egg": ("round_thing", {"width_m": 0.048, "height_m": 0.06, "mass_kg": 0.06, "stalk": False}),
    "half_apple": ("round_thing", {"height_m": 0.04, "stalk": False, "mass_kg": 0.08}),
    "die": ("block_thing", {"length_m": 0.05, "width_m": 0.05, "height_m": 0.05, "mass_kg": 0.06}),
    "board_game": ("cereal_box", {}),
    "jigsaw_puzzle": ("cereal_box", {}),
    "battery": ("can", {"width_m": 0.04, "height_m": 0.08, "mass_kg": 0.1}),
    "package": ("block_thing", {"length_m": 0.12, "width_m": 0.066, "height_m": 0.09, "mass_kg": 0.3}),
    "mail": ("envelope", {}),
    "envelope": ("envelope", {}),
    "legal_document": ("envelope", {}),
    "grocery": ("cereal_box", {}),
    "blanket": ("block_thing", {"length_m": 0.14, "width_m": 0.066, "height_m": 0.07, "mass_kg": 0.2}),
    "dinner_napkin": ("block_thing", {"length_m": 0.10, "width_m": 0.06, "height_m": 0.03, "mass_kg": 0.05}),
}
_PACKAGING: dict[str, str] = {
    "bottle": "bottle",
    "jar": "can",
    "can": "can",
    "cup": "cup",
    "box": "cereal_box",
    "carton": "milk_carton",
    "bag": "block_thing",
}
# First match decides, most special first.
_KINDS: tuple[tuple[str, str, Params], ...] = (
    ("bottle.n.01", "bottle", {}),
    ("edible_fruit.n.01", "round_thing", {}),
    ("vegetable.n.01", "round_thing", {"stalk": False}),
    ("writing_implement.n.01", "utensil", {"head_width_m": 0.03, "length_m": 0.14}),
    ("cutlery.n.02", "utensil", {}),
    ("edge_tool.n.01", "utensil", {"head_width_m": 0.04}),
    ("plaything.n.01", "soft_toy", {}),
    ("footwear.n.02", "shoe", {}),
    ("jar.n.01", "can", {}),
    ("crockery.n.01", "cup", {}),
    ("kitchen_appliance.n.01", "block_thing", {"length_m": 0.14, "width_m": 0.068, "height_m": 0.16, "mass_kg": 0.45}),
    ("bread.n.01", "block_thing", {"length_m": 0.16, "width_m": 0.066, "height_m": 0.08, "mass_kg": 0.25}),
)


def thing_shape(synset: str) -> Shape:
    """Return a graspable template for any word; a word that nothing is known of becomes a coloured brick."""
    word = lemma(synset)
    model, params = _model_of(synset, word)
    return Shape(model=model, params={**params, "color": _COLORS.get(word, _digest_color(word))})


def _model_of(synset: str, word: str) -> tuple[str, Params]:
    if word in _WORDS:
        return _WORDS[word]
    packaging, of, _ = synset.partition("__of__")
    if of and packaging in _PACKAGING:
        return _PACKAGING[packaging], {}
    kinds = closure(synset)
    for kind, model, params in _KINDS:
        if kind in kinds:
            return model, params
    return "block_thing", {}


def _digest_color(word: str) -> tuple[float, float, float]:
    raw = hashlib.sha256(word.encode()).digest()
    return (0.25 + 0.7 * raw[0] / 255, 0.25 + 0.7 * raw[1] / 255, 0.25 + 0.7 * raw[2] / 255)


# Containers that stand still: word to template on the floor and on furniture.
_CONTAINERS: dict[str, tuple[str, Params]] = {
    "mailbox": ("mailbox", {}),
    "crib": ("open_box", {"depth_m": 0.40, "width_m": 0.56, "height_m": 0.70, "raised_m": 0.42}),
    "recycling_bin": ("open_box", {"depth_m": 0.36, "width_m": 0.36, "height_m": 0.55, "raised_m": 0.25}),
    "sack": ("open_box", {"depth_m": 0.46, "width_m": 0.52, "height_m": 0.58, "raised_m": 0.30}),
}


def container_shape(synset: str, *, on_floor: bool) -> Shape | None:
    """Return the template of a container that stands where the activity puts it, or None for other words."""
    word = lemma(synset)
    words = ("bin", "box", "sack", "crib", "basket", "ashcan", "carton", "mailbox", "bag", "vase")
    if "__of__" in synset or not any(word == w or word.endswith("_" + w) for w in words):
        return None
    color = _digest_color(word)
    if word in _CONTAINERS and on_floor:
        model, params = _CONTAINERS[word]
        return Shape(model=model, params={**params, "color": color})
    if on_floor:
        return Shape(
            model="open_box",
            params={"depth_m": 0.46, "width_m": 0.52, "height_m": 0.55, "raised_m": 0.28, "color": color},
        )
    return Shape(model="basket", params={"color": color})
