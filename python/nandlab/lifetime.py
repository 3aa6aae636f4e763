"""The life of a drive: from the P/E cycles at which the spec starts to the first worn-out block.

The workload is repeated without end. Windows of the life are simulated and measured; between two windows the drive is
fast-forwarded: wear, calendar time and capacitor age advance without simulation as they did in the window.
`full=True` simulates everything; a comparison with such a life gives the error of the fast-forward.

A window consists of requests that let the drive settle and as many requests that are measured. The measurement is
repeated, up to four times in all, while its two halves differ by more than a tenth in write amplification (in mean read
latency, where nothing is written), or while fewer than 50 blocks are erased.
"""

from __future__ import annotations

import contextlib
import json
import math
import operator
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from nandlab import _core, memory
from nandlab.errors import OutputError, shown
from nandlab.interruptible import interruptible
from nandlab.record import Record, parse
from nandlab.result_types import LifeRow, Note
from nandlab.results import OutputDirectory, ResultFolder
from nandlab.simulate import Progress
from nandlab.spec import Sets, Spec, load
from nandlab.tables import Columns, from_frame, to_frame, to_parquet

if TYPE_CHECKING:
    import polars as pl

_STEP_MS = 100
#: The most measurements of a window.
_TRIES = 4
#: The largest relative difference between the halves of a steady window.
_STEADY = 0.1
#: Outstanding requests at the end of a window, as a share of the window, above which the drive is overloaded.
_BACKLOG = 0.1
_REQUESTS_MAX = 1_000_000_000
#: The fewest erases from which the rate of wear is known.
_ERASES_MIN = 50

_WORN = "the first block reached its endurance"
#: The ends of a complete life.
_NO_ROOM = "writes found no room"
_ENDS = (_WORN, "the mean reached the endurance", _NO_ROOM)

Watch = Callable[[Progress], bool | None]


class Window(LifeRow, frozen=True, kw_only=True):
    """A window of a life: a row of `life.parquet`, without the columns that are computed from others."""

    pe_begin: float
    """Mean of the blocks' P/E cycles at the beginning."""
    steady: float
    """1 when the halves of the window differ by at most a tenth, else 0."""
    host_tb_written: float
    """Data that the host has written by the end of the window, in terabytes."""


class Difference(Record, frozen=True):
    """A number of a fast-forwarded life, compared with the same life simulated in full."""

    fast: float
    """The number in the fast-forwarded life."""
    full: float
    """The number in the full simulation."""
    relative: float
    """Difference of the two numbers, relative to the full simulation."""
    mean_apart: float | None = None
    """For a number of each window: mean absolute difference, relative to the mean in the full simulation; else None."""


class LifeFacts(Record, frozen=True):
    """The facts of a life: `life.json`."""

    nandlab: str
    """Version of nandlab."""
    spec_hash: str
    """Hash of the resolved spec."""
    complete: bool
    """Whether the life reached its end."""
    end: str
    """How the life ended, in words."""
    problem: str | None
    """The error that ended the life early; None without an error."""
    years: float
    """Lifetime in years on the scaled clock."""
    host_tb_written: float
    """Data that the host wrote, in terabytes."""
    drive_writes: float
    """Data that the host wrote, in logical capacities."""
    drive_writes_per_day: float
    """Drive writes per day of the scaled clock."""
    pe_mean: float
    """Mean of the blocks' P/E cycles at the end."""
    pe_spread: float
    """Difference between the most and the fewest P/E cycles of a block at the end."""
    first_media_error_years: float | None
    """End of the first simulated stretch with a media error, in years; None without a media error."""
    windows: int
    """Number of measured windows."""
    windows_unsteady: int
    """Number of windows whose halves differ by more than a tenth."""
    windows_overloaded: int
    """Number of windows in which requests arrived faster than the drive served them."""
    requests_a_window: int
    """Measured requests of a window."""
    requests: int
    """Number of simulated requests."""
    simulated_share: float
    """Share of the wear that was simulated, 0 to 1."""
    notes: tuple[Note, ...] = ()
    """Notes on the simulated part of the life, as of a run; not those on its length and on the wear that ends it."""
    error: dict[str, Difference] | None = None
    """Differences from the same life simulated in full (`against_full`); None without a complete full simulation."""


class LifeStopped(Exception):
    """The life was stopped before the end of its first window, so there is no result."""


@dataclass(repr=False)
class Life:
    """The result of a life: its facts, and one row per window."""

    #: End and length of the life, data written, simulated share.
    facts: LifeFacts
    #: One row per window, in the order of time; names end in their units. `years`, `pe_mean`, `pe_max` and
    #: `host_tb_written` are values at the end of the window; the other columns describe the window alone.
    columns: Columns
    spec_toml: str
    spec_hash: str
    name: str
    #: The same life simulated in full (`against_full`); `None` without a complete full simulation.
    full: Life | None = None
    path: Path | None = None
    _frame: pl.DataFrame | None = field(default=None, repr=False)

    @property
    def table(self) -> pl.DataFrame:
        """The rows as a polars data frame."""
        if self._frame is None:
            self._frame = to_frame(self.columns)
        return self._frame

    def __repr__(self) -> str:
        from nandlab.notebook import text_of
        from nandlab.presentation.life import of_life

        return text_of(of_life(self), "Life")

    def _repr_mimebundle_(self, *_: object, **__: object) -> dict[str, Any]:
        """The result in a notebook: text, and with the extra `figures` also HTML."""
        from nandlab.notebook import bundle
        from nandlab.presentation.life import of_life

        return bundle(of_life(self), "Life")

    @property
    def facts_text(self) -> str:
        """The text of `life.json`."""
        return json.dumps(msgspec.to_builtins(self.facts), indent=2) + "\n"

    @property
    def complete(self) -> bool:
        """Whether the life reached its end."""
        return self.facts.complete

    def save(self, out: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the directory `out` with `life.json`, `life.parquet` and `spec.toml`, completely or not at all.

        Returns its path. `force` replaces a directory with other files. Raises `OutputError`.
        """
        with OutputDirectory(Path(out), force=force) as output:
            self._write_to(output)
        self.path = output.path
        return output.path

    def _write_to(self, output: OutputDirectory) -> None:
        output.write("life.json", self.facts_text.encode())
        output.write("life.parquet", to_parquet(self.table))
        if self.full is not None:
            output.write("full.parquet", to_parquet(self.full.table))
        output.write("spec.toml", self.spec_toml.encode())
        output.mark("life", self.name, self.spec_hash, complete=self.complete)

    @staticmethod
    def is_in(directory: Path) -> bool:
        """Whether a directory contains the result of a life."""
        return (directory / "life.json").is_file()

    @staticmethod
    def read(directory: str | os.PathLike[str]) -> Life:
        """Read a directory that `save` has written; raises `OutputError`."""
        path = Path(directory)
        folder = ResultFolder(path, "life")
        facts = parse(folder.text("life.json"), LifeFacts, shown(path / "life.json"))
        tables = {name: from_frame(folder.frame(name)) for name in ("life", "full") if folder.has(f"{name}.parquet")}
        made = (folder.text("spec.toml"), folder.marker.spec_hash, folder.marker.spec_name)
        full = Life(_in_full(facts, tables["full"]), tables["full"], *made) if "full" in tables else None
        return Life(facts, tables["life"], *made, full=full, path=path)


def _in_full(facts: LifeFacts, columns: Columns) -> LifeFacts:
    """The stored facts of the full simulation: the numbers in `error`; the other facts are those of the life."""
    stored = {
        key: difference.full
        for key, difference in (facts.error or {}).items()
        if key in ("years", "host_tb_written", "pe_mean", "pe_spread")
    }
    return msgspec.structs.replace(facts, error=None, simulated_share=1.0, windows=len(columns["years"]), **stored)


def life(
    spec: Spec | str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    progress: Watch | None = None,
    *,
    sets: Sets = (),
    windows: int = 24,
    requests: int = 50_000,
    full: bool = False,
    against_full: bool = False,
    force: bool = False,
    name: str | None = None,
) -> Life:
    """Simulate the life of a drive under its workload until a block is worn out; `out` is its result directory.

    `spec` is a path, TOML text or a `Spec`; `sets` overrides keys, as in `run`. There are `windows` windows (1 to
    10,000) at even steps of the mean P/E cycles up to `drive.endurance`, and one more at each step of
    `refresh.interval`; a life that ends earlier has fewer. A window has `requests` requests (100 to 1,000,000,000) to
    settle and as many that are measured. `full` simulates everything, which takes long; `against_full` adds a full
    simulation and sets `error` in the facts. `progress` is called about ten times per
    second; when it returns `False`, the life ends early and keeps its finished windows (`complete` is `False`). `force`
    replaces a directory with other files. `name` is the name of the life, by default that of the spec's file.

    Raises `SpecError`, `TraceError`, `RunError` or `OutputError`, and `LifeStopped` when `progress` stops the life
    before the end of its first window.
    """
    windows, requests = operator.index(windows), operator.index(requests)
    if not 1 <= windows <= 10_000:
        raise OutputError(f"windows: expected 1 to 10,000, found {windows}")
    if not 100 <= requests <= _REQUESTS_MAX:
        raise OutputError(f"requests of a window: expected 100 to {_REQUESTS_MAX:,}, found {requests}")
    if name is None:
        name = "life" if isinstance(spec, Spec) or not str(spec).endswith(".toml") else Path(spec).stem
    checked = spec.with_(sets) if isinstance(spec, Spec) else load(spec, sets)

    def live() -> Life:
        lived = _Living(checked, name, windows, requests, full, progress).live()
        if against_full and lived.complete:
            with contextlib.suppress(LifeStopped):
                known = _Living(checked, name, windows, requests, True, progress).live()
                # Only complete lives can be compared.
                if known.complete:
                    lived.full = known
                    lived.facts = msgspec.structs.replace(lived.facts, error=compare(lived, known))
        return lived

    if out is None:
        return live()
    with OutputDirectory(Path(out), force=force) as output:
        lived = live()
        lived._write_to(output)
    lived.path = output.path
    return lived


def compare(fast: Life, full: Life) -> dict[str, Difference]:
    """The differences between a fast-forwarded life and the same life simulated in full, by name.

    For numbers of windows the two values are means over the life, at equal mean P/E cycles. `mean_apart` is the mean
    absolute difference, relative to the mean in the full simulation; unlike the difference of the means, it includes
    noise that cancels out.
    """
    found: dict[str, Difference] = {}
    ours, theirs = fast.facts, full.facts
    for key, mine, known in (
        ("years", ours.years, theirs.years),
        ("host_tb_written", ours.host_tb_written, theirs.host_tb_written),
        ("pe_mean", ours.pe_mean, theirs.pe_mean),
        ("pe_spread", ours.pe_spread, theirs.pe_spread),
    ):
        found[key] = Difference(mine, known, _relative(mine, known))
    low = max(fast.columns["pe_mean"][0], full.columns["pe_mean"][0])
    high = min(fast.columns["pe_mean"][-1], full.columns["pe_mean"][-1])
    grid = np.linspace(low, high, 200)
    for key in _COMPARED:
        if key not in fast.columns or not np.any(np.nan_to_num(full.columns[key])):
            continue
        fast_values = np.interp(grid, fast.columns["pe_mean"], fast.columns[key])
        full_values = np.interp(grid, full.columns["pe_mean"], full.columns[key])
        mine, known = float(np.nanmean(fast_values)), float(np.nanmean(full_values))
        apart = _ratio(float(np.nanmean(np.abs(fast_values - full_values))), known)
        found[key] = Difference(mine, known, _relative(mine, known), apart)
    return found


_COMPARED = (
    "read_us_mean",
    "read_us_p99",
    "write_us_mean",
    "write_us_p99",
    "waf",
    "waf_pages",
    "read_level_mean",
    "refreshed_per_host_page",
    "copyback_share",
    "capability_pages",
    "energy_j_per_gb",
)


def _relative(ours: float, theirs: float) -> float:
    return (ours - theirs) / theirs if theirs else 0.0


def _ratio(a: float, b: float) -> float:
    return a / b if b else 0.0


class _Living:
    """A life under way."""

    def __init__(self, spec: Spec, name: str, windows: int, requests: int, full: bool, progress: Watch | None) -> None:
        resolved = json.loads(spec.canonical_json())
        self._spec, self._name, self._full = spec, name, full
        self._windows, self._requests, self._progress = windows, requests, progress
        self._endurance = float(resolved["drive"]["endurance"])
        is_refreshed = resolved["refresh"]["policy"] != "none"
        # The refresh interval changes abruptly, so each change has a window on both sides.
        self._changes = [float(step["pe"]) + 1 for step in resolved["refresh"]["interval"] if is_refreshed]
        self._first = self._pe = float(resolved["reliability"]["pe_cycles"])
        memory.check(spec)
        self._run = interruptible(lambda: _core.Run(spec, endless=True))
        self._begun_s = time.perf_counter()
        self._completed = 0
        self._bytes = 0.0
        self._simulated_pe = self._counted_pe = 0.0
        self._sim_time_s = 0.0
        self._page_operations = 0
        self._note: str | None = None
        self._is_stopped = False
        self._rows: list[Window] = []
        #: The state of the drive and its statistics at the last count.
        self._now: LifeRow | None = None
        self._first_media_error_years: float | None = None
        #: The error that ended the life early.
        self._problem: str | None = None

    def live(self) -> Life:
        self._prepare()
        end = "it was stopped"
        if not self._is_stopped:
            try:
                end = self._go_on()
            except _core.RunError as error:
                # Finished windows are kept.
                if not self._rows:
                    raise
                end, self._problem = "an error", str(error)
        if not self._rows:
            raise LifeStopped
        return self._result(end)

    # ---------------------------------------------------------------------------------------------------- playing

    def _watch(self, phase: str) -> None:
        if self._progress is not None:
            share = (self._pe - self._first) / max(self._endurance - self._first, 1.0)
            wall_s = time.perf_counter() - self._begun_s
            now = Progress(phase, share, self._completed, self._sim_time_s, self._page_operations, wall_s, self._note)
            if self._progress(now) is False:
                self._is_stopped = True

    def _prepare(self) -> None:
        while not self._is_stopped:
            report = self._run.step(_STEP_MS, 0)
            self._note = report["note"]
            self._watch("precondition")
            if report["phase"] != "precondition":
                break
        if not self._is_stopped:
            # A loaded snapshot has its own wear.
            self._run.begin_stretch()
            self._first = self._pe = self._stretch().pe_mean

    def _goals(self) -> list[float]:
        """The mean P/E cycles at which the fast-forward after each window ends."""
        first, last = self._first, self._endurance
        steps = [first + (last - first) * k / self._windows for k in range(1, self._windows + 1)]
        return sorted({*steps, *(pe for pe in self._changes if first < pe < last)})

    def _stretch(self) -> LifeRow:
        return LifeRow(**dict(self._run.stretch()))

    def _play(self, requests: int) -> LifeRow:
        """Simulate `requests` requests as a new stretch; returns its statistics."""
        self._run.begin_stretch()
        return self._play_on(requests)

    def _play_on(self, requests: int) -> LifeRow:
        until = self._completed + requests
        while not self._is_stopped and self._completed < until:
            report = self._run.step(_STEP_MS, until)
            self._completed = report["requests"]
            self._sim_time_s, self._page_operations = report["sim_time_s"], report["page_operations"]
            self._watch("run")
            if report["done"]:
                raise _core.RunError("the workload has ended: a life needs a workload with requests")
        row = self._stretch()
        self._pe = row.pe_mean
        return row

    def _count(self, row: LifeRow, written: float) -> None:
        """Record the state `row` after `written` more bytes of the host."""
        self._bytes += written
        self._now = row
        self._simulated_pe += row.pe_mean - self._counted_pe
        self._counted_pe = row.pe_mean
        if row.media_errors > 0 and self._first_media_error_years is None:
            self._first_media_error_years = row.years

    def _settle(self, requests: int) -> LifeRow:
        self._counted_pe = self._pe
        row = self._play(requests)
        self._count(row, row.write_bytes)
        return row

    def _measure(self) -> Window:
        """Measure a window, repeatedly until it is steady."""
        for attempt in range(_TRIES):
            before = self._counted_pe = self._pe
            half = self._play(self._requests // 2)
            row = self._play_on(self._requests - self._requests // 2)
            self._count(row, row.write_bytes)
            is_steady = _apart(half, row) <= _STEADY
            if self._is_stopped or (is_steady and row.erases >= _ERASES_MIN) or _is_over(row, self._endurance):
                break
            if attempt == _TRIES - 1 and row.erases == 0 and row.outstanding > _BACKLOG * self._requests:
                raise OutputError(
                    "requests arrive so much faster than the drive serves them that it has not yet erased a block\n"
                    "  remedy: fewer requests per second (workload.arrival, time_scale)"
                )
            if attempt == _TRIES - 1 and row.erases == 0:
                raise OutputError(
                    f"no block was erased in a window of {self._requests} requests: the drive does not wear\n"
                    "  remedy: longer windows (--requests), a smaller drive, or a workload that writes"
                )
        written = self._bytes * 1e-12
        counted = msgspec.structs.asdict(row)
        return Window(**counted, pe_begin=before, steady=float(is_steady), host_tb_written=written)

    def _skip(self, window: Window, goal: float) -> bool:
        """Fast-forward as in the window to `goal` mean P/E cycles; returns whether a block wears out before."""
        self._run.rest()
        row = self._stretch()
        self._count(row, row.write_bytes - window.write_bytes)
        times = max((goal - row.pe_mean) / (window.pe_mean - window.pe_begin), 0.0)
        done = self._run.fast_forward(times)
        self._run.begin_stretch()
        row = self._stretch()
        self._pe = self._counted_pe = row.pe_mean
        self._count(row, done * window.write_bytes)
        return done < times

    def _go_on(self) -> str:
        for goal in self._goals():
            # The life may end while the drive settles.
            if (end := self._end(self._settle(self._requests))) is not None:
                return end
            row = self._measure()
            if (end := self._end(row)) is not None:
                return end
            self._rows.append(row)
            if self._full:
                while self._pe < goal:
                    # Short steps, so that the life ends soon after the first block is worn out.
                    if (end := self._end(self._settle(max(self._requests // 10, 100)))) is not None:
                        return end
            elif self._skip(row, goal):
                # The first block wears out before the goal: this window is the last one.
                row = self._measure()
                if (end := self._end(row)) is None:
                    self._rows.append(row)
                return _WORN if end is None else end
        return "the mean reached the endurance"

    def _end(self, row: LifeRow) -> str | None:
        """How the life has ended; `None` while it continues."""
        if self._is_stopped:
            return "it was stopped"
        if not _is_over(row, self._endurance):
            return None
        if not self._rows:
            raise OutputError(
                f"the drive is worn out before the end of its first window of {self._requests} requests\n"
                "  remedy: shorter windows (--requests), a larger drive.endurance, or less wear at the start"
            )
        return _WORN if row.pe_max >= self._endurance else _NO_ROOM

    # ---------------------------------------------------------------------------------------------------- the result

    def _result(self, end: str) -> Life:
        last = self._now
        if last is None:
            raise AssertionError("a life with a window has a state")
        written = self._bytes * 1e-12
        capacity = self._spec.logical_bytes
        days = last.years * 365
        rows = [dict(row) for row in self._rows]
        columns = {key: np.array([row[key] for row in rows]) for key, value in rows[0].items() if value is not None}
        _derive(columns)
        first_loss = self._first_media_error_years
        facts = LifeFacts(
            nandlab=_core.version(),
            spec_hash=self._spec.hash,
            complete=end in _ENDS,
            end=end,
            problem=self._problem,
            years=_rounded(last.years),
            host_tb_written=_rounded(written),
            drive_writes=_rounded(written * 1e12 / capacity),
            drive_writes_per_day=_rounded(_ratio(written * 1e12 / capacity, days)),
            pe_mean=_rounded(last.pe_mean),
            pe_spread=_rounded(last.pe_max - last.pe_min),
            first_media_error_years=None if first_loss is None else _rounded(first_loss),
            windows=len(self._rows),
            windows_unsteady=int(np.sum(columns["steady"] == 0)),
            windows_overloaded=int(np.sum(columns["outstanding"] > _BACKLOG * self._requests)),
            requests_a_window=self._requests,
            requests=self._completed,
            simulated_share=_rounded(_ratio(self._simulated_pe, last.pe_mean - self._first)),
            notes=self._notes(),
        )
        return Life(facts, columns, self._spec.to_toml(), self._spec.hash, self._name)

    def _notes(self) -> tuple[Note, ...]:
        """The notes of the drive, without those that hold for every life: it is long enough, and ends by wear."""
        found = msgspec.convert(json.loads(self._run.result().summary)["notes"], tuple[Note, ...])
        return tuple(note for note in found if note.code not in ("too-short", "worn-out"))


def _apart(half: LifeRow, whole: LifeRow) -> float:
    """The difference between the halves of a stretch, relative to their mean."""
    if whole.write_bytes == 0:
        waited = whole.read_us_mean * whole.reads - half.read_us_mean * half.reads
        first, later = half.read_us_mean, _ratio(waited, whole.reads - half.reads)
    else:
        first = _ratio(_programs(half), half.write_bytes)
        later = _ratio(_programs(whole) - _programs(half), whole.write_bytes - half.write_bytes)
    return _ratio(abs(later - first), (later + first) / 2)


def _programs(row: LifeRow) -> float:
    """Pages programmed, over all causes."""
    return (
        row.program_host
        + row.program_gc
        + row.program_wear
        + row.program_refresh
        + row.program_mapping
        + row.program_sync
        + row.program_flush
    )


def _is_over(row: LifeRow, endurance: float) -> bool:
    return row.pe_max >= endurance or row.failed_pages > 0


def _derive(columns: Columns) -> None:
    """Add the columns that the plots and the comparison compute from others."""

    def over(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        ratios: NDArray[np.float64] = np.divide(a, b, out=np.zeros(len(a)), where=b != 0)
        return ratios

    pages = columns["host_pages"]
    moved = columns["program_gc"] + columns["program_wear"]
    columns["refreshed_per_host_page"] = over(columns["refreshed_pages"], pages)
    columns["partial_share"] = over(columns["partial_pages"], columns["refreshed_pages"])
    columns["copyback_share"] = over(columns["copybacks"], moved)
    columns["energy_j_per_gb"] = over(columns["energy_j"], (columns["read_bytes"] + columns["write_bytes"]) * 1e-9)


def _rounded(value: float) -> float:
    return value if value == 0 or not math.isfinite(value) else float(f"{value:.11e}")
