"""A run: the simulation of a spec, or of the session of a live drive from its recording."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from nandlab import _core, memory
from nandlab._types import StepReport
from nandlab.errors import OutputError, os_error_text, with_remedy
from nandlab.results import Measured, OutputDirectory, RunResult
from nandlab.spec import Sets, Spec, load, set_arguments
from nandlab.whole import NEW, hidden_beside

if TYPE_CHECKING:
    from nandlab.batches import RequestTrace

#: Wall time of a step of the core, in milliseconds; a stop takes effect between two steps.
_STEP_MS = 100
#: Phases before the first request.
BEFORE_THE_RUN = ("open", "precondition", "save")
#: Texts for the phases in which a run does not simulate requests.
DOING = {
    "open": "opening the workload",
    "precondition": "preconditioning",
    "save": "saving the drive",
    "verify": "verifying",
    "write": "writing results",
}
#: The first bytes of a snapshot.
_DRIVE_MAGIC = b"nandlab"
#: The first bytes of a recording.
_RECORDING_MAGIC = b"NANDREC"


@dataclass(frozen=True)
class Progress:
    """The progress of a run."""

    #: `"open"`, `"precondition"`, `"save"` (a snapshot), `"run"`, `"verify"`, `"done"` or `"write"` (the results).
    phase: str
    #: Share of the workload, or of preconditioning, that is done, 0 to 1.
    share: float
    #: Requests that have ended.
    requests: int
    #: Simulated time, in seconds.
    sim_time_s: float
    #: Pages read (every try), programmed and copied back so far.
    page_operations: int
    #: Wall time since the start, in seconds.
    wall_s: float
    #: What the user should know of the kept drive: why it was not used, or why this one was not kept.
    note: str | None = None


class Stopped(Exception):
    """The run was stopped before its first request, or in its warm-up, so there is no result."""


def run(
    spec: Spec | str | os.PathLike[str] | Mapping[str, object],
    out: str | os.PathLike[str] | None = None,
    progress: Callable[[Progress], bool | None] | None = None,
    *,
    sets: Sets = (),
    requests: Any = None,
    verify: bool = False,
    save_drive: str | os.PathLike[str] | None = None,
    force: bool = False,
    name: str | None = None,
) -> RunResult:
    """Simulate a spec and return its result; with `out`, also write the result directory.

    `spec` is a path, TOML text, a mapping or a `Spec` (see `load`); `sets` overrides keys and leaves a `Spec`
    unchanged.
    `requests` replaces the source of the workload: a data frame of polars or pandas, an Arrow table, a structured numpy
    array or a mapping of arrays, with the columns `op`, `offset`, `length` and perhaps `arrival_ns`, as
    `Drive.submit_many` has them; the first arrival is the start. Without arrivals the requests come as
    `workload.arrival` says, by default in a closed loop at queue depth 32. The other keys of [workload], such as
    `repeat` and `warm_up`, keep their values. The result directory has the requests as a trace, which its spec names.
    `progress` is called about ten times per second; when it
    returns `False`, the run stops, and the result covers the requests that have ended (`result.complete` is `False`).
    `verify` checks every read against a reference model of the drive, which is slower. `save_drive` is the file for a
    snapshot of the preconditioned drive. `force` replaces a directory with other files at `out`, and any file at
    `save_drive`. `name` is the name of the run, by default that of the spec's file.

    Raises `SpecError`, `TraceError`, `RunError` or `OutputError`; `ValueError` or `TypeError` for a table that is no
    requests; and `nandlab.simulate.Stopped` when `progress` stops the run before its first request or in its warm-up.
    """
    if name is None:
        name = "run" if isinstance(spec, (Spec, Mapping)) or not str(spec).endswith(".toml") else Path(spec).stem
    with contextlib.ExitStack() as stack:
        checked, trace = stack.enter_context(_workload(spec, sets, requests))
        memory.check(checked, verify)
        saving = None
        if save_drive is not None:
            path = Path(save_drive)
            _check_save_drive(path, force)
            try:
                saving = _Saving(stack.enter_context(hidden_beside(path)) / NEW, path)
            except OSError as error:
                raise OutputError(os_error_text("save the drive to", path, error)) from None
        return _written(
            lambda: _simulate(checked, name, progress, verify, saving, trace=trace), out, progress, force=force
        )


@contextlib.contextmanager
def _workload(
    spec: Spec | str | os.PathLike[str] | Mapping[str, object], sets: Sets, requests: Any
) -> Iterator[tuple[Spec, RequestTrace | None]]:
    """The spec, with the requests as its workload if there are any."""

    def with_sets(sets: Sets) -> Spec:
        if isinstance(spec, Spec):
            return spec.with_(sets) if sets else spec
        return load(spec, sets)

    if requests is None:
        yield with_sets(sets), None
        return
    # A run without requests does not import these.
    from tempfile import TemporaryDirectory

    from nandlab.batches import beside_trace, trace_of

    trace = trace_of(requests)
    with TemporaryDirectory() as folder:
        checked = with_sets([*set_arguments(trace.sets), *set_arguments(sets)])
        try:
            yield beside_trace(checked, trace, Path(folder)), trace
        except _core.TraceError as error:
            raise _core.TraceError(str(error).replace(folder + os.sep, "")) from None


def is_recording(path: str | os.PathLike[str]) -> bool:
    """Whether a file is the recording of a live drive."""
    try:
        # Opening a pipe could block for ever.
        if not Path(path).is_file():
            return False
        with open(path, "rb") as file:
            return file.read(len(_RECORDING_MAGIC)) == _RECORDING_MAGIC
    except OSError:
        return False


def recorded_spec(path: str | os.PathLike[str]) -> Spec:
    """The resolved spec of a recording; raises `RunError` for a file that is damaged or of another version."""
    text, folder, recorded_by = _core.recording_header(os.fspath(path))
    try:
        return _core.Spec.load(text, Path(path).name, folder, [])
    except _core.SpecError as error:
        if recorded_by == _core.version():
            raise
        raise _core.RunError(
            f"{path}: the session was recorded by nandlab {recorded_by}, whose spec this version, {_core.version()}, "
            f"does not read: {error}\n  remedy: play it with that version"
        ) from None


def replay(
    recording: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    progress: Callable[[Progress], bool | None] | None = None,
    *,
    verify: bool = False,
    force: bool = False,
    name: str | None = None,
    explain: int | None = None,
) -> RunResult:
    """Play the session of a live drive again, from its recording, and return the session's result.

    The drive gets every request, power failure and order at the simulated time at which it had it in the session, so
    the result has the bytes of the session's own. `result.complete` is `False` when the recording ends without the
    session's end, because its server was killed. With `explain` the result also has what so many of the slowest
    requests waited for (`result.explained`), and `output.explain` in its spec. The other arguments are those of `run`;
    raises `RunError`, `OutputError` and `nandlab.simulate.Stopped`.
    """
    path = Path(recording)
    spec = recorded_spec(path)
    if explain is not None:
        spec = spec.with_({"output.explain": explain})
    memory.check(spec, verify)
    name = path.stem if name is None else name

    def make() -> _core.Replay:
        return _core.Replay(os.fspath(path), spec, verify)

    worker = _Worker(make, name, None, 0)
    return _written(lambda: _watch(worker, spec, progress, None), out, progress, force=force)


def _written(
    simulated: Callable[[], RunResult],
    out: str | os.PathLike[str] | None,
    progress: Callable[[Progress], bool | None] | None,
    *,
    force: bool,
) -> RunResult:
    """The result of a simulation; with `out`, in that directory too, which is claimed before the simulation."""
    if out is None:
        return simulated()
    with OutputDirectory(Path(out), force=force) as output:
        result = simulated()
        if progress is not None:
            progress(_at_the_end(result))
        result.write_to(output)
    result.path = output.path
    return result


def run_sharing(
    spec: Spec,
    shared: _core.SharedDrives,
    progress: Callable[[Progress], bool | None] | None = None,
    *,
    name: str = "run",
) -> RunResult:
    """Simulate a spec as `run` does, with the preconditioned drive of an earlier run where it is the same.

    `shared` keeps drives that have been preconditioned alike. The files that the specs name must not change meanwhile.
    On a machine without memory for two such drives, each run preconditions its own.
    """
    sharing: _core.SharedDrives | None = shared
    if memory.runs_at_once([spec]) < 2:
        shared.clear()
        sharing = None
        memory.check(spec)
    return _simulate(spec, name, progress, False, None, sharing)


def _at_the_end(result: RunResult) -> Progress:
    sim, summary = result.sim, result.summary
    warm_up_s = 0.0 if summary.warm_up is None else summary.warm_up.duration_s
    sim_time_s = warm_up_s + summary.duration_s
    return Progress("write", 1.0, sim.requests, sim_time_s, sim.page_operations, sim.wall_s)


class _Saving(NamedTuple):
    """The path to which the core writes the snapshot, and the path to which the snapshot is then renamed."""

    partial: Path
    path: Path

    def publish(self) -> None:
        try:
            os.replace(self.partial, self.path)
        except OSError as error:
            raise OutputError(os_error_text("save the drive to", self.path, error)) from None


def _check_save_drive(path: Path, force: bool) -> None:
    """Refuse a path for the snapshot that cannot be written, or at which there is another file."""
    try:
        if not path.parent.is_dir():
            raise OutputError(f"cannot save the drive to {path}: {path.parent} is not a directory; create it first")
        if path.is_dir():
            raise OutputError(f"cannot save the drive to {path}: the path is a directory; name a file")
        if force or not path.exists():
            return
        # Opening a pipe could block for ever.
        if path.is_file():
            with open(path, "rb") as file:
                if file.read(len(_DRIVE_MAGIC)) == _DRIVE_MAGIC:
                    return
    except OSError as error:
        raise OutputError(os_error_text("save the drive to", path, error)) from None
    raise OutputError(f"{path} exists and is not a saved drive: name another file, or replace {path} with --force")


class _Worker(threading.Thread):
    """The run of the core on a thread of its own, so that Ctrl-C reaches the main thread at once."""

    def __init__(
        self, make: Callable[[], _core.Run | _core.Replay], name: str, saving: _Saving | None, warm_up: int
    ) -> None:
        super().__init__(name="nandlab-run", daemon=True)
        self.stop = threading.Event()
        #: The main thread does not wait for the result.
        self.is_abandoned = False
        #: Whether requests have ended that the results count.
        self.started = False
        self.report: StepReport = {
            "phase": "open",
            "done": False,
            "progress": 0.0,
            "requests": 0,
            "sim_time_s": 0.0,
            "page_operations": 0,
            "note": None,
        }
        self.result: RunResult | None = None
        self.error: BaseException | None = None
        self._make = make
        self._saving = saving
        self._warm_up = warm_up
        self._run_name = name

    def run(self) -> None:
        try:
            self.result = self._run()
        except BaseException as error:
            self.error = error

    def _run(self) -> RunResult | None:
        begin = time.perf_counter()
        core = self._make()
        self.report = {**self.report, "phase": "precondition"}
        run_begin: float | None = None
        operations_before = 0
        while not self.stop.is_set():
            self.report = core.step(_STEP_MS)
            if run_begin is None and self.report["phase"] not in BEFORE_THE_RUN:
                run_begin, operations_before = time.perf_counter(), self.report["page_operations"]
                if self._saving is not None:
                    self._saving.publish()
            self.started = self.report["requests"] > self._warm_up
            if self.report["done"]:
                break
        if self.is_abandoned or (not self.started and not self.report["done"]):
            return None
        end = time.perf_counter()
        running = max(end - (run_begin if run_begin is not None else begin), 1e-9)
        operations = self.report["page_operations"] - operations_before
        self.report = {**self.report, "phase": "write"}
        ended = core.result()
        counted = json.loads(ended.sim)
        measured = Measured(
            page_operations=counted["page_operations"],
            requests=counted["requests"],
            wall_s=round(end - begin, 6),
            precondition_wall_s=round(end - begin - running, 6),
            requests_per_s=round(self.report["requests"] / running, 3),
            page_ops_per_s=round(operations / running, 3),
            peak_rss_mb=0.0,
            dropped_bytes=core.dropped_bytes() if isinstance(core, _core.Replay) else 0,
        )
        result = RunResult.from_core(ended, self._run_name, measured)
        # The peak includes the memory of the result.
        result.sim = msgspec.structs.replace(measured, peak_rss_mb=round(peak_rss_bytes() / 1e6, 3))
        return result


def _simulate(
    spec: Spec,
    name: str,
    progress: Callable[[Progress], bool | None] | None,
    verify: bool,
    saving: _Saving | None,
    shared: _core.SharedDrives | None = None,
    trace: RequestTrace | None = None,
) -> RunResult:
    partial = None if saving is None else os.fspath(saving.partial)
    workload = json.loads(spec.canonical_json()).get("workload") or {}

    def make() -> _core.Run:
        return _core.Run(spec, verify, partial, False, shared)

    result = _watch(_Worker(make, name, saving, int(workload.get("warm_up") or 0)), spec, progress, saving)
    if trace is not None:
        result.files[trace.name] = trace.content
    return result


def _watch(
    worker: _Worker, spec: Spec, progress: Callable[[Progress], bool | None] | None, saving: _Saving | None
) -> RunResult:
    """Start a worker, tell its progress, and return its result."""
    begin = time.perf_counter()
    worker.start()
    try:
        while worker.is_alive():
            worker.join(_STEP_MS / 1000)
            report = worker.report
            if progress is not None and not worker.stop.is_set():
                now = Progress(
                    phase=report["phase"],
                    share=report["progress"],
                    requests=report["requests"],
                    sim_time_s=report["sim_time_s"],
                    page_operations=report["page_operations"],
                    wall_s=time.perf_counter() - begin,
                    note=report["note"],
                )
                if progress(now) is False and worker.is_alive():
                    worker.stop.set()
            if worker.stop.is_set() and not worker.started and worker.is_alive() and report["phase"] != "save":
                # Preconditioning may take long and yields no result, so it is abandoned. A snapshot is written to the
                # end, because its unfinished file would stay on the disk.
                worker.join(5 * _STEP_MS / 1000)
                if worker.is_alive() and not worker.started:
                    raise Stopped
    except BaseException:
        worker.is_abandoned = True
        raise
    finally:
        worker.stop.set()
    if isinstance(worker.error, _core.RunError):
        text = str(worker.error)
        if saving is not None:
            text = text.replace(os.fspath(saving.partial), os.fspath(saving.path))
        raise _core.RunError(_run_error_text(text, spec)) from None
    if worker.error is not None:
        raise worker.error
    if worker.result is None:
        raise Stopped
    return worker.result


def _run_error_text(text: str, spec: Spec) -> str:
    """The core's text, with the trace before a request number, and a remedy for an operating-system error."""
    trace = (json.loads(spec.canonical_json()).get("workload") or {}).get("trace")
    return with_remedy(f"{trace}: {text}" if trace and text.startswith("request ") else text)


def peak_rss_bytes() -> int:
    """The peak resident memory of this process, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
