"""The change of one metric against the baseline: ratio, interval, verdict, and a sentence in plain words."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from nandlab.study.sample import Sample
from nandlab.units import duration, number, share

#: `differs`: the interval does not contain "no change", or there is one seed. `unclear`: it does. `same`: the values
#: are equal with every seed.
Verdict = Literal["differs", "unclear", "same"]

#: The units of metrics that are shown in the unit that fits, in seconds.
_SECONDS = {"s": 1.0, "ms": 1e-3}
#: How a unit of a metric is written, where its name in files differs.
_SHOWN = {"us": "µs"}


@dataclass(frozen=True)
class Change:
    """A metric of runs, compared with the baseline."""

    #: The name of the metric, as in compare.json.
    metric: str
    #: The metric in words; the name itself for a further value of summary.json.
    words: str
    #: `"us"`, `"J"`, ...; `"share"` for a share (0 to 1); empty for a number.
    unit: str
    #: The values of the baseline, one per seed.
    baseline: tuple[float, ...]
    #: The values of the other runs, in the order of the same seeds.
    values: tuple[float, ...]
    #: A further value of summary.json, without words of its own.
    further: bool = False
    #: The better direction: `"lower"`, `"higher"`, or empty where neither is better by itself.
    better: str = ""

    @functools.cached_property
    def ratio(self) -> Sample | None:
        """The ratios to the baseline less 1, one per seed; `None` if a value is not above 0."""
        if min(*self.baseline, *self.values) <= 0:
            return None
        pairs = zip(self.baseline, self.values, strict=True)
        return Sample(tuple(value / base - 1 for base, value in pairs), of_ratios=True)

    @functools.cached_property
    def difference(self) -> Sample:
        """The differences from the baseline, one per seed."""
        return Sample(tuple(value - base for base, value in zip(self.baseline, self.values, strict=True)))

    @property
    def verdict(self) -> Verdict:
        """Whether the metric differs from the baseline."""
        if self.baseline == self.values:
            return "same"
        interval = (self.ratio or self.difference).interval
        return "unclear" if interval is not None and interval[0] <= 0 <= interval[1] else "differs"

    @property
    def is_open(self) -> bool:
        """Whether the interval says nothing: it contains half and double of the baseline, so that either is possible.

        Without a ratio half and double are those of the higher of the two means.
        """
        interval = (self.ratio or self.difference).interval
        if interval is None:
            return False
        whole = 1.0 if self.ratio is not None else max(abs(_mean(self.baseline)), abs(_mean(self.values)))
        return interval[0] <= -whole / 2 and interval[1] >= whole > 0

    @property
    def size(self) -> float:
        """The size of the difference, |ln ratio|; -1 without a ratio."""
        return -1.0 if self.ratio is None else abs(math.log1p(self.ratio.mean))

    @property
    def sentence(self) -> str:
        """The change in plain words, with its 95 % confidence interval if there are several seeds."""
        if self.verdict == "same":
            return f"{self.words} is the same"
        if self.is_open:
            return f"no clear difference in {self.words} ({len(self.values)} seeds are too few for an interval)"
        if self.ratio is None:
            return self._of_difference()
        mean, interval = self.ratio.mean, self.ratio.interval
        if self.verdict == "unclear" and interval is not None:
            low, high = interval
            return f"no clear difference in {self.words} (95 % interval {_signed(low)} to {_signed(high)} %)"
        if mean >= 1:
            text = f"{self.words} is {number(1 + mean)} times as high"
            ends = None if interval is None else tuple(number(1 + end) for end in interval)
        else:
            text = f"{self.words} is {_percent(mean)} % {'lower' if mean < 0 else 'higher'}"
            ends = None if interval is None else tuple(_percent(end) for end in sorted(interval, key=abs))
        return text if ends is None else f"{text} (95 % interval {ends[0]} to {ends[1]})"

    @property
    def short(self) -> str:
        """The change in a few characters, for a cell of a table."""
        if self.verdict == "same":
            return "same"
        if self.verdict == "unclear":
            return "not clear"
        if self.ratio is None:
            return f"{self.shown_means[1]}, not {self.shown_means[0]}"
        return self.change

    @property
    def change(self) -> str:
        """The change of the mean in a few characters: in per cent, as a factor from 2 on, or as a difference."""
        if self.ratio is None:
            difference = self.difference.mean
            return f"{'-' if difference < 0 else '+'}{self.shown(abs(difference))}"
        mean = self.ratio.mean
        return f"x {number(1 + mean)}" if mean >= 1 else f"{_signed(mean)} %"

    @property
    def interval(self) -> str:
        """The 95 % confidence interval of `change`, in the same unit; empty for one seed."""
        ends = (self.ratio or self.difference).interval
        if ends is None or self.verdict == "same":
            return ""
        if self.is_open:
            return "too few seeds"
        low, high = ends
        if self.ratio is None:
            return " to ".join(f"{'-' if end < 0 else '+'}{self.shown(abs(end))}" for end in ends)
        if self.ratio.mean >= 1:
            return f"{number(1 + low)} to {number(1 + high)}"
        return f"{_signed(low)} to {_signed(high)}"

    @property
    def judged(self) -> str:
        """`better` or `worse`, or the verdict where neither direction is better or the difference is not clear."""
        if self.verdict != "differs" or not self.better:
            return self.verdict
        is_lower = (self.ratio or self.difference).mean < 0
        return "better" if is_lower == (self.better == "lower") else "worse"

    def _of_difference(self) -> str:
        """The sentence where there is no ratio."""
        interval = self.difference.interval
        text = f"{self.words} is {self.shown(_mean(self.values))}, not {self.shown(_mean(self.baseline))}"
        if interval is None:
            return text
        low, high = (f"{'-' if end < 0 else '+'}{self.shown(abs(end))}" for end in interval)
        if self.verdict == "unclear":
            return f"no clear difference in {self.words} (95 % interval of the difference {low} to {high})"
        return f"{text} (95 % interval of the difference {low} to {high})"

    def shown(self, value: float) -> str:
        """A value of the metric with its unit."""
        if self.unit == "share":
            return share(value)
        if self.unit in _SECONDS:
            return duration(value * _SECONDS[self.unit])
        text = number(int(value) if float(value).is_integer() else value)
        return f"{text} {_SHOWN.get(self.unit, self.unit)}".rstrip()

    @property
    def shown_means(self) -> tuple[str, str]:
        """The means over the seeds with their unit: of the baseline, and of the other runs."""
        return self.shown(_mean(self.baseline)), self.shown(_mean(self.values))

    def to_dict(self) -> dict[str, Any]:
        """The change as in compare.json."""
        ratio, interval = self.ratio, None if self.ratio is None else self.ratio.interval
        return {
            "metric": self.metric,
            "unit": self.unit,
            "baseline": list(self.baseline),
            "values": list(self.values),
            "ratio": None if ratio is None else 1 + ratio.mean,
            "ratio_interval": None if interval is None else [1 + end for end in interval],
            "difference": self.difference.mean,
            "difference_interval": self.difference.interval,
            "verdict": self.verdict,
            "sentence": self.sentence,
        }


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _percent(change: float) -> str:
    """The size of a relative change in per cent, with two digits; in whole per cent from 10 on."""
    percent = 100 * abs(change)
    if percent >= 9.95:
        return f"{percent:,.0f}"
    if percent >= 0.995:
        return f"{percent:.1f}".removesuffix(".0")
    return f"{percent:.2g}" if percent >= 0.01 else "less than 0.01" if percent else "0"


def _signed(change: float) -> str:
    sign = "-" if change < 0 else "+" if change > 0 else ""
    return sign + _percent(change).replace("less than ", "<")
