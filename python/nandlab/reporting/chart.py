"""The description of a chart: its data, axes and series, without a drawing library.

`nandlab.reporting.vega` turns a description into an Altair chart for a page, a notebook, an SVG or a PDF. Each
description also has its values as a table, which the pages show behind the chart and offer as CSV.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nandlab.units import number

Floats = NDArray[np.float64]
#: A table of values: heads, and rows of cells as text.
Cells = tuple[tuple[str, ...], list[tuple[str, ...]]]
Style = Literal["plain", "faint", "dashed", "dotted", "outline"]


def floats(values: Sequence[float | None] | Floats) -> Floats:
    """Values as an array, with NaN for `None`."""
    return np.array([math.nan if value is None else value for value in values], dtype=float)


def plain(value: float) -> str:
    """A number with six digits, as in the table and the CSV; empty for a missing value."""
    if not math.isfinite(value):
        return ""
    text = f"{value:.6g}"
    return f"{value:.0f}" if "e+" in text else text


#: What intervals are, unless a figure says otherwise.
OVER_SEEDS = "95 % confidence intervals over the seeds"


@dataclass(frozen=True)
class Axis:
    """An axis with its title; `unit` follows each value under the pointer."""

    title: str
    unit: str = ""
    log: bool = False
    #: The ends of the axis; `None` takes the end from the data (0 for the low end of a linear vertical axis).
    low: float | None = None
    high: float | None = None
    #: Ticks with their labels, in place of numbers.
    ticks: tuple[tuple[float, str], ...] = ()
    #: Whether only whole numbers have a tick.
    whole: bool = False


@dataclass(frozen=True)
class Mark:
    """A value of the source beside a series, drawn as a diamond; `x` is a number, or the place of a bar."""

    x: float | str
    y: float


@dataclass(frozen=True)
class Series:
    """One series of a chart; `colour` is a name of the palette."""

    name: str
    y: Floats
    colour: str
    style: Style = "plain"
    #: The ends of the interval at each point, NaN where there is none; `None` for a series without intervals.
    low: Floats | None = None
    high: Floats | None = None
    marks: tuple[Mark, ...] = ()
    #: A sign above each bar.
    signs: tuple[str, ...] = ()

    @property
    def has_intervals(self) -> bool:
        """Whether any point has an interval."""
        return self.low is not None and bool(np.isfinite(self.low).any())


@dataclass(frozen=True)
class Limit:
    """A horizontal line with its label."""

    y: float
    label: str


@dataclass(frozen=True)
class Lines:
    """Lines, or stacked areas, over a shared horizontal axis of numbers."""

    title: str
    x: Axis
    y: Axis
    xs: Floats
    series: tuple[Series, ...]
    stacked: bool = False
    #: Whether each value has a dot.
    dots: bool = False
    #: Whether a line connects the neighbours of a missing value; otherwise it breaks there.
    bridged: bool = False
    #: Whether a value holds until the next one.
    steps: bool = False
    #: A shaded range of the vertical axis.
    band: tuple[float, float] | None = None
    limits: tuple[Limit, ...] = ()
    height: int = 240

    def table(self) -> Cells:
        """The values of the chart."""
        heads, columns = _columns(self.x.title, [plain(x) for x in self.xs.tolist()], self.series)
        return heads, list(zip(*columns, strict=True))

    def describe(self) -> str:
        """The chart in a sentence, for a screen reader."""
        kind = "Stacked areas" if self.stacked else "Line chart"
        return _sentence(kind, self.y.title, self.x.title, self.series)


@dataclass(frozen=True)
class Bars:
    """Bars of each series, side by side at each place."""

    title: str
    x: Axis
    y: Axis
    places: tuple[str, ...]
    series: tuple[Series, ...]
    height: int = 240

    def table(self) -> Cells:
        """The values of the chart."""
        heads, columns = _columns(self.x.title or "place", list(self.places), self.series)
        return heads, list(zip(*columns, strict=True))

    def describe(self) -> str:
        """The chart in a sentence, for a screen reader."""
        return _sentence("Bar chart", self.y.title, self.x.title or f"{len(self.places)} places", self.series)


@dataclass(frozen=True)
class Ratios:
    """Ratios with their intervals, a row for each place; the series have their points side by side in a row."""

    title: str
    #: The axis of the ratios; it is logarithmic, so that a half is as far from 1 as a double.
    y: Axis
    places: tuple[str, ...]
    series: tuple[Series, ...]

    @property
    def names(self) -> list[list[str]]:
        """The lines of the name of each row."""
        return [textwrap.wrap(place, 28) for place in self.places]

    @property
    def row(self) -> int:
        """The height of a row in pixels, with room for its points and for its name."""
        return 4 + max(14 * len(self.series) + 8, 12 * max(map(len, self.names), default=1))

    @property
    def height(self) -> int:
        """The height in pixels."""
        return len(self.places) * self.row

    def table(self) -> Cells:
        """The values of the chart."""
        heads, columns = _columns("metric", list(self.places), self.series)
        return heads, list(zip(*columns, strict=True))

    def describe(self) -> str:
        """The chart in a sentence, for a screen reader."""
        return _sentence("Points with intervals", self.y.title, f"{len(self.places)} metrics", self.series)


@dataclass(frozen=True)
class Histogram:
    """Counts of values between edges."""

    title: str
    x: Axis
    y: Axis
    edges: Floats
    counts: Floats
    colour: str
    height: int = 240

    def table(self) -> Cells:
        """The values of the chart."""
        rows = zip(self.edges[:-1].tolist(), self.edges[1:].tolist(), self.counts.tolist(), strict=True)
        heads = (f"{self.x.title}, from", f"{self.x.title}, to", self.y.title)
        return heads, [tuple(map(plain, row)) for row in rows]

    def describe(self) -> str:
        """The chart in a sentence, for a screen reader."""
        low, high = float(self.edges[0]), float(self.edges[-1])
        return f"Histogram of {self.y.title} by {self.x.title}, from {number(low)} to {number(high)}."


@dataclass(frozen=True)
class Heat:
    """A value by row and by interval of the horizontal axis, as a colour."""

    title: str
    x: Axis
    #: The title of the rows, and their names.
    rows_title: str
    rows: tuple[str, ...]
    #: The ends of the columns: one more than the columns of `values`.
    edges: Floats
    values: Floats
    #: Title, unit and ends of the colour scale.
    value: Axis
    #: Rows with a line above them.
    breaks: tuple[int, ...] = ()
    height: int = 280

    def table(self) -> Cells:
        """The values of the chart: a column for each row of the chart."""
        heads = (f"{self.x.title}, from", *(f"{self.rows_title} {row}" for row in self.rows))
        return heads, [
            (plain(begin), *map(plain, column))
            for begin, column in zip(self.edges[:-1].tolist(), self.values.T.tolist(), strict=True)
        ]

    def describe(self) -> str:
        """The chart in a sentence, for a screen reader."""
        low, high = float(np.nanmin(self.values)), float(np.nanmax(self.values))
        return (
            f"Heat map of {self.value.title} by {self.rows_title} ({len(self.rows)} rows) over {self.x.title}, from "
            f"{number(low)} to {number(high)}{self.value.unit}."
        )


@dataclass(frozen=True)
class Effect:
    """The effect of one factor, or the interaction of two."""

    factors: tuple[str, ...]
    value: float
    #: The smallest and the largest replicate.
    low: float
    high: float
    text: str

    @property
    def is_clear(self) -> bool:
        """Whether all replicates have the same sign."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class Effects:
    """Main effects as bars with their replicates, and the interactions of two factors as a triangle."""

    title: str
    y: Axis
    #: Names and titles of the factors.
    factors: tuple[tuple[str, str], ...]
    effects: tuple[Effect, ...]
    #: The absolute interaction with the most saturated colour.
    strongest: float
    #: Whether values are shares, shown in per cent.
    percent: bool
    height: int = 220
    heads: tuple[str, ...] = field(default=("effect", "mean", "smallest replicate", "largest replicate", ""))

    def table(self) -> Cells:
        """The values of the chart."""
        titles = dict(self.factors)
        return self.heads, [
            (
                " \u00d7 ".join(titles.get(name, name) for name in of.factors),
                *(plain(100 * value if self.percent else value) for value in (of.value, of.low, of.high)),
                "" if of.is_clear else "replicates of different signs",
            )
            for of in self.effects
        ]

    def describe(self) -> str:
        """The chart in a sentence, for a screen reader."""
        main = ", ".join(
            f"{dict(self.factors)[of.factors[0]]} {of.text}" for of in self.effects if len(of.factors) == 1
        )
        return f"Effects on {self.y.title}: {main}."


Chart = Lines | Bars | Ratios | Histogram | Heat | Effects


@dataclass(frozen=True)
class Panel:
    """One chart of a figure, with its own title."""

    chart: Chart
    title: str = ""


@dataclass(frozen=True)
class Figure:
    """Charts that share their series, with a title and a caption."""

    title: str
    caption: str
    panels: tuple[Panel, ...]
    #: The id of its element in a page.
    id: str = ""
    #: A table in place of the values of the charts.
    cells: Cells | None = None
    #: What the intervals of the series are.
    intervals: str = OVER_SEEDS

    @property
    def series(self) -> list[Series]:
        """The series of all panels, each name once."""
        found: dict[str, Series] = {}
        for panel in self.panels:
            for series in getattr(panel.chart, "series", ()):
                found.setdefault(series.name, series)
        return list(found.values())

    @property
    def has_marks(self) -> bool:
        """Whether a panel has values of the source."""
        return any(series.marks for panel in self.panels for series in getattr(panel.chart, "series", ()))

    @property
    def has_intervals(self) -> bool:
        """Whether a panel has intervals over the seeds; those of reported values are tolerances."""
        return any(
            series.has_intervals and series.style != "outline"
            for panel in self.panels
            for series in getattr(panel.chart, "series", ())
        )

    def table(self) -> Cells:
        """The values of all panels, with a column for the panel if there are several."""
        if self.cells is not None:
            return self.cells
        tables = [panel.chart.table() for panel in self.panels]
        if len(tables) == 1:
            return tables[0]
        heads = list(dict.fromkeys(head for found, _ in tables for head in found))
        rows = []
        for panel, (found, cells) in zip(self.panels, tables, strict=True):
            for row in cells:
                there = dict(zip(found, row, strict=True))
                rows.append((panel.title, *(there.get(head, "") for head in heads)))
        return ("panel", *heads), rows


def csv_of(cells: Cells) -> str:
    """A table as CSV."""

    def quoted(cell: str) -> str:
        return '"' + cell.replace('"', '""') + '"' if any(mark in cell for mark in ',"\n\r') else cell

    heads, rows = cells
    return "".join(",".join(map(quoted, row)) + "\r\n" for row in (heads, *rows))


def _columns(first: str, xs: list[str], series: Sequence[Series]) -> tuple[tuple[str, ...], list[list[str]]]:
    """Heads and columns of a table of series; a series with intervals has the columns of their ends."""
    heads, columns = [first], [xs]
    for one in series:
        heads.append(one.name)
        columns.append([plain(y) for y in one.y.tolist()])
        if one.has_intervals and one.low is not None and one.high is not None:
            heads += [f"{one.name}, low", f"{one.name}, high"]
            columns += [[plain(y) for y in one.low.tolist()], [plain(y) for y in one.high.tolist()]]
        if one.marks:
            marked = {mark.x if isinstance(mark.x, str) else plain(mark.x): mark.y for mark in one.marks}
            heads.append(f"{one.name}, reported")
            columns.append([plain(marked[x]) if x in marked else "" for x in xs])
    return tuple(heads), columns


def _sentence(kind: str, y: str, x: str, series: Sequence[Series]) -> str:
    known = np.concatenate([one.y[np.isfinite(one.y)] for one in series]) if series else np.array([])
    ends = f", from {number(float(known.min()))} to {number(float(known.max()))}" if known.size else ""
    names = ", ".join(one.name for one in series[:8]) + (f" and {len(series) - 8} more" if len(series) > 8 else "")
    return f"{kind} of {y} over {x}{ends}. Series: {names}."
