"""The project's files, as the architecture tests see them."""

import ast
import functools
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "embodied": ROOT / "embodied",
    "embodied_scenes": ROOT / "scenes" / "embodied_scenes",
    "embodied_controllers": ROOT / "controllers" / "embodied_controllers",
    "embodied_deploy": ROOT / "deploy" / "embodied_deploy",
}
_IGNORED = {".venv", ".git", "out", "build", "dist", "__pycache__", ".hypothesis", ".ruff_cache", ".pytest_cache"}


def sources(*, tests=False):
    """All Python files of the packages, sorted; with the tests if asked for."""
    roots = [*PACKAGES.values(), *([ROOT / "tests"] if tests else [])]
    return sorted(p for root in roots for p in root.rglob("*.py") if "__pycache__" not in p.parts)


def text_files():
    """All files of the project that a person reads or a machine runs."""
    endings = {".py", ".md", ".toml", ".yaml", ".yml", ".xml", ".j2", ".json", ".cfg", ".txt", ".bddl", ".map", ".urdf"}
    found = []
    for path in ROOT.rglob("*"):
        inner = path.relative_to(ROOT).parts
        if path.is_file() and not _IGNORED & set(inner) and (path.suffix in endings or path.name == "Makefile"):
            found.append(path)
    return sorted(found)


@functools.cache
def parsed(path):
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def name(path):
    """A short name for a test id."""
    return str(path.relative_to(ROOT))
