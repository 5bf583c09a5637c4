"""Intervals and tests against SciPy and published cases."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embodied.benchmark.metrics import bootstrap_mean, mcnemar, paired_difference, pairs_needed, wilson

stats = pytest.importorskip("scipy.stats", reason="scipy comes with the extra 'report'")


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_wilson_equals_scipy(data):
    n = data.draw(st.integers(1, 400))
    k = data.draw(st.integers(0, n))
    theirs = stats.binomtest(k, n).proportion_ci(0.95, method="wilson")
    ours = wilson(k, n)
    assert ours.low == pytest.approx(theirs.low, abs=1e-9)
    assert ours.high == pytest.approx(theirs.high, abs=1e-9)
    assert 0.0 <= ours.low <= ours.value <= ours.high <= 1.0


def test_wilson_of_nothing_knows_nothing_and_nonsense_is_refused():
    rate = wilson(0, 0)
    assert math.isnan(rate.value)
    assert (rate.low, rate.high) == (0.0, 1.0)
    with pytest.raises(ValueError, match="3 successes out of 2"):
        wilson(3, 2)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 40), st.integers(0, 40))
def test_mcnemar_equals_scipys_binomial_test(a, b):
    theirs = stats.binomtest(a, a + b, 0.5).pvalue if a + b else 1.0
    assert mcnemar(a, b) == pytest.approx(theirs, rel=1e-9)


def test_paired_difference_on_a_published_case():
    # Newcombe (1998), table II, method 10: 36, 12, 2, 0 of 50 gives 0.2000 with 0.0569 to 0.3404 (e = 36, f = 12).
    difference, low, high = paired_difference(36, 12, 2, 0)
    assert difference == pytest.approx(0.2)
    assert low == pytest.approx(0.0569, abs=5e-4)
    assert high == pytest.approx(0.3404, abs=5e-4)


@settings(max_examples=60, deadline=None)
@given(st.tuples(*[st.integers(0, 30)] * 4).filter(lambda t: sum(t) > 0))
def test_paired_difference_is_antisymmetric_and_holds_its_value(counts):
    both, a, b, neither = counts
    d, low, high = paired_difference(both, a, b, neither)
    e, low_e, high_e = paired_difference(both, b, a, neither)
    assert -1.0 <= low <= d + 1e-12
    assert d - 1e-12 <= high <= 1.0
    assert (d, low, high) == pytest.approx((-e, -high_e, -low_e))


def test_pairs_needed_shrinks_with_the_effect_and_is_none_without_one():
    assert pairs_needed(3, 3, 30) is None
    assert pairs_needed(9, 1, 30) < pairs_needed(6, 3, 30)


def test_bootstrap_repeats_and_brackets_the_mean():
    values = [0.0, 1.0, 0.5, 0.25, 1.0, 1.0]
    assert bootstrap_mean(values, seed=3) == bootstrap_mean(values, seed=3)
    mean, low, high = bootstrap_mean(values)
    assert low <= mean <= high
