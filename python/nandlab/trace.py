"""Block traces: statistics, and conversion between formats."""

import json
import os
import stat as stat_
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nandlab import _core
from nandlab.errors import OutputError, os_error_text, shown
from nandlab.interruptible import interruptible
from nandlab.whole import whole_file

__all__ = ["KeptTraces", "convert", "formats", "kept", "profiles", "stat", "stat_by_device"]


class KeptTraces(NamedTuple):
    """The folder in which parsed traces are kept for the next run."""

    folder: Path
    traces: int
    bytes: int
    #: The limit of `bytes`. Above it, the traces that were used least recently are removed.
    bytes_max: int


def stat(
    path: str | os.PathLike[str] | None = None,
    *,
    profile: str | None = None,
    format: str | None = None,
    columns: str | None = None,
    device: str | Sequence[str] | None = None,
    only: str | None = None,
    window: tuple[str, str | None] | None = None,
    lenient: bool | float = False,
    time_unit: str | None = None,
    max_gap: str | None = None,
    requests: int | None = None,
    logical_bytes: int | None = None,
    seed: int | None = None,
) -> dict[str, Any]:
    """Statistics of a trace file, or of the look-alike that a profile generates (with the published numbers).

    `path` is a trace file and `profile` the name of a profile; exactly one of them is given. `format` is one of
    `formats()`, by default detected from the content. `columns` describes the columns of any other text instead, such
    as `"time_ms, device, offset, size, op(1=read, 0=write)"`. `device` selects one device of a trace with several;
    `"concatenate"` takes all devices, one after another; a list of names takes these devices, in this order. `only` is
    `"reads"` or `"writes"`. `window` is a pair of times since the first request, such as `("1h", "2h")`: requests
    before the first time, or not before the second, are left out; if the second is `None`, the window has no end.
    `lenient` skips and counts damaged records, at most 10 % of all records, or the share that it gives (`0.3`).
    `time_unit` (`"ps"`, `"ns"`, `"us"`, `"ms"` or `"s"`) is for the formats that do not define a unit, `mqsim` and
    `fio-iolog`. `max_gap` (such as `"30d"`, by default a day) is the longest accepted time between two records.
    `requests` is the number of requests to read, by default all. `logical_bytes` is the capacity of the drive to which
    a profile is scaled, `seed` the seed of the generator.

    The key `read_as` of the result tells how a trace file is understood: its format, the units of its fields, its first
    record, and, unless the format is named, the other formats that make other requests of its lines (`others`).

    Raises `TraceError` for a trace that cannot be read, `OutputError` for wrong arguments and operating-system errors.
    """
    options = _options(
        profile, format, columns, device, only, window, lenient, time_unit, max_gap, requests, logical_bytes, seed
    )
    source = _source(path, profile)
    try:
        found: dict[str, Any] = json.loads(interruptible(lambda: _core.trace_stat(source, options)))
    except OSError as error:
        raise OutputError(os_error_text("read", source or None, error)) from None
    return found


def stat_by_device(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    columns: str | None = None,
    lenient: bool | float = False,
    time_unit: str | None = None,
    requests: int | None = None,
) -> list[dict[str, Any]]:
    """Statistics of every device of a trace file, the device with the most requests first.

    A row has the number of requests, the share of reads, the bytes read and written, the footprint (bytes of the
    distinct 4 KiB pages that are read or written), the working set (bytes of the most accessed 4 KiB pages that take
    90 % of the page accesses), the highest address, and the mean rate over the duration of the whole file. The
    arguments and errors are those of `stat`.
    """
    options = _options(None, format, columns, None, None, None, lenient, time_unit, None, requests, None, None)
    source = _source(path, None)
    try:
        found: list[dict[str, Any]] = json.loads(interruptible(lambda: _core.trace_stat_by_device(source, options)))
    except OSError as error:
        raise OutputError(os_error_text("read", source, error)) from None
    return found


def convert(
    source: str | os.PathLike[str] | None,
    target: str | os.PathLike[str],
    *,
    to: str,
    profile: str | None = None,
    format: str | None = None,
    columns: str | None = None,
    device: str | Sequence[str] | None = None,
    only: str | None = None,
    window: tuple[str, str | None] | None = None,
    lenient: bool | float = False,
    time_unit: str | None = None,
    max_gap: str | None = None,
    requests: int | None = None,
    logical_bytes: int | None = None,
    seed: int | None = None,
    drop: bool = False,
    force: bool = False,
) -> dict[str, Any]:
    """Write the trace `source`, or the requests that `profile` generates, to the file `target` in the format `to`.

    The target appears only when it is complete; an existing file is replaced only with `force`. With `drop`, requests
    that the format cannot represent are left out and counted; without `drop` such a request is an error. The other
    arguments, and the errors, are those of `stat`. Returns counts of the written and dropped requests and of the
    properties that the format does not keep, and the notes on the reading of the source.
    """
    goal = Path(target)
    options = _options(
        profile, format, columns, device, only, window, lenient, time_unit, max_gap, requests, logical_bytes, seed
    )
    options["drop"] = drop
    origin = _source(source, profile)
    if goal.is_dir():
        raise OutputError(f"{goal} is a directory: name the file to write")
    if goal.suffix in (".zst", ".gz", ".xz", ".bz2"):
        raise OutputError(
            f"{goal}: traces are written uncompressed: name the file {goal.stem}, and compress it afterwards"
        )
    if origin and goal.exists() and goal.samefile(origin):
        raise OutputError(f"{goal} is the source trace itself: name another file to write")
    if goal.exists() and not force:
        raise OutputError(f"{goal} exists already: name another file, or replace it with --force")
    try:
        goal.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(goal) as partial:
            done: dict[str, Any] = json.loads(
                interruptible(lambda: _core.trace_convert(origin, str(partial), to, options))
            )
    except OSError as error:
        raise OutputError(os_error_text("convert to", goal, error)) from None
    except _core.TraceError as error:
        if not str(error).startswith("the converted trace"):
            raise
        raise OutputError(f"{goal}: {error}") from None
    return done


def formats() -> list[tuple[str, str]]:
    """Name and description of each trace format."""
    return _core.trace_formats()


def profiles() -> list[dict[str, Any]]:
    """The workload profiles, with the published or recorded numbers to which they are calibrated."""
    return _core.profiles()


def kept() -> KeptTraces | None:
    """The folder of kept traces, and their number and size; `None` if none are kept (`NANDLAB_CACHE=off`)."""
    folder = _core.kept_traces()
    return None if folder is None else KeptTraces(*folder)


def is_read_once(path: str | os.PathLike[str]) -> bool:
    """Whether a file can be read only once (pipe, device or socket); `False` for a missing file."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat_.S_ISFIFO(mode) or stat_.S_ISCHR(mode) or stat_.S_ISSOCK(mode)


def _source(path: str | os.PathLike[str] | None, profile: str | None) -> str:
    if (path is None) == (profile is None):
        raise OutputError("name either a trace file or a profile")
    if path is None:
        return ""
    file = Path(path)
    try:
        is_there = file.exists()
    except OSError as error:
        raise OutputError(os_error_text("read", file, error)) from None
    if not is_there:
        raise OutputError(f"no trace {shown(file)}\n  remedy: check the path")
    if file.is_dir():
        raise OutputError(f"{shown(file)} is a directory, not a trace\n  remedy: name one trace file")
    return str(file)


def _options(
    profile: str | None,
    format: str | None,
    columns: str | None,
    device: str | Sequence[str] | None,
    only: str | None,
    window: tuple[str, str | None] | None,
    lenient: bool | float,
    time_unit: str | None,
    max_gap: str | None,
    requests: int | None,
    logical_bytes: int | None,
    seed: int | None,
) -> dict[str, Any]:
    if format is not None and columns is not None:
        raise OutputError("name either a format or the columns, not both")
    for name, number in (("requests", requests), ("logical bytes", logical_bytes), ("seed", seed)):
        if number is not None and not 0 <= number < 2**63:
            raise OutputError(f"{name}: {number} is out of range\n  remedy: a whole number from 0 to 2^63 - 1")
    given = {
        "profile": profile,
        "format": format,
        "columns": columns,
        "device": device if device is None or isinstance(device, str) else list(device),
        "only": only,
        "window": window,
        "lenient": lenient,
        "time_unit": time_unit,
        "max_gap": max_gap,
        "requests": requests,
        "logical_bytes": logical_bytes,
        "seed": seed,
    }
    return {key: value for key, value in given.items() if value is not None}
