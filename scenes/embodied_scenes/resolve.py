"""From an entity of a scene file to its geometry: its own, or a template's."""

from __future__ import annotations

import difflib
import inspect

from embodied_scenes.spec import EntityModel, EntitySpec


class SceneBuildError(ValueError):
    """A scene description is well-formed but cannot be built; says which entity and why."""


def resolve_model(entity: EntitySpec) -> EntityModel:
    """Return the geometry of an entity, checked for unknown parts.

    Raises:
      SceneBuildError: unknown template or parameter, or a part, region, handle or button that names no part.
    """
    model = entity.custom if entity.custom is not None else _from_template(entity)
    _check_parts(entity.name, model)
    return model


def _from_template(entity: EntitySpec) -> EntityModel:
    from embodied_scenes.models import MODELS

    if entity.model is None:
        raise SceneBuildError(f"Entity {entity.name!r} has neither `model` nor `custom`. Give it one of them.")
    if entity.model not in MODELS:
        close = difflib.get_close_matches(entity.model, MODELS, n=3) or sorted(MODELS)
        raise SceneBuildError(f"Entity {entity.name!r}: no model {entity.model!r}. Try {', '.join(close)}.")
    template = MODELS[entity.model]
    known = inspect.signature(template).parameters
    for key in entity.params:
        if key not in known:
            raise SceneBuildError(
                f"Entity {entity.name!r}: model {entity.model!r} takes no parameter {key!r}. "
                f"It takes {', '.join(known)}."
            )
    try:
        return template(**entity.params)
    except (TypeError, ValueError) as error:
        raise SceneBuildError(
            f"Entity {entity.name!r}: model {entity.model!r} refuses its parameters: {error}"
        ) from error


def _check_parts(name: str, model: EntityModel) -> None:
    if not model.parts:
        raise SceneBuildError(f"Entity {name!r} has no parts.")
    seen: set[str] = set()
    for part in model.parts:
        if part.name in seen:
            raise SceneBuildError(f"Entity {name!r}: part {part.name!r} stands twice.")
        if part.parent is not None and part.parent not in seen:
            raise SceneBuildError(
                f"Entity {name!r}: part {part.name!r} has parent {part.parent!r}, which does not stand before it."
            )
        seen.add(part.name)
    for kind, items in (("region", model.regions), ("handle", model.handles), ("button", model.buttons)):
        for item in items:
            if item.part not in seen:
                raise SceneBuildError(
                    f"Entity {name!r}: {kind} {item.name!r} names part {item.part!r}. Parts: {sorted(seen)}."
                )
    if sum(p.joint is not None for p in model.parts) > 1:
        raise SceneBuildError(f"Entity {name!r} has several joints. Make one entity for each door or drawer.")
