"""The registry of recipes. Add yours at the end; nothing is imported until it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embodied.registry import Registry

if TYPE_CHECKING:
    from embodied.train.contract import Recipe

RECIPES: Registry[Recipe] = Registry("recipes")
RECIPES.add(
    "quad-hover@1",
    "embodied.train.flight.recipe:QUAD_HOVER",
    summary="hold a point in wind: MLP to four rotor thrusts, by PPO",
    tags=("drones", "rl"),
)
RECIPES.add(
    "quad-waypoint@1",
    "embodied.train.flight.recipe:QUAD_WAYPOINT",
    summary="visit points in order in wind: MLP to four rotor thrusts, by PPO",
    tags=("drones", "rl"),
)
RECIPES.add(
    "reach-and-grasp@1",
    "embodied.train.grasp.recipe:REACH_AND_GRASP",
    summary="take a thing from a table by a 64x64 wrist camera: CNN to chunks of arm and gripper targets, by imitation",
    tags=("household", "images"),
)
RECIPES.add(
    "base-navigation@1",
    "embodied.train.navigation.recipe:BASE_NAVIGATION",
    summary="drive a mobile robot to a goal through a furnished room by its scanner: GRU, by imitation (DAgger)",
    tags=("warehouse", "recurrent"),
)
RECIPES.add(
    "base-navigation-mlp@1",
    "embodied.train.navigation.recipe:BASE_NAVIGATION_MLP",
    summary="drive a mobile robot to a goal through a furnished room by its scanner: MLP, by imitation (DAgger)",
    tags=("warehouse",),
)
RECIPES.add(
    "compact-planner@1",
    "embodied.train.planner.recipe:COMPACT_PLANNER",
    summary="head camera image and instruction to the next skill and its arguments, in a home",
    tags=("household", "planner"),
)
