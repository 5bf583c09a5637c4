"""A robot behind a socket: bit-equal values, refusals by kind, the watchdog on the robot's side."""

import struct
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embodied_controllers.contract import Command, RobotState
from embodied_deploy.errors import LinkError
from embodied_deploy.links.endpoint import dial, parse_endpoint
from embodied_deploy.links.hello import Welcome, decode_welcome, encode_welcome
from embodied_deploy.links.payload import CommandMessage, StateMessage, decode_state, encode_command, encode_state
from embodied_deploy.links.peer import Peer
from embodied_deploy.links.remote import RemoteRobot
from embodied_deploy.links.server import RobotServer, serving
from embodied_deploy.links.wire import Decoder, Kind, encode
from embodied_deploy.robots.loopback import LoopbackRobot
from embodied_deploy.robots.sense import Senses
from tests.edge_rig import BASE, DT_S, EYES, FaultyRobot

LOCAL = "tcp:127.0.0.1:0"


def test_frames_survive_any_cut_and_garbage_between_them():
    rng = np.random.default_rng(0)
    sent = [encode(Kind.COMMAND, 9, k, rng.bytes(int(rng.integers(0, 50)))) for k in range(40)]
    stream = b"".join(frame + (b"EMB" if k % 3 == 0 else rng.bytes(5)) for k, frame in enumerate(sent))
    decoder, seqs, at = Decoder(), [], 0
    while at < len(stream):
        n = int(rng.integers(1, 90))
        seqs += [f.seq for f in decoder.feed(stream[at : at + n])]
        at += n
    assert seqs == list(range(40))
    assert decoder.faults["garbage"] > 0


@pytest.mark.parametrize(
    ("at", "kind"),
    [(4, "header"), (16, "header"), (24, "header"), (45, "payload")],
    ids=["version", "seq", "length", "x"],
)
def test_a_flipped_byte_costs_one_frame(at, kind):
    frame = bytearray(encode(Kind.COMMAND, 1, 1, b"12345678"))
    frame[at] ^= 1
    decoder = Decoder()
    found = decoder.feed(bytes(frame) + encode(Kind.STOP, 1, 2))
    assert [f.seq for f in found] == [2]
    assert decoder.faults[kind] == 1


def test_other_versions_kinds_and_lengths_are_counted_by_kind():
    import zlib

    def raw(version, kind, length):
        head = struct.pack("<4sBBHQQII", b"EMBL", version, kind, 0, 0, 1, length, 0)
        return head + struct.pack("<II", zlib.crc32(head), 0)

    decoder = Decoder()
    assert decoder.feed(raw(2, 1, 0) + raw(1, 77, 0) + raw(1, 1, 1 << 30)) == []
    assert {k: decoder.faults[k] for k in ("version", "kind", "length")} == {"version": 1, "kind": 1, "length": 1}


@given(st.binary(max_size=300))
def test_no_bytes_break_the_decoder(data):
    decoder = Decoder()
    decoder.feed(data)
    frames = decoder.feed(encode(Kind.BYE, 0, 5) * 2)
    assert frames == [] or frames[-1].seq == 5


@given(st.binary(max_size=400))
def test_no_payload_breaks_the_readers(data):
    for read in (lambda: decode_state(data, BASE, EYES), lambda: decode_welcome(data)):
        with pytest.raises(LinkError):
            read()


def test_everything_arrives_bit_by_bit():
    rng = np.random.default_rng(1)
    tiny = np.array([5e-324, -0.0])
    state = RobotState(
        time_s=1e9 + 1e-7,
        joint_pos=np.zeros(0),
        joint_vel=np.zeros(0),
        base_pos_world_m=rng.normal(size=3) * 1e-300,
        base_quat_wxyz=rng.normal(size=4),
        base_vel_body_mps=np.array([np.inf, -np.inf, np.nan]),
    )
    senses = Senses(
        ranges={"lidar": rng.normal(size=37)},
        images={"wrist_cam": rng.integers(0, 256, (6, 5, 3), dtype=np.uint8)},
        goal={"pos_world_m": np.array([0.1, 0.2, 0.3]), "none": np.zeros(0)},
        tokens={"words": np.array([1, -(2**62)], dtype=np.int64)},
    )
    message = StateMessage(acknowledges=2**63, is_safe=True, applied=tiny, state=state, senses=senses)
    found = decode_state(encode_state(message, EYES), BASE, EYES)
    assert (found.acknowledges, found.is_safe, found.state.time_s) == (2**63, True, state.time_s)
    assert found.applied.tobytes() == tiny.tobytes()
    for name in ("base_pos_world_m", "base_quat_wxyz", "base_vel_body_mps"):
        assert getattr(found.state, name).tobytes() == getattr(state, name).tobytes()
    for group in ("ranges", "images", "goal", "tokens"):
        for key, value in getattr(senses, group).items():
            other = getattr(found.senses, group)[key]
            assert other.dtype == value.dtype
            assert np.array_equal(other, value)


def test_specs_arrive_whole():
    from dataclasses import replace

    action = replace(BASE, low=np.array([-np.inf, -0.1]), safe=np.array([np.nan, 0.0]), groups={"base": slice(0, 2)})
    fields = {"name": "a", "kind": "b", "dt_ctrl_s": 0.1, "lockstep": True, "watchdog_s": 0.3, "session": 2**63 + 1}
    found = decode_welcome(encode_welcome(Welcome(action_spec=action, observation_spec=EYES, **fields)))
    assert {k: getattr(found, k) for k in fields} == fields
    assert found.action_spec.names == BASE.names
    assert np.array_equal(found.action_spec.safe, action.safe, equal_nan=True)
    assert found.action_spec.low.tobytes() == action.low.tobytes()
    assert found.action_spec.groups == action.groups


@pytest.mark.parametrize("text", ["tcp:", "tcp:host", "tcp:host:x", "tcp:host:70000", "unix:", "udp:a:1", ""])
def test_bad_endpoints_are_refused(text):
    with pytest.raises(LinkError, match="expected tcp:HOST:PORT or unix:PATH"):
        parse_endpoint(text)


@pytest.mark.parametrize("scheme", ["tcp", "unix"])
def test_a_remote_robot_does_what_a_local_one_does(scheme, tmp_path):
    rng = np.random.default_rng(2)
    commands = rng.uniform(-1.5, 1.5, (30, 2))
    commands[7, 0] = np.nan
    local = LoopbackRobot(BASE, EYES, "base", DT_S)
    server = RobotServer(
        LoopbackRobot(BASE, EYES, "base", DT_S), LOCAL if scheme == "tcp" else f"unix:{tmp_path}/r", 60
    )
    with serving(server):
        remote = RemoteRobot(server.endpoint)
        local.stop()  # the server stops its robot before it serves it
        assert remote.action_spec.names == BASE.names
        for command in commands:
            a, b = local.read(), remote.read()
            assert a.time_s == b.time_s
            assert a.base_pos_world_m.tobytes() == b.base_pos_world_m.tobytes()
            applied = [r.send(Command(values=command)).values.tobytes() for r in (local, remote)]
            assert applied[0] == applied[1]
        remote.close()
    assert not server.faults


def test_commands_last_as_many_periods_as_the_rate_says():
    steps = []
    robot = FaultyRobot()
    server = RobotServer(robot, LOCAL, 60, step=lambda: steps.append(1))
    with serving(server):
        with pytest.raises(LinkError, match="is no part of that"):
            RemoteRobot(server.endpoint, rate_hz=70)
        remote = RemoteRobot(server.endpoint, rate_hz=25)
        remote.send(Command(values=np.zeros(2)))
        remote.close()
    assert len(steps) == 4


def _client(server):
    """A client written by hand: hello, then whatever a test sends."""
    peer = Peer(dial(parse_endpoint(server.endpoint), 5))
    peer.send(Kind.HELLO, b"{}")
    frames = _hear(peer, Kind.STATE)
    peer.session = decode_welcome(next(f for f in frames if f.kind == Kind.WELCOME).payload).session
    return peer


def _hear(peer, kind):
    frames, end_s = [], time.monotonic() + 10
    while not [f for f in frames if f.kind == kind]:
        assert time.monotonic() < end_s, f"no {kind!r}"
        frames += peer.receive(0.1)
    return frames


def _command(values):
    return encode_command(CommandMessage(answers=0, periods=1, values=np.array(values)))


def test_frames_that_are_not_obeyed_are_counted_by_kind():
    robot = FaultyRobot()
    server = RobotServer(robot, LOCAL, 60)
    with serving(server):
        peer = _client(server)
        robot.sent.clear()
        peer.send(Kind.COMMAND, _command([0.1, 0.1]))  # seq 2
        _hear(peer, Kind.STATE)
        session = peer.session
        again = encode(Kind.COMMAND, session, 2, _command([0.9, 0.9]))
        old = encode(Kind.COMMAND, session, 1, _command([0.9, 0.9]))
        foreign = encode(Kind.COMMAND, session + 2, 90, _command([0.9, 0.9]))
        broken = bytearray(encode(Kind.COMMAND, session, 91, _command([0.9, 0.9])))
        broken[60] ^= 255
        nan = encode(Kind.COMMAND, session, 92, _command([np.nan, 0.9]))
        short = encode(Kind.COMMAND, session, 93, _command([0.9]))
        strange = encode(Kind.WELCOME, session, 94)
        peer.socket.sendall(again + old + foreign + bytes(broken) + b"garbage" + nan + short + strange)
        peer.sent = 99
        peer.send(Kind.COMMAND, _command([0.2, 0.2]))
        _hear(peer, Kind.STATE)
        peer.close()
        sent = np.array(robot.sent)
    assert np.array_equal(sent[:2], [[0.1, 0.1], [0.2, 0.2]])
    assert not np.any(sent == 0.9)
    expected = {
        "duplicate": 1,
        "old": 1,
        "foreign": 1,
        "payload": 1,
        "garbage": 1,
        "nan": 1,
        "size": 1,
        "unexpected": 1,
    }
    assert dict(server.faults) == expected


def test_a_second_client_is_refused_and_the_first_goes_on():
    server = RobotServer(FaultyRobot(), LOCAL, 60)
    with serving(server):
        first = RemoteRobot(server.endpoint)
        with pytest.raises(LinkError, match="another client commands this robot"):
            RemoteRobot(server.endpoint)
        first.send(Command(values=np.zeros(2)))
        first.close()
        # Its place is free then.
        RemoteRobot(server.endpoint, timeout_s=10).close()
    assert server.faults["foreign"] == 1


def test_garbage_instead_of_a_hello_is_dropped():
    server = RobotServer(FaultyRobot(), LOCAL, 60)
    with serving(server):
        sock = dial(parse_endpoint(server.endpoint), 5)
        sock.sendall(b"GET / HTTP/1.1\r\n\r\n" * 4)
        sock.settimeout(10)
        assert sock.recv(10) == b"", "closed after a second without a hello"
        sock.close()
        RemoteRobot(server.endpoint).close()


def test_a_peer_that_is_no_robot_is_an_error_in_words():
    import socket

    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    with pytest.raises(LinkError, match="does not answer as a robot"):
        RemoteRobot(f"tcp:127.0.0.1:{port}", timeout_s=0.2)
    listener.close()
    with pytest.raises(LinkError, match="no robot at"):
        RemoteRobot(f"tcp:127.0.0.1:{port}", timeout_s=0.5)


def _drive_on(remote):
    for _ in range(100):
        remote.read()
        remote.send(Command(values=np.array([0.7, 0.0])))
        time.sleep(0.02)


@pytest.mark.parametrize("lockstep", [True, False])
def test_silence_stops_the_robot_until_a_new_session(lockstep):
    events = []
    robot = FaultyRobot()
    server = RobotServer(robot, LOCAL, 0.2, lockstep=lockstep, on_event=lambda k, f: events.append((k, f)))
    with serving(server):
        remote = RemoteRobot(server.endpoint)
        remote.send(Command(values=np.array([0.7, 0.0])))
        end_s = time.monotonic() + 10
        while not [k for k, _ in events if k == "watchdog"] and time.monotonic() < end_s:
            time.sleep(0.01)
        why, facts = events[-1]
        assert why == "watchdog"
        assert 0.18 <= facts["silent_s"] < 5
        assert robot.last_action[0] == 0.0
        # Commands of the old session come too late, and are not obeyed.
        with pytest.raises(LinkError):
            _drive_on(remote)
        assert robot.last_action[0] == 0.0
        again = RemoteRobot(server.endpoint)
        again.send(Command(values=np.array([0.3, 0.0])))
        end_s = time.monotonic() + 0.15
        while robot.last_action[0] != 0.3 and time.monotonic() < end_s:
            time.sleep(0.005)
        assert server.sessions == 2
        again.close()
    assert robot.last_action[0] == 0.0, "stopped in the end"


def test_a_session_that_never_commanded_is_not_watched():
    events = []
    server = RobotServer(FaultyRobot(), LOCAL, 0.05, on_event=lambda k, f: events.append(k))
    with serving(server):
        remote = RemoteRobot(server.endpoint)
        time.sleep(0.3)
        remote.send(Command(values=np.zeros(2)))
        remote.close()
    assert events[0] == "session"


def test_in_real_time_a_lost_link_comes_back_by_itself():
    robot = FaultyRobot()
    server = RobotServer(robot, "tcp:127.0.0.1:0", 5, lockstep=False)
    with serving(server):
        remote = RemoteRobot(server.endpoint)
        remote.read()
    with pytest.raises(LinkError, match="the link is down"):
        _drive_on(remote)
    server = RobotServer(robot, server.endpoint, 5, lockstep=False)
    with serving(server):
        end_s = time.monotonic() + 20
        while True:
            try:
                remote.read()
                break
            except LinkError:
                assert time.monotonic() < end_s
                time.sleep(0.02)
        remote.close()


def test_a_unix_socket_left_by_a_dead_server_is_taken_over_but_not_a_live_one(tmp_path):
    import socket

    dead = socket.socket(socket.AF_UNIX)
    dead.bind(f"{tmp_path}/r")
    dead.close()
    server = RobotServer(FaultyRobot(), f"unix:{tmp_path}/r", 1)
    with serving(server), pytest.raises(LinkError, match="Is another server running there"):
        RobotServer(FaultyRobot(), f"unix:{tmp_path}/r", 1)


@pytest.mark.parametrize("watchdog_s", [0.0, -1.0, float("nan")])
def test_a_watchdog_must_have_a_time(watchdog_s):
    with pytest.raises(LinkError, match="positive number of seconds"):
        RobotServer(FaultyRobot(), LOCAL, watchdog_s)
