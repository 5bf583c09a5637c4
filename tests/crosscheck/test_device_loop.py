"""The firmware of a device under test as a process of its own: over pipes, over UDP, and as arm32 under emulation."""

import select
import socket
import struct
import subprocess
import zlib

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx comes with the extra 'export'")
from embodied.export.c_code import emit_c
from embodied.export.c_code.build import ARM32, HOST, compile_c
from tests import tiny_packages as tiny
from tests.c_policies import mlp, package

pytestmark = pytest.mark.skipif(bool(HOST.missing()), reason=HOST.missing())
MAGIC = 0x314C4445
HELLO, OBSERVATION, ACTION, SAFE = range(4)
WAIT_S = 20.0
SAFE_ACTION = (0.5, -0.25, 0.0, 0.125)


def frame(kind, sequence, payload=b""):
    head = struct.pack("<IIHH", MAGIC, sequence, kind, len(payload) // 4) + payload
    return head + struct.pack("<I", zlib.crc32(head))


def observe(sequence, values):
    return frame(OBSERVATION, sequence, np.asarray(values, "<f4").tobytes())


def parse(data):
    magic, sequence, kind, count = struct.unpack_from("<IIHH", data)
    assert magic == MAGIC
    assert len(data) == 16 + 4 * count
    assert struct.unpack_from("<I", data, 12 + 4 * count)[0] == zlib.crc32(data[:-4])
    payload = data[12:-4]
    return kind, sequence, payload if kind == HELLO else np.frombuffer(payload, "<f4")


class Pipe:
    """The device over stdin and stdout."""

    def __init__(self, command, *arguments):
        self.process = subprocess.Popen(
            [*command, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )

    def put(self, data):
        self.process.stdin.write(data)

    def get(self, wait_s=WAIT_S):
        head = self._read(12, wait_s)
        return head and parse(head + self._read(4 * struct.unpack_from("<H", head, 10)[0] + 4, wait_s))

    def _read(self, size, wait_s):
        data = b""
        while len(data) < size:
            if not select.select([self.process.stdout], [], [], wait_s)[0]:
                return b""
            part = self.process.stdout.read(size - len(data))
            assert part, "the device ended"
            data += part
        return data

    def close(self):
        self.process.stdin.close()
        code = self.process.wait(WAIT_S)
        self.process.stdout.close()
        return code


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A package, its C source and the compiled device."""
    folder = tmp_path_factory.mktemp("device")
    data = mlp(np.random.default_rng(1), 5, [16, 16], 4)
    path, loaded = package(folder, data, 5, 4, count=32, safe_action=SAFE_ACTION)
    source = emit_c(path, folder / "c")
    return loaded, source, compile_c(HOST, [source.source, source.device], folder / "device")


@pytest.fixture
def device(built):
    pipes = []

    def start(*arguments, command=None):
        pipes.append(Pipe(command or [str(built[2])], *arguments))
        return pipes[-1]

    yield start
    for pipe in pipes:
        assert pipe.close() == 0


def test_lockstep_over_pipes_gives_the_parity_vectors(built, device):
    loaded, _, _ = built
    link = device()
    link.put(frame(HELLO, 7))
    assert link.get() == (HELLO, 7, loaded.sha256.encode())
    for step, row in enumerate(loaded.parity.inputs["obs"]):
        link.put(observe(step, row))
        kind, sequence, action = link.get()
        assert (kind, sequence) == (ACTION, step)
        np.testing.assert_allclose(action, loaded.parity.outputs["action"][step], rtol=1e-5, atol=1e-6)


def test_duplicates_get_the_same_answer_and_old_frames_none(built, device):
    rows = built[0].parity.inputs["obs"]
    link = device()
    link.put(observe(2**32 - 1, rows[0]))
    first = link.get()
    link.put(observe(2**32 - 1, rows[1]))  # another observation under a number already answered
    again = link.get()
    assert again[:2] == first[:2]
    np.testing.assert_array_equal(again[2], first[2])
    link.put(observe(2**32 - 2, rows[1]))
    link.put(observe(0, rows[1]))  # the number after 2**32 - 1
    assert link.get()[:2] == (ACTION, 0)  # and nothing for the old one


def test_a_state_is_not_advanced_by_duplicates(tmp_path):
    c, data = tiny.recurrent()
    source = emit_c(tiny.write(tmp_path / "counter.policy", c, data), tmp_path / "c")
    link = Pipe([str(compile_c(HOST, [source.source, source.device], tmp_path / "device"))])
    unit = c.action.entries[0].high / 4
    answers = []
    for sequence in (1, 2, 2, 2, 3):
        link.put(observe(sequence, [unit]))
        answers.append(link.get()[2][0] / unit)
    np.testing.assert_allclose(answers, [1, 2, 2, 2, 3], rtol=1e-6)
    link.put(frame(HELLO, 0))
    link.get()
    link.put(observe(1, [unit]))
    np.testing.assert_allclose(link.get()[2] / unit, 1, rtol=1e-6)
    assert link.close() == 0


def test_broken_frames_are_skipped_and_the_stream_found_again(built, device):
    rows = built[0].parity.inputs["obs"]
    link, whole = device(), observe(1, rows[0])
    flipped = bytearray(whole)
    flipped[15] ^= 4
    alien = observe(1, rows[0][:3])  # a right frame with too few numbers
    long = struct.pack("<IIHH", MAGIC, 1, OBSERVATION, 60000)
    for noise in (b"\x00" * 37, bytes(flipped), whole[:20], alien, long, whole[:4] * 3):
        link.put(noise)
    link.put(observe(5, rows[0])[:9])  # a frame may come in pieces
    link.put(observe(5, rows[0])[9:])
    assert link.get()[:2] == (ACTION, 5)


def test_numbers_that_are_not_finite_get_the_safe_action(device):
    link = device()
    link.put(observe(3, [0, np.nan, 0, 0, 0]))
    kind, sequence, action = link.get()
    assert (kind, sequence) == (SAFE, 3)
    np.testing.assert_array_equal(action, np.float32(SAFE_ACTION))


def test_silence_brings_the_safe_action_until_a_new_observation(built, device):
    rows = built[0].parity.inputs["obs"]
    link = device("--watchdog-ms", "50")
    assert link.get(0.3) == b""  # nobody has spoken yet: nobody to answer
    link.put(observe(1, rows[0]))
    assert link.get()[0] == ACTION
    for _ in range(2):
        kind, sequence, action = link.get()
        assert (kind, sequence) == (SAFE, 1)
        np.testing.assert_array_equal(action, np.float32(SAFE_ACTION))
    link.put(observe(1, rows[0]))  # a frozen peer repeats itself: still safe
    link.put(observe(2, rows[1]))
    seen = [link.get() for _ in range(8)]
    answer = next(s for s in seen if s[0] == ACTION)
    assert answer[1] == 2
    np.testing.assert_allclose(answer[2], built[0].parity.outputs["action"][1], rtol=1e-5, atol=1e-6)


def test_udp(built):
    loaded, _, program = built
    process = subprocess.Popen([str(program), "--udp", "0", "--watchdog-ms", "400"], stderr=subprocess.PIPE, text=True)
    try:
        port = int(process.stderr.readline().rpartition(" ")[2])
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
            link.settimeout(WAIT_S)
            link.connect(("127.0.0.1", port))
            for junk in (b"", b"x" * 2000, observe(1, loaded.parity.inputs["obs"][0])[:-1]):
                link.send(junk)
            for step, row in enumerate(loaded.parity.inputs["obs"][:8]):
                link.send(observe(step, row))
                kind, sequence, action = parse(link.recv(4096))
                while kind == SAFE:  # a slow machine may let the watchdog in between
                    kind, sequence, action = parse(link.recv(4096))
                assert (kind, sequence) == (ACTION, step)
                np.testing.assert_allclose(action, loaded.parity.outputs["action"][step], rtol=1e-5, atol=1e-6)
            assert parse(link.recv(4096))[:2] == (SAFE, 7)
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


@pytest.mark.skipif(bool(ARM32.missing()), reason=ARM32.missing())
def test_the_same_firmware_as_arm32(built, device, tmp_path):
    loaded, source, _ = built
    program = compile_c(ARM32, [source.source, source.device], tmp_path / "device")
    link = device(command=[*ARM32.emulator, str(program)])
    for step, row in enumerate(loaded.parity.inputs["obs"]):
        link.put(observe(step, row))
        kind, sequence, action = link.get()
        assert (kind, sequence) == (ACTION, step)
        np.testing.assert_allclose(action, loaded.parity.outputs["action"][step], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "bad", [["--udp"], ["--udp", "70000"], ["--watchdog-ms", "-1"], ["--speed", "3"], ["--udp", "x"]]
)
def test_wrong_usage(built, bad):
    done = subprocess.run([str(built[2]), *bad], capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: ")
