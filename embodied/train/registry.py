"""The registry of recipes. Add yours at the end; nothing is imported until it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embodied.registry import Registry

if TYPE_CHECKING:
    from embodied.train.contract import Recipe

RECIPES: Registry[Recipe] = Registry("recipes")
