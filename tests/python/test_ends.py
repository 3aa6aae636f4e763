"""How nandlab ends: on signals, when it is killed, when files cannot be written, when stdout or stderr is unusable."""

import errno
import fcntl
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import nandlab
import pytest
from conftest import NANDLAB, hidden, over
from nandlab import whole
from study_lab import WITHOUT_PICTURES, wait_for


@pytest.fixture(autouse=True)
def sighup_is_not_ignored():
    """Restores the default action of SIGHUP, because under `nohup` all child processes of these tests ignore it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


STOPS = [(signal.SIGINT, 130, "Ctrl-C"), (signal.SIGTERM, 143, "SIGTERM"), (signal.SIGHUP, 129, "SIGHUP")]
#: A run with this setting takes minutes.
SLOW = ("--set", "workload.repeat=100000")

DRIVE = """\
seed = 1
[drive]
channels = 1
chips_per_channel = 1
planes_per_die = 1
blocks_per_plane = 32
pages_per_block = 16
page_size = "4KiB"
cell = "mlc"
op = 0.25
endurance = 3000
[reliability]
rber.vth = { dvpp = 0.38, cell_to_cell = 0.05 }
[ecc]
levels = "laldpc"
[workload.synthetic]
requests = 500
read_fraction = 0.5
size = "4KiB"
address = "uniform"
"""


@pytest.fixture
def lab(tmp_path):
    """A directory with a small spec."""
    (tmp_path / "spec.toml").write_text(DRIVE)
    return tmp_path


def start(where, *arguments, command=NANDLAB, **options):
    return subprocess.Popen(
        [*command, *map(str, arguments)],
        cwd=where,
        env=os.environ | {"NO_COLOR": "1", "COLUMNS": "100", "TMPDIR": str(where)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def finish(process):
    out, err = process.communicate(timeout=30)
    assert "Traceback" not in err and "bug in nandlab" not in err
    return process.returncode, out, err


def run(where, *arguments, **options):
    return finish(start(where, *arguments, **options))


def started(where, *arguments, **options):
    """Starts a run; returns its process 0.3 s after the hidden output directory has appeared."""
    process = start(where, "run", *arguments, "--out", "r", **options)
    wait_for(lambda: list(where.glob(".r.partial-*")), 120, process)
    time.sleep(0.3)
    return process


# ------------------------------------------------------------------------------------------------------------- signals


@pytest.mark.parametrize(("number", "status", "name"), STOPS)
def test_a_signal_keeps_the_finished_part_of_a_run(spec_file, tmp_path, number, status, name):
    process = started(tmp_path, spec_file, *SLOW)
    process.send_signal(number)
    begin = time.monotonic()
    ended, out, err = finish(process)
    assert time.monotonic() - begin < 5
    assert ended == status and f"stopped by {name} after" in err and "IOPS" in out
    assert '"complete": false' in err
    summary = json.loads((tmp_path / "r/summary.json").read_text())
    assert summary["complete"] is False and 0 < summary["requests"] < 300_000_000
    assert json.loads((tmp_path / "r/nandlab-result.json").read_text())["complete"] is False
    assert hidden(tmp_path) == []


#: A `Run` whose constructor takes 20 s.
PRECONDITIONING = "class Run:\n    def __init__(self, *_): time.sleep(20)\n"
#: A `Run` whose second step takes 20 s.
STUCK = """
class Run:
    steps = 0
    def __init__(self, *_): pass
    def step(self, ms):
        time.sleep(20 * self.steps)
        self.steps += 1
        counts = dict(requests=1, sim_time_s=0.1, page_operations=1)
        return dict(phase="run", done=False, progress=0.1, note=None, **counts)
"""


def test_sigterm_before_the_first_request_leaves_no_output(spec_file, tmp_path):
    process = started(tmp_path, spec_file, command=over(PRECONDITIONING))
    process.send_signal(signal.SIGTERM)
    status, _, err = finish(process)
    assert status == 143 and "stopped by SIGTERM before the first request: there is no result" in err
    assert os.listdir(tmp_path) == [spec_file.name]


def test_two_signals_at_once_count_as_one(spec_file, tmp_path):
    """`timeout` and terminals may send a signal twice."""
    process = started(tmp_path, spec_file, *SLOW)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.05)
    process.send_signal(signal.SIGHUP)
    status, _, err = finish(process)
    assert status == 143 and "stopped by SIGTERM after" in err and (tmp_path / "r").exists()


def test_a_second_signal_ends_the_process_at_once(spec_file, tmp_path):
    process = started(tmp_path, spec_file, command=over(STUCK))
    process.send_signal(signal.SIGTERM)
    time.sleep(0.7)
    process.send_signal(signal.SIGTERM)
    status, _, err = finish(process)
    assert status == 143 and "stopped by SIGTERM" in err
    assert os.listdir(tmp_path) == [spec_file.name]


def test_sighup_is_ignored_under_nohup(spec_file, tmp_path):
    nohup = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)}
    process = started(tmp_path, spec_file, "--set", "workload.repeat=100", **nohup)
    process.send_signal(signal.SIGHUP)
    assert finish(process)[0] == 0
    assert json.loads((tmp_path / "r/summary.json").read_text())["complete"] is True


@pytest.mark.parametrize("arguments", [("stat", "pipe"), ("convert", "pipe", "--to", "spc", "--out", "out.spc")])
@pytest.mark.parametrize(("number", "status", "name"), STOPS)
def test_a_signal_ends_a_command_that_waits_for_a_trace(tmp_path, arguments, number, status, name):
    os.mkfifo(tmp_path / "pipe")  # nobody writes to it, so a read waits for ever
    process = start(tmp_path, "trace", *arguments, "--format", "msr")
    writer = os.open(tmp_path / "pipe", os.O_WRONLY)  # waits until the command has opened the pipe
    process.send_signal(number)
    ended, out, err = finish(process)
    os.close(writer)
    assert (ended, out, err) == (status, "", f"stopped by {name}: unfinished work is not kept\n")
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_signal_ends_a_command_that_waits_for_the_reader_of_its_output(tmp_path):
    process = start(tmp_path, "spec", "schema")
    fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
    assert select.select([process.stdout], [], [], 60)[0]  # the command has begun to write
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 143
    assert finish(process)[2] == "stopped by SIGTERM: unfinished work is not kept\n"


def test_sigterm_keeps_the_finished_windows_of_a_life(lab):
    long = ("--full", "--windows", 2000, "--requests", 500, "--set", "drive.endurance=100000")
    process = start(lab, "life", "spec.toml", *long, "--out", "o")
    wait_for(lambda: list(lab.glob(".o.partial-*")), 120, process)
    time.sleep(1)
    process.send_signal(signal.SIGTERM)
    status, _, err = finish(process)
    assert status == 143 and "stopped by SIGTERM: o has the finished windows" in err
    assert json.loads((lab / "o/life.json").read_text())["complete"] is False and (lab / "o/report.html").exists()
    assert hidden(lab) == []


STUDY = """\
[study]
title = "Ends"
question = "?"
base = "spec.toml"
[variants]
short = { set = {} }
long = { set = { "workload.synthetic.requests" = 300000000 } }
[[figures]]
id = "waf"
title = "WAF"
kind = "bar"
over = "variant"
metric = "waf"
"""


@pytest.mark.parametrize(("number", "status", "name"), STOPS[1:])
def test_a_signal_keeps_the_finished_runs_of_a_study(lab, number, status, name):
    (lab / "s.toml").write_text(STUDY)
    process = start(lab, "study", "s.toml", "--out", "o", "--workers", 2)
    wait_for(lambda: list(lab.glob("o/runs/*/run.json")), 120, process)
    process.send_signal(number)
    ended, _, err = finish(process)
    assert ended == status and f"stopped by {name}: finished runs are kept" in err
    assert len(list(lab.glob("o/runs/*/run.json"))) == 1
    assert hidden(lab) == [".lock"]
    assert not list(lab.glob("nandlab-study-*")), "a worker has not removed its temporary directory"


def test_ctrl_c_interrupts_the_python_functions_at_once(lab):
    program = """
import os, signal, time
import nandlab
from nandlab import life, run, trace  # imported here, because the import takes time
spec = nandlab.load("spec.toml", ["workload.repeat=1000000"])
os.mkfifo("pipe")  # nobody writes to it, so a read waits for ever
signal.signal(signal.SIGALRM, signal.default_int_handler)
for call in (
    lambda: run(spec, "out", save_drive="drive.bin"),
    lambda: life(spec, "out", sets={"drive.endurance": 1000000}, full=True),
    lambda: trace.stat("pipe", format="msr"),
    lambda: trace.convert("pipe", "out.spc", to="spc", format="msr"),
):
    signal.setitimer(signal.ITIMER_REAL, 0.4)
    began = time.monotonic()
    try:
        call()
    except KeyboardInterrupt:
        print(time.monotonic() - began < 0.6)
print(sorted(os.listdir(".")))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=lab, capture_output=True, text=True, timeout=60)
    assert done.stdout == "True\n" * 4 + "['drive.bin', 'pipe', 'spec.toml']\n", done.stderr
    assert done.returncode == 0


# ------------------------------------------------------------------------------------------- processes that are killed


def dead_pid():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_the_next_run_removes_the_files_of_a_killed_run(spec_file, tmp_path):
    process = started(tmp_path, spec_file, *SLOW)
    process.kill()
    process.communicate()
    assert len(os.listdir(tmp_path)) == 2
    assert run(tmp_path, "run", spec_file, "--out", "r")[0] == 0
    assert hidden(tmp_path) == []


def test_the_partial_files_of_a_running_run_are_not_removed(spec_file, tmp_path):
    process = started(tmp_path, spec_file, *SLOW)
    (there,) = hidden(tmp_path)
    assert run(tmp_path, "run", spec_file, "--out", "other")[0] == 0
    assert run(tmp_path, "run", spec_file, "--out", "r", "--set", "workload.synthetic.requests=7")[0] == 0
    assert hidden(tmp_path) == [there]
    process.send_signal(signal.SIGTERM)
    assert finish(process)[0] == 143
    assert hidden(tmp_path) == []


def test_partial_files_are_removed_only_if_no_other_process_has_their_pid_or_lock(tmp_path):
    dead = dead_pid()
    swept, locked, reused = (tmp_path / f".r.partial-{rest}" for rest in (dead, f"{dead}-abcdef", os.getppid()))
    same = tmp_path / f".r.partial-{os.getpid()}-abcdef"  # left by a container in which nandlab had this PID
    for directory in (swept, locked, reused, same):
        (directory / "new").mkdir(parents=True)
    lock = os.open(locked, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    whole.write_file(tmp_path / "x", b"1")
    assert hidden(tmp_path) == sorted([locked.name, reused.name])
    os.close(lock)
    whole.write_file(tmp_path / "x", b"2")
    assert hidden(tmp_path) == [reused.name]
    assert (tmp_path / "x").read_bytes() == b"2"


def test_without_file_locks_no_partial_files_are_removed(spec_file, tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    left = tmp_path / f".r.partial-{dead_pid()}"
    left.mkdir()
    monkeypatch.setattr(fcntl, "flock", flock)
    nandlab.run(spec_file, tmp_path / "r")
    nandlab.run(spec_file, tmp_path / "r")
    assert nandlab.RunResult.read(tmp_path / "r").complete
    assert hidden(tmp_path) == [left.name]


CRASH = """
import os
from nandlab.cli import main
rename = os.rename
def crash(source, target):
    rename(source, target)
    if str(target).endswith("old"):
        os._exit(9)
os.rename = crash
main()
"""


def test_a_result_whose_replacement_crashed_is_restored(spec_file, tmp_path):
    """The process ends after the old result is renamed, and before the new result has the name."""
    assert run(tmp_path, "run", spec_file, "--out", "r")[0] == 0
    before = (tmp_path / "r/summary.json").read_bytes()
    crash = [sys.executable, "-c", CRASH]
    assert (
        run(tmp_path, "run", spec_file, "--out", "r", "--set", "workload.synthetic.requests=7", command=crash)[0] == 9
    )
    assert not (tmp_path / "r").exists()
    failing = over("class Run:\n    def __init__(self, *_): raise _core.RunError('it fails')\n")
    assert run(tmp_path, "run", spec_file, "--out", "r", command=failing)[0] == 2
    assert (tmp_path / "r/summary.json").read_bytes() == before
    assert hidden(tmp_path) == []


def test_ctrl_c_while_a_result_is_replaced_leaves_the_earlier_one(spec_file, tmp_path, monkeypatch):
    nandlab.run(spec_file, tmp_path / "r", sets={"workload.synthetic.requests": 5})
    rename = os.rename

    def interrupted(source, target):
        rename(source, target)
        if str(target).endswith("old") or ".old-" in str(target):
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        nandlab.run(spec_file, tmp_path / "r")
    assert nandlab.RunResult.read(tmp_path / "r").summary["requests"] == 5
    assert hidden(tmp_path) == []


def test_write_file_replaces_only_files(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(nandlab.OutputError, match="not replaced"):
        whole.write_file(tmp_path / "pipe", b"")
    for directory in (tmp_path, Path("/"), Path(""), Path(".."), tmp_path / "none" / ".."):
        with pytest.raises(nandlab.OutputError, match="cannot write"):
            whole.write_file(directory, b"")
    whole.write_file(tmp_path / "old", b"1")
    assert (tmp_path / "old").read_bytes() == b"1"


def test_no_file_is_written_directly_under_its_final_name():
    """Every file gets its final name when it is complete; only the empty `.lock` of a study has its name at once."""
    writing = re.compile(r"open\([^)]*\"[rwxab+]*[wxa+]|\.write_text\(|\.write_bytes\(")
    package = Path(nandlab.__file__).parent
    found = {
        f"{file.relative_to(package)}: {line.strip()}"
        for file in package.rglob("*.py")
        for line in file.read_text().splitlines()
        if writing.search(line)
    }
    assert found == {
        'whole.py: with open(path, "xb") as file:',
        # In a temporary folder.
        "batches.py: (folder / trace.name).write_bytes(trace.content)",
        # Files of a temporary folder, and a lock there.
        "power_test/checks.py: path.write_text(text)",
        'power_test/checks.py: with (work.parent / f"loop-{os.getpid() % LOOP_DEVICES}").open("w") as lock:',
        # A journal: a last line that is not whole is dropped.
        'ldpc/parts.py: with ThreadPoolExecutor(self._workers) as pool, self._path.open("a", encoding="utf-8") as file:',  # noqa: E501
        'study/store.py: self._lock = open(path / ".lock", "w")  # noqa: SIM115  # held until close()',
        'study/work.py: with open(partial, "r+b" if offset else "wb") as out:',
    }


# ------------------------------------------------------------------------------- places and streams that cannot be used


@pytest.mark.parametrize("out", ["/", "", ".", "..", "none/.."])
@pytest.mark.parametrize("name", ["run", "life"])
def test_an_output_directory_that_cannot_be_replaced_is_refused(lab, name, out):
    status, printed, err = run(lab, name, "spec.toml", "--out", out)
    assert (status, printed, len(err.splitlines())) == (2, "", 1)
    assert "cannot be replaced as a whole" in err
    assert os.listdir(lab) == ["spec.toml"]


#: By command that prints: what the error about stdout says of the files that were written.
PRINTING = {
    "--help": None,
    "--version": None,
    "run --help": None,
    "run spec.toml --out o": "the result is in o",
    "run spec.toml --out o --json": "the result is in o",
    "life spec.toml --windows 2 --requests 200 --out o": "the life is in o",
    "life spec.toml --windows 2 --requests 200 --out o --json": "the life is in o",
    "study s.toml --workers 1 --out o": "the study is in o",
    "study s.toml --workers 1 --out o --json": "the study is in o",
    "study s.toml --check": None,
    "report result": "result/report.html is written",
    "reliability spec.toml": None,
    "reliability spec.toml --out o.csv --json": "o.csv is written",
    "trace stat --profile msr/hm_0 --requests 100": None,
    "trace convert --profile msr/hm_0 --requests 100 --to blkparse --out o --force": "written: o",
    "trace formats": None,
    "trace profiles --json": None,
    "spec check spec.toml": None,
    "spec show spec.toml": None,
    "spec fit spec.toml --json": None,
    "spec schema": None,
    "spec presets": None,
}


@pytest.mark.parametrize("arguments", PRINTING)
def test_unusable_stdout_gives_an_error_that_names_the_written_files(lab, arguments):
    kept = PRINTING[arguments]
    (lab / "s.toml").write_text(STUDY.replace("300000000", "600"))
    if arguments.startswith("report"):
        assert run(lab, "run", "spec.toml", "--out", "result")[0] == 0
    end = f"; {kept}\n" if kept else "\n"
    closed_pipe, pipe = os.pipe()
    os.close(closed_pipe)
    with open("/dev/full", "w") as full, os.fdopen(pipe, "w") as gone:
        for options, status, text in (
            ({"preexec_fn": lambda: os.close(1)}, 3, f"cannot write to stdout: Bad file descriptor{end}"),
            ({"stdout": full}, 3, f"cannot write to stdout: No space left on device{end}"),
            ({"stdout": gone}, 141, f"cannot write to stdout: Broken pipe{end}" if kept else ""),
        ):
            program = WITHOUT_PICTURES if arguments.startswith("study") else NANDLAB
            command = [*program, *arguments.split()]
            done = subprocess.run(command, cwd=lab, stderr=subprocess.PIPE, text=True, timeout=60, **options)
            assert done.returncode == status, done.stderr
            error_lines = done.stderr.splitlines(keepends=True)
            assert "".join(error_lines[-1:]) == text
            assert len(error_lines) <= 1 or "spec fit" in arguments, done.stderr
    if kept and kept.startswith("o "):
        assert (lab / "o").is_dir()


def test_unusable_stderr_changes_no_result(lab):
    with open("/dev/full", "w") as full:
        for options in ({"stderr": full}, {"preexec_fn": lambda: os.close(2)}):
            for arguments, status in ((("run", "spec.toml", "--out", "o"), 0), (("run", "none.toml"), 2)):
                done = subprocess.run([*NANDLAB, *arguments], cwd=lab, stdout=subprocess.PIPE, timeout=60, **options)
                assert done.returncode == status
                assert (b"WAF" in done.stdout) == (status == 0)
        closed = {"preexec_fn": lambda: os.closerange(0, 3)}
        assert (
            subprocess.run([*NANDLAB, "run", "spec.toml", "--out", "o"], cwd=lab, timeout=60, **closed).returncode == 3
        )
    assert json.loads((lab / "o/summary.json").read_text())["complete"] is True
