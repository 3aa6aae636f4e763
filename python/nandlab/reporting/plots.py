"""The plots of a run: latency, read levels, the run over time, steady state, garbage collection, dies, wear."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from nandlab.presentation import CAUSES, clock_scale, levels
from nandlab.reporting import svg
from nandlab.reporting.pieces import columns, figure, nothing
from nandlab.reporting.series import begin_s
from nandlab.reporting.svg import Floats, Line, Scale
from nandlab.result_types import SteadyQuantity, Summary
from nandlab.results import RunResult
from nandlab.tables import Columns
from nandlab.units import count, number, share

_LATENCY = "latency, \u00b5s"
_OPS = ("read", "write", "trim", "flush")
_DAY_S = 86_400.0
_YEAR_S = 365 * _DAY_S
_OP_COLOUR = {"read": "c-read", "write": "c-write", "trim": "c-trim", "flush": "c-flush-op"}


def _has(series: Columns, *names: str) -> bool:
    return all(name in series and bool(np.isfinite(series[name]).any()) for name in names)


def latency(result: RunResult) -> list[str]:
    """The distribution of latency: all requests, and the slowest requests."""
    if "latency" not in result.tables:
        return [nothing("This run kept no latency histogram.")]
    table = result.numpy("latency")
    seen: list[tuple[str, Floats, Floats]] = []
    edges: list[Floats] = []
    for op in _OPS:
        mask = table["op"] == op
        counts = table["count"][mask].astype(float)
        if counts.sum() > 0:
            order = np.argsort(table["high_us"][mask], kind="stable")
            edges += [table["low_us"][mask].astype(float), table["high_us"][mask].astype(float)]
            seen.append((op, table["high_us"][mask][order].astype(float), counts[order]))
    # Latencies of 0, as of a TRIM or a flush, have no place on a logarithmic axis.
    drawn = [(op, high, counts) for op, high, counts in seen if high[-1] > 0]
    if not drawn:
        return [nothing("No request completed, so there is no latency to show.")]
    every = np.unique(np.concatenate(edges))
    every = every[every > 0]
    low = max(float(every[0]) * 0.9, 1e-3)
    top = max(float(high[-1]) for _, high, _ in drawn) * 1.05
    xs = np.unique(np.concatenate([[low], every, [top]]))
    if len(xs) > 600:
        # Keep the values nearest to even steps of the logarithmic axis.
        nearest = np.searchsorted(xs, np.geomspace(low, top, 600))
        xs = xs[np.unique(np.minimum(nearest, len(xs) - 1))]
    body, tail = [], []
    for op, high, counts in drawn:
        below = np.concatenate([[0.0], np.cumsum(counts)])[np.searchsorted(high, xs, side="right")] / counts.sum()
        slower = np.where(1 - below > 1e-12, 1 - below, np.nan)
        body.append(Line(op, 100 * below, _OP_COLOUR[op]))
        tail.append(Line(op, slower, _OP_COLOUR[op]))
    least = min(1 / counts.sum() for _, _, counts in drawn)
    draw = partial(svg.lines, xs, x_title=_LATENCY, log_x=True, x_range=(low, top), x_unit="\u00b5s", height=290)
    left = figure(
        draw(body, y_title="requests at most this slow, %", y_range=(0, 100), unit=" %"),
        "Cumulative distribution: half of the requests take at most the latency at which the curve crosses 50 %.",
        "All requests",
    )
    right = figure(
        draw(tail, y_title="share of slower requests", log_y=True, y_range=(max(least, 1e-9), 1.0)),
        "The tail of the distribution: the curve crosses 0.001 at the 99.9th percentile; further left is better.",
        "The slowest requests",
    )
    return [left, right]


def read_levels(summary: Summary) -> str:
    """Page reads by the read level that decoded them."""
    rows = levels(summary.ecc)
    if not rows:
        return ""
    lost = any(of.uncorrectable for of in rows)
    names = [*(f"level {level}" for level in range(1, len(rows[0].counts) + 1)), *(["lost"] if lost else [])]
    drawn = []
    for of, colour in zip(rows, ("c-host", "c-read"), strict=False):
        counts = [*of.counts, *([of.uncorrectable] if lost else [])]
        drawn.append(Line(of.name, 100 * np.array(counts, dtype=float) / of.total, colour))
    caption = "Page reads by the read level that decoded them"
    host = summary.ecc.host
    if host.needed != host.levels and (total := sum(host.needed.values()) + rows[-1].uncorrectable):
        counts = [*host.needed.values(), *([rows[-1].uncorrectable] if lost else [])]
        drawn.append(Line("the least level of host reads", 100 * np.array(counts, dtype=float) / total, "c-gc"))
        caption += ", and host reads by the least level that would have decoded them"
    plot = svg.grouped_bars(names, drawn, y_title="share of page reads, %")
    return figure(plot, f"{caption}. Each colour adds up to 100 %.")


def slowest(series: Columns) -> str:
    """Throughput and the slowest requests on one time axis."""
    if not _has(series, "time_s", "iops_min", "latency_us_max") or len(series["time_s"]) < 2:
        return ""
    xs = _middle(series)
    shown = [Line("mean", series["iops"], "c-all")]
    if bool(np.any(series["iops_min"] < 0.999 * series["iops"])):
        shown.append(Line("least", series["iops_min"], "c-all", faint=True))
    draw = partial(svg.lines, xs, x_title="simulated time, s", width=750, height=200, x_range=(0.0, float(xs[-1])))
    above = draw(shown, y_title="requests/s")
    longest = [Line("slowest", series["latency_us_max"], "c-all")]
    below = draw(longest, y_title=_LATENCY, log_y=True, unit=" \u00b5s", show_legend=False)
    caption = (
        "Above: requests completed per second; pale: the least of the intervals that share a point. Below: the slowest "
        "request of each interval. A stall of the drive is a notch above and a peak below."
    )
    return figure(above + below, caption, "Throughput and the slowest requests")


def over_time(series: Columns) -> str:
    """Requests, data and latency over time."""
    if not _has(series, "time_s") or len(series["time_s"]) < 2:
        return nothing("The run is too short to show it over time.")
    xs = _middle(series)
    parts = []
    ops = [
        op for op in ("read", "write", "trim") if _has(series, f"requests_{op}") and series[f"requests_{op}"].sum() > 0
    ]
    rates = [Line(op, series[f"requests_{op}"] / series["interval_s"], _OP_COLOUR[op]) for op in ops]
    if rates:
        plot = svg.lines(xs, rates, x_title="simulated time, s", y_title="requests/s", stacked=True)
        parts.append(figure(plot, "Requests completed per second; the height of the stack is the IOPS.", "Requests"))
    moved = [
        Line(op, series[f"bytes_{op}"] / series["interval_s"] / 1e6, _OP_COLOUR[op])
        for op in ("read", "write")
        if _has(series, f"bytes_{op}") and series[f"bytes_{op}"].sum() > 0
    ]
    if moved:
        plot = svg.lines(xs, moved, x_title="simulated time, s", y_title="MB/s", stacked=True, unit=" MB/s")
        parts.append(
            figure(
                plot, "Data read and written by the host per second; the height of the stack is the throughput.", "Data"
            )
        )
    for op in ("read", "write"):
        name = f"latency_us_{op}"
        if not _has(series, f"{name}_mean"):
            parts.append(nothing(f"The run has no {op}s, so there is no {op} latency.", f"{op.capitalize()} latency"))
            continue
        shown = [Line("mean", series[f"{name}_mean"], _OP_COLOUR[op])]
        if _has(series, f"{name}_max"):
            shown.append(Line("slowest", series[f"{name}_max"], _OP_COLOUR[op], faint=True))
        plot = svg.lines(
            xs, shown, x_title="simulated time, s", y_title=_LATENCY, log_y=True, unit=" \u00b5s", height=250
        )
        caption = "Bold: the mean of each interval; pale: its slowest request. The axis is logarithmic."
        parts.append(figure(plot, caption, f"{op.capitalize()} latency"))
    return columns("two", *parts)


def _middle(series: Columns) -> Floats:
    middle: Floats = begin_s(series) + series["interval_s"] / 2
    return middle


def waf(series: Columns, summary: Summary) -> str:
    """Programs by cause and write amplification over time."""
    causes = [name for name in series if name.startswith("program_") and series[name].sum() > 0]
    if not causes:
        return nothing("No page was programmed, so there is no write amplification.")
    if len(series["time_s"]) < 2:
        return nothing(
            f"{number(summary.waf)} over the whole run, which is too short to show write amplification over time."
        )
    xs = _middle(series)
    order = [f"program_{cause}" for cause in CAUSES]
    causes.sort(key=lambda name: order.index(name) if name in order else len(order))
    stack = [
        Line(CAUSES.get(name[8:], name[8:]), series[name] / series["interval_s"], f"c-{name[8:]}") for name in causes
    ]
    left = figure(
        svg.lines(xs, stack, x_title="simulated time, s", y_title="pages programmed/s", stacked=True),
        "Pages programmed per second by cause; the bands above the lowest one are amplification.",
        "Programs by cause",
    )
    if not _has(series, "waf"):
        return columns("two", left, nothing("The host wrote nothing, so there is no write amplification.", "WAF"))
    top = max(float(np.nanmax(series["waf"])) * 1.08, 1.2)
    waf_pages = summary.waf_pages
    in_pages = f", in pages {number(waf_pages)}" if number(waf_pages) != number(summary.waf) else ""
    right = figure(
        svg.lines(
            xs, [Line("WAF", series["waf"], "c-main")], x_title="simulated time, s", y_title="WAF", y_range=(0, top)
        ),
        f"Bytes programmed per byte that the host wrote (also to the write cache), by interval; {number(summary.waf)} "
        f"over the whole run{in_pages}. A flat end means that the drive has settled.",
        "WAF",
    )
    return columns("two", left, right)


def steady(summary: Summary) -> list[str]:
    """The quantities of the SNIA criterion, by round."""
    found = summary.steady_state
    if found is None:
        return []
    plots = [_quantity(found.waf, "write amplification", 1.0, "")]
    if found.bytes_per_s is not None:
        plots.append(_quantity(found.bytes_per_s, "throughput", 1e-6, " MB/s"))
    return plots


def _quantity(judged: SteadyQuantity, name: str, scale: float, unit: str) -> str:
    rounds = np.array([math.nan if value is None else value for value in judged.rounds], dtype=float) * scale
    if len(rounds) < 2:
        return ""
    return _rounds(rounds, None if judged.mean is None else judged.mean * scale, name, unit)


def _rounds(values: Floats, mean: float | None, name: str, unit: str) -> str:
    plot = svg.lines(
        np.arange(1, len(values) + 1, dtype=float),
        [Line(name, values, "c-main")],
        x_title="round",
        y_title=name + (f",{unit}" if unit else ""),
        band=None if mean is None else (0.9 * mean, 1.1 * mean),
        markers=True,
        x_range=(1.0, float(len(values))),
        x_ticks=svg.whole_ticks(len(values)),
        height=210,
        unit=unit,
        x_unit="",
    )
    band = "" if mean is None else " The shaded band is the mean of the last five rounds, plus or minus 10 %."
    return figure(plot, f"One point per round of the run.{band}")


def gc(series: Columns, summary: Summary) -> str:
    """Erases, victims and free space over time."""
    gc = summary.gc
    erases = float(series["erases"].sum()) if "erases" in series else 0.0
    victims = gc.victims
    if erases == 0 and not victims:
        return nothing("GC never ran: free space did not fall to the level at which GC starts.")
    if not series or len(series["time_s"]) < 2:
        return nothing(f"{count(victims)} victims; the run is too short to show GC over time.")
    xs = _middle(series)
    parts = []
    if erases:
        rate = Line("erases/s", series["erases"] / series["interval_s"], "c-gc")
        plot = svg.lines(xs, [rate], x_title="simulated time, s", y_title="erases/s", width=366, height=230)
        parts.append(figure(plot, "Blocks erased per second, for all causes.", "Erases"))
    else:
        parts.append(nothing("No block was erased.", "Erases"))
    if _has(series, "gc_victim_valid_mean"):
        line = Line("valid share", 100 * series["gc_victim_valid_mean"], "c-gc")
        plot = svg.lines(
            xs, [line], x_title="simulated time, s", y_title="valid pages, %", y_range=(0, 100),
            width=366, height=230, unit=" %",
        )  # fmt: skip
        overall = f"; {share(gc.victim_valid_mean)} over the run"
        parts.append(
            figure(plot, f"Share of a victim's pages that were moved{overall}. A lower share costs less.", "Victims")
        )
    else:
        parts.append(nothing("No victim was picked.", "Victims"))
    if _has(series, "free_share_min", "free_share_mean"):
        free = [
            Line("mean", 100 * series["free_share_mean"], "c-host"),
            Line("fullest plane", 100 * series["free_share_min"], "c-flush"),
        ]
        plot = svg.lines(xs, free, x_title="simulated time, s", y_title="free, %", width=366, height=230, unit=" %")
        parts.append(figure(plot, "Free share of a plane's pages; GC starts at a low share.", "Free space"))
    return columns("three", *parts)


def capacitor(series: Columns, spec_toml: str) -> str:
    """True capability, detected budget and dirty pages over time."""
    title = "Capability, budget and dirty pages"
    if "capacitor_pages" not in series or len(series["time_s"]) < 2:
        return nothing("The run is too short to show the capacitor over time.", title)
    scale = clock_scale(spec_toml)
    times = _middle(series)
    name, unit, per = "simulated time, s", "s", 1.0
    if scale > 1:
        whole_s = float(series["time_s"][-1]) * scale
        name, unit, per = (
            ("scaled clock, years", "years", scale / _YEAR_S)
            if whole_s > 2 * _YEAR_S
            else ("scaled clock, days", "days", scale / _DAY_S)
            if whole_s > 2 * _DAY_S
            else ("scaled clock, s", "s", scale)
        )
    shown = [
        Line("capability", series["capacitor_pages"], "c-gc"),
        Line("budget", series["cache_budget_pages"], "c-main"),
        Line("dirty, at most", series["cache_dirty_pages"], "c-write", faint=True),
    ]
    plot = svg.lines(
        times * per, shown, x_title=name, y_title="pages", width=750, height=290, x_unit=unit, unit=" pages"
    )
    return figure(
        plot,
        "Pages that the full capacitor could save by Eq. 1 to 5 of the aging-capacitor paper (capability), pages that "
        "may be dirty (budget), and the most dirty pages of each interval. Dirty pages above the capability are at "
        "risk.",
        title,
    )


def dies(result: RunResult) -> str:
    """Die utilisation over time."""
    if "dies" not in result.tables:
        return ""
    table = result.numpy("dies")
    if len(table["time_s"]) == 0:
        return nothing("The run is too short to show the dies over time.")
    times = np.unique(table["time_s"])
    dies = np.unique(table["die"])
    values = np.full((len(dies), len(times)), np.nan)
    values[np.searchsorted(dies, table["die"]), np.searchsorted(times, table["time_s"])] = table["busy_share"]
    channel = dict(zip(table["die"].tolist(), table["channel"].tolist(), strict=True))
    order = sorted(range(len(dies)), key=lambda i: (channel[int(dies[i])], int(dies[i])))
    values = values[order]
    channels = [channel[int(dies[i])] for i in order]
    breaks = [i for i in range(1, len(order)) if channels[i] != channels[i - 1]]
    rows = [f"{channels[i]}.{int(dies[order[i]])}" for i in range(len(order))]
    begins = np.unique(begin_s(table))
    begin = float(begins[0])
    end = float(times[-1]) if begin < float(times[0]) else float(times[-1] + table["interval_s"][-1])
    if len(times) > 1 and np.ptp(np.diff(np.append(begins, end))) > 0.01 * (end - begin) / len(times):
        # Intervals of different length are drawn on an even grid.
        middles = begin + (np.arange(256) + 0.5) * (end - begin) / 256
        values = values[:, np.searchsorted(begins, middles, side="right") - 1]
    # The scale ends near the maximum, so that mostly idle dies differ in colour.
    top = min(Scale(0.0, max(float(np.nanmax(values)), 0.01), 0.0, 1.0, nice=True).high, 1.0)
    plot = svg.heatmap(
        values,
        x_range=(begin, end),
        x_title="simulated time, s",
        y_title="channel.die",
        x_name="# s",
        y_name="die",
        low=0.0,
        high=top,
        scale=100.0,
        unit=" %",
        rows=rows,
        breaks=breaks if len(breaks) <= 32 else (),
        height=min(max(170, 52 + 17 * len(rows)), 560),
    )
    mean, spread = float(np.nanmean(values)), np.nanmean(values, axis=1)
    caption = (
        f"Share of the time in which each die is occupied, with transfers and waits (mean {share(mean)}, "
        f"from {share(float(spread.min()))} to {share(float(spread.max()))} by die). Equal rows mean an even load; "
        f"a light column is a time when all dies were busy. The colour scale ends at {share(top)}."
    )
    return figure(plot, caption)


def wear(result: RunResult) -> str:
    """P/E cycles of all blocks: wear map and histogram."""
    if "blocks" not in result.tables or len(result.numpy("blocks")["plane"]) == 0:
        return ""
    table = result.numpy("blocks")
    planes, blocks = (int(table[name].max()) + 1 for name in ("plane", "block"))
    cycles = np.full((planes, blocks), np.nan)
    cycles[table["plane"].astype(int), table["block"].astype(int)] = table["pe_cycles"]
    low, high = float(np.nanmin(cycles)), float(np.nanmax(cycles))
    if low == high:
        return nothing(f"Every block has the same wear: {count(low)} P/E cycles.")
    row_step, column_step = -(-planes // 64), -(-blocks // 256)
    shown = _coarse(cycles, row_step, column_step)
    rows = [str(i * row_step) for i in range(len(shown))]
    grouped = "" if row_step * column_step == 1 else f" Each cell is the mean of {row_step} x {column_step} blocks."
    heat = svg.heatmap(
        shown,
        x_range=(0, blocks),
        x_title="block",
        y_title="plane",
        x_name="block #",
        y_name="plane",
        low=float(np.nanmin(shown)),
        high=float(np.nanmax(shown)),
        unit="",
        rows=rows,
        width=750,
        height=300,
    )
    values = cycles[np.isfinite(cycles)]
    width = max(math.ceil((high - low + 1) / 40), 1)
    counts, edges = np.histogram(values, bins=np.arange(low - 0.5, high + width, width))
    left = figure(heat, f"P/E cycles of each block at the end; a lighter colour is more wear.{grouped}", "Wear map")
    right = figure(
        svg.bars(
            edges, counts.astype(float), x_title="P/E cycles", y_title="blocks", width=366, height=300, colour="c-wear"
        ),
        f"Blocks by P/E cycles, from {count(low)} to {count(high)}. A narrow histogram means even wear.",
        "Wear by block",
    )
    return columns("wide-narrow", left, right)


def _coarse(values: Floats, row_step: int, column_step: int) -> Floats:
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
