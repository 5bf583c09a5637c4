"""Each degraded mode of the edge runtime, on a clock that only the test moves."""

import gc
import json

import numpy as np
import pytest

from embodied_deploy.errors import LinkError, PackageError
from embodied_deploy.runtime.log import JsonLog
from embodied_deploy.runtime.loop import CHANGES_PER_S
from embodied_deploy.runtime.recovery import Limits
from tests.edge_rig import Faults, contract, run


def test_a_healthy_run_is_all_policy():
    done = run(50)
    assert done.short() == "p" * 50
    assert done.loop.health.state == "ok"
    assert done.loop.health.degraded_ratio == 0.0
    assert not done.loop.health.reasons
    assert done.robot.stops == 1, "stopped in the end"
    # Period k gets the answer to question k.
    assert np.array_equal(done.actions[:, 1], np.arange(50) / 1000)


def test_nan_observation_gets_the_contracts_answer_and_is_counted():
    done = run(12, faults=Faults(nan={4, 5, 6}))
    # Three bad periods, then three good ones before the policy drives: the third good one is its own.
    assert done.short() == "ppppsssssppp"
    assert done.loop.health.reasons == {"observation": 3}
    assert np.array_equal(done.actions[4], [0.0, 0.0])


def test_a_stale_stamp_is_noticed_when_it_is_older_than_allowed():
    # 25 ms are allowed: a sample 10 and 20 ms old is used, one of 30 ms is not.
    done = run(12, faults=Faults(frozen={3, 4, 5, 6}))
    assert done.short() == "ppppp" + "ss" + "s" + "pppp"
    assert done.loop.health.reasons == {"stale": 2}


def test_lockstep_counts_age_in_steps():
    done = run(12, faults=Faults(frozen={3, 4, 5, 6}), lockstep=True)
    assert done.short() == "ppppp" + "ss" + "s" + "pppp"
    assert done.loop.health.reasons == {"stale": 2}


@pytest.mark.parametrize("lockstep", [True, False])
def test_a_stamp_that_is_no_number(lockstep):
    done = run(10, faults=Faults(bad_stamp={4}), lockstep=lockstep)
    assert done.loop.health.reasons == {"stamp": 1}
    assert done.short()[4] == "s"


@pytest.mark.parametrize("jump_s", [3600.0, -3600.0])
@pytest.mark.parametrize("lockstep", [True, False])
def test_a_clock_that_jumps_spoils_one_period_and_then_counts(jump_s, lockstep):
    done = run(12, faults=Faults(jump_s={5: jump_s}), lockstep=lockstep)
    assert done.loop.health.reasons == {"clock_jump": 1}
    assert done.short() == "ppppp" + "s" + "pppppp"


def test_a_link_that_is_down_is_a_degraded_period_in_real_time():
    done = run(10, faults=Faults(gone={3, 4}))
    assert done.loop.health.reasons == {"link": 2}
    assert done.short() == "ppp" + "ss" + "s" + "pppp"


def test_a_late_answer_is_replaced_and_never_sent():
    done = run(10, compute_s={4: 0.006})
    assert done.short() == "pppp" + "h" + "ppppp"
    assert done.loop.health.reasons == {"late": 1}
    assert done.loop.timing.misses == 1
    assert done.actions[4, 1] == done.actions[3, 1], "held"
    assert 4 / 1000 not in done.actions[:, 1]


def test_an_answer_later_than_its_period_is_dropped_too():
    # Asked in the loop's own thread, a question of 25 ms in period 4 lets it sleep through period 5.
    done = run(10, compute_s={4: 0.025})
    assert done.loop.timing.skipped == 1
    assert done.loop.timing.wake.max_s == pytest.approx(0.005)
    assert 4 / 1000 not in done.actions[:, 1]
    assert done.loop.health.state == "ok"


def test_nan_of_the_policy_is_not_sent():
    done = run(10, output={4: True})
    assert done.loop.health.reasons == {"output": 1}
    assert done.short() == "pppp" + "s" + "ppppp"


def test_hold_ends_in_the_robots_own_stop():
    done = run(80, made=contract(on_stale="hold"), faults=Faults(gone=set(range(5, 75))), limits=Limits(hold_s=0.2))
    assert done.short() == "p" * 5 + "h" * 20 + "x" * 50 + "x" * 4 + "p"


def test_an_outage_beyond_the_limit_stops_for_good():
    faults = Faults(nan=set(range(5, 60)))
    done = run(100, faults=faults, limits=Limits(stop_s=0.3))
    assert done.loop.health.state == "stopped"
    assert done.loop.health.reason == "outage"
    assert set(done.short()[40:]) == {"x"}, "also when observations are good again"


def test_fallback_brings_a_base_to_rest_by_a_ramp():
    made = contract(on_stale="fallback", fallback="base/stop@1")
    done = run(80, made=made, faults=Faults(gone=set(range(5, 70))))
    forward = done.actions[5:70, 0]
    assert set(done.modes[5:70]) == {"fallback"}
    assert np.all(np.diff(forward) <= 0)
    assert np.max(-np.diff(forward)) == pytest.approx(1.0 * 0.01), "1 m/s² at 100 Hz"
    assert forward[-1] == 0.0


def test_unknown_fallback_is_refused_before_the_robot_moves():
    with pytest.raises(PackageError, match=r"Did you mean 'base/stop@1'"):
        run(1, made=contract(on_stale="fallback", fallback="base/stop@2"))


def test_fallback_for_another_robot_is_refused():
    with pytest.raises(PackageError, match="thrust_1_n"):
        run(1, made=contract(on_stale="fallback", fallback="quadrotor/position_hold@1"))


def test_a_chunk_is_followed_to_its_executed_part_and_asked_again():
    done = run(12, made=contract(horizon=6, execute=3))
    assert done.policy.questions == 4
    k, i = np.divmod(np.arange(12), 3)
    assert np.allclose(done.actions[:, 1], (k + i / 100) / 1000, atol=1e-12)


def test_a_late_chunk_is_bridged_by_the_one_before_and_then_joined_where_it_is_due():
    done = run(9, made=contract(horizon=6, execute=3), compute_s={1: 0.006})
    assert done.short() == "p" * 9
    # Question 1 of period 3 comes late: period 3 follows action 3 of chunk 0, period 4 action 1 of chunk 1.
    expected = [0, 0.01, 0.02, 0.03, 1.01, 1.02, 2, 2.01, 2.02]
    assert np.allclose(done.actions[:, 1] * 1000, expected)
    assert done.loop.timing.misses == 1


def test_a_chunk_too_old_is_not_followed():
    # Horizon 6, but at most 30 ms old: action 4 of a chunk may not be used.
    made = contract(horizon=6, execute=3, max_age_s=0.03)
    done = run(8, made=made, compute_s={1: 0.006, 2: 0.006}, output={1: False})
    assert done.short()[3] == "p"
    late = run(8, made=contract(horizon=6, execute=3, max_age_s=0.02), compute_s={1: 0.006})
    assert late.short()[3] == "h"
    assert late.loop.health.reasons == {"chunk": 1}


def test_a_policy_not_asked_for_long_starts_from_scratch():
    short = run(40, faults=Faults(nan=set(range(5, 15))))
    assert short.policy.resets == 1, "the start"
    long = run(140, faults=Faults(gone=set(range(5, 75))))
    assert long.policy.resets == 2


def test_recovery_needs_five_good_periods_after_a_long_outage():
    done = run(30, faults=Faults(nan=set(range(5, 18)) | {20}))
    # 13 bad; two good ones are not enough, 20 is bad again, then five good ones of which the last is sent.
    assert done.short() == "p" * 5 + "s" * 20 + "p" * 5


def test_no_good_sample_at_the_start_is_an_error_that_names_the_fault():
    from embodied_deploy.runtime.clock import ManualClock
    from embodied_deploy.runtime.inference import InlineInference
    from embodied_deploy.runtime.loop import EdgeLoop
    from tests.edge_rig import FaultyRobot, ScriptedPolicy

    clock = ManualClock(0.0)
    robot, policy = FaultyRobot(clock, Faults(gone=set(range(10_000)))), ScriptedPolicy(clock=clock)
    with pytest.raises(LinkError, match=r"no good sample within 5 s \(last fault: link\)"):
        EdgeLoop(robot, policy, InlineInference(policy, clock), clock=clock).run(ticks=5)
    assert not policy.questions
    assert robot.stops == 1


def test_changes_are_logged_and_their_number_is_bounded(tmp_path):
    log = JsonLog(tmp_path / "run.jsonl")
    done = run(200, compute_s={k: 0.006 for k in range(0, 200, 2)}, log=log)
    log.close()
    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    kinds = [line["event"] for line in lines]
    assert kinds[0] == "start"
    assert kinds[-1] == "end"
    assert 1 <= kinds.count("second") <= 2
    assert CHANGES_PER_S <= kinds.count("health") <= 2 * CHANGES_PER_S + 1
    assert lines[-1]["misses"] == done.loop.timing.misses == 100
    assert lines[-1]["reasons"] == {"late": 100}


def test_a_loop_on_time_reports_what_the_clock_says():
    done = run(100, compute_s={k: 0.002 for k in range(100)})
    t = done.loop.timing
    assert t.ticks == 100
    assert t.compute.quantile_s(0.5) == pytest.approx(0.002, rel=0.05)
    assert t.response.max_s == pytest.approx(0.002, rel=1e-6)
    assert t.wake.max_s == 0.0


def test_a_long_run_with_faults_leaves_nothing_for_the_collector():
    faults = Faults(nan=set(range(0, 3000, 7)), gone=set(range(3, 3000, 11)), frozen=set(range(5, 3000, 13)))
    run(50, faults=faults)
    gc.collect()
    gc.disable()
    try:
        run(3000, faults=faults, compute_s={k: 0.006 for k in range(0, 3000, 5)})
        # What the rig itself leaves is a constant; one object for each fault would be hundreds.
        assert gc.collect() < 200
    finally:
        gc.enable()


def test_a_start_without_a_goal_says_that_it_is_missing(tmp_path):
    from embodied_deploy.package.load import load_package
    from embodied_deploy.robots.stand_in import loopback_for
    from embodied_deploy.runtime.clock import MonotonicClock
    from embodied_deploy.runtime.host import HostConfig, drive
    from embodied_deploy.runtime.loop import LoopConfig

    tiny = pytest.importorskip("tests.tiny_packages", reason="onnx and onnxruntime come with the extra 'export'")
    made = tiny.contract(inputs=(tiny.observation(("to_goal_pos_world_m.x",)),), max_observation_age_s=10.0)
    package = load_package(tiny.write(tmp_path / "goal.policy", made, tiny.linear(n_in=1)))
    robot = loopback_for(package.contract, MonotonicClock())
    goal = {"pos_world_m": np.full(3, np.nan)}
    with pytest.raises(LinkError, match=r"last fault: observation: .*finite"):
        drive(package, robot, HostConfig(ticks=1, goal=goal, loop=LoopConfig(start_s=0.3)))
