"""The requests around a power cut on a time line: which of them are shown, and where their marks are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nandlab import units
from nandlab.power_test.instants import Moments
from nandlab.presentation.model import counted

if TYPE_CHECKING:
    from nandlab.reporting.content import Timeline

#: The most requests that are shown before and after the cut, and of lost ones that were submitted long before.
BEFORE, AFTER, EARLIER = 20, 3, 8
#: A request that is so many times further from the cut than the next one is not shown, except the last ones.
_GAP, _LEAST = 6, 4
#: The part of the drawn time that is after the cut.
_REST = 0.12
#: The most labels of times; half of them fit a narrow screen.
_TICKS = 7


@dataclass(frozen=True)
class Around:
    """The requests around a cut."""

    at: int
    #: Their numbers.
    numbers: list[int]
    #: The lost requests, and those that are lost but not needed to break the check.
    lost: frozenset[int]
    also_lost: frozenset[int]
    #: Lost requests from long before that are not among the numbers.
    left_out: int = 0


def around(
    moments: Moments,
    at: int,
    unit_bytes: int,
    lost: Sequence[dict[str, Any]],
    also_lost: Sequence[dict[str, Any]] = (),
) -> Around:
    """The requests around a cut at a time, of which units are lost."""
    requests = moments.requests
    next_one = next((number for number, of in enumerate(requests) if of[0] > at), len(requests))
    first = next_one
    while first > 0 and next_one - first < BEFORE:
        distance = at - requests[first - 1][0]
        if next_one - first >= _LEAST and distance > _GAP * max(at - requests[first][0], 1):
            break
        first -= 1

    def of(lost_units: Sequence[dict[str, Any]]) -> set[int]:
        found = (moments.request_of(unit["offset"], unit_bytes, at, unit["promise"]) for unit in lost_units)
        return {number for number in found if number is not None}

    is_lost = of(lost)
    earlier = sorted(number for number in is_lost if number < first)
    numbers = [*earlier[-EARLIER:], *range(first, min(next_one + AFTER, len(requests)))]
    left_out = max(len(earlier) - EARLIER, 0)
    return Around(at, numbers, frozenset(is_lost), frozenset(of(also_lost) - is_lost), left_out)


def timeline(moments: Moments, shown: Around, title: str) -> Timeline | None:
    """The drawing."""
    from nandlab.reporting.content import Lane, Timeline

    at, requests = shown.at, moments.requests
    near = [number for number in shown.numbers if requests[number][0] <= at]
    # The requests that are shown only because they are lost may be far away.
    run = [number for number in near if all(other in shown.numbers for other in range(number, near[-1] + 1))]
    if not run:
        return None
    begin = requests[run[0]][0]
    end = at + max(round((at - begin) * _REST / (1 - _REST)), 1)

    def place(when: int) -> float:
        return round(100 * (when - begin) / (end - begin), 2)

    def within(when: int | None) -> float | None:
        return place(when) if when is not None and begin <= when <= end else None

    lanes = []
    for number in shown.numbers:
        when, op, offset, length, fua = requests[number]
        acknowledged, in_flash = moments.reached[number]
        if when > end:
            continue
        loss = "lost" if number in shown.lost else "also lost" if number in shown.also_lost else ""
        until = 100.0 if acknowledged is None else min(max(place(acknowledged), 0.0), 100.0)
        where = "" if op == "flush" else f", byte {offset:,}, {length:,} bytes"
        times = (("submitted", when), ("acknowledged", acknowledged), ("in flash", in_flash))
        said = [f"{name} {before(time, at)}" for name, time in times if time is not None]
        lanes.append(
            Lane(
                name=f"{number:,} {op}{' FUA' if fua else ''}",
                text=", ".join([f"request {number:,}: {op}{where}", *said, *([loss] if loss else [])]),
                is_flush=op == "flush",
                is_earlier=when < begin,
                begin=max(place(when), 0.0),
                end=until,
                acknowledged=within(acknowledged),
                in_flash=within(in_flash),
                loss=loss,
            )
        )
    ticks = _ticks(begin - at, end - at)
    flushes = [within(moments.reached[number][0]) for number in run if requests[number][1] == "flush"]
    return Timeline(
        title=title,
        label=_described(moments, shown),
        caption="Times from the cut. What is to the right of it is of the session, in which the power did not fail."
        + (f" Not shown: {counted(shown.left_out, 'lost request')} from before these." if shown.left_out else ""),
        lanes=tuple(lanes),
        cut=place(at),
        flushes=tuple(flush for flush in flushes if flush is not None and flush <= place(at)),
        ticks=tuple((place(at + tick), _tick(tick), _is_fine(tick, ticks)) for tick in ticks),
        has_also_lost=any(lane.loss == "also lost" for lane in lanes),
    )


def _described(moments: Moments, shown: Around) -> str:
    """The drawing in a sentence, for a screen reader."""
    at = shown.at
    of = [number for number in shown.numbers if moments.requests[number][0] <= at]
    acknowledged, in_flash = (
        sum(when is not None and when <= at for when in (moments.reached[number][place] for number in of))
        for place in (0, 1)
    )
    lost = len(shown.lost.intersection(of)) + len(shown.also_lost.intersection(of))
    return (
        f"Time line of {counted(len(of), 'request')} before the cut: {acknowledged:,} acknowledged, {in_flash:,} in "
        f"flash as a whole, {lost:,} lost. The table below has the times."
    )


def _ticks(low: int, high: int) -> list[int]:
    """Times from the cut with a label: round ones, and 0."""
    rough = max((high - low) / _TICKS, 1.0)
    power = 10.0 ** math.floor(math.log10(rough))
    step = max(round(next(times * power for times in (1, 2, 5, 10) if times * power >= rough)), 1)
    return [count * step for count in range(-(-low // step), 1)]


def _is_fine(tick: int, ticks: Sequence[int]) -> bool:
    """Whether the label of a time is left out on a narrow screen."""
    return (len(ticks) - 1 - ticks.index(tick)) % 2 == 1


def _tick(when: int) -> str:
    return "cut" if when == 0 else f"-{units.duration(-when * 1e-9)}"


def before(when: int | None, at: int) -> str:
    """A time from the cut."""
    if when is None:
        return ""
    return f"+{units.duration((when - at) * 1e-9)}" if when >= at else f"-{units.duration((at - when) * 1e-9)}"
