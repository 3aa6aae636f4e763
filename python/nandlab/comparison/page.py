"""The page of a comparison: settings and outcomes that differ, and the curves of all runs over one another."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from nandlab import _core
from nandlab.comparison import Comparison, Pair, Runs
from nandlab.comparison.changes import Change
from nandlab.comparison.metrics import place
from nandlab.comparison.presented import of_comparison
from nandlab.presentation import Figure as Tile
from nandlab.presentation import Section as Shown
from nandlab.presentation import Table
from nandlab.presentation.model import counted
from nandlab.reporting.chart import Axis, Figure, Floats, Lines, Panel, Ratios, Series
from nandlab.reporting.colours import CYCLE
from nandlab.reporting.content import Block, Drawing, Fold, Page, Sheet, Words, beside, sections_of
from nandlab.reporting.run_charts import LatencyOf, shared_latencies, single
from nandlab.reporting.series import begin_s, thin, without_empty
from nandlab.study.sample import student_t
from nandlab.tables import Columns
from nandlab.units import count

#: The most rows of the chart of ratios; the tables have all metrics.
_ROWS = 16
#: The points of a curve over time.
_POINTS = 240
#: The metrics of the tiles.
_TILES = ("iops", "latency_us.read.p99", "latency_us.write.p99", "waf", "energy_j", "requests_failed")
_PLACED = ("Compared", "Set differently", "Method", "The same")


def compare_page(comparison: Comparison) -> Page:
    """The page of a comparison."""
    shown = of_comparison(comparison)
    titled = {section.title: section for section in shown.sections}

    def said(title: str) -> list[Block]:
        return _parts(titled[title]) if title in titled else []

    outcomes = [section for section in shown.sections if section.title not in _PLACED]
    sections: list[tuple[str, Sequence[Block | None]]] = [
        ("Set differently", said("Set differently")),
        ("Differences", [ratios_of(comparison), *_tables(outcomes, len(comparison.pairs) == 1)]),
        ("Latency", beside(_latencies(comparison))),
        ("Over time", beside(_over_time(comparison))),
        ("The same", said("The same")),
        ("Runs", said("Compared")),
        ("Method", said("Method")),
        ("Specs", [Fold(one.name, text=one.results[0].spec_toml) for one in comparison.runs]),
    ]
    return Page(
        kind="compare",
        title=shown.name,
        lead=_lead(comparison),
        tiles=_tiles(comparison),
        notes=(*shown.failures, *shown.notes),
        sections=sections_of(sections),
        footer=", ".join(f"{one.name}: spec {one.results[0].spec_hash}" for one in comparison.runs),
        version=_core.version(),
    )


def _lead(comparison: Comparison) -> str:
    """What differs, and what to look at."""
    keys = [one.key for one in comparison.settings]
    what = f"Set differently: {', '.join(keys[:4])}{', ...' if len(keys) > 4 else ''}. " if keys else ""
    texts = [_lead_of(pair, named=len(comparison.pairs) > 1) for pair in comparison.pairs]
    if all(pair.same for pair in comparison.pairs):
        return f"{what}{' '.join(texts)}"
    look = "the warnings, since they make the comparison misleading" if comparison.warnings else "Differences"
    return f"{what}{' '.join(texts)} Look first at {look}."


def _lead_of(pair: Pair, *, named: bool) -> str:
    name = f"{pair.runs.name}: " if named else ""
    if pair.identical:
        return f"{name}{'a' if named else 'A'}ll results are the same to the byte."
    there = [one for one in pair.changes if not one.further]
    differing = [one for one in there if one.verdict == "differs"]
    if not differing:
        return f"{name}{'n' if named else 'N'}one of {counted(len(there), 'metric')} clearly differs."
    first = [one for one in differing if one.ratio is not None][:2] or differing[:1]
    return (
        f"{name}{count(len(differing))} of {counted(len(there), 'metric')} "
        f"{'differs' if len(differing) == 1 else 'differ'}; {', and '.join(one.sentence for one in first)}."
    )


def _tiles(comparison: Comparison) -> tuple[Tile, ...]:
    """A few metrics of the only pair."""
    if len(comparison.pairs) != 1:
        return ()
    there = {one.metric: one for one in comparison.pairs[0].changes}
    shown = [there[name] for name in _TILES if name in there and any((*there[name].baseline, *there[name].values))]
    return tuple(Tile(one.words, one.short) for one in shown)


def _tables(outcomes: Sequence[Shown], folded_out: bool) -> list[Block]:
    """The sentences and values of each pair; of several pairs each is folded."""
    found: list[Block] = []
    for section in outcomes:
        parts = _parts(section)
        if folded_out:
            found += parts
        elif parts:
            found.append(Fold(section.title, tuple(parts)))
    return found


def _parts(section: Shown) -> list[Block]:
    """The table and the sentences of a section, as on the screen."""
    tables: list[Block] = [Sheet(section.short, section.title)] if isinstance(section.short, Table) else []
    return [*tables, *(Words(sentence) for sentence in section.sentences)]


def _colours(comparison: Comparison) -> dict[str, str]:
    return {one.name: CYCLE[at % len(CYCLE)] for at, one in enumerate(comparison.runs)}


def ratios_of(comparison: Comparison) -> Drawing | None:
    """The ratios to the baseline of the first metrics, and then of those that differ most."""
    size: dict[str, float] = {}
    words: dict[str, str] = {}
    of: dict[str, dict[str, Change]] = {}
    for pair in comparison.pairs:
        of[pair.runs.name] = {}
        for one in pair.changes:
            # An interval that says nothing would only widen the axis.
            if one.further or one.ratio is None or one.is_open:
                continue
            of[pair.runs.name][one.metric] = one
            arrow = {"lower": " \u2190", "higher": " \u2192"}.get(one.better, "")
            words[one.metric] = one.words + arrow
            if one.verdict != "same":
                size[one.metric] = max(size.get(one.metric, 0.0), one.size)
    metrics = sorted(size, key=lambda metric: (place(metric), -size[metric]))[:_ROWS]
    if not metrics:
        return None
    colours = _colours(comparison)
    drawn = []
    for name, changes in of.items():
        ratios = [changes[metric].ratio if metric in changes else None for metric in metrics]
        intervals = [None if ratio is None else ratio.interval for ratio in ratios]
        drawn.append(
            Series(
                name,
                np.array([np.nan if ratio is None else 1 + ratio.mean for ratio in ratios]),
                colours[name],
                low=np.array([np.nan if ends is None else 1 + ends[0] for ends in intervals]),
                high=np.array([np.nan if ends is None else 1 + ends[1] for ends in intervals]),
            )
        )
    title = f"Ratio to {comparison.baseline.name}"
    caption = (
        "The line at 1 is the baseline. An interval that crosses the line is no clear difference. An arrow shows the "
        "better direction."
    )
    if len(size) > len(metrics):
        caption += " The table below has all metrics."
    chart = Ratios(title, Axis("ratio", log=True), tuple(words[metric] for metric in metrics), tuple(drawn))
    return Drawing(Figure(title, caption, (Panel(chart),)))


def _over_seeds(name: str, colour: str, rows: Sequence[Floats], *, floor: float) -> Series:
    """The mean over the seeds where all have a value, with its interval, which ends at `floor`."""
    values = np.vstack(rows)
    mean = values.mean(axis=0)
    if len(rows) == 1:
        return Series(name, mean, colour)
    half = student_t(len(rows) - 1) * values.std(axis=0, ddof=1) / math.sqrt(len(rows))
    return Series(name, mean, colour, low=np.maximum(mean - half, floor), high=mean + half)


def _latencies(comparison: Comparison) -> list[Block]:
    """The tail of the latency of reads and writes."""
    colours = _colours(comparison)
    found: list[Block] = []
    for op in ("read", "write", "flush"):
        of = {
            one.name: [there for result in one.results if (there := LatencyOf.read(result, op)) is not None]
            for one in comparison.runs
        }
        of = {name: there for name, there in of.items() if there and there[0].high[-1] > 0}
        every = [one for there in of.values() for one in there]
        if not every:
            continue
        xs = shared_latencies(every, _POINTS)
        # Beyond its slowest request the share of a run is 0, which a logarithmic axis does not have.
        least = max(min(1 / float(one.counts.sum()) for one in every), 1e-9)
        drawn = [
            _over_seeds(name, colours[name], [1 - one.at_most(xs) for one in there], floor=least)
            for name, there in of.items()
        ]
        chart = Lines(
            f"Slowest {op}s" if op != "flush" else "Slowest flushes",
            Axis("latency, \u00b5s", " \u00b5s", log=True, low=float(xs[0]), high=float(xs[-1])),
            Axis("share of slower requests", log=True, low=least, high=1.0),
            xs,
            tuple(drawn),
        )
        found.append(single(chart, "The curve crosses 0.01 at the 99th percentile; further left is better."))
    return found


def _rate(name: str) -> Callable[[Columns], Floats]:
    return lambda of: np.asarray(of[name] / of["interval_s"], dtype=float)


def _value(name: str, scale: float = 1.0) -> Callable[[Columns], Floats]:
    return lambda of: scale * of[name]


_LATENCY = Axis("latency, \u00b5s", " \u00b5s", log=True)
#: Curves over time: title, column of the series table, values, axis and caption.
_CURVES: tuple[tuple[str, str, Callable[[Columns], Floats], Axis, str], ...] = (
    ("IOPS", "iops", _value("iops"), Axis("requests/s"), "Requests completed per second."),
    (
        *("Read latency", "latency_us_read_mean", _value("latency_us_read_mean")),
        _LATENCY,
        "Mean read latency of each interval. The axis is logarithmic.",
    ),
    (
        *("Write latency", "latency_us_write_mean", _value("latency_us_write_mean")),
        _LATENCY,
        "Mean write latency of each interval. The axis is logarithmic.",
    ),
    ("WAF", "waf", _value("waf"), Axis("WAF"), "Bytes programmed per byte that the host wrote, by interval."),
    ("Erases", "erases", _rate("erases"), Axis("erases/s"), "Blocks erased per second, for all causes."),
    (
        *("Free space", "free_share_mean", _value("free_share_mean", 100)),
        Axis("free, %", " %"),
        "Free share of a plane's pages; GC starts at a low share.",
    ),
)


def _over_time(comparison: Comparison) -> list[Block]:
    """Curves of the runs over one another, on one time axis."""
    tables = {one.name: [_series(table) for table in _tables_of(one)] for one in comparison.runs}
    ends = [float(of["middle"][-1]) for there in tables.values() for of in there if len(of["middle"]) > 1]
    if not ends:
        return []
    xs = np.linspace(0.0, max(ends), _POINTS)
    colours = _colours(comparison)
    found: list[Block] = []
    for title, column, values, y, caption in _CURVES:
        drawn = []
        for name, there in tables.items():
            rows = [_on(xs, of["middle"], values(of)) for of in there if column in of and len(of["middle"]) > 1]
            if any((row > 0).any() for row in rows):
                drawn.append(_over_seeds(name, colours[name], rows, floor=0.0))
        if drawn:
            x = Axis("simulated time, s", " s", low=0.0, high=float(xs[-1]))
            chart = Lines(title, x, _around_means(y, drawn), xs, tuple(drawn))
            found.append(single(chart, caption))
    return found


def _around_means(axis: Axis, series: Sequence[Series]) -> Axis:
    """The axis with ends near the means: the interval of two or three seeds is often many times as wide."""
    means = np.concatenate([one.y for one in series])
    means = means[means > 0]
    if axis.log:
        return replace(axis, low=float(means.min()) / 2, high=2 * float(means.max()))
    return replace(axis, low=0.0, high=1.3 * float(means.max()))


def _tables_of(runs: Runs) -> list[Columns]:
    return [result.numpy("series") for result in runs.results if "series" in result.tables]


def _series(table: Columns) -> Columns:
    """The series of a run with at most as many rows as a curve has points, and the middle of each interval."""
    thinned = thin(without_empty(table), _POINTS)
    return {**thinned, "middle": begin_s(thinned) + thinned["interval_s"] / 2}


def _on(xs: Floats, at: Floats, values: Floats) -> Floats:
    """Values at other times, linear between neighbours; NaN outside and where a neighbour is missing."""
    if len(at) < 2:
        return np.full(len(xs), np.nan)
    found = np.interp(xs, at, values)
    far = (xs < at[0]) | (xs > at[-1])
    return np.where(far, np.nan, found)
