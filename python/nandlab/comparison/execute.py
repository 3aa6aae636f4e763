"""The runs of a comparison: several at a time in threads, since the core runs without the interpreter's lock."""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from nandlab import memory, simulate
from nandlab._core import NandlabError, RunError, Spec
from nandlab.comparison.inputs import RESULT, input_files
from nandlab.errors import OutputError, os_error_text, shown
from nandlab.results import RunResult
from nandlab.simulate import BEFORE_THE_RUN
from nandlab.study.execute import Running, State
from nandlab.study.plan import build_identity, file_digest

Watch = Callable[[State], None]


@dataclass(frozen=True)
class Planned:
    """A run of a comparison."""

    name: str
    seed: int
    spec: Spec

    @property
    def label(self) -> str:
        return f"{self.name}, seed {self.seed}"


class Kept:
    """The finished runs of a comparison's folder; their names end in a hash of spec, input files and build."""

    def __init__(self, out: Path) -> None:
        self.path = out
        self._digests: dict[Path, str] = {}
        try:
            if out.exists() and not out.is_dir():
                raise OutputError(f"{shown(out)} is a file: choose another directory with --out")
            there = {entry.name for entry in out.iterdir() if entry.name[0] != "."} if out.exists() else set()
            if RESULT not in there and there - {"runs"}:
                names = ", ".join(sorted(there)[:4]) + (", ..." if len(there) > 4 else "")
                raise OutputError(
                    f"{shown(out)} has files that do not belong to a comparison ({names})\n"
                    "  remedy: choose another directory with --out"
                )
            # A folder that cannot be written is refused before the first run.
            (out / "runs").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(os_error_text("write to", out, error)) from None

    def folder(self, run: Planned) -> Path:
        """The folder of a run; a finished run is found under any name."""
        content = {"build": build_identity(), "spec": json.loads(run.spec.canonical_json()), "files": {}}
        for key, path in input_files(run.spec).items():
            section, name = key.split(".", 1)
            del content["spec"][section][name]
            content["files"][key] = self._digest(path)
        identity = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
        runs = self.path / "runs"
        name = re.sub(r"[^\w=.-]+", "-", run.name).strip(".-")[:60] or "run"
        return next(iter(sorted(runs.glob(f"*-{identity}"))), runs / f"{name}-seed{run.seed}-{identity}")

    def _digest(self, path: Path) -> str:
        if path not in self._digests:
            try:
                self._digests[path] = file_digest(path)
            except OSError as error:
                raise OutputError(os_error_text("read", path, error)) from None
        return self._digests[path]


def execute(planned: Sequence[Planned], kept: Kept | None, watch: Watch, workers: int | None) -> list[RunResult]:
    """The results of all runs, in their order; `watch` is called about ten times per second.

    Runs of the same spec are one run. At most `workers` runs are under way at a time, one per processor with `None`,
    and no more than fit into memory. With `kept`, finished runs are not repeated, and each run is saved as soon as it
    ends. An error or an interrupt stops the runs under way. Raises `NandlabError`.
    """
    different: dict[tuple[str, ...], Planned] = {}
    for run in planned:
        different.setdefault(_content(run), run)
    found = dict(zip(different, _execute(list(different.values()), kept, watch, workers), strict=True))
    return [found[_content(run)] for run in planned]


def _content(run: Planned) -> tuple[str, ...]:
    """What determines the result of a run."""
    return run.spec.canonical_json(), *(str(path.resolve()) for path in input_files(run.spec).values())


def _execute(planned: Sequence[Planned], kept: Kept | None, watch: Watch, workers: int | None) -> list[RunResult]:
    folders = [None if kept is None else kept.folder(run) for run in planned]
    results = [
        None if folder is None else _read(folder, run.spec) for folder, run in zip(folders, planned, strict=True)
    ]
    queue = deque(index for index, result in enumerate(results) if result is None)
    state = State(total=len(planned), kept=len(planned) - len(queue))
    specs = [planned[index].spec for index in queue]
    state.slots = min(workers or os.cpu_count() or 1, memory.runs_at_once(specs), len(queue)) if queue else 1
    stop = threading.Event()
    running: dict[Future[RunResult], int] = {}
    watch(state)
    with ThreadPoolExecutor(state.slots, thread_name_prefix="nandlab-compare") as pool:
        try:
            while queue or running:
                while queue and len(running) < state.slots:
                    index = queue.popleft()
                    at = Running(planned[index].label, time.monotonic())
                    state.running[str(index)] = at
                    running[pool.submit(_run, planned[index], folders[index], at, stop)] = index
                for future in wait(running, 0.1, FIRST_COMPLETED).done:
                    index = running.pop(future)
                    at = state.running.pop(str(index))
                    results[index] = _taken(future, planned[index], kept)
                    state.done += 1
                    state.walls_s.append(time.monotonic() - at.begin_s)
                watch(state)
        finally:
            # The end of the pool waits for the runs under way.
            stop.set()
    return [result for result in results if result is not None]


def _read(folder: Path, spec: Spec) -> RunResult | None:
    """The finished run of a spec in a folder; `None` for a run that is missing, damaged or incomplete."""
    if not folder.exists():
        return None
    try:
        result = RunResult.read(folder)
    except OutputError:
        return None
    return result if result.complete and result.spec_hash == spec.hash else None


def _run(run: Planned, folder: Path | None, at: Running, stop: threading.Event) -> RunResult:
    def progress(report: simulate.Progress) -> bool:
        if report.phase not in BEFORE_THE_RUN and at.run_begin_s is None:
            at.run_begin_s = time.monotonic()
        at.has_begun, at.phase, at.share = True, report.phase, report.share
        return not stop.is_set()

    result = simulate.run(run.spec, progress=progress, name=run.name)
    if stop.is_set() and not result.complete:
        raise simulate.Stopped
    if folder is not None:
        result.save(folder)
    return result


def _taken(future: Future[RunResult], run: Planned, kept: Kept | None) -> RunResult:
    try:
        return future.result()
    except NandlabError as error:
        there = f"\n  finished runs are kept in {shown(kept.path)}" if kept is not None else ""
        raise RunError(f"run {run.label}: {error}{there}") from None
