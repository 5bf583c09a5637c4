"""What the wheel and the source archive hold, built here without a network."""

import tarfile
import zipfile

import pytest
from tree import PACKAGES, ROOT, name

pytest.importorskip("hatchling", reason="hatchling, which builds the wheel, is not installed here")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    from hatchling.builders.wheel import WheelBuilder

    folder = tmp_path_factory.mktemp("wheel")
    (path,) = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    with zipfile.ZipFile(path) as archive:
        yield {i.filename: i.file_size for i in archive.infolist()}, archive


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    from hatchling.builders.sdist import SdistBuilder

    folder = tmp_path_factory.mktemp("sdist")
    (path,) = SdistBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    with tarfile.open(path) as tar:
        yield {m.name.partition("/")[2] for m in tar.getmembers() if m.isfile()}


def test_wheel_holds_every_module_of_the_four_packages(wheel):
    files, _ = wheel
    for package, root in PACKAGES.items():
        expected = {f"{package}/{p.relative_to(root)}" for p in root.rglob("*.py") if "__pycache__" not in p.parts}
        missing = expected - files.keys()
        assert not missing
        assert f"{package}/py.typed" in files


def test_wheel_holds_the_data_that_the_code_reads(wheel):
    files, _ = wheel
    for package, root in PACKAGES.items():
        endings = {".xml", ".yaml", ".j2", ".map", ".json", ".bddl", ".policy", ".pub"}
        data = [p for p in root.rglob("*") if p.suffix in endings]
        missing = {f"{package}/{p.relative_to(root)}" for p in data} - files.keys()
        assert not missing


def test_wheel_adds_nothing_else_to_site_packages(wheel):
    files, _ = wheel
    tops = {f.split("/")[0] for f in files}
    strangers = {t for t in tops - PACKAGES.keys() if not t.endswith((".dist-info", ".data"))}
    assert not strangers
    assert not [f for f in files if "/tests/" in f or f.startswith("tests/") or f.endswith((".pyc", ".mcap", ".mp4"))]


def test_wheel_is_small_pure_and_licensed(wheel):
    files, archive = wheel
    # Of these, the shipped policies may take 12 MB; tests/contract/test_policies.py keeps them below that.
    assert sum(files.values()) < 20e6
    info = next(f for f in files if f.endswith(".dist-info/WHEEL"))
    assert "Root-Is-Purelib: true" in archive.read(info).decode()
    assert any(f.endswith("LICENSE") for f in files)
    entry_points = archive.read(next(f for f in files if f.endswith("entry_points.txt"))).decode()
    assert "embodied = embodied.cli.main:main" in entry_points


def test_source_archive_can_build_and_test(archive):
    needed = {"pyproject.toml", "README.md", "LICENSE", "embodied/__init__.py", "scenes/embodied_scenes/__init__.py"}
    needed |= {name(p) for p in (ROOT / "tests").rglob("test_*.py")}
    missing = needed - archive
    assert not missing
    assert not [f for f in archive if f.startswith((".venv", "out/", ".git/"))]
