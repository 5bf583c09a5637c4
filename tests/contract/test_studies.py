"""Every study and every suite is declared well; figures cannot be argued with."""

import importlib
import inspect
import json
import math

import pytest

from embodied.benchmark.suites import SUITES, Suite, SuiteError, episodes
from embodied.errors import UnknownNameError
from embodied.studies.figure import Figure, StudyError, holds
from embodied.studies.registry import STUDIES, TAGS
from embodied.studies.run import StudyResult, count, rows, run_study, select, write


@pytest.mark.parametrize("name", STUDIES.names())
def test_study_is_declared_well(name):
    entry = STUDIES.entry(name)
    module, _, attribute = entry.target.partition(":")
    function = getattr(importlib.import_module(module), attribute)
    assert list(inspect.signature(function).parameters) == ["quick", "out"]
    assert function.__doc__
    assert entry.tags
    assert entry.tags <= set(TAGS)
    assert len(entry.summary) > 10


def test_importing_the_registry_imports_no_study(tmp_path):
    import subprocess
    import sys

    code = "import sys, embodied.studies.registry; assert 'numpy' not in sys.modules and 'mujoco' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("value", "target", "expected"),
    [
        (1.15, "<= 1.15", True),
        (1.16, "<= 1.15", False),
        (0.0, "= 0", True),
        (3, "> 3", False),
        (math.nan, ">= 0", False),
    ],
)
def test_target_decides(value, target, expected):
    assert holds(value, target) is expected
    assert Figure("f", value, None, None, target, 1).holds is expected


def test_figure_refuses_an_argued_verdict_and_an_unreadable_target():
    with pytest.raises(StudyError, match="cannot be holds=True"):
        Figure("f", 2.0, None, None, "<= 1", 1, holds=True)
    with pytest.raises(StudyError, match="about 3"):
        Figure("f", 2.0, None, None, "about 3", 1)


def test_select_wants_names_or_a_tag():
    with pytest.raises(StudyError, match="one --tag"):
        select([], None)
    with pytest.raises(StudyError, match="one --tag"):
        select(["perf-cli"], "perf")
    with pytest.raises(StudyError, match="No study carries the tag"):
        select([], "nonsense")
    with pytest.raises(UnknownNameError, match="perf-cli"):
        select(["perf-clii"], None)
    assert "perf-cli" in select([], "perf")


def test_failing_study_gives_a_figure_that_does_not_hold(monkeypatch):
    STUDIES._entries["test-broken"] = type(STUDIES.entry("perf-cli"))(
        name="test-broken", target="math:no_such_study", tags=frozenset({"core"}), summary="a study that is not there"
    )
    try:
        with pytest.raises(AttributeError):
            run_study("test-broken", quick=True)  # a wrong declaration is a bug, not a measurement
        STUDIES._entries["test-broken"] = type(STUDIES.entry("perf-cli"))(
            name="test-broken", target="operator:truediv", tags=frozenset({"core"}), summary="a study that raises"
        )
        result = run_study("test-broken", quick=True)
    finally:
        del STUDIES._entries["test-broken"]
    assert count([result]) == (0, 1)
    assert "TypeError" in result.figures[0].note


def test_quick_figures_do_not_replace_full_ones(tmp_path):
    def result(quick, value):
        return StudyResult(name="perf-cli", quick=quick, figures=(Figure("a | b", value, 0.5, 1.5, "< 2", 3, "ms"),))

    write(result(True, 1.0), tmp_path)
    page = write(result(False, 1.25), tmp_path)
    write(result(True, 1.5), tmp_path)
    assert "1.25 ms" in page.read_text()
    assert "a \\| b" in page.read_text()
    assert json.loads((tmp_path / "perf-cli.json").read_text())["figures"][0]["value"] == 1.25
    assert rows(result(False, 1.25))[0][-1] == "yes"


def test_longer_list_continues_the_shorter_and_is_balanced():
    quick = SUITES.get("quick")
    short, long = episodes(quick, root_seed=7, count=7), episodes(quick, root_seed=7, count=31)
    assert long[:7] == short
    counts = [sum(e.task_id == t for e in short) for t in quick.tasks]
    assert max(counts) - min(counts) <= 1
    assert len({(e.task_id, e.seed) for e in long}) == 31
    assert len({e.key for e in long}) == 31


def test_quick_is_ten_of_each_world():
    rows = episodes(SUITES.get("quick"), root_seed=0)
    assert len(rows) == 30
    assert sorted({e.task_id for e in rows}) == ["drones/inspect@1", "household/put_away@1", "warehouse/deliver@1"]
    assert all(sum(e.task_id == t for e in rows) == 10 for t in {e.task_id for e in rows})


def test_seeds_of_a_task_do_not_depend_on_the_suite():
    alone = episodes(SUITES.get("household"), root_seed=0)
    mixed = [e for e in episodes(SUITES.get("quick"), root_seed=0) if e.task_id.startswith("household")]
    assert [e.seed for e in alone] == [e.seed for e in mixed]
    assert [e.seed for e in episodes(SUITES.get("household"), root_seed=1)] != [e.seed for e in alone]


@pytest.mark.parametrize("count", [0, -3])
def test_no_episodes_are_refused(count):
    with pytest.raises(SuiteError, match="at least one"):
        episodes(SUITES.get("quick"), root_seed=0, count=count)


def test_empty_suite_is_refused():
    with pytest.raises(SuiteError, match="no task"):
        episodes(Suite(name="empty", episodes=3, tasks=()), root_seed=0)


def test_behavior_suite_runs_each_activity_once():
    from embodied.tasks.household.behavior import ACTIVITIES

    rows = episodes(SUITES.get("behavior"), root_seed=11)
    assert sorted(e.seed % len(ACTIVITIES) for e in rows) == list(range(20))
    assert len(ACTIVITIES) == SUITES.get("behavior").variants == 20
