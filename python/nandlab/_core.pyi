"""The compiled core.

Times are integer nanoseconds unless a name has another unit (`limit_s`, `ms`). Sizes are bytes, and offsets are bytes
from the start of the drive.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nandlab._types import PolicyRow, Problem, StepReport

class NandlabError(Exception): ...

class SpecError(NandlabError):
    errors: list[Problem]

class TraceError(NandlabError): ...
class RunError(NandlabError): ...

def toml_lines(text: str, name: str) -> list[tuple[tuple[str | int, ...], int]]: ...
def version() -> str: ...
def schema() -> str: ...
def result_schema() -> str: ...
def presets() -> list[tuple[str, str]]: ...
def policies() -> list[PolicyRow]: ...
def parquet_file(table: dict[str, tuple[str, bytes]]) -> bytes: ...

class Spec:
    @staticmethod
    def load(
        text: str, name: str, dir: str, sets: list[str], policies: list[Policy] | None = None, unloaded: bool = False
    ) -> Spec: ...
    def with_(self, sets: Iterable[str] | Mapping[str, object]) -> Spec: ...
    def trace_reading(self) -> str | None: ...
    def __hash__(self) -> int: ...
    def to_toml(self) -> str: ...
    def canonical_json(self) -> str: ...
    def precondition_key(self) -> str | None: ...
    @property
    def hash(self) -> str: ...
    @property
    def source(self) -> tuple[str, str, str, list[str]]: ...
    @property
    def has_workload(self) -> bool: ...
    @property
    def policies(self) -> list[Policy]: ...
    @property
    def unloaded(self) -> list[tuple[str, str]]: ...
    @property
    def pts_victims(self) -> int | None: ...
    @property
    def logical_bytes(self) -> int: ...
    @property
    def raw_bytes(self) -> int: ...
    @property
    def page_bytes(self) -> int: ...

def memory_needed(
    spec: Spec, verify: bool = False, serve: bool = False, explain: bool = False
) -> tuple[int, int, str]: ...
def workload_facts(spec: Spec) -> tuple[int, int, int]: ...
def fit_to_writes(spec: Spec, bytes: int, times: float) -> tuple[int, float, int] | None: ...

class Policy:
    def __init__(
        self,
        slot: str,
        name: str,
        description: str,
        params: list[tuple[str, float | None, float, float, bool, str]],
        class_: type,
        identity: str,
        place: tuple[str, int],
        copies: bool,
    ) -> None: ...
    @property
    def slot(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def class_(self) -> type: ...
    @property
    def identity(self) -> str: ...
    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def copies(self) -> bool: ...
    @property
    def arguments(self) -> tuple[Any, ...]: ...

def declare_policy(policy: Policy) -> None: ...
def declared_policies() -> list[Policy]: ...

class Random:
    """The random stream of a policy, which follows from the seed of the run and the slot."""

    def bits(self) -> int:
        """Draw 64 uniform bits."""
    def below(self, n: int) -> int:
        """Draw a uniform whole number from 0, below `n`; raises `ValueError` for 0."""
    def unit(self) -> float:
        """Draw a uniform number from 0, below 1."""

class Lane:
    """The blocks of a lane, as a policy of `gc.victim` sees them: an entry a block in each array.

    The arrays are read-only views of the drive's state. A policy must not keep them, nor slices of them, beyond the
    call of `pick`; it may keep copies.
    """

    #: The states of a block.
    FREE: int
    OPEN: int
    FULL: int
    VICTIM: int
    RETIRED: int
    BAD: int
    CACHED: int

    @property
    def number(self) -> int:
        """The number of the lane, from 0."""
    @property
    def now(self) -> int:
        """Simulated time in nanoseconds."""
    @property
    def valid(self) -> npt.NDArray[np.uint32]:
        """Valid units."""
    @property
    def closed_at(self) -> npt.NDArray[np.uint64]:
        """The time at which the block became full, in nanoseconds."""
    @property
    def erases(self) -> npt.NDArray[np.uint32]:
        """P/E cycles."""
    @property
    def reads(self) -> npt.NDArray[np.uint32]:
        """Reads since the last erase."""
    @property
    def programmed(self) -> npt.NDArray[np.uint32]:
        """Units programmed or skipped since the last erase."""
    @property
    def linked(self) -> npt.NDArray[np.uint16]:
        """Units whose susceptible bits are in a combination page."""
    @property
    def state(self) -> npt.NDArray[np.uint8]:
        """`Lane.FREE`, `OPEN`, `FULL`, `VICTIM`, `RETIRED`, `BAD` or `CACHED` (SLC mode). `FULL` may be picked."""
    @property
    def units(self) -> npt.NDArray[np.uint32]:
        """Units of the block."""
    @property
    def full(self) -> npt.NDArray[np.int64]:
        """The numbers of the full blocks, in rising order; a copy."""
    def least(self, scores: npt.ArrayLike) -> int | None:
        """The first of the full blocks with the least score, of an array with a score for each block of the lane.

        `None` without a full block. A block whose score is NaN is not taken. Raises `ValueError` for another number of
        scores, and outside of the call of `pick`.
        """
    def greatest(self, scores: npt.ArrayLike) -> int | None:
        """The first of the full blocks with the greatest score, as `least`."""
    def __len__(self) -> int: ...

class Cache:
    """The units of the write cache that can be evicted, as a policy of `cache.eviction` sees them during `pick`.

    A unit is named by its slot. Outside of the call every method raises `ValueError`, and so does a slot without a unit
    that can be evicted.
    """

    @property
    def capacity(self) -> int:
        """The most units that the cache holds."""
    @property
    def dirty(self) -> int:
        """Dirty units in the cache, those being written back included."""
    @property
    def least_recently_used(self) -> int | None:
        """The slot of the least recently used unit; `None` without units."""
    def by_use(self, most: int | None = None) -> npt.NDArray[np.uint32]:
        """The slots of the `most` least recently used units, or of all, the least recently used one first; a copy."""
    def first_clean(self, most: int | None = None) -> int | None:
        """The slot of the first clean unit among the `most` least recently used ones, or among all."""
    def is_clean(self, slot: int) -> bool:
        """Whether the unit has been written to flash since its last write by the host."""
    def lpn(self, slot: int) -> int:
        """The logical page number of the unit."""
    def __len__(self) -> int: ...
    def __contains__(self, slot: int) -> bool: ...

class CacheCounts:
    """The counts of the write cache, as a policy of `cache.sync` sees them."""

    @property
    def dirty(self) -> int:
        """Dirty units, those being written back included."""
    @property
    def writing(self) -> int:
        """Units being written back."""
    @property
    def budget(self) -> int:
        """The most dirty units that are allowed."""
    @property
    def capacity(self) -> int:
        """The most units that the cache holds."""
    @property
    def oldest_is_cold(self) -> bool | None:
        """Whether the least recently used dirty unit is cold; `None` if every dirty unit is being written back."""

class FlashRead:
    """A read of a unit, as a policy of `ecc.start` sees it. Of the levels that are remembered, 0 is one not known."""

    SLC: int
    LSB: int
    CSB: int
    MSB: int

    @property
    def now(self) -> int:
        """Simulated time in nanoseconds."""
    @property
    def lpn(self) -> int:
        """The logical page number of the unit."""
    @property
    def block(self) -> int:
        """The number of the unit's block in the drive."""
    @property
    def unit(self) -> int:
        """The number of the unit in its block."""
    @property
    def kind(self) -> int:
        """The kind of the page: `FlashRead.SLC`, `LSB`, `CSB` or `MSB`."""
    @property
    def reads(self) -> int:
        """Reads of the block since its last erase."""
    @property
    def erases(self) -> int:
        """P/E cycles of the block."""
    @property
    def age_s(self) -> int:
        """The age of the data in seconds."""
    @property
    def levels(self) -> int:
        """The number of read levels."""
    @property
    def unit_level(self) -> int:
        """The level in the unit's map entry."""
    @property
    def block_level(self) -> int:
        """The level that last decoded a unit of the block."""
    @property
    def drive_level(self) -> int:
        """The level that last decoded a unit of the drive."""
    @property
    def needed(self) -> int:
        """The lowest level that decodes the unit, `levels` + 1 if none does. A real controller cannot know it."""

class Codec:
    def __init__(self, rate: str, data_bytes: int, file: str | Path | None = None, iterations: int = 30) -> None: ...
    @property
    def bits(self) -> tuple[int, int]: ...
    def measure(
        self, rber: float, references: int, spacing: float | None, seed: int, frames: tuple[int, int]
    ) -> tuple[int, int, int, int, int]: ...
    def measure_errors(self, errors: int, seed: int, frames: tuple[int, int]) -> tuple[int, int, int, int, int]: ...
    def mixture(self, points: list[tuple[int, int, int]], rbers: list[float]) -> list[tuple[float, float]]: ...
    @staticmethod
    def equivocation(rber: float, references: int, spacing: float | None) -> float: ...
    @staticmethod
    def interval(frames: int, failed: int) -> tuple[float, float]: ...

class Run:
    def __init__(
        self,
        spec: Spec,
        verify: bool = False,
        save_drive: str | None = None,
        endless: bool = False,
        shared: SharedDrives | None = None,
    ) -> None: ...
    def step(self, ms: int, until: int | None = None) -> StepReport: ...
    def begin_stretch(self) -> None: ...
    def stretch(self) -> list[tuple[str, float]]: ...
    def rest(self) -> None: ...
    def fast_forward(self, times: float) -> float: ...
    def result(self) -> Result: ...

class Replay:
    def __init__(self, path: str, spec: Spec, verify: bool = False) -> None: ...
    def step(self, ms: int) -> StepReport: ...
    def dropped_bytes(self) -> int: ...
    def result(self) -> Result: ...

def recording_moments(path: str, spec: Spec) -> dict[str, Any]: ...

class Cutter:
    def __init__(self, path: str, spec: Spec, memory: int) -> None: ...
    def advance(self, to: int) -> tuple[bool, int]: ...
    def cut(self, again_ns: int | None = None) -> dict[str, Any]: ...
    def image(self, path: str, put_back: list[int] = ...) -> None: ...

class ImageServer:
    def __init__(self, path: str, socket: str, unit_bytes: int, unreadable: list[int]) -> None: ...
    @property
    def uri(self) -> str: ...
    def close(self) -> None: ...

class SharedDrives:
    def __init__(self) -> None: ...
    @property
    def kept(self) -> tuple[str, int]: ...
    def clear(self) -> None: ...

class Result:
    @property
    def summary(self) -> str: ...
    @property
    def smart(self) -> str: ...
    @property
    def power(self) -> str | None: ...
    @property
    def fdp(self) -> str | None: ...
    @property
    def sim(self) -> str: ...
    @property
    def spec_toml(self) -> str: ...
    @property
    def spec_hash(self) -> str: ...
    def tables(self) -> dict[str, dict[str, tuple[str, bytes]]]: ...
    def timeline(self) -> str | None: ...
    def explained(self) -> str | None: ...

class Drive:
    def __init__(self, spec: Spec, verify: bool = False, versions: bool = False) -> None: ...
    @property
    def now(self) -> int: ...
    @property
    def outstanding(self) -> int: ...
    def submit(
        self, op: str, offset: int, length: int = 0, fua: bool = False, tag: tuple[int, int] = (0, 0)
    ) -> int: ...
    def advance(self, to_ns: int) -> None: ...
    def run_until_idle(self, limit_s: float = 60.0) -> None: ...
    def submit_many(self, columns: dict[str, bytes], queue_depth: int | None = None) -> int: ...
    def completions(self) -> list[tuple[int, str, int, int, str | None, list[int | None] | None]]: ...
    def completions_columns(self) -> dict[str, tuple[str, bytes]]: ...
    def summary(self) -> str: ...
    def smart(self) -> str: ...
    def power(self) -> str | None: ...
    def fdp(self) -> str | None: ...
    def update_handle(self, identifier: int) -> bool: ...
    def cut_power(self) -> None: ...
    def detect_budget(self) -> bool: ...
    @property
    def capacitor(self) -> tuple[str, float, float] | None: ...
    @property
    def cache_pages(self) -> tuple[int, int, int]: ...
    def tables(self) -> dict[str, dict[str, tuple[str, bytes]]]: ...
    def audit(self) -> None: ...
    def save(self, path: str) -> None: ...

def serve(
    spec: Spec,
    options: dict[str, Any],
    ready: Callable[[list[str], tuple[int, int, bool] | None], None],
    notice: Callable[[str], None],
) -> tuple[str, Result | None]: ...
def recording_header(path: str) -> tuple[str, str, str]: ...
def reliability(
    spec: Spec, pe_cycles: list[int], age_s: list[int], reads: int = 0, copybacks: int = 0
) -> dict[str, dict[str, tuple[str, bytes]]]: ...
def voltages(spec: Spec, pe_cycles: list[int], age_s: list[int]) -> dict[str, dict[str, tuple[str, bytes]]]: ...
def trace_stat(path: str, options: dict[str, Any]) -> str: ...
def trace_stat_by_device(path: str, options: dict[str, Any]) -> str: ...
def trace_convert(src: str, dst: str, format: str, options: dict[str, Any]) -> str: ...
def trace_formats() -> list[tuple[str, str]]: ...
def profiles() -> list[dict[str, Any]]: ...
def kept_traces() -> tuple[Path, int, int, int] | None: ...
