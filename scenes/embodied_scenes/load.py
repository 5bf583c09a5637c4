"""Read a scene file: safe YAML, every key checked, things placed on the furniture they stand on.

Besides the keys of :class:`~embodied_scenes.spec.EntitySpec` an entity may say ``on: [ENTITY, REGION, X, Y]``: its
lowest point then rests on that surface (or on the floor of that interior), X and Y metres from the region's middle in
the frame of the furniture. ``yaw_rad`` is then its turn against the furniture.
"""

from __future__ import annotations

import difflib
import math
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from embodied_scenes.errors import SceneFileError
from embodied_scenes.extents import model_box
from embodied_scenes.resolve import SceneBuildError, resolve_model
from embodied_scenes.spec import EntityModel, EntitySpec, PartSpec, SceneSpec


def load_scene(path: Path) -> SceneSpec:
    """Read and check one scene file.

    Raises:
      SceneFileError: no such file, not YAML, an unknown or wrong key, or an ``on`` that names nothing.
    """
    return parse_scene(read_yaml(path), path.name)


def read_yaml(path: Path) -> Any:  # noqa: ANN401
    """Read one YAML file without building Python objects.

    Raises:
      SceneFileError: the file is missing or is not YAML.
    """
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SceneFileError(f"{path}: cannot be read ({error.strerror}). Check the path.") from error
    except yaml.YAMLError as error:
        raise SceneFileError(f"{path.name}: not valid YAML: {error}") from error


def parse_scene(data: Any, source: str) -> SceneSpec:  # noqa: ANN401
    """Turn plain data into a scene.

    Args:
      data: what YAML gave.
      source: name for messages.

    Raises:
      SceneFileError: see :func:`load_scene`.
    """
    if not isinstance(data, dict):
        raise SceneFileError(f"{source}: a scene is a mapping with id, rooms, entities …; got {type(data).__name__}.")
    data = dict(data)
    raw = data.get("entities", ())
    rests: dict[int, Any] = {}
    if isinstance(raw, list | tuple):
        plain = []
        for index, entity in enumerate(raw):
            if isinstance(entity, dict) and "on" in entity:
                rests[index] = entity["on"]
                entity = {k: v for k, v in entity.items() if k != "on"}
            plain.append(entity)
        data["entities"] = plain
    try:
        scene = SceneSpec.model_validate(data)
    except ValidationError as error:
        raise SceneFileError(_explain(error, source)) from error
    return _rest(scene, rests, source) if rests else scene


def _explain(error: ValidationError, source: str) -> str:
    lines = []
    for item in error.errors():
        path = ".".join(str(p) for p in item["loc"])
        hint = ""
        if item["type"] == "extra_forbidden":
            known = _keys_at(item["loc"][:-1])
            close = difflib.get_close_matches(str(item["loc"][-1]), known, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else f" Known keys: {', '.join(sorted(known))}."
            lines.append(f"{source}: {path}: unknown key.{hint}")
        else:
            got = repr(item.get("input"))
            lines.append(f"{source}: {path}: {item['msg']}, got {got if len(got) < 80 else got[:77] + '…'}.")
    return "\n".join(lines)


def _keys_at(loc: tuple[int | str, ...]) -> list[str]:
    """Keys that a scene may have at a place, found by walking the record types."""
    record: type[BaseModel] = SceneSpec
    for step in loc:
        if isinstance(step, int):
            continue
        annotation = record.model_fields[step].annotation if step in record.model_fields else None
        record = next((t for t in _records(annotation)), record)
    keys = list(record.model_fields)
    return [*keys, "on"] if record is EntitySpec else keys


def _records(annotation: Any) -> list[type[BaseModel]]:  # noqa: ANN401
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [r for a in getattr(annotation, "__args__", ()) for r in _records(a)]


def _rest(scene: SceneSpec, rests: dict[int, Any], source: str) -> SceneSpec:
    """Give every entity of ``rests`` the position in which it stands on its support."""
    done: dict[str, EntitySpec] = {}
    entities = []
    for index, entity in enumerate(scene.entities):
        if index in rests:
            where = f"{source}: entities.{index}.on ({entity.name})"
            entity = _placed(entity, rests[index], done, where)
        done[entity.name] = entity
        entities.append(entity)
    return scene.model_copy(update={"entities": tuple(entities)})


def _placed(entity: EntitySpec, rest: Any, done: dict[str, EntitySpec], where: str) -> EntitySpec:  # noqa: ANN401
    if not (isinstance(rest, list | tuple) and len(rest) == 4):
        raise SceneFileError(f"{where}: expected [ENTITY, REGION, X, Y], got {rest!r}.")
    name, region_name, x_m, y_m = rest
    if name not in done:
        close = difflib.get_close_matches(str(name), done, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise SceneFileError(f"{where}: no entity {name!r} stands before this one.{hint}")
    support = done[name]
    try:
        model, own = resolve_model(support), resolve_model(entity)
    except SceneBuildError as error:
        raise SceneFileError(f"{source_of(where)}: {error}") from error
    region = next((r for r in model.regions if r.name == region_name), None)
    if region is None:
        names = [r.name for r in model.regions]
        close = difflib.get_close_matches(str(region_name), names, n=1) or names
        raise SceneFileError(f"{where}: {name!r} has no region {region_name!r}. Did you mean {' or '.join(close)}?")
    try:
        dx, dy = float(x_m), float(y_m)
    except (TypeError, ValueError):
        raise SceneFileError(f"{where}: X and Y must be numbers, got {x_m!r}, {y_m!r}.") from None
    part = _part_offset(model, region.part)
    local = (part[0] + region.center_m[0] + dx, part[1] + region.center_m[1] + dy)
    c, s = math.cos(support.yaw_rad), math.sin(support.yaw_rad)
    floor = support.pos_m[2] + part[2] + region.center_m[2] - region.half_size_m[2]
    low, _ = model_box(own)
    pos = (
        support.pos_m[0] + c * local[0] - s * local[1],
        support.pos_m[1] + s * local[0] + c * local[1],
        floor - low[2],
    )
    turned = {"pos_m": pos, "yaw_rad": support.yaw_rad + entity.yaw_rad, "room": entity.room or support.room}
    return entity.model_copy(update=turned)


def source_of(where: str) -> str:
    """File name at the start of a place in a message."""
    return where.partition(":")[0]


def _part_offset(model: EntityModel, name: str) -> tuple[float, float, float]:
    """Origin of a part in the root frame; the parts of our furniture are not turned against each other."""
    by_name: dict[str, PartSpec] = {p.name: p for p in model.parts}
    offset = [0.0, 0.0, 0.0]
    root = model.parts[0].name
    while name != root:
        part = by_name[name]
        offset = [a + b for a, b in zip(offset, part.pos_m, strict=True)]
        name = part.parent or root
    return (offset[0], offset[1], offset[2])
