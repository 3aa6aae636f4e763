"""Recordings of live drives: a replay is the session, and a drive outlives its server."""

import json
import os
import random
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path

import nandlab
import pytest
from nandlab import live, simulate
from nandlab.errors import OutputError
from nbd_client import Client
from test_live import nandlab as nandlab_command

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="drives are served on Linux only")

#: 24 MiB for the host, with units of 4 KiB in pages of 16 KiB and a write buffer that a capacitor protects.
SPEC = """\
seed = 1
[drive]
channels = 2
chips_per_channel = 1
planes_per_die = 2
pages_per_block = 66
blocks_per_plane = 8
page_size = "16KiB"
cell = "tlc"
program_order = "one-shot"
op = 2.0
endurance = 1000000
[timing]
read = "50us"
program = "600us"
erase = "3ms"
[ftl]
mapping_unit = "4KiB"
buffer = "192KiB"
[cache]
flush_to = "cache"
[capacitor]
capacitance = "10mF"
"""
UNIT = 4096
#: How often a server is killed; 200 in `make soak`.
KILLS = int(os.environ.get("NANDLAB_KILLS", "6"))
#: Files of a result that are the same for the same drive.
FILES = ["summary.json", "smart.json", "power.json", "series.parquet", "latency.parquet", "blocks.parquet"]


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "drive.toml"
    path.write_text(SPEC)
    return path


class Server:
    """A server of its own process, whose end is that of the test."""

    def __init__(self, spec, folder, *options, file_max=None):
        self.path = folder / "socket" / "s"

        def limit():
            if file_max is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (file_max, file_max))

        command = [sys.executable, "-m", "nandlab", "serve", spec, "--socket", self.path, *options]
        self.process = subprocess.Popen(
            [str(word) for word in command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=limit,
        )
        self.uri = self.process.stdout.readline()
        self.drive = live.Drive(self.path)

    def __enter__(self):
        assert self.uri, self.process.stderr.read()
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def end(self, how=signal.SIGTERM):
        """Its stderr after a signal."""
        self.process.send_signal(how)
        return self.process.communicate(timeout=60)[1]


def work(client, seed, requests=120):
    """Random requests."""
    draw = random.Random(seed)
    for _ in range(requests):
        offset, length = draw.randrange(300) * UNIT, draw.choice([512, UNIT, 5 * UNIT])
        match draw.randrange(8):
            case 0 | 1 | 2:
                client.write(offset, draw.randbytes(length), fua=draw.random() < 0.2)
            case 3 | 4:
                client.read(offset, length)
            case 5:
                client.trim(offset, 2 * UNIT)
            case 6:
                client.zero(offset, length)
            case _:
                client.flush()


@pytest.mark.parametrize("speed", ["max", "1", "0.2"])
def test_a_replay_has_the_bytes_of_the_session(spec, tmp_path, speed):
    recording = tmp_path / "session.rec"
    with Server(spec, tmp_path, "--speed", speed, "--record", recording, "--out", tmp_path / "live") as server:
        work(Client(server.path), 1)
        assert server.drive.mark("the middle")["at_s"] > 0
        server.drive.cut()
        server.drive.restore()
        client = Client(server.path)
        work(client, 2)
        client.close()
        assert server.drive.stat()["recording"]["bytes"] == recording.stat().st_size
        server.end()
    assert recording.stat().st_mode & 0o777 == 0o600
    assert simulate.replay(recording, verify=True).summary.verified.page_reads_checked > 0
    nandlab_command("run", recording, "--out", tmp_path / "again")
    for file in FILES:
        assert (tmp_path / "again" / file).read_bytes() == (tmp_path / "live" / file).read_bytes(), file
    result = simulate.replay(recording)
    assert result.complete and len(result.power.losses) == 1
    assert result.summary.requests >= 200


def test_a_recording_is_a_trace_for_another_drive(spec, tmp_path):
    recording = tmp_path / "session.rec"
    with Server(spec, tmp_path, "--speed", "max", "--record", recording) as server:
        work(Client(server.path), 3)
        server.end()
    stat = json.loads(nandlab_command("trace", "stat", recording, "--json"))
    assert stat["format"] == "recording" and stat["requests"] > 100
    other = nandlab.load(SPEC + f'[workload]\ntrace = "{recording}"\n', {"drive.blocks_per_plane": 16})
    result = nandlab.run(other)
    assert result.summary.requests == stat["requests"]
    assert result.summary.power is None
    shown = nandlab_command("run", spec, "--set", f"workload.trace={recording}", "--out", tmp_path / "trace")
    assert "recording (detected)" in shown and "not part of a trace" in shown
    for option in (["--set", "drive.op=0.5"], ["--save-drive", tmp_path / "d"], ["--fio", spec], ["--policy", spec]):
        refused = nandlab_command("run", recording, *option, status=2)
        assert option[0] in refused and "workload.trace" in refused


def changed_header(recording, change):
    """The recording with another header."""
    data = recording.read_bytes()
    (length,) = struct.unpack_from("<I", data, 8)
    header = json.loads(data[16 : 16 + length])
    change(header)
    text = json.dumps(header, separators=(",", ":")).encode()
    return data[:8] + struct.pack("<II", len(text), zlib.crc32(text)) + text + data[16 + length :]


def test_another_version_another_spec_and_damage_are_refused(spec, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    with Server(spec, tmp_path, "--speed", "max", "--data", data) as server:
        work(Client(server.path), 4)
        server.end()
    journal = data / "session.rec"
    whole = journal.read_bytes()

    def serve(*options):
        words = ["serve", spec, "--socket", tmp_path / "socket" / "s", "--speed", "max", "--data", data, *options]
        return nandlab_command(*words, status=2)

    refused = serve("--set", "timing.read=70us")
    assert "another spec" in refused and "read = " in refused and "--data" in refused
    other = tmp_path / "other.rec"
    other.write_bytes(changed_header(journal, lambda header: header.update(nandlab="0.0.7")))
    refused = nandlab_command("run", other, status=2)
    assert "recorded by nandlab 0.0.7" in refused and "workload.trace" in refused
    journal.write_bytes(other.read_bytes())
    assert "recorded by nandlab 0.0.7" in serve()
    damaged = bytearray(whole)
    damaged[-len(whole) // 3] ^= 1
    journal.write_bytes(damaged)
    for refused in (serve(), nandlab_command("run", journal, status=2)):
        assert "damaged" in refused and refused.count("remedy") == 1
    assert journal.read_bytes() == damaged
    with pytest.raises(nandlab.NandlabError, match="damaged"):
        simulate.replay(journal)


@pytest.mark.parametrize("how", [signal.SIGTERM, "stop"])
def test_a_drive_goes_on_after_a_clean_end(spec, tmp_path, how):
    data = tmp_path / "data"
    data.mkdir()
    options = ["--speed", "max", "--data", data]
    with Server(spec, tmp_path, *options) as server:
        client = Client(server.path)
        client.write(8 * UNIT, b"a" * UNIT)
        client.write(UNIT, b"b" * 512)
        with pytest.raises(OutputError):
            live.Drive(tmp_path / "nothing").mark()
        refused = nandlab_command("serve", spec, "--socket", tmp_path / "other" / "s", *options, status=2)
        assert "in use" in refused
        before = server.drive.stat()
        if how == "stop":
            # The answer comes when the next server can go on.
            server.drive.stop()
        else:
            server.end(how)
    with Server(spec, tmp_path, *options) as server:
        client = Client(server.path)
        assert client.read(8 * UNIT, UNIT) == b"a" * UNIT
        assert client.read(UNIT, UNIT) == b"b" * 512 + bytes(UNIT - 512)
        found = server.drive.stat()
        assert found["power_losses"] == 0
        assert found["completed"] == before["completed"] + 2
        assert "goes on after" in server.end()


def test_the_answer_to_stop_is_the_state_after_the_last_checkpoint(spec, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    # A session that ends with a recording of 16 MiB is saved at its end.
    options = ["--speed", "max", "--data", data, "--replay-max", "10min"]
    with Server(spec, tmp_path, *options) as server:
        client = Client(server.path)
        for number in range(18):
            client.write(number % 4 << 20, random.Random(number).randbytes(1 << 20))
        before = server.drive.stat()
        assert before["checkpoints"]["count"] == 0 and before["recording"]["bytes"] > 16 << 20
        stat = server.drive.stop()
        assert stat["checkpoints"]["count"] == 1
        assert stat["recording"]["bytes"] == (data / "session.rec").stat().st_size < 1 << 16
        assert stat["completed"] == before["completed"] == 18
        # The drive can be served again at once, while the first process writes its results.
        (tmp_path / "again").mkdir()
        with Server(spec, tmp_path / "again", *options) as other:
            assert Client(other.path).read(0, 1 << 20) == random.Random(16).randbytes(1 << 20)
            assert other.drive.stat()["completed"] == 19


def test_a_stop_that_takes_long_is_told_and_ends(tmp_path):
    told = []
    path = tmp_path / "drive.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(os.fspath(live.orders_path(path)))
        listener.listen()
        with pytest.raises(OutputError, match="has not ended after 3 s"):
            live.Drive(path).stop(timeout_s=3, waiting=told.append)
    assert len(told) == 1 and told[0] >= 2


def test_the_dropped_bytes_of_a_torn_recording_are_told(spec, tmp_path, command):
    recording = tmp_path / "session.rec"
    with Server(spec, tmp_path, "--speed", "max", "--record", recording) as server:
        client = Client(server.path)
        for lpn in range(8):
            client.write(lpn * UNIT, random.Random(lpn).randbytes(UNIT))
        server.end()
    whole = recording.read_bytes()

    def run(name):
        done = command("run", recording, "--out", tmp_path / name)
        assert done.returncode == 0, done.stderr
        return done.stderr

    assert "dropped" not in run("a")
    assert "dropped_bytes" not in json.loads((tmp_path / "a" / "sim.json").read_text())
    recording.write_bytes(whole[:-5])
    torn = run("b")
    dropped = json.loads((tmp_path / "b" / "sim.json").read_text())["dropped_bytes"]
    assert dropped > 0 and f"its last {dropped} bytes were dropped" in torn
    # The record that was torn is the end of the session; the requests before it are those of the whole recording.
    (tmp_path / "cut.rec").write_bytes(whole[: len(whole) - 5 - dropped])
    assert simulate.replay(tmp_path / "cut.rec").summary_text == simulate.replay(recording).summary_text


def test_a_saved_drive_goes_on_without_what_was_recorded_before(spec, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    journal = data / "session.rec"
    options = ["--speed", "max", "--data", data]
    payloads = [random.Random(lpn).randbytes(UNIT) for lpn in range(60)]
    with Server(spec, tmp_path, *options) as server:
        client = Client(server.path)
        for lpn, payload in enumerate(payloads):
            client.write(lpn * UNIT, payload)
        assert journal.stat().st_size > 60 * UNIT
        saved = server.drive.save()
        assert saved["bytes"] == (data / "checkpoint").stat().st_size < 60 * UNIT
        assert (data / "checkpoint.data").stat().st_size > 60 * UNIT
        assert journal.stat().st_size < 30_000
        client.write(0, b"x" * UNIT)
        before = server.drive.stat()
        server.end()
    refused = nandlab_command("run", journal, status=2)
    assert "goes on from a checkpoint" in refused and "--record" in refused
    words = ["serve", spec, "--socket", tmp_path / "socket" / "s", *options, "--set", "timing.read=70us"]
    refused = nandlab_command(*words, status=2)
    assert "another spec" in refused and "--data" in refused
    with Server(spec, tmp_path, *options) as server:
        client = Client(server.path)
        assert client.read(0, UNIT) == b"x" * UNIT
        for lpn, payload in list(enumerate(payloads))[1:]:
            assert client.read(lpn * UNIT, UNIT) == payload
        found = server.drive.stat()
        assert found["completed"] == before["completed"] + 60
        assert found["host"]["write"] == before["host"]["write"]
        assert "saved at" in nandlab_command("live", "save", "--socket", server.path)
        server.process.kill()
        server.process.communicate()
    with Server(spec, tmp_path, *options) as server:
        assert Client(server.path).read(0, UNIT) == b"x" * UNIT
        assert server.drive.stat()["power_losses"] == 1
        assert "was killed" in server.end()
    with Server(spec, tmp_path, "--speed", "max") as server, pytest.raises(OutputError, match="--data"):
        server.drive.save()


@pytest.mark.parametrize("replay_max", ["1h", "1ms"], ids=["one recording", "checkpoints"])
def test_a_killed_server_loses_no_flushed_write(spec, tmp_path, replay_max):
    """A writer logs completed flushes; after a kill every unit is that of its last flushed write or of a later one.

    With a small bound the drive is saved all the time, so it is killed at any time around a checkpoint."""
    data = tmp_path / "data"
    data.mkdir()
    draw = random.Random(5)
    flushed, newest = {}, {}
    number = 0

    def unit(lpn, number):
        return struct.pack("<QQ", lpn, number) + bytes([number % 251 + 1]) * (UNIT - 16)

    for kill in range(KILLS):
        with Server(spec, tmp_path, "--speed", "max", "--data", data, "--replay-max", replay_max) as server:
            assert server.drive.stat()["power_losses"] == kill
            client = Client(server.path)
            for lpn in newest:
                found = client.read(lpn * UNIT, UNIT)
                version = struct.unpack_from("<Q", found, 8)[0] if any(found) else 0
                assert version == 0 or found == unit(lpn, version)
                assert flushed.get(lpn, 0) <= version <= newest[lpn], f"kill {kill}: LPN {lpn}"
                # What was not flushed may be lost, and then stays lost.
                flushed[lpn] = newest[lpn] = version
            end = time.monotonic() + draw.uniform(0.05, 0.3)
            killer = None
            written = {}
            try:
                while True:
                    lpn, number = draw.randrange(200), number + 1
                    newest[lpn] = number
                    client.write(lpn * UNIT, unit(lpn, number))
                    written[lpn] = number
                    if draw.random() < 0.1:
                        client.flush()
                        flushed |= written
                    if killer is None and time.monotonic() > end:
                        # The server is killed while the writer goes on.
                        killer = subprocess.Popen(["kill", "-9", str(server.process.pid)])
            except OSError:
                pass
            assert killer is not None, server.process.communicate()
            killer.wait()
    assert len(flushed) > 50
    if replay_max == "1ms":
        assert (data / "checkpoint").exists()
    else:
        # All sessions together are one recording.
        result = simulate.replay(data / "session.rec")
        assert len(result.power.losses) == KILLS - 1


def stamped(count):
    """Units with data that does not compress."""
    draw = random.Random(6)
    return [draw.randbytes(UNIT) for _ in range(count)]


def write_until_refused(client, payloads):
    """The number of the units that were flushed before the server ended."""
    done = 0
    with pytest.raises(OSError):
        for lpn, payload in enumerate(payloads):
            client.write(lpn * UNIT, payload)
            client.flush()
            done = lpn + 1
    return done


def test_a_recording_that_cannot_grow_ends_the_server_and_keeps_what_was_flushed(spec, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    options = ["--speed", "max", "--data", data]
    payloads = stamped(100)
    with Server(spec, tmp_path, *options, file_max=300_000) as server:
        done = write_until_refused(Client(server.path), payloads)
        stderr = server.process.communicate(timeout=60)[1]
        assert server.process.returncode == 2
        assert "cannot grow" in stderr and "remedy" in stderr, stderr
    assert 40 < done < 90
    assert (data / "session.rec").stat().st_size <= 300_000
    with Server(spec, tmp_path, *options) as server:
        client = Client(server.path)
        for lpn, payload in enumerate(payloads[:done]):
            assert client.read(lpn * UNIT, UNIT) == payload
        client.write(0, b"x" * UNIT)


def test_a_checkpoint_without_room_is_a_note_and_not_the_end(spec, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    journal = data / "session.rec"
    options = ["--speed", "max", "--data", data]
    payloads = stamped(60)
    with Server(spec, tmp_path, *options) as server:
        client = Client(server.path)
        for lpn, payload in enumerate(payloads[:20]):
            client.write(lpn * UNIT, payload)
        client.flush()
        server.end()
    # The state of the drive takes more room than the recording, and than the data.
    limit = journal.stat().st_size + 15 * UNIT
    with Server(spec, tmp_path, *options, "--replay-max", "0s", file_max=limit) as server:
        done = write_until_refused(Client(server.path), payloads[20:])
        stderr = server.process.communicate(timeout=60)[1]
    assert "note: " in stderr and "the drive is not saved" in stderr and "goes on" in stderr, stderr
    assert "cannot grow" in stderr
    assert sorted(path.name for path in data.iterdir()) == ["checkpoint.data", "session.rec"]
    # With room the drive goes on, and is saved.
    with Server(spec, tmp_path, *options, "--replay-max", "0s") as server:
        client = Client(server.path)
        assert done > 3
        # Of the unit that was refused nothing is known.
        for lpn in range(done + 1, 20):
            assert client.read(lpn * UNIT, UNIT) == payloads[lpn]
        for lpn, payload in enumerate(payloads[20 : 20 + done]):
            assert client.read(lpn * UNIT, UNIT) == payload
        server.end()
    assert sorted(path.name for path in data.iterdir()) == ["checkpoint", "checkpoint.data", "session.rec"]


def test_a_drive_is_saved_before_its_recording_reaches_its_limit(spec, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    options = ["--speed", "max", "--data", data, "--record-limit", "300000", "--sync"]
    payloads = stamped(200)
    with Server(spec, tmp_path, *options) as server:
        client = Client(server.path)
        for lpn, payload in enumerate(payloads):
            client.write(lpn * UNIT, payload)
            client.flush()
        stat = server.drive.stat()
        assert stat["checkpoints"]["count"] > 0 and stat["checkpoints"]["failed"] == 0
        assert stat["checkpoints"]["pause_max_s"] >= stat["checkpoints"]["pause_s"] > 0
        assert "checkpoints" in nandlab_command("live", "stat", "--socket", server.path)
        server.process.kill()
        server.process.communicate()
    with Server(spec, tmp_path, *options) as server:
        client = Client(server.path)
        for lpn, payload in enumerate(payloads):
            assert client.read(lpn * UNIT, UNIT) == payload
    # A recording of the whole session ends the server there.
    with Server(spec, tmp_path, "--record", tmp_path / "whole.rec", "--record-limit", "300000") as server:
        assert write_until_refused(Client(server.path), payloads) < 90
        assert "--record-limit" in server.process.communicate(timeout=60)[1]


def test_a_recording_of_the_whole_session_shows_its_growth(spec, tmp_path):
    recording = tmp_path / "session.rec"
    with Server(spec, tmp_path, "--speed", "max", "--record", recording) as server:
        client = Client(server.path)
        client.write(0, stamped(1)[0])
        before = server.drive.stat()
        client.write(0, stamped(1)[0])
        stat = server.drive.stat()
        assert stat["recording"]["bytes"] > before["recording"]["bytes"] + UNIT
        assert stat["checkpoints"] is None
        shown = nandlab_command("live", "stat", "--socket", server.path)
        assert f"recording  {recording.stat().st_size:,} bytes\n" in shown


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--sync"], "nothing is recorded"),
        (["--replay-max", "1s"], "the drive is not kept"),
        (["--replay-max", "1s", "--record", "x.rec"], "the drive is not kept"),
        (["--replay-max", "soon", "--data", "."], "--replay-max"),
        (["--record-limit", "1GiB"], "nothing is recorded"),
        (["--record", "x.rec", "--data", "."], "holds a recording already"),
        (["--record", "x.rec", "--record-limit", "1"], "64KiB"),
        (["--record", "x.rec", "--record-limit", "much"], "no size"),
        (["--record", "/nonexistent/x.rec"], "cannot be written"),
    ],
)
def test_options_that_mean_nothing_are_refused(spec, tmp_path, options, said):
    assert said in nandlab_command("serve", spec, "--socket", tmp_path / "socket" / "s", *options, status=2)


def test_an_existing_file_is_not_recorded_over(spec, tmp_path):
    path = tmp_path / "mine"
    path.write_text("a file of the user")
    words = ["serve", spec, "--socket", tmp_path / "socket" / "s", "--record", path]
    assert "exists" in nandlab_command(*words, status=2)
    assert path.read_text() == "a file of the user"
    assert not simulate.is_recording(path) and not simulate.is_recording(tmp_path)
    # The server was killed before the recording had its header.
    data = tmp_path / "data"
    data.mkdir()
    (data / "session.rec").write_bytes(b"NANDREC\x01\x00")
    with Server(spec, tmp_path, "--speed", "max", "--data", data) as server:
        Client(server.path).write(0, bytes(UNIT))
        server.end()


@pytest.mark.skipif(shutil.which("fio") is None, reason="not on this machine: fio")
@pytest.mark.parametrize("speed", ["max", "1", "0.3"])
def test_a_session_of_fio_is_played_again(spec, tmp_path, speed):
    recording = tmp_path / "session.rec"
    with Server(spec, tmp_path, "--speed", speed, "--record", recording, "--out", tmp_path / "live") as server:
        command = ["fio", "--name=job", "--ioengine=nbd", f"--uri={server.uri.strip()}", "--rw=randrw", "--bs=4k"]
        command += ["--size=16M", "--io_size=8M", "--iodepth=16", "--verify=crc32c", "--fsync=64"]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=120)
        server.end()
    nandlab_command("run", recording, "--out", tmp_path / "again")
    for file in FILES:
        if (tmp_path / "live" / file).exists() or file != "power.json":
            assert (tmp_path / "again" / file).read_bytes() == (tmp_path / "live" / file).read_bytes(), file
    assert not Path(tmp_path / "again" / "power.json").exists() or (tmp_path / "live" / "power.json").exists()
