"""The stepping interface: requests are submitted to a simulated drive one at a time.

drive = nandlab.Drive(nandlab.load("examples/demo.toml"))
drive.write(offset=0, length=4096)
drive.run_until_idle()
for completion in drive.completions():
    print(completion.op, completion.latency_us)
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nandlab import _core, memory
from nandlab.batches import OPS, REASONS, raw_columns, requests_of
from nandlab.errors import OutputError, os_error_text
from nandlab.record import parse
from nandlab.result_types import LossRecord, PowerRecord, Summary
from nandlab.results import Smart
from nandlab.spec import load
from nandlab.tables import Columns, decode, to_frame
from nandlab.whole import whole_file

if TYPE_CHECKING:
    import polars as pl


class Completion(NamedTuple):
    """One request that has ended. Times are simulated times in nanoseconds since the start of the run."""

    #: The number that `Drive.submit` returned.
    id: int
    #: `"read"`, `"write"`, `"trim"` or `"flush"`.
    op: str
    arrival_ns: int
    completed_ns: int
    #: Why the request failed: `"uncorrectable"` (no read level decodes a page of the request, or the page has been
    #: lost), `"worn_out"` (no block is left for a page of the request) or `"power_lost"` (the request was outstanding
    #: when power failed); `None` for a request that succeeded.
    reason: str | None
    #: Of a read on a drive with `versions=True`: for each mapping unit that the read covers, in order of address, the
    #: `id` of the write whose data the drive returned; `None` for a unit that no request has written, or that has been
    #: deallocated. `None` for other requests, and for a read that failed.
    versions: tuple[int | None, ...] | None = None

    @property
    def version(self) -> int | None:
        """The `id` of the write whose data a read returned; `None` where `versions` has no one write for all units."""
        units = set(self.versions or ())
        return units.pop() if len(units) == 1 else None

    @property
    def failed(self) -> bool:
        """Whether the request failed; `reason` is the cause."""
        return self.reason is not None

    @property
    def latency_us(self) -> float:
        """Time from arrival to completion, in microseconds."""
        return (self.completed_ns - self.arrival_ns) / 1000


class Capacitor(NamedTuple):
    """The capacitor at the present simulated time."""

    #: `"charged"`, or the stage of a detection or of a recharge: `"syncing"`, `"draining"`, `"settling"`,
    #: `"recharging"`.
    stage: str
    #: Energy that an emergency flush could use, in joules.
    energy_j: float
    #: Pages of the write cache that the full capacitor could save.
    capability_pages: float


class CachePages(NamedTuple):
    """The write cache at the present simulated time, in pages."""

    #: Pages that the cache can hold.
    capacity: int
    #: Pages that may be dirty (the dirty budget).
    budget: int
    #: Pages that are dirty.
    dirty: int


class Drive:
    """A simulated drive, preconditioned as its spec says.

    Offsets and lengths are bytes. Only `advance`, `run_until_idle`, `cut_power` and `submit_many` with arrivals or a
    queue depth advance the simulated time. Ctrl-C interrupts `advance` and `run_until_idle` between two events, and the
    drive can continue afterwards. A drive that cannot continue, although it is not worn out, shows a bug in nandlab:
    from then on every method that simulates raises `RunError`, whose text says what to report. One thread at a time may
    call a drive; a call while another thread is in one raises `RunError`.
    """

    def __init__(
        self,
        spec: _core.Spec | str | os.PathLike[str] | Mapping[str, object],
        *,
        verify: bool = False,
        versions: bool = False,
    ) -> None:
        """Build and precondition the drive of a spec: a path, TOML text, a mapping or a `Spec` (see `load`).

        `verify` checks every read against a reference model of the drive, which is slower. With `versions` the
        completion of a read says which writes it returned; this takes up to 48 bytes of memory for each write. Raises
        `SpecError`, and `RunError` when the drive does not fit into memory.
        """
        if not isinstance(spec, _core.Spec):
            spec = load(spec)
        memory.check(spec, verify)
        self._core = _core.Drive(spec, verify, versions)
        if self._core.note is not None:
            warnings.warn(self._core.note, stacklevel=2)
        self._page_bytes = spec.page_bytes

    @property
    def now_ns(self) -> int:
        """The simulated time, in nanoseconds."""
        return self._core.now

    @property
    def outstanding(self) -> int:
        """The number of requests that are submitted and not completed."""
        return self._core.outstanding

    def submit(
        self,
        op: str,
        offset: int = 0,
        length: int = 0,
        *,
        fua: bool = False,
        queue: int = 0,
        placement: int = 0,
    ) -> int:
        """Submit a request at the present simulated time; returns the `id` of its completion.

        `op` is `"read"`, `"write"`, `"trim"` or `"flush"`; `offset` and `length` are bytes. With `fua` a write
        completes only when it is in flash, or in a write cache that a charged capacitor backs up
        (`cache.flush_to`). Results are kept by `queue` and by `placement`, numbers up to 65,535, once one of them is
        not 0; writes with different placements go to different open blocks. On a drive with placement handles a
        placement that it does not have counts as 0, and as an event. Raises `ValueError` for an unknown `op` and
        `RunError` for a request that the drive refuses, such as one with a placement on a drive without handles.
        """
        return self._core.submit(op, offset, length, fua, (queue, placement))

    def read(self, offset: int, length: int) -> int:
        """Submit a read of `length` bytes at byte `offset`; see `submit`."""
        return self.submit("read", offset, length)

    def write(self, offset: int, length: int, *, fua: bool = False, placement: int = 0) -> int:
        """Submit a write of `length` bytes at byte `offset`, with a placement identifier; see `submit`."""
        return self.submit("write", offset, length, fua=fua, placement=placement)

    def trim(self, offset: int, length: int) -> int:
        """Submit a TRIM of `length` bytes at byte `offset`, which deallocates whole pages only; see `submit`."""
        return self.submit("trim", offset, length)

    def flush(self) -> int:
        """Submit a flush, which completes when all earlier writes are in flash, or in a write cache that a charged
        capacitor backs up (`cache.flush_to`); see `submit`.
        """
        return self.submit("flush")

    def submit_many(self, requests: Any, *, queue_depth: int | None = None) -> range:
        """Submit a batch of requests; returns the ids of their completions.

        `requests` has columns: a mapping from names to arrays, a structured numpy array, a data frame of polars or
        pandas, or an Arrow table. `op` has names of operations (see `submit`) or their numbers (0 read, 1 write, 2
        trim, 3 flush); `offset` and `length` are bytes; `arrival_ns`, `fua`, `queue` and `placement` may be absent.

        With `queue_depth` a request is submitted as soon as fewer than so many requests are outstanding. Otherwise,
        with a column `arrival_ns`, each request is submitted at its arrival, a simulated time in nanoseconds, or at
        once if this time has passed; the latency counts from the arrival. Without either, all requests are submitted at
        the present time. The simulation stops with the submission of the last request: see `run_until_idle`.

        Raises `ValueError` for columns that are no requests, and `RunError` for a request that the drive refuses and on
        a failure of the drive. The requests before remain submitted, as after Ctrl-C.
        """
        if queue_depth is not None and queue_depth < 1:
            raise ValueError(f"queue_depth: expected at least 1, found {queue_depth}")
        columns = requests_of(requests)
        first = self._core.submit_many(raw_columns(columns), queue_depth)
        return range(first, first + len(columns["op"]))

    def completions_arrays(self) -> Columns:
        """Return the requests that have ended since the last call as numpy arrays, in order of completion.

        The arrays are `offset` and `length` in bytes, and `id`, `op`, `arrival_ns`, `completed_ns` and `reason` (empty
        for a request that succeeded) as in `Completion`. With `versions=True` there is also `version`: the `id` of the
        write whose data a read returned, -1 for data that no request has written, -2 where the units of a read come
        from different writes, and -1 for other requests and for reads that failed.
        """
        import numpy as np

        columns = decode(self._core.completions_columns())
        columns["op"] = np.array(OPS)[columns["op"]]
        columns["reason"] = np.array([*REASONS, ""])[np.minimum(columns["reason"], len(REASONS))]
        return columns

    def advance(self, to_ns: int) -> None:
        """Simulate until the simulated time `to_ns`, in nanoseconds since the start; raises `RunError` on a failure."""
        self._core.advance(to_ns)

    def run_until_idle(self, limit_s: float = 60.0) -> None:
        """Simulate until every request has completed and no background work is left.

        Raises `RunError` when work is left after `limit_s` seconds of simulated time, for example because blocks come
        due for refresh faster than they are refreshed, and when the drive fails. Raises `ValueError` for a `limit_s`
        below 0.
        """
        self._core.run_until_idle(limit_s)

    def completions(self) -> list[Completion]:
        """Return the requests that have ended since the last call, in order of completion."""
        return [
            Completion(id, op, arrival_ns, completed_ns, reason, None if versions is None else tuple(versions))
            for id, op, arrival_ns, completed_ns, reason, versions in self._core.completions()
        ]

    @property
    def capacitor(self) -> Capacitor | None:
        """The capacitor at the present simulated time; `None` for a drive without a capacitor."""
        found = self._core.capacitor
        return None if found is None else Capacitor(*found)

    @property
    def cache_pages(self) -> CachePages:
        """The write cache at the present simulated time, in pages; all 0 for a drive without a write cache."""
        return CachePages(*self._core.cache_pages)

    def cut_power(self) -> LossRecord:
        """Cut power now, and simulate emergency flush, outage and recovery; the drive is then ready again.

        Returns the entry of `power.json` for this loss, with the lost writes by what the drive had promised: `covered`
        by a completed flush or FUA, `acknowledged` only, `in_flight`. Outstanding requests end as failed completions.
        Raises `RunError` for a drive whose spec sets neither a capacitor nor a power cut, because such a drive keeps no
        sequence numbers for recovery; with `verify` every drive keeps them.
        """
        self._core.cut_power()
        return self.power().losses[-1]

    def detect_budget(self) -> bool:
        """Begin a detection of the dirty page budget now, without waiting for an idle time.

        Returns `False` while a detection or a recharge is under way, and then begins none. The detection takes
        simulated time; `power` has its result. Raises `RunError` for a drive without a capacitor, or
        with neither a write cache nor a write buffer.
        """
        return self._core.detect_budget()

    def power(self) -> PowerRecord:
        """The present content of `power.json`: `losses`, each with the writes that it destroyed, and `detections`."""
        text = self._core.power()
        if text is None:
            return PowerRecord(page_bytes=self._page_bytes, losses=(), detections=())
        return parse(text, PowerRecord, "power.json")

    def summary(self) -> Summary:
        """The present content of `summary.json`."""
        return parse(self._core.summary(), Summary, "summary.json")

    def smart(self) -> Smart:
        """The present content of `smart.json`: NVMe health log and OCP C0h log."""
        return parse(self._core.smart(), Smart, "smart.json")

    def fdp(self) -> dict[str, Any] | None:
        """The present content of `fdp.json`, the logs of a drive with placement handles; `None` for another drive.

        `nandlab.fdp.lines` prints one of the logs as nvme-cli does.
        """
        text = self._core.fdp()
        return None if text is None else json.loads(text)

    def update_handle(self, placement: int) -> None:
        """Let the placement identifier go on in a fresh reclaim unit, as NVMe's reclaim unit handle update does.

        A reclaim unit that was not full counts as an event. Raises `RunError` for an identifier that the drive does not
        have.
        """
        if not 0 <= placement <= 0xFFFF or not self._core.update_handle(placement):
            raise _core.RunError(
                f"the drive has no placement {placement}\n  remedy: the status in `fdp()` lists its identifiers"
            )

    def numpy(self, name: str) -> Columns:
        """The table `name`, such as `"series"` or `"blocks"`, as one numpy array per column.

        Raises `KeyError` for a table that the drive does not have.
        """
        tables = self._core.tables()
        if name not in tables:
            raise KeyError(f"no table {name!r}; this drive has {', '.join(tables)}")
        return decode(tables[name])

    def table(self, name: str) -> pl.DataFrame:
        """The table `name` as a polars data frame; raises `KeyError` as `numpy` does."""
        return to_frame(self.numpy(name))

    def audit(self) -> None:
        """Check the whole state of the drive: map, reverse map, valid counts, free lists; raises `RunError`."""
        self._core.audit()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the state of the drive as a snapshot, which `precondition.load` of a spec loads.

        The snapshot is written to a temporary file beside `path`, which is then renamed. Raises `RunError` while
        operations are under way or the write cache has dirty units, and `OutputError` when the file cannot be written.
        Call `flush()` and `run_until_idle()` first; if a capacitor backs up the cache (`cache.flush_to`), call
        `detect_budget()` in place of `flush()`.
        """
        try:
            with whole_file(Path(path)) as partial:
                self._core.save(os.fspath(partial))
        except OSError as error:
            raise OutputError(os_error_text("save the drive to", path, error)) from None
