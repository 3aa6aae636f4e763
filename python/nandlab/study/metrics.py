"""The metrics of a run: summary.json and smart.json by dotted names, and metrics of the series."""

from __future__ import annotations

import functools
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import msgspec
import numpy as np

from nandlab.errors import OutputError
from nandlab.noted import SEVERITIES, Noted, gather, where
from nandlab.record import Record
from nandlab.result_types import Note, Summary
from nandlab.study.expression import Expression
from nandlab.study.model import ERRORS, NOTES, leaves, without
from nandlab.study.plan import PlannedRun
from nandlab.study.store import Store

if TYPE_CHECKING:
    import polars as pl

    from nandlab._core import Spec

#: Keys of summary.json whose values are no metrics.
_NO_METRIC = ("nandlab", "spec_hash", "complete")


def flat(entries: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted names and plain values; lists are left out."""
    for name, value in leaves(entries, prefix):
        if value is None or isinstance(value, (bool, int, float, str)):
            yield name, value


def metrics(store: Store, run: PlannedRun, summary: Mapping[str, Any]) -> dict[str, Any]:
    """All metrics of a stored run with this summary."""
    found = {name: value for name, value in flat(summary) if name not in _NO_METRIC}
    found |= dict(flat(store.read_json(run.identity, "smart.json"), "smart."))
    found["drive.raw_bytes"] = run.spec.raw_bytes
    found["drive.logical_bytes"] = run.spec.logical_bytes
    series = read_table(store, run.identity, "series")
    found.update(steady(series))
    found.update(exposure(series))
    found.update(load(series))
    found.update(copybacks(run.spec))
    return found


#: Prefixes and names of metrics that are not in summary.json.
_OTHER_METRICS = ("smart.", "steady.", "exposure.", "load.", "copybacks.", "drive.raw_bytes", "drive.logical_bytes")


def is_metric(name: str) -> bool:
    """Whether a run can have a metric of this name, which an axis would hide."""
    return name in _names_of(Summary) or name.startswith(_OTHER_METRICS)


@functools.cache
def _names_of(kind: type[Record]) -> frozenset[str]:
    """The dotted names of the values in a section of a result, without lists and without metrics by number."""
    return frozenset(name for name, hint in _hints_of(kind) if get_origin(hint) is not dict)


@functools.cache
def _hints_of(kind: type[Record]) -> tuple[tuple[str, Any], ...]:
    """The dotted names of the values in a section of a result with their types, without lists."""
    found: list[tuple[str, Any]] = []
    for name, hint in get_type_hints(kind).items():
        for one in get_args(hint) if isinstance(hint, UnionType) else (hint,):
            if isinstance(one, type) and issubclass(one, Record):
                found += ((f"{name}.{inner}", what) for inner, what in _hints_of(one))
            elif get_origin(one) is not tuple and one is not NoneType:
                found.append((name, one))
    return tuple(found)


@functools.cache
def _numbers() -> frozenset[str]:
    """The names of all metrics with numbers. Those by number end in `.*`."""
    import polars as pl

    from nandlab import _core

    found = {f"{name}.*" if get_origin(hint) is dict else name for name, hint in _hints_of(Summary) if hint is not str}
    # The names of the other metrics are those of any drive and any series.
    drive = _core.Drive(_core.Spec.load(_ANY_DRIVE, "", ".", []), False)
    found.update(name for name, _ in flat(json.loads(drive.smart()), "smart."))
    series = pl.DataFrame({name: [1.0] for name in _COLUMNS})
    return frozenset(
        found.union(
            ("drive.raw_bytes", "drive.logical_bytes", "copybacks.rber.*", "copybacks.allowed"),
            *(steady(series), exposure(series), load(series)),
        )
    )


_ANY_DRIVE = "drive = { blocks_per_plane = 16, pages_per_block = 8, op = 0.5 }"
#: The columns of a series on which the names of the metrics of the series depend.
_COLUMNS = ("time_s", "interval_s", "die_busy_mean", "channel_busy_mean", "cache_dirty_pages", "capacitor_pages")


def possible_names(runs: Iterable[PlannedRun]) -> set[str]:
    """The names for expressions that runs can have, before they are done: of metrics with numbers, and of settings."""
    return set(_numbers()).union(*(settings(run) for run in {run.identity: run for run in runs}.values()))


def settings(run: PlannedRun) -> dict[str, Any]:
    """The resolved spec, as the names `spec.*` of expressions."""
    return dict(flat(json.loads(run.spec.canonical_json()), "spec."))


def read_table(store: Store, identity: str, name: str) -> pl.DataFrame:
    """A table of a stored run; raises `OutputError`."""
    import polars as pl

    path = store.directory(identity) / f"{name}.parquet"
    try:
        return pl.read_parquet(io.BytesIO(path.read_bytes()))
    except (OSError, pl.exceptions.PolarsError):
        raise OutputError(f"{path} is damaged: remove {path.parent}, and run the study again") from None


def steady(series: pl.DataFrame) -> dict[str, float | None]:
    """Metrics of the second half of the series, such as `steady.waf` and `steady.free_share`."""
    columns = {name: series[name].to_numpy() for name in series.columns if series[name].dtype.is_numeric()}
    time_s = columns.get("time_s")
    if time_s is None or len(time_s) == 0:
        return {}
    # After a warm-up the series does not begin at 0.
    late = time_s > (time_s[0] - columns["interval_s"][0] + time_s[-1]) / 2
    late[-1] = True
    interval_s = columns["interval_s"][late]
    total_s = float(interval_s.sum())

    def total(*names: str) -> float:
        return float(sum(columns[name][late].sum() for name in names if name in columns))

    def mean(name: str) -> float | None:
        if name not in columns or total_s <= 0:
            return None
        values = columns[name][late]
        known = np.isfinite(values)
        weight = float(interval_s[known].sum())
        return float((values[known] * interval_s[known]).sum()) / weight if weight > 0 else None

    programs = [name for name in columns if name.startswith("program_")]
    written, pages_written = total("bytes_write"), total("pages_written")
    requests = total(*(name for name in columns if name.startswith("requests_")))
    return {
        "steady.waf": total("bytes_programmed") / written if written else None,
        "steady.waf_pages": total(*programs) / pages_written if pages_written else None,
        "steady.iops": requests / total_s if total_s > 0 else None,
        "steady.mb_per_s": total("bytes_read", "bytes_write") / 1e6 / total_s if total_s > 0 else None,
        "steady.erases": total("erases"),
        "steady.gc_share": total("program_gc") / total(*programs) if total(*programs) else None,
        "steady.free_share": mean("free_share_mean"),
        "steady.die_busy": mean("die_busy_mean"),
        "steady.channel_busy": mean("channel_busy_mean"),
    }


def exposure(series: pl.DataFrame) -> dict[str, float | None]:
    """Dirty pages beyond the capability of the capacitor, over the intervals of the series.

    `exposure.pages` is their mean, `exposure.pages_max` their maximum, and `exposure.time_share` the share of the time
    with such pages.
    """
    if "capacitor_pages" not in series.columns:
        return {}
    dirty, saved, interval_s = (
        series[name].to_numpy().astype(float) for name in ("cache_dirty_pages", "capacitor_pages", "interval_s")
    )
    known = np.isfinite(dirty) & np.isfinite(saved) & (interval_s > 0)
    if not known.any():
        return {}
    beyond = np.maximum(dirty[known] - saved[known], 0.0)
    weight = interval_s[known] / interval_s[known].sum()
    return {
        "exposure.pages": float((beyond * weight).sum()),
        "exposure.pages_max": float(beyond.max()),
        "exposure.time_share": float(weight[beyond > 0].sum()),
    }


def load(series: pl.DataFrame) -> dict[str, float | None]:
    """How busy dies and channels were: `load.die_busy` and `load.channel_busy` are means over the time of the run.

    `load.die_busy_peak` and `load.channel_busy_peak` are those of the busiest interval of the series. All are shares,
    0 to 1, and means over the dies and the channels.
    """
    found: dict[str, float | None] = {}
    interval_s = series["interval_s"].to_numpy().astype(float) if "interval_s" in series.columns else np.zeros(0)
    for name in ("die_busy", "channel_busy"):
        if f"{name}_mean" not in series.columns:
            continue
        busy = series[f"{name}_mean"].to_numpy().astype(float)
        known = np.isfinite(busy) & (interval_s > 0)
        total_s = float(interval_s[known].sum())
        found[f"load.{name}"] = float((busy[known] * interval_s[known]).sum()) / total_s if total_s else None
        found[f"load.{name}_peak"] = float(busy[known].max()) if total_s else None
    return found


#: The most copybacks in a row of `copybacks.rber`.
COPYBACKS_MAX = 16


def copybacks(spec: Spec) -> dict[str, float]:
    """The errors of copybacks in a row of a new page, by the RBER model, for a spec with the limit `measured`.

    `copybacks.rber` has, by number of copybacks, 0 to `COPYBACKS_MAX`, the RBER at `reliability.pe_cycles` after that
    many copybacks without retention and then the retention `within` of the limit. `copybacks.allowed` is the greatest
    of these numbers up to which a read level that the limit permits decodes each of these pages. Of the kinds of page
    that the model distinguishes the one with the most errors counts.
    """
    values = json.loads(spec.canonical_json())
    policy = values["migration"]["policy"]
    limits = [name.get("limit") for name in policy.values()] if isinstance(policy, dict) else []
    measured = next((limit["measured"] for limit in limits if isinstance(limit, dict) and "measured" in limit), None)
    reliability = values["reliability"]
    if measured is None or reliability["rber"] == "none":
        return {}
    from nandlab.rber import reliability as computed

    conditions = [reliability["pe_cycles"]], [measured["within"] / 1e9]
    of = [computed(spec, *conditions, copybacks=number) for number in range(COPYBACKS_MAX + 1)]
    # Level 0 stands for pages that no level decodes.
    within = [bool(((one.level > 0) & (one.level <= measured["level"])).all()) for one in of]
    found = {f"copybacks.rber.{number}": float(one.rber.max()) for number, one in enumerate(of)}
    found["copybacks.allowed"] = float(max([*within, False].index(False) - 1, 0))
    return found


class Means(Mapping[str, float]):
    """The means of metrics over runs; a metric of the study file is computed from the means of its own metrics."""

    def __init__(
        self,
        runs: Sequence[Mapping[str, Any]],
        named: Mapping[str, Expression],
        others: Callable[[str], Mapping[str, Any] | None],
    ) -> None:
        self._runs = runs
        self._named = named
        self._others = others

    def __getitem__(self, name: str) -> float:
        if name in self._named:
            computed = self._named[name].value(self, self._others)
            if computed is None:
                raise KeyError(name)
            return computed
        # An entry by number that a run lacks is 0.
        missing = 0.0 if name.rpartition(".")[2].isdigit() else None
        found = [run.get(name, missing) for run in self._runs]
        if not found or any(value is None or isinstance(value, str) for value in found):
            raise KeyError(name)
        return fmean(found)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for run in self._runs for name in run))

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Results:
    """The results of a study: one row per run, in the order of the plan."""

    def __init__(
        self, store: Store, runs: list[PlannedRun], named: Mapping[str, Expression], factors: Sequence[str] = ()
    ) -> None:
        self.store = store
        self.runs = runs
        #: The letters of the study's factors.
        self.factors = factors
        self.rows: list[dict[str, Any]] = []
        self.values: list[dict[str, Any]] = []
        #: The notes of each distinct run, by identity.
        self.notes: dict[str, tuple[Note, ...]] = {}
        self._named = named
        self._elsewhere: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
        cache: dict[str, dict[str, Any]] = {}
        axes = list(dict.fromkeys(axis for run in runs for axis in run.point))
        for run in runs:
            if run.identity not in cache:
                summary = store.read_json(run.identity, "summary.json")
                self.notes[run.identity] = msgspec.convert(summary["notes"], tuple[Note, ...])
                cache[run.identity] = metrics(store, run, summary)
            row: dict[str, Any] = {
                "run": run.identity,
                "part": run.part,
                "variant": run.variant,
                "workload": run.workload,
            }
            row.update((axis, run.point.get(axis)) for axis in axes)
            # The name of an axis may be a section that is null in a run.
            row.update((name, value) for name, value in cache[run.identity].items() if name not in row)
            values = {**settings(run), **run.facts, **row}
            self.rows.append(row)
            self.values.append(values)
            self._elsewhere.setdefault(elsewhere(run.row), {})[run.variant] = values
        for name, expression in named.items():
            for row, values, found in zip(self.rows, self.values, self._evaluate(expression), strict=True):
                values[name] = row[name] = found
        #: The values of expressions by their text; claims evaluate the same metric for each workload and average.
        self._evaluated: dict[str, list[float | None]] = {}

    def evaluate(self, expression: Expression) -> list[float | None]:
        """The value of an expression in each run; `None` where it is undefined."""
        if expression.text not in self._evaluated:
            self._evaluated[expression.text] = self._evaluate(expression)
        return self._evaluated[expression.text]

    def _evaluate(self, expression: Expression) -> list[float | None]:
        return [
            expression.value(values, self._elsewhere[elsewhere(run.row)].get)
            for run, values in zip(self.runs, self.values, strict=True)
        ]

    def of_means(self, expression: Expression, indices: Sequence[int], variant: str | None = None) -> float | None:
        """The value of an expression of the means of its metrics over some runs; `None` where it is undefined.

        With `variant`, over the runs that differ from these only in their variant, which is `variant`.
        """

        def means(wanted: str | None) -> Means | None:
            there = [self._elsewhere[elsewhere(self.runs[index].row)] for index in indices]
            if wanted is None:
                return Means([self.values[index] for index in indices], self._named, means)
            if not all(wanted in variants for variants in there):
                return None
            return Means([variants[wanted] for variants in there], self._named, means)

        found = means(variant)
        return None if found is None else expression.value(found, means)

    def frame(self) -> pl.DataFrame:
        """The results as one table."""
        import polars as pl

        names = list(dict.fromkeys(name for row in self.rows for name in row))
        columns = [_column(name, [row.get(name) for row in self.rows]) for name in names]
        for name, severities in ((NOTES, SEVERITIES), (ERRORS, ("error",))):
            codes = [
                [note.code for note in self.notes[run.identity] if note.severity in severities] for run in self.runs
            ]
            columns.append(pl.Series(name, codes, dtype=pl.List(pl.String)))
        return pl.DataFrame(columns)

    def gathered(self) -> list[Noted[str]]:
        """The notes of all runs by code, with the identities of the runs."""
        return gather(self.notes.items())

    def where(self, identities: Iterable[str]) -> str:
        """The labels that single out these runs: `variant fifo; seed 1, 2`; empty if none does."""
        wanted = set(identities)
        return where((run.row for run in self.runs if run.identity in wanted), (run.row for run in self.runs))


def elsewhere(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """The labels and axis values of a run, without its variant."""
    return without(row, "variant")


def _column(name: str, values: list[Any]) -> pl.Series:
    import polars as pl

    kinds = {type(value) for value in values if value is not None}
    if kinds <= {bool}:
        return pl.Series(name, values, dtype=pl.Boolean)
    if kinds <= {int} and all(value is None or -(2**63) <= value < 2**63 for value in values):
        return pl.Series(name, values, dtype=pl.Int64)
    if kinds <= {int, float}:
        return pl.Series(name, [None if value is None else float(value) for value in values], dtype=pl.Float64)
    return pl.Series(name, [None if value is None else str(value) for value in values], dtype=pl.String)
