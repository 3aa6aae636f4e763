"""Small real runs through the package and the compiled core."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import forks
import pytest

ROOT = Path(__file__).parents[2]

SPEC = """\
seed = 7
[drive]
channels = 2
chips_per_channel = 1
dies_per_chip = 1
planes_per_die = 2
blocks_per_plane = 64
pages_per_block = 32
page_size = "4KiB"
cell = "slc"
op = 0.25
[precondition]
used = 0.8
valid = 0.7
[workload]
synthetic = { requests = 30000, read_fraction = 0.3, size = "4KiB", address = "uniform" }
arrival = { queue_depth = 8 }
[output]
requests = true
"""

COLUMNS = {
    "series": """time_s interval_s requests_read requests_write requests_trim bytes_read bytes_write
        latency_us_read_mean latency_us_write_mean latency_us_read_max latency_us_write_max iops mb_per_s
        pages_written program_host program_gc program_wear erases waf gc_victim_valid_mean free_share_min
        free_share_mean outstanding_mean die_busy_mean channel_busy_mean cache_dirty_pages cache_budget_pages
        capacitor_pages""",
    "dies": "time_s interval_s die channel busy_share",
    "latency": "op low_us high_us count",
    "blocks": "plane block pe_cycles valid_pages state",
    "requests": "arrival_ns completed_ns op offset length failed",
}


@pytest.fixture(scope="module")
def ran():
    import nandlab

    return nandlab.run(SPEC, verify=True)


def command(*arguments, cwd):
    return forks.run(
        [sys.executable, "-m", "nandlab", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"NO_COLOR": "1"},
    )


def test_tables_have_the_documented_columns(ran):
    for name, columns in COLUMNS.items():
        assert set(columns.split()) <= set(ran.table(name).columns), name


def test_tables_and_summary_agree(ran):
    summary, series = ran.summary, ran.series
    assert summary.complete is True
    assert summary.requests == 30_000
    assert ran.requests.height == 30_000
    for op in ("read", "write"):
        moved = summary.host[op]
        assert series[f"requests_{op}"].sum() == moved["count"]
        assert series[f"bytes_{op}"].sum() == moved["bytes"]
        assert ran.latency.filter(ran.latency["op"] == op)["count"].sum() == moved["count"]
    assert series["pages_written"].sum() == summary.counters.host_pages_written
    assert series["program_host"].sum() == summary.flash.program.host
    assert series["erases"].sum() == sum(dict(summary.flash.erase).values())
    assert 0 <= ran.dies["busy_share"].min() <= ran.dies["busy_share"].max() <= 1.000001
    assert ran.blocks.height == 2 * 2 * 64


def test_the_same_spec_gives_the_same_bytes(tmp_path):
    (tmp_path / "s.toml").write_text(SPEC)
    for out in ("a", "b"):
        done = command("run", "s.toml", "--out", out, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    for path in (tmp_path / "a").iterdir():
        if path.name != "sim.json":
            assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name
    assert json.loads((tmp_path / "a/sim.json").read_text())["page_ops_per_s"] > 0


def test_a_resolved_spec_runs_to_the_same_summary(ran):
    import nandlab

    assert nandlab.run(ran.spec_toml, verify=True).summary == ran.summary


def test_the_report_of_a_real_run(ran, tmp_path):
    import nandlab

    assert nandlab.report(ran, tmp_path / "r.html").stat().st_size > 50_000


def test_a_host_link_limits_the_bandwidth_and_is_reported(ran, tmp_path):
    import nandlab
    from nandlab.console import Console
    from nandlab.screen import show_run

    sets = {"host.link": {"mb_per_s": 20, "latency": "10us"}, "workload.synthetic.read_fraction": 1.0}
    spec = nandlab.load(SPEC, sets=sets)
    assert spec.with_({"host.link.latency": "20us"}) == nandlab.load(SPEC, sets={**sets, "host.link.latency": "20us"})
    result = nandlab.run(spec, verify=True)
    # The link is the bottleneck. It moves a page of 4096 B in 204.8 us at 20 MB/s, and with a queue depth of 8 a read
    # waits for the transfers of seven others.
    assert result.summary.mb_per_s == pytest.approx(20, rel=1e-3)
    assert result.summary.latency_us.read.p50 == pytest.approx(8 * 204.8, rel=1e-3)
    link = result.summary.link
    assert (link.to_drive, link.to_host) == (0, pytest.approx(1, abs=1e-3))
    assert ran.summary.link is None
    screen = io.StringIO()
    console = Console(screen, width=1000)
    show_run(result, console)
    assert "utilisation 0.0 % to the drive, >99.9 % to the host" in screen.getvalue()
    result.save(tmp_path / "out")
    report = nandlab.report(tmp_path / "out").read_text()
    assert "link to the host" in report and "mb_per_s 20" in report


def test_suspensions_are_reported(tmp_path):
    import nandlab
    from nandlab.console import Console
    from nandlab.screen import show_run

    times = {"enter": "9us", "resume": "4us", "min_progress": "0us", "max": 3}
    result = nandlab.run(SPEC, sets={"timing.suspend": {"program": times, "erase": times}}, verify=True)
    found, plain = result.summary.suspensions, nandlab.run(SPEC).summary
    assert found.programs > 0 and found.erases > 0
    # A suspension takes at least `enter`, `resume` and the sense of a page.
    assert found.suspended_s >= (found.programs + found.erases) * (9e-6 + 4e-6 + 50e-6)
    assert plain.suspensions is None
    assert result.summary.latency_us.read.p99 < plain.latency_us.read.p99
    screen = io.StringIO()
    console = Console(screen, width=1000)
    show_run(result, console)
    assert f"{found.programs:,} of programs" in screen.getvalue()
    result.save(tmp_path / "out")
    assert "suspension for host reads" in nandlab.report(tmp_path / "out").read_text()


def test_a_stopped_run_is_marked_incomplete():
    import nandlab

    long = {"workload.synthetic.requests": 50_000_000}
    result = nandlab.run(SPEC, sets=long, progress=lambda report: report.requests < 1000)
    assert not result.complete
    assert result.summary.complete is False
    assert 0 < result.summary.requests < 50_000_000


def test_a_phase_is_reported_before_it_begins(tmp_path):
    import nandlab
    from nandlab import _core

    drive = tmp_path / "drive"
    run = _core.Run(nandlab.load(SPEC), True, str(drive))
    seen = []
    while not seen or not seen[-1]["done"]:
        was_saved = drive.exists()
        seen.append(run.step(20) | {"saved": was_saved})
    phases = [report["phase"] for report in seen]
    assert list(dict.fromkeys(phases))[-4:] == ["save", "run", "verify", "done"]
    assert not seen[phases.index("save")]["saved"]
    assert seen[phases.index("run")]["requests"] == 0
    assert seen[phases.index("verify")]["requests"] == 30_000


def test_a_step_with_large_requests_ends_after_its_time():
    """A step ended only after 512 requests, whatever their size, so the screen still showed \"preconditioning\"."""
    import nandlab
    from nandlab import _core

    large = {"drive.blocks_per_plane": 2048, "workload.synthetic.size": "16MiB", "precondition.method": "none"}
    run = _core.Run(nandlab.load(SPEC).with_(large))
    while run.step(20)["phase"] != "run":
        pass
    assert 0 < run.step(20)["requests"] < 200


def test_progress_names_the_phase(tmp_path, capsys):
    import nandlab
    from nandlab.ends import Stop
    from nandlab.progress import RunProgress
    from nandlab.simulate import Progress

    phases = []
    watch = lambda report: phases.append(report.phase)  # noqa: E731
    nandlab.run(nandlab.load(SPEC), tmp_path / "r", watch, save_drive=tmp_path / "drive", verify=True)
    assert phases[-1] == "write"
    for phase, words in [
        ("open", "opening the workload, 20 s"),
        ("precondition", "50%, preconditioning, 20 s"),
        ("save", "saving the drive, 20 s"),
        ("verify", "verifying, 20 s"),
        ("write", "writing results, 20 s"),
    ]:
        RunProgress("name", Stop(), bar=False)(Progress(phase, 0.5, 0, 0.0, 0, 20.0))
        assert capsys.readouterr().err == f"name: {words}\n"


def test_a_drive_is_stepped_and_returns_the_written_data():
    import nandlab

    drive = nandlab.Drive(nandlab.load(SPEC), verify=True)
    ids = [drive.write(page * 4096, 4096) for page in range(32)]
    drive.run_until_idle()
    assert sorted(completion.id for completion in drive.completions()) == sorted(ids)
    now = drive.now_ns
    drive.read(0, 32 * 4096)
    drive.run_until_idle()
    (read,) = drive.completions()
    assert not read.failed
    assert read.arrival_ns == now
    assert read.latency_us > 0
    drive.advance(drive.now_ns + 1_000_000)
    drive.audit()


def test_every_example_is_valid():
    import nandlab

    for path in sorted((ROOT / "examples").glob("*.toml")):
        checked = nandlab.load(path)
        assert nandlab.load(checked.to_toml()).hash == checked.hash, path.name


def test_an_error_in_a_spec_names_file_and_key(tmp_path):
    (tmp_path / "s.toml").write_text(SPEC.replace('cell = "slc"', 'cel = "slc"'))
    done = command("run", "s.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert "s.toml" in done.stderr
    assert "cel" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_spec_with_overrides_pickles_compares_and_hashes(tmp_path):
    import pickle

    import nandlab

    spec = nandlab.load(SPEC)
    fifo = spec.with_({"gc.victim": "fifo"})
    assert fifo == nandlab.load(SPEC, sets={"gc.victim": "fifo"}) != spec
    assert fifo.with_("gc.victim='greedy'") == spec == spec.with_(())
    assert len({spec, fifo, nandlab.load(SPEC)}) == 2
    for one in (spec, fifo):
        again = pickle.loads(pickle.dumps(one))
        assert again == one and hash(again) == hash(one) and again.hash == one.hash
    assert spec != spec.hash and spec.hash in repr(spec)
    with pytest.raises(nandlab.SpecError, match=r"--set: gc\.victim"):
        spec.with_({"gc.victim": "fofi"})


def test_sets_apply_to_a_loaded_spec():
    """`sets` had no effect on a loaded spec, so a loop over policies in a notebook gave equal results."""
    import nandlab

    spec = nandlab.load(SPEC)
    few = nandlab.run(spec, sets={"workload.synthetic.requests": 17})
    assert few.summary.requests == 17 != nandlab.run(spec).summary.requests
    assert few.spec_hash == spec.with_({"workload.synthetic.requests": 17}).hash


def test_spec_fit_scales_the_drive_to_its_workload(tmp_path):
    """`spec fit` scales a large drive down to a small workload, so that GC runs and a steady state can be judged."""
    import nandlab

    large = nandlab.load(SPEC).with_({"drive.blocks_per_plane": 2048, "workload.synthetic.requests": 20_000})
    assert any(note.code == "no-gc" for note in nandlab.run(large).summary.notes)
    found = nandlab.spec.fit(large)
    assert found.requests == 20_000 and found.written_bytes >= 5 * found.spare_bytes
    assert found.sets["drive.blocks_per_plane"] < 200 and found.sets["drive.op"] > 0.25
    small = large.with_(found.sets)
    assert small.raw_bytes - small.logical_bytes == found.spare_bytes
    run = nandlab.run(small).summary
    assert run.gc.victims > 0 and run.space.spare_share >= nandlab.run(large).summary.space.spare_share
    assert nandlab.spec.fit(small).sets == {}
    few = large.with_({"workload.synthetic.requests": 100, "precondition.used": 0.3, "precondition.valid": 0.5})
    with pytest.raises(nandlab.NandlabError, match=r"too little .*\n  remedy: --set workload\.repeat=(\d+)") as caught:
        nandlab.spec.fit(few)
    repeat = int(str(caught.value).split("workload.repeat=")[1].split(",")[0])
    assert nandlab.spec.fit(few.with_({"workload.repeat": repeat})).sets
    with pytest.raises(nandlab.NandlabError, match="too little"):
        nandlab.spec.fit(few.with_({"workload.repeat": repeat - 1}))
    with pytest.raises(nandlab.NandlabError, match="no drive can be fitted"):
        nandlab.spec.fit(large.with_({"workload.synthetic.read_fraction": 1.0}))


def test_spec_fit_prints_arguments_for_run(tmp_path):
    (tmp_path / "s.toml").write_text(SPEC.replace("blocks_per_plane = 64", "blocks_per_plane = 2048"))
    command = [sys.executable, "-m", "nandlab"]
    done = subprocess.run([*command, "spec", "fit", "s.toml"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.startswith("--set drive.blocks_per_plane="), done
    assert "requests write" in done.stderr
    run = [*command, "run", "s.toml", *done.stdout.split(), "--json"]
    assert json.loads(subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=60).stdout)["gc"][
        "victims"
    ]
