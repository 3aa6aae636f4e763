"""Effects of two-level factors: main effects, and interactions of two factors.

The selected runs contain, for each replicate, all combinations of the factors that they vary. Runs with equal labels
and axis values, except the variant, are one replicate. m is the metric of a run.

scale = "ratio"
    Main effect of A: the geometric mean, over all pairs of runs that differ in A only, of m(on) / m(off), minus 1.
    Interaction A:B: the mean over the pairs with B on, divided by the mean over the pairs with B off, minus 1. A:B and
    B:A are equal.
scale = "difference"
    The same with arithmetic means of m(on) - m(off) and their difference, for metrics that can be 0.

An effect is computed for each replicate; the result is the mean of the replicates (for ratios the geometric mean), the
smallest and the largest replicate. A replicate with a missing value, or for ratios with a value that is not above 0,
has no effects.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nandlab.study.model import NO_FACTOR, without

#: The factors that are on.
On = frozenset[str]


@dataclass(frozen=True)
class Effect:
    """An effect, with its value in each replicate."""

    #: One factor for a main effect, two for an interaction.
    names: tuple[str, ...]
    replicates: tuple[float, ...]
    scale: str

    @property
    def key(self) -> str:
        return ":".join(self.names)

    def reduced(self, how: str = "mean") -> float:
        if how == "mean":
            if self.scale == "ratio":
                return statistics.geometric_mean([1.0 + value for value in self.replicates]) - 1.0
            return statistics.fmean(self.replicates)
        if how == "median":
            return statistics.median(self.replicates)
        return min(self.replicates) if how == "min" else max(self.replicates)


def combination(variant: str, factors: Sequence[str]) -> On | None:
    """The factors that are on in a variant; `None` for a variant that is no combination of factors."""
    if variant == NO_FACTOR:
        return frozenset()
    letters = frozenset(variant)
    return letters if letters <= set(factors) and "".join(f for f in factors if f in letters) == variant else None


def varied(factors: Sequence[str], there: set[On]) -> list[str]:
    """The factors that are on in some runs and off in others."""
    return [name for name in factors if len({name in on for on in there}) == 2]


def missing(factors: Sequence[str], there: set[On]) -> list[str]:
    """The combinations of the varied factors that are not in `there`, as names of variants."""
    fixed = frozenset.intersection(*there) if there else frozenset()
    names = varied(factors, there)
    wanted = [fixed | set(chosen) for size in range(len(names) + 1) for chosen in itertools.combinations(names, size)]
    return ["".join(f for f in factors if f in on) or NO_FACTOR for on in wanted if on not in there]


def effects(factors: Sequence[str], rows: Sequence[tuple[Mapping[str, Any], float | None]], scale: str) -> list[Effect]:
    """All effects of the factors that the rows vary; a row has the labels and axis values of a run, and its metric."""
    sets: dict[tuple[Any, ...], dict[On, float | None]] = {}
    for row, value in rows:
        on = combination(str(row["variant"]), factors)
        if on is not None:
            replicate = without(row, "variant")
            sets.setdefault(replicate, {})[on] = value
    names = varied(factors, {on for values in sets.values() for on in values})
    whole = [logs for values in sets.values() if (logs := _whole(factors, names, values, scale)) is not None]
    wanted: list[tuple[str, ...]] = [*((name,) for name in names), *itertools.combinations(names, 2)]
    return [Effect(key, tuple(_effect(values, key, scale) for values in whole), scale) for key in wanted if whole]


def _whole(
    factors: Sequence[str], names: list[str], values: Mapping[On, float | None], scale: str
) -> dict[On, float] | None:
    """The values of a complete replicate, for ratios their logarithms; `None` for an incomplete one."""
    if varied(factors, set(values)) != names or missing(factors, set(values)):
        return None
    found = {}
    for on, value in values.items():
        if value is None or (scale == "ratio" and value <= 0):
            return None
        found[on] = math.log(value) if scale == "ratio" else value
    return found


def _effect(values: Mapping[On, float], key: tuple[str, ...], scale: str) -> float:
    first, *second = key

    def mean(among: list[On]) -> float:
        return statistics.fmean(values[on | {first}] - values[on] for on in among)

    off = [on for on in values if first not in on]
    if second:
        found = mean([on for on in off if second[0] in on]) - mean([on for on in off if second[0] not in on])
    else:
        found = mean(off)
    return math.expm1(found) if scale == "ratio" else found
