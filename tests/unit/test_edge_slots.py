"""Slots: whole or not at all, also when the process dies at any step; roll-back; trials."""

import errno
import json
import subprocess
import sys
from dataclasses import replace

import pytest

from embodied_deploy.errors import PackageError
from embodied_deploy.package.archive import write_file
from embodied_deploy.package.load import load_package
from embodied_deploy.runtime import slots
from embodied_deploy.runtime.health import Health
from embodied_deploy.runtime.slots import TRIAL_STARTS, SlotError, SlotStore
from embodied_deploy.runtime.trial import Trial

tiny = pytest.importorskip("tests.tiny_packages", reason="onnx and onnxruntime come with the extra 'export'")


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """Three packages that differ in their version."""
    folder = tmp_path_factory.mktemp("packages")
    return [tiny.write(folder / f"v{k}.policy", tiny.contract(version=f"{k}.0.0")) for k in (1, 2, 3)]


def _load(path):
    return load_package(path, check_parity=False)


def _store(root):
    return SlotStore(root, _load)


def _version(store):
    return store.start()[0].contract.version


def test_nothing_installed_says_what_to_do(tmp_path):
    with pytest.raises(SlotError, match="embodied-edge install"):
        _store(tmp_path).start()


def test_install_confirm_and_roll_back(tmp_path, packages):
    store = _store(tmp_path)
    store.install(packages[0])
    assert store.pointer().slot == "A"
    assert store.pointer().on_trial
    store.confirm()
    assert not store.pointer().on_trial
    store.install(packages[1])
    assert store.pointer().slot == "B"
    assert _version(store) == "2.0.0"
    back = store.rollback("shaking")
    assert (back.slot, back.last_rollback, back.on_trial) == ("A", "shaking", False)
    assert _version(store) == "1.0.0"
    store.install(packages[2])
    assert store.pointer().slot == "B", "the slot that does not run is written"
    with pytest.raises(SlotError, match="on trial"):
        store.install(packages[1])
    store.confirm()
    with pytest.raises(SlotError, match="not on trial"):
        store.confirm()


def test_the_first_package_has_nothing_to_go_back_to(tmp_path, packages):
    store = _store(tmp_path)
    store.install(packages[0])
    with pytest.raises(SlotError, match="no other to go back to"):
        store.rollback("shaking")


@pytest.mark.parametrize("damage", ["torn", "flipped", "empty", "missing"])
def test_a_damaged_file_never_becomes_current(tmp_path, packages, damage):
    store = _store(tmp_path / "slots")
    store.install(packages[0])
    store.confirm()
    data = packages[1].read_bytes()
    bad = tmp_path / "bad.policy"
    if damage != "missing":
        middle = len(data) // 2
        flipped = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
        bad.write_bytes({"torn": data[:-100], "flipped": flipped, "empty": b""}[damage])
    before = store.pointer()
    with pytest.raises(PackageError):
        store.install(bad)
    assert store.pointer() == before
    assert _version(store) == "1.0.0"


@pytest.mark.parametrize("change", ["torn", "swapped"])
def test_a_package_that_rots_on_the_disk_is_not_started_but_the_one_before(tmp_path, packages, change):
    store = _store(tmp_path)
    store.install(packages[0])
    store.confirm()
    store.install(packages[1])
    store.confirm()
    data = packages[2].read_bytes() if change == "swapped" else packages[1].read_bytes()[:-1]
    store.path("B").write_bytes(data)
    package, pointer = store.start()
    assert package.contract.version == "1.0.0"
    assert pointer.slot == "A"
    assert pointer.last_rollback.startswith("hash" if change == "swapped" else "torn")
    store.path("A").write_bytes(b"rotten too")
    with pytest.raises(SlotError, match="no other to go back to"):
        store.start()


def test_a_package_that_takes_the_device_down_is_rolled_back(tmp_path, packages):
    store = _store(tmp_path)
    store.install(packages[0])
    store.confirm()
    store.install(packages[1])
    started = [_version(_store(tmp_path)) for _ in range(TRIAL_STARTS + 2)]
    assert started == ["2.0.0"] * TRIAL_STARTS + ["1.0.0"] * 2


_TYPES = '{"slot": "A", "sha256": "", "on_trial": "yes", "starts": "one"}'


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"slot": "C", "sha256": ""}', '{"slot": "A"}', '{"other": 1}', _TYPES]
)
def test_a_pointer_that_is_none_is_an_error_and_a_new_install_cures_it(tmp_path, packages, text):
    store = _store(tmp_path)
    (tmp_path / "current").write_text(text)
    with pytest.raises(SlotError, match="Install a package anew"):
        store.start()
    store.install(packages[0])
    assert _version(store) == "1.0.0"


_KILLED = """
import os, signal, sys
from embodied_deploy.package import archive
from embodied_deploy.package.load import load_package
from embodied_deploy.runtime import slots

stop_at, count = int(sys.argv[3]), 0

def counted(function):
    def call(*arguments, **options):
        global count
        if count == stop_at:
            os.kill(os.getpid(), signal.SIGKILL)
        count += 1
        return function(*arguments, **options)
    return call

for name in ("replace", "fsync", "fdopen", "chmod"):
    setattr(os, name, counted(getattr(os, name)))
store = slots.SlotStore(sys.argv[1], lambda path: load_package(path, check_parity=False))
store.install(sys.argv[2])
print(count)
"""


def test_an_install_killed_at_any_step_leaves_the_old_or_the_new_package(tmp_path, packages):
    """The process is killed before its k-th call to the file system, for every k."""
    outcomes = []
    for stop_at in range(40):
        root = tmp_path / str(stop_at)
        store = _store(root)
        store.install(packages[0])
        store.confirm()
        command = [sys.executable, "-c", _KILLED, str(root), str(packages[1]), str(stop_at)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        outcomes.append(_version(store))
        # What is left is usable: the next install goes through.
        if store.pointer().on_trial:
            store.confirm()
        store.install(packages[2])
        assert _version(store) == "3.0.0"
        if done.returncode == 0:
            break
        assert done.returncode == -9, done.stderr
    assert done.returncode == 0, "all steps were tried"
    assert stop_at >= 8, "there were steps to die at"
    assert outcomes[0] == "1.0.0"
    assert outcomes[-1] == "2.0.0"
    assert outcomes == sorted(outcomes)


def test_pointer_file_is_readable_by_people(tmp_path, packages):
    store = _store(tmp_path)
    store.install(packages[0])
    value = json.loads((tmp_path / "current").read_text())
    assert value["slot"] == "A"
    assert value["on_trial"] is True


def _health(policy=0, **reasons):
    health = Health()
    health.modes["policy"] = policy
    health.modes["safe"] = sum(reasons.values())
    health.reasons.update(reasons)
    return health


def test_a_trial_is_judged_by_what_the_package_did():
    assert Trial(1000).judge(_health(policy=500)) == "open"
    assert Trial(1000).judge(_health(policy=960)) == "passed"
    assert Trial(1000).judge(_health(policy=500, late=51)) == "failed"
    assert Trial(1000).judge(_health(policy=100, observation=30, output=30)) == "failed"
    # A robot that is off says nothing about the package.
    assert Trial(1000).judge(_health(policy=500, link=800, stale=90)) == "open"


def test_pointer_is_replaced_whole(tmp_path, packages):
    store = _store(tmp_path)
    store.install(packages[0])
    inode = (tmp_path / "current").stat().st_ino
    store.confirm()
    assert (tmp_path / "current").stat().st_ino != inode
    assert replace(store.pointer(), on_trial=True).on_trial


def test_a_full_disk_keeps_no_device_from_running(tmp_path, packages, monkeypatch):
    store = _store(tmp_path)
    store.install(packages[0])

    def full(path, data):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with monkeypatch.context() as disk:
        disk.setattr(slots, "write_file", full)
        assert _version(store) == "1.0.0", "there is no other, and no count is no reason to stand still"
    store.confirm()
    store.install(packages[1])
    with monkeypatch.context() as disk:
        disk.setattr(slots, "write_file", full)
        package, pointer = store.start()
    assert package.contract.version == "1.0.0", "a trial that cannot be counted waits"
    assert not pointer.on_trial
    assert "cannot be counted" in pointer.last_rollback
    assert _version(store) == "2.0.0", "with space again the trial goes on"


def test_a_write_that_fails_names_the_file(tmp_path):
    (tmp_path / "current").mkdir()
    with pytest.raises(OSError, match=r"current'$") as caught:
        write_file(tmp_path / "current", b"x")
    assert caught.value.filename == str(tmp_path / "current")
    assert [p.name for p in tmp_path.iterdir()] == ["current"]
