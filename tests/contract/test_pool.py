"""The process pool keeps going when its workers do not."""

import os
import time

from embodied.benchmark.pool import Job, run_jobs

TARGET = "pool_jobs:act"


def _run(payloads, *, workers=2, timeout_s=30.0, retries=1):
    jobs = [Job(key=str(i), payload=p) for i, p in enumerate(payloads)]
    return {e.key: e for e in run_jobs(TARGET, jobs, workers=workers, timeout_s=timeout_s, retries=retries)}


def test_every_job_ends_once_and_values_come_back():
    endings = _run([{"kind": "double", "x": x} for x in range(7)])
    assert [endings[str(i)].value for i in range(7)] == [0, 2, 4, 6, 8, 10, 12]
    assert {e.status for e in endings.values()} == {"done"}


def test_killed_worker_costs_one_job_and_the_others_go_on():
    endings = _run(
        [{"kind": "double", "x": 1}, {"kind": "die"}, {"kind": "double", "x": 2}, {"kind": "double", "x": 3}]
    )
    assert endings["1"].status == "died"
    assert "signal 9" in endings["1"].message
    assert endings["1"].attempts == 2
    assert [endings[k].value for k in "023"] == [2, 4, 6]


def test_job_whose_worker_died_once_is_tried_again(tmp_path):
    endings = _run([{"kind": "die_once", "mark": str(tmp_path / "mark")}], workers=1)
    assert endings["0"].status == "done"
    assert endings["0"].value == "second try"
    assert endings["0"].attempts == 2


def test_exception_is_reported_with_its_trace_and_not_retried():
    ending = _run([{"kind": "raise"}], workers=1)["0"]
    assert (ending.status, ending.error, ending.message, ending.attempts) == ("raised", "ValueError", "a reason", 1)
    assert "pool_jobs.py" in ending.trace


def test_late_job_is_stopped_at_its_limit():
    start_s = time.monotonic()
    endings = _run([{"kind": "sleep"}, {"kind": "double", "x": 4}], workers=1, timeout_s=1.5)
    assert endings["0"].status == "late"
    assert endings["1"].value == 8
    assert time.monotonic() - start_s < 20.0


def test_workers_use_one_thread_and_the_parent_keeps_its_environment(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    assert _run([{"kind": "env"}], workers=1)["0"].value == {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "NUMBA_NUM_THREADS" not in os.environ


def test_what_workers_print_does_not_reach_stdout(capfd):
    assert _run([{"kind": "print"}], workers=1)["0"].value == "printed"
    assert capfd.readouterr().out == ""
