"""What a life says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from nandlab.presentation.model import Figure, Presentation, Row, Section, Table, several
from nandlab.result_types import Note
from nandlab.units import count, number, part

if TYPE_CHECKING:
    from nandlab.lifetime import Life


def of_life(life: Life) -> Presentation:
    """What a life says."""
    facts = life.facts
    until = f"until {facts.end}" if facts.complete else f"then {facts.end}"
    headline = (
        Figure("lifetime", number(facts.years), "years"),
        Figure("written by the host", number(facts.host_tb_written), "TB"),
        Figure("drive writes", count(facts.drive_writes)),
        Figure("drive writes a day", number(facts.drive_writes_per_day)),
        Figure("mean P/E cycles at the end", count(facts.pe_mean)),
        Figure("of the wear was simulated", part(facts.simulated_share, 1.0)),
    )
    trouble = []
    if not facts.complete:
        trouble.append(Note("warning", "stopped", "not complete: the life was stopped"))
    if (first := facts.first_media_error_years) is not None:
        trouble.append(Note("error", "media-errors", f"data lost: the first media error after {number(first)} years"))
    return Presentation(
        name=life.name,
        lead=f"{number(facts.years)} years{'' if facts.complete else ','} {until}.",
        headline=headline,
        trouble=tuple(trouble),
        notes=tuple(_notes_of_life(life)),
        sections=tuple(_error(life)),
    )


def _notes_of_life(life: Life) -> Iterable[Note]:
    facts = life.facts
    yield Note(
        "info",
        "windows",
        f"Each of {count(facts.windows)} points is a window of {count(facts.requests_a_window)} requests, simulated "
        "after as many to settle. Between the windows the drive lives on as in the last one: blocks wear, time passes, "
        "the capacitor ages. The data keeps its ages."
        if facts.simulated_share < 0.999
        else f"The whole life was simulated; each of {count(facts.windows)} points is a window of it.",
    )
    if unsteady := facts.windows_unsteady:
        yield Note(
            "warning",
            "unsteady",
            f"In {several(unsteady, 'window')} write amplification was still changing by more than a tenth: longer "
            "windows (--requests) settle it.",
        )
    if overloaded := facts.windows_overloaded:
        yield Note(
            "warning",
            "overloaded",
            f"In {several(overloaded, 'window')} requests came faster than the drive served them, so latency says how "
            "long the window was. Fewer requests a second (workload.arrival, time_scale) settle it.",
        )


def _error(life: Life) -> Iterable[Section]:
    if not life.facts.error:
        return
    rows = [
        Row(
            name,
            (
                number(of.fast),
                number(of.full),
                f"{100 * of.relative:+.1f} %",
                "" if of.mean_apart is None else f"{100 * of.mean_apart:.1f} %",
            ),
        )
        for name, of in life.facts.error.items()
    ]
    caption = "The life once more with everything simulated. Windows are compared at equal mean P/E cycles."
    heads = ("against the full simulation", "skipping", "in full", "difference", "mean distance")
    table = Table(heads, tuple(rows), caption)
    yield Section("Against the full simulation", table, (table,))
