"""The control of the study of shipped policies: same contract, same graph, nothing learnt."""

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from embodied.policies.registry import shipped
from embodied.studies.edge_policies import shuffled_package
from embodied.train.flight.recipe import QUAD_HOVER
from embodied_deploy.package.load import load_package


def test_shuffled_weights_cannot_fly(tmp_path):
    path = shipped("quad-hover@1")
    mixed = shuffled_package(path, tmp_path / "a.policy")
    package = load_package(mixed)  # its parity vectors are its own
    assert package.contract == load_package(path).contract
    assert package.graph != load_package(path).graph
    assert [s.value for s in QUAD_HOVER.evaluate(path, [1, 2])] == [1.0, 1.0]
    assert [s.value for s in QUAD_HOVER.evaluate(mixed, [1, 2])] == [0.0, 0.0]
    assert shuffled_package(path, tmp_path / "b.policy").read_bytes() == mixed.read_bytes()
    assert shuffled_package(path, tmp_path / "c.policy", seed=1).read_bytes() != mixed.read_bytes()
