"""The Python interface over the stand-in core."""

import errno
import os
import threading

import numpy as np
import pytest
from conftest import SPEC, hidden
from hypothesis import given
from hypothesis import strategies as st


def test_load_takes_a_path_or_text(nandlab, spec_file):
    assert nandlab.load(spec_file).hash == nandlab.load(str(spec_file)).hash == nandlab.load(SPEC).hash
    changed = nandlab.load(spec_file, sets={"drive.op": 0.28, "gc.victim": "fifo", "gc.random": {"k": 8}})
    assert changed.hash == nandlab.load(spec_file, sets=["drive.op=0.28", 'gc.victim="fifo"', "gc.random={k=8}"]).hash
    with pytest.raises(nandlab.SpecError) as caught:
        nandlab.load("bogus = 1\n")
    assert caught.value.errors[0]["key"] == "bogus"
    assert isinstance(caught.value, nandlab.NandlabError)


def test_run_gives_summary_and_tables(nandlab, spec_file, tmp_path):
    result = nandlab.run(spec_file, out=tmp_path / "r")
    assert result.complete
    assert result.name == "small"
    assert result.path == tmp_path / "r"
    assert result.summary["requests"] == 100_000
    assert result.series.height == 40
    assert result.series["requests_read"].sum() == result.summary["host"]["read"]["count"]
    assert set(result.latency["op"].unique()) == {"read", "write"}
    assert result.numpy("blocks")["pe_cycles"].dtype == np.uint32
    assert result.sim["events"] == 9_000_000
    with pytest.raises(KeyError, match="this run has series"):
        _ = result.requests


def test_a_result_reads_back_as_it_was(nandlab, spec_file, tmp_path):
    written = nandlab.run(spec_file, out=tmp_path / "r", sets={"fake.per_request": True})
    read = nandlab.RunResult.read(tmp_path / "r")
    assert read.summary == written.summary
    assert read.smart == written.smart
    assert read.spec_toml == written.spec_toml
    assert read.tables == written.tables
    for name in read.tables:
        assert read.table(name).equals(written.table(name)), name
        for column, values in written.numpy(name).items():
            np.testing.assert_array_equal(read.numpy(name)[column], values)
    again = read.save(tmp_path / "s")
    for path in (tmp_path / "r").iterdir():
        assert path.read_bytes() == (again / path.name).read_bytes(), path.name


def test_progress_is_reported_and_can_stop_the_run(nandlab, spec_file):
    seen = []

    def progress(report):
        seen.append(report)
        return report.requests < 1000

    result = nandlab.run(spec_file, progress=progress, sets={"fake.steps": 200, "fake.step_s": 0.01})
    assert not result.complete
    assert 1000 <= result.summary["requests"] < 100_000
    assert [report.requests for report in seen] == sorted(report.requests for report in seen)


def test_an_error_in_the_progress_function_stops_the_run(nandlab, spec_file, tmp_path):
    def progress(report):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        nandlab.run(spec_file, tmp_path / "r", progress, sets={"fake.steps": 50, "fake.step_s": 0.1})
    assert not (tmp_path / "r").exists()
    assert hidden(tmp_path) == []
    for thread in threading.enumerate():
        if thread.name == "nandlab-run":
            thread.join(2)
            assert not thread.is_alive()


def test_errors_of_the_core_come_through(nandlab, spec_file):
    with pytest.raises(nandlab.RunError, match="the drive is full"):
        nandlab.run(spec_file, sets={"fake.fail": True})
    with pytest.raises(ZeroDivisionError):
        nandlab.run(spec_file, sets={"fake.bug": True})


@pytest.mark.parametrize("name", ["summary.json", "series.parquet", "nandlab-result.json"])
def test_a_disk_that_fills_up_leaves_the_earlier_result(nandlab, spec_file, tmp_path, monkeypatch, name):
    nandlab.run(spec_file, tmp_path / "r", sets={"fake.requests": 5})
    before = {path.name: path.read_bytes() for path in (tmp_path / "r").iterdir()}
    sync = os.fsync

    def full(handle):
        if os.readlink(f"/proc/self/fd/{handle}").endswith(name):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(handle)

    monkeypatch.setattr(os, "fsync", full)
    told = f"cannot write .*{name}: No space left on device\n  remedy: free some space"
    with pytest.raises(nandlab.OutputError, match=told):
        nandlab.run(spec_file, tmp_path / "r")
    assert {path.name: path.read_bytes() for path in (tmp_path / "r").iterdir()} == before
    assert hidden(tmp_path) == []


def test_a_rename_that_fails_leaves_the_earlier_result(nandlab, spec_file, tmp_path, monkeypatch):
    nandlab.run(spec_file, tmp_path / "r", sets={"fake.requests": 5})
    rename = os.rename

    def broken(source, target):
        if os.path.basename(source) == "new":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        rename(source, target)

    monkeypatch.setattr(os, "rename", broken)
    with pytest.raises(nandlab.OutputError, match="cannot write to"):
        nandlab.run(spec_file, tmp_path / "r")
    assert nandlab.RunResult.read(tmp_path / "r").summary["requests"] == 5
    assert hidden(tmp_path) == []


def test_drive_steps(nandlab):
    drive = nandlab.Drive(nandlab.load(SPEC))
    first = drive.write(0, 4096, fua=True)
    drive.read(4096, 4096)
    assert drive.completions() == []
    assert drive.outstanding == 2
    drive.advance(to_ns=50_000)
    assert drive.now_ns == 50_000
    drive.trim(0, 4096)
    drive.flush()
    drive.run_until_idle()
    done = drive.completions()
    assert [completion.op for completion in done] == ["write", "read", "trim", "flush"]
    assert done[0].id == first
    assert done[0].latency_us == 90.0
    assert drive.outstanding == 0
    assert drive.summary()["waf"] > 1
    assert drive.smart()["nvme_smart_log"]["media_errors"] == 0
    assert drive.table("blocks").height == len(drive.numpy("blocks")["plane"])


def test_trace(nandlab, tmp_path):
    (tmp_path / "a.csv").write_text("1\n")
    assert nandlab.trace.stat(tmp_path / "a.csv")["requests"] == 12
    assert nandlab.trace.stat(profile="msr/hm_0", requests=10)["options"]["requests"] == 10
    with pytest.raises(nandlab.OutputError, match="either a trace file or a profile"):
        nandlab.trace.stat()
    nandlab.trace.convert(tmp_path / "a.csv", tmp_path / "deep" / "a.log", to="fio-iolog")
    assert (tmp_path / "deep" / "a.log").read_text() == "whole\n"


@given(st.one_of(st.floats(allow_nan=True, allow_infinity=True), st.integers(-(10**18), 10**18), st.none()))
def test_numbers_are_short(value):
    from nandlab_units import units

    assert len(units.number(value)) <= 28 or abs(value) > 1e15
    if value is not None and 0 <= value < 1e15:
        assert units.duration(value) and units.size(value) and units.count(value)
