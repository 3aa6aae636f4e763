"""Charts as Vega-Lite: from a description to the specification for a page, a notebook or a file.

The specifications are plain dictionaries: Altair's classes take a tenth of a second for each chart. `altair_of` makes
an Altair chart of them, which checks them against the schema of Vega-Lite.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from nandlab.reporting.chart import (
    Axis,
    Bars,
    Chart,
    Effects,
    Figure,
    Floats,
    Heat,
    Histogram,
    Lines,
    Ratios,
    Series,
    plain,
)
from nandlab.reporting.colours import LIGHT, PAGE, RAMP

if TYPE_CHECKING:
    import altair

#: The version of Vega-Lite: the newest of vl-convert, which is that of Altair.
VERSION = "6.4"
#: From this many points on, intervals are a band instead of whiskers.
_BAND_POINTS = 60
_DASHES: Mapping[str, list[int]] = {"dashed": [5, 4], "dotted": [2, 3]}
_SOLID = [1, 0]
#: Labels of numbers: short, with k, M and G for large numbers and a power of ten for small ones.
NUMBER = (
    "datum.value == 0 ? '0' : abs(datum.value) >= 9999.9 ? format(datum.value, '.6~s') : "
    "abs(datum.value) < 0.00099 ? format(datum.value, '.3~e') : format(datum.value, ',.6~g')"
)
#: The name of this expression in a page; chart.js replaces it.
NUMBER_IN_PAGE = "@number"
_IS_DECADE = "abs(datum.value / pow(10, round(log(datum.value) / LN10)) - 1) < 1e-6"
#: A logarithmic axis longer than this factor has labels only at powers of ten.
_LONG_LOG = 20
#: The font of pictures; vl-convert contains it.
IN_FILE_FONT = "Liberation Sans, Arial, Helvetica, sans-serif"

#: Characters that Vega's parser of expressions refuses in a text.
_SEPARATORS = re.compile("[\u2028\u2029]")

Spec = dict[str, Any]
Rows = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Look:
    """The form of a chart for one medium."""

    palette: Mapping[str, str]
    #: In pixels; `None` for the width of the container.
    width: int | None
    font: str
    #: Whether the chart has its own legend, and its data inside.
    whole: bool
    #: Whether the chart reacts to pointer and wheel.
    active: bool
    #: The height relative to that in a page.
    scale: float = 1.0


IN_PAGE = Look(PAGE, None, "system-ui, sans-serif", whole=False, active=True)
IN_NOTEBOOK = Look(LIGHT, 480, "sans-serif", whole=True, active=True)


def in_file(figure: Figure) -> Look:
    """The form for SVG, PDF and PNG."""
    width = 330 if across_of(figure) == 1 else 210
    bars = [len(chart.places) * len(chart.series) for panel in figure.panels if isinstance(chart := panel.chart, Bars)]
    # Many bars need room for their intervals.
    width = max(width, min(9 * max(bars, default=0), 520 if across_of(figure) == 1 else 330))
    return Look(LIGHT, width, IN_FILE_FONT, whole=True, active=False, scale=0.85)


@dataclass
class View:
    """A Vega-Lite specification, with the tables that it names as its data."""

    spec: Spec
    tables: dict[str, Rows] = field(default_factory=dict)


def views(chart: Chart, look: Look, all_series: Sequence[Series] = ()) -> list[View]:
    """The views of a chart; `all_series` are those of its figure, in the order of the legend."""
    if isinstance(chart, Lines):
        return [_Lines(look, chart, all_series).view_of()]
    if isinstance(chart, Bars):
        return [_Bars(look, chart, all_series).view_of()]
    if isinstance(chart, Ratios):
        return [_Ratios(look, chart, all_series).view_of()]
    if isinstance(chart, Histogram):
        return [_histogram(look, chart)]
    if isinstance(chart, Heat):
        return [_heat(look, chart)]
    return _effects(look, chart)


def spec_of(figure: Figure, look: Look = IN_NOTEBOOK) -> Spec:
    """A figure as one specification, with its panels side by side and its data inside."""
    panels = []
    for panel in figure.panels:
        parts = [view.spec for view in views(panel.chart, look, figure.series)]
        whole: Spec = parts[0] if len(parts) == 1 else {"vconcat": parts, "spacing": 12}
        if panel.title:
            whole["title"] = {"text": panel.title, "anchor": "middle", "fontSize": 11}
        panels.append(whole)
    spec: Spec = panels[0]
    if len(panels) > 1:
        spec = {"concat": panels, "columns": across_of(figure), "spacing": 18}
        if figure.series:
            spec["resolve"] = {"scale": {"color": "shared", "strokeDash": "shared"}}
    return {**spec, "config": config(look)}


def altair_of(figure: Figure) -> altair.TopLevelMixin:
    """A figure as an Altair chart, for a notebook."""
    from nandlab.notebook import shown_everywhere

    return shown_everywhere(spec_of(figure))


def across_of(figure: Figure) -> int:
    """The number of panels side by side."""
    panels = len(figure.panels)
    return panels if panels <= 3 else 2 if panels == 4 else 3


def config(look: Look) -> Spec:
    """The settings of all charts in the colours of a look."""
    colour = look.palette
    in_page = look.width is None
    small = 11.5 if in_page else 10
    text = {
        "labelColor": colour["soft"],
        "titleColor": colour["soft"],
        "labelFontSize": small,
        "titleFontSize": small + 0.5,
        # With a single font, the fonts of a PDF have one order.
        "titleFontWeight": "normal",
        "labelFontWeight": "normal",
    }
    return {
        "background": None if in_page else "white",
        "font": look.font,
        "view": {"stroke": None},
        "padding": {"left": 2, "right": 8, "top": 6, "bottom": 2} if in_page else 5,
        "autosize": {"type": "fit-x", "contains": "padding"} if in_page else {"type": "pad"},
        "axis": {
            **text,
            "gridColor": colour["grid"],
            "domainColor": colour["axis"],
            "tickColor": colour["axis"],
            "titlePadding": 7,
            "labelOverlap": "greedy",
            "labelSeparation": 6,
        },
        "legend": {**text, "title": None, "orient": "top", "symbolStrokeWidth": 2, "labelLimit": 320, "columns": 3},
        "title": {"fontWeight": "normal", "color": colour["ink"]},
    }


# --------------------------------------------------------------------------------------------------------------- data


def _short(value: float) -> float | None:
    """A number with six digits, `None` where it is missing."""
    return float(f"{value:.6g}") if math.isfinite(value) else None


def rows_of(table: Rows) -> list[dict[str, Any]]:
    """Columns as rows."""
    return [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]


class _Building:
    """A view under construction: its look and the tables of its data."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self.tables: dict[str, Rows] = {}

    def data(self, name: str, table: Rows) -> Spec:
        """The data of a layer: inside the chart, or by name for a page."""
        self.tables[name] = table
        return {"values": rows_of(table)} if self.look.whole else {"name": name}

    def colour(self, name: str) -> str:
        return self.look.palette[name]

    def view(self, spec: Spec, height: float) -> View:
        wide = "container" if self.look.width is None else self.look.width
        whole = {**spec, "width": wide, "height": round(height * self.look.scale)}
        text = json.dumps([whole, self.tables], ensure_ascii=False)
        if not _SEPARATORS.search(text):
            return View(whole, self.tables)
        return View(*json.loads(_SEPARATORS.sub(" ", text)))

    def number_axis(self, axis: Axis, span: float, name: str, **more: Any) -> Spec:
        """An axis of numbers; `span` is the ratio of its ends, `name` that of its scale."""
        if axis.ticks:
            values = [int(value) if value.is_integer() else value for value, _ in axis.ticks]
            labels = _text({str(value): label for value, (_, label) in zip(values, axis.ticks, strict=True)})
            return {
                "title": axis.title or None,
                "values": values,
                "labelExpr": f"{labels}[datum.value] || ({NUMBER if self.look.whole else NUMBER_IN_PAGE})",
                # Vega would leave out ticks beyond this number.
                **{key: value for key, value in more.items() if key != "tickCount"},
            }
        label = NUMBER if self.look.whole else NUMBER_IN_PAGE
        if axis.log and not self.look.whole:
            # After a zoom within a decade all ticks have labels.
            label = f"domain('{name}')[1] / domain('{name}')[0] < {_LONG_LOG} || {_IS_DECADE} ? {label} : ''"
        elif axis.log and span > _LONG_LOG:
            label = f"{_IS_DECADE} ? {label} : ''"
        steps = {"tickMinStep": 1} if axis.whole else {}
        return {"title": axis.title or None, "labelExpr": label, **steps, **more}


def _text(value: object) -> str:
    """A value as an expression of Vega."""
    return json.dumps(value, ensure_ascii=True)


def _scale(axis: Axis, values: Floats, *, nice: bool, zero: bool) -> tuple[Spec, float]:
    """The scale of an axis, and the ratio of its ends."""
    known = values[np.isfinite(values)]
    if axis.log:
        known = known[known > 0]
    low = axis.low if axis.low is not None else float(known.min()) if known.size else 1.0
    high = axis.high if axis.high is not None else float(known.max()) if known.size else 1.0
    if axis.log:
        low = max(low, 1e-12)
        high = max(high, low * 1.01)
        # Whole decades read best; a short range would be mostly empty then.
        if nice and high / low > _LONG_LOG:
            low = 10 ** math.floor(math.log10(low) + 1e-9) if axis.low is None else low
            high = 10 ** math.ceil(math.log10(high) - 1e-9) if axis.high is None else high
        elif nice:
            low, high = low / 1.15, high * 1.15
        return {"type": "log", "domain": [_short(low), _short(high)], "nice": False}, high / low
    if zero and axis.low is None:
        low, high = min(low, 0.0), max(high, 0.0)
    if not high > low:
        high = low + (abs(low) or 1.0)
    return {"domain": [_short(low), _short(high)], "nice": nice and axis.high is None, "zero": False}, math.inf


def _place(field_name: str, scale: Spec | None = None, **more: Any) -> Spec:
    """An encoding of numbers."""
    return {"field": field_name, "type": "quantitative", **({} if scale is None else {"scale": scale}), **more}


def _name(field_name: str, **more: Any) -> Spec:
    """An encoding of names."""
    return {"field": field_name, "type": "nominal", **more}


def _if(test: str, yes: object, no: object) -> Spec:
    return {"condition": {"test": test, "value": yes}, "value": no}


def _if_picked(param: str, yes: object, no: object) -> Spec:
    return {"condition": {"param": param, "empty": False, "value": yes}, "value": no}


def _tip(field_name: str, title: str, kind: str = "nominal", **more: Any) -> Spec:
    return {"field": field_name, "type": kind, "title": title or " ", **more}


# ---------------------------------------------------------------------------------------------- series: lines and bars


class _OfSeries(_Building):
    """Encodings that charts of series share: colour, dash, switched-off series, tooltips."""

    def __init__(self, look: Look, series: Sequence[Series], all_series: Sequence[Series], *, is_filled: bool) -> None:
        super().__init__(look)
        self.is_filled = is_filled
        self.series = series
        self.known = {one.name: one for one in [*all_series, *series]}
        self.names = list(self.known)
        #: The number of a series in its figure.
        self.number = {name: index for index, name in enumerate(self.names)}
        self.is_pickable = look.whole and look.active and len(self.names) > 1

    def base(self, data: Spec, *filters: str) -> Spec:
        """The data of a layer without the series that are switched off."""
        shown = [] if self.look.whole else ["indexof(off, datum.k) < 0"]
        found: Spec = {"data": data}
        if tests := [*filters, *shown]:
            found["transform"] = [{"filter": test} for test in tests]
        return found

    def _of_names(self, value: Callable[[Series], Any]) -> Spec:
        return {"domain": list(range(len(self.names))), "range": [value(one) for one in self.known.values()]}

    def _legend(self) -> Spec | None:
        if not self.look.whole or len(self.names) < 2:
            return None
        symbol = {"symbolType": "square", "symbolStrokeWidth": 0} if self.is_filled else {"symbolType": "stroke"}
        return {"title": None, "labelExpr": f"{_text(self.names)}[datum.value]", "symbolOpacity": 1, **symbol}

    def colours(self) -> Spec:
        """The colour of each series."""
        scale = self._of_names(lambda one: self.colour(one.colour))
        return _name("k", scale=scale, legend=self._legend())

    def strokes(self) -> Spec:
        """The colour of each series, for outlines."""
        return _name("k", scale=self._of_names(lambda one: self.colour(one.colour)), legend=None)

    def dashes(self) -> Spec:
        """The encoding of the dash of each series; empty if all are solid."""
        scale = self._of_names(lambda one: _DASHES.get(one.style, _SOLID))
        if all(dash == _SOLID for dash in scale["range"]):
            return {}
        return {"strokeDash": _name("k", scale=scale, legend=self._legend())}

    def faded(self) -> Spec:
        """The encoding of the opacity of each series; empty if all are opaque."""
        if self.is_pickable:
            return {"opacity": {"condition": {"param": "picked", "value": 1}, "value": 0.12}}
        scale = self._of_names(lambda one: 0.45 if one.style == "faint" else 1.0)
        if all(value == 1.0 for value in scale["range"]):
            return {}
        return {"opacity": {"field": "k", "type": "ordinal", "scale": scale, "legend": None}}

    def picked(self) -> list[Spec]:
        """The parameter of the picked series, in a notebook."""
        if not self.is_pickable:
            return []
        return [{"name": "picked", "select": {"type": "point", "fields": ["k"]}, "bind": "legend"}]

    def whiskers(self, data: Spec, at: Spec, scale: Spec, paint: Spec) -> list[Spec]:
        """The intervals as lines with ends; `at` places them, `paint` colours them."""
        base = self.base(data, "isValid(datum.l) && isValid(datum.h)")
        rule = {"type": "rule", "strokeWidth": 1.2, "clip": True, **paint.get("mark", {})}
        tick = {"type": "tick", "orient": "horizontal", "size": 7, "thickness": 1.2, "clip": True}
        tick |= paint.get("mark", {})
        colour = paint.get("encoding", {})
        return [
            {**base, "mark": rule, "encoding": {**at, "y": _place("l", scale), "y2": {"field": "h"}, **colour}},
            *({**base, "mark": tick, "encoding": {**at, "y": _place(end, scale), **colour}} for end in ("l", "h")),
        ]

    def hover_table(self, xs: Sequence[Any], texts: Sequence[Mapping[Any, str]]) -> Rows:
        """A row for each place, in a notebook with the text of each series; chart.js makes the texts of a page."""
        table: dict[str, Sequence[Any]] = {"x": xs}
        if self.look.whole:
            for index, of_series in enumerate(texts):
                table[f"t{index}"] = [of_series.get(x, "-") for x in xs]
        return table

    def tooltip(self, title: str, kind: str) -> list[Spec]:
        found = [_tip("x", title, kind)]
        if self.look.whole:
            found += [_tip(f"t{index}", one.name) for index, one in enumerate(self.series)]
        return found

    def finished(self, layers: list[Spec], height: float) -> View:
        params = {} if self.look.whole else {"params": [{"name": "off", "value": []}]}
        return self.view({"layer": _shared(layers), **params}, height)


def _shared(layers: Sequence[Spec]) -> list[Spec]:
    """Layers, with the horizontal encodings that neighbours share written once."""
    found: list[Spec] = []
    for layer in layers:
        encoding = dict(layer["encoding"])
        same = {name: encoding.pop(name) for name in ("x", "xOffset") if name in encoding}
        if found and found[-1].get("encoding") == same and "layer" in found[-1]:
            found[-1]["layer"].append({**layer, "encoding": encoding})
        elif same:
            found.append({"encoding": same, "layer": [{**layer, "encoding": encoding}]})
        else:
            found.append(layer)
    return found


def _table_of(
    xs: Sequence[Any], series: Sequence[Series], number: Mapping[str, int], *, gaps: bool, log: bool
) -> tuple[dict[str, list[Any]], list[dict[Any, str]]]:
    """The long table of series (x, k, y, and the ends l and h of intervals), and the texts of each series by x."""
    has_intervals = any(one.has_intervals for one in series)
    table: dict[str, list[Any]] = {"x": [], "k": [], "y": []}
    if has_intervals:
        table |= {"l": [], "h": []}
    texts: list[dict[Any, str]] = []
    for one in series:
        mine: dict[Any, str] = {}
        blank = np.full(len(one.y), np.nan)
        lows = blank if one.low is None else one.low
        highs = blank if one.high is None else one.high
        for x, y, low, high in zip(xs, one.y.tolist(), lows.tolist(), highs.tolist(), strict=True):
            there = math.isfinite(y) and (y > 0 or not log)
            if not there and not gaps:
                continue
            table["x"].append(x)
            table["k"].append(number[one.name])
            table["y"].append(_short(y) if there else None)
            if has_intervals:
                table["l"].append(_short(low) if there and (low > 0 or not log) else None)
                table["h"].append(_short(high) if there else None)
            if there:
                ends = f" [{plain(low)}, {plain(high)}]" if math.isfinite(low) else ""
                mine[x] = plain(y) + ends
        texts.append(mine)
    return table, texts


def _extent(series: Sequence[Series]) -> Floats:
    """The values of series, of their intervals, and of the source."""
    parts = [one.y for one in series]
    parts += [ends for one in series for ends in (one.low, one.high) if ends is not None]
    parts.append(np.array([mark.y for one in series for mark in one.marks], dtype=float))
    return np.concatenate(parts)


class _Lines(_OfSeries):
    """Lines or stacked areas."""

    def __init__(self, look: Look, chart: Lines, all_series: Sequence[Series]) -> None:
        super().__init__(look, chart.series, all_series, is_filled=chart.stacked)
        self.chart = chart
        self.x_scale, x_span = _scale(chart.x, chart.xs, nice=False, zero=False)
        self.y_scale, y_span = _scale(chart.y, self._heights(), nice=True, zero=chart.band is None)
        axis = self.number_axis(chart.x, x_span, "x", grid=chart.x.log, tickCount=6, labelFlush=True)
        self.x = _place("x", self.x_scale, axis=axis)
        named = {"labelOverlap": False} if chart.y.ticks else {}
        axis = self.number_axis(chart.y, y_span, "y", tickCount=5, **named)
        self.y = _place("y", self.y_scale, axis=axis, stack="zero" if chart.stacked else None)

    def view_of(self) -> View:
        chart = self.chart
        xs = [_short(x) for x in chart.xs.tolist()]
        gaps = not chart.bridged and not chart.stacked
        table, texts = _table_of(xs, chart.series, self.number, gaps=gaps, log=chart.y.log)
        data = self.data("data", table)
        place = {"x": self.x, "y": self.y, "color": self.colours()}
        layers = [*self._band(), *self._limits()]
        if "l" in table and not chart.stacked:
            layers += self._intervals(data)
        mark: Spec
        if chart.stacked:
            mark = {"type": "area", "clip": True, "opacity": 0.85}
            encoding = {**place, "order": {"field": "k"}, **self.faded()}
        else:
            mark = {"type": "line", "clip": True, "strokeWidth": 1.8, "strokeJoin": "round"}
            mark |= {"interpolate": "step-after"} if chart.steps else {}
            encoding = {**place, "detail": {"field": "k"}, **self.dashes(), **self.faded()}
        main = {**self.base(data), "mark": mark, "encoding": encoding}
        if params := [*self._zoom(), *self.picked()]:
            main["params"] = params
        layers.append(main)
        if chart.dots:
            solid = [self.number[one.name] for one in chart.series if one.style == "plain"]
            base = self.base(data, f"indexof({solid}, datum.k) >= 0 && isValid(datum.y)")
            dot = {"type": "point", "filled": True, "size": 34, "opacity": 1, "clip": True}
            layers.append({**base, "mark": dot, "encoding": {**place, **self.faded()}})
        layers += self._marks()
        if self.look.active:
            layers.append(self._hover(xs, texts))
        return self.finished(layers, chart.height)

    def _heights(self) -> Floats:
        """The values that the vertical axis has to cover."""
        chart = self.chart
        if chart.stacked:
            return np.asarray(np.sum([np.nan_to_num(one.y) for one in chart.series], axis=0), dtype=float)
        found = _extent(chart.series)
        if chart.band is not None:
            low, high = chart.band
            room = 0.15 * (high - low)
            found = np.concatenate([found, [low - room, high + room]])
        return found

    def _band(self) -> list[Spec]:
        if self.chart.band is None:
            return []
        low, high = map(_short, self.chart.band)
        data = self.data("band", {"y": [low], "y2": [high]})
        mark = {"type": "rect", "color": self.colour("band"), "clip": True}
        return [{"data": data, "mark": mark, "encoding": {"y": _place("y", self.y_scale), "y2": {"field": "y2"}}}]

    def _zoom(self) -> list[Spec]:
        """Zoom by the wheel with Ctrl or Command, and moving by the mouse; a finger scrolls the page."""
        if not self.look.active:
            return []
        select = {
            "type": "interval",
            "zoom": "wheel![event.ctrlKey || event.metaKey]",
            "translate": "[pointerdown[event.pointerType !== 'touch'], window:pointerup] > window:pointermove!",
        }
        return [{"name": "zoom", "select": select, "bind": "scales"}]

    def _limits(self) -> list[Spec]:
        limits = self.chart.limits
        if not limits:
            return []
        data = self.data("limits", {"y": [_short(one.y) for one in limits], "t": [one.label for one in limits]})
        y = _place("y", self.y_scale)
        rule = {"type": "rule", "color": self.colour("axis"), "strokeWidth": 0.7, "clip": True}
        text: Spec = {"type": "text", "align": "left", "baseline": "bottom", "dx": 3, "dy": -1, "fontSize": 9}
        text |= {"color": self.colour("soft"), "clip": True}
        return [
            {"data": data, "mark": rule, "encoding": {"y": y}},
            {"data": data, "mark": text, "encoding": {"y": y, "x": {"value": 0}, "text": {"field": "t"}}},
        ]

    def _intervals(self, data: Spec) -> list[Spec]:
        colour = {"color": self.colours()}
        if len(self.chart.xs) <= _BAND_POINTS:
            return self.whiskers(data, {"x": self.x}, self.y_scale, {"encoding": colour})
        band = self.base(data, "isValid(datum.l) && isValid(datum.h)")
        encoding = {"x": self.x, "y": _place("l", self.y_scale), "y2": {"field": "h"}, **colour}
        return [{**band, "mark": {"type": "area", "opacity": 0.18, "clip": True}, "encoding": encoding}]

    def _marks(self) -> list[Spec]:
        marks = [(mark, self.number[one.name]) for one in self.series for mark in one.marks]
        if not marks:
            return []
        table: dict[str, list[Any]] = {
            "x": [_short(float(mark.x)) for mark, _ in marks],
            "y": [_short(mark.y) for mark, _ in marks],
            "k": [number for _, number in marks],
        }
        mark = {"type": "point", "shape": "diamond", "size": 80, "fill": self.colour("paper"), "strokeWidth": 1.8}
        encoding = {"x": self.x, "y": _place("y", self.y_scale), "stroke": self.strokes()}
        return [{**self.base(self.data("marks", table)), "mark": {**mark, "opacity": 1}, "encoding": encoding}]

    def _hover(self, xs: Sequence[Any], texts: Sequence[Mapping[Any, str]]) -> Spec:
        select = {"type": "point", "nearest": True, "on": "pointermove", "clear": "pointerout", "encodings": ["x"]}
        return {
            "data": self.data("hover", self.hover_table(xs, texts)),
            "mark": {"type": "rule", "color": self.colour("soft"), "strokeDash": [3, 3], "clip": True},
            "params": [{"name": "hover", "select": select}],
            "encoding": {
                "x": self.x,
                "opacity": _if_picked("hover", 0.8, 0),
                "tooltip": self.tooltip(self.chart.x.title, "quantitative"),
            },
        }


class _Bars(_OfSeries):
    """Bars of several series at each place."""

    def __init__(self, look: Look, chart: Bars, all_series: Sequence[Series]) -> None:
        super().__init__(look, chart.series, all_series, is_filled=True)
        self.chart = chart
        self.y_scale, span = _scale(chart.y, _extent(chart.series), nice=True, zero=True)
        self.x = _name(
            "x", sort=list(chart.places), axis=self._places(), scale={"paddingInner": 0.22, "paddingOuter": 0.12}
        )
        self.y = _place("y", self.y_scale, axis=self.number_axis(chart.y, span, "y", tickCount=5), stack=None)
        self.offset = _name("k", sort=None)

    def view_of(self) -> View:
        chart = self.chart
        table, texts = _table_of(list(chart.places), chart.series, self.number, gaps=False, log=chart.y.log)
        data = self.data("data", table)
        at = {"x": self.x, "xOffset": self.offset}
        encoding = {**at, "y": self.y, "color": self.colours(), **self.faded()}
        outlined = [self.number[one.name] for one in chart.series if one.style == "outline"]
        if outlined:
            # A reported value is an open bar, a measured one a full bar.
            encoding |= {"stroke": self.strokes(), "fillOpacity": _if(f"indexof({outlined}, datum.k) >= 0", 0.18, 1)}
        mark = {"type": "bar", "clip": True, "strokeWidth": 1.4, "cornerRadiusEnd": 1}
        bars = {**self.base(data), "mark": mark, "encoding": encoding}
        if params := self.picked():
            bars["params"] = params
        layers = [bars]
        if "l" in table:
            layers += self.whiskers(data, at, self.y_scale, {"mark": {"color": self.colour("ink")}})
        layers += [*self._marks(at), *self._signs(at)]
        if self.look.active:
            layers.append(self._hover(texts))
        return self.finished(layers, chart.height)

    def _signs(self, at: Spec) -> list[Spec]:
        """The signs above the bars and their intervals."""
        table: dict[str, list[Any]] = {"x": [], "k": [], "y": [], "t": []}
        for one in self.chart.series:
            tops = one.y if one.high is None else np.fmax(one.y, one.high)
            for place, top, sign in zip(self.chart.places, tops.tolist(), one.signs, strict=False):
                if sign and math.isfinite(top):
                    for name, value in zip(
                        table, (place, self.number[one.name], _short(max(top, 0.0)), sign), strict=True
                    ):
                        table[name].append(value)
        if not table["x"]:
            return []
        mark = {"type": "text", "dy": -4, "baseline": "bottom", "fontSize": 12, "color": self.colour("ink")}
        encoding = {**at, "y": _place("y", self.y_scale), "text": {"field": "t"}}
        return [{**self.base(self.data("signs", table)), "mark": mark, "encoding": encoding}]

    def _places(self) -> Spec:
        """The axis of the places; long labels slant where there is little room."""
        axis: Spec = {"title": self.chart.x.title or None, "labelLimit": 110, "labelOverlap": False, "ticks": False}
        longest = max((len(place) for place in self.chart.places), default=0)
        if self.look.width is not None:
            if len(self.chart.places) * (longest * 5.2 + 6) <= self.look.width:
                return {**axis, "labelAngle": 0}
            return {**axis, "labelAngle": -40, "labelAlign": "right", "labelBaseline": "middle", "labelPadding": 7}
        slanted = f"width < {round(len(self.chart.places) * (longest * 6.4 + 8))}"
        return {
            **axis,
            "labelAngle": {"expr": f"{slanted} ? -40 : 0"},
            "labelAlign": {"expr": f"{slanted} ? 'right' : 'center'"},
            "labelBaseline": {"expr": f"{slanted} ? 'middle' : 'top'"},
            "labelPadding": {"expr": f"{slanted} ? 7 : 4"},
        }

    def _marks(self, at: Spec) -> list[Spec]:
        marks = [(mark, self.number[one.name]) for one in self.series for mark in one.marks]
        if not marks:
            return []
        table: dict[str, list[Any]] = {
            "x": [mark.x for mark, _ in marks],
            "y": [_short(mark.y) for mark, _ in marks],
            "k": [number for _, number in marks],
        }
        mark: Spec = {"type": "point", "shape": "diamond", "size": 60, "strokeWidth": 1.4, "opacity": 1}
        mark |= {"fill": self.colour("paper"), "stroke": self.colour("ink")}
        encoding = {**at, "y": _place("y", self.y_scale)}
        return [{**self.base(self.data("marks", table)), "mark": mark, "encoding": encoding}]

    def _hover(self, texts: Sequence[Mapping[Any, str]]) -> Spec:
        select = {"type": "point", "on": "pointerover", "clear": "pointerout", "fields": ["x"]}
        return {
            "data": self.data("hover", self.hover_table(list(self.chart.places), texts)),
            "mark": {"type": "rect", "fill": self.colour("ink")},
            "params": [{"name": "hover", "select": select}],
            "encoding": {
                "x": self.x,
                "fillOpacity": _if_picked("hover", 0.06, 0),
                "tooltip": self.tooltip(self.chart.x.title, "nominal"),
            },
        }


class _Ratios(_OfSeries):
    """Points with intervals on a logarithmic axis, a row for each place."""

    #: Room for each point of a row, in pixels.
    POINT = 14

    def __init__(self, look: Look, chart: Ratios, all_series: Sequence[Series]) -> None:
        super().__init__(look, chart.series, all_series, is_filled=True)
        self.chart = chart
        extent = np.append(_extent(chart.series), 1.0)
        self.scale, span = _scale(chart.y, extent, nice=True, zero=False)
        self.ratio = _place("y", self.scale, axis=self.number_axis(chart.y, span, "x", tickCount=5))
        rows = len(chart.places)
        self.row_scale: Spec = {"domain": [rows, 0], "nice": False, "zero": False}
        # The names of the rows stand beside the axis. One of several lines hangs from its first line.
        names = chart.names
        self.row_axis: Spec = {
            "values": [row + 0.5 - 6 * (len(name) - 1) / chart.row for row, name in enumerate(names)],
            "labelExpr": f"{json.dumps(names)}[floor(datum.value)]",
            "labelLimit": 400,
            "labelOverlap": False,
            "labelLineHeight": 12,
            **dict.fromkeys(("ticks", "grid"), False),
            "title": None,
        }

    def view_of(self) -> View:
        chart = self.chart
        table, texts = _table_of(list(chart.places), chart.series, self.number, gaps=False, log=True)
        numbers = [self.number[one.name] for one in chart.series]
        middle = len(numbers) / 2
        below = {k: 0.5 + self.POINT * (index + 0.5 - middle) / chart.row for index, k in enumerate(numbers)}
        table["r"] = [_short(chart.places.index(x) + below[k]) for x, k in zip(table["x"], table["k"], strict=True)]
        if self.look.whole:
            # chart.js makes the texts of a page.
            text_of = dict(zip(numbers, texts, strict=True))
            table["t"] = [text_of[k][x] for x, k in zip(table["x"], table["k"], strict=True)]
        data = self.data("data", table)
        row = _place("r", self.row_scale, axis=self.row_axis)
        between = {
            "data": self.data("between", {"r": list(range(1, len(chart.places)))}),
            "mark": {"type": "rule", "color": self.colour("grid"), "strokeWidth": 1},
            "encoding": {"y": row},
        }
        one = {
            "data": self.data("one", {"y": [1]}),
            "mark": {"type": "rule", "color": self.colour("axis"), "strokeWidth": 1},
            "encoding": {"x": self.ratio},
        }
        at = {"y": row, "color": self.colours(), **self.faded()}
        layers: list[Spec] = [between, one]
        if "l" in table:
            base = self.base(data, "isValid(datum.l) && isValid(datum.h)")
            rule = {"type": "rule", "strokeWidth": 1.6, "clip": True}
            layers.append(
                {**base, "mark": rule, "encoding": {**at, "x": _place("l", self.scale), "x2": {"field": "h"}}}
            )
            tick = {"type": "tick", "orient": "vertical", "size": 8, "thickness": 1.6, "clip": True}
            layers += [{**base, "mark": tick, "encoding": {**at, "x": _place(end, self.scale)}} for end in ("l", "h")]
        tips = [_tip("x", "metric"), *([_tip("t", "ratio")] if self.look.whole else [])]
        point = {"type": "point", "filled": True, "size": 70, "opacity": 1}
        main = {**self.base(data), "mark": point, "encoding": {**at, "x": self.ratio, "tooltip": tips}}
        # A finger need not meet the point: the whole line of the point shows its values.
        line = {"type": "rule", "strokeWidth": self.POINT}
        layers.append(
            {**self.base(data), "mark": line, "encoding": {"y": row, "opacity": {"value": 0}, "tooltip": tips}}
        )
        if params := self.picked():
            main["params"] = params
        return self.finished([*layers, main], chart.height)


# ----------------------------------------------------------------------------------------- histogram, heat map, effects


def _histogram(look: Look, chart: Histogram) -> View:
    of = _Building(look)
    table: dict[str, list[Any]] = {
        "x": [_short(x) for x in chart.edges[:-1].tolist()],
        "x2": [_short(x) for x in chart.edges[1:].tolist()],
        "y": [_short(y) for y in chart.counts.tolist()],
    }
    x_scale, x_span = _scale(chart.x, chart.edges, nice=False, zero=False)
    y_scale, y_span = _scale(chart.y, chart.counts, nice=True, zero=True)
    encoding = {
        "x": _place("x", x_scale, bin={"binned": True}, axis=of.number_axis(chart.x, x_span, "x", grid=False)),
        "x2": {"field": "x2"},
        "y": _place("y", y_scale, axis=of.number_axis(chart.y, y_span, "y", tickCount=5)),
        "tooltip": [
            _tip("x", f"{chart.x.title}, from", "quantitative"),
            _tip("x2", "to", "quantitative"),
            _tip("y", chart.y.title, "quantitative"),
        ],
    }
    mark = {"type": "bar", "color": of.colour(chart.colour), "clip": True, "binSpacing": 1}
    return of.view({"data": of.data("data", table), "mark": mark, "encoding": encoding}, chart.height)


def _heat(look: Look, chart: Heat) -> View:
    of = _Building(look)
    rows, columns = chart.values.shape
    table: dict[str, list[Any]] = {
        "x": [_short(x) for x in chart.edges[:-1].tolist()] * rows,
        "x2": [_short(x) for x in chart.edges[1:].tolist()] * rows,
        "r": [row for row in chart.rows for _ in range(columns)],
        "v": [_short(value) for value in chart.values.ravel().tolist()],
    }
    x_scale, x_span = _scale(chart.x, chart.edges, nice=False, zero=False)
    every = -(-rows // max(int(chart.height // 16), 1))
    axis = {"title": chart.rows_title, "values": list(chart.rows[::every]), "labelOverlap": False, "ticks": False}
    legend = {
        "title": chart.value.title,
        "orient": "bottom",
        "direction": "horizontal",
        "gradientLength": 160,
        "gradientThickness": 9,
        "titleOrient": "left",
        "offset": 4,
        "labelExpr": NUMBER if look.whole else NUMBER_IN_PAGE,
        "tickCount": 4,
    }
    domain = [chart.value.low, chart.value.high]
    encoding = {
        "x": _place("x", x_scale, axis=of.number_axis(chart.x, x_span, "x", grid=False, tickCount=6)),
        "x2": {"field": "x2"},
        "y": _name("r", sort=list(chart.rows), axis=axis),
        "color": _place("v", {"domain": domain, "range": list(RAMP), "clamp": True}, legend=legend),
        "tooltip": [
            _tip("r", chart.rows_title),
            _tip("x", f"{chart.x.title}, from", "quantitative"),
            _tip("v", chart.value.title, "quantitative"),
        ],
    }
    layers: list[Spec] = [
        {"data": of.data("data", table), "mark": {"type": "rect", "clip": True}, "encoding": encoding}
    ]
    if chart.breaks:
        data = of.data("breaks", {"r": [chart.rows[row] for row in chart.breaks]})
        line = {"type": "rule", "color": of.colour("paper"), "strokeWidth": 2}
        at = _name("r", sort=list(chart.rows), bandPosition=0)
        layers.append({"data": data, "mark": line, "encoding": {"y": at}})
    return of.view({"layer": layers}, chart.height)


def _effects(look: Look, chart: Effects) -> list[View]:
    found = [_main_effects(look, chart)]
    if any(len(of.factors) == 2 for of in chart.effects):
        found.append(_interactions(look, chart))
    return found


def _main_effects(look: Look, chart: Effects) -> View:
    of = _Building(look)
    factor = 100.0 if chart.percent else 1.0
    titles = dict(chart.factors)
    main = [one for one in chart.effects if len(one.factors) == 1]
    # Long titles do not fit below their bars.
    is_short = all(len(title) <= 14 for title in titles.values())
    names = [titles[name] if is_short else name for name, _ in chart.factors]
    table: dict[str, list[Any]] = {
        "f": [titles[one.factors[0]] if is_short else one.factors[0] for one in main],
        "n": [titles[one.factors[0]] for one in main],
        "v": [_short(factor * one.value) for one in main],
        "l": [_short(factor * one.low) for one in main],
        "h": [_short(factor * one.high) for one in main],
        "t": [one.text for one in main],
        "c": [one.is_clear for one in main],
    }
    # Room for the labels beyond the whiskers.
    ends = [0.0, *(end for one in main for end in (one.low, one.high))]
    least = min(ends) if chart.y.low is None else chart.y.low
    most = max(ends) if chart.y.high is None else chart.y.high
    room = 0.14 * (most - least)
    low, high = factor * (least - room if least < 0 else least), factor * (most + room if most > 0 else most)
    scale, span = _scale(Axis("", low=low, high=high), np.array([0.0]), nice=False, zero=True)
    data = of.data("data", table)
    axis = {"title": None, "labelAngle": 0, "labelLimit": 90, "ticks": False, "domain": False, "orient": "bottom"}
    x = _name("f", sort=names, axis=axis)
    y = _place("v", scale, axis=of.number_axis(chart.y, span, "y", tickCount=5))
    ink = of.colour("ink")
    bars = {
        "data": data,
        "mark": {"type": "bar", "clip": True},
        "encoding": {
            "x": x,
            "y": y,
            "color": _if("datum.v > 0", of.colour("orange"), of.colour("blue")),
            "opacity": _if("datum.c", 1, 0.35),
            "tooltip": [
                _tip("n", "factor"),
                _tip("t", "effect"),
                _tip("l", "smallest replicate", "quantitative"),
                _tip("h", "largest replicate", "quantitative"),
            ],
        },
    }
    zero = {
        "data": of.data("zero", {"y": [0]}),
        "mark": {"type": "rule", "color": of.colour("axis")},
        "encoding": {"y": _place("y", scale)},
    }
    whisker = {"type": "rule", "color": ink, "strokeWidth": 1.2}
    tick = {"type": "tick", "color": ink, "orient": "horizontal", "size": 8, "thickness": 1.2}
    layers: list[Spec] = [bars, zero]
    layers.append({"data": data, "mark": whisker, "encoding": {"x": x, "y": _place("l", scale), "y2": {"field": "h"}}})
    layers += [{"data": data, "mark": tick, "encoding": {"x": x, "y": _place(end, scale)}} for end in ("l", "h")]
    text = {"type": "text", "color": ink, "fontSize": 11 if look.width is None else 9}
    for test, end, where in (
        ("datum.v >= 0", "h", {"dy": -5, "baseline": "bottom"}),
        ("datum.v < 0", "l", {"dy": 5, "baseline": "top"}),
    ):
        encoding = {"x": x, "y": _place(end, scale), "text": {"field": "t"}}
        layers.append({"data": data, "transform": [{"filter": test}], "mark": {**text, **where}, "encoding": encoding})
    return of.view({"layer": _shared(layers)}, chart.height)


def _interactions(look: Look, chart: Effects) -> View:
    of = _Building(look)
    titles = dict(chart.factors)
    names = [name for name, _ in chart.factors]
    pairs = [one for one in chart.effects if len(one.factors) == 2]

    def opacity(one: Any) -> float | None:
        strong = min(abs(one.value) / chart.strongest, 1.0) if chart.strongest else 0.0
        return _short(0.12 + 0.5 * strong) if one.is_clear else 0.0

    table: dict[str, list[Any]] = {
        "a": [one.factors[0] for one in pairs],
        "b": [one.factors[1] for one in pairs],
        "n": [" \u00d7 ".join(titles[name] for name in one.factors) for one in pairs],
        "v": [_short(one.value) for one in pairs],
        "o": [opacity(one) for one in pairs],
        "t": [one.text for one in pairs],
        "c": [one.is_clear for one in pairs],
    }
    bare = {"ticks": False, "domain": False, "labelAngle": 0}
    encoding = {
        "x": _name("a", sort=names, axis={"title": None, **bare}),
        "y": _name("b", sort=names, axis={"title": "interactions", **bare}),
    }
    cells = {
        "mark": {"type": "rect"},
        "encoding": {
            "color": _if("datum.v > 0", of.colour("orange"), of.colour("blue")),
            "opacity": _place("o", legend=None) | {"scale": None},
            "tooltip": [_tip("n", "interaction"), _tip("t", "effect")],
        },
    }
    text = {
        "mark": {"type": "text", "fontSize": 11 if look.width is None else 9},
        "encoding": {"text": {"field": "t"}, "color": _if("datum.c", of.colour("ink"), of.colour("soft"))},
    }
    height = 26.0 * len(set(table["b"])) + 4
    return of.view({"data": of.data("data", table), "encoding": encoding, "layer": [cells, text]}, height)
