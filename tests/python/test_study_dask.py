"""Studies on a Dask cluster."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from study_lab import SLOW, STUDY, command, finished, outcome, start, traced, wait_for, wait_for_runs


@pytest.fixture
def scheduler(tmp_path):
    """The address of a scheduler on loopback, and a function that starts a worker; each process has its own folder."""
    pytest.importorskip("distributed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    processes = []

    def begin(*arguments, **environment):
        directory = tmp_path / f"dask{len(processes)}"
        directory.mkdir()
        with open(directory / "log", "w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "distributed.cli." + arguments[0], *arguments[1:]],
                cwd=directory,
                stdout=log,
                stderr=log,
                env=os.environ | environment,
            )
        processes.append(process)
        return process

    begin("dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard", "--no-show")

    def listening():
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    wait_for(listening)

    def worker(**environment):
        return begin("dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard", **environment)

    try:
        yield address, worker
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


@pytest.fixture
def cluster(scheduler):
    """A scheduler and two workers."""
    address, worker = scheduler
    return address, [worker(), worker()]


def other_program(tmp_path, file, more):
    """A folder with the same version of nandlab, in which a file has more bytes."""
    import nandlab

    shutil.copytree(Path(nandlab.__file__).parent, tmp_path / "other" / "nandlab")
    with open(tmp_path / "other" / "nandlab" / file, "ab") as changed:
        changed.write(more)
    return tmp_path / "other"


@pytest.fixture
def other_build(tmp_path):
    """A folder with the same version of nandlab, whose core has one more byte."""
    from nandlab import _core

    return other_program(tmp_path, Path(_core.__file__).name, b"\0")


@pytest.mark.parametrize("file", ["core", "simulate.py", "study/work.py"])
def test_a_dask_worker_of_another_program_is_refused_with_its_address(here, scheduler, tmp_path, file):
    """A worker with another core was refused, one with other Python modules did the runs."""
    from nandlab import _core
    from nandlab.study.plan import program_identity

    other = other_program(tmp_path, *((Path(_core.__file__).name, b"\0") if file == "core" else (file, b"# other\n")))

    address, worker = scheduler
    (here / "s.toml").write_text(STUDY)
    worker(PYTHONPATH=str(other))
    done = command("study", "s.toml", "--out", "o", "--dask", address, cwd=here)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    match = re.fullmatch(
        r"worker (tcp://127\.0\.0\.1:\d+): expected nandlab (\S+), found (\S+)\n  remedy: install the build .*\n",
        done.stderr,
    )
    assert match and match[2] == program_identity() != match[3]
    assert match[2].split("+")[0] == match[3].split("+")[0], "the versions differ: the build identity is not tested"
    assert not finished(here / "o")


def test_a_dask_worker_without_nandlab_is_refused_with_its_address(here, scheduler):
    address, worker = scheduler
    (here / "none" / "nandlab").mkdir(parents=True)
    (here / "none" / "nandlab" / "__init__.py").write_text('raise ImportError("not here")')
    worker(PYTHONPATH=str(here / "none"))
    done = command("study", "s.toml", "--out", "o", "--dask", address, cwd=here)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert re.match(r"worker tcp://127\.0\.0\.1:\d+ cannot load nandlab: ", done.stderr), done.stderr


def test_a_dask_worker_of_another_build_that_joins_later_ends_the_study(scheduler, other_build):
    import nandlab
    from nandlab.study.cluster import DaskWorkers

    address, worker = scheduler
    worker()
    workers = DaskWorkers(address, "send")
    try:
        worker(PYTHONPATH=str(other_build))
        with pytest.raises(
            nandlab.OutputError, match=r"(?s)worker tcp://\S+: expected nandlab .*finished runs are kept"
        ):
            wait_for(lambda: workers.poll(0.1))
    finally:
        workers.close()


def test_runs_of_a_killed_dask_worker_are_done_again(here, cluster):
    address, workers = cluster
    (here / "s.toml").write_text(STUDY.replace('set = { "gc.victim" = "fifo" }', SLOW.replace("60000", "400000")))
    assert command("study", "s.toml", "--out", "whole", cwd=here).returncode == 0
    process = start("study", "s.toml", "--out", "dask", "--dask", address, cwd=here)
    wait_for_runs(here / "dask", 1)
    before = len(finished(here / "dask"))
    workers[0].send_signal(signal.SIGKILL)
    out, err = process.communicate(timeout=180)
    assert process.returncode == 0, err
    assert 1 <= before < 8, "the worker was killed before the study was over"
    assert "8 runs done" in out
    assert outcome(here / "dask") == outcome(here / "whole")


@pytest.mark.parametrize("how", ["send", "path"])
def test_dask_workers_read_traces(tmp_path, cluster, how):
    address, _ = cluster
    traced(tmp_path)
    assert command("study", "s.toml", "--out", "local", cwd=tmp_path).returncode == 0
    done = command("study", "s.toml", "--out", "dask", "--dask", address, "--traces", how, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for name in ("results.parquet", "report.html", "claims.json"):
        assert (tmp_path / "dask" / name).read_bytes() == (tmp_path / "local" / name).read_bytes()
    one = next((tmp_path / "local" / "runs").iterdir())
    for name in ("summary.json", "spec.toml", "series.parquet"):
        assert (tmp_path / "dask" / "runs" / one.name / name).read_bytes() == (one / name).read_bytes()


def test_dask_workers_get_policies_in_python_by_value(here, cluster):
    address, _ = cluster
    (here / "helper.py").write_text("class Odd(Exception):\n    pass\n")
    (here / "mine.py").write_text(
        "import helper\nimport nandlab\n\n\n@nandlab.policy('gc.victim')\nclass Mine:\n"
        "    k: int = nandlab.param(9, low=0, high=9, help='nothing')\n\n"
        "    def pick(self, lane):\n        if self.k == 0:\n            raise helper.Odd('no victim')\n"
        "        full = (lane.state == lane.FULL).nonzero()[0]\n"
        "        return int(full[lane.valid[full].argmin()]) if len(full) else None\n"
    )
    study = STUDY.replace('"gc.victim" = "fifo"', '"gc.victim" = "mine"')
    (here / "s.toml").write_text(study)
    done = command("study", "s.toml", "--policy", "mine.py", "--out", "o", "--dask", address, cwd=here)
    assert done.returncode == 0, done.stderr
    local = command("study", "s.toml", "--policy", "mine.py", "--out", "l", "--workers", "2", cwd=here)
    assert local.returncode == 0, local.stderr
    assert outcome(here / "o") == outcome(here / "l")
    (here / "s.toml").write_text(study.replace('"gc.victim" = "mine"', '"gc.victim" = { mine = { k = 0 } }'))
    done = command("study", "s.toml", "--policy", "mine.py", "--out", "e", "--dask", address, cwd=here)
    assert done.returncode == 2 and "helper.Odd: no victim" in done.stderr and "in pick" in done.stderr, done.stderr


def test_a_missing_scheduler_is_reported(here):
    pytest.importorskip("distributed")
    done = command("study", "s.toml", "--dask", "tcp://127.0.0.1:9", cwd=here)
    assert done.returncode == 2
    assert "no Dask scheduler at tcp://127.0.0.1:9" in done.stderr
    assert "Traceback" not in done.stderr
