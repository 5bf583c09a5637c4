"""Which module may load what: by the import graph and by what really is in memory."""

import subprocess
import sys

import pytest
from tree import PACKAGES, ROOT

ENGINES = "{'mujoco', 'pybullet', 'gymnasium', 'pettingzoo', 'torch', 'rclpy', 'numba', 'pydantic', 'typer', 'rich'}"


def _run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_rules(monkeypatch):
    pytest.importorskip("importlinter", reason="import-linter comes with the extra 'dev'")
    from importlinter.cli import lint_imports

    monkeypatch.chdir(ROOT)
    assert lint_imports(config_filename="pyproject.toml", no_cache=True) == 0


@pytest.mark.parametrize("package", PACKAGES)
def test_bare_import_loads_nothing_heavy(package):
    heavy = ENGINES[:-1] + ", 'numpy', 'scipy', 'openai', 'yaml', 'mcap'}"
    _run(f"import sys, {package}; loaded = {heavy} & set(sys.modules); assert not loaded, loaded")


@pytest.mark.parametrize("package", ["embodied_controllers", "embodied_deploy"])
def test_every_module_of_the_device_side_runs_without_an_engine(package):
    code = (
        f"import importlib, pkgutil, sys, {package} as package\n"
        "for module in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "    importlib.import_module(module.name)\n"
        "import numpy\n"
        f"loaded = ({ENGINES} | {{'embodied', 'embodied_scenes'}}) & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    _run(code)


def test_catalog_and_listing_load_no_engine():
    code = (
        "import sys\nfrom embodied.catalog import REGISTRIES\n"
        "for registry in REGISTRIES.values():\n    [e.summary for e in registry]\n"
        f"loaded = ({ENGINES} | {{'numpy'}}) & set(sys.modules)\nassert not loaded, loaded\n"
    )
    _run(code)
