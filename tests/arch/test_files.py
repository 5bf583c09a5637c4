"""Rules about files: length, words, folders, documentation of public names, units in names."""

import ast
import re

import pytest
from tree import PACKAGES, ROOT, name, parsed, sources, text_files

MAX_LINES = 400
# Written in two halves, so that this file does not break its own rule.
FORBIDDEN = {
    "a path of one machine": re.compile("/" + r"(work/|root/|home/[a-z]|Users/[A-Za-z])"),
    "the host of a package registry": re.compile(
        r"\b(pypi\.(?:or" + r"g|python\.org)|files\.python" + r"hosted\.org|registry\.npm" + r"js\.org|test\.pypi)"
    ),
    "a mark of unfinished work": re.compile(r"\b(TO" + r"DO|FIX" + r"ME|X{3})\b"),
}


@pytest.mark.parametrize("path", sources(tests=True), ids=name)
def test_file_is_short_and_parses(path):
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines <= MAX_LINES, f"{lines} lines; split the file by what it knows"
    parsed(path)


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_holds(what):
    found = [
        f"{name(path)}:{number}: {line.strip()[:100]}"
        for path in text_files()
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1)
        if FORBIDDEN[what].search(line)
    ]
    assert not found, "\n".join(found)


def test_launch_folder_cannot_hide_the_launch_package_of_ros():
    launch = ROOT / "launch"
    assert not [p for p in launch.rglob("__init__.py")]
    assert not (launch / "launch.py").exists()
    assert not (ROOT / "launch.py").exists()
    strangers = [p.name for p in launch.glob("*.py") if not p.name.endswith(".launch.py")]
    assert not strangers


@pytest.mark.parametrize(
    "folder",
    [p for root in PACKAGES.values() for p in [root, *sorted(root.iterdir())] if (p / "__init__.py").exists()],
    ids=name,
)
def test_folder_says_what_lives_in_it(folder):
    # The device packages have their README one level up, beside what is not Python.
    candidates = (
        [folder / "README.md", folder.parent / "README.md"] if folder in PACKAGES.values() else [folder / "README.md"]
    )
    text = next((c.read_text() for c in candidates if c.exists()), None)
    assert text, f"{name(folder)} has no README.md: what lives here, what it may import, how to add one"
    assert text.count("\n") <= 60, "longer than one screen"


def _public(tree, prefix=""):
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        yield prefix + node.name, node
        if isinstance(node, ast.ClassDef):
            yield from _public(node, f"{prefix}{node.name}.")


def _is_overload(node):
    return any(ast.unparse(d).split("(")[0].endswith(("overload", ".setter")) for d in node.decorator_list)


@pytest.mark.parametrize("path", sources(), ids=name)
def test_public_names_are_documented(path):
    tree = parsed(path)
    missing = [n for n, node in _public(tree) if not ast.get_docstring(node) and not _is_overload(node)]
    if not ast.get_docstring(tree):
        missing.append("the module itself")
    assert not missing


# Bare words that do not say their unit; with a suffix (height_m, yaw_rad) they do.
UNITLESS = {
    "time",
    "duration",
    "distance",
    "height",
    "speed",
    "velocity",
    "angle",
    "yaw",
    "mass",
    "force",
    "torque",
    "radius",
}


def _numbers(tree):
    for owner, node in _public(tree):
        if isinstance(node, ast.ClassDef):
            yield from ((f"{owner}.{s.target.id}", s.target.id, s.annotation) for s in node.body if _is_field(s))
        else:
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            yield from ((f"{owner}({a.arg})", a.arg, a.annotation) for a in arguments)


def _is_field(statement):
    return isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)


@pytest.mark.parametrize("path", sources(), ids=name)
def test_physical_numbers_carry_their_unit(path):
    bare = [
        where
        for where, word, annotation in _numbers(parsed(path))
        if word in UNITLESS and annotation is not None and re.search(r"\b(float|Array)\b", ast.unparse(annotation))
    ]
    assert not bare, f"{bare}: add the unit, for instance height_m"


def test_links_between_documents_lead_somewhere():
    broken = []
    for page in [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("embodied/**/README.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target and not (page.parent / target).exists():
                broken.append(f"{name(page)} -> {target}")
    assert not broken


DEVICE_SIDE = [p for p in sources() if {"embodied_deploy", "embodied_controllers"} & set(p.parts)]


@pytest.mark.parametrize("path", DEVICE_SIDE, ids=name)
def test_the_device_side_is_written_for_python_3_10(path):
    source = path.read_text()
    ast.parse(source, feature_version=(3, 10))
    assert not re.search(r"\b(StrEnum|tomllib|ExceptionGroup|TaskGroup|assert_never|LiteralString)\b", source), (
        f"{name(path)} uses what Python 3.10 lacks"
    )
    assert "from typing import Self" not in source
    assert not re.search(r"from datetime import .*\bUTC\b", source)
