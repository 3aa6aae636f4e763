"""Runs of a study are done once, kept, and identified by their content; a killed study is resumed."""

import json
import os
import resource
import shutil
import signal
import subprocess
import time
from collections import deque
from pathlib import Path

import pytest
from study_lab import (
    BASE,
    SLOW,
    STUDY,
    TRACED,
    command,
    ended,
    finished,
    outcome,
    start,
    traced,
    wait_for,
    wait_for_runs,
)


def test_a_study_writes_figures_verdicts_and_a_report(here):
    done = command("study", "s.toml", "--workers", "2", cwd=here, pictures=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "8 runs done" in done.stdout
    assert "out/s/report.html" in done.stdout
    out = here / "out" / "s"
    assert all(data for data in outcome(out).values())
    assert len(finished(out)) == 8
    claims = {claim["id"]: claim for claim in json.loads((out / "claims.json").read_text())["claims"]}
    assert claims["low"]["verdict"] == "reproduced"
    assert claims["mean"]["verdict"] == "same direction"
    page = (out / "report.html").read_text()
    for text in ("Which victim?", "First in, first out", "a drive of a few blocks", "section 2", "drive.op", "<svg"):
        assert text in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert str(here) not in page
    again = command("study", "s.toml", cwd=here)
    assert "0 runs done, 8 kept" in again.stdout
    # A kept run is a complete result, of which a report can be made.
    assert command("report", out / "runs" / finished(out)[0], "--out", "r.html", cwd=here).returncode == 0


def test_results_are_one_table_with_a_row_per_run(here):
    import nandlab

    study = nandlab.Study.load(here / "s.toml")
    assert len(study.runs) == 8
    result = study.run(here / "o", workers=2)
    table = study.results
    assert table.height == 8
    assert set(table["variant"]) == {"greedy", "fifo"}
    assert set(table["drive.op"]) == {0.25, 0.5}
    assert table["run"].n_unique() == 8
    share = table["flash.program.gc"] / (table["flash.program.gc"] + table["flash.program.host"])
    assert (table["gc_share"] - share).abs().max() < 1e-12
    figure = result.figure("relative")
    assert (figure.filter(figure["series"] == "greedy")["y"] == 1.0).all()
    pandas = pytest.importorskip("pandas")
    assert isinstance(study.to_pandas(), pandas.DataFrame)
    assert list(study.to_pandas().columns) == table.columns


def test_a_change_of_python_modules_repeats_no_finished_run(here, monkeypatch):
    import nandlab
    from nandlab.study import plan

    before = nandlab.Study.load(here / "s.toml").runs
    monkeypatch.setattr(plan, "program_identity", lambda: "another program")
    after = nandlab.Study.load(here / "s.toml").runs
    assert [run.identity for run in after] == [run.identity for run in before]
    assert {run.task.build for run in after} == {"another program"} != {run.task.build for run in before}


def test_a_run_in_a_study_equals_the_same_run_alone(here):
    import nandlab

    study = nandlab.Study.load(here / "s.toml")
    study.run(here / "o", workers=1)
    for run in study.runs[:2]:
        alone = nandlab.run(run.spec, name="alone")
        assert (here / "o" / "runs" / run.identity / "summary.json").read_text() == alone.summary_text


def test_runs_that_share_a_preconditioned_drive_equal_runs_alone(here, monkeypatch):
    import nandlab
    from nandlab import _core, memory, simulate

    base = nandlab.load(here / "base.toml", {"precondition.map_reads": True, "precondition.valid": 0.5})
    others = [
        {},
        {"timing.read": "90us"},
        {"ecc.levels": "laldpc", "reliability.rber": {"vth": {"dvpp": 0.3}}},
        {"ftl.map.demand.cache": "1KiB"},
        {"ftl.map.demand.cache": "2KiB"},
        {"workload.synthetic.read_fraction": 0.9},
        {"reliability.retention": "30d", "workload.arrival": {"iops": 900}},
        {},
    ]
    specs = [base.with_(sets) for sets in others]
    assert [specs[0].precondition_key() == spec.precondition_key() for spec in specs] == [
        True, True, True, False, False, False, False, True,
    ]  # fmt: skip
    assert specs[3].precondition_key() == specs[4].precondition_key()
    shared = _core.SharedDrives()
    keys = []
    for spec in [spec for spec in specs for _ in range(2)]:
        alone, with_others = simulate.run(spec), simulate.run_sharing(spec, shared)
        assert with_others.summary_text == alone.summary_text
        assert with_others.series.equals(alone.series)
        keys.append(shared.kept)
    # The drive with age stamps is kept beside the one without.
    numbers = [1, 1, 2, 1, 1, 1, 1, 1]
    assert keys == [
        (spec.precondition_key(), number) for spec, number in zip(specs, numbers, strict=True) for _ in range(2)
    ]
    monkeypatch.setattr(memory, "runs_at_once", lambda specs: 1)
    assert simulate.run_sharing(specs[0], shared).summary_text == simulate.run(specs[0]).summary_text
    assert shared.kept == ("", 0)


def test_each_drive_of_a_study_is_preconditioned_by_one_worker(monkeypatch):
    from nandlab.study import local
    from nandlab.study.plan import Task

    class Process:
        def __init__(self):
            self.sent = []

        def send(self, task):
            self.sent.append(task.drive)

    monkeypatch.setattr(local, "_start", lambda: local._Worker(None, Process()))
    drives = ["a", "b", "c", None, "d"]
    tasks = deque(Task(f"{number}", "", "", "", (), (), "", drives[number % 5]) for number in range(100))
    workers = local.LocalWorkers(2)
    processes = [worker.connection for worker in workers._workers]
    began = []
    while tasks:
        task = workers.submit(tasks)
        began.append(task.identity)
        # The second worker is three times as fast as the first.
        for worker, share in zip(workers._workers, (3, 1), strict=True):
            if worker.tasks and len(began) % share == 0:
                worker.tasks.popleft()
    assert sorted(began, key=int) == [f"{number}" for number in range(100)]
    # Only when no drive is left that no worker has, a worker does runs of a drive that the other one has.
    first, second = ([drive for drive in process.sent if drive is not None] for process in processes)
    assert len(first) < len(second)
    shared = set(first) & set(second)
    assert len(shared) <= 1
    for sent in (first, second):
        changes = [drive for drive, before in zip(sent, [None, *sent], strict=False) if drive != before]
        assert len(changes) == len(set(changes)), changes


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The outcome of the slow study without any disturbance."""
    here = tmp_path_factory.mktemp("undisturbed")
    (here / "base.toml").write_text(BASE)
    (here / "s.toml").write_text(STUDY.replace('set = { "gc.victim" = "fifo" }', SLOW))
    assert command("study", "s.toml", "--out", "whole", cwd=here, pictures=True).returncode == 0
    return outcome(here / "whole")


def test_a_killed_and_resumed_study_equals_an_undisturbed_study(here, undisturbed):
    (here / "s.toml").write_text(STUDY.replace('set = { "gc.victim" = "fifo" }', SLOW))
    for wanted in (1, 3):
        process = start("study", "s.toml", "--out", "killed", "--workers", "2", cwd=here, pictures=True)
        wait_for_runs(here / "killed", wanted)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        process.communicate()
        assert len(finished(here / "killed")) >= wanted
        assert not (here / "killed" / "report.html").exists()
    before = {name: (here / "killed/runs" / name / "run.json").stat().st_mtime_ns for name in finished(here / "killed")}
    done = command("study", "s.toml", "--out", "killed", cwd=here, pictures=True)
    assert done.returncode == 0, done.stderr
    # The workers notice that their study was killed, and keep no further run.
    assert f"{8 - len(before)} runs done, {len(before)} kept" in done.stdout
    for name, changed in before.items():
        assert (here / "killed/runs" / name / "run.json").stat().st_mtime_ns == changed
    assert outcome(here / "killed") == undisturbed
    assert [path.name for path in (here / "killed").rglob(".*")] == [".lock"]


def children(pid):
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout
    return [int(line) for line in found.split()]


@pytest.mark.skipif(shutil.which("ps") is None, reason="needs ps")
def test_the_run_of_a_killed_worker_is_done_again(here, undisturbed):
    (here / "s.toml").write_text(STUDY.replace('set = { "gc.victim" = "fifo" }', SLOW))
    # A stopped worker keeps what it has, or is given a run, as long as there are some: it has at most two, of which the
    # second one waits in its connection. On a busy machine the study may be over before the worker is stopped.
    for _ in range(20):
        process = start("study", "s.toml", "--out", "hurt", "--workers", "2", cwd=here, pictures=True)
        while process.poll() is None and not finished(here / "hurt"):
            time.sleep(0.005)
        worker = next(iter(children(process.pid)), None)
        if worker is not None:
            os.kill(worker, signal.SIGSTOP)
            if len(finished(here / "hurt")) <= 3:
                break
            os.kill(worker, signal.SIGCONT)
        process.communicate(timeout=120)
        shutil.rmtree(here / "hurt")
    wait_for(lambda: len(finished(here / "hurt")) >= 6, process=process)
    os.kill(worker, signal.SIGKILL)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "lost and repeated" in out
    assert outcome(here / "hurt") == undisturbed


def test_ctrl_c_keeps_finished_runs_and_ends_all_workers(here):
    long = SLOW.replace("60000", "30000000")
    (here / "s.toml").write_text(STUDY.replace('set = { "gc.victim" = "fifo" }', long))
    process = start("study", "s.toml", "--out", "o", "--workers", "2", cwd=here)
    wait_for_runs(here / "o", 1)
    workers = children(process.pid) if shutil.which("ps") else []
    process.send_signal(signal.SIGINT)
    _, err = ended(process)
    assert process.returncode == 130
    assert "finished runs are kept" in err
    assert "Traceback" not in err
    assert finished(here / "o")
    for worker in workers:
        assert not Path(f"/proc/{worker}").exists()


def test_a_signal_whose_exception_was_dropped_ends_a_study_at_its_next_report():
    from nandlab.ends import Stop
    from nandlab.study.execute import State
    from nandlab.study.progress import StudyProgress

    with Stop() as stop:
        progress = StudyProgress("s", stop, bar=False)
        progress(State(total=1, kept=0))
        with stop.deferred():
            os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            progress(State(total=1, kept=0))


def test_two_studies_do_not_share_a_folder(here):
    import nandlab
    from nandlab.study.store import Store

    store = Store(here / "o")
    store.open("other")
    try:
        with pytest.raises(nandlab.OutputError, match="another study is writing"):
            nandlab.Study.load(here / "s.toml").run(here / "o")
    finally:
        store.close()
    (here / "mine").mkdir()
    (here / "mine" / "thesis.tex").write_text("years of work")
    with pytest.raises(nandlab.OutputError, match="do not belong to a study"):
        nandlab.Study.load(here / "s.toml").run(here / "mine")


def test_a_run_that_fails_keeps_the_others_and_writes_no_report(here):
    (here / "t.csv").write_text("128166372003061629,hm,0,Write,0,4096,100\nmalformed\n")
    text = STUDY.replace(
        '[workloads.skewed]\nset = { "workload.synthetic.address" = { zipf = 0.9 } }',
        '[workloads.skewed]\ntrace = "t.csv"\narrival = "trace"',
    )
    base = BASE.replace(
        'synthetic = { requests = 4000, read_fraction = 0.3, size = "4KiB", address = "uniform" }\n', ""
    )
    text = text.replace('"workload.synthetic.address" = "uniform"', '"workload.synthetic" = { requests = 4000 }')
    (here / "s.toml").write_text(text)
    (here / "base.toml").write_text(base)
    done = command("study", "s.toml", "--workers", "2", cwd=here)
    assert done.returncode == 2, done
    assert ":2" in done.stderr
    assert "4 of 8 runs failed" in done.stderr
    assert len(finished(here / "out/s")) == 4
    assert not (here / "out/s/report.html").exists()


def test_the_identity_of_a_run_follows_from_its_content(tmp_path):
    """Another path or time stamp of a trace leaves the identity of a run; another content or setting changes it."""
    import nandlab

    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        traced(tmp_path / name)

    def identity(name):
        return nandlab.Study.load(tmp_path / name / "s.toml").runs[0].identity

    first = identity("a")
    assert identity("b") == first
    trace = tmp_path / "b" / "t.csv"
    trace.write_text(trace.read_text().replace("Write,0,", "Write,8192,"))
    assert identity("b") != first
    (tmp_path / "a" / "t.csv").rename(tmp_path / "a" / "u.csv")
    (tmp_path / "a" / "s.toml").write_text(TRACED.replace("t.csv", "./u.csv"))
    assert identity("a") == first
    (tmp_path / "a" / "base.toml").write_text(
        (tmp_path / "a" / "base.toml").read_text().replace("seed = 3", "seed = 4")
    )
    assert identity("a") != first


def test_the_identity_of_a_run_depends_on_the_content_of_its_saved_drive(tmp_path):
    import nandlab

    alone = BASE.replace("requests = 4000", "requests = 400")
    nandlab.run(alone, save_drive=tmp_path / "a.drive")
    base = alone.split("[precondition]")[0] + "[workload]" + alone.split("[workload]")[1]
    (tmp_path / "base.toml").write_text(base)
    study = '[study]\ntitle = "T"\nquestion = "Q"\nbase = "base.toml"\n'
    (tmp_path / "s.toml").write_text(study + '[variants.aged]\nset = { "precondition.load" = "a.drive" }\n')
    first = nandlab.Study.load(tmp_path / "s.toml")
    assert first.run(tmp_path / "o", workers=1).results["requests"].to_list() == [400]
    nandlab.run(alone.replace("seed = 3", "seed = 4"), save_drive=tmp_path / "a.drive")
    assert nandlab.Study.load(tmp_path / "s.toml").runs[0].identity != first.runs[0].identity


def test_a_damaged_run_is_done_again(here):
    import nandlab

    study = nandlab.Study.load(here / "s.toml")
    study.run(here / "o", workers=2)
    before = outcome(here / "o")
    runs = finished(here / "o")
    (here / "o/runs" / runs[0] / "series.parquet").write_bytes(b"PAR1")
    (here / "o/runs" / runs[1] / "run.json").unlink()
    result = study.run(here / "o", workers=2)
    assert (result.runs_done, result.runs_kept) == (2, 6)
    assert outcome(here / "o") == before
    assert study.run(here / "o", workers=2, fresh=True).runs_done == 8
    assert outcome(here / "o") == before


ONE_RUN = '[study]\ntitle = "T"\nquestion = "Q"\nbase = "base.toml"\n'


@pytest.fixture
def kept(here):
    """A study of one run, which has been run; and the folder of this run."""
    import nandlab

    (here / "one.toml").write_text(ONE_RUN)
    study = nandlab.Study.load(here / "one.toml")
    assert study.run(here / "o", workers=1).runs_done == 1
    return study, here / "o" / "runs" / study.runs[0].identity


def test_a_kept_run_that_was_changed_at_the_same_size_is_done_again(kept):
    study, folder = kept
    before = (folder / "summary.json").read_text()
    changed = before.replace("1", "2", 1)
    assert len(changed) == len(before) and changed != before
    (folder / "summary.json").write_text(changed)
    result = study.run(folder.parents[1], workers=1)
    assert (result.runs_done, result.runs_kept) == (1, 0)
    assert (folder / "summary.json").read_text() == before
    result = study.run(folder.parents[1], workers=1)
    assert (result.runs_done, result.runs_kept) == (0, 1)


@pytest.mark.parametrize("without", ["sha256", "identity"])
def test_a_kept_run_without_checksums_or_identity_is_done_again(kept, without):
    study, folder = kept
    facts = json.loads((folder / "run.json").read_text())
    assert set(facts["sha256"]) == {path.name for path in folder.iterdir()} - {"run.json"}
    del facts[without]
    (folder / "run.json").write_text(json.dumps(facts))
    assert study.run(folder.parents[1], workers=1).runs_done == 1


def test_equal_runs_are_done_once(here):
    import nandlab

    (here / "s.toml").write_text(STUDY.replace('set = { "gc.victim" = "fifo" }', 'set = { "gc.victim" = "greedy" }'))
    result = nandlab.Study.load(here / "s.toml").run(here / "o", workers=2)
    assert result.runs_done == 4
    assert result.results.height == 8


def test_a_hundred_short_runs(here, capsys):
    """Prints the load of the processors and the overhead per run; the test has no limit of time."""
    import nandlab

    seeds = ", ".join(str(seed) for seed in range(100))
    (here / "s.toml").write_text(
        '[study]\ntitle = "T"\nquestion = "Q"\nbase = "base.toml"\n'
        f'[variants.one]\nset = {{ "workload.synthetic.requests" = 50000 }}\n[grid]\nseed = [{seeds}]\n'
    )
    study = nandlab.Study.load(here / "s.toml")
    cores = len(os.sched_getaffinity(0))
    alone = []
    for number, run in enumerate(study.runs[:10]):
        begin = time.perf_counter()
        nandlab.run(run.spec, here / f"alone{number}")
        alone.append(time.perf_counter() - begin)
    before = resource.getrusage(resource.RUSAGE_CHILDREN), resource.getrusage(resource.RUSAGE_SELF)
    begin = time.perf_counter()
    result = study.run(here / "o", workers=2)
    wall_s = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN), resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = sum(b.ru_utime + b.ru_stime - a.ru_utime - a.ru_stime for a, b in zip(before, after, strict=True))
    run_s = sorted(alone)[len(alone) // 2]
    runs_s = json.loads((here / "o" / "sim.json").read_text())["runs_wall_s"] / 100
    assert (result.runs_done, result.results.height, len(finished(here / "o"))) == (100, 100, 100)
    with capsys.disabled():
        print(f"\n100 runs on 2 workers ({cores} cores): {wall_s:.1f} s, {cpu_s:.1f} s CPU, {cpu_s / wall_s:.2f} busy")
        print(
            f"a run alone {1e3 * run_s:.0f} ms, in a worker {1e3 * runs_s:.0f} ms, "
            f"with overhead {20 * wall_s:.0f} ms of a worker"
        )
