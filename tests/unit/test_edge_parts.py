"""Parts of the edge runtime: age, histogram, chunks, fallbacks, log, notifications, real-time options."""

import gc
import json
import socket
import sys

import numpy as np
import pytest

from embodied_controllers.contract import RobotState
from embodied_controllers.quadrotor.dynamics import STATE_SIZE
from embodied_deploy.errors import ObservationError
from embodied_deploy.runtime.age import StampWatch
from embodied_deploy.runtime.fallback import FALLBACKS, make_fallback
from embodied_deploy.runtime.histogram import Histogram
from embodied_deploy.runtime.log import QUEUE, JsonLog
from embodied_deploy.runtime.notify import Notifier
from embodied_deploy.runtime.realtime import RealtimeOptions, apply_to_thread, cpu_model, quiet_interpreter
from tests.edge_rig import BASE, EYES


def test_quantiles_are_at_most_a_bucket_above_the_true_ones():
    rng = np.random.default_rng(0)
    values = np.sort(np.exp(rng.normal(-8, 2, size=5000)))
    h = Histogram()
    for v in values:
        h.add(float(v))
    for q in (0.01, 0.5, 0.9, 0.99, 1.0):
        true = values[max(int(np.ceil(q * len(values))) - 1, 0)]
        assert true * 0.999 <= h.quantile_s(q) <= true * 1.048
    assert h.max_s == values[-1]
    assert h.mean_s == pytest.approx(values.mean(), rel=1e-6)


def test_histogram_takes_anything_and_merges():
    a, b = Histogram(), Histogram()
    assert a.quantile_s(0.5) == 0.0
    for v in (-1.0, 0.0, 1e-12, 1e6):
        a.add(v)
    b.add(1e-3)
    b.merge(a)
    assert b.count == 5
    assert b.quantile_s(1.0) == 1e6


def test_clocks_of_other_speed_do_not_look_old_but_a_growing_delay_does():
    watch = StampWatch(0.02, 0.01)
    # A robot clock 100 ppm slow, an hour at 100 Hz: 0.36 s apart in the end.
    for k in range(0, 360_000, 100):
        now_s = k * 0.01
        assert watch.judge(5.0 + now_s * (1 - 1e-4), now_s) == ""
    watch.forget()
    verdicts = [watch.judge(5.0 + k * 0.01 - min(k, 20) * 0.002, k * 0.01) for k in range(30)]
    assert verdicts[:5] == [""] * 5
    assert verdicts[-1] == "stale"


def test_a_repeated_sample_ages_by_the_clock():
    watch = StampWatch(0.025, 0.01)
    assert [watch.judge(1.0, 7.0 + k * 0.01) for k in range(5)] == ["", "", "", "stale", "stale"]
    assert watch.judge(float("inf"), 7.1) == "stamp"


def _quad(z_m=1.0, **changes):
    base = {"base_pos_world_m": np.array([0.0, 0.0, z_m])}
    return RobotState(time_s=0.0, joint_pos=np.zeros(0), joint_vel=np.zeros(0), **(base | changes))


def _quad_specs():
    from dataclasses import replace

    names = tuple(f"thrust_{i}_n" for i in range(1, 5))
    spec = replace(BASE, names=names, low=np.zeros(4), high=np.full(4, 0.15), safe=np.zeros(4))
    return spec, replace(EYES, signals=names)


def test_position_hold_keeps_a_moving_quadrotor_where_it_took_over():
    from embodied_controllers.quadrotor.dynamics import derivative
    from embodied_controllers.quadrotor.params import CRAZYFLIE_21

    hold = make_fallback("quadrotor/position_hold@1", *_quad_specs(), 0.004)
    x = np.zeros((1, STATE_SIZE))
    x[0, 2], x[0, 3], x[0, 7] = 1.0, 1.0, 0.8  # 1 m up, level, 0.8 m/s forward
    x[0, 13:] = CRAZYFLIE_21.hover_thrust_n

    def state():
        # Level flight: the body's frame is the world's but for small tilts, so rotate the velocity properly.
        from embodied_controllers.quadrotor.dynamics import rotation

        R = rotation(x[:, 3:7])[0]
        signals = {f"thrust_{i}_n": float(x[0, 12 + i]) for i in range(1, 5)}
        return RobotState(
            time_s=0.0,
            joint_pos=np.zeros(0),
            joint_vel=np.zeros(0),
            base_pos_world_m=x[0, :3].copy(),
            base_quat_wxyz=x[0, 3:7].copy(),
            base_vel_body_mps=R.T @ x[0, 7:10],
            base_angvel_body_radps=x[0, 10:13].copy(),
            signals=signals,
        )

    hold.reset(state(), np.zeros(4))
    for _ in range(1000):
        u = hold.act(state())[None]
        for _ in range(4):
            x = x + 0.001 * derivative(x, u)
            x[:, 3:7] /= np.linalg.norm(x[:, 3:7])
    assert np.linalg.norm(x[0, :3] - [0.0, 0.0, 1.0]) < 0.05
    assert np.linalg.norm(x[0, 7:10]) < 0.05


def test_position_hold_refuses_to_fly_blind():
    hold = make_fallback("quadrotor/position_hold@1", *_quad_specs(), 0.004)
    hold.reset(_quad(), np.zeros(4))
    with pytest.raises(ObservationError):
        hold.act(_quad(base_vel_body_mps=np.array([np.nan, 0.0, 0.0])))


def test_every_registered_fallback_can_be_built_and_answers_in_its_shape():
    specs = {"quadrotor": _quad_specs(), "base": (BASE, EYES)}
    for name in FALLBACKS:
        fallback = make_fallback(name, *specs[name.partition("/")[0]], 0.01)
        fallback.reset(_quad(), np.zeros(4))
        assert fallback.act(_quad()).shape == (specs[name.partition("/")[0]][0].size,)


def test_log_files_are_bounded_in_size_and_number(tmp_path):
    path = tmp_path / "run.jsonl"
    log = JsonLog(path, max_bytes=2000, keep=2, wall_s=lambda: 1.0)
    for k in range(300):
        log.event("line", k=k, filler="x" * 40)
        if k % 10 == 0:
            log.flush()
    log.close()
    files = sorted(p.name for p in tmp_path.iterdir())
    assert files == ["run.jsonl", "run.jsonl.1", "run.jsonl.2"]
    assert all(p.stat().st_size <= 2000 for p in tmp_path.iterdir())
    kept = [json.loads(x)["k"] for f in reversed(files) for x in (tmp_path / f).read_text().splitlines()]
    assert kept == list(range(kept[0], 300)), "the newest lines, in order, none twice"


def test_log_goes_on_after_a_line_cut_by_a_kill(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text('{"event":"whole"}\n{"event":"cu')
    log = JsonLog(path)
    log.event("next")
    log.close()
    assert json.loads(path.read_text().splitlines()[-1])["event"] == "next"


def test_a_disk_that_fails_costs_lines_and_says_how_many(tmp_path, monkeypatch):
    log = JsonLog(tmp_path / "run.jsonl", period_s=1e6)
    write = log._write

    def full(lines):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(log, "_write", full)
    log.event("lost")
    log.event("lost")
    log.flush()
    monkeypatch.setattr(log, "_write", write)
    log.event("kept")
    log.flush()
    log.close()
    lines = [json.loads(x) for x in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert [x["event"] for x in lines] == ["kept", "dropped"]
    assert lines[1]["dropped"] == 2


def test_log_queue_is_bounded(tmp_path):
    log = JsonLog(tmp_path / "run.jsonl", period_s=1e6)
    for _ in range(QUEUE + 10):
        log.event("line")
    log.flush()
    log.close()
    last = json.loads((tmp_path / "run.jsonl").read_text().splitlines()[-1])
    assert last["dropped"] == 10


def test_log_refuses_a_path_that_cannot_be_written(tmp_path):
    with pytest.raises(OSError, match="missing"):
        JsonLog(tmp_path / "missing" / "run.jsonl")


@pytest.mark.parametrize("abstract", [False, True])
def test_notifications_reach_a_real_socket(tmp_path, abstract):
    name = f"@embodied-edge-test-{tmp_path.name}" if abstract else str(tmp_path / "notify")
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind("\0" + name[1:] if abstract else name)
    manager.settimeout(5)
    notifier = Notifier({"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "1000000"})
    assert notifier.period_s == 0.5
    assert notifier.send(READY="1", STATUS="ok")
    assert manager.recv(100) == b"READY=1\nSTATUS=ok"
    manager.close()
    assert notifier.send(WATCHDOG="1") is False, "a manager that is gone does no harm"
    notifier.close()


def test_without_a_manager_nothing_is_sent():
    notifier = Notifier({})
    assert notifier.period_s == float("inf")
    assert notifier.send(READY="1") is False


def test_what_the_kernel_refuses_has_a_name():
    refused = apply_to_thread(RealtimeOptions(cpu=100_000, fifo=1000))
    assert [r.partition(":")[0] for r in refused] == ["pin_refused", "fifo_refused"]
    assert apply_to_thread(RealtimeOptions()) == []
    assert RealtimeOptions(fifo=50, lock_memory=True).worker == RealtimeOptions(fifo=49)


def test_the_collector_rests_inside_the_loop_only():
    before = gc.isenabled(), sys.getswitchinterval()
    with quiet_interpreter():
        assert not gc.isenabled()
        assert gc.get_freeze_count() > 0
        assert sys.getswitchinterval() < before[1]
    with pytest.raises(ZeroDivisionError), quiet_interpreter():
        _ = 1 / 0
    assert (gc.isenabled(), sys.getswitchinterval()) == before
    assert gc.get_freeze_count() == 0


def test_the_processor_has_a_name():
    assert cpu_model().strip()
