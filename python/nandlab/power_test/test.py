"""`nandlab.powertest`: power cuts at chosen instants under a program, and which promise each of them broke."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

from nandlab import _core, memory, units
from nandlab.errors import OutputError
from nandlab.power_test import session
from nandlab.power_test.instants import BEGIN, Moments, choose
from nandlab.simulate import recorded_spec
from nandlab.spec import Spec, read_live
from nandlab.whole import write_file

#: Files in the folder of a power test.
RECORDING, RESULT, JUNIT, PAGE = "session.rec", "powertest.json", "junit.xml", "powertest.html"
#: What is known of the session beside its recording: the mount options, and the calls of fsync.
FACTS = "session.json"
#: The page of one cut, in its folder.
CUT_PAGE = "cut.html"
#: So many broken cuts, the first ones, keep their image.
_KEPT = 3
#: The most lost units that are listed for a cut.
_UNITS_MAX = 1_000
#: The most images that are checked to make a case smaller, and the most events that are tried before a cut.
_TRIES_MAX, _EVENTS_MAX = 60, 100
#: The time of these, as a share of the budget of the cuts.
_SEARCH_SHARE = 0.5
#: Checks at the same time: a kernel mounts one btrfs of an identity at a time, and has eight loop devices.
_JOBS_MAX = {"btrfs": 1, "xfs": 8}
#: The cuts of the first round of a test with a budget of time; each round has twice as many.
_ROUND = 32
_FILE_SYSTEMS = ("ext4", "xfs", "btrfs", "none")


@dataclass
class Cut:
    """A power cut, and what the check said of the drive after it."""

    number: int
    #: Simulated time of the cut, in nanoseconds.
    at_ns: int
    passed: bool
    status: int | None
    output: str
    reason: str
    #: Lines that were acknowledged before the cut.
    acked: int
    #: Units whose writes are lost, by promise: covered, acknowledged, in_flight.
    lost: dict[str, int]
    unreadable: int
    #: `None` for a cut that passed; else drive, file system, program, program or file system, or check.
    verdict: str | None
    evidence: dict[str, Any] | None
    #: CPU time of the cut without its checks, in seconds.
    cpu_s: float
    #: Whether power failed once more in recovery.
    cut_again: bool = False
    lost_units: list[dict[str, Any]] = field(default_factory=list)


@dataclass(repr=False)
class PowerTest:
    """The result of a power test."""

    path: Path
    cuts: list[Cut]
    #: The images at the beginning and at the end pass; else the failed one, with the output of its check.
    controls: dict[str, Any]
    #: The smallest case of the first broken cut; `None` when none is broken.
    smallest: dict[str, Any] | None
    wall_s: float
    #: Cuts that were asked for and that the budget left out.
    left_out: int
    #: The drive: cell, whether it has a capacitor, write cache or buffer.
    drive: str
    #: Whether power failed once more in recovery.
    second_cut: bool
    #: Requests of the workload and of the sync after it.
    requests: int
    #: Lines that the workload has acknowledged.
    acknowledged: int
    #: Simulated time of the workload and of the sync after it.
    simulated_s: float
    check: str
    #: What the image of a cut is made from again.
    repeat: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        broken = ", ".join(f"{number} by {verdict}" for verdict, number in self.verdicts().items())
        return f"<PowerTest {self.path}: {len(self.cuts)} cuts of {self.drive}; broken: {broken or 'none'}>"

    @property
    def broken(self) -> list[Cut]:
        """The cuts after which the check failed."""
        return [cut for cut in self.cuts if not cut.passed]

    @property
    def passed(self) -> bool:
        """Whether no cut broke the check."""
        return not self.broken

    def verdicts(self) -> dict[str, int]:
        """The number of broken cuts by verdict."""
        found: dict[str, int] = {}
        for cut in self.broken:
            found[cut.verdict or "check"] = found.get(cut.verdict or "check", 0) + 1
        return found


def powertest(
    spec: str | os.PathLike[str],
    *,
    check: str,
    workload: str | None = None,
    setup: str | None = None,
    cuts: int = 100,
    fs: str = "ext4",
    mount_options: str = "",
    sets: Sequence[str] = (),
    seed: int = 1,
    budget_s: float | None = None,
    check_limit_s: float = 60.0,
    recording: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    second_cut: bool = False,
    progress: Callable[[int, int, int], None] | None = None,
) -> PowerTest:
    """Record a program on a live drive, and cut the drive's power at many instants of the recording.

    `workload`, `setup` and `check` are commands for the shell. The first two run once, in the mounted file system of
    the drive (`fs`); the check runs after each cut, in the files of the drive as they are after recovery, and fails
    with a status other than 0. Lines that the workload writes to the pipe `$NANDLAB_ACK` count as acknowledged;
    `$NANDLAB_ACKED` of the check has those before the cut. `recording` repeats with the recording of an earlier test.
    With `second_cut` power fails once more while the drive recovers, at a time that the seed draws.

    `progress` is called with the cuts done, those to do, and those broken.

    Raises `OutputError` for arguments that are refused, and when set-up, workload or a control fails.
    """
    begin = time.monotonic()
    facts: dict[str, Any] = {}
    _check_arguments(fs, cuts, jobs, workload, setup, recording)
    # A spec that is refused is so before anything is made of it.
    asked = read_live(Path(spec), sets)
    folder = Path(out) if out is not None else Path("out") / f"{Path(spec).stem}-powertest"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / RECORDING if recording is None else Path(recording)
    if recording is None:
        path.unlink(missing_ok=True)
        assert workload is not None
        facts = session.record(
            Path(spec), path, fs=fs, mount_options=mount_options, setup=setup, workload=workload, sets=sets
        )
        write_file(path.with_name(FACTS), (json.dumps(facts) + "\n").encode())
    resolved, moments = _played(path)
    if recording is not None:
        _check_same(asked, resolved, path)
        with contextlib.suppress(OSError, ValueError):
            facts = json.loads(path.with_name(FACTS).read_text())
        if facts.get("fs", fs) != fs:
            raise OutputError(f"--fs: {path} was recorded with {facts['fs']}\n  remedy: --fs {facts['fs']}")
        if mount_options:
            facts["mount_options"] = mount_options
    flushes = sum(moments.begin <= at <= moments.end for at in moments.flushes)
    if moments.synced <= moments.begin:
        raise OutputError(
            f"{path}: no simulated time passes in the workload and in the sync after it, so there is nothing to cut\n"
            "  remedy: a workload that writes"
        )
    for old in folder.glob("cut-*"):
        shutil.rmtree(old, ignore_errors=True)
    how = {"fs": fs, "command": check, "limit_s": check_limit_s, "folder": os.getcwd()}
    with _job(path, moments, folder, how, jobs, seed) as job:
        job["facts"] = {**facts, "flushes": flushes}
        controls = _controls(job, moments, second_cut=second_cut)
        if budget_s is not None:
            job["deadline_s"] = begin + budget_s
        done: list[Cut] = []
        number_broken = 0
        chosen = list(enumerate(choose(moments, cuts, seed)))
        for group in _rounds(chosen, seed, budget_s):
            for row in _fork(job, "cuts", group):
                done.append(_cut_of(row))
                number_broken += not done[-1].passed
                if progress is not None:
                    progress(len(done), cuts, number_broken)
            if budget_s is not None and time.monotonic() - begin >= budget_s:
                break
        if not done:
            raise OutputError(
                f"--budget: no cut fits into {units.duration(budget_s or 0.0)}, with the session and the controls\n"
                f"  remedy: a longer one, or --recording {path}"
            )
        # The search for the smallest case ends, too.
        job["deadline_s"] = None if budget_s is None else time.monotonic() + _SEARCH_SHARE * budget_s
        done.sort(key=lambda cut: cut.number)
        broken = [cut for cut in done if not cut.passed and cut.verdict != "check"]
        smallest = _smallest(job, moments, done, broken[0]) if broken else None
        job["deadline_s"] = None
        kept = [(cut.number, cut.at_ns) for cut in done if not cut.passed][:_KEPT]
        rows = sorted(_fork(job, "keep", kept), key=itemgetter("number")) if kept else []
    result = PowerTest(
        path=folder,
        cuts=done,
        controls=controls,
        smallest=smallest,
        wall_s=time.monotonic() - begin,
        left_out=cuts - len(done),
        drive=_drive(json.loads(resolved.canonical_json())),
        second_cut=second_cut,
        requests=sum(moments.begin <= of[0] <= moments.synced for of in moments.requests),
        acknowledged=len(moments.acknowledged) - len(moments.lines_until(moments.begin - 1)),
        simulated_s=(moments.synced - moments.begin) * 1e-9,
        check=check,
        repeat={
            "recording": None if recording is None else os.fspath(path.absolute()),
            "fs": fs,
            "seed": seed,
            "cuts": cuts,
            "second_ns": job["second_ns"],
        },
    )
    from nandlab.power_test.report import write

    write(result, moments, rows)
    return result


def _played(path: Path) -> tuple[Spec, Moments]:
    """The spec of a recording, and what happens in it."""
    spec = recorded_spec(path)
    return spec, Moments.of(_core.recording_moments(os.fspath(path), spec))


@contextlib.contextmanager
def _job(
    path: Path, moments: Moments, folder: Path, how: dict[str, Any], jobs: int | None, seed: int
) -> Iterator[dict[str, Any]]:
    """What the process that forks is told, with a temporary folder for images."""
    # A check that is still running at an interrupt may write there.
    place = tempfile.TemporaryDirectory(prefix="nandlab-cuts-", dir=_room(), ignore_cleanup_errors=True)
    with place as images:
        Path(images).chmod(0o711)
        yield {
            "recording": os.fspath(path),
            "memory": (memory.available() or 1 << 33) // 2,
            "folder": images,
            "kept": os.fspath(folder.absolute()),
            "how": how,
            "jobs": min(jobs or os.cpu_count() or 1, _JOBS_MAX.get(how["fs"], 1 << 16)),
            "acked": [line for _, line in moments.acknowledged],
            "acked_before": len(moments.lines_until(moments.begin - 1)),
            "units_max": _UNITS_MAX,
            "tries_max": _TRIES_MAX,
            "facts": {},
            "second_ns": None,
            "deadline_s": None,
            "seed": seed,
        }


def _room() -> str | None:
    """A folder in memory for images if there is one with room, else the usual one."""
    shared = Path("/dev/shm")
    if shared.is_dir() and os.access(shared, os.W_OK) and shutil.disk_usage(shared).free > 1 << 30:
        return os.fspath(shared)
    return None


def _rounds(chosen: list[tuple[int, int]], seed: int, budget_s: float | None) -> Iterator[list[tuple[int, int]]]:
    """The cuts in the order in which they are done: by time, and with a budget in rounds over the whole time."""
    if budget_s is None:
        yield chosen
        return
    import random

    left = list(chosen)
    random.Random(f"rounds {seed}").shuffle(left)
    size = _ROUND
    while left:
        yield sorted(left[:size], key=lambda one: one[1])
        left, size = left[size:], 2 * size


def _fork(job: dict[str, Any], mode: str, instants: Sequence[tuple[int, int]]) -> Iterator[dict[str, Any]]:
    """Play the session in a process that forks at each instant; gives the results in the order of their ends."""
    command = [sys.executable, "-m", "nandlab.power_test.forker"]
    text = json.dumps({**job, "mode": mode, "instants": sorted(instants, key=lambda one: one[1])})
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(text)
            process.stdin.close()
            for line in process.stdout:
                row = json.loads(line)
                if "failed" in row:
                    raise OutputError(f"cut {row['number']} cannot be made: {row['failed'].strip().splitlines()[-1]}")
                yield row
        finally:
            if process.poll() is None:
                process.terminate()
    if process.returncode not in (0, -15):
        raise OutputError("the process that cuts the power has ended with an error (above)")


def _cut_of(row: dict[str, Any]) -> Cut:
    names = Cut.__dataclass_fields__
    return Cut(**{name: row[name] for name in names if name in row})


def _controls(job: dict[str, Any], moments: Moments, *, second_cut: bool) -> dict[str, Any]:
    """Check the images at the beginning and at the end, in which nothing is lost.

    With `second_cut` sets the longest time after which power fails again: recovery takes about as long after each cut.
    """
    found = {}
    names = ["at the beginning", "at the end"]
    # In the order of the instants: of two that fail, the first is told.
    rows = sorted(_fork(job, "control", list(enumerate([moments.begin, moments.synced]))), key=itemgetter("number"))
    if second_cut:
        job["second_ns"] = max(row["recovery_ns"] for row in rows)
    for row in rows:
        found[names[row["number"]]] = {key: row[key] for key in ("passed", "status", "output", "reason")}
    for name, control in found.items():
        if not control["passed"]:
            output = control["output"].strip()
            remedy = "correct --check or --setup: a check passes before the workload and after it"
            if moments.begin == 0:
                remedy += (
                    f'; the recording has no mark "{BEGIN}", so the cuts begin with the session (nandlab live mark)'
                )
            raise OutputError(
                f"the check fails {name} of the workload, where nothing is lost: {control['reason'] or 'status'} "
                f"{'' if control['reason'] else control['status']}\n{output}\n"
                f"  remedy: {remedy}"
            )
    return found


def _smallest(job: dict[str, Any], moments: Moments, done: list[Cut], first: Cut) -> dict[str, Any]:
    """The earliest instant that breaks the check, and the smallest set of lost writes that does."""
    before = max((cut.at_ns for cut in done if cut.passed and cut.at_ns < first.at_ns), default=moments.begin)
    events = moments.events(before, first.at_ns)
    step = max(1, -(-len(events) // _EVENTS_MAX))
    tried = events[::step]
    at = first.at_ns
    count = 0
    for row in _fork(job, "try", list(enumerate(tried))):
        count += 1
        if not row["passed"]:
            at = min(at, row["at_ns"])
    (found,) = _fork(job, "minimise", [(first.number, at)])
    nothing = {"lost": [], "also_lost": [], "tries": 0, "bounded": False, "needs_no_loss": True}
    smallest: dict[str, Any] = found.get("smallest") or nothing
    smallest |= {
        "unit_bytes": found["unit_bytes"],
        "cut": first.number,
        "at_ns": at,
        "after_ns": before,
        "events": len(events),
        "events_tried": count,
    }
    for unit in smallest["lost"]:
        unit["request"] = moments.request_of(unit["offset"], found["unit_bytes"], at, unit["promise"])
    return smallest


def _drive(settings: dict[str, Any]) -> str:
    """What of a drive decides what a power loss costs."""
    drive, capacitor = settings["drive"], settings.get("capacitor") or {}
    words = [str(drive["cell"])]
    words.append("a capacitor" if capacitor.get("capacitance") else "no capacitor")
    if (settings.get("cache") or {}).get("size"):
        words.append("a write cache")
    if (settings.get("ftl") or {}).get("buffer"):
        words.append("a write buffer")
    return ", ".join(words)


def repeat(
    folder: Path, number: int, *, check: str | None = None, check_limit_s: float = 60.0
) -> tuple[Path, dict[str, Any] | None]:
    """Make the image of one cut of the test in a folder again, and a page; returns the folder with them.

    With `check`, a command, also returns `passed`, `status`, `output` and `reason` of the check on another such image.

    Raises `OutputError` when there is no result of a power test, or no such cut.
    """
    try:
        of = json.loads((folder / RESULT).read_text())["repeat"]
    except (OSError, ValueError, KeyError):
        raise OutputError(
            f"--repeat: there is no result of a power test in {folder}\n  remedy: name its folder with --out"
        ) from None
    if not 0 <= number < of["cuts"]:
        raise OutputError(f"--repeat: {number} is not from 0 to {of['cuts'] - 1}")
    path = folder / RECORDING if of["recording"] is None else Path(of["recording"])
    _, moments = _played(path)
    instant = choose(moments, of["cuts"], of["seed"])[number]
    how = {"fs": of["fs"], "command": check or "", "limit_s": check_limit_s, "folder": os.getcwd()}
    with _job(path, moments, folder, how, 1, of["seed"]) as job:
        job["second_ns"] = of["second_ns"]
        (row,) = _fork(job, "keep", [(number, instant)])
        (checked,) = [None] if check is None else _fork(job, "try", [(number, instant)])
    from nandlab.power_test.report import write_cut

    place = folder / f"cut-{number}"
    write_cut(place, row, moments)
    return place, checked


def _check_arguments(
    fs: str,
    cuts: int,
    jobs: int | None,
    workload: str | None,
    setup: str | None,
    recording: str | os.PathLike[str] | None,
) -> None:
    """Refuse arguments that are no power test."""
    if fs not in _FILE_SYSTEMS:
        raise OutputError(f"--fs: {fs} is none of {', '.join(_FILE_SYSTEMS)}")
    if not 1 <= cuts <= 10_000_000:
        raise OutputError(f"--cuts: {cuts} is not from 1 to 10,000,000")
    if jobs is not None and jobs < 1:
        raise OutputError(f"--jobs: {jobs} is not at least 1")
    if recording is None and workload is None:
        raise OutputError(
            "--workload is missing: the command whose promises the check knows\n  remedy: name it, or --recording"
        )
    for name, value in (("--workload", workload), ("--setup", setup)):
        if recording is not None and value is not None:
            raise OutputError(f"{name}: the recording has what it did\n  remedy: leave out {name}, or --recording")
    missing = session.needed(fs, records=recording is None)
    if missing:
        raise OutputError(
            f"{', '.join(missing)} missing: a power test with --fs {fs} needs it\n"
            "  remedy: install it (Debian: libnbd-bin, e2fsprogs, xfsprogs, btrfs-progs)"
        )
    if fs in ("xfs", "btrfs") and os.geteuid() != 0:
        raise OutputError(f"--fs {fs}: its images are mounted, which needs root\n  remedy: run as root, or use ext4")


def _check_same(asked: Spec, recorded: Spec, path: Path) -> None:
    """Refuse a spec other than that of the recording: the requests of one drive are no valid crash of another."""

    def drive(spec: Spec) -> dict[str, Any]:
        return {key: value for key, value in json.loads(spec.canonical_json()).items() if key != "workload"}

    ours, theirs = drive(asked), drive(recorded)
    differ = sorted(key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key))
    if differ:
        raise OutputError(
            f"{path} was recorded on another drive: {', '.join(differ)} of the spec differ, and what one drive was "
            "given is no valid crash of another\n"
            "  remedy: the spec and the --set of the recording; another drive needs a session of its own"
        )
