"""Claims on more than one number: monotone in a setting, correlated with a property of the workloads, true of most
workloads.
"""

from __future__ import annotations

import itertools
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nandlab.study.metrics import Results
from nandlab.study.model import Claim, Where
from nandlab.study.sample import Sample, by_seed, sample

#: Numbers, one row for each sample.
Rows = np.ndarray[Any, np.dtype[np.float64]]

#: Resamples of the workloads for the interval of a rank correlation.
RESAMPLES = 10_000
#: The share of the resamples beyond each end of the interval.
_TAIL = 0.025


@dataclass(frozen=True)
class Step:
    """The step between two neighbouring values of an axis."""

    before: Any
    after: Any
    #: The measured value after the step less the value before it, by seed.
    sample: Sample


@dataclass(frozen=True)
class Correlation(Sample):
    """Spearman's rank correlation over workloads; `values` has the coefficient alone.

    The interval has the 2.5 and 97.5 % quantiles of the coefficients of resampled workloads (Efron's percentile
    bootstrap); `None` with fewer than three workloads.
    """

    ends: tuple[float, float] | None = None
    #: By workload: the value of the property, and the mean of the measure over the seeds.
    points: tuple[tuple[str, float, float], ...] = ()

    @property
    def interval(self) -> tuple[float, float] | None:
        return self.ends


def steps(results: Results, claim: Claim) -> list[Step]:
    """The steps of a monotone claim, in the order of the axis: by size for numbers, else as listed."""
    axis = claim.monotone
    assert axis is not None
    rows = [run.row for run in results.runs if claim.measure.where.matches(run.row)]
    places = list(dict.fromkeys(row[axis] for row in rows if row.get(axis) is not None))
    if all(isinstance(place, (int, float)) for place in places):
        places.sort()
    values = [(place, by_seed(results, claim.measure, Where({axis: (place,)}))) for place in places]
    known = [(place, found) for place, found in values if found]
    out = []
    for (before, low), (after, high) in itertools.pairwise(known):
        paired = tuple(high[seed] - low[seed] for seed in high if seed in low)
        if paired:
            out.append(Step(before, after, Sample(paired)))
    return out


def weakest(found: Sequence[Step], *, is_falling: bool) -> Step:
    """The step that goes least in the claimed direction."""
    return max(found, key=lambda step: step.sample.mean if is_falling else -step.sample.mean)


def correlation(results: Results, claim: Claim) -> Correlation | None:
    """The rank correlation of the measure with a property of the workloads; `None` with fewer than two workloads."""
    assert claim.against is not None
    properties = results.evaluate(claim.against)
    names: dict[str, list[float]] = {}
    for run, value in zip(results.runs, properties, strict=True):
        if value is not None and claim.measure.where.matches(run.row):
            names.setdefault(run.workload, []).append(value)
    measure = claim.measure
    if measure.reduce == "ratio-of-means" or measure.effect:
        measure = replace(measure, reduce="mean", effect=())
    points = []
    for name, values in names.items():
        one = sample(results, measure, Where({"workload": (name,)}))
        if one is not None:
            points.append((name, statistics.fmean(values), one.mean))
    if len(points) < 2:
        return None
    x, y = (np.array([point[index] for point in points]) for index in (1, 2))
    rho = float(spearman(x[None], y[None])[0])
    return Correlation((rho,), ends=_resampled(x, y), points=tuple(points))


def spearman(x: Rows, y: Rows) -> Rows:
    """Spearman's rank correlation of each row of `x` with the same row of `y`; ties have their mean rank.

    A row whose values are all equal has no rank correlation: 0.
    """
    rx, ry = _ranks(x), _ranks(y)
    rx, ry = rx - rx.mean(axis=1, keepdims=True), ry - ry.mean(axis=1, keepdims=True)
    size = np.sqrt((rx**2).sum(axis=1) * (ry**2).sum(axis=1))
    rho: Rows = np.divide((rx * ry).sum(axis=1), size, out=np.zeros_like(size), where=size > 0)
    return rho


def _ranks(values: Rows) -> Rows:
    below = (values[:, None, :] < values[:, :, None]).sum(axis=2)
    equal = (values[:, None, :] == values[:, :, None]).sum(axis=2)
    ranks: Rows = below + (equal + 1) / 2
    return ranks


def _resampled(x: Rows, y: Rows) -> tuple[float, float] | None:
    """The interval of the rank correlation. The draws are the same on every machine and for every study."""
    count = len(x)
    if count < 3:
        return None
    draw = random.Random(1)
    chosen = np.array([int(draw.random() * count) for _ in range(RESAMPLES * count)]).reshape(RESAMPLES, count)
    # A resample of one workload alone, repeated, has no rank correlation.
    several = (chosen != chosen[:, :1]).any(axis=1)
    found = np.sort(spearman(x[chosen[several]], y[chosen[several]]))
    last = len(found) - 1
    return float(found[round(_TAIL * last)]), float(found[round((1 - _TAIL) * last)])


def counts(verdicts: Sequence[str], holds: str, fails: str) -> dict[str, int]:
    """How many workloads are for a claim, against it, and undecided."""
    found = {"for": verdicts.count(holds), "against": verdicts.count(fails)}
    return {**found, "undecided": len(verdicts) - sum(found.values())}
