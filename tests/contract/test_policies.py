"""Every policy that ships loads here, signed by the project, within its parity tolerance, and fits its robot."""

import json

import pytest

from embodied.catalog import ROBOTS
from embodied.errors import UnknownNameError
from embodied.policies.registry import POLICIES, shipped
from embodied.policies.shipped import FOLDER, RELEASE_KEY, ShippedPolicy
from embodied_deploy.package.load import load_package
from embodied_deploy.package.signature import read_public_key

FILES = [(entry.name, precision) for entry in POLICIES for precision in entry.load().precisions]
LARGEST_BYTES = 12_000_000


@pytest.mark.parametrize(("name", "precision"), FILES)
def test_a_shipped_package_loads_signed_and_in_parity(name, precision):
    pytest.importorskip("onnxruntime", reason="onnxruntime comes with the extra 'edge'")
    path = shipped(name, precision)
    robot = ROBOTS.get(load_package(path, check_parity=False).contract.robot)
    package = load_package(path, robot=robot, trusted_keys=[RELEASE_KEY])
    contract = package.contract
    assert package.trusted
    assert contract.precision == precision
    assert f"{contract.name}@{contract.version.partition('.')[0]}" == name
    assert package.parity_error is not None
    assert package.parity_error <= contract.parity_atol
    assert package.parity.count >= (16 if contract.cameras else 256)
    for data in package.extras.values():
        json.loads(data)


@pytest.mark.parametrize("entry", list(POLICIES), ids=lambda e: e.name)
def test_each_registered_policy_is_there_in_fp32(entry):
    assert entry.load().precisions[:1] == ("fp32",)
    assert entry.summary


def test_every_file_is_registered_and_all_are_small():
    files = {p.name for p in FOLDER.glob("*.policy")}
    assert files == {shipped(name, precision).name for name, precision in FILES}
    assert sum((FOLDER / f).stat().st_size for f in files) < LARGEST_BYTES


def test_the_public_key_is_a_key_and_no_private_one_lies_beside_it():
    assert len(read_public_key(RELEASE_KEY)) == 32
    for path in FOLDER.rglob("*"):
        if path.is_file():
            assert b"PRIVATE KEY" not in path.read_bytes(), path.name


def test_unknown_policies_and_precisions_are_named():
    with pytest.raises(UnknownNameError, match="no-such"):
        shipped("no-such@1")
    with pytest.raises(UnknownNameError, match="int4"):
        ShippedPolicy("no-such", 1).path("int4")
