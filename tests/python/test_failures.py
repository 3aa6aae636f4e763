"""Failed requests and their reasons, drives that never come to rest or cannot be saved, and the summary of space."""

import io
import subprocess
import sys
from collections import Counter

import pytest

DRIVE = """\
seed = 1
[drive]
channels = 1
chips_per_channel = 1
dies_per_chip = 1
planes_per_die = 1
blocks_per_plane = 48
pages_per_block = 16
page_size = "4KiB"
"""
#: The drive wears out long before its 30,000 requests are completed.
WORN = (
    DRIVE
    + """\
op = 0.5
endurance = 20
[precondition]
used = 0.6
valid = 1.0
[workload]
synthetic = { requests = 30_000, read_fraction = 0.0, size = "4KiB", address = "uniform" }
arrival = { queue_depth = 8 }
[output]
requests = true
"""
)
#: A day of the scaled clock is 9 ms of simulated time; no drive can refresh its blocks that fast.
RESTLESS = (
    DRIVE
    + """\
op = 0.5
[reliability]
clock_scale = 1e7
[refresh]
policy = "fcr"
interval = [{ pe = 10_000, every = "1d" }]
[precondition]
used = 0.6
valid = 0.9
[workload]
synthetic = { requests = 3000, read_fraction = 0.5, size = "4KiB" }
arrival = { queue_depth = 2 }
"""
)
CACHED = (
    DRIVE
    + """\
op = 0.5
[cache]
size = "64KiB"
sync = "none"
"""
)
#: The drive has little spare space.
TIGHT = (
    DRIVE
    + """\
op = 0.07
[precondition]
used = 0.9
valid = 1.0
[workload]
synthetic = { requests = 3000, read_fraction = %s, size = "4KiB" }
arrival = { queue_depth = 2 }
"""
)


def shown(result, tmp_path):
    """The screen output of a result, in lines of up to 1000 characters, and its report."""
    import nandlab
    from nandlab.console import Console
    from nandlab.screen import show_run

    screen = io.StringIO()
    console = Console(screen, width=1000)
    show_run(result, console)
    return screen.getvalue(), nandlab.report(result, tmp_path / "r.html").read_text()


@pytest.mark.parametrize("victim", ["greedy", "fifo"])
def test_a_worn_out_drive_is_reported(victim, tmp_path):
    """The failed writes were counted as media errors, and SMART reported that spare blocks were left."""
    import nandlab

    result = nandlab.run(WORN, sets={"gc.victim": victim})
    summary, smart = result.summary, result.smart["nvme_smart_log"]
    failed = summary.requests_failed
    assert dict(failed) == {"uncorrectable": 0, "worn_out": failed.worn_out, "power_lost": 0}
    assert 0 < failed.worn_out < 30_000 == summary.requests and summary.complete
    assert Counter(result.requests["failed"].to_list()) == {
        0: summary.host.write.count,
        2: failed.worn_out,
    }
    assert smart["avail_spare"] == 0 and smart["critical_warning"] & 1
    assert smart["num_err_log_entries"] == failed.worn_out
    screen, page = shown(result, tmp_path)
    text = f"{failed['worn_out']:,} requests failed: the drive has worn out"
    assert text in screen and text in page
    assert "drive.endurance = 20" in screen and "read level" not in screen
    assert "requests failed: drive worn out" in page


def test_a_completion_has_the_reason_of_its_failure():
    import nandlab

    drive = nandlab.Drive(nandlab.load(WORN))
    done = []
    while not any(completion.failed for completion in done):
        for page in range(256):
            drive.write(page * 4096, 4096)
        drive.run_until_idle()
        done = drive.completions()
    assert {completion.reason for completion in done} <= {None, "worn_out"}
    assert all(completion.failed == (completion.reason is not None) for completion in done)
    # The data on the worn-out drive can still be read.
    drive.read(0, 4096)
    drive.run_until_idle()
    (read,) = drive.completions()
    assert read.reason is None and not read.failed


def test_data_that_no_read_level_decodes_is_reported(tmp_path):
    import nandlab

    spec = """
[drive]
preset = "laldpc-32g"
blocks_per_plane = 32
pages_per_block = 64
op = 0.4
[reliability]
pe_cycles = 14_000
retention = "1825d"
[precondition]
used = 0.6
valid = 1.0
[workload]
synthetic = { requests = 500, read_fraction = 0.9, size = "4KiB" }
arrival = { queue_depth = 4 }
[output]
requests = true
"""
    result = nandlab.run(spec)
    failed = result.summary.requests_failed
    assert dict(failed) == {"uncorrectable": failed.uncorrectable, "worn_out": 0, "power_lost": 0}
    assert result.requests["failed"].to_list().count(1) == failed.uncorrectable > 0
    screen, page = shown(result, tmp_path)
    for text in (
        f"{failed['uncorrectable']} requests failed: no read level decodes their data.",
        "reliability.pe_cycles",
    ):
        assert text in screen and text in page
    assert "worn out" not in screen and "requests failed: uncorrectable" in page


def test_a_drive_that_never_comes_to_rest_gives_an_error():
    """`run_until_idle` never returned."""
    import nandlab

    spec = nandlab.load(RESTLESS)
    drive = nandlab.Drive(spec)
    drive.write(0, 4096)
    with pytest.raises(nandlab.RunError) as caught:
        drive.run_until_idle(limit_s=0.5)
    text = str(caught.value)
    assert "after 0.5 s of simulated time the drive is not at rest" in text
    assert "refresh cannot keep up" in text and spec.hash in text and "remedy: a larger limit_s" in text
    assert drive.now_ns <= 500_000_000
    # The drive can still be used.
    (write,) = drive.completions()
    assert not write.failed
    drive.advance(drive.now_ns + 10_000_000)
    drive.audit()
    with pytest.raises(ValueError, match="limit_s"):
        drive.run_until_idle(limit_s=-1.0)


def test_refresh_that_cannot_keep_up_is_reported(tmp_path):
    import nandlab

    result = nandlab.run(RESTLESS)
    refresh = result.summary.refresh
    assert refresh.load > 10 and refresh.late_blocks > 0 and refresh.overdue_blocks > 0
    screen, page = shown(result, tmp_path)
    assert f"Refresh cannot keep up: {refresh['load']:,.0f} x" in screen and "Refresh cannot keep up" in page
    assert "blocks overdue by more than their grace at the end" in page
    calm = nandlab.run(RESTLESS, sets={"reliability.clock_scale": 1.0}).summary.refresh
    assert calm.load is None and calm.overdue_blocks == 0


def test_ctrl_c_interrupts_advance_and_run_until_idle():
    """Ctrl-C did not interrupt `advance` and `run_until_idle`."""
    # The same load on a slower clock, whose end is out of reach.
    spec = RESTLESS.replace("clock_scale = 1e7", "clock_scale = 1e5").replace('"1d"', '"864s"')
    program = f"""
import signal, time
import nandlab
drive = nandlab.Drive(nandlab.load({spec!r}))
signal.signal(signal.SIGALRM, signal.default_int_handler)
for simulate in (lambda: drive.advance(2 * 10**13), lambda: drive.run_until_idle(limit_s=1e6)):
    drive.write(0, 4096)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    began = time.monotonic()
    try:
        simulate()
    except KeyboardInterrupt:
        assert time.monotonic() - began < 10
        drive.advance(drive.now_ns + 1_000_000)
        drive.audit()
        print("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "interrupted\n" * 2


def test_a_drive_with_a_dirty_write_cache_is_not_saved(tmp_path):
    """`save` panicked."""
    import nandlab

    path = tmp_path / "a.drive"
    path.write_bytes(b"an earlier one")
    drive = nandlab.Drive(nandlab.load(CACHED))
    for page in range(3):
        drive.write(page * 4096, 4096)
    with pytest.raises(
        nandlab.RunError, match=r"^3 requests are outstanding\n  remedy: call run_until_idle\(\) before"
    ):
        drive.save(path)
    drive.run_until_idle()
    assert drive.cache_pages.dirty == 3
    with pytest.raises(nandlab.RunError) as caught:
        drive.save(path)
    assert str(caught.value).startswith(
        "the write cache has 3 dirty units\n  remedy: call flush() and run_until_idle() before save();"
    )
    assert path.read_bytes() == b"an earlier one" and [entry.name for entry in tmp_path.iterdir()] == ["a.drive"]
    drive.flush()
    drive.run_until_idle()
    drive.save(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.drive"]
    again = nandlab.Drive(nandlab.load(CACHED, sets={"precondition.load": str(path)}))
    assert again.summary().mapped_pages == drive.summary().mapped_pages == 3


def test_a_drive_with_operations_under_way_is_not_saved(tmp_path):
    import nandlab

    drive = nandlab.Drive(nandlab.load(RESTLESS))
    drive.write(0, 4096)
    with pytest.raises(nandlab.RunError):
        drive.run_until_idle(limit_s=0.5)
    with pytest.raises(
        nandlab.RunError, match=r"^operations are under way\n  remedy: call run_until_idle\(\) before save"
    ):
        drive.save(tmp_path / "a.drive")
    assert not list(tmp_path.iterdir())
    with pytest.raises(nandlab.OutputError, match="create the directory first"):
        nandlab.Drive(nandlab.load(CACHED)).save(tmp_path / "none" / "a.drive")


def test_the_summary_shows_the_use_of_the_spare_space(tmp_path):
    import nandlab

    summary = nandlab.run(TIGHT % 0.0).summary
    space, needs = summary.space, summary.space.needs
    assert set(needs.by.keys()) == {"gc", "wear", "mapping", "copyback", "combination", "flush", "slc"}
    assert needs.open_blocks == sum(need.open for need in dict(needs.by).values())
    assert needs.free_blocks == sum(need.free for need in dict(needs.by).values())
    valid = int(48 * 16 / 1.07)
    usable = (48 - needs.open_blocks - needs.free_blocks) * 16
    assert space.spare_share == pytest.approx(usable / valid - 1)
    # With y, the share of a victim that is garbage, and WAF = 1 / y, FIFO obeys 1 - y = e^(-a y).
    waf, a = space.waf_uniform_fifo, 1 + space.spare_share
    assert 1 - 1 / waf == pytest.approx(2.718281828459045 ** (-a / waf), rel=1e-9)
    # `op_for_waf_5` is the smallest multiple of 0.001 with a WAF of at most 5.
    for op, is_enough in ((space.op_for_waf_5, True), (round(space.op_for_waf_5 - 0.001, 3), False)):
        found = nandlab.Drive(nandlab.load(TIGHT % 0.0, sets={"drive.op": op, "precondition.used": 0.5})).summary()
        assert (found.space.waf_uniform_fifo <= 5) == is_enough


def test_little_spare_space_is_reported_for_workloads_with_writes(tmp_path):
    import nandlab

    result = nandlab.run(TIGHT % 0.0)
    screen, page = shown(result, tmp_path)
    space = result.summary.space
    assert f"drive.op = 0.07 leaves an effective over-provisioning of {100 * space['spare_share']:.1f} %" in screen
    assert f"drive.op = {space['op_for_waf_5']}, for an amplification of 5." in screen
    assert "niform random writes" in page
    assert "over-provisioning of" not in shown(nandlab.run(TIGHT % 1.0), tmp_path)[0]
    assert (
        "over-provisioning of"
        not in shown(nandlab.run(TIGHT % 0.0, sets={"drive.op": 0.2, "precondition.used": 0.8}), tmp_path)[0]
    )


def test_forced_victims_are_reported():
    import nandlab

    spec = TIGHT.replace("op = 0.07", 'op = 0.17\n[ftl]\nmap.demand.cache = "512B"\n[gc]\nvictim = "fifo"') % 0.1
    result = nandlab.run(spec, sets={"precondition.used": 0.8, "workload.synthetic.requests": 20_000})
    assert 0 < result.summary.counters.gc_victims_forced < result.summary.gc.victims
    counters = result.summary.counters
    (note,) = [note for note in result.summary.notes if note.code == "forced-victims"]
    assert note.severity == "warning"
    assert note.text.startswith(
        f"GC took the block with the fewest valid pages in {counters['gc_victims_forced']:,} of "
        f"{counters['gc_victims']:,} victims, whatever gc.victim"
    )
    greedy = nandlab.run(spec, sets={"precondition.used": 0.8, "gc.victim": "greedy"})
    assert all(note.code != "forced-victims" for note in greedy.summary.notes)


def test_ctrl_c_interrupts_long_calls(tmp_path):
    """Ctrl-C did not interrupt making, saving and auditing a drive, cutting its power, and the trace functions."""
    spec = tmp_path / "spec.toml"
    spec.write_text(
        "[drive]\nblocks_per_plane = 8192\nop = 0.2\n[capacitor]\ncapacitance = '1F'\n"
        "[precondition]\nused = 0.9\nvalid = 0.8\n[workload]\nsynthetic = { requests = 1 }\n"
    )
    saved, converted = tmp_path / "a.drive", tmp_path / "a.csv"
    program = f"""
import os, signal, threading
import nandlab
# Modules that are loaded on first use: an interrupted import of NumPy cannot be repeated.
nandlab.Drive, nandlab.trace.stat
spec = nandlab.load({str(spec)!r})
def interrupted(what, work):
    threading.Timer(0.03, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        while True:
            work()
    except KeyboardInterrupt:
        print(what)
interrupted("made", lambda: nandlab.Drive(spec))
drive = nandlab.Drive(spec)
interrupted("saved", lambda: drive.save({str(saved)!r}))
interrupted("cut", drive.cut_power)
interrupted("audited", drive.audit)
drive.audit()
assert drive.now_ns > 0
of = dict(profile="msr/hm_0")
interrupted("read", lambda: nandlab.trace.stat(**of))
interrupted("converted", lambda: nandlab.trace.convert(None, {str(converted)!r}, to="msr", drop=True, **of))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["made", "saved", "cut", "audited", "read", "converted"]
    # No partial file is left.
    assert {entry.name for entry in tmp_path.iterdir()} <= {"spec.toml", "a.drive"}


def test_a_time_beyond_the_age_clock_is_refused():
    import nandlab

    drive = nandlab.Drive(nandlab.load(RESTLESS))
    with pytest.raises(
        nandlab.RunError, match=r"cannot advance to 10000000000000000 ns: the age clock ends .* after 3 min 34 s"
    ):
        drive.advance(10**16)
    # The refused call has not advanced the drive, and the drive can still be advanced.
    drive.advance(1000)
    assert drive.now_ns == 1000
