"""What a graph has to do: multiply-adds counted by hand, nodes after fusion, latencies in turn."""

import numpy as np
import pytest

from embodied.export.cost import call_overhead_us, graph_cost
from embodied.export.latency import measure_latency
from embodied.export.package import PolicyExporter
from embodied.export.quantize import quantize
from embodied_deploy.package.load import load_package
from tests.export_policies import Convolutional, Mlp, exported


def test_multiply_adds_are_those_of_the_layers():
    assert graph_cost(exported(Mlp)[2].SerializeToString()).multiply_adds == 12 * 64 + 64 * 64 + 64 * 4
    first, second = 16 * 16 * 8 * 27, 8 * 8 * 16 * 72  # output pixels x channels x window
    dense = (16 * 64 + 12) * 32 + 32 * 12
    assert graph_cost(exported(Convolutional)[2].SerializeToString()).multiply_adds == first + second + dense


def test_quantized_graphs_run_other_nodes():
    policy, calibration, model = exported(Mlp)
    plain = graph_cost(model.SerializeToString())
    made = graph_cost(quantize(model, "int8-static", calibration, policy.contract).SerializeToString())
    assert made.nodes > plain.nodes
    assert made.extra(plain)["QGemm"] == 3
    assert plain.extra(plain) == {}


def test_a_call_costs_something():
    assert 0.1 < call_overhead_us(500) < 1000


def test_latencies_are_relative_to_the_first_package(tmp_path):
    policy, calibration, _ = exported(Mlp)
    made = PolicyExporter(policy, calibration, tmp_path).write("fp32")
    package = load_package(made.path, check_parity=False)
    first, second = measure_latency([package, package], calibration.holdout, rounds=15, round_s=0.005)
    assert first.ratio == first.low == first.high == 1.0
    assert second.ratio == pytest.approx(1.0, abs=0.5)  # the same package on a machine that may be busy
    assert second.low <= second.ratio <= second.high
    assert 0 < second.p50_us <= second.p99_us
    assert np.isfinite(second.p99_us)
    assert second.runs >= 15 * 5
