"""Contracts survive their JSON unchanged, and no JSON makes the reader fail in another way than by refusing."""

import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embodied_deploy.errors import PackageError
from embodied_deploy.package.codec import canonical, decode_contract, encode_contract
from embodied_deploy.package.contract import Chunk, Entry, PolicyContract, TensorSpec, Training

FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=64)
WORDS = st.text(max_size=8)
ENTRIES = st.builds(Entry, name=WORDS, unit=WORDS, frame=WORDS, low=FLOATS, high=FLOATS)
ROLES = st.sampled_from(["observation", "image", "tokens", "state", "action", "score"])
TENSORS = st.builds(
    TensorSpec,
    name=WORDS,
    role=ROLES,
    dtype=WORDS,
    shape=st.lists(st.integers(0, 2**40), max_size=3).map(tuple),
    entries=st.lists(ENTRIES, max_size=3).map(tuple),
    source=WORDS,
)
MODES = st.sampled_from(["hold", "safe", "fallback"])
CONTRACTS = st.builds(
    PolicyContract,
    name=WORDS,
    version=WORDS,
    kind=st.sampled_from(["controller", "planner"]),
    robot=WORDS,
    rate_hz=FLOATS,
    inputs=st.lists(TENSORS, max_size=2).map(tuple),
    outputs=st.lists(TENSORS, max_size=2).map(tuple),
    safe_action=st.lists(FLOATS | st.none(), max_size=3).map(tuple),
    latency_budget_s=FLOATS,
    max_observation_age_s=FLOATS,
    training=st.builds(
        Training, recipe=WORDS, seed=st.integers(), commit=WORDS, versions=st.dictionaries(WORDS, WORDS)
    ),
    on_stale=MODES,
    on_late=MODES,
    chunk=st.none() | st.builds(Chunk, horizon=st.integers(), execute=st.integers(), max_age_s=FLOATS),
    opset=st.integers(),
    vocabulary=st.dictionaries(WORDS, st.lists(WORDS, max_size=3).map(tuple), max_size=2),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOATS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


@given(CONTRACTS)
@settings(max_examples=150, deadline=None)
def test_round_trip(contract):
    data = encode_contract(contract)
    assert decode_contract(data) == contract
    assert encode_contract(decode_contract(data)) == data


@given(CONTRACTS, JSON, st.data())
@settings(max_examples=200, deadline=None)
def test_any_value_in_any_place_is_read_or_refused(contract, value, data):
    whole = json.loads(encode_contract(contract))
    key = data.draw(st.sampled_from(sorted(whole)))
    whole[key] = value
    text = canonical(whole)
    try:
        decoded = decode_contract(text)
    except PackageError:
        return
    assert encode_contract(decoded) == text


@given(st.sampled_from([f.name for f in dataclasses.fields(PolicyContract)]), CONTRACTS)
@settings(max_examples=40, deadline=None)
def test_no_key_may_be_missing(key, contract):
    whole = json.loads(encode_contract(contract))
    del whole[key]
    with pytest.raises(PackageError, match=key):
        decode_contract(canonical(whole))


@given(st.binary(max_size=60) | JSON.map(canonical))
@settings(max_examples=150, deadline=None)
def test_anything_else_is_refused(data):
    with pytest.raises(PackageError) as error:
        decode_contract(data)
    assert error.value.reason == "format"
