"""A drive's whole life: fast-forward agrees with full simulation, and finished windows are kept."""

import io
import json
import signal
import subprocess
import sys
from pathlib import Path

import forks
import pytest
from nandlab.console import Console
from nandlab.screen import show_life
from nandlab.units import number
from study_lab import processor_s, wait_for

#: A drive whose whole life takes a second to simulate: 64 blocks with 200 P/E cycles left. A day of ageing is a
#: simulated second.
SPEC = """\
seed = 1
[drive]
channels = 2
planes_per_die = 1
chips_per_channel = 1
blocks_per_plane = 32
pages_per_block = 32
page_size = "4KiB"
op = 0.4
endurance = 3000
[ftl]
wear_levelling = "static"
wear_gap = 5
[ecc]
levels = "laldpc"
[reliability]
rber.vth = { cell_to_cell = 0.08 }
pe_cycles = 2800
clock_scale = 86_400
[refresh]
policy = "fcr"
interval = [{ pe = 2900, every = "30d" }, { pe = 5000, every = "10d" }]
[capacitor]
capacitance = "1mF"
temperature = 60
[precondition]
used = 0.7
valid = 0.9
map_reads = true
[workload]
synthetic = { requests = 3000, read_fraction = 0.5, size = "4KiB", address = { zipf = 0.6 } }
arrival = { iops = 700 }
"""


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SPEC)
    return path


def test_fast_forward_agrees_with_full_simulation(spec, tmp_path):
    import nandlab

    seen = []
    life = nandlab.life(spec, windows=12, requests=5000, against_full=True, progress=lambda now: seen.append(now.share))
    facts, full = life.facts, life.full
    assert life.complete and full.complete
    # In a window of 5,000 requests each block is erased more than twice, so one window can hold both ends of a life:
    # the first block reaches its endurance, and so many others do that writes find no room.
    ends = ("the first block reached its endurance", "writes found no room")
    assert facts.end == ends[0] and full.facts.end in ends
    # Both lives end at the same wear; fast-forward simulates only a part of the life.
    assert 2960 < facts.pe_mean < 3000 and 2960 < full.facts.pe_mean < 3000
    assert full.facts.simulated_share > 0.999 > 0.6 > facts.simulated_share
    assert facts.requests < 0.6 * full.facts.requests
    error = facts.error
    # Measured errors of fast-forward: up to 2.5 %.
    for key in ("years", "host_tb_written", "waf", "read_us_mean", "read_level_mean"):
        assert abs(error[key].relative) < 0.05, (key, error[key])
    # The capacitor loses 30 % of its capacitance in five years at 60 degrees, with and without fast-forward.
    for lived in (life, full):
        lost, years = lived.columns["capacitor_loss_share"], lived.columns["years"]
        assert lost == pytest.approx(0.3 * years / 5, rel=1e-6)
    # Time, wear and bytes written only grow, and the last row agrees with the facts.
    for key in ("years", "pe_mean", "host_tb_written"):
        assert (life.columns[key][1:] > life.columns[key][:-1]).all()
        # The facts are rounded to twelve digits.
        before, last = life.columns[key][-2:]
        # The end is not farther from the last window than this window is from the one before.
        assert last * (1 - 1e-11) <= facts[key] < last + 1.5 * (last - before)
    # No window was measured after the drive had run out of space.
    for lived in (life, full):
        assert lived.columns["failed_pages"].sum() == 0 and lived.facts.first_media_error_years is None
    assert life.columns["refreshed_per_host_page"][-3:].mean() > life.columns["refreshed_per_host_page"][:3].mean()
    assert seen and max(seen) > 0.9


def test_a_life_is_deterministic_and_can_be_read(spec, tmp_path):
    import nandlab

    for name in ("a", "b"):
        nandlab.life(spec, tmp_path / name, windows=4, requests=1000)
    for file in ("life.json", "life.parquet", "spec.toml"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    again = nandlab.Life.read(tmp_path / "a")
    assert again.facts.windows == len(again.table) >= 5
    page = nandlab.report(tmp_path / "a").read_text()
    assert ">Latency over the years</h2>" in page and ">Refresh</h2>" in page


def test_waf_of_a_life_is_in_bytes(spec):
    """With writes of 2 KiB to pages of 4 KiB, at least two bytes are programmed per byte written."""
    import nandlab
    import numpy as np

    columns = nandlab.life(spec, windows=2, requests=1000, sets={"workload.synthetic.size": "2KiB"}).columns
    programs = sum(values for name, values in columns.items() if name.startswith("program_"))
    assert columns["waf"] == pytest.approx(4096 * programs / columns["write_bytes"], rel=1e-9)
    assert columns["waf_pages"] == pytest.approx(programs / columns["host_pages"], rel=1e-9)
    assert np.all(columns["waf"] > 1.9 * columns["waf_pages"])


def test_a_life_is_told_in_units_that_fit():
    """A day is 86,400 s, and a year has 365 days."""
    from nandlab.units import lifetime, lifetime_unit, written_unit

    day = 1 / 365
    told = [lifetime(of) for of in (12.345, 1.0, 0.1, 36 * day, 2 * day, 1.99 * day, day / 12, day / 720, day / 86_400)]
    assert told == [
        *("12.3 years", "1.00 years", "0.10 years", "36.0 days", "2.00 days"),
        *("47.8 hours", "2.00 hours", "2.00 minutes", "1.00 seconds"),
    ]
    assert lifetime_unit(0.0) == ("years", 1.0)
    for terabytes, unit, shown in ((1500.0, "PB", 1.5), (1.0, "TB", 1.0), (0.45, "GB", 450.0), (0.00045, "MB", 450.0)):
        found, times = written_unit(terabytes)
        assert (found, terabytes * times) == (unit, pytest.approx(shown))
    assert written_unit(0.0) == ("TB", 1.0)


def test_screen_and_page_of_a_short_life_have_units_that_fit(spec, tmp_path):
    done = command(
        "life",
        spec,
        "--windows",
        3,
        "--requests",
        1000,
        "--against-full",
        "--out",
        tmp_path / "out",
        "--set",
        "reliability.clock_scale=1",
        "--set",
        "refresh.policy=none",
    )
    assert done.returncode == 0, done.stderr
    facts = json.loads((tmp_path / "out" / "life.json").read_text())
    minutes, megabytes = facts["years"] * 525_600, facts["host_tb_written"] * 1e6
    assert 2 < minutes < 120 and 1 < megabytes < 1000
    lines = done.stdout.splitlines()
    assert lines[1] == f"{number(minutes)} minutes until the first block reached its endurance."
    assert f"written by the host (TBW): {number(megabytes)} MB" in done.stdout
    head = next(at for at, line in enumerate(lines) if line.split()[:1] == ["minutes"])
    ages = [float(line.split()[0]) for line in lines[head + 1 : head + 1 + facts["windows"]]]
    assert ages[0] > 0 and ages == sorted(set(ages)) and ages[-1] == pytest.approx(minutes, rel=0.2)
    assert "lifetime, minutes" in " ".join(done.stdout.split()) and "years" not in done.stdout
    page = (tmp_path / "out" / "report.html").read_text()
    assert '"title": "minutes"' in page or '"title":"minutes"' in page
    assert '"title": "years"' not in page and '"title":"years"' not in page


def test_a_life_tells_the_errors_that_it_met(spec, tmp_path):
    """At 18,000 P/E cycles and ten years no read level decodes some of the pages."""
    import nandlab

    bad = {
        "reliability.pe_cycles": 18_000,
        "drive.endurance": 18_400,
        "reliability.retention": "3650d",
        "refresh.policy": "none",
    }
    life = nandlab.life(spec, tmp_path / "bad", windows=2, requests=1000, sets=bad)
    (note,) = [note for note in life.facts.notes if note.severity == "error"]
    assert note.code == "uncorrectable" and "no read level decodes" in note.text
    assert nandlab.Life.read(tmp_path / "bad").facts.notes == life.facts.notes
    screen = io.StringIO()
    console = Console(screen, width=100)
    show_life(life, console)
    lines = screen.getvalue().splitlines()
    assert lines[1].startswith("data lost: first media error after "), "the error is behind the first line"
    assert "no read level decodes" in " ".join(lines)
    assert "no read level decodes" in nandlab.report(tmp_path / "bad").read_text()
    good = nandlab.life(spec, windows=2, requests=1000)
    assert [note.code for note in good.facts.notes if note.severity == "error"] == []
    assert "too-short" not in [note.code for note in good.facts.notes]


def test_impossible_lives_are_refused(spec, tmp_path):
    import nandlab

    with pytest.raises(nandlab.OutputError, match="1 to 10,000"):
        nandlab.life(spec, windows=0)
    with pytest.raises(nandlab.OutputError, match="100 to 1,000,000,000"):
        nandlab.life(spec, requests=10)
    with pytest.raises(nandlab.OutputError, match="the drive does not wear"):
        nandlab.life(spec, sets={"workload.synthetic.read_fraction": 1.0, "refresh.policy": "none"}, requests=1000)
    with pytest.raises(nandlab.OutputError, match="worn out before the end of its first window"):
        nandlab.life(spec, sets={"reliability.pe_cycles": 2999}, requests=20_000)
    hopeless = {
        "drive.channels": 1,
        "drive.blocks_per_plane": 18,
        "reliability.clock_scale": 1e7,
        "refresh.interval": '[{ pe = 1000, every = "1d" }]',
    }
    life = nandlab.life(spec, sets=[f"{key}={value}" for key, value in hopeless.items()], requests=1000)
    # The window that was finished before the problem is kept.
    assert "does not come to rest" in life.facts.problem and not life.complete and len(life.table) == 1
    with pytest.raises(nandlab.OutputError, match="cannot read"):
        nandlab.Life.read(tmp_path / "nothing")


def command(*arguments, **options):
    return forks.run(
        [sys.executable, "-m", "nandlab", *map(str, arguments)], capture_output=True, text=True, timeout=300, **options
    )


def test_the_command_life(spec, tmp_path):
    done = command("life", spec, "--windows", 4, "--requests", 1000, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "years until the first block reached its endurance" in done.stdout
    assert (tmp_path / "out" / "report.html").is_file()
    done = command("life", spec, "--windows", 2, "--requests", 1000, "--out", tmp_path / "out", "--json")
    assert json.loads(done.stdout)["complete"] is True
    refused = command("life", spec, "--full", "--against-full", "--out", tmp_path / "x")
    assert refused.returncode == 2 and "leave out --full" in refused.stderr
    assert not (tmp_path / "x").exists()


@pytest.mark.skipif(not Path("/proc/self/stat").is_file(), reason="needs /proc")
def test_ctrl_c_keeps_the_finished_windows(spec, tmp_path):
    out = tmp_path / "out"
    arguments = [sys.executable, "-m", "nandlab", "life", str(spec), "--full", "--windows", "2000"]
    arguments += ["--set", "drive.endurance=100000", "--requests", "500", "--out", str(out), "--json"]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # The time of the processor counts, because another process may have it.
    wait_for(lambda: processor_s(process.pid) > 3, 600, process)
    process.send_signal(signal.SIGINT)
    printed, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    facts = json.loads(printed)
    assert facts["complete"] is False and facts["end"] == "it was stopped" and facts["windows"] > 0
    assert "finished windows" in errors and (out / "life.parquet").is_file()
