"""A run that does not fit into memory is refused, and the estimate of its memory equals the memory that it takes."""

import json
import os
import subprocess
import sys

import bench
import nandlab
import pytest
from nandlab import _core, memory

MIB = 1 << 20

#: Runs a spec; prints the estimate of its memory, and the growth of the peak memory of the process during the run.
CHILD = """
import json, sys
import nandlab, polars
from nandlab import _core
def most():
    # Not getrusage(): its peak also counts the memory of the parent process, from before exec().
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) * 1024
base = most()
spec, verify = nandlab.load(sys.argv[1]), sys.argv[2] == "verify"
needed = _core.memory_needed(spec, verify)[0]
nandlab.run(spec, sys.argv[1] + ".out", verify=verify)
print(json.dumps([needed, most() - base]))
"""

FILLED = "[precondition]\nused = 0.9\nvalid = 0.8\n"

SPECS = {
    "map": ("[drive]\nblocks_per_plane = 16384\n" + FILLED, "plain"),
    "map, verified": ("[drive]\nblocks_per_plane = 4096\n" + FILLED, "verify"),
    "nothing written before": ("[drive]\nblocks_per_plane = 32768\n", "plain"),
    "demand map": (
        "[drive]\nblocks_per_plane = 12288\nop = 0.15\n[ftl]\nmap.demand = { cache = '8MiB' }\n" + FILLED,
        "plain",
    ),
    "power loss": (
        "[drive]\nblocks_per_plane = 8192\nop = 0.2\n[cache]\nsize = '16MiB'\n[capacitor]\ncapacitance = '1F'\n"
        "[power]\ncut_after_requests = 20000\n" + FILLED,
        "plain",
    ),
    "partial refresh": (
        "[drive]\nblocks_per_plane = 8192\nop = 0.3\n[ecc]\nlevels = 'laldpc'\n[reliability]\nrber = 'vth'\n"
        "[refresh]\npolicy = 'partial'\n" + FILLED,
        "plain",
    ),
    "requests": ("[output]\nrequests = true\n", "plain"),
    "one plane": (
        "[drive]\nchannels = 1\nchips_per_channel = 1\nplanes_per_die = 1\nblocks_per_plane = 524288\nop = 0.2\n"
        + FILLED,
        "plain",
    ),
}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("name", SPECS)
def test_a_run_takes_the_estimated_memory(name, tmp_path):
    text, verify = SPECS[name]
    file = tmp_path / "spec.toml"
    requests = 3_000_000 if name == "requests" else 40_000
    file.write_text(f"{text}[workload]\nsynthetic = {{ requests = {requests} }}\n")
    # A drive that is loaded from a file of an earlier run takes less than one that is preconditioned.
    env = os.environ | {"NANDLAB_CACHE": "off"}
    argv = [sys.executable, "-c", CHILD, file, verify]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)
    needed, taken = json.loads(done.stdout.splitlines()[-1])
    assert taken > 240 * MIB, "the run is too small to check the estimate"
    assert needed == pytest.approx(taken, rel=0.15), f"{needed / MIB:.0f} MiB needed, {taken / MIB:.0f} MiB taken"


def load(tmp_path, text):
    file = tmp_path / "spec.toml"
    file.write_text(text + "[workload]\nsynthetic = { requests = 1000 }\n")
    return nandlab.load(file)


def test_a_run_without_enough_memory_is_refused_with_the_limit_and_a_key(tmp_path, monkeypatch):
    spec = load(tmp_path, "[drive]\nblocks_per_plane = 16384\n" + FILLED)
    limits = {"/proc/meminfo": {"MemAvailable": 200 * MIB}, "/proc/self/status": {"VmSize": 0, "VmData": 0}}
    monkeypatch.setattr(memory, "_table", lambda path: limits[str(path)])
    for refused in (lambda: nandlab.run(spec), lambda: nandlab.Drive(spec)):
        with pytest.raises(nandlab.RunError) as error:
            refused()
        text = str(error.value)
        assert "200 MiB are available: the machine's free memory" in text
        assert "drive.blocks_per_plane" in text
        assert len(text.splitlines()) == 2
    # With --verify the oracle takes most of the memory.
    with pytest.raises(nandlab.RunError, match="leave out --verify"):
        nandlab.run(spec, verify=True)
    small = load(tmp_path, "[drive]\nblocks_per_plane = 64\n")
    nandlab.run(small)


def test_the_limit_of_a_control_group_is_observed(tmp_path, monkeypatch):
    group = tmp_path / "limit"
    spec = load(tmp_path, "[drive]\nblocks_per_plane = 16384\n" + FILLED)
    monkeypatch.setattr(memory, "_control_groups", lambda: iter([(group, 100 * MIB)]))
    with pytest.raises(nandlab.RunError, match="control group"):
        memory.check(spec)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of address space are Linux's")
def test_a_limited_process_is_refused_and_not_aborted(tmp_path):
    file = tmp_path / "spec.toml"
    file.write_text("[drive]\nblocks_per_plane = 131072\nop = 0.2\n[workload]\nsynthetic = { requests = 1000 }\n")
    command = f"ulimit -v 2500000; exec {sys.executable} -m nandlab run {file} --out {tmp_path / 'out'}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "the limit of the process (ulimit -v)" in done.stderr
    assert "remedy" in done.stderr


def test_the_estimate_does_not_overflow(tmp_path):
    spec = load(
        tmp_path,
        "[drive]\nchannels = 64\nchips_per_channel = 64\nblocks_per_plane = 8191\nplanes_per_die = 2\nop = 0.2\n"
        "[output]\nrequests = true\ntimeline_operations = 9000000000000000000\n",
    )
    needed, reserved, remedy = _core.memory_needed(spec, True)
    assert 2**33 < needed <= reserved < 2**64
    assert remedy


#: Runs a small spec, so that all modules are loaded and warm, then another one; prints the growth of the peak memory.
LEAN = """
import sys
import nandlab
import nandlab.cli.run
def most():
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) * 1024
small = "[drive]\\nblocks_per_plane = 64\\n[workload]\\n"
nandlab.run(small + "synthetic = { requests = 100, size = '4KiB', address = 'uniform' }\\n", "small")
base = most()
nandlab.run(sys.argv[1], "large")
print(most() - base)
"""

#: The drive of tools/bench.py, filled, without a series.
LEAN_SPEC = (
    bench.SPEC.partition("[timing]")[0]
    + """\
[precondition]
used = 0.9
valid = 0.9
[workload]
trace = "w.trace"
format = "mqsim"
arrival = { queue_depth = 8 }
[output]
series_rows = 1
"""
)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("cache", ["off", "traces"])
def test_a_run_without_a_series_takes_at_most_10_mib_beside_the_drive_and_the_interpreter(tmp_path, cache):
    pages = bench.RAW_PAGES
    lines = (f"{1000 * n} 0 {n * 2654435761 % 900_000 * 8} 8 {n % 2}\n" for n in range(300_000))
    (tmp_path / "w.trace").write_text("".join(lines))
    (tmp_path / "large.toml").write_text(LEAN_SPEC)
    folder = cache if cache == "off" else str(tmp_path / cache)
    done = None
    for _ in range(2):  # the second run with a folder has the requests that the first one has kept
        done = subprocess.run(
            [sys.executable, "-c", LEAN, "large.toml"],
            cwd=tmp_path,
            env={**os.environ, "NANDLAB_CACHE": folder},
            capture_output=True,
            text=True,
            check=True,
        )
    # By page: four bytes each of the map and of the OOB, and a bit for a valid page; 64 bytes for each block.
    drive = pages * (4 + 4 + 1 / 8) + pages / 256 * 64
    assert int(done.stdout) <= drive + 10 * MIB
