"""The result of a run: in memory, and as a directory that is either whole or not there.

A result directory holds `nandlab-result.json` (the marker, written by nobody else), `summary.json`, `smart.json`,
`sim.json`, `spec.toml` (the resolved spec), one Parquet file per table, `power.json` when power failed or the dirty
page budget was detected, and `timeline.json` when the spec asks for it.
All but `sim.json` are the same bytes for the same spec and version.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from nandlab import _core
from nandlab.errors import OutputError, os_error_text
from nandlab.record import Record, parse
from nandlab.result_types import PowerRecord, Summary
from nandlab.tables import TABLES, Columns, decode, from_frame, to_frame, to_parquet
from nandlab.whole import NEW, OLD, beside, write_synced

if TYPE_CHECKING:
    import polars as pl

MARKER = "nandlab-result.json"
REPORT = "report.html"
_FORMAT = 1

#: The logs of `smart.json`, their attributes by name.
Smart = dict[str, dict[str, int]]


class Measured(Record, frozen=True):
    """What is measured of the simulator itself: `sim.json`."""

    page_operations: int
    """Flash operations on pages."""
    requests: int
    """Requests that have ended."""
    wall_s: float
    """Wall time of the whole run."""
    precondition_wall_s: float
    """Wall time before the first request."""
    requests_per_s: float
    """Requests in a second of wall time, from the first request on."""
    page_ops_per_s: float
    """Flash operations on pages in a second of wall time, from the first request on."""
    peak_rss_mb: float
    """The largest memory that the process has had, in megabytes."""


@dataclass
class RunResult:
    """What one run gave. Units are in the names of the keys and columns."""

    #: The text of `summary.json`; `summary` has it typed.
    summary_text: str
    #: The text of `smart.json`: NVMe health log and OCP C0h log.
    smart_text: str
    #: What is measured of the simulator itself.
    sim: Measured
    #: The resolved spec, every default written out.
    spec_toml: str
    spec_hash: str
    #: Name of the spec, without directory and suffix.
    name: str
    #: The directory this was saved to or read from.
    path: Path | None = None
    #: Chrome / Perfetto trace of the flash operations, as JSON text, when the spec asks for it.
    timeline: str | None = None
    #: The text of `power.json`: every power loss with the acknowledged writes it took, every budget detection.
    power_text: str | None = None
    _columns: dict[str, Columns] = field(default_factory=dict, repr=False)
    _frames: dict[str, pl.DataFrame] = field(default_factory=dict, repr=False)

    @functools.cached_property
    def summary(self) -> Summary:
        """`summary.json`, typed: `result.summary.cache.write_hits`."""
        return parse(self.summary_text, Summary, self._name_of("summary.json"))

    @functools.cached_property
    def smart(self) -> Smart:
        """`smart.json`: the names nvme-cli prints for the NVMe health log and the OCP C0h log."""
        return parse(self.smart_text, Smart, self._name_of("smart.json"))

    @functools.cached_property
    def power(self) -> PowerRecord | None:
        """`power.json`: each power loss with the acknowledged writes it took, and each detection of the dirty page
        budget; `None` when there was neither."""
        if self.power_text is None:
            return None
        return parse(self.power_text, PowerRecord, self._name_of("power.json"))

    def _name_of(self, file: str) -> str:
        return file if self.path is None else str(self.path / file)

    def _repr_html_(self) -> str:
        from nandlab.presentation import of_run
        from nandlab.reporting.pieces import glance

        return glance(of_run(self))

    @property
    def complete(self) -> bool:
        """Whether the whole workload was run; `False` when the run was stopped."""
        return self.summary.complete

    @property
    def tables(self) -> list[str]:
        """The names of the tables this run has."""
        return list(self._columns) if self._columns else list(self._frames)

    def table(self, name: str) -> pl.DataFrame:
        """The table `name` as a polars data frame."""
        if name not in self._frames:
            if name not in self._columns:
                raise KeyError(f"no table {name!r}; this run has {', '.join(self.tables)}")
            self._frames[name] = to_frame(self._columns[name])
        return self._frames[name]

    def numpy(self, name: str) -> Columns:
        """The table `name` as one numpy array per column; text columns are arrays of `object`."""
        if name not in self._columns:
            return from_frame(self.table(name))
        return self._columns[name]

    @property
    def series(self) -> pl.DataFrame:
        """The run over time: `time_s` (end of the interval), `interval_s`, counts and bytes by operation,
        `latency_us_*`, `iops`, `mb_per_s`, `pages_written` by the host, pages programmed by cause, `erases`, `waf`,
        free shares, `die_busy_mean`, and of the write cache the most `cache_dirty_pages`, the highest dirty budget
        `cache_budget_pages`, and `capacitor_pages`, which the full capacitor could save."""
        return self.table("series")

    @property
    def dies(self) -> pl.DataFrame:
        """`busy_share` of every die over time: `time_s`, `interval_s`, `die`, `channel`, `busy_share`."""
        return self.table("dies")

    @property
    def latency(self) -> pl.DataFrame:
        """Latency histograms: `op`, `low_us` and `high_us` of the bin, `count`."""
        return self.table("latency")

    @property
    def blocks(self) -> pl.DataFrame:
        """Every block at the end: `plane`, `block`, `pe_cycles`, `valid_pages`, `state`."""
        return self.table("blocks")

    @property
    def requests(self) -> pl.DataFrame:
        """Every request: `arrival_ns`, `completed_ns`, `op`, `offset` and `length` in bytes, `failed`.

        `failed` is 0 of a request that is done, 1 where a page is uncorrectable, 2 where the drive has worn out, and 3
        where the request was outstanding when power failed.

        Only with `output.requests = true` in the spec."""
        return self.table("requests")

    def save(self, out: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the result directory `out`, all of it or nothing.

        A directory that holds an older result, and nothing else, is replaced; any other only with `force`.
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
            output.write(f"{name}.parquet", to_parquet(self.table(name)))
        if self.power_text is not None:
            output.write("power.json", _line(self.power_text))
        if self.timeline is not None:
            output.write("timeline.json", _line(self.timeline))
        marker = {
            "format": _FORMAT,
            "version": _core.version(),
            "spec_name": self.name,
            "spec_hash": self.spec_hash,
            "complete": self.complete,
            "files": output.written,
        }
        output.write(MARKER, _line(json.dumps(marker, indent=2)))

    @staticmethod
    def from_core(result: _core.Result, name: str, sim: Measured) -> RunResult:
        """Take everything out of the core's result."""
        return RunResult(
            summary_text=result.summary,
            smart_text=result.smart,
            sim=sim,
            spec_toml=result.spec_toml,
            spec_hash=result.spec_hash,
            name=name,
            timeline=result.timeline(),
            power_text=result.power,
            _columns={table: decode(raw) for table, raw in result.tables().items()},
        )

    @staticmethod
    def read(directory: str | os.PathLike[str]) -> RunResult:
        """Read a result directory."""
        import polars as pl

        path = Path(directory)
        if not path.exists():
            raise OutputError(f"no result directory {path}")
        if not path.is_dir():
            raise OutputError(f"{path} is not a directory; a result is a directory, such as out/demo")
        if not (path / MARKER).is_file():
            raise OutputError(f"{path} holds no nandlab result (it has no {MARKER})")
        reading = path / MARKER
        try:
            marker = json.loads(reading.read_text(encoding="utf-8"))
            if marker["format"] != _FORMAT:
                raise OutputError(
                    f"{path} is a result of format {marker['format']}, this version reads {_FORMAT}: run it again"
                )
            texts: dict[str, str] = {}
            for name in ("summary.json", "smart.json", "sim.json", "spec.toml"):
                reading = path / name
                texts[name] = reading.read_text(encoding="utf-8")
            frames = {}
            for name in (table for table in TABLES if f"{table}.parquet" in marker["files"]):
                reading = path / f"{name}.parquet"
                frames[name] = pl.read_parquet(reading.read_bytes())
            reading = path / "timeline.json"
            timeline = reading.read_text(encoding="utf-8") if "timeline.json" in marker["files"] else None
            reading = path / "power.json"
            power = reading.read_text(encoding="utf-8") if "power.json" in marker["files"] else None
            result = RunResult(
                summary_text=texts["summary.json"],
                smart_text=texts["smart.json"],
                sim=parse(texts["sim.json"], Measured, path / "sim.json"),
                spec_toml=texts["spec.toml"],
                spec_hash=marker["spec_hash"],
                name=marker["spec_name"],
                path=path,
                timeline=timeline,
                power_text=power,
                _frames=frames,
            )
            # Whether this version of nandlab can read them.
            _ = result.summary, result.smart, result.power
            return result
        except OSError as error:
            raise OutputError(os_error_text("read", reading, error)) from None
        except (ValueError, KeyError, TypeError, pl.exceptions.PolarsError):
            raise OutputError(f"{reading} is damaged: run it again") from None


class OutputDirectory:
    """A directory that appears under its name only once everything in it is written.

    Files go to a hidden directory beside it, which is removed when the block fails, with the parent directories that
    were made for it. Opening it checks that the name may be taken, so a long run does not end on a refusal.
    """

    def __init__(self, path: Path, *, force: bool = False) -> None:
        self.path = path
        self.written: list[str] = []
        self._force = force
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> OutputDirectory:
        self._check()
        try:
            with contextlib.ExitStack() as stack:
                parents = [parent for parent in self.path.absolute().parents if not parent.exists()]
                stack.callback(_remove_empty, parents)
                self.path.absolute().parent.mkdir(parents=True, exist_ok=True)
                self._hidden = stack.enter_context(beside(self.path))
                self._new = self._hidden / NEW
                self._new.mkdir()
                self._stack = stack.pop_all()
        except OSError as error:
            raise OutputError(os_error_text("write to", self.path, error)) from None
        return self

    def write(self, name: str, data: bytes) -> None:
        """Write one file, and have it on the disk when this returns."""
        try:
            write_synced(self._new / name, data)
        except OSError as error:
            raise OutputError(os_error_text("write", self.path / name, error)) from None
        self.written.append(name)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._stack:
            if kind is None:
                self._check()
                try:
                    if self.path.exists():
                        # If anything happens before the next rename, `beside` puts it back.
                        os.rename(self.path, self._hidden / OLD)
                    os.rename(self._new, self.path)
                except OSError as error:
                    raise OutputError(os_error_text("write to", self.path, error)) from None

    def _check(self) -> None:
        """Refuse a name that something else than a result of ours has."""
        path = self.path
        try:
            if path.name in ("", ".."):
                raise OutputError(f"{path} cannot be replaced as a whole: choose a directory below it with --out")
            if path.is_symlink() and not path.exists():
                raise OutputError(f"{path} is a link that leads nowhere: choose another --out")
            if not path.exists():
                return
            if not path.is_dir():
                raise OutputError(f"{path} is a file: choose another directory with --out")
            if path.is_symlink() or path.is_mount() or path.resolve() == Path.cwd().resolve():
                raise OutputError(f"{path} cannot be replaced as a whole: choose a directory below it with --out")
            if self._force:
                return
            foreign = sorted(_foreign(path))
        except OSError as error:
            raise OutputError(os_error_text("write to", path, error)) from None
        if foreign:
            names = ", ".join(foreign[:4]) + (", ..." if len(foreign) > 4 else "")
            raise OutputError(
                f"{path} holds files that are not of an earlier run ({names})\n"
                "  choose another directory with --out, or replace it, with all that is in it, with --force"
            )


def _remove_empty(directories: list[Path]) -> None:
    """Remove directories, innermost first, up to one that something is in."""
    with contextlib.suppress(OSError):
        for directory in directories:
            directory.rmdir()


def _foreign(path: Path) -> Iterator[str]:
    """What is in a directory and was not put there by an earlier run."""
    own = {MARKER, REPORT}
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        own.update(json.loads((path / MARKER).read_text(encoding="utf-8"))["files"])
        return (entry.name for entry in path.iterdir() if entry.name not in own)
    return (entry.name for entry in path.iterdir())


def _line(text: str) -> bytes:
    """The text as bytes that end in one newline."""
    return (text if text.endswith("\n") else text + "\n").encode()
