"""The episode log: what goes in comes out, equal runs give equal bytes, damage is named."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcap.reader import make_reader
from mcap.writer import Writer

from embodied.errors import LogError
from embodied.graph.facts import fact
from embodied.record import wire
from embodied.record.log import McapLogWriter, read_log
from embodied.record.memory import MemoryLog
from embodied.record.wall import read_wall, wall_path, write_wall

NAMES = st.text("abcdefgh_0123456789", min_size=1, max_size=8)
FLOATS = st.floats(allow_nan=True, allow_infinity=True, width=64)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=8) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def episodes(draw):
    """A list of calls on a sink."""
    nq, agents = draw(st.integers(0, 5)), draw(st.lists(NAMES, max_size=2, unique=True))
    calls, time_s = [], 0.0
    for kind in draw(st.lists(st.sampled_from(["state", "facts", "event"]), max_size=12)):
        time_s += draw(st.floats(0.0, 10.0))
        if kind == "state":
            row = np.array(draw(st.lists(FLOATS, min_size=nq, max_size=nq)))
            calls.append(
                (kind, time_s, row, {a: np.array(draw(st.lists(FLOATS, min_size=2, max_size=2))) for a in agents})
            )
        elif kind == "facts":
            facts = [fact(p, "a") for p in draw(st.lists(NAMES, max_size=3, unique=True))]
            calls.append((kind, time_s, facts[:1], facts[1:]))
        else:
            calls.append((kind, time_s, draw(NAMES), draw(st.dictionaries(NAMES, JSON, max_size=3))))
    return calls


def feed(sink, calls):
    for name, *arguments in calls:
        getattr(sink, name)(*arguments)
    sink.close()
    return sink


def write(path, calls=(), **meta):
    feed(McapLogWriter(path, meta={"task_id": "t@1", **meta}), calls)
    return path


def sample_calls(count=200):
    rng = np.random.default_rng(3)
    calls = [("facts", 0.0, [fact("open", "fridge")], [])]
    calls += [("state", 0.1 * k, rng.normal(size=30), {"robot": rng.normal(size=4)}) for k in range(count)]
    return [*calls, ("event", 0.1 * count, "end", {"outcome": "success"})]


@settings(max_examples=40, deadline=None)
@given(calls=episodes())
def test_a_log_reads_back_as_it_was_written(tmp_path_factory, calls):
    folder = tmp_path_factory.mktemp("log")
    read = read_log(write(folder / "e.mcap", calls))
    kept = feed(MemoryLog({"task_id": "t@1"}), calls).log()
    assert read.meta == kept.meta == {"task_id": "t@1", "format": wire.FORMAT}
    np.testing.assert_array_equal(read.time_s, kept.time_s)
    np.testing.assert_array_equal(read.qpos, kept.qpos)
    assert set(read.actions) == set(kept.actions)
    for agent, values in kept.actions.items():
        np.testing.assert_array_equal(read.actions[agent], values)
    assert read.changes == kept.changes
    assert read.events == kept.events


@settings(max_examples=20, deadline=None)
@given(calls=episodes())
def test_equal_runs_give_equal_bytes(tmp_path_factory, calls):
    folder = tmp_path_factory.mktemp("log")
    assert write(folder / "a.mcap", calls).read_bytes() == write(folder / "b.mcap", calls).read_bytes()


def test_bytes_change_with_the_last_bit_of_a_state(tmp_path):
    calls = sample_calls(20)
    first = write(tmp_path / "a.mcap", calls).read_bytes()
    calls[5][2][3] = math.nextafter(calls[5][2][3], 1e9)
    assert write(tmp_path / "b.mcap", calls).read_bytes() != first


def test_other_tools_find_topics_schemas_and_json(tmp_path):
    with write(tmp_path / "e.mcap", sample_calls()).open("rb") as stream:
        summary = make_reader(stream).get_summary()
        assert summary is not None
        topics = {c.topic: summary.schemas[c.schema_id].encoding for c in summary.channels.values()}
        assert topics["/state/qpos"] == topics["/actions/robot"] == "protobuf"
        assert topics["/events"] == topics["/facts"] == "jsonschema"
        stream.seek(0)
        events = [json.loads(m.data) for _, _, m in make_reader(stream).iter_messages(topics=["/events"])]
    assert events == [{"kind": "end", "payload": {"outcome": "success"}, "time_s": 20.0}]


def test_an_unfinished_log_never_looks_whole(tmp_path):
    path = tmp_path / "e.mcap"
    writer = McapLogWriter(path, meta={})
    writer.event(0.0, "decision", {})
    assert not path.exists()
    with pytest.raises(LogError, match=r"cut off: e\.mcap\.part is unfinished"):
        read_log(path)
    writer.abort()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(LogError, match="There is no log"):
        read_log(path)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.7, 0.99])
def test_a_torn_log_is_refused(tmp_path, share):
    path = write(tmp_path / "e.mcap", sample_calls())
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(LogError, match="torn"):
        read_log(path)


def test_a_flipped_byte_never_goes_unseen_in_the_data(tmp_path):
    path = write(tmp_path / "e.mcap", sample_calls())
    whole = path.read_bytes()
    good = read_log(path)
    caught = 0
    for position in np.linspace(8, len(whole) - 9, 60).astype(int):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0xFF]) + whole[position + 1 :])
        try:
            read = read_log(path)
        except LogError:
            caught += 1
        else:  # the byte belonged to an index that serves other tools
            np.testing.assert_array_equal(read.qpos, good.qpos)
            assert (read.meta, read.events, read.changes) == (good.meta, good.events, good.changes)
    assert caught >= 45
    path.write_bytes(whole)
    np.testing.assert_array_equal(read_log(path).qpos, good.qpos)


@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=200))
def test_any_bytes_give_a_log_error(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("log") / "e.mcap"
    for content in (data, b"\x89MCAP0\r\n" + data, b"\x89MCAP0\r\n" + data + b"\x89MCAP0\r\n"):
        path.write_bytes(content)
        with pytest.raises(LogError):
            read_log(path)


def test_another_version_and_another_program_are_named(tmp_path):
    for name, metadata in (("old.mcap", {"format": "embodied-log/9", "json": "{}"}), ("other.mcap", None)):
        with (tmp_path / name).open("wb") as stream:
            writer = Writer(stream)
            writer.start()
            if metadata:
                writer.add_metadata(wire.META_RECORD, metadata)
            writer.finish()
    with pytest.raises(LogError, match="has the format 'embodied-log/9', this version reads 'embodied-log/1'"):
        read_log(tmp_path / "old.mcap")
    with pytest.raises(LogError, match="another program"):
        read_log(tmp_path / "other.mcap")


def test_wrong_records_are_refused_and_the_log_stays_good(tmp_path):
    path = tmp_path / "e.mcap"
    writer = McapLogWriter(path, meta={})
    writer.state(1.0, np.zeros(3), {"a": np.zeros(2)})
    for time_s, qpos, actions, words in (
        (0.5, np.zeros(3), {"a": np.zeros(2)}, "follows"),
        (2.0, np.zeros(4), {"a": np.zeros(2)}, "the first one had 3"),
        (2.0, np.zeros(3), {"b": np.zeros(2)}, "has the agents"),
        (2.0, np.zeros(3), {"a": np.zeros(1)}, "the first one had 2"),
        (math.nan, np.zeros(3), {"a": np.zeros(2)}, "finite"),
    ):
        with pytest.raises(LogError, match=words):
            writer.state(time_s, qpos, actions)
    with pytest.raises(LogError, match="JSON does not know"):
        writer.event(1.0, "odd", {"thing": object()})
    with pytest.raises(LogError, match="finite and >= 0"):
        writer.event(-1.0, "odd", {})
    writer.event(1.0, "numbers", {"nan": math.nan, "array": np.arange(2), "set": {"b", "a"}})
    writer.close()
    writer.close()
    with pytest.raises(LogError, match="closed"):
        writer.event(1.0, "late", {})
    log = read_log(path)
    assert len(log.time_s) == len(log.actions["a"]) == 1
    assert log.events[0].payload == {"nan": "nan", "array": [0, 1], "set": ["a", "b"]}


def test_wall_clock_figures_live_beside_the_log(tmp_path):
    path = write(tmp_path / "e.mcap")
    before = path.read_bytes()
    assert read_wall(path) == {}
    write_wall(path, {"wall_s": 1.5, "planner_calls": np.int64(3)})
    assert wall_path(path).name == "e.wall.json"
    assert read_wall(path) == {"wall_s": 1.5, "planner_calls": 3}
    assert path.read_bytes() == before
    wall_path(path).write_text("{")
    with pytest.raises(LogError, match="is no JSON"):
        read_wall(path)
