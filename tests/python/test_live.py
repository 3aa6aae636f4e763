"""Live drives: the commands, and programs of others as clients.

A client that this machine does not have is skipped by name.
"""

import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from nandlab import _core, live
from nandlab.errors import OutputError
from nandlab.spec import load

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="drives are served on Linux only")

#: 400 MiB for the host; a program takes 300 us, a read 50 us.
SPEC = """\
seed = 1
[drive]
channels = 2
chips_per_channel = 2
dies_per_chip = 1
planes_per_die = 2
pages_per_block = 128
page_size = "4KiB"
cell = "slc"
capacity = "400MiB"
endurance = 1000000
[timing]
read = "50us"
program = "300us"
erase = "1ms"
"""

#: A write cache without a capacitor.
CACHE = ("--set", "cache.size=1MiB", "--set", "cache.dirty_budget=1.0")


def needs(*programs):
    """Skip the test by the names of the programs that are missing."""
    missing = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not on this machine: {', '.join(missing)}")


def can_mount():
    return os.geteuid() == 0 and Path("/dev/fuse").exists() and Path("/dev/loop-control").exists()


needs_root = pytest.mark.skipif(not can_mount(), reason="needs root, /dev/fuse and loop devices")


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "drive.toml"
    path.write_text(SPEC)
    return path


def run(*words, **options):
    """The output of a program, which has to succeed."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{words}: {done.stdout}\n{done.stderr}"
    return done.stdout


def nandlab(*words, status=0):
    """Stdout of the command, or its stderr when it is refused."""
    command = [sys.executable, "-m", "nandlab", *(str(word) for word in words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == status, f"{words}: {done.stdout}\n{done.stderr}"
    return done.stdout if status == 0 else done.stderr


def test_a_drive_is_served_until_it_is_told_to_stop(spec):
    with live.serve(spec) as drive:
        assert drive.uri == f"nbd+unix:///?socket={drive.path}"
        for path in (drive.path, live.orders_path(drive.path)):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        found = drive.stat()
        assert (found["power"], found["speed"], found["server"]["requests"]) == ("on", 1, 0)
        assert "power  on" in nandlab("live", "stat", "--socket", drive.path)
        assert json.loads(nandlab("live", "smart", "--socket", drive.path))
        with pytest.raises(OutputError, match="no capacitor"):
            drive.detect()
        with pytest.raises(OutputError, match="power is on"):
            drive.restore()
        assert drive.cut()["power"] == "off"
        with pytest.raises(OutputError, match="off already"):
            drive.cut()
        assert drive.stat()["power"] == "off"
        # The drive is empty, so recovery takes no time.
        shown = nandlab("live", "cut", "--in-recovery", "1us", "--socket", drive.path)
        assert "recovery had ended before" in shown
        assert drive.cut()["power"] == "off"
        shown = nandlab("live", "restore", "--socket", drive.path)
        assert "covered  0 units" in shown
        with pytest.raises(OutputError, match="follows a cut"):
            drive.cut(in_recovery_s=1e-6)
        assert drive.stop()["power_losses"] == 2
        deadline = time.monotonic() + 30
        while live.orders_path(drive.path).exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        with pytest.raises(OutputError, match="no drive is served"):
            drive.stat()


def test_a_signal_ends_the_server_which_prints_its_results(spec, tmp_path):
    command = [sys.executable, "-m", "nandlab", "serve", spec, "--socket", tmp_path / "own" / "s", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout.readline().startswith("nbd+unix:///?socket=")
        server.send_signal(signal.SIGTERM)
        result = json.loads(server.communicate(timeout=60)[0])
    assert server.returncode == 143
    assert result["server"]["requests"] == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--speed", "0"], "neither max nor a number"),
        (["--speed", "fast"], "neither max nor a number"),
        (["--gather", "4"], "only with --speed max"),
        (["--patience", "1s"], "only with --speed max"),
        (["--speed", "max", "--patience", "5"], "--patience: 5 is no time with a unit"),
        (["--speed", "max", "--gather", "0"], "not from 1"),
        (["--cut-every", "5"], "no time with a unit"),
        (["--cut-every", "1us"], "not from 1 ms"),
        (["--data", "/nonexistent"], "no folder"),
        (["--tcp", "localhost"], "no address and port"),
        (["--tcp", "0.0.0.0:0"], "other machines"),
        (["--socket", "/nonexistent/folder/s"], "no folder"),
        (["--set", "precondition.map_reads=true"], "map_reads"),
    ],
)
def test_wrong_input_is_refused(spec, tmp_path, options, said):
    own = [] if "--socket" in options else ["--socket", tmp_path / "own" / "s"]
    assert said in nandlab("serve", spec, *own, *options, status=2)


def test_a_folder_that_others_may_enter_is_refused(spec, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    assert "open to other users" in nandlab("serve", spec, "--socket", shared / "s", status=2)


def test_orders_that_are_no_orders_do_no_harm(spec):
    with live.serve(spec) as drive:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(str(live.orders_path(drive.path)))
            connection.sendall(b"format\n" + b"x" * 1000 + b"\nstat\n")
            lines = connection.makefile().readline
            assert "unknown order" in json.loads(lines())["error"]
            while "ok" not in (answer := json.loads(lines())):
                assert "unknown order" in answer["error"]
        assert drive.stat()["power"] == "on"


@needs("qemu-io")
def test_qemu_io_loses_what_it_has_not_flushed(spec):
    def io(*commands):
        words = [word for command in commands for word in ("-c", command)]
        # By default qemu-io makes every write FUA.
        return run("qemu-io", "-f", "raw", "-t", "writeback", *words, drive.uri)

    with live.serve(spec, *CACHE, speed="max") as drive:
        io("write -P 1 0 64k", "flush", "write -f -P 2 64k 4k", "write -P 3 100 1000", "discard 1M 64k")
        io("read -P 2 64k 4k", "read -P 3 100 1000", "read -P 1 1100 2k", "read -P 0 1M 64k")
        # Without `abort` qemu-io flushes at its end.
        words = ["qemu-io", "-f", "raw", "-t", "writeback", "-c", "write -P 9 2M 256k", "-c", "abort", drive.uri]
        assert subprocess.run(words, capture_output=True, check=False).returncode == -signal.SIGABRT
        drive.cut()
        loss = drive.restore()
        assert loss["covered"] == []
        lost = {of["offset"] for of in loss["acknowledged"]}
        assert lost <= set(range(2 << 20, (2 << 20) + (256 << 10), 4096))
        assert lost, "no unit was only in the write cache"
        io(
            "read -P 2 64k 4k",
            "read -P 3 100 1000",
            "read -P 1 1100 2k",
            *(f"read -P 0 {at} 4k" for at in sorted(lost)),
        )


@needs("fio")
@pytest.mark.parametrize("depth", [1, 32, 256])
def test_fio_verifies_what_it_writes(spec, tmp_path, depth):
    with live.serve(spec, speed="max") as drive:
        job = ["--name=verify", "--ioengine=nbd", f"--uri={drive.uri}", "--rw=randwrite", "--bsrange=512-32k"]
        more = ["--bs_unaligned=1", "--size=8m", f"--iodepth={depth}", "--verify=crc32c", "--verify_state_save=0"]
        run("fio", *job, *more, cwd=tmp_path)
        found = drive.stat()
    assert found["server"]["failed"] == 0
    assert found["server"]["writes"] > 400
    assert found["server"]["reads"] >= found["server"]["writes"]


def fio_job(drive, tmp_path, kind, depth, number):
    text = run(
        "fio",
        "--name=rate",
        "--ioengine=nbd",
        f"--uri={drive.uri}",
        f"--rw={kind}",
        "--bs=4k",
        f"--iodepth={depth}",
        f"--number_ios={number}",
        "--size=256m",
        "--norandommap",
        f"--write_iolog={tmp_path / 'log'}",
        "--output-format=json",
        cwd=tmp_path,
    )
    return json.loads(text[text.index("{") :])


@needs("fio")
@pytest.mark.parametrize("kind", ["randread", "randwrite"])
@pytest.mark.parametrize("depth", [1, 32, 256])
def test_at_full_speed_a_drive_is_as_fast_as_in_a_run(spec, tmp_path, kind, depth):
    number = {1: 1000, 32: 8000, 256: 16000}[depth]
    filled = ["--set", "precondition.used=0.9", "--set", "precondition.valid=1.0"]
    op = kind.removeprefix("rand")
    for _ in range(5):
        spec.write_text(SPEC)
        with live.serve(spec, *filled, "--patience", "100ms", speed="max") as drive:
            fio_job(drive, tmp_path, kind, depth, number)
            served = drive.stat()
        assert served["host"][op]["count"] >= number
        # The run plays the requests of fio.
        workload = f'trace = "log"\nformat = "fio-iolog"\narrival = {{ queue_depth = {depth} }}'
        spec.write_text(f"{SPEC}[workload]\n{workload}\n")
        ran = json.loads(nandlab("run", spec, *filled, "--out", tmp_path / "out", "--json"))
        of_both = [(of["iops"], of["latency_us"][op]["p50"]) for of in (served, ran)]
        if of_both[0] == pytest.approx(of_both[1], rel=0.05):
            return
    # The drive sees a lower depth when the machine lets fio wait for longer than the server's patience.
    if os.getloadavg()[0] > os.cpu_count():
        pytest.skip(f"the machine is too busy: {of_both}")
    pytest.fail(f"IOPS and p50 served, and in the run: {of_both}")


@needs("qemu-io", "qemu-img")
def test_the_estimate_of_memory_is_that_of_a_served_drive(tmp_path):
    """Every unit is written once more, with zeros, which have versions and no data."""
    spec = tmp_path / "drive.toml"
    spec.write_text("[drive]\nblocks_per_plane = 1024\n[precondition]\nused = 0.9\nvalid = 0.9\n")
    needed = _core.memory_needed(load(spec), serve=True)[0]
    assert needed > 2 * _core.memory_needed(load(spec))[0]
    # 8,192 records each of operations, of the times for which they hold a die, alone and summed, and of their order.
    explained = _core.memory_needed(load(spec), serve=True, explain=True)[0]
    assert 8192 * (168 + 64 + 64 + 8) < explained - needed < 3 << 20
    with live.serve(spec, "--gather", "32", speed="max") as drive:
        info = json.loads(run("qemu-img", "info", "-f", "raw", "--output=json", drive.uri))
        step = 64 << 20
        starts = range(0, info["virtual-size"] - step, step)
        writes = [word for at in starts for word in ("-c", f"write -z {at} {step}")]
        run("qemu-io", "-f", "raw", *writes, drive.uri)
        drive.cut()
        drive.restore()
        status = Path(f"/proc/{drive.pid}/status").read_text()
        found = int(status.split("VmHWM:")[1].split()[0]) * 1024
    # An empty process has about 50 MB. The estimate has room for data in each unit of flash.
    assert needed / 3 < found - 50e6 < needed


@needs("nbdcopy")
def test_nbdcopy_copies_there_and_back(spec, tmp_path):
    image, back = tmp_path / "image", tmp_path / "back"
    image.write_bytes(os.urandom(3 << 20) + bytes(2 << 20) + os.urandom((1 << 20) + 512))
    with live.serve(spec, speed="max") as drive:
        run("nbdcopy", image, drive.uri)
        run("nbdcopy", drive.uri, back)
        holes = drive.stat()["server"]["statuses"]
    assert back.read_bytes()[: image.stat().st_size] == image.read_bytes()
    assert holes > 0


@needs("qemu-img")
def test_qemu_img_sees_holes_and_converts(spec, tmp_path):
    with live.serve(spec, speed="max") as drive:
        run("qemu-io", "-f", "raw", "-c", "write -P 5 1M 1M", drive.uri)
        extents = json.loads(run("qemu-img", "map", "-f", "raw", "--output=json", drive.uri))
        assert [(of["start"], of["length"]) for of in extents if of["data"]] == [(1 << 20, 1 << 20)]
        run("qemu-img", "convert", "-f", "raw", "-O", "qcow2", drive.uri, tmp_path / "copy.qcow2")
        assert "identical" in run("qemu-img", "compare", "-f", "raw", "-F", "qcow2", drive.uri, tmp_path / "copy.qcow2")


def has_libnbd():
    python = Path("/usr/bin/python3")
    return (
        python.exists()
        and subprocess.run([python, "-c", "import nbd"], capture_output=True, check=False).returncode == 0
    )


@pytest.mark.skipif(not has_libnbd(), reason="not on this machine: python3-libnbd")
def test_libnbd_writes_zeros_and_trims_durably(spec):
    script = """
import sys, nbd
h = nbd.NBD()
h.connect_uri(sys.argv[1])
h.pwrite(b"a" * 16384, 0)
h.flush()
h.zero(8192, 2048, nbd.CMD_FLAG_FUA)
h.trim(4096, 12288, nbd.CMD_FLAG_FUA)
h.pwrite(b"b" * 100, 12345)
assert h.pread(16384, 0) == b"a" * 2048 + bytes(8192) + b"a" * 2048 + bytes(57) + b"b" * 100 + bytes(3939)
"""
    with live.serve(spec, *CACHE, speed="max") as drive:
        run("/usr/bin/python3", "-c", script, drive.uri)
        drive.cut()
        loss = drive.restore()
        assert loss["covered"] == []
        check = "import sys, nbd; h = nbd.NBD(); h.connect_uri(sys.argv[1]); sys.stdout.write(h.pread(12288, 0).hex())"
        found = bytes.fromhex(run("/usr/bin/python3", "-c", check, drive.uri))
    assert found == b"a" * 2048 + bytes(8192) + b"a" * 2048


@contextmanager
def mounted(drive, tmp_path, kind="ext4", make=()):
    place = tmp_path / "mnt"
    place.mkdir(exist_ok=True)
    drive.mount(place, kind, make=make)
    try:
        yield place
    finally:
        drive.unmount()


@needs_root
@needs("nbdfuse", "losetup")
@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
def test_a_file_system_keeps_what_was_synced_over_a_power_loss(spec, tmp_path, kind):
    if shutil.which(f"mkfs.{kind}") is None:
        pytest.skip(f"not on this machine: mkfs.{kind}")
    with live.serve(spec, speed="max") as drive:
        synced = {}
        with mounted(drive, tmp_path, kind) as place:
            for number in range(20):
                data = os.urandom(50_000)
                with (place / f"f{number}").open("wb") as file:
                    file.write(data)
                    if number < 15:
                        file.flush()
                        os.fsync(file.fileno())
                        synced[f"f{number}"] = data
            descriptor = os.open(place, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
            drive.cut()
        assert drive.restore()["covered"] == []
        with mounted(drive, tmp_path, kind) as place:
            for name, data in synced.items():
                assert (place / name).read_bytes() == data, name


@needs_root
@needs("nbdfuse", "losetup", "mkfs.ext4")
def test_sqlite_keeps_committed_transactions_over_a_power_loss(spec, tmp_path):
    with live.serve(spec, speed="max") as drive:
        with mounted(drive, tmp_path) as place:
            base = sqlite3.connect(place / "data.db", isolation_level=None)
            # With FULL the removal of the journal, which commits, is not synced: the last transaction is lost.
            base.execute("PRAGMA synchronous=EXTRA")
            base.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, text TEXT)")
            for number in range(100):
                base.execute("INSERT INTO t VALUES (?, ?)", (number, "x" * 500))
            drive.cut()
            base.close()
        drive.restore()
        with mounted(drive, tmp_path) as place:
            base = sqlite3.connect(place / "data.db")
            assert base.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert base.execute("SELECT count(*) FROM t").fetchone() == (100,)
            base.close()


def postgres(*words):
    """A program of PostgreSQL, as its user."""
    folder = max(Path("/usr/lib/postgresql").glob("*/bin"))
    user = "--reuid=postgres", "--regid=postgres", "--clear-groups"
    return run("setpriv", *user, folder / words[0], *words[1:], cwd="/")


@needs_root
@needs("nbdfuse", "losetup", "mkfs.ext4", "setpriv", "pg_ctlcluster")
def test_pgbench_runs_and_postgresql_recovers(spec, tmp_path):
    with live.serve(spec, speed="max") as drive:
        for path in [tmp_path, *tmp_path.parents[:-2]]:
            path.chmod(path.stat().st_mode | 0o011)
        settings = "-c listen_addresses='' -c unix_socket_directories="
        with mounted(drive, tmp_path) as place:
            data = place / "pg"
            data.mkdir()
            shutil.chown(data, "postgres", "postgres")
            postgres("initdb", "-D", data, "-A", "trust")
            postgres("pg_ctl", "-D", data, "-w", "-l", data / "log", "-o", f"{settings}{data}", "start")
            postgres("pgbench", "-h", data, "-i", "-q", "-s", "1", "postgres")
            shown = postgres("pgbench", "-h", data, "-c", "4", "-t", "10", "postgres")
            assert "40/40" in shown
            drive.cut()
            pid = int((data / "postmaster.pid").read_text().split()[0])
            os.kill(pid, signal.SIGKILL)
            time.sleep(0.5)
        assert drive.restore()["covered"] == []
        with mounted(drive, tmp_path) as place:
            data = place / "pg"
            # The machine has not been restarted with the drive, so the process that these name may still count as one.
            for lock in ["postmaster.pid", ".s.PGSQL.5432.lock"]:
                (data / lock).unlink(missing_ok=True)
            log = tmp_path / "log"  # not on the drive, so that a failure shows it
            log.touch()
            shutil.chown(log, "postgres", "postgres")
            try:
                postgres("pg_ctl", "-D", data, "-w", "-l", log, "-o", f"{settings}{data}", "start")
            except AssertionError as failure:
                failure.add_note(log.read_text())
                raise
            rows = postgres("psql", "-h", data, "-At", "-c", "SELECT count(*) FROM pgbench_history", "postgres")
            assert re.fullmatch(r"40\s*", rows)
            postgres("pg_ctl", "-D", data, "-m", "fast", "stop")
