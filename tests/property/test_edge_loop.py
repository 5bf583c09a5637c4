"""Whatever the robot and the policy do, what the edge runtime sends is fit to be sent."""

from math import isfinite

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from embodied_deploy.runtime.recovery import Limits
from tests.edge_rig import BASE, Faults, contract, run

TICKS = 60
ticks = st.sets(st.integers(0, TICKS - 1), max_size=25)
faults = st.builds(
    Faults,
    frozen=ticks,
    nan=ticks,
    gone=ticks,
    bad_stamp=ticks,
    jump_s=st.dictionaries(st.integers(0, TICKS - 1), st.sampled_from([-5000.0, 60.0]), max_size=3),
)
slow = st.dictionaries(st.integers(0, TICKS), st.floats(0.0, 0.05), max_size=15)
broken = st.dictionaries(st.integers(0, TICKS), st.just(True), max_size=8)
modes = st.sampled_from(["hold", "safe", "fallback"])
chunks = st.sampled_from([{}, {"horizon": 4, "execute": 2, "max_age_s": 0.03}, {"horizon": 6, "execute": 1}])


@settings(max_examples=150, deadline=None)
@given(faults, slow, broken, modes, modes, chunks, st.booleans())
def test_every_command_is_finite_within_limits_and_accounted_for(found, late, nan, stale, tardy, chunk, lockstep):
    if lockstep:
        found.gone = set()  # in lockstep a robot that is gone ends the run
    made = contract(on_stale=stale, on_late=tardy, fallback="base/stop@1", **chunk)
    limits = Limits(hold_s=0.1, stop_s=0.3)
    done = run(TICKS, made, found, late, nan, lockstep=lockstep, limits=limits)
    health, timing = done.loop.health, done.loop.timing
    assert np.isfinite(done.actions).all()
    assert np.all((done.actions >= BASE.low) & (done.actions <= BASE.high))
    # Each period is one mode, each period without the policy has a cause before it.
    assert sum(health.modes.values()) == len(done.modes) == timing.ticks
    assert timing.ticks + timing.skipped >= TICKS
    if "p" not in done.short() or set(done.short()) != {"p"}:
        assert sum(health.reasons.values()) > 0
    # A period whose sample could not be used never carries a new action of the policy.
    for k, mode in enumerate(done.modes):
        if mode != "policy" and k and mode == "hold":
            assert np.array_equal(done.actions[k], done.actions[k - 1])
        if mode == "stop" or (mode == "safe"):
            assert np.array_equal(done.actions[k], [0.0, 0.0])
    assert all(isfinite(x) for x in (timing.compute.max_s, timing.response.max_s))
    assert done.robot.stops >= 1
    assert done.robot.last_action.tolist() == [0.0, 0.0], "at rest in the end"


@settings(max_examples=50, deadline=None)
@given(faults, broken, modes)
def test_lockstep_runs_repeat_bit_by_bit(found, nan, stale):
    found.gone = set()
    made = contract(on_stale=stale, on_late=stale, fallback="base/stop@1", horizon=3, execute=2)
    first, second = (run(TICKS, made, found, None, nan, lockstep=True) for _ in range(2))
    assert first.actions.tobytes() == second.actions.tobytes()
    assert first.modes == second.modes
