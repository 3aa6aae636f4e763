"""Where the time of the requests went, and why the slowest were slow."""

from __future__ import annotations

import numpy as np

from nandlab.explained import Explained, Explanation, Step, Sum, largest, words
from nandlab.reporting.chart import Axis, Bars, Figure, Panel, Series
from nandlab.reporting.colours import OPERATIONS
from nandlab.reporting.content import Block, Drawing, Fold, Listing, Nothing, Words
from nandlab.results import RunResult
from nandlab.units import count, duration, share, size

#: The most parts in the chart; the others are one bar.
_BARS = 12
#: The most requests whose steps are listed.
_STEPS_OF = 20


def where_time_went(result: RunResult) -> list[Block]:
    """The sum over all requests by part, and the slowest requests with what they waited for."""
    explained = result.explained
    if explained is None:
        return [
            Nothing(
                "What the requests waited for was not recorded. A run with --set output.explain=20 shows here where "
                "the time went, and why the 20 slowest requests were slow."
            )
        ]
    sums = [sum_ for sum_ in explained.sums if sum_.latency_ns]
    if not sums:
        return [Nothing("No request took time, so there is nothing to explain.")]
    return [_chart(sums), _table(sums), *_slowest(explained)]


def _chart(sums: list[Sum]) -> Drawing:
    total: dict[str, int] = {}
    for sum_ in sums:
        for part, ns in sum_.parts_ns.items():
            total[part] = total.get(part, 0) + ns
    shown = [part for part, _ in largest(total, _BARS)]

    def of(sum_: Sum) -> list[float]:
        parts = [100 * sum_.parts_ns.get(part, 0) / sum_.latency_ns for part in shown]
        return [*parts, 100 - sum(parts)] if len(total) > len(shown) else parts

    places = tuple(words(part) for part in shown) + (("all others",) if len(total) > len(shown) else ())
    series = tuple(Series(sum_.op, np.maximum(np.array(of(sum_)), 0.0), OPERATIONS[sum_.op]) for sum_ in sums)
    title = "What requests waited for"
    chart = Bars(title, Axis(""), Axis("share of the latencies, %", " %", low=0), places, series)
    caption = (
        "The latencies of all requests, divided along the critical path of each: what held the die, the channel or the "
        "buffer that a request waited for, and the phases of its own operations. The bars of a kind of request sum to "
        "100 %."
    )
    return Drawing(Figure(title, caption, (Panel(chart),), id="where-time-went"))


def _table(sums: list[Sum]) -> Fold:
    rows = tuple(
        (sum_.op, words(part), duration(ns * 1e-9), share(ns / sum_.latency_ns), duration(ns * 1e-9 / sum_.requests))
        for sum_ in sums
        for part, ns in largest(sum_.parts_ns, len(sum_.parts_ns))
    )
    heads = ("requests", "part", "sum", "share", "mean a request")
    return Fold("All parts", (Listing(heads, rows, label="All parts", numbers=frozenset((2, 3, 4))),))


def _slowest(explained: Explanation) -> list[Block]:
    if not explained.slowest:
        return []
    rows = tuple(
        (
            name(of),
            duration(of.arrival_ns * 1e-9),
            duration(of.latency_ns * 1e-9),
            tuple(f"{words(part)}: {took(ns, of)}" for part, ns in largest(of.parts_ns)),
        )
        for of in explained.slowest
    )
    slowest = Listing(
        ("request", "arrived at", "latency", "waited for"),
        rows,
        title=f"The {count(len(rows))} slowest requests" if len(rows) > 1 else "The slowest request",
        numbers=frozenset((1, 2)),
        stacks=True,
    )
    folds = (
        Fold(f"{name(of)}: {duration(of.latency_ns * 1e-9)}", (steps(of),)) for of in explained.slowest[:_STEPS_OF]
    )
    return [slowest, Words("Each of the slowest requests, step by step:"), *folds]


def name(of: Explained) -> str:
    """A request in a few words."""
    return f"#{count(of.request)} {of.op} {size(of.length)}" if of.length else f"#{count(of.request)} {of.op}"


def took(ns: int, of: Explained) -> str:
    """A time with its share of the latency of a request."""
    return f"{duration(ns * 1e-9)} ({share(ns / of.latency_ns)})"


def steps(of: Explained) -> Listing:
    """What a request waited for, in order of time."""
    rows = tuple((duration(step.from_ns * 1e-9), duration(length(step) * 1e-9), _said(step)) for step in of.steps)
    return Listing(("from", "took", "waited for"), rows, label=f"Steps of {name(of)}", numbers=frozenset((0, 1)))


def length(step: Step) -> int:
    """The length of a step in nanoseconds."""
    return step.to_ns - step.from_ns


def _said(step: Step) -> str:
    if step.die is None:
        return words(step.part)
    has_data = step.lpn is not None and not (step.part or "").startswith("erase")
    return f"{words(step.part)}, die {step.die}" + (f", LPN {step.lpn}" if has_data else "")
