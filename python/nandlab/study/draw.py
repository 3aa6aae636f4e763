"""The data of a study's figures."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nandlab.study.judge import Verdict
from nandlab.study.metrics import Results, read_table
from nandlab.study.model import SEED, Definition, Figure, Where
from nandlab.study.sample import Sample, effects_of, ratio_of_means, reduced, relative_values

#: The further places on the x axis: the mean over all places, and the ratio of the means, for a normalised metric.
MEAN, RATIO_OF_MEANS = "mean", "ratio of means"
#: The name of `MEAN` for a normalised metric.
MEAN_OF_RATIOS = "mean of ratios"
_MEANS = ("mean", "mean-of-ratios", "ratio-of-means")
#: The curves of a figure of effects.
EFFECT, SMALLEST, LARGEST = "effect", "smallest replicate", "largest replicate"


@dataclass(frozen=True)
class Curve:
    """One series of a figure."""

    name: str
    x: list[Any]
    y: list[float]
    #: Whether the curve is computed, not measured.
    is_reference: bool = False
    #: The 95 % confidence interval at each point; `None` for a point of one seed, empty for a curve without intervals.
    intervals: Sequence[tuple[float, float] | None] = ()


@dataclass(frozen=True)
class Mark:
    """The reported value of a claim, as a point beside its curve."""

    series: str
    x: Any
    y: float
    what: str


@dataclass
class Panel:
    """A panel of a figure."""

    title: str
    curves: list[Curve] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)


@dataclass(frozen=True)
class Drawn:
    """A figure with its data."""

    figure: Figure
    panels: list[Panel]
    #: Titles of the places on the x axis; `None` for an axis of numbers.
    places: list[str] | None


def title_of(study: Definition, column: str, value: Any) -> str:
    """The title of a value of a column in figures."""
    found = study.titles.get((column, value))
    return str(value) if found is None else found


def _series_name(study: Definition, figure: Figure, row: Mapping[str, Any]) -> str:
    names = [title_of(study, column, row.get(column)) for column in figure.series if row.get(column) is not None]
    return " / ".join(names) or figure.metric.text


def draw(study: Definition, results: Results, verdicts: list[Verdict]) -> list[Drawn]:
    """The data of all figures."""
    return [_draw(study, results, figure, verdicts) for figure in study.figures]


def _draw(study: Definition, results: Results, figure: Figure, verdicts: list[Verdict]) -> Drawn:
    if figure.kind == "cdf":
        return _cdf(study, results, figure)
    if figure.kind == "effects":
        return _effects(study, results, figure)
    return _curves(study, results, figure, verdicts)


def _effects(study: Definition, results: Results, figure: Figure) -> Drawn:
    rows = [run.row for run in results.runs if figure.where.matches(run.row)]
    at = [None] if figure.panels is None else list(dict.fromkeys(row.get(figure.panels) for row in rows))
    panels = []
    places: dict[str, None] = {}
    for value in at:
        where = figure.where if figure.panels is None else figure.where.merged(Where({figure.panels: (value,)}))
        found = effects_of(results, figure.metric, where, figure.scale)
        keys = [effect.key for effect in found]
        places.update(dict.fromkeys(keys))
        curves = [
            Curve(name, keys, [effect.reduced(how) for effect in found])
            for name, how in ((EFFECT, "mean"), (SMALLEST, "min"), (LARGEST, "max"))
        ]
        panels.append(Panel("" if figure.panels is None else title_of(study, figure.panels, value), curves))
    return Drawn(figure, panels, list(places))


@dataclass
class _Gathered:
    """The values of the runs of one series at one place, by seed, with the indices of the runs."""

    values: dict[Any, list[float]] = field(default_factory=dict)
    indices: dict[Any, list[int]] = field(default_factory=dict)

    def add(self, seed: Any, index: int, value: float) -> None:
        self.values.setdefault(seed, []).append(value)
        self.indices.setdefault(seed, []).append(index)


def _curves(study: Definition, results: Results, figure: Figure, verdicts: list[Verdict]) -> Drawn:
    values = relative_values(results, figure.metric, figure.normalised_to)
    rows = [
        (run.row, index, value)
        for index, (run, value) in enumerate(zip(results.runs, values, strict=True))
        if figure.where.matches(run.row)
    ]
    xs = list(dict.fromkeys(row.get(figure.over) for row, _, _ in rows if row.get(figure.over) is not None))
    is_scale = figure.kind == "line" and all(isinstance(x, (int, float)) for x in xs)
    if is_scale:
        xs.sort()
    panels: dict[str, Panel] = {}
    gathered: dict[tuple[str, str, bool], dict[Any, _Gathered]] = {}

    def gather(series: str, is_reference: bool, row: Mapping[str, Any], index: int, value: float | None) -> None:
        if value is not None and row.get(figure.over) is not None:
            places = gathered.setdefault((_panel(study, figure, row), series, is_reference), {})
            places.setdefault(row[figure.over], _Gathered()).add(row.get(SEED), index, value)

    for row, index, value in rows:
        panel = _panel(study, figure, row)
        panels.setdefault(panel, Panel(panel))
        gather(_series_name(study, figure, row), False, row, index, value)
    for reference in figure.references:
        all_computed = results.evaluate(reference.expression)
        for row, index, _ in rows:
            gather(reference.name, True, row, index, all_computed[index] if reference.where.matches(row) else None)
    means = _means_of(figure)
    for (panel, series, is_reference), points_of in gathered.items():
        points = [(x, _point(figure, points_of[x])) for x in xs if x in points_of]
        points += [
            (name, point)
            for name in means
            if (point := _mean_point(results, figure, list(points_of.values()), name, is_reference)) is not None
        ]
        kept = [(x, point) for x, point in points if point is not None]
        curve = Curve(
            series,
            [x for x, _ in kept],
            [point.mean for _, point in kept],
            is_reference,
            () if is_reference else [point.interval for _, point in kept],
        )
        panels[panel].curves.append(curve)
    _mark(study, results, figure, verdicts, panels)
    xs += means
    places = None if is_scale else [x if x in means else title_of(study, figure.over, x) for x in xs]
    if places is not None:
        place = dict(zip(xs, places, strict=True))
        for held in panels.values():
            held.curves = [replace(curve, x=[place[x] for x in curve.x]) for curve in held.curves]
            held.marks = [replace(mark, x=place[mark.x]) for mark in held.marks if mark.x in place]
    return Drawn(figure, list(panels.values()), places)


def _means_of(figure: Figure) -> list[str]:
    """The further places of a figure with means."""
    if not figure.mean:
        return []
    return [MEAN] if figure.normalised_to is None else [MEAN_OF_RATIOS, RATIO_OF_MEANS]


def _point(figure: Figure, found: _Gathered) -> Sample | None:
    """The value of a place with each seed."""
    values = [value for of_seed in found.values.values() if (value := reduced(figure.reduce, of_seed)) is not None]
    return Sample(tuple(values)) if values else None


def _mean_point(
    results: Results, figure: Figure, places: Sequence[_Gathered], name: str, is_reference: bool
) -> Sample | None:
    """The mean over all places with each seed."""
    values: list[float] = []
    for seed in dict.fromkeys(seed for place in places for seed in place.values):
        there = [place for place in places if seed in place.values]
        value: float | None
        if name == RATIO_OF_MEANS:
            if is_reference:
                return None
            indices = [index for place in there for index in place.indices[seed]]
            value = ratio_of_means(results, figure.metric, figure.normalised_to, indices)
        else:
            of_places = [reduced(figure.reduce, place.values[seed]) for place in there]
            value = statistics.fmean([one for one in of_places if one is not None])
        if value is not None:
            values.append(value)
    return Sample(tuple(values)) if values else None


def _panel(study: Definition, figure: Figure, row: Mapping[str, Any]) -> str:
    return "" if figure.panels is None else title_of(study, figure.panels, row.get(figure.panels))


def _mark(
    study: Definition, results: Results, figure: Figure, verdicts: list[Verdict], panels: dict[str, Panel]
) -> None:
    """Add a mark for each claim on one place of the figure."""
    for verdict in verdicts:
        claim = verdict.claim
        marked = claim.value
        if (
            claim.figure != figure.id
            or claim.measure.metric.text != figure.metric.text
            or claim.measure.normalised_to != figure.normalised_to
        ):
            continue
        if figure.over == "workload":
            _mark_workloads(study, results, figure, verdict, panels)
        if marked is None:
            continue
        rows = [run.row for run in results.runs if claim.measure.where.matches(run.row)]
        places = {(_panel(study, figure, row), _series_name(study, figure, row), row.get(figure.over)) for row in rows}
        means = _means_of(figure)
        if means and claim.measure.reduce in _MEANS:
            # A mean over the places is marked at the bar of this mean.
            at = RATIO_OF_MEANS if claim.measure.reduce == "ratio-of-means" else means[0]
            places = {(panel, series, at) for panel, series, _ in places}
        if len(places) == 1:
            panel, series, x = places.pop()
            if panel in panels and x is not None:
                panels[panel].marks.append(Mark(series, x, marked, claim.what))


def _mark_workloads(
    study: Definition, results: Results, figure: Figure, verdict: Verdict, panels: dict[str, Panel]
) -> None:
    """Add a mark for the reported value of each workload of a claim on one series."""
    where = verdict.claim.measure.where
    for one in verdict.workloads:
        rows = [run.row for run in results.runs if where.matches(run.row) and run.workload == one.workload]
        places = {(_panel(study, figure, row), _series_name(study, figure, row)) for row in rows}
        if one.reported is not None and len(places) == 1:
            panel, series = places.pop()
            if panel in panels:
                panels[panel].marks.append(Mark(series, one.workload, one.reported, verdict.claim.what))


def cdf_title(figure: Figure) -> str:
    """The title of the y axis of a distribution; a logarithmic axis shows its tail."""
    return "share of requests that take longer" if figure.log_y else "share of requests"


def _cdf(study: Definition, results: Results, figure: Figure) -> Drawn:
    op = figure.metric.text.split(".")[-1]
    panels: dict[str, Panel] = {}
    counts: dict[tuple[str, str], dict[tuple[float, float], float]] = {}
    for run in results.runs:
        if not figure.where.matches(run.row):
            continue
        table = read_table(results.store, run.identity, "latency")
        table = table.filter(table["op"] == op)
        panel = _panel(study, figure, run.row)
        panels.setdefault(panel, Panel(panel))
        into = counts.setdefault((panel, _series_name(study, figure, run.row)), {})
        for low, high, count in zip(table["low_us"], table["high_us"], table["count"], strict=True):
            into[(high, low)] = into.get((high, low), 0.0) + count
    for (panel, series), bins in counts.items():
        total = sum(bins.values())
        if total <= 0:
            continue
        below = 0.0
        xs: list[float] = []
        ys: list[float] = []
        for high, low in sorted(bins):
            if bins[(high, low)] == 0:
                continue
            if not xs or low > xs[-1]:
                xs.append(low)
                ys.append(below / total)
            below += bins[(high, low)]
            xs.append(high)
            ys.append(below / total)
        panels[panel].curves.append(Curve(series, list(xs), ys))
    return Drawn(figure, list(panels.values()), None)
