"""The presentation of a life."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from nandlab.noted import SEVERITIES
from nandlab.presentation.model import Figure, Presentation, Row, Section, Table, counted
from nandlab.result_types import Note
from nandlab.units import count, lifetime, lifetime_unit, number, part, written_unit

if TYPE_CHECKING:
    from nandlab.lifetime import Life


def of_life(life: Life) -> Presentation:
    """The presentation of a life."""
    facts = life.facts
    until = f"until {facts.end}" if facts.complete else f"then {facts.end}"
    (unit, per_year), (size, per_tb) = lifetime_unit(facts.years), written_unit(facts.host_tb_written)
    headline = (
        Figure("lifetime", number(facts.years * per_year), unit),
        Figure("written by the host (TBW)", number(facts.host_tb_written * per_tb), size),
        Figure("drive writes", count(facts.drive_writes)),
        Figure("drive writes per day", number(facts.drive_writes_per_day)),
        Figure("mean P/E cycles at the end", count(facts.pe_mean)),
        Figure("share of the wear that was simulated", part(facts.simulated_share, 1.0)),
    )
    failures = []
    if not facts.complete:
        failures.append(Note("warning", "stopped", "not complete: the life ended early"))
    if (first := facts.first_media_error_years) is not None:
        failures.append(Note("error", "media-errors", f"data lost: first media error after {lifetime(first)}"))
    return Presentation(
        name=life.name,
        lead=f"{lifetime(facts.years)}{'' if facts.complete else ','} {until}.",
        headline=headline,
        failures=tuple(failures),
        notes=tuple(sorted((*facts.notes, *_notes_of_life(life)), key=lambda one: SEVERITIES.index(one.severity))),
        sections=tuple(_error(life)),
    )


def _notes_of_life(life: Life) -> Iterable[Note]:
    facts = life.facts
    yield Note(
        "info",
        "windows",
        f"Each of {count(facts.windows)} points is a window of {count(facts.requests_a_window)} requests, simulated "
        "after as many requests that let the drive settle. Between the windows the drive is fast-forwarded: blocks "
        "wear, time passes and the capacitor ages as in the last window. The data does not age."
        if facts.simulated_share < 0.999
        else f"The whole life was simulated; each of {count(facts.windows)} points is a window of it.",
    )
    if unsteady := facts.windows_unsteady:
        yield Note(
            "warning",
            "unsteady",
            f"In {counted(unsteady, 'window')} write amplification was still changing by more than a tenth: use "
            "longer windows (--requests).",
        )
    if overloaded := facts.windows_overloaded:
        yield Note(
            "warning",
            "overloaded",
            f"In {counted(overloaded, 'window')} requests came faster than the drive served them, so latency "
            "grows with the length of the window. Use fewer requests per second (workload.arrival, time_scale).",
        )


#: The numbers in units that fit: words, and the unit of a value.
_SCALED = {"years": ("lifetime", lifetime_unit), "host_tb_written": ("written by the host", written_unit)}


def _scaled(name: str, full: float) -> tuple[str, float]:
    """A number of a life in words with the unit that fits `full`, and by what its values are multiplied."""
    if name not in _SCALED:
        return name, 1.0
    words, unit_of = _SCALED[name]
    unit, times = unit_of(full)
    return f"{words}, {unit}", times


def _error(life: Life) -> Iterable[Section]:
    if not life.facts.error:
        return
    rows = [
        Row(
            label,
            (
                number(of.fast * times),
                number(of.full * times),
                f"{100 * of.relative:+.1f} %",
                "" if of.mean_apart is None else f"{100 * of.mean_apart:.1f} %",
            ),
        )
        for name, of in life.facts.error.items()
        for label, times in (_scaled(name, of.full),)
    ]
    caption = "The same life simulated in full. Windows are compared at equal mean P/E cycles."
    heads = ("against the full simulation", "fast-forwarded", "in full", "difference", "mean absolute difference")
    table = Table(heads, tuple(rows), caption)
    yield Section("Against the full simulation", table, (table,))
