"""Every registered recipe keeps the contract of recipes, and is listed and loaded without torch."""

import inspect
import subprocess
import sys

import pytest

from embodied.train.contract import Recipe
from embodied.train.registry import RECIPES


@pytest.mark.parametrize("name", RECIPES.names())
def test_a_recipe_says_what_it_is(name):
    entry = RECIPES.entry(name)
    recipe = entry.load()
    assert isinstance(recipe, Recipe)
    base, _, version = name.partition("@")
    assert recipe.id.partition("@")[0] == base
    assert version.isdigit()
    assert entry.summary
    assert recipe.summary
    assert recipe.default_steps > 0
    assert not vars(recipe), "instances carry no state"
    for method in ("train", "policy", "calibration", "evaluate"):
        assert inspect.getdoc(getattr(recipe, method))


def test_recipes_load_without_torch():
    code = (
        "import sys; from embodied.train.registry import RECIPES\n"
        "for name in RECIPES.names(): RECIPES.get(name)\n"
        "sys.exit(','.join(m for m in ('torch', 'rsl_rl', 'onnx') if m in sys.modules) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
