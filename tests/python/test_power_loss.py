"""Power loss and the capacitor in the files, on the screen, in the report, and in the class `Drive`."""

import io
import json
import sys
from pathlib import Path

import forks
import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/power-loss.toml"

#: 64 pages of write cache on two dies; power fails after 400 of 800 requests.
SPEC = """\
seed = 3
[drive]
channels = 2
chips_per_channel = 1
blocks_per_plane = 64
pages_per_block = 32
page_size = "4KiB"
cell = "mlc"
op = 0.5
[timing]
program = "300us"
[cache]
size = "256KiB"
sync = "smart"
dirty_budget = 0.5
[capacitor]
controller_power = "20mW"
program_power = "80mW"
recharge = "10ms"
[power]
cut_after_requests = 400
[precondition]
used = 0.5
valid = 1.0
[workload]
synthetic = { requests = 800, read_fraction = 0.2, size = "4KiB", address = "uniform" }
arrival = { iops = 2000 }
[output]
requests = true
"""
CHARGED = {"capacitor.capacitance": "1mF"}


def screen_of(result, tmp_path):
    """The screen output of a result, in lines of up to 1000 characters."""
    from nandlab.console import Console
    from nandlab.screen import show_run

    screen = io.StringIO()
    console = Console(screen, width=1000)
    show_run(result, console)
    return screen.getvalue()


def test_the_example_loses_no_acknowledged_write(tmp_path):
    done = forks.run(
        [sys.executable, "-m", "nandlab", "run", str(EXAMPLE), "--verify", "--out", "r"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    screen = " ".join(done.stdout.split())
    assert "0 covered by a completed flush or FUA, 0 acknowledged only" in screen
    assert "No fsync broke: every write covered by a completed flush or FUA reads back." in screen
    import nandlab

    page = nandlab.report(tmp_path / "r").read_text()
    for text in (
        ">Power loss</h2>",
        ">Capacitor</h2>",
        "Detections of the dirty page budget",
        "scaled clock, years",
    ):
        assert text in page, text
    result = nandlab.RunResult.read(tmp_path / "r")
    power, capacitor = result.summary.power, result.summary.capacitor
    assert power.losses == 1
    assert power.lost_pages == 0
    # The unflushed pages that the emergency flush did not write were being programmed: at most one on each of the 16
    # dies.
    assert 5000 < power.flushed_pages <= power.unflushed_pages <= power.flushed_pages + 16
    assert capacitor.detections.count == len(result.power.detections) >= 5
    budgets = [found.budget_pages for found in result.power.detections]
    assert budgets == sorted(budgets, reverse=True), "the capacitor ages, so the budget shrinks"
    series = result.series
    assert (series["cache_dirty_pages"] <= series["capacitor_pages"]).all(), (
        "more dirty pages than the capacitor can save"
    )
    assert series["capacitor_pages"][0] > series["capacitor_pages"][-1]


def test_files_screen_and_report_name_the_lost_writes(tmp_path):
    import nandlab

    result = nandlab.run(SPEC, tmp_path / "r", verify=True)
    power, (loss,) = result.summary.power, result.power.losses
    assert power.lost_writes == power.lost_pages + power.lost_with_wordline > 0
    lists = (loss.covered, loss.acknowledged, loss.in_flight)
    assert tuple(map(len, lists)) == (power.lost_covered, power.lost_acknowledged, power.lost_in_flight)
    assert power.lost_covered + power.lost_acknowledged == power.lost_writes + power.lost_trims
    promised = [write for write in loss.covered + loss.acknowledged if not write.is_trim]
    assert sum(not write.was_in_flash for write in promised) == power.lost_pages
    assert sum(write.was_in_flash for write in promised) == power.lost_with_wordline
    assert all(write.offset == write.lpn * 4096 for write in promised)
    assert (power.lost_covered, power.lost_acknowledged > 20) == (0, True), "the workload has no flush"
    assert json.loads((tmp_path / "r/power.json").read_text()) == json.loads(result.power_text)
    assert nandlab.RunResult.read(tmp_path / "r").power == result.power
    assert result.summary.capacitor is None
    log = result.smart["nvme_smart_log"] | result.smart["ocp_smart_log"]
    wanted = {"unsafe_shutdowns": 1, "power_cycles": 2, "IncompleteShutdownCount": 1, "PLPStartCount": 0}
    assert {name: log[name] for name in wanted} == wanted
    screen, page = screen_of(result, tmp_path), nandlab.report(result, tmp_path / "r.html").read_text()
    for text in (screen, page):
        assert f"Power loss destroyed {power['lost_writes']} acknowledged writes, none of them covered" in text
        assert "No fsync broke" in " ".join(text.split())
        assert "set capacitor.capacitance" in text
    assert "Lost writes" in page
    rest = power.lost_acknowledged + power.lost_in_flight - 20
    assert f"{rest} more are in power.json" in page
    assert not any(note.severity == "error" for note in result.summary.notes), "only a broken fsync is an error"


def test_requests_that_the_power_loss_aborts_have_a_reason_of_their_own():
    import nandlab

    result = nandlab.run(SPEC, sets={"workload.arrival.iops": 200_000, "cache.sync": "none", "cache.dirty_budget": 1.0})
    summary, rows = result.summary, result.requests
    aborted = summary.requests_failed.power_lost
    assert aborted == summary.power.aborted_requests > 0
    assert summary.requests == 800 == rows.height
    assert sum(moved.count for moved in dict(summary.host).values()) == 800 - aborted
    assert rows["failed"].to_list().count(3) == aborted == (rows["failed"] != 0).sum()
    assert dict(summary.requests_failed) == {"uncorrectable": 0, "worn_out": 0, "power_lost": aborted}
    latency_ns = rows["completed_ns"] - rows["arrival_ns"]
    assert latency_ns.max() < summary.power.down_s * 1e9, "a request waited for the end of the outage"


def test_without_a_power_loss_there_is_no_power_file(tmp_path):
    import nandlab

    result = nandlab.run(SPEC, tmp_path / "r", sets={"power.cut_after_requests": 0})
    assert result.power is None
    assert result.summary.power is None
    assert not (tmp_path / "r/power.json").exists()
    assert ">Power loss</h2>" not in nandlab.report(result, tmp_path / "r.html").read_text()


@pytest.mark.parametrize("cut", [{"power.cut_after_requests": 801}, {"power.cut_at": "1h"}])
def test_a_power_loss_that_never_happened_is_reported(cut, tmp_path):
    import nandlab

    sets = [f"{key}={value}" for key, value in cut.items()]
    assert "Power never failed: the run was over before power.cut" in screen_of(nandlab.run(SPEC, sets=sets), tmp_path)


def test_a_budget_of_zero_is_reported_with_its_reason(tmp_path):
    import nandlab

    sets = {"capacitor.capacitance": "50uF", "cache.dirty_budget": "measured", "power.cut_after_requests": 0}
    text = screen_of(nandlab.run(SPEC, sets=sets), tmp_path)
    assert "No unit may be dirty" in text
    assert "capacitor.capacitance" in text


def test_the_power_of_a_stepped_drive_is_cut():
    import nandlab

    drive = nandlab.Drive(nandlab.load(SPEC, sets=CHARGED), verify=True)
    assert drive.capacitor.stage == "charged"
    assert drive.capacitor.energy_j == pytest.approx(0.5e-3 * 24 * 0.9)
    assert drive.cache_pages == (64, 32, 0)
    for page in range(10):
        drive.write(page * 4096, 4096)
    drive.advance(drive.now_ns + 50_000)
    loss = drive.cut_power()
    assert drive.capacitor.stage == "recharging"
    assert drive.capacitor.energy_j == 0
    assert loss.covered == loss.acknowledged == ()
    assert loss.flushed_pages + loss.aborted_requests > 0
    assert loss.spent_j == pytest.approx(0.02 * loss.flush_s + 0.08 * loss.program_s)
    assert drive.power().losses == (loss,)
    drive.run_until_idle()
    drive.read(0, 10 * 4096)
    drive.run_until_idle()
    drive.audit()
    assert drive.summary().power.losses == 1


UNITS = {"drive.page_size": "16KiB", "ftl.mapping_unit": "4KiB"}
BUFFER = {"cache.size": "0B", "cache.sync": "none", "cache.dirty_budget": 1.0, "ftl.buffer": "256KiB"}


@pytest.mark.parametrize("ram", [{}, BUFFER])
@pytest.mark.parametrize("capacitor", [{}, CHARGED])
def test_power_fails_with_several_mapping_units_in_a_page(ram, capacitor):
    import nandlab

    sets = UNITS | ram | capacitor
    result = nandlab.run(SPEC, sets=sets, verify=True)
    (loss,) = result.power.losses
    assert (loss.flushed_pages > 0) == bool(capacitor)
    assert (len(loss.acknowledged) > 0) == (not capacitor)
    assert result.power.page_bytes == 4096
    assert all(write.offset == write.lpn * 4096 for write in loss.acknowledged)
    drive = nandlab.Drive(nandlab.load(SPEC, sets=sets), verify=True)
    for unit in range(10):
        drive.write(unit * 4096, 4096)
    drive.advance(drive.now_ns + 50_000)
    drive.cut_power()
    drive.run_until_idle()
    drive.read(0, 10 * 4096)
    drive.run_until_idle()
    drive.audit()


def test_a_stepped_drive_detects_its_budget():
    import nandlab

    drive = nandlab.Drive(nandlab.load(SPEC, sets=CHARGED | {"cache.dirty_budget": "measured"}))
    assert drive.detect_budget()
    assert not drive.detect_budget(), "a detection is under way"
    drive.run_until_idle()
    (found,) = drive.power().detections
    assert found.budget_pages == drive.cache_pages.budget
    # A detection ends when it has measured twice the size of the cache.
    assert 2 <= found.measured_share < 2.1
    assert found.drained_j < found.energy_j


def test_a_drive_without_power_loss_refuses_to_cut_the_power():
    import nandlab

    spec = nandlab.load(SPEC, sets={"power.cut_after_requests": 0})
    drive = nandlab.Drive(spec)
    with pytest.raises(nandlab.RunError, match=r"remedy: set capacitor\.capacitance"):
        drive.cut_power()
    with pytest.raises(nandlab.RunError, match=r"remedy: set capacitor\.capacitance, and cache\.size"):
        drive.detect_budget()
    assert drive.capacitor is None
    assert nandlab.Drive(spec, verify=True).cut_power().at_s == 0


@pytest.mark.parametrize("broken", [False, True])
def test_one_sentence_says_whether_an_fsync_broke(broken):
    import nandlab
    from nandlab.presentation.outage import fsync

    # A flush is acknowledged from the cache, and the capacitor has no energy for the page that the flush covers.
    sets = CHARGED | {"cache.flush_to": "cache"} | ({"capacitor.capacitance": "1uF"} if broken else {})
    drive = nandlab.Drive(nandlab.load(SPEC, sets=sets), verify=True)
    drive.write(0, 4096)
    drive.advance(drive.now_ns + 50_000)
    drive.flush()
    drive.advance(drive.now_ns + 50_000)
    drive.write(4096, 3 * 4096)
    loss = drive.cut_power()
    assert [write.lpn for write in loss.covered] == ([0] if broken else [])
    assert loss.acknowledged == ()
    summary = drive.summary().power
    assert ("an fsync broke" in fsync(summary)) == broken
    assert fsync(summary).startswith("No fsync broke") == (not broken)


def test_gc_goes_on_in_a_flush_where_a_program_waited_for_the_reads_of_planes():
    import random

    import nandlab

    sets = {
        "drive.channels": 1,
        "drive.chips_per_channel": 1,
        "drive.dies_per_chip": 1,
        "drive.planes_per_die": 4,
        "drive.blocks_per_plane": 16,
        "drive.pages_per_block": 8,
        "drive.cell": "slc",
        "drive.op": 1.0,
        "timing.program": "900us",
        "timing.plane_reads": "independent",
        "timing.read_hold": "0us",
        "cache.size": "64KiB",
        "cache.access": "0us",
        "capacitor.capacitance": "50mF",
        "capacitor.flush": "plain",
        "capacitor.recharge": "1ms",
        "power.gc_in_flush": True,
    }
    drive = nandlab.Drive(nandlab.load("seed = 1\n", sets), verify=True)
    drawn = random.Random(1)
    erases = 0
    for _ in range(40):
        for _ in range(300):
            submit = drive.write if drawn.random() < 0.6 else drive.read
            submit(drawn.randrange(16 * 4 * 8 // 2) * 4096, 4096)
            drive.advance(drive.now_ns + 100_000)
        loss = drive.cut_power()
        assert (loss.acknowledged, loss.covered) == ((), ())
        erases += loss.gc_erases
        drive.completions()
        drive.run_until_idle()
        drive.completions()
    assert erases > 10, "GC hardly went on in the flushes"


def test_power_that_fails_in_recovery_makes_it_begin_anew(tmp_path):
    import nandlab

    def run(**more):
        spec = nandlab.load(SPEC, CHARGED | {f"power.{key}": value for key, value in more.items()})
        return nandlab.run(spec, out=tmp_path / "-".join(["r", *more.values()]), verify=True)

    once, again, late = run(), run(cut_in_recovery="1ms"), run(cut_in_recovery="1h")
    before, power = once.summary.power, again.summary.power
    assert before.recovery_cuts is None
    cuts = power.recovery_cuts
    assert (cuts.cuts, cuts.torn_programs, cuts.torn_erases) == (1, 0, 0)
    assert power.list[0].recovery_cuts == again.power.losses[0].recovery_cuts == cuts
    # The OOBs are being read after a millisecond, and nothing has been done.
    assert power.recovery_s == pytest.approx(before.recovery_s + 1e-3, rel=1e-9)
    assert power.lost_covered == power.lost_acknowledged == 0
    assert "power loss in recovery" in screen_of(again, tmp_path)
    assert "power loss in recovery" not in screen_of(once, tmp_path)
    notes = {note.code: note.text for note in late.summary.notes}
    assert "recovery-not-cut" in notes
    assert late.summary.power.recovery_cuts is None
