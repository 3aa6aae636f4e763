"""The series table, prepared for plots."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nandlab.results import RunResult
from nandlab.tables import Columns

_POINTS = 400
_SUMS = (
    *("requests_", "bytes_", "pages_written", "program_", "bytes_programmed", "slc_bytes", "direct_bytes", "erases"),
    *("gc_victims", "interval_s"),
)
#: Further columns with maxima.
_MAXIMA = ("cache_dirty_pages", "cache_budget_pages")
#: The columns that weight a mean over several intervals; by default their length.
_WEIGHTS = {
    "latency_us_read_mean": "requests_read",
    "latency_us_write_mean": "requests_write",
    "waf": "bytes_write",
    "waf_pages": "pages_written",
    "gc_victim_valid_mean": "gc_victims",
}


def begin_s(table: Columns) -> NDArray[np.float64]:
    """The beginning of each interval in seconds; `time_s` is its end, or its beginning in a table that starts at 0."""
    time, interval = table["time_s"].astype(float), table["interval_s"].astype(float)
    begins: NDArray[np.float64] = time - interval if len(time) and time[0] > 0 else time
    return np.maximum(begins, 0.0)


#: Columns without a value in an interval in which the other column is 0.
_OF = {
    "latency_us_read_mean": "requests_read",
    "latency_us_read_max": "requests_read",
    "latency_us_write_mean": "requests_write",
    "latency_us_write_max": "requests_write",
    "waf": "bytes_write",
    "waf_pages": "pages_written",
    "gc_victim_valid_mean": "gc_victims",
}


def without_empty(series: Columns) -> Columns:
    """All columns as floats, with NaN for intervals without measured events."""
    floats = {name: column.astype(float) for name, column in series.items() if column.dtype != object}
    for name, other in _OF.items():
        if name in floats and other in floats:
            floats[name] = np.where(floats[other] > 0, floats[name], np.nan)
    return floats


def series_of(result: RunResult) -> Columns:
    """The series of a run as its charts draw it; no columns for a run without one."""
    return thin(with_extremes(without_empty(result.numpy("series")))) if "series" in result.tables else {}


def with_extremes(series: Columns) -> Columns:
    """The series with the columns `iops_min` and `latency_us_max` (over all operations).

    `thin` keeps the extremes of these columns, so that a short event does not vanish in a mean.
    """
    out = dict(series)
    if "iops" in series:
        out["iops_min"] = series["iops"].astype(float)
    slowest = [
        series[name].astype(float) for name in series if name.startswith("latency_us_") and name.endswith("_max")
    ]
    if slowest:
        out["latency_us_max"] = np.fmax.reduce(slowest)
    return out


def thin(series: Columns, points: int = _POINTS) -> Columns:
    """At most `points` rows, all columns as floats: sums are added, maxima and minima kept, other columns averaged."""
    floats = {name: column.astype(float) for name, column in series.items() if column.dtype != object}
    rows = len(next(iter(floats.values()), ()))
    step = -(-rows // points) if rows else 1
    if step == 1:
        return floats
    starts = np.arange(0, rows, step)
    out: Columns = {}
    for name, column in floats.items():
        if name == "time_s":
            ends = np.minimum(starts + step, rows) - 1
            out[name] = column[ends] if column[0] > 0 else column[starts]
        elif name.startswith(_SUMS):
            out[name] = np.add.reduceat(np.nan_to_num(column), starts)
        elif name.endswith("_max") or name in _MAXIMA:
            out[name] = np.fmax.reduceat(column, starts)
        elif name.endswith("_min"):
            out[name] = np.fmin.reduceat(column, starts)
        else:
            weight = floats.get(_WEIGHTS.get(name, "interval_s"), np.ones(rows))
            weight = np.where(np.isfinite(column), weight, 0.0)
            total = np.add.reduceat(np.nan_to_num(column) * weight, starts)
            known = np.add.reduceat(weight, starts)
            out[name] = np.where(known > 0, total / np.where(known > 0, known, 1.0), np.nan)
    return out
