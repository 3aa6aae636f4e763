"""The picture and the page of `nandlab reliability`: RBER and read level over retention, latency by read level."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nandlab.published import (
    LUO_GROWTH,
    LUO_PE,
    LUO_S,
    PUBLISHED_CAPTION,
    PUBLISHED_HEADS,
    default_rber,
    deviation_of,
    published_rows,
)
from nandlab.reporting.chart import Axis, Figure, Floats, Limit, Lines, Mark, Panel, Series, Style
from nandlab.reporting.content import Block, Cell, Columns, Drawing, Fold, Listing, Page, Span, sections_of
from nandlab.units import age, count

if TYPE_CHECKING:
    from nandlab.rber import Reliability

_TICKS_S = {
    1: "1 s",
    60: "1 min",
    3600: "1 h",
    86_400: "1 d",
    7 * 86_400: "7 d",
    30 * 86_400: "30 d",
    365 * 86_400: "1 year",
    3650 * 86_400: "10 years",
}
_LUO_TICKS = ((60.0, "1 min"), (3600.0, "1 h"), (86_400.0, "1 d"), (7 * 86_400.0, "7 d"), (30 * 86_400.0, "30 d"))
#: Ages of a curve in the drawing beside published figures.
_LUO_POINTS = 120
#: Colours from few P/E cycles to many.
_RAMP = ("blue", "teal", "green", "brown", "orange", "red", "rose", "violet", "slate", "ink")
_STYLES: tuple[Style, ...] = ("plain", "dashed", "dotted")


def picture(curves: Reliability, kind: str, *, susceptible: bool) -> bytes:
    """The picture as SVG, PDF or PNG; `curves` has as many retentions as a curve needs."""
    from nandlab.reporting.files import picture as made

    return made(_figure(curves, susceptible=susceptible), (kind,))[kind]


def page(asked: Reliability, curves: Reliability, name: str, version: str, *, susceptible: bool) -> Page:
    """The page: curves, and the table of the conditions that were asked for."""
    worst = float(asked.rber.max())
    lost = int((asked.level == 0).sum())
    conditions = asked.level.size
    conditions_of = (
        f"{count(len(asked.retention_s))} retentions and {count(len(asked.pe_cycles))} numbers of P/E cycles"
    )
    lead = f"At {conditions_of} the RBER is at most {worst:.3g}."
    if lost:
        lead += f" No read level decodes {count(lost)} of the {count(conditions)} conditions: they are marked as lost."
    else:
        lead += f" Read level {int(asked.level.max())} or lower decodes every condition: look first at the read level."
    figure = _figure(curves, susceptible=susceptible)
    parts = tuple(Drawing(Figure(p.title, "", (Panel(p.chart),))) for p in figure.panels)
    return Page(
        kind="reliability",
        title=name,
        lead=lead,
        tiles=(),
        notes=(),
        sections=sections_of(
            (
                ("Curves", (Columns(parts),)),
                ("Conditions", tuple(_conditions(asked, kind) for kind in range(len(asked.kinds)))),
                ("Read levels", (_levels(asked),)),
                ("Published figures", _published(asked)),
                ("Spec", (Fold("The whole spec, with all defaults", text=asked.spec.to_toml()),)),
            )
        ),
        footer=f"spec {asked.spec.hash}",
        version=version,
    )


def _conditions(of: Reliability, kind: int) -> Listing:
    """RBER and level by retention and P/E cycles."""
    name = of.kinds[kind]
    title = "RBER and read level" + ("" if name == "all" else f" of {name.upper()} pages")
    rows: list[tuple[Cell, ...]] = []
    for row, seconds in enumerate(of.retention_s.tolist()):
        cells: list[Cell] = [age(seconds)]
        for rber, level in zip(of.rber[kind, row].tolist(), of.level[kind, row].tolist(), strict=True):
            mark = Span(f"level {level}", "small") if level else Span("lost", "verdict", mark="bad")
            cells.append((f"{rber:.2e}", mark))
        rows.append(tuple(cells))
    heads = ("retention", *(f"{count(n)} P/E" for n in of.pe_cycles.tolist()))
    numbers = frozenset(range(1, len(heads)))
    return Listing(heads, tuple(rows), title=title, numbers=numbers, label=title)


def _published(of: Reliability) -> tuple[Block, ...]:
    """The published figures beside the model, and the RBER over time at the P/E cycles of one of them."""
    found = of.published
    if found is None:
        return ()
    rows = tuple(tuple(row) for row in published_rows(found))
    numbers = frozenset(range(1, len(PUBLISHED_HEADS) - 1))
    caption = f"{PUBLISHED_CAPTION}. {deviation_of(found)}"
    label = "Published figures"
    listing = Listing(PUBLISHED_HEADS, rows, caption=caption, numbers=numbers, label=label)
    ages = np.unique(np.concatenate([np.geomspace(60, 30 * 86_400, _LUO_POINTS).round().astype(np.int64), LUO_S]))
    model = default_rber(of.spec, LUO_PE, ages.tolist())
    planar = default_rber(of.spec.with_({"reliability.rber": "vth-tlc"}), LUO_PE, ages.tolist())
    first = float(model[ages == LUO_S[0]][0])
    marks = tuple(Mark(float(seconds), first * growth) for seconds, growth in zip(LUO_S, LUO_GROWTH, strict=True))
    series = (
        Series("this spec", model, "blue", marks=marks if np.isfinite(first) else ()),
        Series("planar cells", planar, "slate", "dashed"),
    )
    x = Axis("retention", log=True, low=60.0, high=30 * 86_400.0, ticks=tuple(_LUO_TICKS))
    chart = Lines("RBER at the default references", x, Axis("RBER", log=True), ages.astype(float), series)
    text = (
        f"RBER at the default references after {count(LUO_PE)} P/E cycles, mean of LSB, CSB and MSB pages. "
        "Diamonds: the growth that Luo et al. measured on 3D MLC, from the model's RBER at 7 minutes."
    )
    return (Drawing(Figure(chart.title, text, (Panel(chart),))), listing)


def _levels(of: Reliability) -> Listing:
    keys = ("sense_us", "transfer_us", "decode_us", "direct_us", "full_us", "incremental_us")
    heads = ("level", "RBER below", "sense", "transfer", "decode", "at once", "full", "incremental")
    rows = tuple(
        (str(level), f"{limit:g}", *(f"{float(of.levels[key][at]):,.6g}" for key in keys))
        for at, (level, limit) in enumerate(
            zip(of.levels["level"].tolist(), of.levels["rber_max"].tolist(), strict=True)
        )
    )
    caption = (
        "Latency of a page read on an idle drive in \u00b5s: at once, or from level 1 with ecc.retry full or "
        "incremental."
    )
    if of.has_code:
        from nandlab.rber import LEVELS_OF_A_CODE

        caption = f"{caption} {LEVELS_OF_A_CODE}"
    return Listing(heads, rows, caption=caption, numbers=frozenset(range(1, len(heads))), label="Read levels")


def _figure(of: Reliability, *, susceptible: bool) -> Figure:
    panels = [_rber(of), _level(of), _latency(of)]
    if susceptible and of.susceptible is not None:
        y = Axis("susceptible bits of a page, %", " %", low=0)
        panels.append(Lines("Susceptible bits", _retention(of), y, _xs(of), _series(of, 100 * of.susceptible)))
    return Figure("Reliability", "", tuple(Panel(chart, chart.title) for chart in panels), "reliability")


def _xs(of: Reliability) -> Floats:
    return of.retention_s[of.retention_s > 0].astype(float)


def _retention(of: Reliability) -> Axis:
    low, high = float(_xs(of).min()), float(_xs(of).max())
    ticks = [tick for tick in _TICKS_S if low <= tick <= high]
    # Leave out ticks whose labels would touch.
    ticks = [t for i, t in enumerate(ticks) if i == 0 or np.log(t / ticks[i - 1]) > 0.1 * np.log(high / low)]
    labels = tuple((float(tick), _TICKS_S[tick]) for tick in ticks) if len(ticks) >= 2 else ()
    return Axis("retention" if labels else "retention, s", log=True, low=low, high=high, ticks=labels)


def _series(of: Reliability, values: Floats, spread: float = 0.0) -> tuple[Series, ...]:
    """One line per number of P/E cycles and page kind; `spread` separates lines on the same level."""
    drawn = of.retention_s > 0
    steps = max(len(of.pe_cycles) - 1, 1)
    found = []
    for kind, name in enumerate(of.kinds):
        for column, cycles in enumerate(of.pe_cycles.tolist()):
            colour = (
                _RAMP[round(column * (len(_RAMP) - 1) / steps)] if steps >= len(_RAMP) else _RAMP[column % len(_RAMP)]
            )
            text = f"{count(cycles)} P/E" + ("" if name == "all" else f", {name.upper()}")
            y = values[kind, drawn, column] + spread * (column - (len(of.pe_cycles) - 1) / 2)
            found.append(Series(text, y.astype(float), colour, _STYLES[kind % len(_STYLES)]))
    return tuple(found)


def _rber(of: Reliability) -> Lines:
    limits = [float(limit) for limit in of.levels["rber_max"]]
    positive = of.rber[of.rber > 0]
    least = float(positive.min()) if positive.size else 1e-9
    most = float(positive.max()) if positive.size else 1.0
    # RBERs far below the limit of the first level are cut off.
    least = max(min(least, limits[0]), limits[0] / 300)
    levels = of.levels["level"].tolist()
    lines = [Limit(limit, f"level {level}") for level, limit in zip(levels, limits, strict=True)]
    y = Axis("RBER", log=True, low=least / 1.2, high=min(max(most, limits[-1]) * 1.25, 0.6))
    return Lines("RBER", _retention(of), y, _xs(of), _series(of, of.rber), limits=tuple(_apart(lines, y)))


def _apart(limits: list[Limit], y: Axis) -> list[Limit]:
    """The limits, without a label where it would touch the label below."""
    low, high = np.log(y.low or 1e-9), np.log(y.high or 1.0)
    found: list[Limit] = []
    last = -np.inf
    for limit in limits:
        at = (np.log(limit.y) - low) / (high - low)
        found.append(limit if at - last > 0.045 else Limit(limit.y, ""))
        last = at if at - last > 0.045 else last
    return found


def _level(of: Reliability) -> Lines:
    levels = len(of.levels["level"])
    shown = np.where(of.level == 0, levels + 1, of.level).astype(float)
    lost = bool((of.level == 0).any())
    # Of many levels only some have a tick, so that their labels do not touch.
    every = -(-levels // 12)
    ticks = [(float(level), str(level)) for level in range(1, levels + 1, every)]
    if lost:
        ticks = [*(tick for tick in ticks if tick[0] <= levels + 1 - every), (levels + 1.0, "lost")]
    y = Axis("read level that decodes", low=0.5, high=levels + 0.5 + lost, ticks=tuple(ticks))
    series = _series(of, shown, 0.6 / max(len(of.pe_cycles), 5))
    return Lines("Read level", _retention(of), y, _xs(of), series, steps=True)


def _latency(of: Reliability) -> Lines:
    levels = of.levels["level"].astype(float)
    series = tuple(
        Series(label, of.levels[name].astype(float), colour)
        for name, label, colour in (
            ("full_us", "from level 1, full retries", "rose"),
            ("incremental_us", "from level 1, incremental", "orange"),
            ("direct_us", "at this level at once", "blue"),
        )
    )
    x = Axis("read level", low=1.0, high=max(float(levels[-1]), 2.0), whole=True)
    y = Axis("latency of a page read, \u00b5s", " \u00b5s")
    return Lines("Latency by read level", x, y, levels, series, dots=True)
