"""Parametric templates: ``MODELS[name](**params)`` returns the geometry and meaning of one entity."""

from __future__ import annotations

from embodied_scenes.models import containers, furniture, storage
from embodied_scenes.models.objects import OBJECTS, Template

MODELS: dict[str, Template] = {
    "table": furniture.table,
    "coffee_table": furniture.coffee_table,
    "counter": furniture.counter,
    "sink": furniture.sink,
    "bed": furniture.bed,
    "sofa": furniture.sofa,
    "chair": furniture.chair,
    "desk": furniture.desk,
    "tv_stand": furniture.tv_stand,
    "stool": furniture.stool,
    "lamp": furniture.lamp,
    "radio": furniture.radio,
    "coffee_machine": furniture.coffee_machine,
    "block": furniture.block,
    "cabinet": storage.cabinet,
    "tall_cabinet": storage.tall_cabinet,
    "fridge": storage.fridge,
    "oven": storage.oven,
    "drawer": storage.drawer,
    "bookcase": storage.bookcase,
    "wardrobe": storage.wardrobe,
    "open_box": containers.open_box,
    "trash_can": containers.trash_can,
    "laundry_basket": containers.laundry_basket,
    "basket": containers.basket,
    "car": containers.car,
    "mailbox": containers.mailbox,
    **OBJECTS,
}
