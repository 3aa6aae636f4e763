"""The result of a run: in memory, and as a directory that is written completely or not at all.

A result directory contains `nandlab-result.json` (the marker, with the digests of the files), `summary.json`,
`smart.json`, `sim.json`, `spec.toml` (the resolved spec), one Parquet file per table, `power.json` after a power loss
or a detection of the dirty page budget, `fdp.json` for a drive with placement handles, and `timeline.json` with
`output.timeline_operations`. All files except `sim.json` have the same bytes for the same spec and version.

A file is read only if it is the one that was written: the marker has the SHA-256 of every file except `sim.json`, and
of its own entries. So a file that was cut off, changed, or taken from another result is refused by its name.

The readers (`RunResult.read`, `Life.read`) go through `ResultFolder`, which hands out only such a file;
`tests/python/test_result_folders.py` mutates every file.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nandlab import _core
from nandlab.errors import OutputError, os_error_text, shown
from nandlab.explained import Explanation
from nandlab.record import Record, parse
from nandlab.result_types import PowerRecord, Summary
from nandlab.tables import TABLES, Columns, RawTable, decode, encode, from_frame, to_frame
from nandlab.whole import NEW, OLD, hidden_beside, write_synced

if TYPE_CHECKING:
    import polars as pl

    from nandlab.notebook import RunPlots

MARKER = "nandlab-result.json"
REPORT = "report.html"
_FORMAT = 2
#: The first characters of the name of the trace of a run of `requests`.
REQUESTS = "requests-"
#: The file whose digest is not in the marker, since two runs of one spec differ in it.
_MEASURED = "sim.json"

#: The logs of `smart.json` by name: attributes by name.
Smart = dict[str, dict[str, int]]


class Measured(Record, frozen=True):
    """Measurements of the simulator itself: `sim.json`."""

    page_operations: int
    """Pages read (every try), programmed and copied back."""
    requests: int
    """Requests that have ended."""
    wall_s: float
    """Wall time of the whole run, in seconds."""
    precondition_wall_s: float
    """Wall time before the first request, in seconds."""
    requests_per_s: float
    """Requests per second of wall time, from the first request on."""
    page_ops_per_s: float
    """Page operations per second of wall time, from the first request on."""
    peak_rss_mb: float
    """Peak resident memory of the process, in megabytes."""
    dropped_bytes: int = 0
    """Bytes of an unfinished record at the end of a recording that was played; they were dropped."""


@dataclass(repr=False)
class RunResult:
    """The result of one run. The names of keys and columns contain their units."""

    #: The text of `summary.json`; `summary` is the typed form.
    summary_text: str
    #: The text of `smart.json`: NVMe health log and OCP C0h log.
    smart_text: str
    #: Measurements of the simulator itself: `sim.json`.
    sim: Measured
    #: The resolved spec with all defaults, as TOML text.
    spec_toml: str
    spec_hash: str
    #: Name of the run; by default the file name of the spec without suffix.
    name: str
    #: The directory to which the result was saved or from which it was read.
    path: Path | None = None
    #: The timeline (a Chrome / Perfetto trace of operations and requests) as JSON text; `None` without it.
    timeline: str | None = None
    #: The text of `explained.json`; `None` without `output.explain`.
    explained_text: str | None = None
    #: The text of `power.json`; `None` for a run with neither a power loss nor a detection of the dirty page budget.
    power_text: str | None = None
    #: The text of `fdp.json`; `None` for a drive without placement handles.
    fdp_text: str | None = None
    #: Further files of the result by name: the trace of a run of `requests`.
    files: dict[str, bytes] = field(default_factory=dict, repr=False)
    _raw: dict[str, RawTable] = field(default_factory=dict, repr=False)
    _frames: dict[str, pl.DataFrame] = field(default_factory=dict, repr=False)

    @functools.cached_property
    def summary(self) -> Summary:
        """`summary.json`, typed: `result.summary.cache.write_hits`."""
        return parse(self.summary_text, Summary, self._name_of("summary.json"))

    @functools.cached_property
    def smart(self) -> Smart:
        """`smart.json`: NVMe health log and OCP C0h log, with the names that nvme-cli prints."""
        return parse(self.smart_text, Smart, self._name_of("smart.json"))

    @functools.cached_property
    def power(self) -> PowerRecord | None:
        """`power.json`: power losses and detections of the dirty page budget; `None` for a run with neither."""
        if self.power_text is None:
            return None
        return parse(self.power_text, PowerRecord, self._name_of("power.json"))

    @functools.cached_property
    def fdp(self) -> dict[str, Any] | None:
        """`fdp.json`: the logs of placement handles (NVMe FDP), with the fields of nvme-cli's JSON; `None` for a drive
        without placement handles. `nandlab.fdp.lines` prints one of them as nvme-cli does."""
        if self.fdp_text is None:
            return None
        return parse(self.fdp_text, dict[str, Any], self._name_of("fdp.json"))

    @functools.cached_property
    def explained(self) -> Explanation | None:
        """`explained.json`: what the requests waited for; `None` for a run without `output.explain`."""
        if self.explained_text is None:
            return None
        return parse(self.explained_text, Explanation, self._name_of("explained.json"))

    def _name_of(self, file: str) -> str:
        return file if self.path is None else shown(self.path / file)

    def __repr__(self) -> str:
        from nandlab.notebook import text_of
        from nandlab.presentation import of_run

        return text_of(of_run(self), "RunResult")

    def _repr_mimebundle_(self, *_: object, **__: object) -> dict[str, Any]:
        """The result in a notebook: text, and with the extra `figures` also HTML and the picture of its latency."""
        from nandlab.notebook import bundle, run_figures
        from nandlab.presentation import of_run
        from nandlab.reporting.extra import missing

        return bundle(of_run(self), "RunResult", () if missing() else run_figures(self))

    @property
    def plot(self) -> RunPlots:
        """The charts of the result: `result.plot.latency()`, `.waf()` and `.timeline()`."""
        from nandlab.notebook import RunPlots

        return RunPlots(self)

    @property
    def complete(self) -> bool:
        """Whether the whole workload was simulated; `False` when the run was stopped."""
        return self.summary.complete

    @property
    def tables(self) -> list[str]:
        """The names of the tables of this run."""
        return list(self._raw) if self._raw else list(self._frames)

    def table(self, name: str) -> pl.DataFrame:
        """The table `name` as a polars data frame; raises `KeyError` for a table that the run does not have."""
        if name not in self._frames:
            self._frames[name] = to_frame(self.numpy(name))
        return self._frames[name]

    def numpy(self, name: str) -> Columns:
        """The table `name` as one numpy array per column; text columns are arrays of `object`. Raises `KeyError`."""
        if name in self._raw:
            return decode(self._raw[name])
        if name not in self._frames:
            raise KeyError(f"no table {name!r}; this run has {', '.join(self.tables)}")
        return from_frame(self._frames[name])

    def _parquet(self, name: str) -> bytes:
        """The Parquet file of the table `name`; equal tables give equal bytes."""
        return _core.parquet_file(self._raw[name] if name in self._raw else encode(self.numpy(name)))

    @property
    def series(self) -> pl.DataFrame:
        """Statistics over time, one row per interval of simulated time.

        Columns: `time_s` (end of the interval), `interval_s`, requests and bytes by operation, `latency_us_*`, `iops`,
        `mb_per_s`, `pages_written` by the host, pages programmed by cause, `erases`, `waf`, free shares (0 to 1),
        `die_busy_mean` and `channel_busy_mean` (0 to 1), the maxima `cache_dirty_pages` and `cache_budget_pages` (dirty
        budget) of the write cache, and `capacitor_pages`, the pages that the full capacitor could save.
        """
        return self.table("series")

    @property
    def dies(self) -> pl.DataFrame:
        """Die utilisation over time: `time_s`, `interval_s`, `die`, `channel`, `busy_share` (0 to 1)."""
        return self.table("dies")

    @property
    def latency(self) -> pl.DataFrame:
        """Latency histograms: `op`, `low_us` and `high_us` (the bounds of the bin), `count`."""
        return self.table("latency")

    @property
    def blocks(self) -> pl.DataFrame:
        """All blocks at the end of the run: `plane`, `block`, `pe_cycles`, `valid_pages`, `state`."""
        return self.table("blocks")

    @property
    def requests(self) -> pl.DataFrame:
        """All requests: `arrival_ns`, `completed_ns`, `op`, `offset` and `length` in bytes, `failed`.

        `failed` is 0 for a request that succeeded, 1 when a page was uncorrectable, 2 when the drive was worn out, and
        3 when the request was outstanding at a power loss. Raises `KeyError` unless the spec sets `output.requests =
        true`.
        """
        return self.table("requests")

    def save(self, out: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the result directory `out`, completely or not at all; returns its path.

        A directory that contains only an earlier result is replaced, a directory with other files only with `force`.
        Raises `OutputError`.
        """
        with OutputDirectory(Path(out), force=force) as output:
            self.write_to(output)
        self.path = output.path
        return output.path

    def write_to(self, output: OutputDirectory) -> None:
        """Write all files into an open output directory."""
        output.write("summary.json", _line(self.summary_text))
        output.write("smart.json", _line(self.smart_text))
        output.write("sim.json", _line(json.dumps(msgspec.to_builtins(self.sim), indent=2)))
        output.write("spec.toml", _line(self.spec_toml))
        for name in self.tables:
            output.write(f"{name}.parquet", self._parquet(name))
        if self.power_text is not None:
            output.write("power.json", _line(self.power_text))
        if self.fdp_text is not None:
            output.write("fdp.json", _line(self.fdp_text))
        if self.timeline is not None:
            output.write("timeline.json", _line(self.timeline))
        for name, data in self.files.items():
            output.write(name, data)
        if self.explained_text is not None:
            output.write("explained.json", _line(self.explained_text))
        output.mark("run", self.name, self.spec_hash, complete=self.complete)

    @staticmethod
    def from_core(result: _core.Result, name: str, sim: Measured) -> RunResult:
        """Copy the result of the core."""
        return RunResult(
            summary_text=result.summary,
            smart_text=result.smart,
            sim=sim,
            spec_toml=result.spec_toml,
            spec_hash=result.spec_hash,
            name=name,
            timeline=result.timeline(),
            explained_text=result.explained(),
            power_text=result.power,
            fdp_text=result.fdp,
            _raw=dict(result.tables()),
        )

    @staticmethod
    def read(directory: str | os.PathLike[str]) -> RunResult:
        """Read a result directory; raises `OutputError`."""
        path = Path(directory)
        if not path.exists():
            raise OutputError(f"no result directory {shown(path)}")
        if not path.is_dir():
            raise OutputError(f"{shown(path)} is not a directory; a result is a directory, such as out/demo")
        if (path / "compare.json").is_file():
            raise OutputError(f"{shown(path)} has a comparison; its page is {shown(path / 'compare.html')}")
        if not (path / MARKER).is_file():
            raise OutputError(
                f"{shown(path)} has no nandlab result (no file {MARKER})\n"
                "  remedy: name a directory that `nandlab run` or `nandlab life` has written"
            )
        folder = ResultFolder(path, "run")
        result = RunResult(
            summary_text=folder.text("summary.json"),
            smart_text=folder.text("smart.json"),
            sim=parse(folder.text(_MEASURED), Measured, shown(path / _MEASURED)),
            spec_toml=folder.text("spec.toml"),
            spec_hash=folder.marker.spec_hash,
            name=folder.marker.spec_name,
            path=path,
            timeline=folder.text("timeline.json") if folder.has("timeline.json") else None,
            explained_text=folder.text("explained.json") if folder.has("explained.json") else None,
            power_text=folder.text("power.json") if folder.has("power.json") else None,
            fdp_text=folder.text("fdp.json") if folder.has("fdp.json") else None,
            files={name: folder.data(name) for name in folder.marker.files if name.startswith(REQUESTS)},
            _frames={name: folder.frame(name) for name in TABLES if folder.has(f"{name}.parquet")},
        )
        # Parse the texts now, so that a file of another version is refused here.
        _ = result.summary, result.smart, result.power, result.fdp, result.explained
        return result


class _Marker(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `nandlab-result.json`."""

    format: int
    kind: str
    version: str
    spec_name: str
    spec_hash: str
    complete: bool
    #: The SHA-256 of each file; `None` for `sim.json`.
    files: dict[str, str | None]
    #: The SHA-256 of the other entries.
    seal: str = ""

    def sealed(self) -> _Marker:
        entries = msgspec.json.encode(msgspec.structs.replace(self, seal=""))
        return msgspec.structs.replace(self, seal=hashlib.sha256(entries).hexdigest())


class ResultFolder:
    """Reads the files of a result folder, and refuses a file that is not the one that was written.

    `kind` is `"run"` or `"life"`. Raises `OutputError`, which names the file.
    """

    def __init__(self, path: Path, kind: str) -> None:
        self.path = path
        self._again = "run the spec again" if kind == "run" else "run `nandlab life` again"
        text = self._decoded(MARKER, self._read(MARKER))
        try:
            form = json.loads(text)["format"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise self._damaged(MARKER) from None
        if form != _FORMAT:
            raise OutputError(
                f"{shown(path / MARKER)}: expected a result of format {_FORMAT}, found {form!r:.20}: {self._again}"
            )
        try:
            self.marker = msgspec.json.decode(text, type=_Marker)
        except (msgspec.DecodeError, RecursionError):
            raise self._damaged(MARKER) from None
        if self.marker != self.marker.sealed() or self.marker.kind != kind:
            raise self._damaged(MARKER)

    def has(self, name: str) -> bool:
        """Whether the result has a file."""
        return name in self.marker.files

    def data(self, name: str) -> bytes:
        data = self._read(name)
        if name not in self.marker.files:
            raise self._damaged(name)
        digest = self.marker.files[name]
        if digest is None if name != _MEASURED else digest is not None:
            raise self._damaged(MARKER)
        if digest is not None and hashlib.sha256(data).hexdigest() != digest:
            raise self._damaged(name)
        return data

    def text(self, name: str) -> str:
        return self._decoded(name, self.data(name))

    def frame(self, table: str) -> pl.DataFrame:
        """A table, from its Parquet file."""
        import polars as pl

        name = f"{table}.parquet"
        try:
            return pl.read_parquet(self.data(name))
        except pl.exceptions.PolarsError:
            raise self._damaged(name) from None

    def _read(self, name: str) -> bytes:
        try:
            return (self.path / name).read_bytes()
        except OSError as error:
            raise OutputError(os_error_text("read", self.path / name, error)) from None

    def _decoded(self, name: str, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise self._damaged(name) from None

    def _damaged(self, name: str) -> OutputError:
        where = shown(self.path / name)
        return OutputError(f"{where} is damaged: it is not the file that was written with this result: {self._again}")


class OutputDirectory:
    """A directory that appears under its name only when all its files are written.

    The files are written to a hidden directory beside `path`. When the `with` block fails, the hidden directory and the
    parent directories that were created for it are removed. Entering the block checks that `path` may be replaced, so
    that a long run does not fail at its end. Raises `OutputError`.
    """

    def __init__(self, path: Path, *, force: bool = False) -> None:
        self.path = path
        #: The SHA-256 of each file, by name.
        self.written: dict[str, str | None] = {}
        self._force = force
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> OutputDirectory:
        self._check()
        try:
            with contextlib.ExitStack() as stack:
                parents = [parent for parent in self.path.absolute().parents if not parent.exists()]
                stack.callback(_remove_empty, parents)
                self.path.absolute().parent.mkdir(parents=True, exist_ok=True)
                self._hidden = stack.enter_context(hidden_beside(self.path))
                self._new = self._hidden / NEW
                self._new.mkdir()
                self._stack = stack.pop_all()
        except OSError as error:
            raise OutputError(os_error_text("write to", self.path, error)) from None
        return self

    def write(self, name: str, data: bytes) -> None:
        """Write one file, synced to the disk."""
        try:
            write_synced(self._new / name, data)
        except OSError as error:
            raise OutputError(os_error_text("write", self.path / name, error)) from None
        self._add(name, data)

    def _add(self, name: str, data: bytes) -> None:
        self.written[name] = None if name == _MEASURED else hashlib.sha256(data).hexdigest()

    def mark(self, kind: str, name: str, spec_hash: str, *, complete: bool) -> None:
        """Write the marker, after all other files."""
        marker = _Marker(_FORMAT, kind, _core.version(), name, spec_hash, complete, self.written).sealed()
        self.write(MARKER, _line(json.dumps(msgspec.to_builtins(marker), indent=2)))

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._stack:
            if kind is None:
                self._check()
                try:
                    if self.path.exists():
                        # Without the next rename, `hidden_beside` moves the old directory back.
                        os.rename(self.path, self._hidden / OLD)
                    os.rename(self._new, self.path)
                except OSError as error:
                    raise OutputError(os_error_text("write to", self.path, error)) from None

    def _check(self) -> None:
        """Refuse a path that is neither free nor an earlier result."""
        path, where = self.path, shown(self.path)
        try:
            if path.name in ("", ".."):
                raise OutputError(f"{where} cannot be replaced as a whole: choose a directory below it with --out")
            if path.is_symlink() and not path.exists():
                raise OutputError(f"{where} is a symbolic link to a missing file: choose another --out")
            if not path.exists():
                return
            if not path.is_dir():
                raise OutputError(f"{where} is a file: choose another directory with --out")
            if path.is_symlink() or path.is_mount() or path.resolve() == Path.cwd().resolve():
                raise OutputError(f"{where} cannot be replaced as a whole: choose a directory below it with --out")
            if self._force:
                return
            foreign = sorted(_foreign(path))
        except OSError as error:
            raise OutputError(os_error_text("write to", path, error)) from None
        if foreign:
            names = ", ".join(map(shown, foreign[:4])) + (", ..." if len(foreign) > 4 else "")
            raise OutputError(
                f"{where} has files that do not belong to an earlier result ({names})\n"
                "  remedy: choose another directory with --out, or replace the directory and all its files with --force"
            )


def _remove_empty(directories: list[Path]) -> None:
    """Remove directories, innermost first, up to the first one that is not empty."""
    with contextlib.suppress(OSError):
        for directory in directories:
            directory.rmdir()


def _foreign(path: Path) -> Iterator[str]:
    """Names of the files in a directory that do not belong to an earlier result."""
    own = {MARKER, REPORT}
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        own.update(json.loads((path / MARKER).read_text(encoding="utf-8"))["files"])
        return (entry.name for entry in path.iterdir() if entry.name not in own)
    return (entry.name for entry in path.iterdir())


def _line(text: str) -> bytes:
    """The text as bytes that end in one newline."""
    return (text if text.endswith("\n") else text + "\n").encode()
