"""The charts of a run: latency, read levels, the run over time, steady state, garbage collection, dies, wear."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nandlab.presentation import CAUSES, clock_scale, levels
from nandlab.reporting.chart import (
    OVER_SEEDS,
    Axis,
    Bars,
    Figure,
    Floats,
    Heat,
    Histogram,
    Lines,
    Panel,
    Ratios,
    Series,
    floats,
)
from nandlab.reporting.colours import CAUSES as CAUSE_COLOURS
from nandlab.reporting.colours import OPERATIONS
from nandlab.reporting.content import Block, Columns, Drawing, Nothing
from nandlab.reporting.series import begin_s
from nandlab.result_types import SteadyQuantity, Summary
from nandlab.results import RunResult
from nandlab.tables import Columns as Table
from nandlab.units import count, duration, number, share

_TIME = Axis("simulated time, s", " s")
_LATENCY = "latency, \u00b5s"
_US = " \u00b5s"
_OPS = ("read", "write", "trim", "flush")
_DAY_S = 86_400.0
_YEAR_S = 365 * _DAY_S
#: The most cells of a heat map, and its most columns.
_CELLS, _COLUMNS = 6000, 256


def single(
    chart: Lines | Bars | Ratios | Histogram | Heat, caption: str, id_: str = "", *, intervals: str = OVER_SEEDS
) -> Drawing:
    """A figure of one chart; `intervals` says what those of its series are."""
    return Drawing(Figure(chart.title, caption, (Panel(chart),), id=id_, intervals=intervals))


def _has(series: Table, *names: str) -> bool:
    return all(name in series and bool(np.isfinite(series[name]).any()) for name in names)


def _colour_of_cause(cause: str) -> str:
    return CAUSE_COLOURS.get(cause, "slate")


def latency(result: RunResult) -> list[Block]:
    """The distribution of latency: all requests, and the slowest requests."""
    if "latency" not in result.tables:
        return [Nothing("This run kept no latency histogram.")]
    # Latencies of 0, as of a TRIM or a flush, have no place on a logarithmic axis.
    drawn = [(op, of) for op in _OPS if (of := LatencyOf.read(result, op)) is not None and of.high[-1] > 0]
    if not drawn:
        return [Nothing("No request completed, so there is no latency to show.")]
    xs = shared_latencies([of for _, of in drawn])
    body = tuple(Series(op, 100 * of.at_most(xs), OPERATIONS[op]) for op, of in drawn)
    tail = tuple(Series(op, of.slower(xs), OPERATIONS[op]) for op, of in drawn)
    least = min(1 / of.counts.sum() for _, of in drawn)
    x = Axis(_LATENCY, _US, log=True, low=float(xs[0]), high=float(xs[-1]))
    return [
        single(
            Lines("All requests", x, Axis("requests at most this slow, %", " %", low=0, high=100), xs, body),
            "Cumulative distribution: half of the requests take at most the latency at which the curve crosses 50 %.",
        ),
        single(
            Lines(
                "The slowest requests",
                x,
                Axis("share of slower requests", log=True, low=max(least, 1e-9), high=1.0),
                xs,
                tail,
            ),
            "The tail of the distribution: the curve crosses 0.001 at the 99.9th percentile; further left is better.",
        ),
    ]


@dataclass(frozen=True)
class LatencyOf:
    """The latency histogram of one operation."""

    #: The ends of the intervals in microseconds, ascending; all edges with their lower ends in `edges`.
    high: Floats
    counts: Floats
    edges: Floats

    @classmethod
    def read(cls, result: RunResult, op: str) -> LatencyOf | None:
        """The histogram of a result; `None` without requests of this operation, or without histograms."""
        if "latency" not in result.tables:
            return None
        table = result.numpy("latency")
        mask = (table["op"] == op) & (table["count"] > 0)
        if not mask.any():
            return None
        order = np.argsort(table["high_us"][mask], kind="stable")
        high = table["high_us"][mask][order].astype(float)
        edges = np.concatenate([table["low_us"][mask].astype(float), high])
        return cls(high, table["count"][mask][order].astype(float), edges)

    def at_most(self, xs: Floats) -> Floats:
        """The share of requests that take at most the latencies `xs`."""
        sums = np.concatenate([[0.0], np.cumsum(self.counts)])
        return np.asarray(sums[np.searchsorted(self.high, xs, side="right")] / self.counts.sum(), dtype=float)

    def slower(self, xs: Floats) -> Floats:
        """The share of requests that take longer than the latencies `xs`; NaN where there are none."""
        share = 1 - self.at_most(xs)
        return np.where(share > 1e-12, share, np.nan)


def shared_latencies(of: Sequence[LatencyOf], points: int = 400) -> Floats:
    """Latencies at which the curves of several histograms are drawn, in microseconds."""
    every = np.unique(np.concatenate([one.edges for one in of]))
    every = every[every > 0]
    low = max(float(every[0]) * 0.9, 1e-3)
    top = max(float(one.high[-1]) for one in of) * 1.05
    xs = np.unique(np.concatenate([[low], every, [top]]))
    if len(xs) > points:
        # Keep the values nearest to even steps of the logarithmic axis.
        nearest = np.searchsorted(xs, np.geomspace(low, top, points))
        xs = xs[np.unique(np.minimum(nearest, len(xs) - 1))]
    return np.asarray(xs, dtype=float)


def read_levels(summary: Summary) -> Block | None:
    """Page reads by the read level that decoded them."""
    rows = levels(summary.ecc)
    if not rows:
        return None
    lost = any(of.uncorrectable for of in rows)
    names = [*(str(level) for level in range(1, len(rows[0].counts) + 1)), *(["lost"] if lost else [])]
    drawn = []
    for of, colour in zip(rows, ("slate", "blue"), strict=False):
        counts = [*of.counts, *([of.uncorrectable] if lost else [])]
        drawn.append(Series(of.name, 100 * np.array(counts, dtype=float) / of.total, colour))
    caption = "Page reads by the read level that decoded them"
    host = summary.ecc.host
    if host.needed != host.levels and (total := sum(host.needed.values()) + rows[-1].uncorrectable):
        counts = [*host.needed.values(), *([rows[-1].uncorrectable] if lost else [])]
        drawn.append(Series("the least level of host reads", 100 * np.array(counts, dtype=float) / total, "orange"))
        caption += ", and host reads by the least level that would have decoded them"
    chart = Bars("Read levels", Axis("read level"), Axis("share of page reads, %", " %"), tuple(names), tuple(drawn))
    return single(chart, f"{caption}. Each colour adds up to 100 %.")


def slowest(series: Table) -> Block | None:
    """Throughput and the slowest requests on one time axis."""
    if not _has(series, "time_s", "iops_min", "latency_us_max") or len(series["time_s"]) < 2:
        return None
    xs = _middle(series)
    x = Axis(_TIME.title, _TIME.unit, low=0.0, high=float(xs[-1]))
    shown = [Series("mean", series["iops"], "ink")]
    if bool(np.any(series["iops_min"] < 0.999 * series["iops"])):
        shown.append(Series("least", series["iops_min"], "ink", style="faint"))
    longest = (Series("slowest request", series["latency_us_max"], "rose"),)
    panels = (
        Panel(Lines("Throughput", x, Axis("requests/s"), xs, tuple(shown), height=180), "Throughput"),
        Panel(
            Lines("Slowest requests", x, Axis(_LATENCY, _US, log=True), xs, longest, height=180),
            "The slowest request of each interval",
        ),
    )
    caption = (
        "Requests completed per second (pale: the least of the intervals that share a point), and the slowest request "
        "of each interval. A stall of the drive is a notch in the one and a peak in the other."
    )
    return Drawing(Figure("Throughput and the slowest requests", caption, panels))


def over_time(series: Table) -> Block:
    """Requests, data and latency over time."""
    if not _has(series, "time_s") or len(series["time_s"]) < 2:
        return Nothing("The run is too short to show it over time.")
    xs = _middle(series)
    parts: list[Block] = []
    ops = [
        op for op in ("read", "write", "trim") if _has(series, f"requests_{op}") and series[f"requests_{op}"].sum() > 0
    ]
    rates = tuple(Series(op, series[f"requests_{op}"] / series["interval_s"], OPERATIONS[op]) for op in ops)
    if rates:
        parts.append(
            single(
                Lines("Requests", _TIME, Axis("requests/s"), xs, rates, stacked=True),
                "Requests completed per second; the height of the stack is the IOPS.",
            )
        )
    moved = tuple(
        Series(op, series[f"bytes_{op}"] / series["interval_s"] / 1e6, OPERATIONS[op])
        for op in ("read", "write")
        if _has(series, f"bytes_{op}") and series[f"bytes_{op}"].sum() > 0
    )
    if moved:
        parts.append(
            single(
                Lines("Data", _TIME, Axis("MB/s", " MB/s"), xs, moved, stacked=True),
                "Data read and written by the host per second; the height of the stack is the throughput.",
            )
        )
    for op in ("read", "write"):
        name, title = f"latency_us_{op}", f"{op.capitalize()} latency"
        if not _has(series, f"{name}_mean"):
            parts.append(Nothing(f"The run has no {op}s, so there is no {op} latency.", title))
            continue
        shown = [Series("mean", series[f"{name}_mean"], OPERATIONS[op])]
        if _has(series, f"{name}_max"):
            shown.append(Series("slowest", series[f"{name}_max"], OPERATIONS[op], style="faint"))
        parts.append(
            single(
                Lines(title, _TIME, Axis(_LATENCY, _US, log=True), xs, tuple(shown)),
                "Bold: the mean of each interval; pale: its slowest request. The axis is logarithmic.",
            )
        )
    return Columns(tuple(parts))


def _middle(series: Table) -> Floats:
    middle: Floats = begin_s(series) + series["interval_s"] / 2
    return middle


def waf(series: Table, summary: Summary) -> Block:
    """Programs by cause and write amplification over time."""
    causes = [name for name in series if name.startswith("program_") and series[name].sum() > 0]
    if not causes:
        return Nothing("No page was programmed, so there is no write amplification.")
    if len(series["time_s"]) < 2:
        return Nothing(
            f"{number(summary.waf)} over the whole run, which is too short to show write amplification over time."
        )
    xs = _middle(series)
    order = [f"program_{cause}" for cause in CAUSES]
    causes.sort(key=lambda name: order.index(name) if name in order else len(order))
    stack = tuple(
        Series(CAUSES.get(name[8:], name[8:]), series[name] / series["interval_s"], _colour_of_cause(name[8:]))
        for name in causes
    )
    left = single(
        Lines("Programs by cause", _TIME, Axis("pages programmed/s"), xs, stack, stacked=True),
        "Pages programmed per second by cause; the bands above the lowest one are amplification.",
    )
    if not _has(series, "waf"):
        return Columns((left, Nothing("The host wrote nothing, so there is no write amplification.", "WAF")))
    top = max(float(np.nanmax(series["waf"])) * 1.08, 1.2)
    waf_pages = summary.waf_pages
    in_pages = f", in pages {number(waf_pages)}" if number(waf_pages) != number(summary.waf) else ""
    right = single(
        Lines("WAF", _TIME, Axis("WAF", low=0, high=top), xs, (Series("WAF", series["waf"], "accent"),)),
        f"Bytes programmed per byte that the host wrote (also to the write cache), by interval; {number(summary.waf)} "
        f"over the whole run{in_pages}. A flat end means that the drive has settled.",
    )
    return Columns((left, right))


def slc_cache(series: Table) -> Block | None:
    """The bytes that the host wrote in each mode, and the blocks in SLC mode, over the bytes written so far."""
    if "slc_bytes" not in series:
        return None
    cached, direct = series["slc_bytes"].astype(float), series["direct_bytes"].astype(float)
    if len(cached) < 2 or cached.sum() + direct.sum() == 0:
        return Nothing("The run is too short, or the host wrote too little, to show the SLC cache over time.")
    xs = np.cumsum(cached + direct) * 1e-9
    axis = Axis("written by the host to flash, GB", " GB")
    rates = tuple(
        Series(name, values * 1e-6 / series["interval_s"], colour)
        for name, values, colour in (("in SLC mode", cached, "blue"), ("without SLC mode", direct, "slate"))
    )
    left = single(
        Lines("Writes of the host by mode", axis, Axis("MB/s", " MB/s"), xs, rates, stacked=True),
        "Programs of the host by the mode of their block, per second. A step down is where the cache was full; a "
        "vertical line of points is a pause.",
    )
    share = 100 * series["slc_block_share"]
    right = single(
        Lines("Blocks in SLC mode", axis, Axis("% of blocks", " %", low=0), xs, (Series("share", share, "accent"),)),
        "Share of the blocks that are in SLC mode, by interval.",
    )
    return Columns((left, right))


def steady(summary: Summary) -> list[Block | None]:
    """The quantities of the SNIA criterion, by round."""
    found = summary.steady_state
    if found is None:
        return []
    plots = [_quantity(found.waf, "write amplification", 1.0, "")]
    if found.bytes_per_s is not None:
        plots.append(_quantity(found.bytes_per_s, "throughput", 1e-6, " MB/s"))
    return plots


def _quantity(judged: SteadyQuantity, name: str, scale: float, unit: str) -> Block | None:
    values = floats(judged.rounds) * scale
    if len(values) < 2:
        return None
    mean = None if judged.mean is None else judged.mean * scale
    band = "" if mean is None else " The shaded band is the mean of the last five rounds, plus or minus 10 %."
    chart = Lines(
        f"{name.capitalize()} by round",
        Axis("round", low=1.0, high=float(len(values)), whole=True),
        Axis(name + (f",{unit}" if unit else ""), unit),
        np.arange(1, len(values) + 1, dtype=float),
        (Series(name, values, "accent"),),
        dots=len(values) <= 100,
        band=None if mean is None else (0.9 * mean, 1.1 * mean),
        height=200,
    )
    return single(chart, f"One point per round of the run.{band}")


def gc(series: Table, summary: Summary) -> Block:
    """Erases, victims and free space over time."""
    gc = summary.gc
    erases = float(series["erases"].sum()) if "erases" in series else 0.0
    victims = gc.victims
    if erases == 0 and not victims:
        return Nothing("GC never ran: free space did not fall to the level at which GC starts.")
    if not series or len(series["time_s"]) < 2:
        return Nothing(f"{count(victims)} victims; the run is too short to show GC over time.")
    xs = _middle(series)
    parts: list[Block] = []
    if erases:
        rate = Series("erases/s", series["erases"] / series["interval_s"], "orange")
        chart = Lines("Erases", _TIME, Axis("erases/s"), xs, (rate,), height=210)
        parts.append(single(chart, "Blocks erased per second, for all causes."))
    else:
        parts.append(Nothing("No block was erased.", "Erases"))
    if _has(series, "gc_victim_valid_mean"):
        valid = Series("valid share", 100 * series["gc_victim_valid_mean"], "orange")
        chart = Lines("Victims", _TIME, Axis("valid pages, %", " %", low=0, high=100), xs, (valid,), height=210)
        overall = f"; {share(gc.victim_valid_mean)} over the run"
        times = gc.victim_ms
        spans = [part / 1e3 for part in (times.copies, times.waiting, times.erase)]
        copies, waiting, erase = map(duration, spans)
        took = (
            f" A victim took {duration(sum(spans))} on average: {copies} to copy its pages, {waiting} until its erase "
            f"was queued, {erase} until the erase ended."
        )
        caption = f"Share of a victim's pages that were moved{overall}. A lower share costs less."
        parts.append(single(chart, caption + (took if times.erase > 0 else "")))
    else:
        parts.append(Nothing("No victim was picked.", "Victims"))
    if _has(series, "free_share_min", "free_share_mean"):
        free = (
            Series("mean", 100 * series["free_share_mean"], "slate"),
            Series("fullest plane", 100 * series["free_share_min"], "red"),
        )
        chart = Lines("Free space", _TIME, Axis("free, %", " %"), xs, free, height=210)
        parts.append(single(chart, "Free share of a plane's pages; GC starts at a low share."))
    return Columns(tuple(parts), "three")


def capacitor(series: Table, spec_toml: str) -> Block:
    """True capability, detected budget and dirty pages over time."""
    title = "Capability, budget and dirty pages"
    if "capacitor_pages" not in series or len(series["time_s"]) < 2:
        return Nothing("The run is too short to show the capacitor over time.", title)
    scale = clock_scale(spec_toml)
    times = _middle(series)
    name, unit, per = "simulated time, s", " s", 1.0
    if scale > 1:
        whole_s = float(series["time_s"][-1]) * scale
        name, unit, per = (
            ("scaled clock, years", " years", scale / _YEAR_S)
            if whole_s > 2 * _YEAR_S
            else ("scaled clock, days", " days", scale / _DAY_S)
            if whole_s > 2 * _DAY_S
            else ("scaled clock, s", " s", scale)
        )
    shown = (
        Series("capability", series["capacitor_pages"], "orange"),
        Series("budget", series["cache_budget_pages"], "accent"),
        Series("dirty, at most", series["cache_dirty_pages"], "rose", style="faint"),
    )
    return single(
        Lines(title, Axis(name, unit), Axis("pages", " pages"), times * per, shown, height=270),
        "Pages that the full capacitor could save by Eq. 1 to 5 of the aging-capacitor paper (capability), pages that "
        "may be dirty (budget), and the most dirty pages of each interval. Dirty pages above the capability are at "
        "risk.",
    )


def dies(result: RunResult) -> Block | None:
    """Die utilisation over time."""
    if "dies" not in result.tables:
        return None
    table = result.numpy("dies")
    if len(table["time_s"]) == 0:
        return Nothing("The run is too short to show the dies over time.")
    times = np.unique(table["time_s"])
    dies = np.unique(table["die"])
    values = np.full((len(dies), len(times)), np.nan)
    values[np.searchsorted(dies, table["die"]), np.searchsorted(times, table["time_s"])] = table["busy_share"]
    channel = dict(zip(table["die"].tolist(), table["channel"].tolist(), strict=True))
    order = sorted(range(len(dies)), key=lambda i: (channel[int(dies[i])], int(dies[i])))
    values = values[order]
    channels = [channel[int(dies[i])] for i in order]
    breaks = [i for i in range(1, len(order)) if channels[i] != channels[i - 1]]
    rows = tuple(f"{channels[i]}.{int(dies[order[i]])}" for i in range(len(order)))
    begins = np.unique(begin_s(table))
    begin = float(begins[0])
    end = float(times[-1]) if begin < float(times[0]) else float(times[-1] + table["interval_s"][-1])
    mean, spread = float(np.nanmean(values)), np.nanmean(values, axis=1)
    row_step = -(-len(rows) // 128)
    edges = np.append(begins, end)
    step = -(-len(begins) // min(max(_CELLS // -(-len(rows) // row_step), 8), _COLUMNS))
    shown = coarse(values, row_step, step)
    edges = np.append(edges[:-1][::step], edges[-1])
    # The scale ends near the maximum, so that mostly idle dies differ in colour.
    top = min(_nice(max(float(np.nanmax(values)), 0.01)), 1.0)
    chart = Heat(
        "Die utilisation",
        _TIME,
        "channel.die",
        rows[::row_step],
        edges,
        100 * shown,
        Axis("utilisation, %", " %", low=0.0, high=100 * top),
        breaks=tuple(breaks) if len(breaks) <= 32 and row_step == 1 else (),
        height=min(max(120, 17 * len(shown)), 520),
    )
    grouped = "" if row_step == 1 else f" Each row is the mean of {row_step} dies."
    caption = (
        f"Share of the time in which each die is occupied, with transfers and waits (mean {share(mean)}, "
        f"from {share(float(spread.min()))} to {share(float(spread.max()))} by die). Equal rows mean an even load; "
        f"a light column is a time when all dies were busy.{grouped} The colour scale ends at {share(top)}."
    )
    return single(chart, caption)


def wear(result: RunResult) -> Block | None:
    """P/E cycles of all blocks: wear map and histogram."""
    if "blocks" not in result.tables or len(result.numpy("blocks")["plane"]) == 0:
        return None
    table = result.numpy("blocks")
    planes, blocks = (int(table[name].max()) + 1 for name in ("plane", "block"))
    cycles = np.full((planes, blocks), np.nan)
    cycles[table["plane"].astype(int), table["block"].astype(int)] = table["pe_cycles"]
    low, high = float(np.nanmin(cycles)), float(np.nanmax(cycles))
    if low == high:
        return Nothing(f"Every block has the same wear: {count(low)} P/E cycles.")
    row_step = -(-planes // 64)
    shown_rows = -(-planes // row_step)
    column_step = -(-blocks // min(max(_CELLS // shown_rows, 16), _COLUMNS))
    shown = coarse(cycles, row_step, column_step)
    edges = np.append(np.arange(0, blocks, column_step, dtype=float), float(blocks))
    grouped = "" if row_step * column_step == 1 else f" Each cell is the mean of {row_step} x {column_step} blocks."
    least, most = float(np.nanmin(shown)), float(np.nanmax(shown))
    heat = Heat(
        "Wear map",
        Axis("block"),
        "plane",
        tuple(str(i * row_step) for i in range(len(shown))),
        edges,
        shown,
        Axis("P/E cycles", low=least, high=most if most > least else least + 1),
        height=270,
    )
    values = cycles[np.isfinite(cycles)]
    width = max(math.ceil((high - low + 1) / 40), 1)
    counts, ends = np.histogram(values, bins=np.arange(low - 0.5, high + width, width))
    histogram = Histogram(
        "Wear by block", Axis("P/E cycles"), Axis("blocks"), ends, counts.astype(float), "violet", height=270
    )
    left = single(heat, f"P/E cycles of each block at the end; a lighter colour is more wear.{grouped}")
    right = single(
        histogram, f"Blocks by P/E cycles, from {count(low)} to {count(high)}. A narrow histogram means even wear."
    )
    return Columns((left, right), "wide-narrow")


def _nice(value: float) -> float:
    """The next round number: 1, 2, 2.5 or 5 times a power of ten, or a multiple of a fifth of it."""
    step: float = 10.0 ** math.floor(math.log10(value / 5))
    step = next(factor * step for factor in (1, 2, 2.5, 5, 10) if factor * step >= value / 5 * 0.999)
    return math.ceil(value / step - 1e-9) * step


def coarse(values: Floats, row_step: int, column_step: int) -> Floats:
    """Means of cells of `row_step` x `column_step`."""
    rows, columns = values.shape
    padded = np.full((-(-rows // row_step) * row_step, -(-columns // column_step) * column_step), np.nan)
    padded[:rows, :columns] = values
    cells = padded.reshape(padded.shape[0] // row_step, row_step, -1, column_step)
    there = np.isfinite(cells)
    total = np.where(there, cells, 0.0).sum(axis=(1, 3))
    known = there.sum(axis=(1, 3))
    means: Floats = np.where(known > 0, total / np.maximum(known, 1), np.nan)
    return means
