"""The sections that draw: latency, the run over time, steady state, garbage collection, dies, wear."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nandlab.reporting import svg
from nandlab.reporting.pieces import CAUSES, columns, escape, figure, nothing, number_table
from nandlab.reporting.series import begin_s
from nandlab.reporting.svg import Floats, Line, Scale
from nandlab.results import RunResult
from nandlab.tables import Columns
from nandlab.units import count, duration, number, share, size

_LATENCY = "latency, \u00b5s"
_OPS = ("read", "write", "trim", "flush")
_OP_COLOUR = {"read": "c-read", "write": "c-write", "trim": "c-trim", "flush": "c-flush-op"}


def _has(series: Columns, *names: str) -> bool:
    return all(name in series and bool(np.isfinite(series[name]).any()) for name in names)


def latency(result: RunResult) -> str:
    """The distribution of latency, its body and its tail, and the percentiles."""
    if "latency" not in result.tables:
        return nothing("This run kept no latency histogram.")
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
    ops = [op for op, _, _ in seen] + (["all"] if len(seen) > 1 else [])
    # A TRIM or flush that takes no time has no place on a logarithmic axis.
    drawn = [(op, high, counts) for op, high, counts in seen if high[-1] > 0]
    if not drawn:
        return nothing("No request completed, so there is no latency to show.")
    every = np.unique(np.concatenate(edges))
    every = every[every > 0]
    low = max(float(every[0]) * 0.9, 1e-3)
    top = max(float(high[-1]) for _, high, _ in drawn) * 1.05
    xs = np.unique(np.concatenate([[low], every, [top]]))
    if len(xs) > 600:
        # Those nearest to even steps on the page.
        nearest = np.searchsorted(xs, np.geomspace(low, top, 600))
        xs = xs[np.unique(np.minimum(nearest, len(xs) - 1))]
    body, tail = [], []
    for op, high, counts in drawn:
        below = np.concatenate([[0.0], np.cumsum(counts)])[np.searchsorted(high, xs, side="right")] / counts.sum()
        slower = np.where(1 - below > 1e-12, 1 - below, np.nan)
        body.append(Line(op, 100 * below, _OP_COLOUR[op]))
        tail.append(Line(op, slower, _OP_COLOUR[op]))
    least = min(1 / counts.sum() for _, _, counts in drawn)
    common: dict[str, Any] = {
        "x_title": _LATENCY,
        "log_x": True,
        "x_range": (low, top),
        "x_unit": "\u00b5s",
        "height": 290,
    }
    left = figure(
        svg.lines(xs, body, y_title="requests at most this slow, %", y_range=(0, 100), unit=" %", **common),
        "Read at a height: half of the requests are at most as slow as where the curve crosses 50 %.",
        "All requests",
    )
    right = figure(
        svg.lines(
            xs,
            tail,
            y_title="share of requests slower than this",
            log_y=True,
            y_range=(max(least, 1e-9), 1.0),
            **common,
        ),
        "The slow end, enlarged: at a height of 0.001 is the 99.9th percentile; a curve further left is better.",
        "The slowest requests",
    )
    return columns("two", left, right) + _percentiles(result.summary.get("latency_us") or {}, ops)


def _percentiles(latency: Mapping[str, Any], ops: Sequence[str]) -> str:
    keys = [("mean", "mean"), ("p50", "50 %"), ("p95", "95 %"), ("p99", "99 %"), ("p999", "99.9 %"), ("max", "slowest")]
    rows = []
    for op in (*_OPS, "all"):
        values = latency.get(op) or {}
        if op in ops and values.get("max") is not None:
            colour = _OP_COLOUR.get(op, "c-all")
            rows.append([f'<i class="sw {colour}"></i>{op}', *(escape(number(values.get(key))) for key, _ in keys)])
    return f"<figure>{number_table([_LATENCY, *(name for _, name in keys)], rows)}</figure>" if rows else ""


def evenness(series: Columns) -> str:
    """Throughput and the slowest requests on one time axis: a moment without progress shows in both."""
    if not _has(series, "time_s", "iops_min", "latency_us_max") or len(series["time_s"]) < 2:
        return ""
    xs = _middle(series)
    shown = [Line("mean", series["iops"], "c-all")]
    if bool(np.any(series["iops_min"] < 0.999 * series["iops"])):
        shown.append(Line("least", series["iops_min"], "c-all", faint=True))
    common: dict[str, Any] = {"x_title": "simulated time, s", "width": 750, "x_range": (0.0, float(xs[-1]))}
    above = svg.lines(xs, shown, y_title="requests/s", height=200, **common)
    below = svg.lines(
        xs,
        [Line("slowest", series["latency_us_max"], "c-all")],
        y_title=_LATENCY,
        log_y=True,
        unit=" \u00b5s",
        height=200,
        show_legend=False,
        **common,
    )
    caption = (
        "Above: requests completed a second; pale, where intervals are drawn together, the least of them. Below: the "
        "slowest request of each interval. A drive that stands still shows as a notch above and a peak below."
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
        parts.append(figure(plot, "Requests completed a second; the height of the stack is the IOPS.", "Requests"))
    moved = [
        Line(op, series[f"bytes_{op}"] / series["interval_s"] / 1e6, _OP_COLOUR[op])
        for op in ("read", "write")
        if _has(series, f"bytes_{op}") and series[f"bytes_{op}"].sum() > 0
    ]
    if moved:
        plot = svg.lines(xs, moved, x_title="simulated time, s", y_title="MB/s", stacked=True, unit=" MB/s")
        parts.append(
            figure(plot, "Data moved for the host a second; the height of the stack is the throughput.", "Data")
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
        caption = "Bold: the mean of each interval; pale: its slowest request. Both on a logarithmic axis."
        parts.append(figure(plot, caption, f"{op.capitalize()} latency"))
    return columns("two", *parts)


def _middle(series: Columns) -> Floats:
    middle: Floats = begin_s(series) + series["interval_s"] / 2
    return middle


def waf(series: Columns, summary: Mapping[str, Any]) -> str:
    """Programs by cause and write amplification over time."""
    causes = [name for name in series if name.startswith("program_") and series[name].sum() > 0]
    if not causes:
        return nothing("No page was programmed, so nothing was amplified.")
    if len(series["time_s"]) < 2:
        return nothing(f"Over the whole run {number(summary.get('waf'))}; the run is too short to show it over time.")
    xs = _middle(series)
    order = [f"program_{cause}" for cause in CAUSES]
    causes.sort(key=lambda name: order.index(name) if name in order else len(order))
    stack = [
        Line(CAUSES.get(name[8:], name[8:]), series[name] / series["interval_s"], f"c-{name[8:]}") for name in causes
    ]
    left = figure(
        svg.lines(xs, stack, x_title="simulated time, s", y_title="pages programmed/s", stacked=True),
        "Pages programmed a second, by what asked for them; what is above the lowest band is amplification.",
        "Programs by cause",
    )
    if not _has(series, "waf"):
        return columns("two", left, nothing("The host wrote nothing, so there is no write amplification.", "WAF"))
    top = max(float(np.nanmax(series["waf"])) * 1.08, 1.2)
    waf_pages = summary.get("waf_pages")
    in_pages = f", in pages {number(waf_pages)}" if number(waf_pages) != number(summary.get("waf")) else ""
    right = figure(
        svg.lines(
            xs, [Line("WAF", series["waf"], "c-main")], x_title="simulated time, s", y_title="WAF", y_range=(0, top)
        ),
        f"Bytes programmed for each byte that the host wrote (to the cache, where there is one), per interval; over "
        f"the whole run {number(summary.get('waf'))}{in_pages}. Flat at the end means that the drive has settled.",
        "WAF",
    )
    return columns("two", left, right)


_STEADY = {"waf": "write amplification", "bytes_per_s": "throughput"}


def steady(summary: Mapping[str, Any]) -> str:
    """Whether the run settled, by the SNIA criterion."""
    steady = summary.get("steady_state")
    if not steady:
        return nothing("The host wrote nothing, so there is no steady state to judge.")
    rows, plots = [], []
    for key, name in _STEADY.items():
        judged = steady.get(key)
        if judged is None:
            continue
        mean, scale, unit = judged["mean"], 1.0, ""
        if key == "bytes_per_s":
            scale, unit = 1e-6, " MB/s"
        if mean is not None:
            mark = '<span class="good">met</span>' if judged["met"] else '<span class="warn">not met</span>'
            shown = number(mean * scale) + unit
            rows.append([escape(name), escape(shown), share(judged["range"]), share(judged["slope"]), mark])
        rounds = np.array([math.nan if value is None else value for value in judged["rounds"]], dtype=float) * scale
        if len(rounds) > 1:
            plots.append(_rounds(rounds, None if mean is None else mean * scale, name, unit))
    table = f"<figure>{number_table(['in the window', 'mean', 'range', 'slope', ''], rows)}</figure>" if rows else ""
    text = "".join(f"<p>{escape(part)}</p>" for part in (_verdict(steady), _RULE.format(**_round(steady))))
    return text + (columns("two", table, *plots) if plots else table)


_RULE = (
    "The rule is that of the SNIA PTS: over the last five rounds the range is at most 20 % of the mean, and the fitted "
    "line rises by at most 10 % of it. A round has at least {host} programmed for the host and {all} in all, so that "
    "five go through the drive once; in a long run rounds are longer."
)


def _round(steady: Mapping[str, Any]) -> dict[str, str]:
    return {"host": size(steady["round_host_bytes_min"]), "all": size(steady["round_bytes_min"])}


def _verdict(steady: Mapping[str, Any]) -> str:
    if steady["verdict"] == "too short":
        text = f"Too short: {steady['rounds']} of the five rounds that it takes at least."
        if steady["requests_needed"] is None:
            return f"{text} Nothing was programmed for the host yet."
        times = f", for example with workload.repeat = {count(steady['repeat_needed'])}"
        return f"{text} About {count(steady['requests_needed'])} requests would do{times}."
    begin, end = duration(steady["window_begin_s"]), duration(steady["window_end_s"])
    span = f"in the window, from {begin} to {end}"
    if steady["verdict"] == "steady":
        return f"Steady {span}."
    reasons = [
        f"{name} still changes"
        for key, name in _STEADY.items()
        if steady.get(key) is not None and not steady[key]["met"]
    ]
    if steady["erased_share"] < 0.9:
        reasons.append(
            f"blocks with {share(steady['erased_share'])} of the programmed pages were erased, so that the drive is "
            "still being filled"
        )
    return (
        f"Not steady {span}: {' and '.join(reasons)}. The numbers on this page include the way there. "
        "A longer run, or more preconditioning, would settle it."
    )


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
    band = "" if mean is None else "; the shaded band is 10 % either side of the mean of the last five"
    return figure(plot, f"Each round of the run{band}.")


def gc(series: Columns, summary: Mapping[str, Any]) -> str:
    """Erases, victims and free space over time."""
    gc = summary.get("gc") or {}
    erases = float(series["erases"].sum()) if "erases" in series else 0.0
    victims = gc.get("victims")
    if erases == 0 and not victims:
        return nothing("Garbage collection never ran: free space did not fall to the level at which it starts.")
    if not series or len(series["time_s"]) < 2:
        return nothing(f"{count(victims)} victims; the run is too short to show them over time.")
    xs = _middle(series)
    parts = []
    if erases:
        rate = Line("erases/s", series["erases"] / series["interval_s"], "c-gc")
        plot = svg.lines(xs, [rate], x_title="simulated time, s", y_title="erases/s", width=366, height=230)
        parts.append(figure(plot, "Blocks erased a second, for any cause.", "Erases"))
    else:
        parts.append(nothing("No block was erased.", "Erases"))
    if _has(series, "gc_victim_valid_mean"):
        line = Line("valid share", 100 * series["gc_victim_valid_mean"], "c-gc")
        plot = svg.lines(
            xs, [line], x_title="simulated time, s", y_title="valid pages, %", y_range=(0, 100),
            width=366, height=230, unit=" %",
        )  # fmt: skip
        mean = gc.get("victim_valid_mean")
        overall = f"; over the run {share(mean)}" if mean is not None else ""
        parts.append(
            figure(plot, f"Share of a victim block that had to be moved{overall}. Less is cheaper.", "Victims")
        )
    else:
        parts.append(nothing("No victim was picked.", "Victims"))
    if _has(series, "free_share_min", "free_share_mean"):
        free = [
            Line("mean", 100 * series["free_share_mean"], "c-host"),
            Line("fullest plane", 100 * series["free_share_min"], "c-flush"),
        ]
        plot = svg.lines(xs, free, x_title="simulated time, s", y_title="free, %", width=366, height=230, unit=" %")
        parts.append(figure(plot, "Free share of a plane's pages; GC starts when it runs low.", "Free space"))
    return columns("three", *parts)


def dies(result: RunResult) -> str:
    """How busy every die was over time."""
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
        # Intervals of different length: shown on an even grid.
        middles = begin + (np.arange(256) + 0.5) * (end - begin) / 256
        values = values[:, np.searchsorted(begins, middles, side="right") - 1]
    # Mostly idle dies would all be the darkest colour on a scale up to 100 %.
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
        f"Share of the time each die is taken, transfers and waits included (mean {share(mean)}, "
        f"from {share(float(spread.min()))} to {share(float(spread.max()))} by die). Even rows mean an even load; "
        f"a light stripe is a time when all dies were busy. The colours end at {share(top)}."
    )
    return figure(plot, caption)


def wear(result: RunResult) -> str:
    """P/E cycles of every block, and how they are spread."""
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
    left = figure(heat, f"P/E cycles of every block at the end; lighter is more worn.{grouped}", "Wear map")
    right = figure(
        svg.bars(
            edges, counts.astype(float), x_title="P/E cycles", y_title="blocks", width=366, height=300, colour="c-wear"
        ),
        f"Blocks by wear, from {count(low)} to {count(high)}. The narrower, the better levelled.",
        "How even it is",
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
