"""The Debian package is built and its code run; the unit is read by systemd's own checker."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "deploy" / "systemd" / "embodied-edge@.service"
needs_dpkg = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not installed here")


@pytest.fixture(scope="module")
def deb(tmp_path_factory):
    out = tmp_path_factory.mktemp("deb")
    command = [str(ROOT / "deploy" / "debian" / "build.sh"), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


def _run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_dpkg
def test_the_package_holds_the_device_side_and_nothing_else(deb):
    listing = _run("dpkg-deb", "--contents", str(deb))
    files = {line.split()[-1] for line in listing.splitlines()}
    assert all(line.split()[1] == "root/root" for line in listing.splitlines())
    for wanted in (
        "./usr/lib/embodied-edge/embodied_deploy/runtime/loop.py",
        "./usr/lib/embodied-edge/embodied_controllers/contract.py",
        "./usr/lib/systemd/system/embodied-edge@.service",
        "./usr/share/doc/embodied-edge/copyright",
        "./etc/default/embodied-edge",
    ):
        assert wanted in files
    assert not [f for f in files if "/embodied/" in f or "embodied_scenes" in f or f.endswith(".pyc")]
    version = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.M).group(1)
    assert _run("dpkg-deb", "--field", str(deb), "Version").strip() == version


@needs_dpkg
def test_the_same_sources_give_the_same_package(deb, tmp_path):
    again = _run(str(ROOT / "deploy" / "debian" / "build.sh"), str(tmp_path)).strip()
    assert Path(again).read_bytes() == deb.read_bytes()


@needs_dpkg
def test_the_packaged_code_runs_from_where_it_is_unpacked(deb, tmp_path):
    _run("dpkg-deb", "--extract", str(deb), str(tmp_path))
    code = tmp_path / "usr" / "lib" / "embodied-edge"
    script = "import embodied_deploy; print(embodied_deploy.__file__)"
    env = {**os.environ, "PYTHONPATH": str(code)}
    assert str(code) in _run(sys.executable, "-c", script, env=env)
    assert "usage: embodied-edge" in _run(sys.executable, "-m", "embodied_deploy.cli.main", "--help", env=env)


@needs_dpkg
def test_files_have_the_sums_that_the_package_says(deb, tmp_path):
    _run("dpkg-deb", "--raw-extract", str(deb), str(tmp_path))
    _run("md5sum", "--check", "--quiet", "DEBIAN/md5sums", cwd=tmp_path)
    for script in ("postinst", "prerm", "postrm"):
        assert os.access(tmp_path / "DEBIAN" / script, os.X_OK)
        _run("sh", "-n", str(tmp_path / "DEBIAN" / script))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze, which reads units, is not here")
def test_systemd_reads_the_unit(tmp_path):
    # The program lies elsewhere on this machine, so the checker is given one that exists.
    unit = tmp_path / "embodied-edge@x.service"
    unit.write_text(UNIT.read_text().replace("/opt/embodied-edge/bin/embodied-edge", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=60, check=False
    )
    found = [x for x in (done.stdout + done.stderr).splitlines() if "embodied-edge" in x]
    assert not found, found


def test_the_unit_gives_what_the_runtime_asks_for():
    text = UNIT.read_text()
    for line in ("Type=notify", "CPUSchedulingPolicy=fifo", "LimitMEMLOCK=infinity", "NoNewPrivileges=yes"):
        assert f"\n{line}\n" in text
    assert re.search(r"\nWatchdogSec=\d", text)
