"""Evaluates the results of a study: the data of its figures, and the verdicts on its claims."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nandlab.study.effects import Effect, effects
from nandlab.study.expression import Expression
from nandlab.study.metrics import Results, elsewhere, read_table
from nandlab.study.model import Claim, Definition, Figure, Measure, Where

REPRODUCED = "reproduced"
SAME_DIRECTION = "same direction"
NOT_REPRODUCED = "not reproduced"
#: The name of the further place on the x axis at which the mean over all places is drawn.
MEAN = "mean"
#: The curves of a figure of effects.
EFFECT, SMALLEST, LARGEST = "effect", "smallest replicate", "largest replicate"
#: A verdict of the smoke size, where the runs of a claim may be left out.
NOT_MEASURED = "not measured"

_REDUCE: Mapping[str, Callable[[Sequence[float]], float]] = {
    "only": lambda values: values[0],
    "mean": statistics.fmean,
    "geomean": statistics.geometric_mean,
    "median": statistics.median,
    "min": min,
    "max": max,
    "sum": math.fsum,
}


@dataclass(frozen=True)
class Curve:
    """One series of a figure."""

    name: str
    x: list[Any]
    y: list[float]
    #: Whether the curve is computed, not measured.
    is_reference: bool = False


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


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim."""

    claim: Claim
    measured: float | None
    baseline: float | None
    verdict: str

    def as_json(self) -> dict[str, Any]:
        claim = self.claim
        tolerance = {"relative": claim.relative} if claim.relative is not None else {"absolute": claim.absolute}
        difference = None if self.measured is None or claim.value is None else self.measured - claim.value
        return {
            "id": claim.id,
            "figure": claim.figure,
            "what": claim.what,
            "source": claim.source,
            "reported": claim.value,
            "tolerance": None if claim.value is None else tolerance,
            "measured": self.measured,
            "difference": difference,
            "relative_difference": difference / claim.value if difference is not None and claim.value else None,
            "direction": claim.direction,
            "baseline": self.baseline,
            "measure": claim.measure.text(),
            "verdict": self.verdict,
            "deviation": claim.deviation,
        }


def _values(results: Results, metric: Expression, normalised_to: str | None) -> list[float | None]:
    """The metric of each run, divided by the metric of the same run with the variant `normalised_to`."""
    values = results.evaluate(metric)
    if normalised_to is None:
        return values
    base = {
        elsewhere(run.row): value
        for run, value in zip(results.runs, values, strict=True)
        if run.variant == normalised_to
    }
    out: list[float | None] = []
    for run, value in zip(results.runs, values, strict=True):
        against = base.get(elsewhere(run.row))
        out.append(value / against if value is not None and against else None)
    return out


def measured(results: Results, measure: Measure) -> float | None:
    """The measured value of a claim; `None` if it is undefined, for example because no run has a value."""
    if measure.effect:
        wanted = set(measure.effect)
        found = effects_of(results, measure.metric, measure.where, measure.scale)
        return next((effect.reduced(measure.reduce) for effect in found if set(effect.names) == wanted), None)
    values = _values(results, measure.metric, measure.normalised_to)
    rows = [value for run, value in zip(results.runs, values, strict=True) if measure.where.matches(run.row)]
    known = [value for value in rows if value is not None]
    if not known:
        return None
    try:
        return float(_REDUCE[measure.reduce](known))
    except statistics.StatisticsError:
        return None


def effects_of(results: Results, metric: Expression, where: Where, scale: str) -> list[Effect]:
    """The effects of the factors on a metric in the selected runs."""
    values = results.evaluate(metric)
    rows = [(run.row, value) for run, value in zip(results.runs, values, strict=True) if where.matches(run.row)]
    return effects(results.factors, rows, scale)


def judge(study: Definition, results: Results) -> list[Verdict]:
    """The verdicts on all claims."""
    return [_judge(study, results, claim) for claim in study.claims]


def _judge(study: Definition, results: Results, claim: Claim) -> Verdict:
    value = measured(results, claim.measure)
    baseline = measured(results, claim.baseline) if isinstance(claim.baseline, Measure) else claim.baseline
    if value is None:
        # At smoke size, runs that an effect needs may be left out.
        any_run = any(claim.measure.where.matches(run.row) for run in results.runs) and not (
            study.smoke and claim.measure.effect
        )
        return Verdict(claim, None, baseline, NOT_REPRODUCED if any_run else NOT_MEASURED)
    is_right = baseline is not None and (value > baseline if claim.direction == "above" else value < baseline)
    if claim.value is None:
        return Verdict(claim, value, baseline, REPRODUCED if is_right else NOT_REPRODUCED)
    slack = claim.relative * abs(claim.value) if claim.relative is not None else (claim.absolute or 0.0)
    if abs(value - claim.value) <= slack * (1 + 1e-12):
        return Verdict(claim, value, baseline, REPRODUCED)
    if claim.direction is not None and is_right:
        return Verdict(claim, value, baseline, SAME_DIRECTION)
    return Verdict(claim, value, baseline, NOT_REPRODUCED)


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


def _curves(study: Definition, results: Results, figure: Figure, verdicts: list[Verdict]) -> Drawn:
    values = _values(results, figure.metric, figure.normalised_to)
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
    gathered: dict[tuple[str, str, Any, bool], list[float]] = {}
    for row, _, value in rows:
        panel, x = _panel(study, figure, row), row.get(figure.over)
        panels.setdefault(panel, Panel(panel))
        if value is not None and x is not None:
            gathered.setdefault((panel, _series_name(study, figure, row), x, False), []).append(value)
    for reference in figure.references:
        all_computed = results.evaluate(reference.expression)
        for row, index, _ in rows:
            computed = all_computed[index] if reference.where.matches(row) else None
            if computed is not None and row.get(figure.over) is not None:
                key = (_panel(study, figure, row), reference.name, row[figure.over], True)
                gathered.setdefault(key, []).append(computed)
    for panel, series, is_reference in dict.fromkeys((key[0], key[1], key[3]) for key in gathered):
        points = [
            (x, float(_REDUCE[figure.reduce](gathered[(panel, series, x, is_reference)])))
            for x in xs
            if (panel, series, x, is_reference) in gathered
        ]
        if figure.mean and points:
            points.append((MEAN, statistics.fmean(y for _, y in points)))
        panels[panel].curves.append(Curve(series, [x for x, _ in points], [y for _, y in points], is_reference))
    _mark(study, results, figure, verdicts, panels)
    if figure.mean:
        xs.append(MEAN)
    places = None if is_scale else [MEAN if x is MEAN else title_of(study, figure.over, x) for x in xs]
    if places is not None:
        place = dict(zip(xs, places, strict=True))
        for held in panels.values():
            held.curves = [Curve(c.name, [place[x] for x in c.x], c.y, c.is_reference) for c in held.curves]
            held.marks = [Mark(m.series, place[m.x], m.y, m.what) for m in held.marks if m.x in place]
    return Drawn(figure, list(panels.values()), places)


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
            or marked is None
            or claim.measure.metric.text != figure.metric.text
            or claim.measure.normalised_to != figure.normalised_to
        ):
            continue
        rows = [run.row for run in results.runs if claim.measure.where.matches(run.row)]
        places = {(_panel(study, figure, row), _series_name(study, figure, row), row.get(figure.over)) for row in rows}
        if figure.mean and claim.measure.reduce == "mean":
            # A mean over the places is marked at the bar of the mean.
            places = {(panel, series, MEAN) for panel, series, _ in places}
        if len(places) == 1:
            panel, series, x = places.pop()
            if panel in panels and x is not None:
                panels[panel].marks.append(Mark(series, x, marked, claim.what))


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
