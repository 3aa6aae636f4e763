"""The Python interface."""

import contextlib
import errno
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import nandlab
import numpy as np
import polars as pl
import pytest
from conftest import SPEC, hidden
from hypothesis import given
from hypothesis import strategies as st
from nandlab import _core, units, whole


def test_load_takes_a_path_or_text(spec_file):
    assert nandlab.load(spec_file).hash == nandlab.load(str(spec_file)).hash == nandlab.load(SPEC).hash
    changed = nandlab.load(
        spec_file, sets={"drive.op": 0.28, "gc.victim": "fifo", "workload.synthetic.address": {"zipf": 0.9}}
    )
    assert (
        changed.hash
        == nandlab.load(
            spec_file, sets=["drive.op=0.28", 'gc.victim="fifo"', "workload.synthetic.address={zipf=0.9}"]
        ).hash
    )
    with pytest.raises(nandlab.SpecError) as caught:
        nandlab.load("bogus = 1\n")
    assert caught.value.errors[0]["key"] == "bogus"
    assert isinstance(caught.value, nandlab.NandlabError)


def test_run_returns_summary_and_tables(spec_file, tmp_path):
    result = nandlab.run(spec_file, out=tmp_path / "r")
    assert result.complete
    assert result.name == "small"
    assert result.path == tmp_path / "r"
    assert result.summary["requests"] == 3000
    assert result.series["requests_read"].sum() == result.summary["host"]["read"]["count"]
    assert set(result.latency["op"].unique()) == {"read", "write"}
    assert result.numpy("blocks")["pe_cycles"].dtype == np.uint64
    assert result.sim["wall_s"] > 0
    with pytest.raises(KeyError, match="this run has series"):
        _ = result.requests


def test_a_result_that_is_read_equals_the_result_that_was_written(spec_file, tmp_path):
    written = nandlab.run(spec_file, out=tmp_path / "r", sets={"output.requests": True})
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


def test_threads_write_beside_each_other(tmp_path):
    """A thread that swept the parent directory removed the hidden directory that another thread had created and not
    locked yet. The write of the other thread then failed with "No such file or directory".
    """

    def write(name):
        for _ in range(200):
            whole.write_file(tmp_path / name, name.encode())

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, "abcd"))
    assert [(tmp_path / name).read_text() for name in "abcd"] == list("abcd")
    assert hidden(tmp_path) == []


def test_progress_is_reported_and_can_stop_the_run(spec_file):
    seen = []

    def progress(report):
        seen.append(report)
        return report.requests < 1000

    result = nandlab.run(spec_file, progress=progress, sets={"workload.repeat": 100_000})
    assert not result.complete
    assert 1000 <= result.summary["requests"] < 300_000_000
    assert [report.requests for report in seen] == sorted(report.requests for report in seen)


def test_the_results_leave_out_the_warm_up(spec_file):
    sets = {"output.requests": True}
    plain = nandlab.run(spec_file, sets=sets)
    none = nandlab.run(spec_file, sets={**sets, "workload.warm_up": 0})
    assert none.summary_text == plain.summary_text and none.summary.warm_up is None
    assert none.series.equals(plain.series) and none.table("requests").equals(plain.table("requests"))
    played, left_out = plain.summary.requests, plain.summary.requests // 3
    seen = []
    warm = nandlab.run(spec_file, sets={**sets, "workload.warm_up": left_out}, progress=seen.append)
    assert warm.complete and warm.summary.warm_up.requests == left_out
    assert warm.summary.requests == played - left_out
    assert warm.table("requests").equals(plain.table("requests")[left_out:])
    whole_s = warm.summary.warm_up.duration_s + warm.summary.duration_s
    assert whole_s == pytest.approx(plain.summary.duration_s, rel=1e-9)
    first = warm.series.row(0, named=True)
    assert first["time_s"] - first["interval_s"] == pytest.approx(warm.summary.warm_up.duration_s, rel=1e-9)
    assert warm.sim.requests == plain.sim.requests == played
    assert warm.sim.page_operations == plain.sim.page_operations


def test_a_warm_up_as_long_as_the_workload_is_refused(spec_file, tmp_path):
    requests = nandlab.run(spec_file).summary.requests
    with pytest.raises(nandlab.SpecError, match=r"workload\.warm_up"):
        nandlab.load(spec_file, {"workload.warm_up": requests})
    trace = tmp_path / "trace.csv"
    trace.write_text("".join(f"{1000 * number},host,0,Write,{4096 * number},4096,0\n" for number in range(10)))
    drive = SPEC[: SPEC.index("[workload")]
    spec = nandlab.load(f'{drive}[workload]\ntrace = "{trace}"\nformat = "msr"\nwarm_up = 10\n')
    with pytest.raises(nandlab.RunError, match=r"after 10 requests .* workload.warm_up = 10\n  remedy: "):
        nandlab.run(spec)
    assert nandlab.run(spec.with_({"workload.warm_up": 9})).summary.requests == 1


def test_an_error_in_the_progress_function_stops_the_run(spec_file, tmp_path):
    def progress(report):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        nandlab.run(spec_file, tmp_path / "r", progress, sets={"workload.repeat": 100_000})
    assert not (tmp_path / "r").exists()
    assert hidden(tmp_path) == []
    for thread in threading.enumerate():
        if thread.name == "nandlab-run":
            thread.join(2)
            assert not thread.is_alive()


def test_errors_of_the_core_are_raised_unchanged(spec_file, monkeypatch):
    for error in (nandlab.RunError("the drive is full"), ZeroDivisionError("a bug")):

        def step(self, ms, error=error):
            raise error

        run = type("Run", (), {"__init__": lambda self, *_: None, "step": step})
        monkeypatch.setattr(_core, "Run", run)
        with pytest.raises(type(error), match=str(error)):
            nandlab.run(spec_file)


@pytest.mark.parametrize("name", ["summary.json", "series.parquet", "nandlab-result.json"])
def test_a_disk_that_fills_up_leaves_the_earlier_result(spec_file, tmp_path, monkeypatch, name):
    nandlab.run(spec_file, tmp_path / "r", sets={"workload.synthetic.requests": 5})
    before = {path.name: path.read_bytes() for path in (tmp_path / "r").iterdir()}
    sync = os.fsync

    def full(handle):
        if os.readlink(f"/proc/self/fd/{handle}").endswith(name):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(handle)

    monkeypatch.setattr(os, "fsync", full)
    message = f"cannot write .*{name}: No space left on device\n  remedy: free some space"
    with pytest.raises(nandlab.OutputError, match=message):
        nandlab.run(spec_file, tmp_path / "r")
    assert {path.name: path.read_bytes() for path in (tmp_path / "r").iterdir()} == before
    assert hidden(tmp_path) == []


def test_threads_on_one_drive_get_a_sentence():
    """The text was "Already borrowed"."""
    drive = nandlab.Drive(nandlab.load(SPEC, {"drive.endurance": 10**6}))
    for page in range(100_000):
        drive.write(4096 * (7 * page % 400), 4096)
    other = threading.Thread(target=drive.run_until_idle, args=(1e6,))
    other.start()
    with contextlib.suppress(nandlab.RunError):
        # Until the other thread is in the drive.
        while drive.now_ns >= 0 and other.is_alive():
            time.sleep(0.001)
    sentence = "another thread uses this drive: .*\n  remedy: call the drive from one thread"
    uses = {
        "now_ns": lambda: drive.now_ns,
        "write": lambda: drive.write(0, 4096),
        "advance": lambda: drive.advance(10),
        "run_until_idle": drive.run_until_idle,
        "completions": drive.completions,
        "summary": drive.summary,
        "table": lambda: drive.table("blocks"),
        "audit": drive.audit,
    }
    for name, use in uses.items():
        assert other.is_alive(), f"{name}: the other thread has ended too early"
        with pytest.raises(nandlab.RunError, match=sentence):
            use()
    other.join()
    assert len(drive.completions()) == 100_000 and drive.outstanding == 0
    drive.audit()


def test_results_are_kept_by_queue_and_placement_once_a_request_has_one_that_is_not_0():
    drive = nandlab.Drive(nandlab.load(SPEC))
    drive.write(0, 4096)
    drive.run_until_idle()
    assert drive.summary().by_tag is None
    assert "by_tag" not in _core.Drive.summary(drive._core)
    drive.submit("write", 4096, 8192, queue=3)
    drive.run_until_idle()
    assert [len(done) for done in drive.completions()] == [6, 6]
    by_tag = drive.summary().by_tag
    assert {queue: of.host.write.bytes for queue, of in by_tag.queues.items()} == {0: 4096, 3: 8192}
    assert {placement: of.host.write.count for placement, of in by_tag.placements.items()} == {0: 2}
    with pytest.raises(nandlab.RunError, match="no placement 1: submit the request with placement 0"):
        drive.submit("write", 0, 4096, placement=1)


def test_a_rename_that_fails_leaves_the_earlier_result(spec_file, tmp_path, monkeypatch):
    nandlab.run(spec_file, tmp_path / "r", sets={"workload.synthetic.requests": 5})
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


def test_trace_statistics_and_conversion(tmp_path):
    (tmp_path / "a.csv").write_text("128166372003061629,hm,0,Write,0,4096,100\n")
    assert nandlab.trace.stat(tmp_path / "a.csv")["requests"] == 1
    assert nandlab.trace.stat(profile="msr/hm_0", requests=10)["requests"] == 10
    with pytest.raises(nandlab.OutputError, match="either a trace file or a profile"):
        nandlab.trace.stat()
    nandlab.trace.convert(tmp_path / "a.csv", tmp_path / "deep" / "a.log", to="fio-iolog")
    assert "write" in (tmp_path / "deep" / "a.log").read_text()


@given(st.one_of(st.floats(allow_nan=True, allow_infinity=True), st.integers(-(10**18), 10**18), st.none()))
def test_formatted_numbers_are_short(value):
    assert len(units.number(value)) <= 28 or abs(value) > 1e15
    if value is not None and 0 <= value < 1e15:
        assert units.duration(value) and units.size(value) and units.count(value)


def test_parquet_files_have_the_values_of_the_tables_and_the_same_bytes_when_saved_again(tmp_path):
    result = nandlab.run(SPEC, sets={"output.requests": True})
    first = result.save(tmp_path / "first")
    again = nandlab.RunResult.read(first).save(tmp_path / "again")
    nulls = 0
    for name in result.tables:
        data = (first / f"{name}.parquet").read_bytes()
        frame = pl.read_parquet(data)
        assert frame.schema == result.table(name).schema
        assert frame.equals(result.table(name), null_equal=True), name
        assert (again / f"{name}.parquet").read_bytes() == data
        nulls += sum(frame.null_count().row(0))
    assert nulls > 0


def test_a_parquet_file_refuses_columns_of_different_lengths_and_unknown_types():
    with pytest.raises(ValueError, match="b has 1 rows, the first has 2"):
        _core.parquet_file({"a": ("<u8", bytes(16)), "b": ("<f8", bytes(8))})
    with pytest.raises(ValueError, match="unknown type <i4"):
        _core.parquet_file({"a": ("<i4", bytes(4))})
