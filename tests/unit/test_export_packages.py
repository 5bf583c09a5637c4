"""Policy or checkpoint to packages: they load, keep their promises, and the report says what each precision costs."""

import json
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from embodied.cli.main import app
from embodied.errors import MissingExtraError
from embodied.export.checkpoint import export_checkpoint
from embodied.export.errors import ExportError
from embodied.export.gate import GateError, OutputError
from embodied.export.latency import Latency
from embodied.export.options import ExportOptions, GateLimits
from embodied.export.package import PolicyExporter, answers, export_policy
from embodied.export.report import Row, choose_int8
from embodied.export.scores import PairedScore, ScoreError, compare_scores
from embodied.export.sign import SigningKey
from embodied.train.contract import Score
from embodied.train.registry import RECIPES
from embodied.train.run import TrainError, TrainRun
from embodied_deploy.errors import PackageError
from embodied_deploy.package.contract import PRECISIONS
from embodied_deploy.package.load import load_package
from tests.export_policies import Mlp, Planner, Recurrent, exported
from tests.export_recipe import HOLD_POINT

STRICT = ExportOptions(limits=GateLimits(mean_of_std=1e-9))
OPEN = ExportOptions(limits=GateLimits(mean_of_std=1.0, max_of_range=1.0, agreement=0.0))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A trained run, its recipe registered."""
    folder = tmp_path_factory.mktemp("run")
    train = TrainRun(folder=folder, recipe="hold-point", recipe_version="1", seed=0, steps=300)
    HOLD_POINT.train(train)
    if "hold-point" not in RECIPES:
        RECIPES.add("hold-point", "tests.export_recipe:HOLD_POINT", summary="of the tests")
    yield train
    del RECIPES._entries["hold-point"]


@pytest.fixture(scope="module")
def result(run, tmp_path_factory):
    """Every precision of it, scored."""
    out = tmp_path_factory.mktemp("out")
    return export_checkpoint(run.checkpoint_path, out, precisions=PRECISIONS, samples=512, seeds=range(40))


@pytest.mark.parametrize("kind", [Recurrent, Planner])
def test_every_precision_loads_at_parity(kind, tmp_path):
    policy, calibration, _ = exported(kind)
    for made in export_policy(policy, calibration.feed, tmp_path, precisions=PRECISIONS, options=OPEN):
        package = load_package(made.path)
        precision = package.contract.precision
        assert made.path.name == f"{policy.contract.name}@1.{precision}.policy"
        assert package.parity_error is not None
        assert package.parity_error <= package.contract.parity_atol / 2
        assert package.parity.count == (256 if kind is not Planner else 160)  # images make vectors large
        assert bool(package.contract.calibration_sha256) == (precision == "int8-static")
        # The answers of torch are kept beside those of the graph.
        wanted = policy(
            *(__import__("torch").from_numpy(package.parity.inputs[t.name]) for t in policy.contract.inputs)
        )
        name = policy.contract.outputs[0].name
        assert np.allclose(package.parity.reference[name], wanted[0].detach().numpy(), atol=1e-6)


def test_equal_exports_are_equal_bytes(tmp_path):
    policy, calibration, _ = exported(Mlp)
    a = export_policy(policy, calibration.feed, tmp_path / "a", precisions=("int8-static",))[0]
    b = export_policy(policy, calibration.feed, tmp_path / "b", precisions=("int8-static",))[0]
    assert a.path.read_bytes() == b.path.read_bytes()


def test_tolerances_hold_other_graphs_off(tmp_path):
    policy, calibration, model = exported(Mlp)
    vectors = {k: v[:64] for k, v in calibration.feed.items()}
    outputs, atol = answers(model.SerializeToString(), vectors, "fp32")
    exporter = PolicyExporter(policy, calibration, tmp_path)
    for precision in ("int8-dynamic", "int8-static"):
        other, other_atol = answers(exporter.write(precision).graph, vectors, precision)
        error = np.abs(other["action"] - outputs["action"]).max()
        assert atol < other_atol < error


def test_a_signed_package_names_its_signer(tmp_path):
    policy, calibration, _ = exported(Mlp)
    key = SigningKey.create()
    made = export_policy(policy, calibration, tmp_path, signer=key)[0]
    assert load_package(made.path, trusted_keys=[key.public_key]).trusted
    with pytest.raises(PackageError, match="signature"):
        load_package(made.path, trusted_keys=[SigningKey.create().public_key])


def test_the_gate_leaves_no_file_unless_forced(tmp_path):
    policy, calibration, _ = exported(Mlp)
    exporter = PolicyExporter(policy, calibration, tmp_path, options=STRICT)
    with pytest.raises(GateError, match="int8-static is too far from fp32 on 80 held-out samples"):
        exporter.write("int8-static")
    assert list(tmp_path.glob("*.policy")) == []
    assert exporter.write("int8-static", is_forced=True).errors[0].mean_of_std > 1e-9
    with pytest.raises(ExportError, match="'int3'; there are fp32"):
        exporter.write("int3")


def test_a_calibration_set_that_does_not_fit_ends_the_export(tmp_path):
    policy, calibration, _ = exported(Mlp)
    data = {"observation": calibration.feed["observation"] * 1000}
    with pytest.raises(ExportError, match="calibration: ") as caught:
        export_policy(policy, data, tmp_path)
    assert caught.value.reason == "calibration"
    assert list(tmp_path.iterdir()) == []


def test_the_report_holds_every_figure(result):
    rows = {row.precision: row for row in result.rows}
    assert set(rows) == set(PRECISIONS)
    assert rows["fp32"].latency.ratio == 1.0
    assert rows["fp32"].errors[0].mean_abs == 0.0
    assert rows["fp32"].score.difference == 0.0
    assert rows["fp32"].score.score >= 0.9
    for precision in ("int8-dynamic", "int8-static"):
        row = rows[precision]
        assert row.score.episodes == 40
        assert row.score.low <= row.score.difference <= row.score.high
        assert row.latency.low <= row.latency.ratio <= row.latency.high
        assert 0 < row.latency.p50_us <= row.latency.p99_us
        assert row.graph_bytes < rows["fp32"].graph_bytes
    document = json.loads(result.report.with_suffix(".json").read_text())
    assert document["precisions"][0]["precision"] == "fp32"
    assert document["calibration"]["samples"] == 512
    page = result.report.read_text()
    assert all(f"| {precision} |" in page for precision in PRECISIONS)


def row(precision, ratio, error, difference=0.0, refusal=""):
    """A report row with these figures."""
    outcome = OutputError(
        name="action", role="action", samples=80, mean_abs=error, max_abs=error, mean_of_std=error, max_of_range=error
    )
    latency = Latency(precision=precision, p50_us=9.0, p99_us=9.0, ratio=ratio, low=ratio, high=ratio, runs=9)
    score = PairedScore(
        episodes=200, score=0.9 + difference, reference=0.9, difference=difference, low=-0.1, high=0.1, changed=4
    )
    return Row(
        precision=precision, errors=(outcome,), refusal=refusal, latency=None if refusal else latency, score=score
    )


def test_the_int8_form_to_ship_is_chosen_by_what_was_measured():
    fp32 = row("fp32", 1.0, 0.0)
    dynamic, static = row("int8-dynamic", 0.52, 0.004), row("int8-static", 0.5, 0.017)
    assert choose_int8([fp32, static, dynamic]) == "int8-dynamic"  # as fast, more exact
    assert choose_int8([fp32, row("int8-static", 0.3, 0.017), dynamic]) == "int8-static"
    assert choose_int8([fp32, static, row("int8-dynamic", 0.52, 0.004, difference=-0.05)]) == "int8-static"
    assert choose_int8([fp32, row("int8-static", 0.5, 0.1, refusal="gate"), dynamic]) == "int8-dynamic"
    assert choose_int8([fp32, row("w4a8", 0.1, 0.0)]) == ""


def test_exclusions_of_the_recipe_count(result):
    graph = next(p.graph for p in result.packages if p.contract.precision == "int8-static")
    import onnx

    names = {w.name for w in onnx.load_from_string(graph).graph.initializer}
    assert "body.2.weight" in names
    assert "body.0.weight" not in names


def test_a_refused_precision_is_in_the_report_and_stops_no_other(run, tmp_path, monkeypatch):
    monkeypatch.setattr(type(HOLD_POINT), "export_options", STRICT)
    found = export_checkpoint(run.checkpoint_path, tmp_path, precisions=("int8-static", "fp32"), samples=128)
    rows = {row.precision: row for row in found.rows}
    assert "too far from fp32" in rows["int8-static"].refusal
    assert rows["int8-static"].errors[0].mean_of_std > 0
    assert rows["int8-static"].path is None
    assert [p.contract.precision for p in found.packages] == ["fp32"]
    assert "was refused" in found.report.read_text()


def test_scores_need_fp32(run, tmp_path):
    with pytest.raises(ExportError, match="add --precision fp32"):
        export_checkpoint(run.checkpoint_path, tmp_path, precisions=("int8-static",), samples=128, seeds=range(2))


# --- command line ----------------------------------------------------------------------------------------------------


def command(*arguments):
    return CliRunner().invoke(app, ["export", *map(str, arguments)])


def test_the_command_writes_signed_packages_and_takes_its_own_set_again(run, tmp_path):
    key = SigningKey.create()
    key.write(tmp_path / "key.pem")
    first = command(
        run.checkpoint_path, "--precision", "fp32", "--precision", "int8-static", "--out", tmp_path / "a",
        "--samples", 128, "--key", tmp_path / "key.pem", "--episodes", 4, "--json",
    )  # fmt: skip
    assert first.exit_code == 0, first.output
    rows = json.loads(first.stdout)["precisions"]
    assert [r["precision"] for r in rows] == ["fp32", "int8-static"]
    assert rows[1]["score"]["episodes"] == 4
    package = load_package(tmp_path / "a" / "mlp@1.int8-static.policy", trusted_keys=[tmp_path / "key.pub"])
    assert package.contract.calibration_sha256
    second = command(
        run.checkpoint_path, "--precision", "int8-static", "--out", tmp_path / "b", "--key", tmp_path / "key.pem",
        "--calibration", tmp_path / "a" / "mlp-calibration.npz", "--exclude", "head",
    )  # fmt: skip
    assert second.exit_code == 0, second.output
    other = load_package(tmp_path / "b" / "mlp@1.int8-static.policy")
    assert other.contract.calibration_sha256 == package.contract.calibration_sha256
    assert other.graph != package.graph


def test_the_command_says_what_it_refused(run, tmp_path, monkeypatch):
    monkeypatch.setattr(type(HOLD_POINT), "export_options", STRICT)
    arguments = (run.checkpoint_path, "--precision", "w4a8", "--precision", "fp32", "--samples", 128)
    done = command(*arguments, "--out", tmp_path)
    assert done.exit_code == 1
    assert "refused: gate: w4a8 is too far from fp32" in done.stderr
    assert "fp32.policy" in done.stdout


def test_a_precision_that_is_none_is_refused_before_the_rollouts(run, tmp_path, monkeypatch):
    monkeypatch.setattr("embodied.export.checkpoint.record_calibration", lambda *_, **__: pytest.fail("drove"))
    with pytest.raises(ExportError, match="no precision 'int9'"):
        export_checkpoint(run.checkpoint_path, tmp_path / "out", precisions=["fp32", "int9"])
    assert not (tmp_path / "out").exists()


def test_without_onnxruntime_the_line_to_install_it_is_said(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtraError, match=r"embodied-stack\[export\]"):
        export_checkpoint(run.checkpoint_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_is_refused_before_the_rollouts(run, tmp_path, monkeypatch):
    monkeypatch.setattr("embodied.export.checkpoint.record_calibration", lambda *_, **__: pytest.fail("drove"))
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        export_checkpoint(run.checkpoint_path, tmp_path / "file" / "out")


def test_a_report_is_written_when_every_precision_was_refused(run, tmp_path, monkeypatch):
    made = export_checkpoint(run.checkpoint_path, tmp_path / "made", samples=64)
    assert made.packages
    monkeypatch.setattr(type(HOLD_POINT), "export_options", STRICT)
    calibration = next((tmp_path / "made").glob("*.npz"))
    found = export_checkpoint(
        run.checkpoint_path, tmp_path / "new", precisions=["int8-dynamic"], calibration=calibration
    )
    assert not found.packages
    assert "was refused" in found.report.read_text()


def test_a_checkpoint_that_is_none_is_named(tmp_path):
    assert isinstance(command(tmp_path / "none.pt").exception, TrainError)
    (tmp_path / "torn.pt").write_bytes(b"PK\x03\x04")
    assert "torn" in str(command(tmp_path / "torn.pt").exception)


def test_the_command_line_loads_no_torch():
    import subprocess

    code = "import sys, embodied.cli.main; sys.exit(any(m in sys.modules for m in ('torch', 'onnx', 'numpy')))"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


# --- paired scores ---------------------------------------------------------------------------------------------------


def scores(*values):
    return [Score(seed=i, value=v) for i, v in enumerate(values)]


def test_pairs_are_counted():
    found = compare_scores(scores(1, 1, 0, 0, 1), scores(1, 0, 1, 0, 1))
    assert (found.episodes, found.changed) == (5, 2)
    assert found.difference == pytest.approx(0.0)
    assert found.low < 0 < found.high


def test_no_difference_in_few_episodes_is_no_proof():
    few, many = (compare_scores(scores(*[1.0] * n), scores(*[1.0] * n)) for n in (10, 400))
    assert few.low < -0.2
    assert many.low > -0.02


def test_graded_scores_get_a_bootstrap():
    rng = np.random.default_rng(0)
    reference = rng.uniform(size=100)
    found = compare_scores(scores(*(reference - 0.1)), scores(*reference))
    assert found.difference == pytest.approx(-0.1)
    assert found.low == pytest.approx(-0.1)


@pytest.mark.parametrize(
    ("a", "b"),
    [(scores(1, 0), scores(1)), ([], []), (scores(1), [Score(seed=5, value=1.0)]), (scores(1) * 2, scores(1, 1))],
)
def test_unpaired_scores_are_refused(a, b):
    with pytest.raises(ScoreError, match="same seeds"):
        compare_scores(a, b)
