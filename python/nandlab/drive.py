"""The stepping interface: a drive that is driven request by request.

drive = nandlab.Drive(nandlab.load("examples/demo.toml"))
drive.write(offset=0, length=4096)
drive.run_until_idle()
for completion in drive.completions():
    print(completion.op, completion.latency_us)
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nandlab import _core, memory
from nandlab.errors import OutputError, os_error_text
from nandlab.record import parse
from nandlab.result_types import LossRecord, PowerRecord, Summary
from nandlab.results import Smart
from nandlab.tables import Columns, decode, to_frame
from nandlab.whole import whole_file

if TYPE_CHECKING:
    import polars as pl


class Completion(NamedTuple):
    """One request that is done. Times are simulated nanoseconds."""

    id: int
    #: `"read"`, `"write"`, `"trim"` or `"flush"`.
    op: str
    arrival_ns: int
    completed_ns: int
    #: Why it has failed: `"uncorrectable"` (no read level decodes a page that it needs, or the page has been lost),
    #: `"worn_out"` (no block is left for a page of it) or `"power_lost"` (it was outstanding when power failed);
    #: `None` of one that is done.
    reason: str | None

    @property
    def failed(self) -> bool:
        """Whether it has failed; `reason` says why."""
        return self.reason is not None

    @property
    def latency_us(self) -> float:
        """Arrival to completion, in microseconds."""
        return (self.completed_ns - self.arrival_ns) / 1000


class Capacitor(NamedTuple):
    """The capacitor now."""

    #: `"charged"`, or where a detection or a recharge is: `"syncing"`, `"draining"`, `"settling"`, `"recharging"`.
    stage: str
    #: What an emergency flush could use now, in joules.
    energy_j: float
    #: Pages of the write cache that it could save if it were full.
    capability_pages: float


class CachePages(NamedTuple):
    """The write cache now, in pages."""

    #: That fit.
    capacity: int
    #: That may be dirty.
    budget: int
    #: That are dirty.
    dirty: int


class Drive:
    """A simulated drive, preconditioned as its spec says. Offsets and lengths are bytes; time only moves by
    `advance` and `run_until_idle`.

    Both end on Ctrl-C, between two events; the drive can go on afterwards. A drive that cannot go on and is not worn
    out has met a fault in nandlab: then every call that simulates raises `RunError`, which says what to report.
    """

    def __init__(self, spec: _core.Spec, *, verify: bool = False) -> None:
        """`verify` checks every read against a reference model of the drive (slower)."""
        memory.check(spec, verify)
        self._core = _core.Drive(spec, verify)
        self._page_bytes = spec.page_bytes

    @property
    def now_ns(self) -> int:
        """The simulated time, in nanoseconds."""
        return self._core.now

    @property
    def outstanding(self) -> int:
        """Requests that have been submitted and are not complete."""
        return self._core.outstanding

    def submit(self, op: str, offset: int = 0, length: int = 0, *, fua: bool = False) -> int:
        """Submit a `"read"`, `"write"`, `"trim"` or `"flush"` now; the id comes back with its completion."""
        return self._core.submit(op, offset, length, fua)

    def read(self, offset: int, length: int) -> int:
        """Submit a read."""
        return self.submit("read", offset, length)

    def write(self, offset: int, length: int, *, fua: bool = False) -> int:
        """Submit a write; with `fua` it completes only once it is in flash."""
        return self.submit("write", offset, length, fua=fua)

    def trim(self, offset: int, length: int) -> int:
        """Submit a TRIM."""
        return self.submit("trim", offset, length)

    def flush(self) -> int:
        """Submit a flush: it completes once everything acknowledged before it is in flash."""
        return self.submit("flush")

    def advance(self, to_ns: int) -> None:
        """Simulate up to the instant `to_ns` (absolute, in nanoseconds). Raises `RunError` when the drive fails."""
        self._core.advance(to_ns)

    def run_until_idle(self, limit_s: float = 60.0) -> None:
        """Simulate until every request is complete and the drive does nothing in the background.

        Raises `RunError` when something still goes on after `limit_s` seconds of simulated time, such as the refresh of
        blocks that are due again before all are refreshed; and when the drive fails.
        """
        self._core.run_until_idle(limit_s)

    def completions(self) -> list[Completion]:
        """Take the requests that have completed since the last call, in order of completion."""
        return [Completion(*completion) for completion in self._core.completions()]

    @property
    def capacitor(self) -> Capacitor | None:
        """The capacitor now; `None` without one."""
        found = self._core.capacitor
        return None if found is None else Capacitor(*found)

    @property
    def cache_pages(self) -> CachePages:
        """The write cache now, in pages; all 0 without one."""
        return CachePages(*self._core.cache_pages)

    def cut_power(self) -> LossRecord:
        """Power fails now; the drive saves what it can, recovers, and goes on. Returns the loss as `power.json` has it.

        Requests under way end as failed completions. A drive whose spec has neither capacitor nor power cut keeps no
        sequence numbers to recover from: `RunError`, unless it was made with `verify`.
        """
        self._core.cut_power()
        return self.power().losses[-1]

    def detect_budget(self) -> bool:
        """Measure the capacitor now, whatever the host does; it is done some simulated time later, see `power`.

        Whether it has begun: not while it is being measured or recharged. `RunError` without capacitor or write cache.
        """
        return self._core.detect_budget()

    def power(self) -> PowerRecord:
        """What `power.json` would hold now: `losses` with the acknowledged writes they took, and `detections`."""
        text = self._core.power()
        if text is None:
            return PowerRecord(page_bytes=self._page_bytes, losses=(), detections=())
        return parse(text, PowerRecord, "power.json")

    def summary(self) -> Summary:
        """What `summary.json` would hold now."""
        return parse(self._core.summary(), Summary, "summary.json")

    def smart(self) -> Smart:
        """What `smart.json` would hold now: NVMe health log and OCP C0h log."""
        return parse(self._core.smart(), Smart, "smart.json")

    def numpy(self, name: str) -> Columns:
        """The table `name` (`"series"`, `"blocks"` ...) as one numpy array per column."""
        tables = self._core.tables()
        if name not in tables:
            raise KeyError(f"no table {name!r}; this drive has {', '.join(tables)}")
        return decode(tables[name])

    def table(self, name: str) -> pl.DataFrame:
        """The table `name` as a polars data frame."""
        return to_frame(self.numpy(name))

    def audit(self) -> None:
        """Check the whole drive (map and reverse map, valid counts, free lists); raises `RunError` on a fault."""
        self._core.audit()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the drive's state, to be loaded by a spec's `[precondition]`.

        The file is written beside `path` and renamed. Raises `RunError` while operations are under way, and while the
        write cache holds pages that flash does not have: `flush()` and `run_until_idle()` first.
        """
        try:
            with whole_file(Path(path)) as partial:
                self._core.save(os.fspath(partial))
        except OSError as error:
            raise OutputError(os_error_text("save the drive to", path, error)) from None
