"""The charts of a study's figures, and the charts of paper and measurement by workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nandlab.reporting.chart import (
    Axis,
    Bars,
    Cells,
    Chart,
    Effect,
    Effects,
    Figure,
    Floats,
    Lines,
    Mark,
    Panel,
    Series,
    plain,
)
from nandlab.reporting.colours import CYCLE
from nandlab.study.draw import EFFECT, LARGEST, SMALLEST, Curve, Drawn, cdf_title
from nandlab.study.draw import Panel as DrawnPanel
from nandlab.study.judge import (
    AT_SETTING,
    FITTED,
    INFERRED,
    NOT_REPRODUCED,
    REPRODUCED,
    SAME_DIRECTION,
    UNDECIDED,
    Verdict,
)
from nandlab.study.model import Claim, Definition
from nandlab.study.ranges import OverRanges
from nandlab.study.sample import Sample

#: Up to this many numbers on the x axis, each has its tick.
_TICKS = 8
_EFFECTS = (
    "Bars: main effects, with whiskers from the smallest to the largest replicate. Below: interactions, the change of "
    "an effect by another factor. Orange is more, blue is less. Pale: the replicates have different signs."
)


#: The sign of each verdict above a bar.
SIGNS = {
    REPRODUCED: "\u2713",
    AT_SETTING: "\u2713",
    FITTED: "\u2713",
    INFERRED: "\u2248",
    UNDECIDED: "?",
    SAME_DIRECTION: "\u2248",
    NOT_REPRODUCED: "\u2717",
}


def figure_of(study: Definition, drawn: Drawn) -> Figure | None:
    """A figure of a study with its data; `None` if no run has a value for it."""
    figure = drawn.figure
    curves = [curve for panel in drawn.panels for curve in panel.curves]
    if not any(curve.y for curve in curves):
        return None
    caption = figure.caption.strip()
    if figure.kind == "effects":
        panels = _effects(study, drawn)
        caption = f"{caption} {_EFFECTS}".strip()
    else:
        names = list(dict.fromkeys(curve.name for curve in curves))
        colours = {name: CYCLE[index % len(CYCLE)] for index, name in enumerate(names)}
        panels = tuple(Panel(_chart(drawn, panel, colours), panel.title) for panel in drawn.panels if panel.curves)
        if figure.normalised_to is not None:
            base = study.titles.get(("variant", figure.normalised_to), figure.normalised_to)
            caption += f" Relative to {base}."
    cells = _quantiles(drawn) if figure.kind == "cdf" else None
    return Figure(figure.title, caption.strip(), panels, f"figure-{figure.id}", cells)


def _above(most: float, *, log: bool) -> float:
    """The end of an axis, with room for the mark of the largest value."""
    return most * (1.15 if log else 1.05) if most > 0 else most


def _chart(drawn: Drawn, panel: DrawnPanel, colours: Mapping[str, str]) -> Chart:
    figure = drawn.figure
    tops = [y for one in drawn.panels for curve in one.curves for y in curve.y]
    tops += [mark.y for one in drawn.panels for mark in one.marks]
    tops += [found[1] for one in drawn.panels for curve in one.curves for found in curve.intervals if found is not None]
    lows = [y for one in drawn.panels for curve in one.curves for y in curve.y]
    lows += [found[0] for one in drawn.panels for curve in one.curves for found in curve.intervals if found is not None]
    # All panels have the same vertical axis.
    several = len(drawn.panels) > 1
    positive = [y for y in lows if y > 0]
    low = min(positive, default=1.0) if figure.log_y else min([0.0, *lows])
    y = Axis(
        figure.y_title,
        log=figure.log_y,
        low=low if several or figure.log_y else None,
        high=_above(max(tops), log=figure.log_y) if several else None,
    )
    if drawn.places is not None:
        return _bars(drawn, panel, colours, y, drawn.places)
    if figure.kind == "cdf":
        return _cdf(drawn, panel, colours)
    xs = np.array(sorted({float(x) for curve in panel.curves for x in curve.x}))
    series = tuple(
        Series(
            curve.name,
            _at(curve, xs.tolist(), curve.y),
            colours[curve.name],
            "dashed" if curve.is_reference else "plain",
            *_ends(curve, xs.tolist()),
            marks=tuple(Mark(float(mark.x), mark.y) for mark in panel.marks if mark.series == curve.name),
        )
        for curve in panel.curves
    )
    low_x, high_x = float(xs[0]), float(xs[-1])
    room = 0.03 * (high_x - low_x) or 0.5 * abs(low_x) or 1.0
    x = Axis(
        figure.x_title,
        log=figure.log_x,
        low=low_x * 0.92 if figure.log_x else low_x - room,
        high=high_x * 1.08 if figure.log_x else high_x + room,
        ticks=tuple((value, plain(value)) for value in xs.tolist()) if len(xs) <= _TICKS else (),
    )
    return Lines(panel.title or figure.title, x, y, xs, series, dots=True, bridged=True)


def _bars(drawn: Drawn, panel: DrawnPanel, colours: Mapping[str, str], y: Axis, places: Sequence[str]) -> Bars:
    series = tuple(
        Series(
            curve.name,
            _at(curve, places, curve.y),
            colours[curve.name],
            "outline" if curve.is_reference else "plain",
            *_ends(curve, places),
            marks=tuple(Mark(mark.x, mark.y) for mark in panel.marks if mark.series == curve.name),
        )
        for curve in panel.curves
    )
    return Bars(panel.title or drawn.figure.title, Axis(drawn.figure.x_title), y, tuple(places), series)


def _at(curve: Curve, places: Sequence[Any], values: Sequence[float]) -> Floats:
    """The values of a curve at places, NaN where it has none."""
    there = dict(zip(curve.x, values, strict=True))
    return np.array([there.get(place, np.nan) for place in places], dtype=float)


def _ends(curve: Curve, places: Sequence[Any]) -> tuple[Floats | None, Floats | None]:
    """The ends of the intervals of a curve at places."""
    if not any(found is not None for found in curve.intervals):
        return None, None
    ends = [found or (np.nan, np.nan) for found in curve.intervals]
    return _at(curve, places, [low for low, _ in ends]), _at(curve, places, [high for _, high in ends])


def _cdf(drawn: Drawn, panel: DrawnPanel, colours: Mapping[str, str]) -> Lines:
    figure = drawn.figure
    curves = [_shorter(curve) for curve in panel.curves]
    xs = np.array(sorted({float(x) for curve in curves for x in curve.x}))
    if figure.log_x:
        xs = xs[xs > 0]
    series = []
    for curve in curves:
        y = np.interp(xs, curve.x, curve.y, left=0.0, right=1.0)
        y = np.where(y < 1.0, 1.0 - y, np.nan) if figure.log_y else y
        series.append(Series(curve.name, y, colours[curve.name], "dashed" if curve.is_reference else "plain"))
    known = [y for one in series for y in one.y.tolist() if y > 0]
    x = Axis("latency, \u00b5s", " \u00b5s", log=figure.log_x)
    y_axis = Axis(cdf_title(figure), log=figure.log_y, low=min(known, default=1e-3) if figure.log_y else 0, high=1.0)
    return Lines(panel.title or figure.title, x, y_axis, xs, tuple(series), bridged=True)


def _shorter(curve: Curve) -> Curve:
    """A distribution with fewer points: the drawn curve and its drawn tail look the same."""
    kept = [0]
    for index, y in enumerate(curve.y):
        last = curve.y[kept[-1]]
        if y - last > 0.004 or 1 - y < 0.95 * (1 - last) or index == len(curve.y) - 1:
            if kept[-1] < index - 1:
                kept.append(index - 1)
            kept.append(index)
    return Curve(curve.name, [curve.x[i] for i in kept], [curve.y[i] for i in kept], curve.is_reference)


def _quantiles(drawn: Drawn) -> Cells:
    """The percentiles of the distributions."""
    shares = (0.5, 0.9, 0.99, 0.999, 0.9999)
    heads = ("panel", "series", "50 %", "90 %", "99 %", "99.9 %", "99.99 %")
    rows = [
        (panel.title, curve.name, *(plain(_quantile(curve, share)) for share in shares))
        for panel in drawn.panels
        for curve in panel.curves
    ]
    return (heads, rows) if len(drawn.panels) > 1 else (heads[1:], [row[1:] for row in rows])


def _quantile(curve: Curve, share: float) -> float:
    found = (float(x) for x, y in zip(curve.x, curve.y, strict=True) if y >= share - 1e-12)
    return next(found, float("nan"))


# ------------------------------------------------------------------------------------------------------------ effects


def _effects(study: Definition, drawn: Drawn) -> tuple[Panel, ...]:
    figure = drawn.figure
    found = [effects_of(panel, figure.scale) for panel in drawn.panels]
    named = {of.factors[0] for effects in found for of in effects}
    named |= {of.factors[-1] for effects in found for of in effects}
    factors = tuple((factor.name, factor.title) for factor in study.factors if factor.name in named)
    ends = [end for effects in found for of in effects if len(of.factors) == 1 for end in (of.low, of.high)]
    pairs = [abs(of.value) for effects in found for of in effects if len(of.factors) == 2]
    unit = ", %" if figure.scale == "ratio" else ""
    y = Axis(figure.y_title + unit, low=min([0.0, *ends]), high=max([0.0, *ends]))
    return tuple(
        Panel(
            Effects(
                panel.title or figure.title,
                y,
                factors,
                tuple(effects),
                max(pairs, default=0.0),
                figure.scale == "ratio",
            ),
            panel.title,
        )
        for panel, effects in zip(drawn.panels, found, strict=True)
    )


def effects_of(panel: DrawnPanel, scale: str) -> list[Effect]:
    """The effects of a panel."""
    values = {curve.name: dict(zip(curve.x, curve.y, strict=True)) for curve in panel.curves}
    return [
        Effect(tuple(key.split(":")), value, values[SMALLEST][key], values[LARGEST][key], effect_text(value, scale))
        for key, value in values.get(EFFECT, {}).items()
    ]


def effect_text(value: float, scale: str) -> str:
    """An effect as text: `+12 %` on the scale of ratios, `+0.12` on the scale of differences."""
    if scale == "ratio":
        value *= 100.0
        text = f"{value:+,.0f} %" if abs(value) >= 9.95 else f"{value:+.1f} %"
        return "0 %" if abs(value) < 0.05 else text
    return "0" if value == 0 else f"{value:+,.0f}" if abs(value) >= 1000 else f"{value:+.3g}"


# ------------------------------------------------------------------------------------------------ paper and measurement


@dataclass(frozen=True)
class _Place:
    """A reported and a measured value side by side."""

    name: str
    reported: float | None
    slack: float | None
    sample: Sample
    verdict: str


def by_workload(verdict: Verdict) -> Figure | None:
    """Reported and measured values of a claim side by side by workload; `None` for a claim on a single number."""
    if not verdict.workloads:
        return None
    claim = verdict.claim
    places = [_Place(one.workload, one.reported, one.tolerance, one.sample, one.verdict) for one in verdict.workloads]
    of_workloads = [place.verdict for place in places]
    # The share of a claim on most workloads is on another scale than the values of the workloads.
    if verdict.sample is not None and not claim.most:
        places.append(_Place("all", claim.value, verdict.tolerance, verdict.sample, verdict.verdict))
    caption = f"In all: {_signed(verdict.verdict)}. By workload: {_tally(of_workloads)}."
    return _side_by_side(claim, "workload", places, caption, f"workloads-{claim.id}")


def over_the_ranges(one: OverRanges) -> Figure | None:
    """Reported and measured values of a headline at each point of the ranges; `None` if no point has a value."""
    claim = one.claim
    places = [
        _Place(point.text, claim.value, point.verdict.tolerance, point.verdict.sample, point.verdict.verdict)
        for point in one.points
        if point.verdict.sample is not None
    ]
    if not places:
        return None
    caption = f"By point: {_tally([place.verdict for place in places])}."
    return _side_by_side(claim, "point", places, caption, f"ranges-{claim.id}")


def _signed(verdict: str) -> str:
    return f"{verdict} {SIGNS.get(verdict, '')}".rstrip()


def _tally(verdicts: Sequence[str]) -> str:
    return ", ".join(f"{verdicts.count(verdict)} {_signed(verdict)}" for verdict in dict.fromkeys(verdicts))


def _side_by_side(claim: Claim, axis: str, places: Sequence[_Place], caption: str, name: str) -> Figure:
    """Reported and measured values at places."""
    reported = [np.nan if place.reported is None else place.reported for place in places]
    slack = [np.nan if place.reported is None or place.slack is None else place.slack for place in places]
    paper, room = np.array(reported, dtype=float), np.array(slack, dtype=float)
    series = []
    if np.isfinite(paper).any():
        least = paper - room
        # A wide tolerance of a small positive value needs no room below zero.
        least = np.where(paper >= 0, np.maximum(least, 0.0), least)
        series.append(Series("reported, with tolerance", paper, "slate", "outline", least, paper + room))
    intervals = [place.sample.interval or (np.nan, np.nan) for place in places]
    measured = np.array([place.sample.mean for place in places], dtype=float)
    low, high = (np.array(ends, dtype=float) for ends in zip(*intervals, strict=True))
    signs = tuple(SIGNS.get(place.verdict, "") for place in places)
    series.append(Series("measured", measured, "blue", low=low, high=high, signs=signs))
    relative = f" / {claim.measure.normalised_to}" if claim.measure.normalised_to else ""
    y = Axis(f"{claim.measure.metric.text}{relative}")
    chart = Bars(claim.what, Axis(axis), y, tuple(place.name for place in places), tuple(series))
    heads = (axis, "reported", "tolerance", "measured", "95 % interval, low", "high", "verdict")
    numbers = zip(reported, slack, measured.tolist(), low.tolist(), high.tolist(), strict=True)
    rows: list[tuple[str, ...]] = [
        (place.name, *map(plain, values), place.verdict) for place, values in zip(places, numbers, strict=True)
    ]
    if len(series) > 1:
        caption += " The whiskers of the reported values are their tolerances."
    return Figure(claim.what, caption, (Panel(chart),), name, (heads, rows))
