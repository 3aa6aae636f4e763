"""The command plays every trace of the shared folder; skipped if the folder is missing.

Each whole trace is played once. The other tests play only its first requests (`workload.requests_max`).
"""

import json
import os
import sys
from pathlib import Path

import forks
import pytest
import timeline_check

TRACES = Path(__file__).resolve().parents[2].parent / "shared" / "traces"

pytestmark = pytest.mark.skipif(not TRACES.is_dir(), reason="the folder of recorded traces is missing")

#: A drive of 20 GiB raw, fast enough to keep up with most of the traces.
DRIVE = """\
seed = 3
[drive]
channels = 8
chips_per_channel = 4
planes_per_die = 2
blocks_per_plane = 320
pages_per_block = 128
page_size = "8KiB"
op = 0.12
[timing]
program = "300us"
"""

#: By trace, the settings that it needs: keys of [workload], and changes of DRIVE.
CONCATENATE = {"device": '"concatenate"'}
NEEDS = {
    "cloudphysics_2h.vscsi.zst": ({}, {"blocks_per_plane": 640}),
    "fileserver.blkparse.xz": ({}, {}),
    "fio_fill.blkparse.xz": ({}, {}),
    "fio_zipf.blkparse.xz": ({}, {}),
    "fio_zipf.iolog.xz": ({}, {}),
    "mqsim_tpcc-small.trace.zst": (CONCATENATE | {"beyond": '"wrap"'}, {}),
    "mqsim_wsrch-small.trace.zst": (CONCATENATE | {"beyond": '"wrap"'}, {}),
    "ntrx.blkparse.xz": ({}, {}),
    "oltp.blkparse.xz": ({}, {}),
    "oltp_load.blkparse.xz": ({}, {}),
    "varmail.blkparse.xz": ({}, {}),
}
OPS = ("read", "write", "trim", "flush")
#: The file with the speed of the simulator, which differs between equal runs.
MEASURED = "sim.json"
QUICK = 10_000


def nandlab(*arguments, cwd):
    return forks.run(
        [sys.executable, "-m", "nandlab", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"NO_COLOR": "1", "COLUMNS": "100"},
    )


def spec_of(name, directory, *more):
    """Writes a spec to `directory` that plays the trace `name`; `more` are lines after the [workload] keys."""
    workload, drive = NEEDS[name]
    text = DRIVE
    for key, value in drive.items():
        text = text.replace(f"{key} = 320", f"{key} = {value}")
    lines = [f"trace = {json.dumps(str(TRACES / name))}", *(f"{key} = {value}" for key, value in workload.items())]
    path = directory / f"{name.split('.')[0]}.toml"
    path.write_text(text + "\n".join(["[workload]", *lines, *more, ""]))
    return path


def run(spec, out, *arguments):
    done = nandlab("run", spec.name, "--out", out, *arguments, cwd=spec.parent)
    assert done.returncode == 0, done.stderr
    return json.loads((spec.parent / out / "summary.json").read_text())


def stat(name, directory, *arguments):
    device = ("--device", "concatenate") if "device" in NEEDS[name][0] else ()
    done = nandlab("trace", "stat", TRACES / name, "--json", *device, *arguments, cwd=directory)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def assert_agrees(summary, facts):
    """Asserts that the summary has exactly the requests and bytes of the trace."""
    assert summary["complete"] is True
    assert summary["requests"] + summary["requests_unfinished"] == facts["requests"]
    assert summary["requests_unfinished"] == 0
    assert (summary["records_skipped"], facts["skipped"]) == (0, 0)
    assert not any(summary["requests_failed"].values())
    for op in OPS:
        counted, seen = summary["host"][op], facts["ops"][op]
        assert (op, counted["count"], counted["bytes"]) == (op, seen["requests"], seen["bytes"])


def test_every_trace_of_the_folder_is_in_the_table():
    there = {path.name for path in TRACES.iterdir() if path.suffix in (".xz", ".zst", ".gz")}
    assert there == set(NEEDS)


@pytest.mark.parametrize("name", sorted(NEEDS))
def test_a_whole_trace_is_played_and_agrees_with_its_statistics(name, tmp_path):
    summary, facts = run(spec_of(name, tmp_path), "out"), stat(name, tmp_path)
    assert_agrees(summary, facts)
    # The run does not end before the last arrival.
    assert summary["duration_s"] >= facts["duration_s"]
    assert bool(summary["requests_wrapped"]) == ("beyond" in NEEDS[name][0])


@pytest.mark.parametrize("name", sorted(NEEDS))
def test_two_runs_of_the_start_of_a_trace_write_the_same_bytes(name, tmp_path):
    """The drive is filled, so that GC runs. All outputs are written, and the oracle checks one of the runs."""
    output = "[output]\nrequests = true\ntimeline_operations = 500\n[precondition]\nused = 0.97\nvalid = 0.85\n"
    spec = spec_of(name, tmp_path, f"requests_max = {QUICK}", output)
    first, again = (run(spec, out) for out in ("first", "again"))
    assert first == again
    names = {path.name for path in (tmp_path / "first").iterdir()}
    assert {"summary.json", "smart.json", "series.parquet", "requests.parquet", "timeline.json"} <= names
    for file in sorted(names - {MEASURED}):
        assert (tmp_path / "first" / file).read_bytes() == (tmp_path / "again" / file).read_bytes(), file
    import nandlab as package

    verified = json.loads(package.run(spec, verify=True).summary_text)
    checked = verified.pop("verified")
    assert verified == first, "the oracle has changed the result"
    assert checked["page_reads_checked"] > 0 or first["host"]["read"]["count"] == 0
    device = "concatenate" if "device" in NEEDS[name][0] else None
    assert_agrees(first, package.trace.stat(TRACES / name, device=device, requests=QUICK))


@pytest.mark.parametrize("arrival", ["{ queue_depth = 16 }", "{ iops = 5000 }"])
def test_other_arrivals_play_the_same_requests(arrival, tmp_path):
    spec = spec_of("varmail.blkparse.xz", tmp_path, f"requests_max = {QUICK}", f"arrival = {arrival}")
    assert_agrees(run(spec, "out", "--verify"), stat("varmail.blkparse.xz", tmp_path, "--requests", QUICK))


def test_a_repeated_trace_counts_each_repeat(tmp_path):
    spec = spec_of("mqsim_tpcc-small.trace.zst", tmp_path, "repeat = 3")
    summary, facts = run(spec, "out", "--verify"), stat("mqsim_tpcc-small.trace.zst", tmp_path)
    assert summary["requests"] == 3 * facts["requests"]
    assert summary["host"]["write"]["bytes"] == 3 * facts["ops"]["write"]["bytes"]


def test_two_recordings_of_one_run_give_equal_counts(tmp_path):
    """fio's log and the block trace of the same run have the same requests, at times that differ by microseconds."""
    names = ["fio_zipf.blkparse.xz", "fio_zipf.iolog.xz"]
    block, log = (run(spec_of(name, tmp_path, f"requests_max = {QUICK}"), name[:12]) for name in names)
    assert block["host"] == log["host"]
    assert block["waf"] == log["waf"]


def test_unmapped_reads_are_reported_and_can_be_mapped(tmp_path):
    """Three quarters of the page reads of oltp are of data older than the trace."""
    spec = spec_of("oltp.blkparse.xz", tmp_path, f"requests_max = {QUICK}")
    done = nandlab("run", spec.name, cwd=tmp_path)
    assert "were of unmapped pages" in done.stdout
    assert "precondition.map_reads = true" in " ".join(done.stdout.split())
    nandlab("report", "out/oltp", cwd=tmp_path)
    assert "precondition.map_reads" in (tmp_path / "out/oltp/report.html").read_text()
    mapped = nandlab("run", spec.name, "--set", "precondition.map_reads=true", "--verify", cwd=tmp_path)
    assert mapped.returncode == 0, mapped.stderr
    assert "hold no data" not in mapped.stdout
    assert json.loads((tmp_path / "out/oltp/summary.json").read_text())["counters"]["unmapped_reads"] == 0


def test_a_drive_that_cannot_keep_up_is_reported(tmp_path):
    spec = spec_of("ntrx.blkparse.xz", tmp_path, f"requests_max = {QUICK}", "time_scale = 0.01")
    done = nandlab("run", spec.name, cwd=tmp_path)
    assert "did not keep up" in done.stdout
    assert "\u2026" not in done.stdout, "a number on the screen is cut off"


def test_the_timeline_of_a_trace_has_no_problems(tmp_path):
    spec = spec_of("varmail.blkparse.xz", tmp_path, f"requests_max = {QUICK}", "[output]\ntimeline_operations = 2000")
    run(spec, "out")
    timeline = timeline_check.read((tmp_path / "out/timeline.json").read_text())
    assert timeline.problems == []
    tracks = {track for _, track in timeline.tracks()}
    assert {"die 0", "die 31", "channel 0", "channel 7", "level 1", "lane 0"} <= tracks
    slices = [one for one in timeline.slices if one.process != timeline_check.REQUESTS]
    assert {one.args["operation"] for one in slices} == set(range(2000))
    assert all(one.end > one.start for one in slices)
    # The drive was empty, so it has no background work: every operation belongs to a request.
    assert len(timeline.arrows) == 2000
