"""The values of a measure with each seed, their mean and its confidence interval."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nandlab.study.effects import Effect, effects
from nandlab.study.expression import Expression
from nandlab.study.metrics import Results, elsewhere
from nandlab.study.model import SEED, Measure, Where

REDUCE: Mapping[str, Callable[[Sequence[float]], float]] = {
    "only": lambda values: values[0],
    "mean": statistics.fmean,
    "mean-of-ratios": statistics.fmean,
    "geomean": statistics.geometric_mean,
    "median": statistics.median,
    "min": min,
    "max": max,
    "sum": math.fsum,
}

#: The 97.5 % quantiles of Student's t distribution with 1 to 30 degrees of freedom.
_T = (
    *(12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281),
    *(2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860),
    *(2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423),
)


def student_t(degrees: int) -> float:
    """The 97.5 % quantile of Student's t distribution; within 0.0002 beyond the table."""
    if degrees <= len(_T):
        return _T[degrees - 1]
    # Cornish-Fisher expansion about the normal quantile (Abramowitz and Stegun, 26.7.5), two terms.
    z = 1.959964
    return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)


@dataclass(frozen=True)
class Sample:
    """One value per seed."""

    values: tuple[float, ...]
    #: Whether the mean is geometric: that of factors, such as 1 + an effect on the scale of ratios.
    of_ratios: bool = False

    @property
    def mean(self) -> float:
        """The mean over the seeds."""
        return self._back(statistics.fmean(self._scaled()))

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % confidence interval of the mean, by Student's t distribution; `None` with one seed."""
        if len(self.values) < 2:
            return None
        values = self._scaled()
        middle = statistics.fmean(values)
        half = student_t(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
        return self._back(middle - half), self._back(middle + half)

    @property
    def low(self) -> float:
        """The lower end of the interval; the value itself with one seed."""
        return self.mean if self.interval is None else self.interval[0]

    @property
    def high(self) -> float:
        """The upper end of the interval; the value itself with one seed."""
        return self.mean if self.interval is None else self.interval[1]

    def _scaled(self) -> list[float]:
        return [math.log1p(value) for value in self.values] if self.of_ratios else list(self.values)

    def _back(self, value: float) -> float:
        return math.expm1(value) if self.of_ratios else value


def reduced(how: str, values: Sequence[float]) -> float | None:
    """The reduction of values to one number; `None` where it is undefined."""
    if not values:
        return None
    try:
        return float(REDUCE[how](values))
    except statistics.StatisticsError:
        return None


def relative_values(results: Results, metric: Expression, normalised_to: str | None) -> list[float | None]:
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


def ratio_of_means(
    results: Results, metric: Expression, normalised_to: str | None, indices: Sequence[int]
) -> float | None:
    """The metric of the means over some runs, divided by that of the same runs with the variant `normalised_to`."""
    value = results.of_means(metric, indices)
    if normalised_to is None or value is None:
        return value
    base = results.of_means(metric, indices, normalised_to)
    return value / base if base else None


def effects_of(results: Results, metric: Expression, where: Where, scale: str) -> list[Effect]:
    """The effects of the factors on a metric in the selected runs."""
    values = results.evaluate(metric)
    rows = [(run.row, value) for run, value in zip(results.runs, values, strict=True) if where.matches(run.row)]
    return effects(results.factors, rows, scale)


def by_seed(results: Results, measure: Measure, where: Where | None = None) -> dict[Any, float]:
    """The measured value with each seed that has one; `where` narrows the runs further."""
    rows: dict[Any, list[int]] = {}
    for index, run in enumerate(results.runs):
        if measure.where.matches(run.row) and (where is None or where.matches(run.row)):
            rows.setdefault(run.row.get(SEED), []).append(index)
    if measure.effect:
        return _effect_by_seed(results, measure, rows)
    values = relative_values(results, measure.metric, measure.normalised_to)
    found: dict[Any, float] = {}
    for seed, indices in rows.items():
        known = [index for index in indices if values[index] is not None]
        if measure.reduce == "ratio-of-means":
            value = ratio_of_means(results, measure.metric, measure.normalised_to, known) if known else None
        else:
            value = reduced(measure.reduce, [v for index in known if (v := values[index]) is not None])
        if value is not None:
            found[seed] = value
    return found


def _effect_by_seed(results: Results, measure: Measure, rows: Mapping[Any, Sequence[int]]) -> dict[Any, float]:
    values = results.evaluate(measure.metric)
    found = {}
    for seed, indices in rows.items():
        of_seed = [(results.runs[index].row, values[index]) for index in indices]
        for effect in effects(results.factors, of_seed, measure.scale):
            if set(effect.names) == set(measure.effect):
                found[seed] = effect.reduced(measure.reduce)
    return found


def sample(results: Results, measure: Measure, where: Where | None = None) -> Sample | None:
    """The measured values of a claim; `None` if no run has a value."""
    found = by_seed(results, measure, where)
    return Sample(tuple(found.values()), _of_ratios(measure)) if found else None


def differences(
    results: Results, measure: Measure, baseline: float | Measure | None, where: Where | None = None
) -> Sample | None:
    """The measured values less those of the baseline with the same seed; `None` if there are none."""
    found = by_seed(results, measure, where)
    if baseline is None:
        return None
    if not isinstance(baseline, Measure):
        return Sample(tuple(value - baseline for value in found.values())) if found else None
    base = by_seed(results, baseline)
    paired = [value - base[seed] for seed, value in found.items() if seed in base]
    return Sample(tuple(paired)) if paired else None


def _of_ratios(measure: Measure) -> bool:
    return bool(measure.effect) and measure.scale == "ratio" and measure.reduce == "mean"
